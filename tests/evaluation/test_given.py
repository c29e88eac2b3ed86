"""Rows that one already has: the rest is chosen beside them, against exhaustive search over the new ones."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from datamask import select
from datamask.config import Quota, RunConfig, SelectionConfig
from datamask.errors import OptionError
from tests.making.pools import corpus_of
from tests.reference import truth

N = 11


def make(tmp_path, seed, given):
    """A small corpus, its unit rows in float64 as the corpus holds them, and the file of given ids."""
    rng = np.random.default_rng(seed)
    kinds = [str(k) for k in rng.permutation([0] * 6 + [1] * 5)]
    corpus = corpus_of(
        truth.unit_rows(rng, N, 3), rng.normal(size=N), lengths=rng.integers(5, 30, N).astype(float), kind=kinds
    )
    rows = np.sort(rng.choice(N, size=given, replace=False))
    path = tmp_path / "given.txt"
    path.write_text("".join(f"{row}\n" for row in rows))
    return corpus, rows, str(path)


@pytest.mark.parametrize("objective", ["pairwise", "disf_fixed", "vendi", "facility", "disf"])
@pytest.mark.parametrize("seed", range(4))
def test_against_all_selections_beside_the_given_rows(tmp_path, objective, seed):
    corpus, given, path = make(tmp_path, seed, 3)
    estimator = "counterfactual" if objective == "disf" else "relaxed"
    found = select(
        corpus,
        objective=objective,
        lamb=0.3,
        select_ratio=3 / N,
        given=path,
        scale="raw",
        device="cpu",
        estimator=estimator,
        cache_dir=tmp_path,
    )
    x = corpus.features.astype(float)

    def f(new):
        members = [*given, *new]
        return 0.3 * corpus.quality[members].mean() + 0.7 * truth.OBJECTIVES[objective](x, members)

    others = [i for i in range(N) if i not in set(given)]
    values = {new: f(new) for new in itertools.combinations(others, 3)}
    best, worst = max(values.values()), min(values.values())
    assert found.summary["joint"] == pytest.approx(f(np.sort(found.rows)), abs=1e-6)
    assert best + 1e-6 >= found.summary["joint"] >= best - 0.2 * (best - worst)
    if objective == "disf":
        assert found.summary["upper_bound"] is None
    else:
        assert found.summary["upper_bound"] >= best - 1e-6
    # the given rows count in every value and are in no table
    assert found.summary["selected"] == len(found.rows) == 3 and found.summary["given"] == 3
    assert not set(found.rows) & set(given) and found.given.nonzero()[0].tolist() == given.tolist()
    assert found.summary["tokens"] == corpus.lengths[found.rows].sum()
    table = found.rows_table()
    assert table["selected"].to_numpy().nonzero()[0].tolist() == sorted(found.rows)
    assert table["given"].to_numpy().nonzero()[0].tolist() == given.tolist()
    assert not table["eligible"].to_numpy()[given].any()


def test_the_ends_of_the_scales_are_those_of_a_free_choice_of_that_many_rows(tmp_path):
    corpus, _, path = make(tmp_path, 0, 3)
    beside = select(corpus, objective="pairwise", select_ratio=3 / N, given=path, cache_dir=tmp_path)
    free = select(corpus, objective="pairwise", select_ratio=6 / N, cache_dir=tmp_path)
    assert beside.summary["anchors"] == free.summary["anchors"]
    assert beside.summary["joint"] <= free.summary["joint"] + 1e-9


def test_quotas_are_shares_of_the_new_rows(tmp_path):
    corpus, _, path = make(tmp_path, 1, 2)
    kinds = np.array(corpus.metadata["kind"].to_pylist())
    for low, high in ((0.0, 0.0), (1.0, 1.0)):
        found = select(
            corpus,
            objective="pairwise",
            select_ratio=3 / N,
            given=path,
            cache_dir=tmp_path,
            quotas=(Quota("kind", "1", low, high),),
        )
        assert (kinds[found.rows] == "1").mean() == low
    with pytest.raises(OptionError, match=r"kind=1 must have at least 6 rows, but \d may"):
        select(corpus, objective="pairwise", select_ratio=6 / N, given=path, quotas=(Quota("kind", "1", 1.0, 1.0),))


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"pin": "given.txt"}, "--pin and --given both name 3"),
        ({"ban": "given.txt"}, "--ban and --given both name 3"),
        ({"select_ratio": 8 / N}, "8 of 11 rows next to 3 given rows, but 8 are"),
        ({"partial": 0.5, "estimator": "reinforce", "n_epochs": 2}, "--given and --budget need --partial 1"),
    ],
)
def test_contradictions_are_refused(tmp_path, options, says):
    corpus, _, path = make(tmp_path, 2, 3)
    options = {k: str(tmp_path / v) if v == "given.txt" else v for k, v in options.items()}
    with pytest.raises(OptionError, match=says):
        select(corpus, **{"objective": "pairwise", "select_ratio": 3 / N, "given": path} | options)


def test_settings_repeat(tmp_path):
    from datamask.cli.parser import parse, run_config
    from datamask.config import CorpusConfig

    config = RunConfig(CorpusConfig(("x.parquet",)), SelectionConfig.from_options(given="have.txt"))
    assert RunConfig.from_dict(config.to_dict()) == config
    assert config.arguments()[-2:] == ["--given", "have.txt"]
    assert run_config(parse(config.arguments())) == config
