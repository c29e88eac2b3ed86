"""The near-copy rate against size: really subsampled, really enlarged, and where the law must not be believed."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from datamask.corpus.copies import ROUNDING
from datamask.corpus.copy_growth import COSINES, CopyGrowth, Law, copy_counts, copy_growth, rate_within
from datamask.corpus.neighbors import NeighborGraph, build_neighbors
from datamask.errors import OptionError

D = 24


def population(seed: int, n: int, kind: str) -> np.ndarray:
    """Rows in clusters of near-copies whose sizes have a law of their own, in random order: float32 ``(n, D)``."""
    rng = np.random.default_rng([seed, 7])
    sizes = {
        "zipf": lambda: np.minimum(rng.zipf(1.7, n), 300),
        "geometric": lambda: rng.geometric(0.15, n),
        "half alone": lambda: 1 + 7 * (rng.random(n) < 0.5),
    }[kind]()
    cluster = np.searchsorted(np.cumsum(sizes), np.arange(n), side="right")
    centres = rng.normal(size=(cluster.max() + 1, D))
    centres /= np.linalg.norm(centres, axis=1, keepdims=True)
    rows = centres[cluster] + 0.24 * rng.random((n, 1)) * rng.normal(size=(n, D)) / np.sqrt(D)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    return rows[rng.permutation(n)].astype(np.float32)


def brute_rate(x: np.ndarray, cosine: float = 0.95) -> float:
    """The share of rows that have another at this cosine, over all pairs in float64."""
    x = x.astype(np.float64)
    near = np.zeros(len(x), bool)
    for low in range(0, len(x), 500):
        products = x[low : low + 500] @ x.T
        products[np.arange(len(products)), low + np.arange(len(products))] = -1.0
        near[low : low + 500] = products.max(1) >= cosine - ROUNDING
    return float(near.mean())


def test_small_corpora_by_all_their_subsamples():
    """Every subsample of 1 to 9 of 9 rows, counted: the mean rate is exact."""
    x = population(3, 9, "geometric")
    graph = build_neighbors(x, 9)
    held = np.bincount(copy_counts(graph, 0.95), minlength=9)
    assert held[1:].any()
    near = x.astype(float) @ x.T.astype(float) >= 0.95 - ROUNDING
    np.fill_diagonal(near, False)
    for rows in range(1, 10):
        rates = [near[np.ix_(part, part)].any(1).mean() for part in itertools.combinations(range(9), rows)]
        assert rate_within(held, rows) == pytest.approx(np.mean(rates), abs=1e-12)


@pytest.mark.parametrize("kind", ["zipf", "geometric", "half alone"])
@pytest.mark.parametrize("rows", [100, 400, 1200])
def test_subsamples_with_a_graph_of_their_own_have_that_rate_on_average(kind, rows):
    x = population(1, 1600, kind)
    growth = copy_growth(build_neighbors(x, 64))
    assert growth.now == pytest.approx(brute_rate(x), abs=1e-12)
    rng = np.random.default_rng(0)
    rates = []
    for _ in range(40):
        graph = build_neighbors(x[np.sort(rng.choice(1600, rows, replace=False))], 2)
        rates.append((graph.similarities[:, 1] >= 0.95 - ROUNDING).mean())
    noise = np.std(rates) / np.sqrt(len(rates))
    assert abs(np.mean(rates) - growth.within(rows)) < 4 * noise + 1e-3


@pytest.mark.parametrize("kind", ["zipf", "geometric"])
def test_larger_corpora_have_the_rate_that_was_foretold(kind):
    """Of twelve populations, rates at two and four times the size lie in the 90 % interval of most."""
    inside = {2: 0, 4: 0}
    for seed in range(12):
        x = population(seed, 3200, kind)
        growth = copy_growth(build_neighbors(x[:800], 32), seed=seed)
        for times in inside:
            value, low, high = growth.beyond(times)
            assert low <= value <= high and value >= growth.now - 1e-12
            inside[times] += low - 1e-9 <= brute_rate(x[: 800 * times]) <= high + 1e-9
    assert inside[2] >= 9 and inside[4] >= 9


def test_rows_that_never_have_a_copy_make_it_foretell_too_much():
    """Half of the clusters are one row for ever; the documentation says so, and this is how much."""
    x = population(0, 8000, "half alone")
    growth = copy_growth(build_neighbors(x[:1000], 32))
    value, low, _ = growth.beyond(8)
    assert low > brute_rate(x) and value > 0.95
    assert any("times as large" in doubt for doubt in growth.doubts(8))


def test_the_law_has_the_slope_and_bend_of_the_counts():
    law = Law.of(0.6, 0.12, 0.05)
    step = 1e-4
    alone = 1 - law.rate(1 + step * np.array([0.0, 1.0, 2.0]))
    assert alone[0] == pytest.approx(0.6)
    assert (alone[1] - alone[0]) / step == pytest.approx(-0.12, rel=1e-3)
    assert (alone[2] - 2 * alone[1] + alone[0]) / step**2 == pytest.approx(2 * 0.05, rel=1e-2)
    # gamma rates of shape a and scale b: x = b / (1 + b), and no-copy shares are Laplace transforms of them
    a, b = 0.7, 0.4
    none = (1 + b) ** -a
    gamma = Law.of(none, none * a * b / (1 + b), none * a * (a + 1) / 2 * (b / (1 + b)) ** 2)
    assert gamma.x == pytest.approx(b / (1 + b))
    assert gamma.rate(np.array([1.0, 3.0, 50.0])) == pytest.approx(1 - (1 + b * np.array([1.0, 3.0, 50.0])) ** -a)


@pytest.mark.parametrize(
    "counts", [(0.0, 0.0, 0.0), (1.0, 0.0, 0.0), (0.5, 0.5, 0.0), (0.1, 0.2, 0.7), (0.9, 0.0, 0.1)]
)
def test_laws_of_odd_counts_stay_rates(counts):
    rates = Law.of(*counts).rate(np.geomspace(1, 1e6, 50))
    assert np.isfinite(rates).all() and (np.diff(rates) >= -1e-15).all() and rates[0] == pytest.approx(1 - counts[0])
    assert (rates <= 1).all()


def test_the_suggested_cosine_collapses_as_small_a_share_of_more():
    x = population(2, 3200, "geometric")
    growth = copy_growth(build_neighbors(x[:800], 32))
    cosine = growth.suggested(4)
    assert cosine is not None and growth.cosine < cosine <= COSINES[-1]
    assert brute_rate(x, cosine) == pytest.approx(growth.now, abs=0.06)
    assert growth.suggested(1.0) == pytest.approx(growth.cosine)
    exact = np.repeat(population(4, 100, "half alone"), 2, axis=0)
    # every row has its copy already: no cosine changes that, and none is needed
    assert copy_growth(build_neighbors(exact, 16)).suggested(4) == pytest.approx(0.95)


@pytest.mark.parametrize("cosine", [0.5, 0.65, 0.79, 0.855, 0.952, 0.995])
def test_the_suggestion_starts_from_the_own_law_of_any_cosine(cosine):
    x = population(2, 3200, "geometric")
    graph = build_neighbors(x[:800], 32)
    growth = copy_growth(graph, cosine)
    assert growth.suggested(1.0) == pytest.approx(cosine)
    suggested = growth.suggested(2)
    if suggested is None:
        assert float(copy_growth(graph, max(cosine, COSINES[-1])).law.rate(2)) > growth.now
        return
    assert suggested >= cosine
    # no larger a rate than now, to what the straight line between two cosines tried is off
    assert float(copy_growth(graph, suggested).law.rate(2)) <= growth.now + 0.02


def test_doubts_and_refusals():
    rng = np.random.default_rng(0)
    apart = rng.normal(size=(100, 64))
    graph = build_neighbors((apart / np.linalg.norm(apart, axis=1, keepdims=True)).astype(np.float32), 8)
    growth = copy_growth(graph)
    assert growth.now == 0 and growth.beyond(4) == (0.0, 0.0, 0.0)
    assert "too few for a" in growth.doubts(2)[0]
    rough = NeighborGraph(graph.indices, graph.similarities, False, 0.98)
    assert any("recall 98.0%" in doubt for doubt in copy_growth(rough).doubts(2))
    with pytest.raises(OptionError, match="at least 4 entries, got 3"):
        copy_growth(graph.first(3))
    for cosine in (0.0, 1.5, float("nan")):
        with pytest.raises(OptionError, match="--cosine must be above 0"):
            copy_growth(graph, cosine)
    for rows in (0, 101):
        with pytest.raises(OptionError, match="from 1 to the 100"):
            growth.within(rows)


def test_where_the_half_foretells_another_whole_it_is_said():
    counts = np.array([500, 300, 200, 0, 0])
    law = Law.of(*(counts[:3] / 1000))
    drawn = np.array([[law.start, law.slope, law.x]])
    trusted = CopyGrowth(1000, 0.95, counts, law, drawn, (law,) * len(COSINES), 1.0, 0.5)
    assert trusted.doubts(2) == []
    wrong = CopyGrowth(1000, 0.95, counts, law, drawn, (law,) * len(COSINES), 1.0, 0.7)
    assert "half of the corpus projects 70.0% for all of it, which has 50.0%" in wrong.doubts(2)[0]


def test_a_cosine_below_those_tried_is_not_advised_where_its_own_law_grows():
    law, none = Law.of(0.5, 0.2, 0.1), Law.of(1.0, 0.0, 0.0)
    held = np.array([50, 20, 10, 20])
    growth = CopyGrowth(100, 0.65, held, law, np.zeros((1, 3)), (none,) * len(COSINES), 1.0, 0.5)
    assert float(law.rate(4)) > growth.now
    suggested = growth.suggested(4)
    # on the line from the own law's rate at 0.65 to none at 0.80
    assert suggested == pytest.approx(0.65 + 0.15 * (1 - growth.now / float(law.rate(4))))
