"""A token budget from the settings to the written rows, against exhaustive search over all that fill it."""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd
import pytest

from datamask import select
from datamask.cli.parser import parse, run_config
from datamask.config import CorpusConfig, Quota, RunConfig, SelectionConfig
from datamask.corpus import open_corpus
from datamask.dashboard.data import demo
from datamask.errors import OptionError
from datamask.options.amounts import parse_tokens, tokens_text
from datamask.runs.execute import execute
from datamask.runs.store import RunStore
from tests.commands import TINY
from tests.making.pools import corpus_of
from tests.reference import budgets

N = 11


def make(seed):
    rng = np.random.default_rng(seed)
    return corpus_of(budgets.unit_rows(rng, N, 3), rng.normal(size=N), lengths=rng.integers(5, 30, N).astype(float))


def written(tmp_path, name, rows):
    (tmp_path / name).write_text("".join(f"{row}\n" for row in rows))
    return str(tmp_path / name)


@pytest.mark.parametrize("objective", ["pairwise", "disf_fixed", "vendi", "facility", "disf"])
@pytest.mark.parametrize("seed", range(4))
def test_against_all_that_fill_the_budget(tmp_path, objective, seed):
    corpus = make(seed)
    given, pinned, banned = [3], [5], [7]
    options = {
        name: written(tmp_path, f"{name}.txt", rows)
        for name, rows in (("given", given), ("pin", pinned), ("ban", banned))
    }
    budget = float(np.floor(corpus.lengths.sum() * 0.35))
    estimator = "counterfactual" if objective == "disf" else "relaxed"
    found = select(
        corpus,
        objective=objective,
        lamb=0.3,
        budget=budget,
        scale="raw",
        device="cpu",
        estimator=estimator,
        cache_dir=tmp_path,
        **options,
    )
    x, w, q = corpus.features.astype(float), corpus.lengths, corpus.quality
    whole = budget + w[given].sum()
    free = [i for i in range(N) if i not in (*given, *pinned, *banned)]
    fitting = [i for i in free if w[i] <= budget - w[pinned].sum()]

    def f(new):
        members = [*given, *new]
        return 0.3 * budgets.quality(q, w, whole, members) + 0.7 * budgets.OBJECTIVES[objective](x, w, whole, members)

    values = {}
    for size in range(len(fitting) + 1):
        for chosen in itertools.combinations(fitting, size):
            tokens = w[[*pinned, *chosen]].sum()
            if budget - w[fitting].max() <= tokens <= budget:
                values[tuple(sorted([*pinned, *chosen]))] = f([*pinned, *chosen])
    best, mean = max(values.values()), np.mean(list(values.values()))
    mine = tuple(sorted(found.rows.tolist()))
    assert mine in values and found.summary["tokens"] == w[list(mine)].sum() and found.summary["budget"] == budget
    assert found.summary["joint"] == pytest.approx(values[mine], abs=1e-5)
    assert found.summary["joint"] >= best - 0.3 * (best - mean) - 1e-6
    if objective == "disf":
        assert found.summary["upper_bound"] is None
    else:
        assert found.summary["upper_bound"] >= best - 1e-6


@pytest.mark.parametrize("objective", ["pairwise", "facility", "disf"])
def test_a_run_fills_its_budget_and_says_so(tmp_path, objective):
    config = RunConfig(
        CorpusConfig((TINY,)),
        SelectionConfig.from_options(objective=objective, budget="40k", n_epochs=6, lamb=0.4, device="cpu"),
    )
    run = RunStore(tmp_path).create(config)
    summary = execute(run).to_dict()
    assert 39_000 < summary["tokens"] <= 40_000 and summary["budget"] == run.facts()["budget"] == 40_000
    assert summary["selected"] == len(run.selection()) == run.facts()["selected"]
    assert -0.5 < summary["calibrated"]["joint"] < 1.2
    assert (summary["upper_bound"] is None) == (objective == "disf")
    if summary["upper_bound"] is not None:
        assert 0 <= summary["gap"] < 0.05
    best = execute(
        RunStore(tmp_path).create(
            RunConfig(
                CorpusConfig((TINY,)),
                SelectionConfig.from_options(
                    objective=objective, budget=40_000, lamb=0.4, estimator="top-quality", device="cpu"
                ),
            )
        )
    ).to_dict()
    assert best["calibrated"]["quality"] == pytest.approx(1.0) and best["anchors"] == summary["anchors"]


def test_a_bound_is_close_where_features_nearly_coincide(tmp_path):
    """Cosines from 0.995 on: a bound that allows every row the largest error of rounded rows lay at 1.99."""
    rng = np.random.default_rng(5)
    n = 489
    corpus = corpus_of(rng.normal(size=(n, 10)) + 20, lengths=rng.integers(5, 50, n).astype(float))
    found = select(
        corpus,
        objective="facility",
        lamb=0.0,
        budget=float(np.floor(corpus.lengths.sum() * 0.25)),
        device="cpu",
        cache_dir=tmp_path,
    )
    assert 1.0 <= found.summary["upper_bound"] <= 1.02


def test_equal_lengths_are_a_number_of_rows(tmp_path):
    """The same anchors, values and bound as for so many rows, whatever the length of a row."""
    rng = np.random.default_rng(0)
    x, q = budgets.unit_rows(rng, 60, 4), rng.normal(size=60)
    corpus = corpus_of(x, q, lengths=np.full(60, 7.0))
    for objective in ("pairwise", "disf_fixed", "facility"):
        rows, tokens = (
            select(
                corpus,
                objective=objective,
                lamb=0.5,
                estimator="relaxed",
                device="cpu",
                cache_dir=tmp_path,
                scale="raw",
                **how,
            )
            for how in ({"select_ratio": 0.25}, {"budget": 15 * 7})
        )
        assert tokens.summary["selected"] == 15
        assert tokens.summary["joint"] == pytest.approx(rows.summary["joint"], abs=2e-3)
        assert tokens.summary["upper_bound"] == pytest.approx(rows.summary["upper_bound"], abs=2e-3)
        assert tokens.summary["anchors"]["quality"]["best"] == pytest.approx(rows.summary["anchors"]["quality"]["best"])


def test_what_cannot_be_is_refused(tmp_path):
    corpus = make(0)
    for options, says in (
        ({"budget": 100, "select_ratio": 0.3}, "give one of them"),
        ({"budget": "many"}, "150M"),
        ({"budget": 0}, "above 0"),
        ({"budget": 1e6}, "holds all"),
        ({"budget": 1.0}, "no row fits"),
        ({"budget": 100, "estimator": "greedy"}, "cannot fill a --budget"),
        ({"budget": 100, "partial": 0.1, "estimator": "reinforce"}, "--budget need --partial 1"),
        ({"budget": 20, "pin": written(tmp_path, "pin.txt", range(4))}, "--pin names rows of"),
    ):
        with pytest.raises(OptionError, match=says):
            select(corpus, **{"objective": "pairwise", **options})
    with pytest.raises(OptionError, match="--length_column"):
        select(corpus_of(corpus.features), objective="pairwise", budget=100)
    none = corpus_of(corpus.features, lengths=np.where(np.arange(N) == 4, 0.0, 9.0))
    with pytest.raises(OptionError, match="1 rows have no tokens in 'tokens', such as 4"):
        select(none, objective="pairwise", budget=40)
    assert select(none, objective="pairwise", budget=40, ban=written(tmp_path, "ban.txt", [4])).summary["tokens"] == 36


MIXTURES = (
    {"numpy": (0.3, 0.3), "torch": (0.2, 0.2), "sympy": (0.5, 0.5)},
    {"numpy": (0.4, 1.0)},
    {"torch": (0.0, 0.1)},
    {"numpy": (0.05, 0.1), "torch": (0.1, 0.2), "pandas": (0.3, 0.3)},
    {"numpy": (0.0, 0.0), "(none)": (0.0, 0.0), "scipy": (0.333, 0.334)},
)


@pytest.fixture(scope="module")
def demo_corpus():
    return open_corpus(demo.CORPUS)


@pytest.fixture(scope="module")
def kept(tmp_path_factory):
    return tmp_path_factory.mktemp("cache")


@pytest.mark.parametrize("objective", ["facility", "pairwise"])
@pytest.mark.parametrize("mixture", MIXTURES)
def test_mixtures_hold_to_within_a_row(kept, demo_corpus, mixture, objective):
    """Against pandas: of 60,000 tokens, and of a tenth of the rows."""
    rows = pd.DataFrame(
        {"source": demo_corpus.metadata["source"].to_pandas(), "tokens": demo_corpus.lengths, "rows": 1.0}
    )
    quotas = tuple(f"source={name}:{low}:{high}" for name, (low, high) in mixture.items())
    for counted, how in (("tokens", {"budget": 60_000}), ("rows", {"select_ratio": 0.1})):
        found = select(demo_corpus, objective=objective, quotas=quotas, cache_dir=kept, device="cpu", **how)
        members = rows[found.mask]
        most = 60_000 if counted == "tokens" else round(0.1 * len(rows))
        row = rows.groupby("source")[counted].max()
        assert most - sum(row.get(name, 0.0) for name in mixture) - row.max() <= members[counted].sum() <= most
        for name, (low, high) in mixture.items():
            held = members[counted][members.source == name].sum()
            over = 1.0 if counted == "rows" else 0.0
            assert low * most - row.get(name, 0.0) < held + 1e-6 and held <= high * most + over, (counted, name)


def test_shares_of_tokens_that_cannot_be_are_refused(demo_corpus):
    held = pd.Series(demo_corpus.lengths).groupby(demo_corpus.metadata["source"].to_pandas()).sum()
    for quotas, says in (
        ((Quota("source", "torch", 0.9, 1.0),), f"at least 90,000 of the 100,000 tokens, but {held['torch']:,.0f} may"),
        ((Quota("source", "torch", 0.2, 0.3), Quota("source", "numpy", 0.85, 1.0)), "allow from 105,000 to"),
        (tuple(Quota("source", name, 0.0, 0.05) for name in held.index), "to 70,000 tokens together, but 100,000"),
    ):
        with pytest.raises(OptionError, match=says):
            select(demo_corpus, objective="pairwise", budget=100_000, quotas=quotas)


@pytest.mark.parametrize(
    ("text", "tokens", "short"),
    [
        ("150M", 150e6, "150M"),
        ("1.5b", 1.5e9, "1.5B"),
        ("1.5G", 1.5e9, "1.5B"),
        ("200K", 2e5, "200K"),
        ("1_234_567", 1234567.0, "1234567"),
        ("2T", 2e12, "2T"),
        ("1e6", 1e6, "1M"),
        ("12.5", 12.5, "12.5"),
    ],
)
def test_amounts(text, tokens, short):
    assert parse_tokens(text) == tokens and tokens_text(tokens) == short


def test_settings_repeat():
    config = RunConfig(CorpusConfig(("x.parquet",)), SelectionConfig.from_options(budget="150M"))
    assert RunConfig.from_dict(config.to_dict()) == config
    words = config.arguments()
    assert words[words.index("--budget") + 1] == "150M" and "--select_ratio" not in words
    assert run_config(parse(words)) == config
