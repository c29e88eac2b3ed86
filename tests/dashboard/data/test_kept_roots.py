"""Folders that were allowed by code: kept for the same person's next server, and believed from nobody else."""

import json
import os

import pytest

from datamask.dashboard.data import kept_roots
from datamask.dashboard.data.kept_roots import file_of, keep, kept


@pytest.fixture
def runs_dir(tmp_path):
    (tmp_path / "runs").mkdir()
    return tmp_path / "runs"


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "corpus").mkdir()
    return tmp_path / "corpus"


def test_what_is_kept_is_read_again_and_lies_outside_of_the_runs_folder(runs_dir, folder, tmp_path):
    assert kept(runs_dir) == ()
    keep(runs_dir, [folder])
    keep(runs_dir, [tmp_path, folder])
    assert kept(runs_dir) == (folder, tmp_path)
    assert not list(runs_dir.iterdir()) and file_of(runs_dir).stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("mode", [0o640, 0o620, 0o604, 0o602, 0o666])
def test_a_file_that_others_can_read_or_write_allows_nothing(runs_dir, folder, mode):
    keep(runs_dir, [folder])
    file_of(runs_dir).chmod(mode)
    assert kept(runs_dir) == ()


def test_a_file_of_another_user_allows_nothing(runs_dir, folder, monkeypatch):
    keep(runs_dir, [folder])
    monkeypatch.setattr(kept_roots.os, "geteuid", lambda: os.getuid() + 1)
    assert kept(runs_dir) == ()


def test_a_copied_or_linked_file_allows_nothing(runs_dir, folder, tmp_path):
    keep(runs_dir, [folder])
    other = tmp_path / "other"
    other.mkdir()
    file_of(other).write_bytes(file_of(runs_dir).read_bytes())
    file_of(other).chmod(0o600)
    assert kept(other) == (), "it names the runs folder that it was written for"
    moved = file_of(runs_dir).rename(tmp_path / "elsewhere.json")
    file_of(runs_dir).symlink_to(moved)
    assert kept(runs_dir) == ()


def test_a_folder_that_became_a_link_is_allowed_no_more(runs_dir, folder, tmp_path):
    (tmp_path / "secret").mkdir()
    keep(runs_dir, [folder, tmp_path / "gone"])
    folder.rmdir()
    folder.symlink_to(tmp_path / "secret")
    assert kept(runs_dir) == (tmp_path / "gone",)


@pytest.mark.parametrize("text", ["", "[]", "null", '{"runs": 1}', json.dumps({"runs": [0, 0], "paths": ["/"]})])
def test_what_is_no_such_file_allows_nothing(runs_dir, text):
    file_of(runs_dir).write_text(text)
    file_of(runs_dir).chmod(0o600)
    assert kept(runs_dir) == ()
