"""What lies in a folder that a visitor looks into: nothing outside the roots, nothing hidden, nothing unreadable."""

import pytest

from datamask.dashboard.data import folders
from datamask.errors import InputError
from datamask.files import OutsideRoots
from tests.making.runs import write_shard


@pytest.fixture
def root(tmp_path):
    root = tmp_path / "root"
    for name in ("B", "a", ".hidden"):
        (root / name).mkdir(parents=True)
    (tmp_path / "outside").mkdir()
    write_shard(tmp_path / "outside" / "secret.parquet")
    (root / "leads-out").symlink_to(tmp_path / "outside")
    (root / "leads-out.parquet").symlink_to(tmp_path / "outside" / "secret.parquet")
    (root / "rows.jsonl").write_text("{}")
    (root / "notes.txt").write_text("no corpus")
    write_shard(root / "rows.parquet")
    return root


def test_only_what_may_be_read_is_listed(root):
    seen = folders.look_into(root, [root])
    assert (seen.folders, seen.files, seen.above, seen.more) == (
        ("a", "B"),
        ("rows.jsonl", "rows.parquet"),
        None,
        False,
    )
    assert folders.look_into(root / "a", [root]).above == root.resolve()


@pytest.mark.parametrize("path", ["..", "leads-out", "../outside"])
def test_what_lies_outside_is_refused(root, path):
    with pytest.raises(OutsideRoots):
        folders.look_into(root / path, [root])


def test_a_file_is_no_folder(root):
    with pytest.raises(InputError, match="no folder"):
        folders.look_into(root / "rows.parquet", [root])


def test_many_files_are_cut_and_said(root, monkeypatch):
    monkeypatch.setattr(folders, "MOST", 1)
    seen = folders.look_into(root, [root])
    assert seen.files == ("rows.jsonl",) and seen.more


def test_browsing_begins_at_folders(root):
    assert folders.starts([root, root / "rows.parquet"]) == [root.resolve()]
