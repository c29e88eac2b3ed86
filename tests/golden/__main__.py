"""Every configuration in the tree of another commit and in this one, on this machine: the same ids, or which differ.

make golden BASE=<commit>        the names that differ, exit 1; nothing differs: exit 0
python -m tests.golden --values  write values.json, what tests/golden/test_values.py holds this tree to
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path

ROOT = Path(__file__).parents[2]
DRIVER = Path(__file__).with_name("configurations.py")
VALUES = Path(__file__).with_name("values.json")


def outcomes(tree: Path, target: Path, names: Iterable[str] = ()) -> dict[str, dict]:
    """What the configurations of those names (none: all) select with the datamask of `tree`.

    One thread, so that sums are in one order. `target`: a file for the answer.
    """
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    subprocess.run([sys.executable, str(DRIVER), str(target), *names], cwd=tree, env=environment, check=True)
    return json.loads(target.read_text(encoding="utf-8"))


def compare(base: str) -> list[str]:
    """One line per configuration whose ids are not those of commit `base`, which may refuse newer ones."""
    with tempfile.TemporaryDirectory(prefix="golden-") as scratch:
        tree = Path(scratch) / "base"
        subprocess.run(["git", "worktree", "add", "--quiet", "--detach", str(tree), base], cwd=ROOT, check=True)
        try:
            before = outcomes(tree, Path(scratch) / "before.json")
            after = outcomes(ROOT, Path(scratch) / "after.json")
        finally:
            subprocess.run(["git", "worktree", "remove", "--force", str(tree)], cwd=ROOT, check=True)
    both = [name for name in before if "refused" not in before[name]]
    return [difference(name, before[name], after[name]) for name in both if before[name]["ids"] != after[name]["ids"]]


def difference(name: str, before: dict, after: dict) -> str:
    """``relaxed facility: 3 of 120 ids differ, joint 0.808099 -> 0.808101`` (- where there is no such value)."""
    gone = len(set(before["ids"]) - set(after["ids"]))
    joint = " -> ".join("-" if value["joint"] is None else f"{value['joint']:.6f}" for value in (before, after))
    return f"{name}: {gone} of {len(before['ids'])} ids differ, joint {joint}"


def main(arguments: list[str]) -> int:
    if arguments == ["--values"]:
        with tempfile.TemporaryDirectory() as scratch:
            results = outcomes(ROOT, Path(scratch) / "values.json")
        values = {
            name: {term: result[term] for term in ("joint", "quality", "diversity", "upper_bound")}
            for name, result in results.items()
        }
        VALUES.write_text(json.dumps(values, indent=1) + "\n", encoding="utf-8")
        return 0
    if len(arguments) != 1 or not arguments[0]:
        print("name the commit to compare with: make golden BASE=<commit>", file=sys.stderr)
        return 2
    differences = compare(arguments[0])
    print("\n".join(differences) or f"every configuration selects the ids of {arguments[0]}")
    return 1 if differences else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
