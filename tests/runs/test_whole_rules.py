"""Rules in memory and in mapped files: they hold exactly, and bounds hold under them."""

from __future__ import annotations

import itertools

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from datamask.config import CorpusConfig, Quota, RunConfig, SelectionConfig
from datamask.errors import InputError, OptionError
from datamask.runs.execute import execute
from datamask.runs.recipe import recipe_of
from datamask.runs.store import RunStore
from tests.making.shards import clustered
from tests.reference import truth

N, S = 13, 4
FEATURES, QUALITY = clustered(N, 4, 4, seed=3)
SOURCE = np.array(["a", "b", "c"])[np.arange(N) % 3]
TOKENS = 10.0 + 7 * (np.arange(N) % 4)


@pytest.fixture(scope="module")
def shards(tmp_path_factory):
    place = tmp_path_factory.mktemp("corpus")
    for number, rows in enumerate(np.array_split(np.arange(N), 3)):
        arrays = pa.FixedSizeListArray.from_arrays(pa.array(FEATURES[rows].ravel()), 4)
        columns = {
            "id": [f"row-{row}" for row in rows],
            "quality": QUALITY[rows],
            "source": SOURCE[rows],
            "tokens": TOKENS[rows],
            "features": arrays,
        }
        pq.write_table(pa.table(columns), place / f"{number}.parquet")
    return place


def listed(place, rows):
    place.write_text("".join(f"row-{row}\n" for row in rows))
    return str(place)


def done(root, shards, scratch, **options):
    if scratch:
        options["scratch_dir"] = str(root / "scratch")
    given = {"objective": "facility", "lamb": 0.4, "scale": "raw", "device": "cpu"} | options
    if "budget" not in given:
        given["select_ratio"] = S / N
    config = RunConfig(CorpusConfig((str(shards),)), SelectionConfig.from_options(**given))
    run = RunStore(root / "runs").create(config)
    summary = execute(run).to_dict()
    ids = run.selection()["id"].to_pylist()
    return summary, np.sort([int(name.removeprefix("row-")) for name in ids]), run


def best_value(allowed, diversity=truth.facility):
    """The best joint value of the selections of S rows that a function allows."""
    x = FEATURES.astype(np.float64)
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    return max(
        0.4 * QUALITY[list(members)].mean() + 0.6 * diversity(x, np.array(members))
        for size in (S, S + 2)
        for members in itertools.combinations(range(N), size)
        if allowed(members)
    )


@pytest.mark.parametrize("scratch", [False, True])
@pytest.mark.parametrize(
    "rules",
    [
        {"pin": [0, 5]},
        {"ban": [1, 2, 3, 4]},
        {"quotas": (Quota("source", "a", 0.5, 0.5), Quota("source", "b", 0.0, 0.25))},
        {"pin": [7], "ban": [0, 12], "quotas": (Quota("source", "c", 0.25, 0.25),)},
        {"given": [2, 9]},
    ],
)
def test_rules_hold_and_no_selection_that_obeys_them_exceeds_the_bound(tmp_path, shards, rules, scratch):
    options = {
        name: rule if name == "quotas" else listed(tmp_path / f"{name}.txt", rule) for name, rule in rules.items()
    }
    summary, selected, _ = done(tmp_path, shards, scratch, **options)
    given = rules.get("given", [])

    def allowed(members):
        new = [row for row in members if row not in given]
        counts = {quota: sum(SOURCE[row] == quota.value for row in new) for quota in rules.get("quotas", ())}
        return (
            len(new) == S
            and set(rules.get("pin", ())) <= set(members)
            and not set(rules.get("ban", ())) & set(members)
            and set(given) <= set(members)
            and all(quota.low * S <= count <= quota.high * S for quota, count in counts.items())
        )

    assert allowed([*given, *selected])
    best = best_value(allowed)
    assert summary["upper_bound"] >= best - 1e-6
    assert best - 0.1 <= summary["joint"] <= best + 1e-6
    assert summary["given"] == len(given) if given else "given" not in summary or not summary["given"]


@pytest.mark.parametrize("scratch", [False, True])
@pytest.mark.parametrize("rules", [{"pin": [0, 5]}, {"ban": [1, 2, 3, 4]}, {"pin": [7], "ban": [0], "given": [2, 9]}])
def test_pairwise_obeys_rows_that_are_named_and_so_does_its_recipe(tmp_path, shards, rules, scratch):
    options = {name: listed(tmp_path / f"{name}.txt", rows) for name, rows in rules.items()}
    summary, selected, run = done(tmp_path, shards, scratch, objective="pairwise", **options)
    given = rules.get("given", [])

    def allowed(members):
        new = set(members) - set(given)
        named = set(rules.get("pin", ())) <= new and not set(rules.get("ban", ())) & new
        return len(new) == S and named and set(given) <= set(members)

    assert allowed([*given, *selected])
    best = best_value(allowed, truth.pairwise)
    assert summary["upper_bound"] >= best - 1e-9
    assert best - 0.05 <= summary["joint"] <= best + 1e-6
    recipe = recipe_of(run)
    assert set(recipe.always) == {f"row-{row}" for row in rules.get("pin", ())}
    assert set(recipe.never) == {f"row-{row}" for row in [*rules.get("ban", ()), *given]}


@pytest.mark.parametrize("scratch", [False, True])
def test_a_budget_is_filled(tmp_path, shards, scratch):
    ban = listed(tmp_path / "ban.txt", [1, 6])
    summary, selected, run = done(tmp_path, shards, scratch, budget=80.0, ban=ban)
    tokens = TOKENS[selected].sum()
    assert tokens <= 80 and tokens + TOKENS[np.setdiff1d(np.arange(N), [*selected, 1, 6])].min() > 80
    assert not {1, 6} & set(selected.tolist())
    assert summary["tokens"] == tokens and summary["selected"] == len(selected) and summary["gap"] >= 0
    assert run.facts()["banned"] == 2


@pytest.mark.parametrize("scratch", [False, True])
def test_shares_of_a_budget_hold(tmp_path, shards, scratch):
    quotas = Quota("source", "a", 0.5, 0.5), Quota("source", "b", 0.0, 0.25)
    summary, selected, _ = done(tmp_path, shards, scratch, budget=120.0, quotas=quotas)
    held = {name: TOKENS[selected][SOURCE[selected] == name].sum() for name in "abc"}
    assert 60 - TOKENS.max() < held["a"] <= 60 and held["b"] <= 30 and sum(held.values()) <= 120
    assert summary["tokens"] == sum(held.values()) > 120 - 3 * TOKENS.max() and summary["gap"] >= 0


def test_rules_that_nothing_obeys_are_refused_in_a_sentence(tmp_path, shards):
    both = listed(tmp_path / "both.txt", [3])
    with pytest.raises(OptionError, match="--pin and --ban both name 1 rows"):
        done(tmp_path, shards, True, pin=both, ban=both)
    with pytest.raises(InputError, match="1 of its ids are not in the corpus, such as 'row-99'"):
        done(tmp_path, shards, True, pin=listed(tmp_path / "unknown.txt", [3, 99]))
    with pytest.raises(OptionError, match="the corpus has no column 'language'"):
        done(tmp_path, shards, True, quotas=(Quota("language", "en", 0.0, 0.5),))
    with pytest.raises(OptionError, match="source=a must have at least 4 rows"):
        done(tmp_path, shards, True, quotas=(Quota("source", "a", 1.0, 1.0),), ban=listed(tmp_path / "b.txt", [0, 3]))
