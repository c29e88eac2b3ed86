"""Run folders somebody altered: every reader copes, and the run beside it stays visible."""

from __future__ import annotations

import json
import os
import random
import shutil
from pathlib import Path

import pyarrow.parquet as pq

from datamask.runs.store import RunStore
from tests.torture import materials
from tests.torture.contract import Finding
from tests.torture.judging import Family, attempted, command

VICTIM, GOOD = "victim", "good"
FILES = (
    "status.json",
    "config.json",
    "label.json",
    "metrics.jsonl",
    "rows.parquet",
    "selection.parquet",
    "checkpoint.npz",
    "lock",
    "queue",
    "stop",
)
VALUES: tuple[object, ...] = (
    None,
    "",
    "x",
    [],
    {},
    -1,
    10**400,
    True,
    [1],
    {"a": 1},
    "<b>",
    0.5,
    float("nan"),
    1e308,
    "x" * 5000,
    2**63,
    -(10**30),
    "\ud800",
    [[[[]]]],
    "2020-01-01",
    1e18,
    [None, {}],
)
TEXTS = (
    b"[" * 100_000,
    b'{"a":' * 100_000,
    b"null",
    b"[]",
    b"{}",
    b"\xff\xfe",
    b'{"state": "done"}',
    b"9" * 5000,
    b'{"x": 1e99999}',
    b"",
    b"\x00" * 4096,
    b'{"state": "running"}',
    b'{"state": "queued", "created": 1e300}',
    b'{"state": "queued", "created": -1e300}',
    b'{"state": ["done"]}',
    b"\xef\xbb\xbf{}",
    b"{}\n{}",
    b"NaN",
)
INSTEAD = (
    "a folder",
    "a link to itself",
    "nothing",
    "a FIFO",
    "a link to a device",
    "a link to another file",
    "another file's content",
    "no rights",
)
READERS = ("status", "facts", "metrics", "rows", "selection", "history", "label", "results", "stop_requested")


def fresh_store(folder: Path, setting: str = "counterfactual") -> RunStore:
    """Two copies of a finished run, of which one is about to be damaged."""
    source = materials.finished(setting)
    root = folder / "runs"
    for name in (VICTIM, GOOD):
        shutil.copytree(source / materials.only_run(source), root / name)
        record = json.loads((root / name / "config.json").read_text())
        record["run_id"] = name
        (root / name / "config.json").write_text(json.dumps(record))
        (root / name / "label.json").write_text(
            json.dumps({"name": "n", "notes": "", "tags": ["t"], "archived": False})
        )
    shutil.copytree(source / ".kept", root / ".kept")
    return RunStore(root)


def _paths(value: object, before: tuple = ()) -> list[tuple]:
    """Every place in a JSON document."""
    places = [before] if before else []
    if isinstance(value, dict):
        for key in value:
            places += _paths(value[key], (*before, key))
    elif isinstance(value, list):
        for place in range(min(len(value), 2)):
            places += _paths(value[place], (*before, place))
    return places


def alter_json(data: bytes, rng: random.Random) -> bytes:
    """A JSON document with one value replaced by something else, or one key taken out or added."""
    document = json.loads(data)
    place = rng.choice(_paths(document))
    inner = document
    for key in place[:-1]:
        inner = inner[key]
    if rng.random() < 0.1:
        del inner[place[-1]]
    else:
        inner[place[-1]] = rng.choice(VALUES)
    return json.dumps(document).encode()


def damage(path: Path, rng: random.Random, others: list[Path]) -> str:
    """Alter one file in some way; says how."""
    way = rng.choice(["value", "value", "value", "value", "text", "cut", "bit", "instead"])
    data = path.read_bytes() if path.is_file() else b""
    if way == "value" and path.suffix in (".json", ".jsonl") and data:
        lines = data.splitlines(keepends=True) if path.suffix == ".jsonl" else [data]
        which = rng.randrange(len(lines))
        lines[which] = alter_json(lines[which], rng) + b"\n"
        path.write_bytes(b"".join(lines))
        return "one value"
    if way == "instead":
        what = rng.choice(INSTEAD)
        _put_instead(path, what, rng.choice(others))
        return what
    if way == "text" or not data:
        path.write_bytes(rng.choice(TEXTS))
        return "other text"
    if way == "cut":
        path.write_bytes(data[: rng.randrange(len(data))])
        return "cut"
    file = bytearray(data)
    for _ in range(rng.choice([1, 1, 8])):
        file[rng.randrange(len(file))] ^= 1 << rng.randrange(8)
    path.write_bytes(bytes(file))
    return "bits"


def _put_instead(path: Path, what: str, other: Path) -> None:
    if what == "no rights":
        if path.exists():
            path.chmod(0)
        return
    if what == "another file's content" and other == path:
        return
    path.unlink(missing_ok=True)
    if what == "a folder":
        path.mkdir()
    elif what == "a link to itself":
        path.symlink_to(path)
    elif what == "a FIFO":
        os.mkfifo(path)
    elif what == "a link to a device":
        path.symlink_to("/dev/zero")
    elif what == "a link to another file":
        path.symlink_to(other)
    elif what == "another file's content":
        shutil.copyfile(other, path)


def run(number: int, folder: Path) -> str:
    """Damage one file of a finished run, then read everything."""
    rng = random.Random(f"run folder {number}")
    store = fresh_store(folder)
    name = FILES[number % len(FILES)] if number % 3 else rng.choice(("status.json", "config.json"))
    others = [path for path in (store.root / GOOD).iterdir() if path.name != name]
    how = damage(store.root / VICTIM / name, rng, others)
    _look(store, f"{name}, {how}")
    _export(store, rng, f"{name}, {how}")
    return how


def _look(store: RunStore, what: str) -> None:
    """Lists and readers."""
    from datamask.dashboard.runs import listing

    word, runs = attempted(store.list, f"listing runs ({what})")
    if runs is None or GOOD not in [run.id for run in runs]:
        raise Finding(f"{what}: the run beside it has gone from the list ({word})")
    for words in (("runs", "list"), ("runs", "list", "--json")):
        _, text = command(*words, "--runs_dir", store.root, doing=f"{' '.join(words)} ({what})", codes=(0,))
        if GOOD not in text:
            raise Finding(f"{what}: {' '.join(words)} does not show the run beside it")
    attempted(lambda: listing.readable(store), f"readable runs ({what})")
    attempted(lambda: listing.runs_on(store, None), f"runs to choose from ({what})")
    _, run = attempted(lambda: store.get(VICTIM), f"getting it ({what})")
    if run is None:
        return
    for reader in READERS:
        attempted(getattr(run, reader), f"{reader} ({what})")
    attempted(lambda: run.config, f"config ({what})")
    attempted(lambda: float(run.created), f"created ({what})")


def _export(store: RunStore, rng: random.Random, what: str) -> None:
    """What the command line makes of it, and one of the slower things."""
    where = ("--runs_dir", store.root)
    command("runs", "show", VICTIM, *where, doing=f"runs show ({what})")
    command("runs", "show", VICTIM, "--json", *where, doing=f"runs show --json ({what})")
    target = store.root.parent / "out"
    target.mkdir()
    kind, file = rng.choice([("--ids", "x.csv"), ("--ids", "x.parquet"), ("--rows", "x.parquet"), ("--mask", "masks")])
    code, _ = command("runs", "export", VICTIM, *where, kind, target / file, doing=f"runs export {kind} ({what})")
    if code and list(target.rglob("*")):
        raise Finding(f"{what}: a refused export left {[path.name for path in target.rglob('*')]}")
    if code == 0 and file == "x.parquet":
        pq.read_table(target / file).validate(full=True)
    elif code == 0 and file == "x.csv":
        (target / file).read_text(encoding="utf-8")
    slow = rng.randrange(5)
    if slow == 0:
        _report(store, what)
    elif slow == 1:
        command("resume", VICTIM, *where, doing=f"resume ({what})")
    elif slow == 2:
        _, run = attempted(lambda: store.get(VICTIM), f"getting it ({what})")
        if run is not None:
            attempted(lambda: run.relabel(name="other", tags=["a"]), f"relabelling ({what})")
    elif slow == 3:
        attempted(lambda: store.remove(VICTIM), f"removing ({what})")
        if GOOD not in [run.id for run in store.list()]:
            raise Finding(f"{what}: removing it took the run beside it")


def _report(store: RunStore, what: str) -> None:
    from datamask.analyses.report import report

    runs = [run for run in store.list() if run.id != VICTIM]
    attempted(lambda: report(store.get(VICTIM), runs), f"its report ({what})")
    attempted(lambda: report(store.get(GOOD), store.list()), f"the report of the run beside it ({what})")


FAMILIES = (Family("run folder", 4_000, run),)
