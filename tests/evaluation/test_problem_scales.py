"""A problem whose scales are no finite numbers is refused in one sentence, before anything is learned."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from datamask import objectives, select
from datamask.errors import InputError, Stopped
from datamask.evaluation.pool import Pool
from datamask.work.ledger import Ledger
from tests.making.control_groups import own_ledger
from tests.making.pools import corpus_of

N = 12


@pytest.mark.parametrize("estimator", ["greedy", "counterfactual", "relaxed", "random"])
def test_qualities_that_cannot_be_added_up(estimator, tmp_path):
    rng = np.random.default_rng(0)
    corpus = corpus_of(rng.normal(size=(N, 3)), np.r_[1e308, 1e308, rng.normal(size=N - 2)])
    with pytest.raises(InputError, match=r"quality scores must add up to finite numbers.*rescale the column"):
        select(corpus, estimator=estimator, select_ratio=0.5, cache_dir=tmp_path)


@pytest.mark.parametrize("name", ["disf", "disf_fixed"])
def test_more_dimensions_than_fit_are_refused_before_memory_is_asked_for(name, tmp_path, monkeypatch):
    corpus = corpus_of(np.random.default_rng(0).normal(size=(N, 60)), np.arange(float(N)))
    needed = objectives.load(name).working_bytes(N, 60)
    own_ledger(monkeypatch, Ledger(lambda: needed))
    select(corpus, objective=name, select_ratio=0.5, cache_dir=tmp_path)
    own_ledger(monkeypatch, Ledger(lambda: needed - 1))
    with pytest.raises(InputError) as refusal:
        select(corpus, objective=name, select_ratio=0.5, cache_dir=tmp_path)
    sentence = str(refusal.value)
    assert all(part in sentence for part in (repr(name), "60 dimensions", "KiB", "another --objective", "fewer dim"))
    own_ledger(monkeypatch, Ledger(lambda: 1))
    select(corpus, objective="pairwise", select_ratio=0.5, cache_dir=tmp_path)


def test_one_large_quality_is_a_quality_like_others(tmp_path):
    rng = np.random.default_rng(0)
    corpus = corpus_of(rng.normal(size=(N, 3)), np.r_[1e300, rng.normal(size=N - 1)])
    selection = select(corpus, estimator="counterfactual", lamb=0.9, select_ratio=0.5, cache_dir=tmp_path)
    assert 0 in selection.rows and np.isfinite(selection.score).all()


def test_an_objective_whose_lists_are_not_built_holds_no_memory(tmp_path, monkeypatch):
    corpus = corpus_of(np.random.default_rng(0).normal(size=(N, 3)), np.arange(float(N)))
    ledger = Ledger(lambda: 1 << 30)
    own_ledger(monkeypatch, ledger)
    monkeypatch.setattr(objectives.load("facility"), "working_bytes", classmethod(lambda cls, n, d: 1 << 20))
    pool = Pool(corpus, torch.device("cpu"), tmp_path)
    monkeypatch.setattr(pool, "graph", lambda k: (_ for _ in ()).throw(Stopped("stopped")))
    with pytest.raises(Stopped) as kept:
        pool.function("facility", 3)
    assert ledger.free() == 1 << 30 and kept.tb is not None
