"""Commands that write a file or folder: killed at any point, and two at once."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

from datamask.cli import main
from datamask.corpus import open_corpus
from datamask.errors import StoreError
from datamask.runs.store import RunStore
from datamask.work.locks import claimed
from tests.commands import table
from tests.making.run_folders import ROOT, names, wait_for
from tests.making.runs import finish_run, write_shard

HANGING = """
import importlib, sys, time
from pathlib import Path
from datamask.cli import main

module, name, calls, marker = sys.argv[1:5]
*above, last = name.split(".")
owner = importlib.import_module(module)
for part in above:
    owner = getattr(owner, part)
real, left = getattr(owner, last), iter(range(int(calls)))
def hanging(*given, **named):
    if next(left, None) is None:
        Path(marker).touch()
        time.sleep(600)
    return real(*given, **named)
setattr(owner, last, hanging)
sys.exit(main(sys.argv[5:]))
"""


def started(point: tuple[str, str, int], marker: Path, words: list[str]) -> subprocess.Popen:
    """A command that hangs in a function once it was called so often; here it hangs."""
    command = [sys.executable, "-c", HANGING, *map(str, point), str(marker), *words]
    child = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    try:
        wait_for(lambda: marker.exists() or child.poll() is not None)
        assert child.poll() is None, child.stderr.read()
    except BaseException:
        child.kill()
        raise
    return child


def killed(child: subprocess.Popen) -> None:
    child.send_signal(signal.SIGKILL)
    child.communicate()


def files_of(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize(
    "point",
    [
        ("datamask.corpus.neighbors", "build_neighbors", 0),
        ("datamask.runs.exports", "conform", 1),
        ("pathlib", "Path.replace", 1),
    ],
    ids=["comparing", "writing", "renaming"],
)
def test_copies_that_are_killed_leave_nothing_half_written(tmp_path, point):
    """The second file is renamed after the graph was kept."""
    shards, out = tmp_path / "shards", tmp_path / "out"
    for folder in (shards, out):
        folder.mkdir()
    for place in range(3):
        pq.write_table(table(240, place), shards / f"{place}.parquet")

    def words(out: Path, runs: str) -> list[str]:
        return ["copies", str(shards), "--make_ids", "--cosine", "0.6", "--remove", str(out / "kept.parquet"),
                "--runs_dir", str(tmp_path / runs)]  # fmt: skip

    assert main(words(tmp_path, "other")) == 0
    killed(started(point, tmp_path / "marker", words(out, "runs")))
    assert not (out / "kept.parquet").exists() and len(names(out)) == (point[1] != "build_neighbors")
    assert main(words(out, "runs")) == 0
    assert names(out) == ["kept.parquet"]
    assert (out / "kept.parquet").read_bytes() == (tmp_path / "kept.parquet").read_bytes()


@pytest.fixture
def run_words(tmp_path):
    """The words of a card of a run, into a folder."""
    config = write_shard(tmp_path / "shard.parquet")
    corpus, store = open_corpus(config), RunStore(tmp_path / "runs")
    run = finish_run(store, corpus, config, corpus.quality, objective="facility", lamb=0.7)
    return lambda folder: ["runs", "export", run.id, "--card", str(folder), "--runs_dir", str(store.root)]


@pytest.mark.parametrize(
    "point",
    [
        ("datamask.analyses.report.dataset_card", "_picture", 0),
        ("datamask.analyses.report.dataset_card", "write_text", 1),
        ("pathlib", "Path.rename", 0),
    ],
    ids=["drawing", "writing", "renaming"],
)
def test_a_card_that_is_killed_is_not_there_and_comes_whole_the_second_time(tmp_path, run_words, point):
    out = tmp_path / "out"
    out.mkdir()
    assert main(run_words(tmp_path / "whole")) == 0
    killed(started(point, tmp_path / "marker", run_words(out / "card")))
    assert not (out / "card").exists() and len(names(out)) == 2  # a lock and a part
    assert main(run_words(out / "card")) == 0
    assert names(out) == ["card"] and files_of(out / "card") == files_of(tmp_path / "whole")


def test_a_second_card_into_one_folder_is_refused_before_it_writes(tmp_path, run_words, capsys):
    child = started(
        ("datamask.analyses.report.dataset_card", "_picture", 0), tmp_path / "marker", run_words(tmp_path / "card")
    )
    try:
        before = names(tmp_path)
        assert main(run_words(tmp_path / "card")) == 2
        assert f"another process writes {tmp_path / 'card'} at the moment" in capsys.readouterr().err
        assert names(tmp_path) == before and not (tmp_path / "card").exists()
    finally:
        killed(child)


@pytest.mark.parametrize("output", ["prepared", "prepared.parquet"])
def test_a_second_prepare_of_one_output_is_refused_before_it_writes(tmp_path, capsys, output):
    texts = [f"word{i % 7} other{i % 5} third{i % 3}" for i in range(200)]
    (tmp_path / "in.jsonl").write_text("\n".join(json.dumps({"id": i, "text": text}) for i, text in enumerate(texts)))
    words = ["prepare", str(tmp_path / "in.jsonl"), "--output", str(tmp_path / output)]
    child = started(("datamask.corpus.preparation", "survey", 0), tmp_path / "marker", words)
    try:
        before = names(tmp_path)
        assert main(words) == 2
        assert f"another process writes {tmp_path / output} at the moment" in capsys.readouterr().err
        assert names(tmp_path) == before
    finally:
        killed(child)
    assert main(words) == 0
    assert names(tmp_path) == sorted(["in.jsonl", "marker", output])
    assert ds.dataset(tmp_path / output).count_rows() == 200


def test_one_of_many_has_a_place_and_the_file_of_the_lock_goes(tmp_path):
    """Threads that come and go: a lock on a file that its last holder removed is none."""
    inside, most, done = [], [], []

    def come_and_go() -> None:
        for _ in range(50):
            try:
                with claimed(tmp_path / "out"):
                    inside.append(1)
                    most.append(len(inside))
                    inside.pop()
                    done.append(1)
            except StoreError:
                pass

    threads = [threading.Thread(target=come_and_go) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert set(most) == {1} and done and names(tmp_path) == []
