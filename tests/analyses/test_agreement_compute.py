"""Agreement: the parts' neighbour lists against a dense search, and what is stable against what is not."""

from __future__ import annotations

import sys
import types
from typing import ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch

from datamask import catalogue
from datamask.analyses.scoreboard.compute.agreement import RESAMPLES, agreement, lists_within
from datamask.config import CorpusConfig, SelectionConfig
from datamask.corpus import open_corpus
from datamask.dashboard.linked.settled_rows import PARTS, agreed
from datamask.errors import OptionError, Stopped
from datamask.evaluation.pool import Pool
from datamask.objectives import own
from datamask.objectives.pairwise import Pairwise
from datamask.work.context import Work
from tests.making.pools import corpus_of, made_corpus


def pool_of(corpus, folder):
    return Pool(corpus, torch.device("cpu"), folder)


def test_lists_within_are_the_true_nearest_of_the_part(tmp_path):
    corpus = made_corpus(300, texts=False)
    graph = pool_of(corpus, tmp_path).graph(40)
    rows = np.sort(np.random.default_rng(1).choice(300, 240, replace=False))
    indices, similarities = lists_within(graph.indices, graph.similarities, rows)
    x = corpus.features[rows].astype(np.float64)
    truth = np.sort(x @ x.T, axis=1)[:, ::-1][:, : indices.shape[1]]
    assert indices.shape[1] >= 16 and (indices[:, 0] == np.arange(240)).all()
    # lists are in the order of rounded rows
    assert similarities == pytest.approx(truth, abs=5e-4)


@pytest.mark.parametrize("objective", ["pairwise", "facility"])
def test_clear_cases_are_core_and_even_ones_are_flips(tmp_path, objective):
    # quality alone: a fifth is clearly best, the rest is one value, so that ties are cut by each part's own hash
    rng = np.random.default_rng(0)
    quality = np.r_[np.full(100, 5.0) + rng.normal(size=100), np.zeros(400)]
    assert RESAMPLES == PARTS, "what a page says that it counts"
    pool = pool_of(corpus_of(rng.normal(size=(500, 8)), quality), tmp_path)
    config = SelectionConfig.from_options(objective=objective, estimator="top-quality", select_ratio=0.6, lamb=1.0)
    appeared, selected = agreement(pool, config, resamples=30)
    assert appeared.mean() == pytest.approx(24) and (selected <= appeared).all()
    found = agreed(appeared, selected, quality > 0)
    assert found.core[:100].all()
    # 240 of 400 in a part are selected: 80 of its 100 best, and half of the 320 level ones
    assert found.share[100:].mean() == pytest.approx(0.5, abs=0.02)
    assert found.flips[100:].mean() > 0.9 and not found.flips[:100].any()


def test_a_learner_with_an_optimum_agrees_with_itself(tmp_path):
    pool = pool_of(made_corpus(400, texts=False), tmp_path)
    config = SelectionConfig.from_options(
        objective="facility", estimator="counterfactual", select_ratio=0.2, n_epochs=10, lamb=0.7
    )
    seen = []
    appeared, selected = agreement(pool, config, Work(report=lambda share, what: seen.append(share)), resamples=5)
    assert seen[0] == 0 and seen[-1] == 1 and sorted(seen) == seen
    assert selected.sum() == 5 * round(0.2 * 320)
    # by chance hardly a row would be in at least 90 % of the parts that hold it
    assert agreed(appeared, selected, selected > 0).core.sum() > 0.3 * 0.2 * 400


@pytest.mark.parametrize("estimator", [entry.name for entry in catalogue.ESTIMATORS if not entry.learns])
def test_every_baseline_selects_from_parts(tmp_path, estimator):
    rng = np.random.default_rng(4)
    table = {"id": np.arange(90), "edu": rng.normal(size=90), "web": rng.normal(size=90)}
    pq.write_table(pa.table({**table, "v": list(rng.normal(size=(90, 4)))}), tmp_path / "in.parquet")
    corpus = open_corpus(CorpusConfig((str(tmp_path / "in.parquet"),), quality_columns=("edu:1:z", "web:1:z")))
    config = SelectionConfig.from_options(objective="pairwise", estimator=estimator, select_ratio=0.25)
    appeared, selected = agreement(pool_of(corpus, tmp_path), config, resamples=2)
    assert selected.sum() == 2 * round(0.25 * 72) and (selected <= appeared).all()


class Listed(Pairwise):
    """An objective of somebody's own that wants neighbour lists, and keeps them under no name that we know."""

    needs_neighbors = True
    lengths: ClassVar[list[tuple[int, int]]]

    @classmethod
    def bind(cls, features, lists=None, exact_lists=True):
        cls.lengths.append(tuple(lists[0].shape))
        return super().bind(features)


def test_an_objective_of_ones_own_gets_the_lists_of_each_part(tmp_path, monkeypatch):
    monkeypatch.setattr(own, "_permitted", set())
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.setitem(sys.modules, "listed", types.SimpleNamespace(Listed=Listed))
    Listed.lengths = []
    own.permit("listed:Listed")
    pool = pool_of(made_corpus(300, texts=False), tmp_path)
    config = SelectionConfig.from_options(
        objective="listed:Listed", estimator="counterfactual", select_ratio=0.2, n_epochs=2
    )
    _, selected = agreement(pool, config, resamples=3)
    assert selected.sum() == 3 * round(0.2 * 240)
    assert Listed.lengths[0] == (300, 64)
    assert [rows for rows, _ in Listed.lengths[1:]] == [240] * 3 and all(k > 16 for _, k in Listed.lengths)


def test_it_refuses_rules_and_stops(tmp_path):
    pool = pool_of(made_corpus(100, texts=False), tmp_path)
    (tmp_path / "pin.txt").write_text("1")
    config = SelectionConfig.from_options(objective="pairwise", pin=str(tmp_path / "pin.txt"))
    with pytest.raises(OptionError, match="agreement"):
        agreement(pool, config)

    def stop():
        raise Stopped("now")

    with pytest.raises(Stopped):
        agreement(pool, SelectionConfig.from_options(objective="pairwise"), Work(stop))
