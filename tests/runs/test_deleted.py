"""Deleting a run with a day to take it back: nothing of it is lost, nobody lists it, and after a day it is gone."""

from __future__ import annotations

import errno
import time
from pathlib import Path

import numpy as np
import pytest

from datamask.errors import InputError, RunStateError, StoreError
from datamask.runs import folders
from datamask.runs.store import Run, RunStore
from tests.making.run_folders import config, names


@pytest.fixture
def store(tmp_path) -> RunStore:
    return RunStore(tmp_path / "runs")


def ended(store: RunStore, name: str = "") -> Run:
    run = store.create(config(name))
    with run.writer() as writer:
        writer.set_status("running")
        writer.append_metrics({"step": 1})
        writer.save_checkpoint({"x": np.arange(3)}, {"step": 1})
        writer.finish("stopped")
    return run


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def later(monkeypatch, seconds: float) -> None:
    now = time.time()
    monkeypatch.setattr(folders.time, "time", lambda: now + seconds)


def test_a_deleted_run_is_listed_nowhere_and_comes_back_as_it_was(store):
    run, other = ended(store, "mine"), ended(store)
    run.relabel(tags=["keep"])
    before = contents(run.path)
    store.discard(run.id)
    assert [listed.id for listed in store.list()] == [other.id]
    with pytest.raises(InputError, match="there is no run"):
        store.get(run.id)
    assert [deleted.run_id for deleted in store.deleted()] == [run.id]
    back = store.restore(run.id)
    assert contents(back.path) == before and back.config.name == "mine" and back.status().state == "stopped"
    assert {listed.id for listed in store.list()} == {run.id, other.id} and not store.deleted()


def test_of_several_the_latest_comes_first(store, monkeypatch):
    runs = [ended(store) for _ in range(3)]
    for place, run in enumerate(runs):
        later(monkeypatch, 10 * place)
        store.discard(run.id)
    assert [deleted.run_id for deleted in store.deleted()] == [run.id for run in reversed(runs)]


@pytest.mark.parametrize("deed", ["create", "discard"])
def test_after_a_day_it_is_gone_for_good_at_the_next_deed(store, monkeypatch, deed):
    run, other = ended(store), ended(store)
    store.discard(run.id)
    later(monkeypatch, folders.KEPT_SECONDS - 5)
    store.create(config())
    assert [deleted.run_id for deleted in store.deleted()] == [run.id]
    later(monkeypatch, folders.KEPT_SECONDS + 10)
    assert not store.deleted()
    with pytest.raises(InputError, match="kept for a day"):
        store.restore(run.id)
    store.create(config()) if deed == "create" else store.discard(other.id)
    left = names(store.root / folders.DELETED)
    assert not any(name.endswith(run.id) for name in left) and not list(store.root.glob(".trash-*"))


def test_a_run_that_is_queued_or_at_work_cannot_be_deleted(store):
    run = store.create(config())
    with pytest.raises(RunStateError, match="is queued; stop it before deleting"):
        store.discard(run.id)
    with run.writer() as writer:
        writer.set_status("running")
        with pytest.raises(RunStateError, match="is running; stop it before deleting"):
            store.discard(run.id)
        writer.finish("stopped")
        # its last word is written, and its writer is still there
        with pytest.raises(RunStateError, match="is running"):
            store.discard(run.id)
    store.discard(run.id)


def test_it_does_not_come_back_over_another_run_of_its_id(store):
    run = ended(store)
    store.discard(run.id)
    store.create(config("new"), run_id=run.id)
    with pytest.raises(RunStateError, match="another run of that id"):
        store.restore(run.id)
    assert store.get(run.id).config.name == "new" and store.deleted()


@pytest.mark.parametrize("name", ["../../etc", "no-such-run", ""])
def test_what_was_never_deleted_cannot_come_back(store, name):
    ended(store)
    with pytest.raises(InputError):
        store.restore(name)


def test_other_things_in_the_folder_are_no_deleted_runs(store):
    store.discard(ended(store).id)
    place = store.root / folders.DELETED
    for name in ("x", "12-UPPER", "-run", "12", "9" * 30 + "-run", "¹-run"):
        (place / name).mkdir()
    assert len(store.deleted()) == 1


def test_a_link_to_a_folder_elsewhere_comes_back_and_only_the_link_goes(store, tmp_path, monkeypatch):
    run = ended(store)
    elsewhere = tmp_path / "elsewhere"
    run.path.rename(elsewhere)
    run.path.symlink_to(Path("..") / "elsewhere")
    store.discard(run.id)
    assert store.restore(run.id).status().state == "stopped"
    store.discard(run.id)
    later(monkeypatch, folders.KEPT_SECONDS + 10)
    store.create(config())
    assert names(store.root / folders.DELETED) == [] and "status.json" in names(elsewhere)


def test_a_folder_that_cannot_be_moved_stays_where_it_is(store, monkeypatch):
    run = ended(store)

    def refuse(self, target):
        raise OSError(errno.EACCES, "Permission denied")

    with monkeypatch.context() as patched:
        patched.setattr(Path, "rename", refuse)
        with pytest.raises(StoreError, match="cannot be deleted: Permission denied"):
            store.discard(run.id)
    assert [listed.id for listed in store.list()] == [run.id]
    store.discard(run.id)
    with monkeypatch.context() as patched:
        patched.setattr(Path, "rename", refuse)
        with pytest.raises(StoreError, match="cannot be restored: Permission denied"):
            store.restore(run.id)
    assert store.restore(run.id).id == run.id
