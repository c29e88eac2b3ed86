"""The dashboard under load: visitors come, reload and vanish while runs are queued; nothing grows, Stop is heard."""

from __future__ import annotations

import contextlib
import itertools
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from datamask.config import RunConfig, SelectionConfig
from datamask.corpus import open_corpus
from datamask.dashboard.data.openings import opening_key
from datamask.runs.store import Run, RunStore
from tests.e2e.serving import serving
from tests.e2e.websocket_client import Visitor
from tests.making.runs import finish_run, write_shard
from tests.torture.contract import Finding, Part

VISITORS, QUEUED = 6, 3
WARM_UP, RELOADS = 40, 200
GROWTH = {"megabytes": 150, "threads": 12, "descriptors": 24}
"""What a server may have more of after the reloads than after the warm-up; a leak of one a reload is 200."""

SECONDS = 150.0
"""A slow machine reloads less often, instead of taking an hour."""

SETTLED_SECONDS, BETWEEN_SECONDS = 300.0, 5.0
"""Until then what visitors left must be gone: pings give up after less than one minute, sessions after two. The server
keeps up to 128 sessions of visitors who are gone, an event loop with three descriptors each, and lets go of those that
are too old whenever another visitor leaves: so one comes and goes meanwhile, as often."""

STOP_SECONDS = 10.0
"""A stop takes a second; ten times that is a hang."""

PAGES = ("", "frontier", "runs", "compare", "evidence", "data", "export")
CASES = tuple(itertools.product(("leaves", "vanishes"), ("one page", "all pages"), ("reinforce", "counterfactual")))


def measured(pid: int) -> dict[str, int]:
    """Memory, threads and file descriptors of a process."""
    lines = dict(line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines() if ":" in line)
    return {
        "megabytes": int(lines["VmRSS"].split()[0]) // 1024,
        "threads": int(lines["Threads"]),
        "descriptors": sum(1 for _ in Path(f"/proc/{pid}/fd").iterdir()),
    }


def settled(pid: int, before: dict[str, int], come_and_go: Callable[[], None]) -> dict[str, int]:
    """What a server has once it has noticed who is gone: one that vanished without a word is waited for by pings, and
    its session is kept two minutes for it to come back."""
    deadline = time.monotonic() + SETTLED_SECONDS
    while True:
        now = measured(pid)
        if all(now[what] - before[what] <= most for what, most in GROWTH.items()) or time.monotonic() > deadline:
            return now
        time.sleep(BETWEEN_SECONDS)
        come_and_go()


def run(number: int, folder: Path) -> str:
    """One way of visiting, beside three runs."""
    ending, which, estimator = CASES[number]
    config = write_shard(folder / "shard.parquet")
    store, corpus = RunStore(folder / "runs"), open_corpus(config)
    done = finish_run(store, corpus, config, corpus.quality, name="done")
    settings = SelectionConfig.from_options(
        objective="pairwise", estimator=estimator, n_epochs=10_000_000, device="cpu"
    )
    with serving(folder, DATAMASK_ROOTS=str(folder)) as (address, process):
        queued = [store.create(RunConfig(config, settings, name=f"queued {place}")) for place in range(QUEUED)]
        query = {"corpus": opening_key(config), "run": done.id}
        # the corpus is opened by the run that names it
        with Visitor(address) as visitor:
            visitor.draw("", {"run": done.id})
        started(address, queued, query)
        pages = PAGES if which == "all pages" else ("",)
        with staying(address, query):
            visit(address, WARM_UP, pages, query, ending)
            before = measured(process.pid)
            visit(address, RELOADS, pages, query, ending)
            after = settled(process.pid, before, lambda: visit(address, 1, pages, query, "leaves"))
        for what, most in GROWTH.items():
            if after[what] - before[what] > most:
                raise Finding(
                    f"{describe(number)}: {what} grew from {before[what]} to {after[what]} over {RELOADS} "
                    f"reloads, promised is at most {most} more"
                )
        for other in queued:
            stop(other)
        if process.poll() is not None:
            raise Finding(f"{describe(number)}: the server ended")
    return "flat"


def started(address: str, queued: list[Run], query: dict[str, str]) -> None:
    """Have the server start the runs, as a visitor presses Resume on each."""
    for other in queued:
        with other.writer() as writer:
            writer.finish("stopped", message="stopped")
        with Visitor(address) as visitor:
            visitor.draw("runs", {**query, "run": other.id})
            visitor.press("resume_run", "runs", {**query, "run": other.id})


def visit(address: str, times: int, pages: tuple[str, ...], query: dict[str, str], ending: str) -> None:
    """Come, draw a page and go, so many times, or for as long as a case may take."""
    began = time.monotonic()
    for place in range(times):
        if time.monotonic() - began > SECONDS:
            return
        visitor = Visitor(address)
        visitor.draw(pages[place % len(pages)], query)
        if visitor.faults():
            raise Finding(f"/{pages[place % len(pages)]}: {visitor.faults()[0]}")
        visitor.vanish() if ending == "vanishes" else visitor.socket.close()


@contextlib.contextmanager
def staying(address: str, query: dict[str, str]) -> Iterator[None]:
    """Visitors with a page open all the while, who draw it again and again."""
    leave, wrong = threading.Event(), []

    def stay(place: int) -> None:
        try:
            with Visitor(address) as visitor:
                while not leave.is_set():
                    visitor.draw(PAGES[place % len(PAGES)], query)
                    leave.wait(3.0)
        except (OSError, TimeoutError) as error:
            wrong.append(error)

    threads = [threading.Thread(target=stay, args=(place,)) for place in range(VISITORS)]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        leave.set()
        for thread in threads:
            thread.join(180)
    if wrong:
        raise Finding(f"a visitor was dropped: {wrong[0]!r}")


def stop(other: Run) -> None:
    """Ask a run to stop, and hold it to that."""
    if not other.status().active:
        raise Finding(f"a run of ten million steps is {other.status().state}: {other.status().error[:200]}")
    began = time.monotonic()
    other.request_stop()
    while other.status().active:
        if time.monotonic() - began > STOP_SECONDS:
            raise Finding(f"a run that is {other.status().state} heard no stop within {STOP_SECONDS:g} seconds")
        time.sleep(0.05)


def describe(number: int) -> str:
    """A way of visiting in words."""
    ending, which, estimator = CASES[number]
    return f"{VISITORS} visitors stay, one {ending} {RELOADS} times from {which}, {QUEUED} runs by {estimator}"


PART = Part(
    "load",
    "visitors that come and go beside queued runs: memory, threads, descriptors, Stop",
    len(CASES),
    run,
    0.5,
    describe,
)
