"""Altered checkpoints and caches: the run ends in the very selection of an unbroken one, or is refused."""

from __future__ import annotations

import json
import random
import shutil
from pathlib import Path

import numpy as np

from datamask.errors import DatamaskError
from datamask.runs.store import RunStore
from datamask.work.context import Work
from tests.torture import materials
from tests.torture.contract import Finding
from tests.torture.judging import Family, check_sentence, trace
from tests.torture.run_folders import alter_json, damage

LEARNERS = ("counterfactual", "reinforce", "relaxed")
CHANGES = {
    "one short": lambda array: array[:-1] if array.ndim else array + 1,
    "empty": lambda array: array[:0] if array.ndim else np.array([], array.dtype),
    "one dimension more": lambda array: array[None],
    "NaN": lambda array: np.full(array.shape, np.nan),
    "infinite": lambda array: np.full(array.shape, np.inf),
    "text": lambda array: np.full(array.shape, "x"),
    "zeros": lambda array: np.zeros_like(array),
    "times ten": lambda array: array * 10 if array.dtype.kind in "fiu" else ~array,
    "reversed": lambda array: array[::-1] if array.ndim else -array if array.dtype.kind == "f" else array + 1,
    "another type": lambda array: array.astype(np.complex128),
    "one entry": lambda array: _one_entry(array),
}
META = "__meta__"


def _one_entry(array: np.ndarray) -> np.ndarray:
    changed = array.copy()
    flat = changed.reshape(-1)
    if flat.size:
        flat[flat.size // 2] = ~flat[flat.size // 2] if flat.dtype == bool else flat[flat.size // 2] + 1
    return changed


def alter_arrays(path: Path, rng: random.Random) -> str:
    """Change one array, or one value of the JSON kept beside them, in an .npz or .npy; says what."""
    if path.suffix == ".npy":
        change = rng.choice(list(CHANGES))
        np.save(path, CHANGES[change](np.load(path)))
        return change
    with np.load(path, allow_pickle=False) as stored:
        arrays = {name: stored[name] for name in stored.files}
    name = rng.choice(list(arrays))
    if name == META:
        arrays[name] = np.frombuffer(alter_json(arrays[name].tobytes(), rng), np.uint8)
        change = "one value"
    elif rng.random() < 0.1:
        del arrays[name]
        change = "gone"
    else:
        change = rng.choice(list(CHANGES))
        arrays[name] = CHANGES[change](arrays[name])
    with path.open("wb") as file:
        np.savez(file, **arrays)
    return f"{name} {change}"


def finish(run, expected: tuple[str, ...], what: str) -> str:
    """Work on a run until it ends, as `resume` does.

    Raises:
        Finding: it ends in other ids than an unbroken run, or in a fault of the program.
    """
    from datamask.runs.attempt import attempt

    outcome = attempt(run, Work(threads=1))
    if outcome.error is None:
        if outcome.status.state != "done":
            raise Finding(f"{what}: ended {outcome.status.state} although nobody stopped it")
        if materials.ids_of(run.path / "selection.parquet") != expected:
            raise Finding(f"{what}: ended in other ids than the unbroken run")
        return "unbroken ids"
    if not isinstance(outcome.error, DatamaskError):
        raise Finding(f"{what}: a fault of the program: {trace(outcome.error)}")
    check_sentence(" ".join(outcome.status.error.split()) or " ".join(str(outcome.error).split()), what)
    return "refused"


def run_checkpoint(number: int, folder: Path) -> str:
    """Resume from an altered checkpoint."""
    rng = random.Random(f"checkpoint {number}")
    setting = LEARNERS[number % len(LEARNERS)]
    root = folder / "runs"
    shutil.copytree(materials.half_done(setting), root)
    run = RunStore(root).get("half-done")
    path = run.path / "checkpoint.npz"
    if rng.random() < 0.6:
        what = alter_arrays(path, rng)
    else:
        what = damage(path, rng, [run.path / "config.json", run.path / "metrics.jsonl"])
    return finish(run, materials.selected_ids(setting), f"{setting}: {path.name}, {what}")


def _numbers_off(data: bytes, rng: random.Random) -> bytes:
    """A JSON document with one of its numbers off: times ten, below, NaN, of another kind."""
    document = json.loads(data)
    numbers = (
        [key for key, value in document.items() if isinstance(value, float | int)] if isinstance(document, dict) else []
    )
    if not numbers:
        return alter_json(data, rng)
    key = rng.choice(numbers)
    value = document[key]
    document[key] = rng.choice(
        [value * 10, float("nan"), -value, value - 1, float("inf"), 0.0, str(value), value + 1e-3]
    )
    return json.dumps(document).encode()


def run_cache(number: int, folder: Path) -> str:
    """Run again beside an altered cache: values and ids are those of the run that made it."""
    rng = random.Random(f"cache {number}")
    setting = list(materials.SETTINGS)[number % len(materials.SETTINGS)]
    source = materials.finished(setting)
    store = RunStore(folder / "runs")
    shutil.copytree(source / ".kept", store.root / ".kept")
    files = sorted(path for path in (store.root / ".kept").rglob("*") if path.is_file() and path.stat().st_size)
    if not files:
        return "no cache"
    path = rng.choice(files)
    if path.suffix in (".npz", ".npy") and rng.random() < 0.6:
        what = alter_arrays(path, rng)
    elif path.suffix == ".json" and rng.random() < 0.6:
        path.write_bytes(_numbers_off(path.read_bytes(), rng))
        what = "a number"
    else:
        what = damage(path, rng, files)
    what = f"{setting}: cached {path.name}, {what}"
    before = RunStore(source).get(materials.only_run(source))
    run = store.create(before.config)
    word = finish(run, materials.selected_ids(setting), what)
    if word != "refused":
        then, now = before.status().to_dict()["summary"], run.status().to_dict()["summary"]
        for key in ("quality", "diversity", "joint", "calibrated", "anchors", "upper_bound", "gap"):
            if not _same(then.get(key), now.get(key)):
                raise Finding(f"{what}: {key} is {now.get(key)}, but {then.get(key)} beside a whole cache")
    return word


def _same(one: object, other: object) -> bool:
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(_same(one[key], other[key]) for key in one)
    if isinstance(one, float) and isinstance(other, float):
        return bool(np.isclose(one, other, rtol=1e-6, atol=1e-9))
    return one == other


FAMILIES = (Family("checkpoint", 1_500, run_checkpoint), Family("cache", 1_500, run_cache))
