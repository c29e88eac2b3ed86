"""Doors: only files under the roots, and uploads that can do no harm."""

import contextlib
import hashlib
import io
import os
import threading
import time

import pytest

from datamask.config import CorpusConfig
from datamask.dashboard.data import inputs
from datamask.dashboard.data.inputs import (
    Limits,
    check_roots,
    check_uploads,
    confined_config,
    idle_uploads,
    keep_uploads,
    remove_uploads,
)
from datamask.dashboard.data.openings import Openings
from datamask.errors import InputError, StoreError
from datamask.files import OutsideRoots, replacing
from tests.making.runs import write_shard


@pytest.fixture
def inside(tmp_path):
    folder = tmp_path / "inside"
    folder.mkdir()
    write_shard(folder / "a.parquet", 20)
    return folder


@pytest.fixture
def outside(tmp_path):
    folder = tmp_path / "outside"
    folder.mkdir()
    write_shard(folder / "secret.parquet", 20)
    return folder


@pytest.mark.parametrize(
    "spelling",
    ["{inside}", "{inside}/a.parquet", "{inside}/*.parquet", "{inside}/../inside/a.parquet", "{inside}/**/*.parquet"],
)
def test_files_folders_and_globs_under_a_root_pass(inside, spelling):
    config = confined_config(CorpusConfig((spelling.format(inside=inside),)), [inside])
    assert all(path.startswith(str(inside.parent)) for path in config.inputs)


@pytest.mark.parametrize(
    "spelling",
    [
        "{outside}/{name}",
        "{outside}/{name}/*.parquet",
        "{outside}/{name}*",
        "{outside}/[{name}]",
        "{outside}/*{name}",
        "{inside}/../outside/{name}",
        "{inside}/*/../../outside/{name}",
        "{inside}/**/../../outside/{name}*",
        "{inside}/../*/{name}",
        "/etc/{name}",
        "~root/../etc/{name}",
    ],
)
def test_a_refusal_does_not_tell_what_lies_outside(inside, outside, spelling):
    """Whatever lies there, a file, a folder, a pattern's own letters, a link to itself or nothing: one sentence."""
    (inside / "sub").mkdir()
    (outside / "there").mkdir()
    (outside / "[there]").mkdir()
    (outside / "*there").write_text("x")
    (outside / "there*").write_text("x")
    (outside / "loops").symlink_to(outside / "loops")
    (outside / "there" / "a.parquet").write_text("x")
    told = set()
    for name in ("there", "gone", "secret.parquet", "loops", "a" * 300):
        path = spelling.format(inside=inside, outside=outside, name=name)
        with pytest.raises(OutsideRoots) as refusal:
            confined_config(CorpusConfig((path,)), [inside])
        told.add(str(refusal.value).replace(path[:200], "PATH"))
    assert len(told) == 1 and told.pop().startswith("PATH is outside the folders")


def test_a_link_out_is_named_and_what_it_leads_to_is_not(inside, outside):
    (inside / "folder").symlink_to(outside)
    for path in (inside / "*" / "*.parquet", inside / "folder" / "secret.parquet"):
        with pytest.raises(OutsideRoots, match="outside the folders") as refusal:
            confined_config(CorpusConfig((str(path),)), [inside])
    with pytest.raises(OutsideRoots) as refusal:
        confined_config(CorpusConfig((str(inside / "f*" / "s*.parquet"),)), [inside])
    assert str(inside / "folder") in str(refusal.value) and "secret" not in str(refusal.value)


def test_links_out_are_refused_wherever_they_hide(inside, outside):
    (inside / "link.parquet").symlink_to(outside / "secret.parquet")
    (inside / "folder").symlink_to(outside)
    for path in (inside, inside / "link.parquet", inside / "folder", inside / "*.parquet"):
        with pytest.raises(InputError, match="outside the folders"):
            confined_config(CorpusConfig((str(path),)), [inside])


def test_side_shards_pass_the_same_door(inside, outside):
    for name in ("features", "scores"):
        with pytest.raises(InputError, match="outside the folders"):
            confined_config(CorpusConfig((str(inside),), **{name: (str(outside / "secret.parquet"),)}), [inside])


def test_without_roots_nothing_is_read(inside):
    with pytest.raises(InputError, match="DATAMASK_ROOTS"):
        confined_config(CorpusConfig((str(inside),)), [])


def keep_upload(name, data, *where):
    return keep_uploads([(name, data)], *where)[0]


def test_an_upload_is_kept_once_under_its_content(tmp_path):
    one = keep_upload("a.parquet", io.BytesIO(b"12345"), tmp_path)
    again = keep_upload("a.parquet", io.BytesIO(b"12345"), tmp_path)
    other = keep_upload("a.parquet", io.BytesIO(b"54321"), tmp_path)
    assert one == again and one != other and one.read_bytes() == b"12345" and other.read_bytes() == b"54321"


@pytest.mark.parametrize(
    "name",
    [
        "../../etc/cron.d/x",
        "..",
        "/abs/olute.parquet",
        "a\x00b.parquet",
        "x" * 500,
        "",
        "<b>.parquet",
        "-rf.parquet",
        ".hidden",
    ],
)
def test_the_name_of_an_upload_is_no_path(tmp_path, name):
    kept = keep_upload(name, io.BytesIO(b"data"), tmp_path)
    assert tmp_path / ".uploads" in kept.parents and kept.suffix == ".parquet" and len(kept.name) < 80
    assert not kept.name.startswith((".", "-"))


def test_a_runs_folder_that_is_a_file_is_said(tmp_path):
    (tmp_path / "runs").write_text("x")
    with pytest.raises(StoreError):
        keep_upload("a.parquet", io.BytesIO(b"data"), tmp_path / "runs")


@pytest.mark.parametrize(
    ("name", "kept_as"),
    [
        ("My data.JSONL.gz", "My-data.jsonl.gz"),
        ("a.csv", "a.csv"),
        ("b.ndjson", "b.ndjson"),
        ("c.v2.parquet", "c-v2.parquet"),
        ("no-kind", "no-kind.parquet"),
        ("../x.csv", "x.csv"),
    ],
)
def test_an_upload_keeps_the_ending_that_tells_its_format(tmp_path, monkeypatch, name, kept_as):
    kept = keep_upload(name, io.BytesIO(b'{"id": 1}'), tmp_path)
    assert kept.name == kept_as
    monkeypatch.setattr("datamask.dashboard.data.inputs.IDLE_SECONDS", -1.0)
    assert idle_uploads(tmp_path, ()) == {kept: 9}
    with pytest.raises(InputError, match="no room for 1 upload of 9 bytes"):
        keep_upload(
            "other.csv", io.BytesIO(b"id\nsecond"), tmp_path, lambda: [CorpusConfig((str(kept),))], Limits(files=1)
        )
    assert kept.is_file()


def test_only_old_uploads_that_nothing_reads_are_idle_and_removed(tmp_path, monkeypatch):
    old, young, read = (
        keep_upload(f"{name}.parquet", io.BytesIO(name.encode()), tmp_path) for name in ("old", "young", "read")
    )
    for file in (old, read):
        os.utime(file, (1e9, 1e9))
    assert idle_uploads(tmp_path, [CorpusConfig(("x.parquet",), scores=(str(read),))]) == {old: 3}
    remove_uploads([old, old])
    assert not old.parent.exists() and young.is_file() and read.is_file()
    assert list(idle_uploads(tmp_path, [])) == [read]
    # one content under two names shares a folder, and only one of the names is read; however its path was written
    twice = keep_upload("twice.parquet", io.BytesIO(b"read"), tmp_path)
    os.utime(twice, (1e9, 1e9))
    monkeypatch.chdir(tmp_path)
    used = [CorpusConfig((str(read.relative_to(tmp_path)),))]
    assert list(idle_uploads(tmp_path, used)) == [twice] and twice.parent == read.parent
    remove_uploads([twice])
    assert read.is_file() and not twice.exists()


def upload(tmp_path, number, age=0.0, limits=None, used=()):
    """Upload a file of ten bytes that was sent so many hours ago."""
    path = keep_upload(f"{number}.parquet", io.BytesIO(b"%010d" % number), tmp_path, lambda: used, limits)
    os.utime(path, (time.time() - 3600 * age,) * 2)
    return path


def test_an_upload_that_is_sent_again_is_young_and_the_same_file(tmp_path):
    path = upload(tmp_path, 1, age=9)
    before = path.stat()
    assert list(idle_uploads(tmp_path, ())) == [path]
    assert keep_upload("1.parquet", io.BytesIO(b"0000000001"), tmp_path) == path
    assert not idle_uploads(tmp_path, ())
    after = path.stat()  # a run that reads it sees nothing written anew
    assert (after.st_mtime_ns, after.st_ctime_ns, after.st_ino) == (
        before.st_mtime_ns,
        before.st_ctime_ns,
        before.st_ino,
    )
    other = upload(tmp_path, 2, age=2)
    (again,) = path.parent.glob(".*")
    os.utime(again, (time.time() - 3 * 3600,) * 2)
    assert list(idle_uploads(tmp_path, ())) == sorted([path, other])
    upload(tmp_path, 3, limits=Limits(files=2))  # the one that was sent 3 hours ago goes, not that of 2 hours
    assert other.is_file() and not path.exists() and not path.parent.exists()


def test_an_upload_is_named_by_its_whole_digest(tmp_path):
    path = upload(tmp_path, 1)
    assert path.parent.name == hashlib.sha256(b"0000000001").hexdigest()


@pytest.mark.parametrize("other", [b"other bytes", b"", b"0000000001 and more"])
def test_what_lies_in_the_place_of_an_upload_is_not_believed(tmp_path, other):
    path = upload(tmp_path, 1)
    path.write_bytes(other)
    assert upload(tmp_path, 1) == path and path.read_bytes() == b"0000000001"


def test_an_upload_that_was_altered_is_not_opened(tmp_path):
    path = tmp_path / ".uploads" / hashlib.sha256(b"good").hexdigest() / "a.parquet"
    path.parent.mkdir(parents=True)
    path.write_bytes(b"good")
    config = CorpusConfig((str(path),))
    check_uploads(config, tmp_path)
    path.write_bytes(b"bad")
    with pytest.raises(InputError, match="has changed on the server"):
        check_uploads(config, tmp_path)
    opening = Openings(tmp_path).start(config, "altered")
    opening.wait(120)
    assert opening.job.state == "failed" and "has changed on the server" in opening.job.error


@pytest.mark.parametrize("limits", [Limits(files=3), Limits(bytes=39)])
def test_uploads_that_nothing_reads_make_room_the_oldest_first(tmp_path, limits):
    read, oldest, old = (upload(tmp_path, number, age) for number, age in ((1, 9), (2, 8), (3, 7)))
    used = [CorpusConfig((str(read),))]
    new = upload(tmp_path, 4, 0, limits, used)
    assert read.exists() and old.exists() and new.exists() and not oldest.exists()


def test_an_upload_without_room_is_refused_and_nothing_is_removed(tmp_path):
    paths = [upload(tmp_path, number, age) for number, age in ((1, 9), (2, 8), (3, 0))]
    used = [CorpusConfig((str(paths[0]),))]
    with pytest.raises(InputError, match="no room"):
        upload(tmp_path, 4, 0, Limits(files=2), used)
    assert all(path.exists() for path in paths)
    assert upload(tmp_path, 3, 0, Limits(files=2), used) == paths[2], "what is there already needs no room"


def test_of_more_files_than_fit_none_is_kept(tmp_path):
    """Else the first of them would fill the room for an hour, and nobody could upload."""
    mine = [(f"{number}.parquet", io.BytesIO(b"%d" % number)) for number in range(4)]
    with pytest.raises(
        InputError, match=r"no room for 4 uploads of 4 bytes: the server stores at most 3 .*, and 0 of 0 bytes are"
    ):
        keep_uploads(mine, tmp_path, limits=Limits(files=3))
    assert not list((tmp_path / ".uploads").glob("*/*"))
    kept = keep_uploads([*mine[:3], mine[0]], tmp_path, limits=Limits(files=3))
    assert kept[3] == kept[0] and [path.read_bytes() for path in kept[:3]] == [b"0", b"1", b"2"]
    with pytest.raises(InputError, match="and 3 of 3 bytes are in use or younger than an hour"):
        keep_uploads([*mine], tmp_path, limits=Limits(files=3))


def test_of_two_uploads_at_once_only_one_takes_the_last_room(tmp_path, monkeypatch):
    writing, both = threading.Event(), threading.Event()

    @contextlib.contextmanager
    def slow(target):
        if writing.is_set():
            both.set()
        writing.set()
        both.wait(1)  # long enough for the other to come as far, if nothing keeps it
        with replacing(target) as part:
            yield part

    def keep(number):
        try:
            kept.append(upload(tmp_path, number, limits=Limits(files=1)))
        except InputError as error:
            refused.append(str(error))

    kept, refused = [], []
    monkeypatch.setattr(inputs, "replacing", slow)
    first, second = (threading.Thread(target=keep, args=(number,)) for number in (1, 2))
    first.start()
    assert writing.wait(120)
    second.start()
    first.join(120), second.join(120)
    assert list((tmp_path / ".uploads").glob("*/*.parquet")) == kept and len(kept) == 1
    assert "no room" in refused[0]


def test_a_corpus_somebody_else_named_is_refused_without_its_path(inside, outside):
    check_roots(CorpusConfig((str(inside), str(inside / "missing.parquet"))), [inside])
    (inside / "link.parquet").symlink_to(outside / "secret.parquet")
    for path in (outside, outside / "none.parquet", inside / "link.parquet", inside, "~nobody-of-that-name", "a\x00b"):
        with pytest.raises(InputError, match="outside the folders") as refusal:
            check_roots(CorpusConfig((str(path),)), [inside])
        assert str(outside) not in str(refusal.value) and "nobody" not in str(refusal.value)
