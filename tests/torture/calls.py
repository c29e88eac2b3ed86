"""A folder of calls into which somebody else put files, pipes, links and folders: nothing is run, and nobody waits."""

from __future__ import annotations

import json
import os
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.torture.contract import Finding
from tests.torture.judging import ACCEPTED, REFUSED, Family, attempted
from tests.torture.run_folders import TEXTS, VALUES


class NoEngine:
    """In the place of an engine: whatever reaches it would have been run."""

    def run(self, task: str, arguments: list[dict[str, Any]], **options: Any) -> list[dict[str, Any]]:
        from datamask.out_of_core.engines.files import TASKS

        if task not in TASKS:
            raise Finding(f"a call had {task!r} done, which is no task")
        return [{} for _ in arguments]


def _call(rng: random.Random) -> bytes:
    from datamask.out_of_core.engines.files import TASKS

    tasks = [*sorted(TASKS), "os:system", "datamask.out_of_core.engines.worker:main", "datamask.out_of_core.cells:json"]
    record: dict[str, Any] = {"task": rng.choice(tasks), "argument": {"folder": "/tmp", "output": "../x", "number": 1}}
    if rng.random() < 0.5:
        record[rng.choice([*record])] = rng.choice(VALUES)
    return json.dumps(record).encode("utf-8", "surrogatepass")


def _put(path: Path, rng: random.Random) -> None:
    """Something under this name."""
    ways: list[Callable[[], Any]] = [
        lambda: path.write_bytes(_call(rng)),
        lambda: path.write_bytes(_call(rng)),
        lambda: path.write_bytes(rng.choice(TEXTS)),
        lambda: path.write_bytes(rng.randbytes(rng.choice([0, 1, 3000]))),
        lambda: os.mkfifo(path),
        path.mkdir,
        lambda: path.symlink_to(path),
        lambda: path.symlink_to("/dev/zero"),
        lambda: path.symlink_to(path.parent.parent / "victim"),
    ]
    rng.choice(ways)()


def run_calls(number: int, folder: Path) -> str:
    """Do the calls of the folder."""
    from datamask.out_of_core.engines.files import do_calls

    rng = random.Random(f"calls {number}")
    (folder / "victim").write_text("kept")
    place = folder / "calls"
    place.mkdir()
    for name in rng.choice(["a", "\x1b[31mred\r", "ü"]), "b":
        for end in (
            ".call",
            *((".begun",) if rng.random() < 0.6 else ()),
            *((".reply",) if rng.random() < 0.2 else ()),
        ):
            _put(place / f"{name}{end}", rng)
    warned: list[str] = []
    _, done = attempted(
        lambda: do_calls(place, NoEngine(), warn=lambda error: warned.append(str(error))), "doing the calls of a folder"
    )
    if done is None:
        raise Finding("what is no call ended who does calls")
    if (folder / "victim").read_text() != "kept" or {path.name for path in folder.iterdir()} != {"calls", "victim"}:
        raise Finding("doing calls changed a file outside of their folder")
    return ACCEPTED if done else REFUSED


FAMILIES = (Family("calls", 400, run_calls),)
