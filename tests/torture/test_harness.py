"""The harness itself: what a case may do to it, how a journal goes on, that faults strike where they should."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
import time
import tracemalloc
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from datamask import CorpusConfig, open_corpus
from datamask.errors import InputError
from tests.torture import faults, materials, reading, runner
from tests.torture.__main__ import Progress
from tests.torture.contract import Finding, Part
from tests.torture.injection import AFTER, BEFORE, Injection
from tests.torture.isolation import FINDING, Outcome, attempt
from tests.torture.judging import ACCEPTED, REFUSED, attempted, check_sentence
from tests.torture.operations import Operation
from tests.torture.parts import PARTS, Entry
from tests.torture.reading import check_same
from tests.torture.report import report
from tests.torture.runner import Journal, orders

ROOT = Path(__file__).resolve().parents[2]


def _finds(number: int, folder: Path) -> str:
    raise Finding("a promise broke")


def _eats(number: int, folder: Path) -> str:
    data = [bytes([1]) * (1 << 20) for _ in range(600)]
    time.sleep(60)
    return str(len(data))


def _leaves_a_child(number: int, folder: Path) -> str:
    if os.fork() == 0:
        time.sleep(600)
        os._exit(0)
    return "left one"


@pytest.mark.parametrize(
    "do, said",
    [
        (_finds, "a promise broke"),
        (_eats, "takes more than 0.25 GiB of memory"),
        (lambda number, folder: time.sleep(60), "hangs: more than 0 s, and more than 2 s when tried again"),
        (lambda number, folder: os.kill(os.getpid(), signal.SIGSEGV), "crash: ended by SIGSEGV"),
        (lambda number, folder: os._exit(7), "exit code 7"),
        (lambda number, folder: [][1], "IndexError came out of the case"),
    ],
)
def test_whatever_a_case_does_is_a_finding(do, said):
    entry = Entry(Part("x", "x", 1, do, 1.0, str), seconds=0.4 if "hangs" in said else 60.0, memory=256 << 20)
    outcome = attempt(entry, 0)
    assert outcome.word == FINDING and said in outcome.finding


def test_a_case_that_is_late_once_is_done_again_from_the_start(tmp_path):
    before = tmp_path / "tried before"

    def do(number: int, folder: Path) -> str:
        tried, left = before.exists(), list(folder.iterdir())
        before.touch()
        (folder / "half done").touch()
        if not tried:
            time.sleep(600)
        return f"in time, {len(left)} files left"

    outcome = attempt(Entry(Part("x", "x", 1, do, 1.0, str), seconds=2.0), 0)
    assert (outcome.word, outcome.finding) == ("in time, 0 files left", "") and outcome.seconds > 2


def test_a_case_ends_with_what_it_started_and_its_folder():
    seen = []

    def do(number: int, folder: Path) -> str:
        (folder / "locked").mkdir()
        (folder / "locked").chmod(0)
        return f"{folder} {_leaves_a_child(number, folder)}"

    start = time.monotonic()
    outcome = attempt(Entry(Part("x", "x", 1, do, 1.0, str)), 0)
    seen.append(outcome.word)
    assert outcome.finding == "" and outcome.word.endswith("left one") and time.monotonic() - start < 60
    assert not Path(outcome.word.split()[0]).exists()


def test_an_order_follows_from_its_seed_and_has_every_case_once():
    name = "inputs"
    one, again, other = (list(orders([name], seed)[name]) for seed in (1, 1, 2))
    assert one == again != other
    assert sorted(one) == list(range(PARTS[name].part.size))
    assert list(orders([name], 1, {(name, one[0])})[name]) == one[1:]


def test_a_journal_goes_on_where_it_was_killed_and_forgets_other_code(tmp_path, monkeypatch):
    path = tmp_path / "deep" / "journal.jsonl"
    journal = Journal(path)
    journal.add(Outcome("inputs", 5, "accepted", 0.1))
    with path.open("a") as file:
        file.write('{"part": "inputs", "numb')
    assert Journal(path).done == {("inputs", 5)}
    monkeypatch.setattr(runner, "commit", lambda: "another")
    assert Journal(path).done == set()
    assert path.with_suffix(".old.jsonl").is_file()


def test_the_report_counts_and_names_what_was_found():
    outcomes = [
        Outcome("inputs", 0, "accepted", 1.0),
        Outcome("inputs", 1, FINDING, 1.0, "a <b> broke | at 12"),
        Outcome("inputs", 2, FINDING, 1.0, "a <b> broke | at 13"),
    ]
    text = report({"commit": "abc", "machine": "two cores"}, outcomes)
    assert "commit abc" in text and "two cores" in text and "- Findings: 2" in text
    assert "- 2 times (inputs:1, inputs:2): a &lt;b> broke \\| at 12" in text


def test_a_line_a_minute_says_how_far_it_is(capsys):
    seconds = iter([0.0, 59.0, 60.0, 61.0, 200.0, 201.0, 239.0, 240.0])
    progress = Progress(lambda: next(seconds))
    for _ in range(4):
        progress(Outcome("inputs", 0, "refused", 0.1))
    progress(Outcome("inputs", 1, FINDING, 0.1, "a wrong answer"))
    for _ in range(2):
        progress(Outcome("inputs", 2, "refused", 0.1))
    first, second, finding, last = capsys.readouterr().out.splitlines()
    assert first == "1 min: 2 done, nothing found so far" and second == "3 min: 4 done, nothing found so far"
    assert finding.startswith("FINDING inputs:1 (") and finding.endswith("): a wrong answer")
    assert last == "4 min: 7 done, 1 found so far"


def test_a_part_judges_its_outcomes_as_a_whole(monkeypatch):
    def verdict(words) -> None:
        if words["refused"] > words["accepted"]:
            raise Finding("nearly all refused")

    part = Part("x", "x", 9, _finds, 1.0, str, verdict)
    monkeypatch.setitem(PARTS, "x", Entry(part))
    outcomes = [Outcome("x", number, "refused", 0.1) for number in range(3)]
    assert runner.verdicts(outcomes) == {"x": "nearly all refused"}
    assert runner.verdicts([*outcomes, *(Outcome("x", number, "accepted", 0.1) for number in range(3, 9))]) == {}


def test_features_are_compared_without_an_object_for_each_number(tmp_path, monkeypatch):
    dim = 20_000
    vectors = np.random.default_rng(0).normal(size=(materials.ROWS, dim)).astype(np.float32)
    column = pa.FixedSizeListArray.from_arrays(pa.array(vectors.ravel()), dim)
    pq.write_table(materials.table(feature_arr=column), tmp_path / "a.parquet")
    corpus = open_corpus(CorpusConfig((str(tmp_path),)))
    monkeypatch.setattr(reading, "BLOCK", 1 << 17)
    tracemalloc.start()
    check_same(corpus)
    taken = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert taken < vectors.size * 8  # the numbers alone, without any object for them
    writable = corpus.features.copy()
    writable[3, 17] += 1e-3
    with pytest.raises(Finding, match=r"features that differ by 0\.001"):
        check_same(replace(corpus, features=writable))
    writable[3] = np.roll(writable[4], 1)
    with pytest.raises(Finding, match="features that differ"):
        check_same(replace(corpus, features=writable))


# in a process of its own: what other tests began in this one may still be at work in children
LISTING = """
import subprocess
import sys
import threading

from tests.torture import faults

ended = threading.Event()

def begin_and_end():
    while not ended.is_set():
        threading.Thread(target=lambda: None).start()

assert faults._children() == []
busy = threading.Thread(target=begin_and_end)
busy.start()
child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
try:
    for _ in range(500):
        assert faults._children() == [child.pid]
finally:
    ended.set()
    busy.join()
    child.kill()
    child.wait()
"""


def test_children_are_listed_while_threads_end():
    listing = subprocess.run([sys.executable, "-c", LISTING], cwd=ROOT, capture_output=True, text=True)
    assert listing.returncode == 0, listing.stderr


def test_every_case_describes_itself():
    for entry in PARTS.values():
        for number in {0, entry.part.size // 2, entry.part.size - 1}:
            assert entry.part.describe(number)
    assert PARTS["inputs"].part.size >= 20_000


def test_a_refusal_is_a_sentence():
    def refuse(text: str) -> str:
        def work():
            raise InputError(text)

        return attempted(work, "trying")[0]

    assert refuse("a.parquet is empty") == REFUSED
    assert attempted(lambda: 1, "trying") == (ACCEPTED, 1)
    # errors make themselves printable and end; the command line's own words pass the judge alone
    for text in ("x" * 700, "\udcff"):
        assert refuse(text) == REFUSED
    for text in ("", "x" * 700, "\udcff", "Traceback (most recent call last)"):
        with pytest.raises(Finding):
            check_sentence(text, "trying")
    with pytest.raises(Finding, match="traceback"):
        attempted(lambda: {}["x"], "trying")
    with pytest.raises(Finding):
        check_sentence("something is wrong", "trying", naming="a.parquet")


@pytest.mark.parametrize("when", [BEFORE, AFTER])
def test_each_file_operation_can_be_struck(tmp_path, when):
    def work() -> None:
        path = tmp_path / "a"
        path.write_bytes(b"x")
        path.replace(tmp_path / "b")
        (tmp_path / "b").unlink()

    def strike(at: int | None) -> tuple[int, str]:
        """Done in a child, since the replaced operations stay."""
        answer, reply = os.pipe()
        if os.fork() == 0:
            injection = Injection(tmp_path, at, "EIO", when)
            injection.install()
            try:
                work()
                word = "done"
            except OSError as error:
                word = errno.errorcode[error.errno]
            injection.at = None
            os.write(reply, f"{injection.count} {word} {','.join(injection.log)}".encode())
            os._exit(0)
        os.close(reply)
        with os.fdopen(answer) as stream:
            count, word, log = stream.read().split(" ", 2)
        os.wait()
        for left in tmp_path.iterdir():
            left.unlink()
        assert log.startswith("open to write,write,replace,unlink"[: len(log)])
        return int(count), word

    assert strike(None) == (4, "done")
    for at in range(4):
        assert strike(at)[1] == "EIO"


@pytest.mark.parametrize("kind, when", [*faults.WAYS, faults.SWAP])
def test_an_operation_that_does_more_than_is_tried_is_a_finding_at_every_place(tmp_path, monkeypatch, kind, when):
    operation = Operation("write", 3, lambda folder: None, lambda folder: 0, lambda folder: None, lambda folder: "done")
    monkeypatch.setattr(faults, "_count", {"write": 4}.get)
    for place in range(operation.most):
        with pytest.raises(Finding, match="write does 4 file operations, of which 3 are tried; raise its `most`"):
            faults._struck(operation, kind, when, place, tmp_path)
    monkeypatch.setattr(faults, "_count", {"write": 2}.get)
    assert faults._struck(operation, kind, when, 2, tmp_path) == "past the end"
