"""A selection stands on the ends of its scale: whoever changes what is kept of them changes no selection."""

from __future__ import annotations

import json
import shutil

import numpy as np
import pytest
import torch

import datamask
from datamask.config import SelectionConfig
from datamask.evaluation import anchors
from datamask.evaluation.anchors import anchor_entry, diversity_anchor, diversity_best, kept_ends
from datamask.evaluation.pool import Pool
from datamask.work.cache import Cache
from tests.evaluation.made import made_corpus

N, SIZE = 300, 60
OBJECTIVES = {"pairwise": "relaxed", "facility": "relaxed", "graphcut": "counterfactual", "disf": "counterfactual"}


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
        ("graphcut", ten_times),
        ("disf", proved),
    ],
)
def test_an_altered_anchor_changes_no_selection_even_where_its_digest_fits(corpus, straight, name, change, tmp_path):
    good, folder = straight[name]
    shutil.copytree(folder, tmp_path, dirs_exist_ok=True)
    cache, entry = Cache(tmp_path), anchor_entry(pool_of(corpus, tmp_path), name, SIZE)
    content = cache.find(entry, lambda content: content)
    first, value = dict(content.value), dict(content.value)
    change(value, content.arrays)
    assert cache.keep(entry, value, content.arrays)
    assert selected(corpus, name, tmp_path) == good
    assert cache.find(entry, lambda content: content.value) == first, "it was made anew"


@pytest.mark.parametrize("name", ["pairwise", "facility"])
def test_a_subset_that_is_not_the_best_is_not_taken_for_proved(corpus, straight, name, tmp_path):
    """Its value is its own, and so are the weights beside it: nothing but the bound at these tells."""
    good, folder = straight[name]
    shutil.copytree(folder, tmp_path, dirs_exist_ok=True)
    pool, cache = pool_of(corpus, tmp_path), Cache(tmp_path)
    entry = anchor_entry(pool, name, SIZE)
    content = cache.find(entry, lambda content: content)
    members = np.unpackbits(content.arrays["mask"], count=N).astype(bool)
    exchanged = np.r_[np.flatnonzero(members)[:9], np.flatnonzero(~members)[:9]]
    members[exchanged] = ~members[exchanged]
    best = pool.function(name, SIZE).value(torch.from_numpy(members))
    share = (best - content.value["random"]) / (content.value["best"] - content.value["random"])
    assert 0.5 < share < 0.99, "worth more than a random subset, and clearly not the best"
    claimed = {"mask": np.packbits(members), "weights": members.astype(np.float64)}
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
    assert not path.exists() and not path.with_suffix(".npy").exists()


@pytest.mark.parametrize("tokens", [None, 3_000.0])
@pytest.mark.parametrize("name", ["pairwise", "facility", "disf_fixed", "graphcut"])
def test_what_is_kept_is_believed_and_not_searched_for_again(corpus, name, tokens, tmp_path, monkeypatch):
    first = pool_of(corpus, tmp_path)
    anchor, best = diversity_anchor(first, name, SIZE, budget=tokens), diversity_best(first, name, SIZE, budget=tokens)
    monkeypatch.setattr(anchors, "_best_end", lambda *args: pytest.fail("searched again"))
    again = pool_of(corpus, tmp_path)
    assert kept_ends(again, name, SIZE, budget=tokens) is not None
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
    assert pool.graph_facts()["kind"] == "approximate"
    assert kept_ends(rough(), "facility", 240)[0] == anchor
    cache, entry = Cache(tmp_path), anchor_entry(pool, "facility", 240)
    content = cache.find(entry, lambda content: content)
    cache.keep(entry, {**content.value, "best": 10 * anchor.best}, content.arrays)
    assert kept_ends(rough(), "facility", 240) is None
