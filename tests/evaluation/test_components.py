"""Objectives on the leading principal components: values, bounds, what is refused, and rules made of them."""

from __future__ import annotations

import itertools
import os
from pathlib import Path

import numpy as np
import pytest
import torch

from datamask import SelectionConfig, learning, open_corpus, select
from datamask.cli import main
from datamask.corpus.components import Components
from datamask.errors import InputError, OptionError
from datamask.evaluation.pool import Pool
from datamask.evaluation.problems import pose
from datamask.evaluation.scoring import score_selection
from datamask.evaluation.selection import Selection
from datamask.learning.loop import learn

CPU = torch.device("cpu")
REDUCED = ("disf", "disf_fixed", "vendi")


def corpus_of(features, seed=0, ids=None):
    quality = np.random.default_rng(seed).normal(size=len(features))
    ids = [f"r{k}" for k in range(len(features))] if ids is None else ids
    return open_corpus(ids=ids, features=np.asarray(features, np.float32), quality=quality)


def wide(n, d, seed=0):
    rng = np.random.default_rng(seed)
    return (rng.normal(size=(n, d)) * np.arange(1, d + 1) ** -0.6) @ np.linalg.qr(rng.normal(size=(d, d)))[0] + 0.05


def by_numpy(name, x, mask):
    """The value of an objective by its definition, in float64."""
    if name == "vendi":
        values = np.linalg.eigvalsh(x[mask].T @ x[mask] / mask.sum())
        values = values[values > 1e-14]
        return -float(values @ np.log(values))
    y = (x - x.mean(0)) / x.std(0)
    moment = y[mask].T @ y[mask] / mask.sum() if name == "disf_fixed" else np.corrcoef(y[mask].T)
    np.fill_diagonal(moment, 0.0)
    return -float(np.square(moment).sum()) / (x.shape[1] * (x.shape[1] - 1))


@pytest.mark.parametrize("center", [False, True])
@pytest.mark.parametrize("name", REDUCED)
def test_values_are_those_of_an_explicit_projection(tmp_path, name, center):
    corpus = corpus_of(wide(400, 24))
    pool = Pool(corpus, CPU, tmp_path, center=center, components="7")
    mask = np.random.default_rng(1).random(400) < 0.3
    x = pool.space.features.astype(np.float64)
    values, axes = np.linalg.eigh(x.T @ x / len(x))
    z = x @ axes[:, -7:]
    z /= np.linalg.norm(z, axis=1, keepdims=True)
    value = pool.function(name, int(mask.sum())).value(torch.from_numpy(mask))
    assert value == pytest.approx(by_numpy(name, z, mask), abs=1e-5)
    facts = pool.component_facts(["facility", name], None, torch.from_numpy(mask))
    assert (facts.kept, facts.of) == (7, 24) and facts.share == pytest.approx(values[-7:].sum() / values.sum())
    assert facts.on_all == {name: pytest.approx(by_numpy(name, x, mask), abs=1e-5)}


@pytest.mark.parametrize("seed", range(int(os.environ.get("DATAMASK_BOUND_PROBLEMS", "42"))))
def test_no_bound_is_below_the_best_subset(tmp_path, seed):
    """Every third problem on components, the others on all dimensions; DATAMASK_BOUND_PROBLEMS: how many."""
    rng = np.random.default_rng(seed)
    n, d = int(rng.integers(6, 13)), int(rng.integers(2, 41))
    name = ("vendi", "vendi", "disf_fixed", "disf_fixed", "pairwise", "facility")[seed % 6]
    size, kept = int(rng.integers(2, n - 1)), None if seed % 6 not in (0, 3) else int(rng.integers(2, max(d, 3)))
    corpus = corpus_of(wide(n, d, seed), seed)
    config = SelectionConfig.from_options(
        objective=name, select_ratio=size / n, lamb=float(rng.choice([0, 0.3, 0.7])), components=kept
    )
    pool = Pool.under(config, corpus, CPU, tmp_path)
    posed = pose(pool, config)
    learned = learn(learning.load(config.estimator)(posed.problem, config))
    found = Selection.measured(corpus, config, posed, learned.mask, None)
    best = -np.inf
    for members in itertools.combinations(range(n), size):
        mask = torch.zeros(n, dtype=torch.bool)
        mask[list(members)] = True
        best = max(best, posed.problem.joint.evaluate(mask).joint)
    assert found.result.certificate.upper_bound >= best - 1e-9
    assert found.result.components is None or found.result.components.kept <= kept


def test_above_512_dimensions_vendi_is_on_components_and_the_summary_says_what_they_keep(tmp_path):
    narrow, corpus = (Pool(corpus_of(wide(60, dim)), CPU, tmp_path) for dim in (512, 530))
    assert [name for name in (*REDUCED, "facility") if corpus.on_components(name)] == ["vendi"]
    assert not any(map(narrow.on_components, REDUCED))
    summary = select(corpus.corpus, objective="vendi", select_ratio=0.5).summary
    # as many as there are: 60 rows span 60 dimensions
    assert summary["components"]["kept"] == 60 and summary["components"]["of"] == 530
    assert summary["components"]["share"] == pytest.approx(1, abs=1e-6)
    assert not Pool(corpus.corpus, CPU, tmp_path, components="all").on_components("vendi")


def test_of_a_sum_its_own_terms_alone_are_on_components(tmp_path):
    corpus = corpus_of(wide(80, 20))
    kept, whole = (
        select(corpus, objective="pairwise:0.5,disf_fixed:0.5", select_ratio=0.5, components=c) for c in (5, None)
    )
    assert set(kept.summary["components"]["on_all"]) == {"disf_fixed"}
    assert kept.result.anchors.diversity["pairwise"] == whole.result.anchors.diversity["pairwise"]
    scored = score_selection(corpus, kept.rows, tmp_path, components="5")["objectives"]
    assert scored["disf_fixed"] == pytest.approx(kept.summary["objectives"]["disf_fixed"])


def test_the_order_of_the_rows_decides_nothing():
    features, order = wide(150, 20), np.random.default_rng(3).permutation(150)
    quality = np.random.default_rng(0).normal(size=150)
    chosen = [
        set(
            select(
                open_corpus(ids=rows, features=features[rows].astype(np.float32), quality=quality[rows]),
                objective="disf",
                select_ratio=0.3,
                components=6,
            ).ids.to_pylist()
        )
        for rows in (np.arange(150), order)
    ]
    assert chosen[0] == chosen[1]


def test_what_is_no_more_than_rounding_is_no_component_and_a_row_outside_is_named():
    flat = np.zeros((30, 9))
    flat[:, :3] = np.random.default_rng(0).normal(size=(30, 3))
    components = Components.of(corpus_of(flat), 8)
    assert components.axes.shape == (9, 3) and components.share == pytest.approx(1.0)
    flat[0] = np.eye(9)[8]
    with pytest.raises(InputError, match=r"components have no part of 1 of 30 rows.*--components all"):
        select(corpus_of(flat), objective="vendi", select_ratio=0.5, components=3)


@pytest.mark.parametrize("value", ["1", "0", "-3", "2.5", "some"])
def test_values_that_are_none_are_refused(value):
    with pytest.raises(OptionError, match="components must be 'all' or a whole number of at least 2"):
        SelectionConfig.from_options(objective="vendi", components=value)


def test_other_objectives_refuse_them(capsys):
    tiny = str(Path("sample_data/tiny"))
    assert main(["select", tiny, "--objective", "facility", "--components", "9", "--dry_run"]) == 2
    assert "--components is of the objectives disf, vendi, disf_fixed" in capsys.readouterr().err
