"""Files of folders and patterns: what the standard glob finds, within limits."""

import glob
import os
from pathlib import Path

import pytest

from datamask.config import CorpusConfig
from datamask.corpus import listing, open_corpus
from datamask.corpus.listing import ListingLimit, files_below, files_matching
from datamask.corpus.shards import list_files
from datamask.corpus.shared_corpora import SharedCorpora
from datamask.errors import InputError, Stopped
from datamask.polling import poll_of
from datamask.work.context import Work


@pytest.fixture
def tree(tmp_path):
    """Folders within folders, hidden ones, and links."""
    for name in (
        "a.parquet",
        "b.txt",
        ".c.parquet",
        "x/a.parquet",
        "x/y/a.parquet",
        "x/y/z/b.parquet",
        "x/.h/a.parquet",
        "_temporary/0/part.parquet",
        "x/_tmp.parquet",
        "x/_k=1/__MACOSX/a.parquet",
        "x/_k=1/d.parquet",
        "w1/a.parquet",
        "w2/a[1].parquet",
        "folder.parquet/in.parquet",
    ):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    (tmp_path / "link.parquet").symlink_to(tmp_path / "x" / "a.parquet")
    (tmp_path / "self.parquet").symlink_to("self.parquet")
    return tmp_path


@pytest.mark.parametrize(
    "pattern",
    [
        "*.parquet",
        "**/*.parquet",
        "x/**",
        "**",
        "w?/*.parquet",
        "w[12]/*",
        "*/y/*",
        "**/y/**/b.parquet",
        "**/**/**/*.parquet",
        "x/../w1/*.parquet",
        ".*",
        "x/.*/*.parquet",
        "**/.h/*",
        "no/**/*.parquet",
        "*/*/*",
        "**/folder.parquet/*",
    ],
)
def test_patterns_match_the_files_that_glob_finds(tree, pattern):
    """But those that begin with an underscore, which the standard glob does not know as hidden."""
    matched = {os.path.realpath(path) for path in files_matching(tree / pattern, ListingLimit("input"))}
    found = {
        os.path.realpath(path)
        for path in glob.glob(str(tree / pattern), recursive=True)  # noqa: PTH207
        if Path(path).is_file() and not any(part in path for part in ("_temporary", "_tmp", "__MACOSX"))
    }
    assert matched == found


HIDDEN = {
    # a path as typed -> the files that it names
    ".": {"a", "x/a", "x/y/a", "x/y/z/b", "x/_k=1/d", "w1/a", "w2/a[1]", "folder.parquet/in"},
    "x/*": {"x/a"},
    "x/**/*.parquet": {"x/a", "x/y/a", "x/y/z/b", "x/_k=1/d"},
    "x/_*/*.parquet": {"x/_k=1/d"},
    "x/_*": {"x/_tmp"},
    "_temporary": {"_temporary/0/part"},
    "_temporary/**/*.parquet": {"_temporary/0/part"},
    "x/_k=1/__MACOSX": {"x/_k=1/__MACOSX/a"},
    "x/_tmp.parquet": {"x/_tmp"},
    "x/.h": {"x/.h/a"},
}


@pytest.mark.parametrize("typed", HIDDEN)
def test_hidden_names_are_read_only_where_they_are_typed(tree, typed):
    found = {os.path.relpath(path, tree).removesuffix(".parquet") for path in list_files([str(tree / typed)])}
    assert {"x/a" if name == "link" else name for name in found} == HIDDEN[typed]


def test_a_relative_pattern_stays_relative(tree, monkeypatch):
    monkeypatch.chdir(tree)
    names = sorted(map(str, files_matching(Path("w*/*.parquet"), ListingLimit("input"))))
    assert names == ["w1/a.parquet", "w2/a[1].parquet"]


def test_a_folder_gives_its_files_and_follows_no_link(tree):
    names = {str(path.relative_to(tree)) for path in files_below(tree, (".parquet",), ListingLimit("input"))}
    assert names == {
        "a.parquet",
        "x/a.parquet",
        "x/y/a.parquet",
        "x/y/z/b.parquet",
        "x/_k=1/d.parquet",
        "w1/a.parquet",
        "w2/a[1].parquet",
        "folder.parquet/in.parquet",
        "link.parquet",
    }


def test_too_much_to_look_at_is_refused(tree, monkeypatch):
    for number in range(30):
        (tree / f"many{number}").mkdir()
    assert list_files([str(tree / "**" / "**" / "**" / "*.parquet")])
    monkeypatch.setattr(listing, "MOST_ENTRIES", 20)
    for path in (tree, tree / "**" / "*.parquet"):
        with pytest.raises(InputError, match=r"^--input .* would have to look at more than 20 files and folders"):
            list_files([str(path)])


def test_repeated_stars_look_at_every_folder_once(tmp_path, monkeypatch):
    folder = tmp_path
    for depth in range(12):
        folder = folder / f"d{depth}"
        folder.mkdir()
    (folder / "a.parquet").touch()
    (folder / "loop").symlink_to(tmp_path)
    monkeypatch.setattr(listing, "MOST_ENTRIES", 60)
    assert len(list_files([str(tmp_path.joinpath(*["**"] * 8, "*.parquet"))])) == 1


def test_listing_can_be_stopped(tree):
    pattern = str(tree / "**" / "*.parquet")
    for call in (
        lambda: list_files([pattern], poll=poll_of(lambda: True)),
        lambda: open_corpus(CorpusConfig((pattern,)), should_stop=lambda: True),
        lambda: SharedCorpora().get(CorpusConfig((pattern,)), Work.of(lambda: True)),
    ):
        with pytest.raises(Stopped, match="stopped on request"):
            call()


def test_a_user_that_nobody_knows_is_a_path_that_does_not_exist():
    with pytest.raises(InputError, match=r"--input ~nobody-at-all/x\.parquet does not exist"):
        list_files(["~nobody-at-all/x.parquet"])


def test_a_long_path_is_shortened_in_its_sentence():
    with pytest.raises(InputError) as raised:
        list_files(["x" * 5000 + ".parquet"])
    assert len(str(raised.value)) < 500
