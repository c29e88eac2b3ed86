"""Part `faults`: one file operation of one operation of the program goes wrong; then everything must be whole.

A case is an operation, a kind of fault, before or after, and the place of the file operation. Further cases fill the
disk beneath native writers, let two processes do the same thing, and kill the child that computes a map.
"""

from __future__ import annotations

import contextlib
import functools
import json
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path

from tests.torture import materials
from tests.torture.contract import Finding, Part
from tests.torture.injection import AFTER, BEFORE, KINDS, Injection, full_disk
from tests.torture.judging import attempted, check_sentence, trace
from tests.torture.operations import OPERATIONS, Operation, corpus, put_corpus

WAYS = tuple((kind, when) for kind in KINDS[:3] for when in (BEFORE, AFTER))
SWAP = ("swap", BEFORE)
LIMITS = (0, 1, 10, 100, 500, 1_000, 2_000, 3_000, 5_000, 8_000, 12_000, 20_000, 30_000, 50_000, 80_000)
DELAYS = (0.0, 0.02, 0.1, 0.3)
CHILD_SECONDS = (0.0, 0.5, 2.0, 5.0)

Case = Callable[[Path], str]


# -- the table of cases ------------------------------------------------------------------------------------------------


@functools.cache
def _blocks() -> tuple[tuple[int, str, Callable[[int, Path], str]], ...]:
    """Size, description and the doing of each block of cases."""
    blocks = []
    for operation in OPERATIONS:
        for kind, when in (*WAYS, *([SWAP] if operation.swaps else [])):
            blocks.append(
                (operation.most, f"{operation.name}: {kind} {when}", functools.partial(_struck, operation, kind, when))
            )
        blocks.append((len(LIMITS), f"{operation.name}: full disk", functools.partial(_full, operation)))
        blocks.append((len(DELAYS), f"{operation.name}: two at once", functools.partial(_twice, operation)))
    blocks.append((len(CHILD_SECONDS), "map: child killed", _map_child))
    return tuple(blocks)


def _of(number: int) -> tuple[str, Callable[[int, Path], str], int]:
    for size, about, do in _blocks():
        if number < size:
            return about, do, number
        number -= size
    raise IndexError(f"there are {PART.size:,} cases")


def run(number: int, folder: Path) -> str:
    """Case `number`."""
    _, do, place = _of(number)
    return do(place, folder)


def describe(number: int) -> str:
    """Case `number` in a few words."""
    about, _, place = _of(number)
    return f"{about} number {place}"


# -- one fault ---------------------------------------------------------------------------------------------------------


@functools.cache
def _count(name: str) -> int:
    """File operations of an operation that nothing disturbs."""
    folder = materials.place() / f"count-{name.replace(' ', '-')}"
    folder.mkdir()
    return _forked(_named(name), folder, Injection(folder))["count"]


def _named(name: str) -> Operation:
    return next(operation for operation in OPERATIONS if operation.name == name)


def _struck(operation: Operation, kind: str, when: str, place: int, folder: Path) -> str:
    count = _count(operation.name)
    # at every place: none of those that are tried lies past the end of an operation that does more than `most`
    if count > operation.most:
        raise Finding(
            f"{operation.name} does {count} file operations, of which {operation.most} are tried; raise its `most`"
        )
    if place >= count:
        return "past the end"
    operation.prepare(folder)
    injection = Injection(folder, place, kind, when, act=lambda: _swap(folder))
    return _after(operation, folder, _forked(operation, folder, injection, prepared=True), kind)


def _full(operation: Operation, place: int, folder: Path) -> str:
    operation.prepare(folder)
    return _after(operation, folder, _forked(operation, folder, None, prepared=True, most=LIMITS[place]), "full disk")


def _forked(
    operation: Operation, folder: Path, injection: Injection | None, *, prepared: bool = False, most: int | None = None
) -> dict:
    """Do the operation in a child; ``code``, ``finding`` and ``count``, or ``signal``."""
    if not prepared:
        operation.prepare(folder)
    answer, reply = os.pipe()
    child = os.fork()
    if child == 0:
        said = {}
        try:
            if injection is not None:
                injection.install()
            if most is not None:
                full_disk(most)
            said["code"] = operation.act(folder)
        except Finding as finding:
            said["finding"] = str(finding)
        except BaseException as error:
            said["finding"] = f"{type(error).__name__} came out: {trace(error)}"
        finally:
            if injection is not None:
                injection.at = None
                said |= {"count": injection.count, "last": injection.log[-1:]}
            os.write(reply, json.dumps(said).encode())
            os._exit(0)
    os.close(reply)
    with os.fdopen(answer, "rb") as stream:
        data = stream.read()
    _, status = os.waitpid(child, 0)
    return json.loads(data) if data else {"signal": os.WTERMSIG(status)}


def _after(operation: Operation, folder: Path, said: dict, kind: str) -> str:
    """What must hold after the fault, and after going on."""
    _believe_no_queue()
    if "signal" in said and not (kind == "kill" and said["signal"] == signal.SIGKILL):
        raise Finding(f"ended by signal {said['signal']}")
    if "finding" in said:
        raise Finding(said["finding"])
    if kind == "swap":
        return _judge_swap(folder, said)
    attempted(lambda: operation.check(folder), f"looking after {kind}")
    _, going_on = attempted(lambda: operation.again(folder), f"going on after {kind}")
    if going_on is None:
        raise Finding(f"refused to go on after {kind}")
    return "survived" if said.get("code") == 0 else going_on


def _believe_no_queue() -> None:
    """A queued run whose owner is gone says so at once, not after ten seconds."""
    from datamask.runs import store

    if hasattr(store, "QUEUE_GRACE"):
        store.QUEUE_GRACE = 0.0


# -- the shard replaced in the middle --------------------------------------------------------------------------------


def _swap(folder: Path) -> None:
    """Other contents under the same ids, with the time of the old file."""
    path = corpus(folder)
    before = path.stat()
    put_corpus(folder, seed=7)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


def _judge_swap(folder: Path, said: dict) -> str:
    """A done run is of one corpus or the other, and an export afterwards is of the run's own corpus or refused."""
    import pyarrow.parquet as pq

    from datamask.runs.store import RunStore
    from tests.torture.judging import command

    if said.get("code"):
        return "refused"
    corpora = [
        dict(zip(content["chunk_id"].to_pylist(), content["quality_score"].to_pylist()))
        for content in (materials.table(), materials.table(seed=7))
    ]
    run = RunStore(folder / "runs").list()[0]
    selection = run.selection()
    chosen = dict(zip(selection["chunk_id"].to_pylist(), selection["quality"].to_pylist()))
    if not any(all(abs(content[name] - value) < 1e-9 for name, value in chosen.items()) for content in corpora):
        raise Finding("a run says done and mixes two contents of its shard")
    code, _ = command(
        "runs",
        "export",
        run.id,
        "--runs_dir",
        folder / "runs",
        "--rows",
        folder / "rows.parquet",
        doing="export after the shard was replaced",
    )
    if code == 0:
        rows = pq.read_table(folder / "rows.parquet")
        for name, value in zip(rows["chunk_id"].to_pylist(), rows["quality_score"].to_pylist()):
            if abs(chosen[name] - value) > 1e-9:
                raise Finding("an export wrote other rows than the run selected, although their shard had changed")
    return "one corpus" if code == 0 else "one corpus, export refused"


# -- two processes ---------------------------------------------------------------------------------------------------


def _twice(operation: Operation, place: int, folder: Path) -> str:
    """Two processes do the same in the same folder; at least one succeeds, nothing is mixed."""
    operation.prepare(folder)
    children = []
    for late in (0.0, DELAYS[place]):
        answer, reply = os.pipe()
        child = os.fork()
        if child == 0:
            said = {}
            try:
                time.sleep(late)
                said["code"] = operation.act(folder)
            except BaseException as error:
                said["finding"] = str(error) if isinstance(error, Finding) else trace(error)
            finally:
                os.write(reply, json.dumps(said).encode())
                os._exit(0)
        os.close(reply)
        children.append((child, answer))
    answers = []
    for child, answer in children:
        with os.fdopen(answer, "rb") as stream:
            answers.append(json.loads(stream.read() or b'{"finding": "a process crashed"}'))
        os.waitpid(child, 0)
    _believe_no_queue()
    for said in answers:
        if "finding" in said:
            raise Finding(f"two at once: {said['finding']}")
    if all(said["code"] for said in answers):
        raise Finding("two at once: both were refused")
    operation.check(folder)
    return "both" if not any(said["code"] for said in answers) else "one, the other refused"


# -- the map's child -------------------------------------------------------------------------------------------------


def _map_child(place: int, folder: Path) -> str:
    """The child that computes a map is killed; the map says so, and another try begins."""
    from datamask import CorpusConfig, open_corpus
    from datamask.corpus.projections.layouts import stored_layout
    from tests.corpus.projections.jobs import start_layout

    put_corpus(folder)
    opened = open_corpus(CorpusConfig((str(corpus(folder)),)))
    cache = folder / "cache"
    job = start_layout(opened, cache)
    deadline = time.monotonic() + 60
    while not (children := _children()) and not job.ended and time.monotonic() < deadline:
        time.sleep(0.005)
    time.sleep(CHILD_SECONDS[place])
    for child in children:
        os.kill(child, signal.SIGKILL)
    if not job.wait(60):
        raise Finding("the map waits for a child that was killed")
    if job.state != "done":
        check_sentence(job.error, "the map whose child was killed")
        if stored_layout(opened, cache).find() is not None:
            raise Finding("the map failed and left a layout")
    if left := [path.name for path in cache.rglob("umap-fit-*")]:
        raise Finding(f"the map left {', '.join(left)}")
    again = start_layout(opened, cache)
    time.sleep(0.2)
    if again.state == "failed":
        raise Finding(f"the map cannot be begun again: {again.error}")
    again.stop()
    if not again.wait(60):
        raise Finding("the map cannot be stopped")
    return job.state


def _children() -> list[int]:
    words: list[str] = []
    for task in Path("/proc/self/task").iterdir():
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # a thread may end while its line is read
            words += (task / "children").read_text().split()
    return [int(word) for word in words]


def warm() -> None:
    """Import, compile, make what cases start from, and count the file operations of each operation."""
    import torch

    torch.set_num_threads(1)
    materials.bases()
    for setting in ("counterfactual", "greedy", "relaxed", "reinforce"):
        materials.selected_ids(setting)
    for setting in ("counterfactual", "relaxed", "reinforce"):
        materials.half_done(setting)
    for operation in OPERATIONS:
        _count(operation.name)


PART = Part(
    name="faults",
    title="kills, full disks, I/O errors, races at every file operation",
    size=sum(size for size, _, _ in _blocks()),
    run=run,
    weight=4.0,
    describe=describe,
)
