"""The configurations whose ids and values must not change unsaid, as words of the command line, and how to do them.

By itself this file runs them all with whatever datamask is importable and writes what came:

    python tests/golden/configurations.py OUT.json [NAME ...]

Only the command line is used, so that one file serves the trees of before and after (tests/golden/__main__.py).
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path

SOLVED, SAMPLED = "solved", "sampled"

OBJECTIVES = ("facility", "pairwise", "disf", "disf_fixed", "vendi")
RULES = ["--pin", "pin.txt", "--ban", "ban.txt", "--quota", "domain=b:0.1:0.2"]
MASKS = ["--estimator", "counterfactual", "--n_epochs", "12"]
PAPER = ["--estimator", "reinforce", "--n_epochs", "40", "--n_rollout", "16"]
ALL_ROWS = ["--scratch-dir", "scratch", "--rows", "150"]
"""In mapped files: pages draw 150 of the 600 rows."""

CONFIGURATIONS: dict[str, list[str]] = {
    **{f"counterfactual {name}": [*MASKS, "--objective", name] for name in OBJECTIVES},
    **{f"reinforce {name}": [*PAPER, "--objective", name] for name in OBJECTIVES},
    **{
        f"relaxed {name}": ["--estimator", "relaxed", "--objective", name]
        for name in ("facility", "pairwise", "disf_fixed", "vendi")
    },
    **{f"greedy {name}": ["--estimator", "greedy", "--objective", name] for name in ("facility", "pairwise", "disf")},
    **{
        f"{name} facility": ["--estimator", name, "--objective", "facility"]
        for name in ("semdedup", "top-quality", "random")
    },
    "solved sum": ["--estimator", "relaxed", "--objective", "pairwise:0.7,disf_fixed:0.3"],
    "sum by masks": [*MASKS, "--objective", "pairwise:0.7,facility:0.3"],
    "raw scale": ["--estimator", "relaxed", "--objective", "pairwise", "--scale", "raw"],
    "centred": ["--estimator", "relaxed", "--objective", "pairwise", "--center"],
    "rules facility": ["--estimator", "relaxed", "--objective", "facility", *RULES],
    "rules pairwise masks": [*MASKS, "--objective", "pairwise", *RULES],
    "given": ["--estimator", "relaxed", "--objective", "facility", "--given", "given.txt"],
    "budget relaxed": ["--estimator", "relaxed", "--objective", "pairwise", "--budget", "9000"],
    "budget vendi": ["--estimator", "relaxed", "--objective", "vendi", "--budget", "9000"],
    "budget masks": [*MASKS, "--objective", "facility", "--budget", "9000"],
    "collapsed": [*MASKS, "--objective", "facility", "--collapse", "0.95"],
    "pruned": [*MASKS, "--objective", "disf", "--prune", "0.4"],
    "approximate graph": ["--estimator", "relaxed", "--objective", "facility", "--neighbors", "approximate"],
    **{
        f"all rows {name}": ["--objective", name, *ALL_ROWS]
        for name in ("pairwise", "disf_fixed", "pairwise:0.7,disf_fixed:0.3", "facility")
    },
    "all rows centered": ["--objective", "pairwise", "--center", *ALL_ROWS],
    "all rows lambda": ["--objective", "disf_fixed", "--lamb", "0.2", *ALL_ROWS],
}
RECIPES: dict[str, tuple[list[str], list[str] | None]] = {
    "apply pairwise": (["--objective", "pairwise"], []),
    "apply disf_fixed": (["--objective", "disf_fixed"], []),
    "apply budget": (["--objective", "pairwise", "--budget", "9000"], []),
    "apply centered": (["--objective", "pairwise", "--center"], []),
    "apply all rows": (["--objective", "pairwise", *ALL_ROWS], []),
    "sql pairwise": (["--objective", "pairwise"], None),
    "sql centered": (["--objective", "pairwise", "--center"], None),
}
"""Words of the run whose recipe is taken, and those of `apply`; or None: DuckDB runs the recipe as SQL."""

SWEPT = {
    "sweep lambda": ["--objective", "pairwise", "--vary", "lamb=0.2:0.8:3"],
    "sweep lambda and seed": [*MASKS, "--objective", "disf", "--vary", "lamb=0.3,0.6", "--vary", "seed=0,1"],
}
RESUMED = {
    "resumed reinforce": [*PAPER, "--objective", "pairwise", "--n_epochs", "4000"],
    "resumed counterfactual": [
        "--estimator",
        "counterfactual",
        "--objective",
        "disf",
        "--n_epochs",
        "400",
        "--polish",
        "none",
    ],
}
"""Stopped by a signal once some steps are done, and gone on with: where it was stopped differs, the ids do not."""

QUICK = [*CONFIGURATIONS, *RECIPES, *SWEPT]
"""Those that need no other process."""

LIMITS = {SOLVED: 1e-6, SAMPLED: 1e-3}
"""How far a calibrated value may lie from the committed one; on another processor sampled masks take another way."""

BOUND_LIMIT = 1e-4
"""The same of a bound, on either kind: where a descent ends that has not converged follows the rounding on its way."""


def kind(name: str) -> str:
    """Whether the configuration is solved or samples masks."""
    words = RECIPES[name][0] if name in RECIPES else {**CONFIGURATIONS, **SWEPT, **RESUMED}[name]
    return SAMPLED if {"counterfactual", "reinforce", "semdedup", "random"} & set(words) else SOLVED


def write_corpus(folder: Path) -> Path:
    """600 rows in nine clouds, one in eight a near or exact copy, with domains and lengths; and the id lists.

    The same rows also lie in three shards, in ``shards``.
    """
    import numpy as np
    import pyarrow as pa
    import pyarrow.parquet as pq

    rng = np.random.default_rng(7)
    n, d = 600, 16
    cloud = rng.choice(9, n, p=np.arange(9, 0, -1) / 45)
    features = rng.normal(size=(9, d))[cloud] + 0.4 * rng.normal(size=(n, d))
    copies = np.arange(0, n, 8)
    features[copies] = features[copies - 1] + (copies[:, None] % 16 == 0) * 0.01 * rng.normal(size=(len(copies), d))
    quality = rng.normal(size=n) + 0.5 * (cloud == 0)
    ids = [f"row-{row:03d}" for row in range(n)]
    table = pa.table(
        {
            "chunk_id": ids,
            "quality_score": quality,
            "feature_arr": pa.FixedSizeListArray.from_arrays(pa.array(features.astype(np.float32).ravel()), d),
            "domain": [("a", "b", "c")[k] for k in cloud % 3],
            "n_tokens": rng.integers(20, 200, n),
        }
    )
    folder.mkdir(parents=True, exist_ok=True)
    pq.write_table(table, folder / "corpus.parquet")
    (folder / "shards").mkdir(exist_ok=True)
    for shard, (start, stop) in enumerate(((0, 250), (250, 450), (450, n))):
        pq.write_table(table.slice(start, stop - start), folder / "shards" / f"{shard}.parquet", row_group_size=100)
    for name, rows in (("pin", range(5)), ("ban", range(10, 20)), ("given", range(30, 60))):
        (folder / f"{name}.txt").write_text("".join(f"{ids[row]}\n" for row in rows), encoding="utf-8")
    return folder / "corpus.parquet"


def read_ids(*paths: str | Path) -> list[str]:
    """Ids of all rows of parquet files, in order."""
    import pyarrow.parquet as pq

    return sorted(value for path in paths for value in pq.read_table(path)["chunk_id"].to_pylist())


def outcome(ids: list[str], values: dict | None, upper_bound: float | None) -> dict:
    """Ids and calibrated values (none where the scale is raw)."""
    values = values or {}
    return {"ids": ids, **{term: values.get(term) for term in ("joint", "quality", "diversity")}} | {
        "upper_bound": upper_bound
    }


def call(*words: str) -> dict:
    """The last line that one command prints in this process, as JSON."""
    import io

    from datamask import cli

    printed = io.StringIO()
    with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(io.StringIO()) as complaints:
        status = cli.main([*words, "--json"])
    if status != 0:
        raise RuntimeError(f"{' '.join(words)} ended with {status}: {complaints.getvalue()[-500:]}")
    return json.loads(printed.getvalue().strip().splitlines()[-1])


def run_select(words: list[str]) -> dict:
    """What `select` prints, in the working directory."""
    size = [] if "--budget" in words else ["--select_ratio", "0.2"]
    source = "shards" if "--scratch-dir" in words else "corpus.parquet"
    return call("select", source, "--output", "out.parquet", "--device", "cpu", *size, *words)


def select(words: list[str]) -> dict:
    """One configuration in this process, in the working directory."""
    summary = run_select(words)
    return outcome(read_ids("out.parquet"), summary["calibrated"], summary["upper_bound"])


def use_recipe(words: list[str], applied: list[str] | None) -> dict:
    """The recipe of a run on the shards: ids that `apply` keeps with these words, or DuckDB where there are none.

    Values: the raw quality and pairwise diversity of the ids that `score` prints.
    """
    run = run_select(words)["run_id"]
    if applied is None:
        call("recipe", run, "--output", "recipe.json", "--sql", "rule.sql")
        ids = query_shards(Path("rule.sql").read_text(encoding="utf-8"))
    else:
        folder = Path(tempfile.mkdtemp(dir=".", prefix="applied-"))
        call("recipe", run, "--output", "recipe.json")
        call("apply", "recipe.json", "shards", "--output", str(folder), *applied)
        ids = read_ids(*folder.glob("*.ids.parquet"))
    Path("kept.txt").write_text("\n".join(["chunk_id", *ids]), encoding="utf-8")
    [scored] = call("score", "corpus.parquet", "--selection", "kept.txt", "--device", "cpu")["selections"]
    values = {"quality": scored["quality"], "diversity": scored["objectives"]["pairwise"]}
    return outcome(ids, values, None)


def query_shards(query: str) -> list[str]:
    """Ids that DuckDB selects from the shards, in order."""
    import duckdb

    with duckdb.connect() as connection:
        connection.execute("CREATE VIEW shards AS SELECT * FROM read_parquet('shards/*.parquet')")
        return sorted(row[0] for row in connection.execute(query).fetchall())


def sweep(words: list[str]) -> dict:
    """All points of a sweep: ids behind the number of their point, and the mean of each value."""
    swept = call("sweep", "corpus.parquet", "--device", "cpu", "--select_ratio", "0.2", *words)["rows"]
    ids = []
    for place, point in enumerate(swept):
        call("runs", "export", point["run_id"], "--ids", "point.parquet")
        ids += [f"point {place}: {name}" for name in read_ids("point.parquet")]
    known = [point for point in swept if point["upper_bound"] is not None]
    bound = sum(point["upper_bound"] for point in known) / len(known) if known else None
    terms = ("joint", "quality", "diversity")
    return outcome(ids, {term: sum(point[term] for point in swept) / len(swept) for term in terms}, bound)


def select_with_a_break(words: list[str]) -> dict:
    """Stopped by an interrupt at its first steps, then resumed, each in a process of its own."""
    command = [sys.executable, "-m", "datamask"]
    runs = Path(tempfile.mkdtemp(dir=".", prefix="runs-"))
    begun = subprocess.Popen(
        [
            *command,
            "select",
            "corpus.parquet",
            "--output",
            "out.parquet",
            "--select_ratio",
            "0.2",
            "--device",
            "cpu",
            "--runs_dir",
            str(runs),
            *words,
        ],
        stderr=subprocess.DEVNULL,
    )
    while begun.poll() is None:
        with contextlib.suppress(OSError, ValueError, StopIteration):
            if json.loads(next(runs.glob("*/status.json")).read_text())["step"] >= 5:
                begun.send_signal(signal.SIGINT)
                break
        time.sleep(0.01)
    begun.wait()
    folder = next(runs.glob("*/status.json")).parent
    # a run that ended before the signal came is printed again by resume, and proves nothing less
    done = subprocess.run(
        [*command, "resume", folder.name, "--runs_dir", str(runs), "--output", "out.parquet", "--json"],
        capture_output=True,
        text=True,
        check=True,
    )
    summary = json.loads(done.stdout.strip().splitlines()[-1])
    return outcome(read_ids("out.parquet"), summary["calibrated"], summary["upper_bound"])


def outcomes(names: Iterable[str]) -> dict[str, dict]:
    """The configurations of those names, done in the working directory, which holds the corpus.

    A tree may refuse one, as an objective that it does not have yet: ``refused`` is then its sentence.
    """
    results = {}
    for name in names:
        try:
            results[name] = _outcome(name)
        except RuntimeError as refusal:
            results[name] = {"refused": str(refusal)}
    return results


def _outcome(name: str) -> dict:
    if name in RESUMED:
        return select_with_a_break(RESUMED[name])
    if name in RECIPES:
        return use_recipe(*RECIPES[name])
    return sweep(SWEPT[name]) if name in SWEPT else select(CONFIGURATIONS[name])


if __name__ == "__main__":
    target = Path(sys.argv[1]).resolve()
    tree = str(Path.cwd())  # whose datamask is tried, also by the processes that are begun below
    sys.path.insert(0, tree)
    os.environ["PYTHONPATH"] = tree
    with tempfile.TemporaryDirectory(prefix="golden-") as scratch:
        write_corpus(Path(scratch))
        os.chdir(scratch)
        os.environ["DATAMASK_RUNS_DIR"] = str(Path(scratch) / "runs")
        results = outcomes(sys.argv[2:] or [*QUICK, *RESUMED])
    target.write_text(json.dumps(results), encoding="utf-8")
