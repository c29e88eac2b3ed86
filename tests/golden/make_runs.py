"""Makes tests/golden/runs: runs of every kind, by the program that was current at commit 0d4efc3, format_version 1.

Only for the record: the folder is never made anew, since what it proves is that runs made then are read now. It was
made in a checkout of that commit, with this folder's corpus in it, by

    OMP_NUM_THREADS=1 python tests/golden/make_runs.py

which also writes expected.json: per run its state, and for the unfinished ones the ids that an unbroken run of the same
settings selects, computed then.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import sys
import time
from pathlib import Path

import pyarrow.parquet as pq

HERE = Path("tests/golden")
CORPUS = str(HERE / "corpus/part-1.parquet")
RUNS = HERE / "runs"
sys.path.insert(0, os.getcwd())  # noqa: PTH109

from datamask.config import CorpusConfig, Quota, RunConfig, SelectionConfig  # noqa: E402
from datamask.runs.attempt import attempt  # noqa: E402
from datamask.runs.imports import import_ids  # noqa: E402
from datamask.runs.labels import Result  # noqa: E402
from datamask.runs.store import RunStore  # noqa: E402
from datamask.runs.sweep import sweep  # noqa: E402
from datamask.runs.varying import Plan, parse_vary, points  # noqa: E402
from datamask.work.context import Work  # noqa: E402


def config(name: str, **options) -> RunConfig:
    return RunConfig(CorpusConfig((CORPUS,)), SelectionConfig.from_options(**options), name=name)


def ids(run) -> list[str]:
    return sorted(run.selection()["chunk_id"].to_pylist())


def finish(store: RunStore, run_id: str, settings: RunConfig):
    run = store.create(settings, run_id=run_id)
    outcome = attempt(run, Work(threads=1))
    assert outcome.status.state == "done", outcome
    return run


def unbroken(settings: RunConfig) -> list[str]:
    """The ids of the same settings without a break."""
    scratch = HERE / "scratch"
    try:
        return ids(finish(RunStore(scratch), "unbroken", settings))
    finally:
        shutil.rmtree(scratch)


def main() -> None:
    shutil.rmtree(RUNS, ignore_errors=True)
    store = RunStore(RUNS)
    all_ids = pq.read_table(CORPUS)["chunk_id"].to_pylist()
    for name, chosen in (
        ("pin", all_ids[:3]),
        ("ban", all_ids[10:15]),
        ("given", all_ids[20:30]),
        ("picked", all_ids[::12]),
    ):
        (HERE / f"{name}.txt").write_text("\n".join(chosen) + "\n", encoding="utf-8")
    expected: dict[str, dict] = {}

    for run_id, settings in {
        "done-facility": config("facility, defaults", select_ratio=0.1),
        "done-pairwise-rules": config(
            "pairwise under rules",
            objective="pairwise",
            estimator="relaxed",
            select_ratio=0.2,
            pin=str(HERE / "pin.txt"),
            ban=str(HERE / "ban.txt"),
            quotas=(Quota.parse("source=numpy:0:0.1"),),
        ),
        "done-budget": config("tokens", objective="pairwise", estimator="relaxed", budget=20_000.0),
        "archived-greedy": config("put away", objective="facility", estimator="greedy", select_ratio=0.1),
    }.items():
        run = finish(store, run_id, settings)
        expected[run_id] = {"state": "done", "ids": ids(run)}
    store.get("archived-greedy").relabel(tags=["old", "greedy"], notes="kept for its ids", archived=True)
    store.get("done-facility").attach([Result("held-out", 0.5, "1"), Result("held-out", 0.75, "2")])

    run = import_ids(
        store,
        RunConfig(
            CorpusConfig((CORPUS,)),
            SelectionConfig(objective="facility", estimator="imported"),
            name="picked elsewhere",
            ids=str(HERE / "picked.txt"),
        ),
    )
    run.path.rename(run.path.with_name("imported"))
    expected["imported"] = {"state": "done", "ids": ids(store.get("imported"))}

    swept = Plan(
        CorpusConfig((CORPUS,)), points({"objective": "pairwise", "estimator": "relaxed"}, [parse_vary("lamb=0:1:3")])
    )
    for point in sweep(store, swept, Work(threads=1)):
        expected[point.run.id] = {"state": "done", "ids": ids(point.run)}

    stopping = {
        "stopped-paper": config(
            "the paper's way, stopped", estimator="reinforce", scale="raw", objective="disf", n_rollout=16, n_epochs=400
        ),
        "stopped-counterfactual": config(
            "masks, stopped",
            objective="facility",
            estimator="counterfactual",
            select_ratio=0.2,
            n_epochs=200,
            polish="none",
        ),
    }
    for run_id, settings in stopping.items():
        run = store.create(settings, run_id=run_id)
        outcome = attempt(run, Work.of(lambda run=run: run.status().step >= 20, threads=1))
        assert outcome.status.state == "stopped", outcome
        expected[run_id] = {"state": "stopped", "step": outcome.status.step, "ids": unbroken(settings)}

    settings = config(
        "masks, killed", objective="pairwise", estimator="counterfactual", select_ratio=0.2, n_epochs=900, polish="none"
    )
    run = store.create(settings, run_id="interrupted-masks")
    child = os.fork()
    if child == 0:
        attempt(run, Work(threads=1))
        os._exit(0)
    while not (run.path / "checkpoint.npz").exists() or run.status().step < 100:
        time.sleep(0.01)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    expected["interrupted-masks"] = {"state": "interrupted", "step": run.status().step, "ids": unbroken(settings)}

    run = store.create(
        config("fails", objective="pairwise", estimator="relaxed", select_ratio=0.0001), run_id="failed-ratio"
    )
    assert attempt(run, Work(threads=1)).status.state == "failed"
    expected["failed-ratio"] = {"state": "failed", "ids": None}
    (HERE / "expected.json").write_text(json.dumps(expected, indent=0, sort_keys=True) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
