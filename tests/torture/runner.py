"""Cases drawn or in turn, two at a time, with a journal of those that are done."""

from __future__ import annotations

import contextlib
import gc
import json
import multiprocessing
import os
import platform
import random
import subprocess
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from importlib import metadata
from multiprocessing.connection import Connection, wait
from pathlib import Path

from tests.torture.contract import Finding
from tests.torture.isolation import FINDING, Outcome, attempt
from tests.torture.parts import PARTS

ROOT = Path(__file__).parents[2]
WORKERS = 2
CODE = ("datamask", "pages", "app.py", "tests/torture")
"""What a journal's cases were done with: results of other code say nothing about this."""


def commit() -> str:
    """The commit that is checked out, with ``+`` where the code differs from it."""

    def git(*words: str) -> str:
        return subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=False).stdout.strip()

    return git("rev-parse", "--short=12", "HEAD") + ("+" if git("status", "--porcelain", "--", *CODE) else "")


def machine() -> str:
    """The kind of machine: cores, memory, versions that matter."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    packages = ", ".join(f"{name} {metadata.version(name)}" for name in ("pyarrow", "numpy", "torch"))
    return (
        f"{os.cpu_count()} cores, {memory:.0f} GiB, {platform.system()} {platform.machine()}, "
        f"Python {platform.python_version()}, {packages}"
    )


def verdicts(outcomes: Iterable[Outcome]) -> dict[str, str]:
    """Part name -> what cannot be right in how often each outcome came; parts without a verdict, or with a good one,
    are left out."""
    words: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for outcome in outcomes:
        words[outcome.part][outcome.word] += 1
    wrong = {}
    for name, counts in words.items():
        try:
            if PARTS[name].part.verdict is not None:
                PARTS[name].part.verdict(counts)
        except Finding as finding:
            wrong[name] = str(finding)
    return wrong


class Journal:
    """The cases that are done, one line each, so that a kill loses at most those in flight.

    The first line says which code and machine; outcomes of other code are put aside when a journal is opened.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.head, self.outcomes = read_journal(path)
        if self.head.get("commit") != commit():
            if self.outcomes:
                path.replace(path.with_suffix(".old.jsonl"))
            self.head, self.outcomes = {"commit": commit(), "machine": machine(), "begun": time.time()}, []
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(json.dumps(self.head) + "\n", encoding="utf-8")

    @property
    def done(self) -> set[tuple[str, int]]:
        return {(outcome.part, outcome.number) for outcome in self.outcomes}

    def add(self, outcome: Outcome) -> None:
        """Write down one case, at once."""
        self.outcomes.append(outcome)
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(outcome.to_dict()) + "\n")


def read_journal(path: Path) -> tuple[dict, list[Outcome]]:
    """The head and the outcomes of a journal; a torn last line is no line."""
    head, outcomes = {}, []
    if path.is_file():
        for place, line in enumerate(path.read_text(encoding="utf-8").splitlines()):
            with contextlib.suppress(ValueError):
                record = json.loads(line)
                if place:
                    outcomes.append(Outcome(**record))
                else:
                    head = record
    return head, outcomes


def orders(names: Iterable[str], seed: int, skip: set[tuple[str, int]] = frozenset()) -> dict[str, Iterator[int]]:
    """Every case of each part once, in an order that follows from the seed alone, less those in `skip`."""

    def order(name: str) -> Iterator[int]:
        numbers = list(range(PARTS[name].part.size))
        random.Random(f"{seed} {name}").shuffle(numbers)
        return (number for number in numbers if (name, number) not in skip)

    return {name: order(name) for name in names}


def run(
    cases: Mapping[str, Iterator[int]],
    *,
    seconds: float = float("inf"),
    workers: int = WORKERS,
    done: Callable[[Outcome], None] = lambda outcome: None,
) -> list[Outcome]:
    """Do cases until there are none or the time is up; each part gets its weight's share of the time.

    Args:
        cases: part name -> the numbers to do, in order.
        seconds: no case begins later than this.
        done: told of every case as it ends.
    """
    waiting, spent = dict(cases), dict.fromkeys(cases, 0.0)
    deadline, outcomes = time.monotonic() + seconds, []

    def following() -> tuple[str, int] | None:
        while waiting and time.monotonic() < deadline:
            name = min(waiting, key=lambda name: spent[name] / PARTS[name].part.weight)
            for number in waiting[name]:
                # until a case has ended nobody knows what it costs; two parts must not both look free for ever
                spent[name] += 0.01
                return name, number
            del waiting[name]
        return None

    team = [_Worker() for _ in range(workers)]
    try:
        busy = [worker for worker in team if worker.give(following())]
        while busy:
            ready = wait([worker.link for worker in busy], timeout=1.0)
            for worker in [worker for worker in busy if worker.link in ready]:
                outcome = worker.take()
                outcomes.append(outcome)
                spent[outcome.part] += outcome.seconds
                done(outcome)
                if not worker.give(following()):
                    busy.remove(worker)
    finally:
        for worker in team:
            worker.end()
    return outcomes


class _Worker:
    """A process that stays warm and forks a child per case; made anew if it dies itself."""

    def __init__(self) -> None:
        self.case: tuple[str, int] | None = None
        self._start()

    def _start(self) -> None:
        self.link, other = multiprocessing.Pipe()
        self._process = multiprocessing.get_context("spawn").Process(target=_serve, args=(other,), daemon=False)
        with _few_threads():
            self._process.start()
        other.close()

    def give(self, case: tuple[str, int] | None) -> bool:
        self.case = case
        if case is not None:
            self.link.send(case)
        return case is not None

    def take(self) -> Outcome:
        try:
            return self.link.recv()
        except EOFError:
            self._process.join()
            code = self._process.exitcode
            self._start()
            return Outcome(*self.case, FINDING, 0.0, f"the worker itself ended with exit code {code}")

    def end(self) -> None:
        self.link.close()
        self._process.join(5)
        if self._process.is_alive():
            self._process.kill()
            self._process.join()


@contextlib.contextmanager
def _few_threads() -> Iterator[None]:
    """Libraries that are loaded under this use one thread: two workers share two cores, and a case is a fork."""
    before = dict(os.environ)
    os.environ.update({"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "NUMBA_NUM_THREADS": "1"})
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


def _serve(link: Connection) -> None:
    warm: set[str] = set()
    with contextlib.suppress(EOFError, BrokenPipeError, KeyboardInterrupt):
        while True:
            name, number = link.recv()
            entry = PARTS[name]
            if name not in warm:
                entry.warm()
                # what is alive now stays: a collection in a child would copy every page it looks at
                gc.collect()
                gc.freeze()
                warm.add(name)
            link.send(attempt(entry, number))
