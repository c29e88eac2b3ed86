"""The engine benchmark tells what the package itself says, and marks what it did not measure to the end."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from benchmarks import contestants
from benchmarks.engine_table import sentences, table
from datamask import CorpusConfig, SelectionConfig, open_corpus
from datamask.evaluation.pool import Pool
from datamask.evaluation.problems import pose
from tests.commands import TINY


@pytest.fixture
def spec(tmp_path):
    return {
        "path": TINY,
        "rows": 0,
        "objective": "pairwise",
        "ratio": 0.3,
        "lamb": 0.5,
        "cache": str(tmp_path),
        "limit": 600.0,
        "steps": 20,
        "best": {"lr": 3.0, "G": 8},
    }


def test_a_contestant_reaches_what_the_package_reaches(spec, tmp_path):
    corpus = open_corpus(CorpusConfig((TINY,)))
    config = SelectionConfig.from_options(
        objective="pairwise", estimator="top-quality", lamb=0.5, select_ratio=0.3, device="cpu"
    )
    problem = pose(Pool(corpus, torch.device("cpu"), tmp_path), config).problem
    best = np.argsort(-corpus.quality, kind="stable")[: problem.size]
    mask = torch.zeros(len(corpus), dtype=torch.bool)
    mask[torch.from_numpy(best)] = True
    found = contestants.contest({**spec, "who": "top-quality"})
    assert found["quality"] == pytest.approx(1.0)
    assert found["joint"] == pytest.approx(problem.joint.evaluate(mask).joint, abs=0.02)  # ties may be cut otherwise
    better = contestants.contest({**spec, "who": "relaxed"})
    assert found["joint"] < better["joint"] <= better["joint"] + better["gap"]
    assert found["joint"] + found["gap"] == pytest.approx(better["joint"] + better["gap"], abs=1e-6)
    assert better["curve"] and not better["extrapolated"]


@pytest.mark.parametrize("who", ["reinforce", "reinforce-best", "greedy"])
def test_what_is_stopped_is_extrapolated_and_says_so(spec, who):
    whole = contestants.contest({**spec, "who": who})
    assert not whole["extrapolated"] and "joint" in whole
    stopped = contestants.contest({**spec, "who": who, "limit": 0.0, "steps": 1_000_000})
    assert stopped["extrapolated"] and "extrapolated" in stopped["note"]
    assert ("joint" in stopped) == (who != "greedy")
    assert ("lr 3, G 8" in whole["note"]) == (who == "reinforce-best")


def test_the_published_disf_picks_in_blocks_until_the_size_is_met(spec):
    found = contestants.contest({**spec, "objective": "disf", "who": "DiSF in blocks"})
    assert not found["extrapolated"] and np.isfinite(found["joint"])
    stopped = contestants.contest({**spec, "objective": "disf", "who": "DiSF in blocks", "limit": 1e-9})
    assert stopped["extrapolated"] and "joint" not in stopped


def test_the_table_says_what_the_rows_say():
    def row(who, seconds, joint, **more):
        return {
            "who": who,
            "joint": joint,
            "raw": joint,
            "all_seconds": [seconds],
            "all_cpu": [seconds],
            "peak": 10**9,
            **more,
        }

    ours = row("counterfactual", 2.0, 0.76, curve=[(0.5, 0.70), (1.0, 0.74), (2.0, 0.76)])
    problem = {
        "objective": "disf",
        "ratio": 0.3,
        "lamb": 0.5,
        "n": 100,
        "dim": 8,
        "date": "2026-01-01",
        "repeats": 1,
        "load": [1.0, 2.0],
        "anchor": {"random": -2.0, "best": -1.0, "best_kind": "best found"},
        "seconds_anchors": 1.0,
        "machine": {
            "processor": "p",
            "torch_threads": 1,
            "graph_threads": 2,
            "python": "3",
            "torch": "2",
            "numpy": "2",
            "numba": "0",
        },
        "rows_of_table": [
            ours,
            row("reinforce", 1000.0, 0.72, extrapolated=True, note="stopped"),
            row("greedy", 200.0, 0.75),
        ],
    }
    said = " ".join(sentences(problem))
    assert "after 1.00 s" in said and "when it was stopped" in said
    assert "1,000 and 500 times as long, in CPU seconds of the whole 500 times" in said
    assert "Time saved against greedy: 99.00 %, 99.00 % of CPU" in said
    text = table({"corpus": "c", "problems": [problem]})
    assert "| reinforce | 0.720000 | 0.720000 |  | ~1,000 |" in text
    slower = {**problem, "rows_of_table": [{**ours, "curve": [(1.0, 0.5)]}, row("reinforce", 9.0, 0.72)]}
    assert "does not reach" in " ".join(sentences(slower))
