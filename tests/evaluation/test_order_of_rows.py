"""`disf` and `facility` select the same ids in any order of the rows."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from datamask import select
from datamask.config import Quota
from tests.making.pools import corpus_of

N = 400


def corpus(order, copies):
    rng = np.random.default_rng(3)
    features, quality, domain = rng.normal(size=(N, 6)), rng.normal(size=N), rng.integers(0, 2, N)
    if copies:
        which = rng.integers(0, N // 3, N)
        features, quality = features[which], quality[which]
    lengths, ids = rng.integers(5, 50, N).astype(float), np.array([f"row-{row}" for row in range(N)])
    domain = np.array(["a", "b"])[domain]
    made = corpus_of(features[order], quality[order], lengths=lengths[order], domain=domain[order].tolist())
    return replace(made, ids=pa.array(ids[order]))


@pytest.mark.parametrize("copies", [False, True], ids=["all different", "copies"])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"lamb": 1.0},
        {"seed": 5, "polish": "none"},
        {"estimator": "reinforce", "n_epochs": 30},
        {"estimator": "greedy"},
        {"estimator": "random"},
        {"prune": 0.1, "quotas": (Quota("domain", "a", 0.2, 0.4),)},
        {"budget": 2_000.0},
    ],
    ids=str,
)
def test_disf_selects_the_same_ids_in_any_order_of_the_rows(options, copies, tmp_path):
    if "budget" not in options:
        options = {"select_ratio": 0.2, **options}
    found = []
    for name, order in (("as made", np.arange(N)), ("shuffled", np.random.default_rng(4).permutation(N))):
        rows = corpus(order, copies)
        selection = select(rows, objective="disf", device="cpu", cache_dir=tmp_path / name, **options)
        found.append((set(rows.ids.take(selection.rows).to_pylist()), selection.summary["anchors"]["diversity"]))
    assert found[0] == found[1]


@pytest.mark.parametrize("options", [{}, {"neighbors": "approximate"}, {"lamb": 0.0, "budget": 2_000.0}], ids=str)
def test_facility_selects_the_same_ids_in_any_order_of_the_rows(options, tmp_path, monkeypatch):
    monkeypatch.setattr("datamask.corpus.neighbors.LEAST_APPROXIMATE", 100)
    found = []
    for name, order in (("as made", np.arange(N)), ("shuffled", np.random.default_rng(4).permutation(N))):
        rows = corpus(order, copies=False)
        selection = select(rows, objective="facility", device="cpu", cache_dir=tmp_path / name, **options)
        found.append(set(rows.ids.take(selection.rows).to_pylist()))
    assert found[0] == found[1]
