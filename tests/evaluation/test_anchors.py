"""A selection stands on the ends of its scale: whoever changes what is kept of them changes no selection."""

from __future__ import annotations

import itertools
import json
import shutil
from dataclasses import replace

import numpy as np
import pytest
import torch

import datamask
from datamask.config import SelectionConfig
from datamask.evaluation import anchors
from datamask.evaluation.anchors import diversity_anchor, diversity_best, stored_ends
from datamask.evaluation.pool import Pool
from datamask.learning import block_swaps, relaxation
from datamask.learning.moments import moments_of
from datamask.learning.newton import QuadraticDual
from datamask.learning.problem import Problem
from datamask.learning.solvers import solver_of
from datamask.objectives.disf_fixed import DiSFFixed
from datamask.objectives.joint import Joint, Term
from datamask.objectives.quality import Quality
from datamask.polling import no_poll
from tests.making.pools import made_corpus
from tests.making.raw_cache import RawCache
from tests.reference import truth

N, SIZE = 300, 60
OBJECTIVES = {"pairwise": "relaxed", "facility": "relaxed", "disf": "counterfactual"}


@pytest.fixture(scope="module")
def corpus():
    return made_corpus(N, 12)


def pool_of(corpus, folder):
    return Pool(corpus, torch.device("cpu"), folder)


def selected(corpus, name, folder):
    config = SelectionConfig.from_options(
        objective=name, lamb=0.5, select_ratio=SIZE / N, n_epochs=20, estimator=OBJECTIVES[name]
    )
    return datamask.select(corpus, config, cache_dir=folder).rows.tolist()


def ten_times(value, arrays):
    value["best"] = value["random"] + 10 * (value["best"] - value["random"])


def not_far(value, arrays):
    value["best"] = value["random"] + 0.5 * (value["best"] - value["random"])


def random_lower(value, arrays):
    value["random"] -= 3 * (value["best"] - value["random"])


def proved(value, arrays):
    value["best_kind"] = "proved"
    arrays["weights"] = np.unpackbits(arrays["mask"], count=N).astype(np.float64)
    value["best"] = value["random"] + 10 * (value["best"] - value["random"])


def another_subset(value, arrays):
    arrays["mask"] = np.packbits(np.arange(N) < SIZE)


@pytest.fixture(scope="module")
def straight(corpus, tmp_path_factory):
    """What is selected with nothing kept, and the folder with what was kept then: by objective."""
    folders = {name: tmp_path_factory.mktemp(name) for name in OBJECTIVES}
    return {name: (selected(corpus, name, folder), folder) for name, folder in folders.items()}


CHANGES = [ten_times, not_far, random_lower, proved, another_subset]


@pytest.mark.parametrize(
    "name, change",
    [
        *((name, change) for name in ("pairwise", "facility") for change in CHANGES),
        ("disf", ten_times),
        ("disf", proved),
    ],
)
def test_an_altered_anchor_changes_no_selection_even_where_its_digest_fits(corpus, straight, name, change, tmp_path):
    good, folder = straight[name]
    shutil.copytree(folder, tmp_path, dirs_exist_ok=True)
    cache, entry = RawCache(tmp_path), stored_ends(pool_of(corpus, tmp_path), name, SIZE).entry
    content = cache.find(entry, lambda content: content)
    first, value = dict(content.value), dict(content.value)
    change(value, content.arrays)
    assert cache.keep(entry, value, content.arrays)
    assert selected(corpus, name, tmp_path) == good
    assert cache.find(entry, lambda content: content.value) == first, "it was made anew"


@pytest.mark.parametrize("name", ["pairwise", "facility"])
def test_a_subset_that_is_not_the_best_is_not_taken_for_proved(corpus, straight, name, tmp_path):
    """Its value is its own, and so is the proof that is kept with it: nothing but the bound by that tells."""
    good, folder = straight[name]
    shutil.copytree(folder, tmp_path, dirs_exist_ok=True)
    pool, cache = pool_of(corpus, tmp_path), RawCache(tmp_path)
    entry = stored_ends(pool, name, SIZE).entry
    content = cache.find(entry, lambda content: content)
    members = np.unpackbits(content.arrays["mask"], count=N).astype(bool)
    exchanged = np.r_[np.flatnonzero(members)[:9], np.flatnonzero(~members)[:9]]
    members[exchanged] = ~members[exchanged]
    best = pool.function(name, SIZE).value(torch.from_numpy(members))
    share = (best - content.value["random"]) / (content.value["best"] - content.value["random"])
    assert 0.5 < share < 0.99, "worth more than a random subset, and clearly not the best"
    y = pool.features[torch.from_numpy(members)].double().sum(0).numpy()
    claimed = {"mask": np.packbits(members), "weights": members.astype(np.float64), "y": y}
    assert cache.keep(entry, {**content.value, "best": best, "best_kind": "proved"}, claimed)
    assert selected(corpus, name, tmp_path) == good
    assert cache.find(entry, lambda content: content.value) == content.value, "it was made anew"


@pytest.mark.parametrize("told", [{"best": 10.0}, {"best": float("nan")}, {"best_kind": "proved"}, {"random": -9.0}])
@pytest.mark.parametrize("name", ["pairwise", "facility"])
def test_an_anchor_from_before_is_made_anew(corpus, straight, name, told, tmp_path):
    good, folder = straight[name]
    anchor = diversity_anchor(pool_of(corpus, folder), name, SIZE)
    path = tmp_path / "before" / corpus.fingerprint / f"anchor-v3-{name}-{SIZE}.json"
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps({**anchor.to_dict(), **told}))
    np.save(path.with_suffix(".npy"), np.packbits(np.arange(N) < SIZE))
    assert selected(corpus, name, tmp_path / "before") == good


@pytest.mark.parametrize("tokens", [None, 3_000.0])
@pytest.mark.parametrize("name", ["pairwise", "facility", "disf_fixed", "disf"])
def test_what_is_kept_is_believed_and_not_searched_for_again(corpus, name, tokens, tmp_path, monkeypatch):
    first = pool_of(corpus, tmp_path)
    anchor, best = diversity_anchor(first, name, SIZE, budget=tokens), diversity_best(first, name, SIZE, budget=tokens)
    monkeypatch.setattr(anchors, "_best_end", lambda *args: pytest.fail("it was searched for again"))
    again = pool_of(corpus, tmp_path)
    assert stored_ends(again, name, SIZE, budget=tokens).find() is not None
    assert diversity_anchor(again, name, SIZE, budget=tokens) == anchor
    assert torch.equal(diversity_best(again, name, SIZE, budget=tokens), best)


def test_where_nothing_can_be_kept_the_search_is_done_once_for_a_pool(corpus, tmp_path, monkeypatch):
    (tmp_path / "file").write_text("in the way")
    searched, real = [], anchors._best_end
    monkeypatch.setattr(anchors, "_best_end", lambda *args: (searched.append(1), real(*args))[1])
    pool = pool_of(corpus, tmp_path / "file")
    diversity_anchor(pool, "pairwise", SIZE)
    diversity_best(pool, "pairwise", SIZE)
    assert len(searched) == 1


def test_an_approximate_graph_serves_the_same_anchor(tmp_path, monkeypatch):
    """Both its ends are values of listed pairs, so the best end can be checked to the digit."""
    from datamask.corpus import neighbors

    monkeypatch.setattr(neighbors, "LEAST_APPROXIMATE", 100)
    corpus = made_corpus(1200, 12)

    def rough():
        return Pool(corpus, torch.device("cpu"), tmp_path, neighbors="approximate")

    pool = rough()
    anchor = diversity_anchor(pool, "facility", 240)
    assert pool.graph_facts().approximate
    assert stored_ends(rough(), "facility", 240).find()[0] == anchor
    cache, entry = RawCache(tmp_path), stored_ends(pool, "facility", 240).entry
    content = cache.find(entry, lambda content: content)
    cache.keep(entry, {**content.value, "best": 10 * anchor.best}, content.arrays)
    assert stored_ends(rough(), "facility", 240).find() is None


def rows_of(kind, rng, n, d):
    """Features ``(n, d)`` that are hard in one way."""
    clusters = rng.normal(size=(8, d))[rng.integers(0, 8, n)] + rng.normal(size=(n, d))
    if kind == "copies":
        return np.repeat(clusters, 10, axis=0)[:n]
    if kind == "a common offset":
        return clusters + 30 * rng.normal(size=d)
    if kind == "constant features":
        return np.c_[clusters[:, : d // 2], np.full((n, d - d // 2), 5.0)]
    if kind == "nearly the same":
        return np.ones((n, d)) + 1e-4 * clusters
    return np.ones((n, d)) if kind == "the same" else clusters


def unit(x):
    return x / np.linalg.norm(x, axis=1, keepdims=True)


def pool_of_rows(x, folder, center=False):
    features = unit(x).astype(np.float32)
    features.flags.writeable = False
    return Pool(replace(made_corpus(len(x), x.shape[1]), features=features), torch.device("cpu"), folder, center=center)


KINDS = ["clusters", "copies", "a common offset", "constant features", "nearly the same", "the same"]


@pytest.mark.parametrize(
    ("kind", "center", "n", "d", "size"),
    [
        *((kind, False, *shape) for kind in KINDS for shape in ((300, 8, 2), (600, 32, 20))),
        *((kind, center, 1_500, 16, 300) for kind in ("clusters", "a common offset") for center in (False, True)),
        *((kind, False, 300, 8, 299) for kind in ("clusters", "copies")),
    ],
)
def test_the_dual_finds_no_lower_end_than_weights_and_swaps(kind, n, d, size, center, tmp_path):
    """Pair-wise similarity, against the search that its ends came from before: within a millionth of the scale."""
    pool = pool_of_rows(rows_of(kind, np.random.default_rng([n, size]), n, d), tmp_path, center)
    function = pool.function("pairwise", size)
    problem = anchors._alone(pool, function, size, None)
    random = anchors._random_end(problem, no_poll)
    before = function.value(anchors._by_weights(problem, function, random, no_poll, lambda share: None).mask)
    end = anchors._best_end(problem, function, random, no_poll, lambda share: None)
    best = function.value(end.mask)
    assert int(end.mask.sum()) == size and best >= before - 1e-6 * abs(before - random)
    assert end.bound >= max(best, before) - 1e-12 and list(end.proof) == ["y"]
    assert end.bound == QuadraticDual(problem).upper_bound(end.proof["y"])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("d", [4, 16])
@pytest.mark.parametrize(("name", "many"), [("pairwise", True), ("disf_fixed", False), ("disf_fixed", True)])
def test_nor_does_that_of_many_rows(name, many, kind, d, tmp_path, monkeypatch):
    """Within the gap that counts as none; of some corpora weighted rows add up to nothing."""
    monkeypatch.setattr(relaxation, "MOST_STARTS", 0)
    pool = pool_of_rows(rows_of(kind, np.random.default_rng(d), 1_500, d), tmp_path)
    function = pool.function(name, 300)
    problem = anchors._alone(pool, function, 300, None)
    if many:
        monkeypatch.setattr(type(moments_of(function)), "many_rows", 1_000)
        monkeypatch.setattr(type(moments_of(function)), "pilot_rows", 700)
    assert solver_of(problem).dual is QuadraticDual
    random = anchors._random_end(problem, no_poll)
    before = function.value(anchors._by_weights(problem, function, random, no_poll, lambda share: None).mask)
    end = anchors._best_end(problem, function, random, no_poll, lambda share: None)
    best = function.value(end.mask)
    assert int(end.mask.sum()) == 300 and best >= before - 1e-4 * abs(before - random)
    assert end.bound >= max(best, before) - 1e-12 and list(end.proof) == ["y"]
    assert diversity_anchor(pool, name, 300) == diversity_anchor(pool, name, 300)


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("kind", ["clusters", "a common offset"])
def test_of_few_rows_the_end_is_below_no_subset_that_it_is_proved_for(kind, seed, tmp_path):
    rng = np.random.default_rng([seed, 5])
    n = int(rng.integers(7, 11))
    size = int(rng.integers(2, n))
    x = unit(rows_of(kind, rng, n, 3))
    values = [truth.pairwise(x, members) for members in itertools.combinations(range(n), size)]
    pool = pool_of_rows(x, tmp_path)
    function = pool.function("pairwise", size)
    problem = anchors._alone(pool, function, size, None)
    random = anchors._random_end(problem, no_poll)
    end = anchors._best_end(problem, function, random, no_poll, lambda share: None)
    scale = max(values) - float(np.mean(values))
    assert random == pytest.approx(np.mean(values), abs=1e-5 * scale)
    assert end.bound >= max(values) - 1e-9 * scale
    anchor = diversity_anchor(pool, "pairwise", size)
    assert anchor.best <= max(values) + 1e-6 * scale
    if anchor.best_kind == "proved":
        assert anchor.best >= max(values) - 2e-4 * scale


def test_where_members_add_up_to_nothing_there_is_nothing_to_search(tmp_path, monkeypatch):
    """Clusters in all directions: some S rows have the least mean cosine that S rows can have."""
    monkeypatch.setattr(QuadraticDual, "advance", lambda *args: pytest.fail("the dual has no slope to follow"))
    pool = pool_of_rows(rows_of("clusters", np.random.default_rng(1), 4_000, 4), tmp_path)
    anchor = diversity_anchor(pool, "pairwise", 800)
    assert anchor.best_kind == "proved" and anchor.best == pytest.approx(1 / 799, abs=1e-6)


@pytest.fixture(scope="module")
def kept_proof(tmp_path_factory):
    """A pool of 2,000 rows whose anchor for 500 of them is proved, and kept."""
    folder = tmp_path_factory.mktemp("kept")
    pool = pool_of_rows(rows_of("a common offset", np.random.default_rng(2), 2_000, 4), folder)
    assert diversity_anchor(pool, "pairwise", 500).best_kind == "proved"
    return pool


def test_a_kept_proof_of_pairwise_takes_a_number_per_dimension(kept_proof):
    arrays = RawCache(kept_proof.cache_dir).find(
        stored_ends(kept_proof, "pairwise", 500).entry, lambda content: content.arrays
    )
    assert set(arrays) == {"mask", "y"} and arrays["y"].shape == (4,)
    assert stored_ends(kept_proof, "pairwise", 500).find() is not None


@pytest.mark.parametrize("y", [np.zeros(3), np.zeros(4, np.float32), np.full(4, np.nan), np.full(4, 1e9), None])
def test_a_y_that_proves_nothing_is_not_believed(kept_proof, y, tmp_path):
    shutil.copytree(kept_proof.cache_dir, tmp_path, dirs_exist_ok=True)
    pool = Pool(kept_proof.corpus, torch.device("cpu"), tmp_path)
    cache, entry = RawCache(tmp_path), stored_ends(pool, "pairwise", 500).entry
    content = cache.find(entry, lambda content: content)
    arrays = {name: array for name, array in content.arrays.items() if name != "y"}
    assert cache.keep(entry, content.value, arrays if y is None else {**arrays, "y": y})
    assert stored_ends(pool, "pairwise", 500).find() is None


def _heavy(rng, rows, dim):
    return rng.standard_t(2, size=(rows, dim))


def _offset(rng, rows, dim):
    return rng.normal(size=(rows, dim)) + 3 * rng.normal(size=dim)


def _clustered(rng, rows, dim):
    return rng.normal(size=(5, dim))[rng.integers(0, 5, rows)] + 0.3 * rng.normal(size=(rows, dim))


MADE = [_heavy, _offset, _clustered]


def disf_fixed_of(features):
    """The objective alone on such features; its problems by size."""
    units = features / np.linalg.norm(features, axis=1, keepdims=True)
    function = DiSFFixed.bind(torch.from_numpy(units.astype(np.float32)))
    n = len(features)
    joint = Joint(Quality(torch.zeros(n)), (Term("reference", 1.0, function),), 0.0)
    return function, lambda size: Problem(joint, size, torch.arange(n), torch.arange(n))


def best_end(function, problem):
    random = anchors._random_end(problem, no_poll)
    return random, function.value(anchors._best_end(problem, function, random, no_poll, lambda share: None).mask)


@pytest.mark.parametrize("made", MADE)
def test_the_best_end_of_disf_fixed_is_the_best_there_is(made):
    """Of few rows, where all subsets can be tried."""
    rng = np.random.default_rng(4)
    for _ in range(12):
        n, dim = int(rng.integers(9, 14)), int(rng.integers(3, 9))
        function, of_size = disf_fixed_of(made(rng, n, dim))
        size = int(rng.integers(2, 7))
        random, found = best_end(function, of_size(size))
        y = function.y.double()
        kernel = function.kernel(y, y).numpy()
        least = min(kernel[np.ix_(each, each)].sum() for each in itertools.combinations(range(n), size))
        best = -least / (size * size * function.pairs)
        assert best - found <= 1e-6 * (best - random)


@pytest.mark.parametrize("size", [20, 400])
@pytest.mark.parametrize("made", MADE)
def test_the_best_end_of_disf_fixed_is_no_lower_than_by_random_blocks_alone(made, size, monkeypatch):
    """How it was found before: from one start, and by blocks of random rows."""
    function, of_size = disf_fixed_of(made(np.random.default_rng(5), 1500, 24))
    random, found = best_end(function, of_size(size))
    monkeypatch.setattr(block_swaps, "ROUNDS", 0)
    monkeypatch.setattr(relaxation, "MOST_STARTS", 0)
    before = best_end(function, of_size(size))[1]
    assert found >= before - 1e-6 * (before - random)
    assert size > 20 or found > before
