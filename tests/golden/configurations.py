"""The configurations whose ids and values must not change unsaid, as words of the command line, and how to do them.

By itself this file runs them all with whatever datamask is importable and writes what came:

    python tests/golden/configurations.py OUT.json [NAME ...]

Only the command line is used, so that one file serves the trees of before and after (tests/golden/compare.py).
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
from pathlib import Path

SOLVED, SAMPLED = "solved", "sampled"

OBJECTIVES = ("facility", "pairwise", "disf", "disf_fixed", "graphcut")
RULES = ["--pin", "pin.txt", "--ban", "ban.txt", "--quota", "domain=b:0.1:0.2"]
MASKS = ["--estimator", "counterfactual", "--n_epochs", "12"]
PAPER = ["--estimator", "reinforce", "--n_epochs", "40", "--n_rollout", "16"]

CONFIGURATIONS: dict[str, list[str]] = {
    **{f"counterfactual {name}": [*MASKS, "--objective", name] for name in OBJECTIVES},
    **{f"reinforce {name}": [*PAPER, "--objective", name] for name in OBJECTIVES},
    **{
        f"relaxed {name}": ["--estimator", "relaxed", "--objective", name]
        for name in ("facility", "pairwise", "disf_fixed")
    },
    **{
        f"greedy {name}": ["--estimator", "greedy", "--objective", name]
        for name in ("facility", "pairwise", "graphcut")
    },
    **{
        f"{name} facility": ["--estimator", name, "--objective", "facility"]
        for name in ("semdedup", "direct", "top-quality", "random")
    },
    "solved sum": ["--estimator", "relaxed", "--objective", "pairwise:0.7,disf_fixed:0.3"],
    "sum by masks": [*MASKS, "--objective", "pairwise:0.7,facility:0.3"],
    "raw scale": ["--estimator", "relaxed", "--objective", "pairwise", "--scale", "raw"],
    "exact score": [*PAPER, "--objective", "pairwise", "--score", "exact", "--readout", "sample"],
    "centred": ["--estimator", "relaxed", "--objective", "pairwise", "--center"],
    "rules facility": ["--estimator", "relaxed", "--objective", "facility", *RULES],
    "rules pairwise masks": [*MASKS, "--objective", "pairwise", *RULES],
    "given": ["--estimator", "relaxed", "--objective", "facility", "--given", "given.txt"],
    "budget relaxed": ["--estimator", "relaxed", "--objective", "pairwise", "--budget", "9000"],
    "budget masks": [*MASKS, "--objective", "facility", "--budget", "9000"],
    "collapsed": [*MASKS, "--objective", "facility", "--collapse", "0.95"],
    "pruned": [*MASKS, "--objective", "disf", "--prune", "0.4"],
    "approximate graph": ["--estimator", "relaxed", "--objective", "facility", "--neighbors", "approximate"],
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

LIMITS = {SOLVED: 1e-6, SAMPLED: 1e-3}
"""How far a calibrated value may lie from the committed one; on another processor sampled masks take another way."""

BOUND_LIMIT = 1e-4
"""The same of a bound, on either kind: where a descent ends that has not converged follows the rounding on its way."""


def kind(name: str) -> str:
    """Whether the configuration is solved or samples masks."""
    words = {**CONFIGURATIONS, **RESUMED}[name]
    return SAMPLED if {"counterfactual", "reinforce", "semdedup", "random"} & set(words) else SOLVED


def write_corpus(folder: Path) -> Path:
    """600 rows in nine clouds, one in eight a near or exact copy, with domains and lengths; and the id lists."""
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
    for name, rows in (("pin", range(5)), ("ban", range(10, 20)), ("given", range(30, 60))):
        (folder / f"{name}.txt").write_text("".join(f"{ids[row]}\n" for row in rows), encoding="utf-8")
    return folder / "corpus.parquet"


def outcome(output: str, printed: str) -> dict:
    """Ids in order and calibrated values (raw where the scale is) of one run."""
    import pyarrow.parquet as pq

    summary = json.loads(printed.strip().splitlines()[-1])
    values = summary["calibrated"] or {}
    return {
        "ids": sorted(pq.read_table(output)["chunk_id"].to_pylist()),
        "joint": values.get("joint"),
        "quality": values.get("quality"),
        "diversity": values.get("diversity"),
        "upper_bound": summary["upper_bound"],
    }


def select(words: list[str]) -> dict:
    """One configuration in this process, in the working directory."""
    import io

    from datamask import cli

    printed = io.StringIO()
    with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(io.StringIO()) as complaints:
        size = [] if "--budget" in words else ["--select_ratio", "0.2"]
        status = cli.main(
            ["select", "corpus.parquet", "--output", "out.parquet", "--json", "--device", "cpu", *size, *words]
        )
    if status != 0:
        raise RuntimeError(f"select {' '.join(words)} ended with {status}: {complaints.getvalue()[-500:]}")
    return outcome("out.parquet", printed.getvalue())


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
    return outcome("out.parquet", done.stdout)


def outcomes(names: list[str]) -> dict[str, dict]:
    """The configurations of those names, done in the working directory, which holds the corpus."""
    return {
        name: select_with_a_break(RESUMED[name]) if name in RESUMED else select(CONFIGURATIONS[name]) for name in names
    }


if __name__ == "__main__":
    target = Path(sys.argv[1]).resolve()
    tree = str(Path.cwd())  # whose datamask is tried, also by the processes that are begun below
    sys.path.insert(0, tree)
    os.environ["PYTHONPATH"] = tree
    with tempfile.TemporaryDirectory(prefix="golden-") as scratch:
        write_corpus(Path(scratch))
        os.chdir(scratch)
        os.environ["DATAMASK_RUNS_DIR"] = str(Path(scratch) / "runs")
        results = outcomes(sys.argv[2:] or [*CONFIGURATIONS, *RESUMED])
    target.write_text(json.dumps(results), encoding="utf-8")
