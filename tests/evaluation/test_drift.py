"""Drift against scipy and means by hand."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from scipy.spatial.distance import jensenshannon

from datamask.evaluation.measures.drift import domains, js_distance
from tests.making.pools import corpus_of, entry, ground_of, made_corpus


def measured(ground, name: str, rows) -> dict:
    return {found.name: found.readings["it"] for found in entry(name).measure(ground, {"it": rows}, entry(name))}


def test_distance_is_scipys(rng):
    for _ in range(20):
        first, second = rng.dirichlet(np.full(6, 0.3), 2)
        first[rng.integers(6)] = 0.0
        first /= first.sum()
        assert js_distance(first, second) == pytest.approx(jensenshannon(first, second, base=2), abs=1e-12)
    assert js_distance(second, second) == 0.0
    assert js_distance(np.array([1.0, 0.0]), np.array([0.0, 1.0])) == pytest.approx(1.0)
    many = rng.dirichlet(np.ones(5), 30)
    target = rng.dirichlet(np.ones(5))
    assert js_distance(many, target) == pytest.approx([jensenshannon(row, target, base=2) for row in many], abs=1e-12)


def test_domains_levels_and_changes(tmp_path, rng):
    kinds = np.array(["a", "b", None, "c"], object)[rng.choice(4, 400, p=[0.5, 0.2, 0.1, 0.2])]
    corpus = corpus_of(
        rng.normal(size=(400, 3)),
        domain=pa.array(kinds, pa.string()),
        flag=pa.array(kinds == "a"),
        name=pa.array([f"n{i}" for i in range(400)]),
        same=pa.array(["x"] * 400),
    )
    ground = ground_of(corpus, tmp_path)
    assert [name for name, _, _ in domains(corpus)] == ["domain", "flag"]
    rows = np.flatnonzero(kinds == "a")[:30].tolist() + np.flatnonzero(kinds == "b")[:10].tolist()
    found = measured(ground, "domain", np.array(rows))
    assert set(found) == {"domain:domain", "domain:flag"}
    levels = {level["level"]: level for level in found["domain:domain"].extra["levels"]}
    assert set(levels) == {"a", "b", "c", "(none)"}
    for name, count in (("a", 30), ("b", 10), ("c", 0), ("(none)", 0)):
        pool = np.mean([(kind or "(none)") == name for kind in kinds])
        assert levels[name]["n"] == count and levels[name]["share"] == count / 40
        assert levels[name]["pool_share"] == pytest.approx(pool)
        assert levels[name]["change"] == pytest.approx(count / 40 - pool)
    # the reach of a share is that of a proportion of 40
    assert levels["a"]["reach"] == pytest.approx(1.96 * np.sqrt(0.75 * 0.25 / 40), rel=0.15)
    order = list(levels)
    expected = jensenshannon([levels[k]["share"] for k in order], [levels[k]["pool_share"] for k in order], base=2)
    assert found["domain:domain"].value == pytest.approx(expected, abs=1e-12)


def test_numbers_drift_in_standard_deviations_of_the_corpus(tmp_path, rng):
    sizes = rng.exponential(100, 500)
    with_nulls = pa.array([None if i % 5 == 0 else float(i) for i in range(500)])
    corpus = corpus_of(
        rng.normal(size=(500, 3)),
        rng.normal(size=500),
        lengths=sizes,
        year=with_nulls,
        same=pa.array(np.ones(500)),
        text=pa.array(["a b"] * 500),
    )
    rows = np.argsort(sizes)[-100:]
    found = measured(ground_of(corpus, tmp_path), "drift", rows)
    assert set(found) == {"drift:quality", "drift:tokens", "drift:year"}
    assert found["drift:tokens"].value == pytest.approx((sizes[rows].mean() - sizes.mean()) / sizes.std())
    known = np.array([i for i in range(500) if i % 5], float)
    kept = rows[rows % 5 != 0]
    assert found["drift:year"].value == pytest.approx((kept.mean() - known.mean()) / known.std())


def test_a_random_selection_drifts_by_no_more_than_chance(tmp_path):
    """The intervals of the standardised means hold 0 for 95 % of random selections."""
    ground = ground_of(made_corpus(2_000, texts=False), tmp_path)
    hits = []
    for seed in range(100):
        rows = np.random.default_rng(seed).choice(2_000, 200, replace=False)
        low, high = measured(ground, "drift", rows)["drift:tokens"].interval
        hits.append(low <= 0 <= high)
    assert np.mean(hits) >= 0.88
