"""Estimated anew on all rows: values by the definitions, bounds never below the best of all subsets, read only once."""

from __future__ import annotations

import itertools
import json
import os
import threading
import time
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from datamask.cli import main
from datamask.config import CorpusConfig, RunConfig, SelectionConfig
from datamask.corpus.shards import open_source
from datamask.errors import InputError, OptionError, Stopped
from datamask.recipes import passes, read_recipe, refit, write_recipe
from datamask.recipes.batches import Judge
from datamask.recipes.quality import FrozenQuality
from datamask.recipes.recipe import FeatureColumn, Recipe, ScoreRule
from datamask.recipes.scoring import Scorer
from datamask.recipes.stepping import at_weights, rule_of
from datamask.recipes.weights import Weights
from datamask.runs.execute import execute
from datamask.runs.recipe import recipe_of
from datamask.runs.store import RunStore
from datamask.work.context import Work
from tests.making.derivable_runs import shard
from tests.recipes.test_apply import RECIPES, _with, made
from tests.reference import truth

ENDS = {
    "quality": {"random": 0.1, "best": 1.7, "best_kind": "proved"},
    "diversity": {
        "pairwise": {"random": -0.4, "best": -0.1, "best_kind": "proved"},
        "disf_fixed": {"random": -0.3, "best": -0.05, "best_kind": "proved"},
    },
}
KINDS = {
    "pairwise": {"objective": "pairwise"},
    "pairwise alone": {"objective": "pairwise", "lamb": 0.0},
    "raw": {"objective": "pairwise", "scale": "raw"},
    "disf_fixed": {"objective": "disf_fixed", "lamb": 0.3},
    "sum": {"objective": "pairwise:1,disf_fixed:3"},
    "quality": {"lamb": 1.0},
}


def _any_recipe(rng, d, objective="pairwise", lamb=0.5, scale="calibrated") -> Recipe:
    """A recipe with a rule that nobody solved for."""
    moment = rng.normal(size=(d, d))
    np.fill_diagonal(moment, 0.0)
    recipe = made(objective=objective, lamb=lamb, scale=scale, anchors=ENDS, features=FeatureColumn("feature_arr", d))
    weights = Weights.of(recipe)
    rule = ScoreRule(
        weights.quality,
        2.3 * weights.pairs,
        rng.normal(size=d) if weights.pairs else None,
        2 * weights.moments / (d * (d - 1)),
        (moment + moment.T) / 4 if weights.moments else None,
        np.full(d, 0.1) if weights.moments else None,
        np.full(d, 1.5) if weights.moments else None,
    )
    return replace(recipe, rule=rule)


def _value(recipe: Recipe, x: np.ndarray, q: np.ndarray, members: np.ndarray) -> float:
    """The joint value of some rows, by the definitions; moments are over the recipe's own mean and scale."""
    members = np.flatnonzero(members)
    value = recipe.lamb * _on_scale(recipe, "quality", q[members].mean())
    for name, weight in recipe.terms if recipe.lamb < 1 else ():
        if name == "pairwise":
            raw = truth.pairwise(x, members)
        else:
            y = (x[members] - recipe.rule.mean) * recipe.rule.inverse_sd
            moment = y.T @ y / len(members)
            np.fill_diagonal(moment, 0.0)
            raw = -(moment**2).sum() / (x.shape[1] * (x.shape[1] - 1))
        value += (1 - recipe.lamb) * weight * _on_scale(recipe, name, raw)
    return value


def _on_scale(recipe: Recipe, name: str, raw: float) -> float:
    ends = ENDS["quality"] if name == "quality" else ENDS["diversity"][name]
    return raw if recipe.scale == "raw" else (raw - ends["random"]) / (ends["best"] - ends["random"])


def _written(tmp_path, tables) -> str:
    folder = tmp_path / "whole"
    folder.mkdir()
    for place, table in enumerate(tables):
        pq.write_table(table, folder / f"{place}.parquet")
    return str(folder)


def _judge(recipe, folder, **options) -> Judge:
    return Judge(recipe, open_source("input", [str(folder)]), **options)


def _pass(recipe, folder, expected=0.0, sd=1.0):
    return passes.pass_over(_judge(recipe, folder), recipe.rule, expected, sd, "x")


def _units(table) -> np.ndarray:
    x = np.array(table["feature_arr"].to_pylist(), np.float64)
    return x / np.linalg.norm(x, axis=1, keepdims=True)


@pytest.mark.parametrize("kind", KINDS)
def test_a_rule_carried_over_to_other_weights_scores_in_the_same_order(kind):
    rng = np.random.default_rng(9)
    x, q = rng.normal(size=(50, 4)), rng.normal(size=50)
    for _ in range(5):
        recipe = _any_recipe(rng, 4, **KINDS[kind])
        before = Weights.of(recipe)
        after = replace(before, quality=before.quality * 1.3, pairs=before.pairs * 0.6, moments=before.moments * 1.7)
        rule = rule_of(recipe, before, 12)
        other, factor = at_weights(rule, before, after, 12)
        assert np.allclose(Scorer(other)(q, x), factor * Scorer(rule)(q, x), rtol=1e-12, atol=1e-12)
        assert (other.quality_weight, other.crowding_weight) == (after.quality, after.crowding(12))
        assert other.moment_weight == pytest.approx(after.moment_weight(4))


@pytest.mark.parametrize("kind", KINDS)
def test_the_bound_of_any_rule_is_never_below_the_best_of_all_subsets(kind, tmp_path):
    """Every subset of every size from 2 of 9 rows, under rules drawn at random."""
    rng = np.random.default_rng(3)
    for case in range(6):
        table = shard(9, 50 + case, d=3)
        x, q = _units(table), table["quality_score"].to_numpy()
        recipe = _any_recipe(rng, 3, **KINDS[kind])
        (tmp_path / str(case)).mkdir()
        one_pass = _pass(recipe, _written(tmp_path / str(case), [table.slice(0, 4), table.slice(4)]))
        for size in range(2, 9):
            best = max(
                _value(recipe, x, q, np.isin(np.arange(9), subset)) for subset in itertools.combinations(range(9), size)
            )
            assert one_pass.bound(size, Weights.of(recipe)) >= best - 1e-9


@pytest.mark.parametrize("kind", KINDS)
def test_the_value_of_every_threshold_is_that_of_the_definitions(kind, tmp_path):
    rng = np.random.default_rng(4)
    table = shard(300, 9, d=4)
    x, q = _units(table), table["quality_score"].to_numpy()
    recipe = _any_recipe(rng, 4, **KINDS[kind])
    one_pass = _pass(recipe, _written(tmp_path, [table.slice(0, 100), table.slice(100)]))
    rule = recipe.rule
    score = rule.quality_weight * q
    if rule.direction is not None:
        score = score - rule.crowding_weight * x @ rule.direction
    if rule.moment is not None:
        y = (x - rule.mean) * rule.inverse_sd
        score = score - rule.moment_weight * np.einsum("ia,ab,ib->i", y, rule.moment, y)
    looked_at = 0
    for cut in np.linspace(0, len(one_pass.cuts) - 1, 25).astype(int):
        members = score >= one_pass.edges[one_pass.cuts[cut]]
        assert one_pass.kept(cut) == members.sum()
        if members.sum() >= 2:
            looked_at += 1
            assert one_pass.value(cut, Weights.of(recipe)) == pytest.approx(_value(recipe, x, q, members), abs=1e-9)
    assert looked_at >= 3


@pytest.fixture(scope="module")
def learned(tmp_path_factory):
    """A corpus of 12,000 rows in five shards, and recipes learned on 1,000 of them."""
    root = tmp_path_factory.mktemp("refit")
    folder = _written(root, [shard(2400, seed, d=8) for seed in range(5)])
    recipes = {}
    for name, options in {
        "pairwise": {"objective": "pairwise"},
        "disf_fixed": {"objective": "disf_fixed"},
        "sum": {"objective": "pairwise:1,disf_fixed:1"},
        "pruned": {"objective": "pairwise", "prune": 0.3},
        "quality": {"objective": "pairwise", "lamb": 1.0},
    }.items():
        selection = SelectionConfig.from_options(select_ratio=0.2, device="cpu", **options)
        run = RunStore(root / "runs").create(RunConfig(CorpusConfig((folder,), rows=1000), selection))
        execute(run)
        recipes[name] = recipe_of(run)
    return folder, recipes


@pytest.mark.parametrize("kind", ["pairwise", "disf_fixed", "sum", "pruned", "quality"])
def test_two_passes_come_near_the_bound_and_keep_the_share(kind, learned):
    folder, recipes = learned
    recipe = recipes[kind]
    better = refit.refit(_judge(recipe, folder))
    facts = better.refit
    moments = kind in ("disf_fixed", "sum")
    assert facts["gap"] <= (5e-3 if moments else 1e-4) and facts["upper_bound"] >= facts["value"]
    assert facts["gap"] <= facts["before"]["gap"] and facts["value"] >= facts["before"]["value"] - 1e-6
    assert abs(facts["share_kept"] - 0.2) <= (0.01 if moments else 1e-3) * 0.2 + 1 / 12_000
    # what it says of the value is so: every row judged once more
    table = pq.read_table(folder)
    judged = _judge(better, folder)(0, 0, table.combine_chunks().to_batches()[0])
    assert judged.kept.sum() == facts["kept"] and facts["rows"] == 12_000
    ends = better.anchors
    x, q, members = _units(table), table["quality_score"].to_numpy(), np.flatnonzero(judged.kept)
    total = x[members].sum(axis=0)
    raw = {
        "quality": q[members].mean(),
        "pairwise": -(total @ total - len(members)) / (len(members) * (len(members) - 1)),
    }
    if moments:
        y = (x[members] - better.rule.mean) * better.rule.inverse_sd
        moment = y.T @ y / len(members)
        raw["disf_fixed"] = -((moment**2).sum() - (np.diag(moment) ** 2).sum()) / 56
    value = 0.0
    for name, weight in [("quality", recipe.lamb), *((n, (1 - recipe.lamb) * w) for n, w in recipe.terms)]:
        scale = ends["quality"] if name == "quality" else ends["diversity"][name]
        value += weight * (raw[name] - scale["random"]) / (scale["best"] - scale["random"])
    assert facts["value"] == pytest.approx(value, abs=1e-9)


def test_the_solution_over_all_rows_lies_between_value_and_bound(learned, tmp_path):
    """The whole corpus solved at once, its selection valued on the recipe's scale."""
    folder, recipes = learned
    recipe = recipes["pairwise"]
    facts = refit.refit(_judge(recipe, folder)).refit
    selection = SelectionConfig.from_options(objective="pairwise", select_ratio=0.2, device="cpu", scale="raw")
    ends = recipe.anchors["quality"], recipe.anchors["diversity"]["pairwise"]
    quality, pairs = (0.5 / (end["best"] - end["random"]) for end in ends)
    # raw weights of the same trade-off
    run = RunStore(tmp_path).create(
        RunConfig(CorpusConfig((folder,)), replace(selection, lamb=quality / (quality + pairs)))
    )
    execute(run)
    summary = run.status().to_dict()["summary"]
    solved = sum(
        0.5 * (summary[name] - end["random"]) / (end["best"] - end["random"])
        for name, end in zip(("quality", "diversity"), ends)
    )
    assert facts["kept"] == pytest.approx(2400, abs=3)
    assert abs(facts["value"] - solved) < 1e-3 and solved < facts["upper_bound"] + 1e-4


@pytest.mark.parametrize("kind", ["pairwise", "sum"])
def test_where_rows_are_of_another_quality_than_the_learned_ones_the_share_is_kept(kind, learned, tmp_path):
    folder, recipes = learned
    table = pq.read_table(folder)
    place = table.column_names.index("quality_score")
    better = pa.array(table["quality_score"].to_numpy() + 2.0)
    shifted = _written(tmp_path, [table.set_column(place, "quality_score", better)])
    facts = refit.refit(_judge(recipes[kind], shifted)).refit
    assert facts["before"]["share_kept"] > 0.4 and abs(facts["share_kept"] - 0.2) < 0.01
    assert facts["upper_bound"] >= facts["value"]


def test_the_weights_are_those_of_the_objective_whatever_the_file_says(learned):
    """A bound is made of the objective; a rule with other weights would prove something else."""
    folder, recipes = learned
    recipe = recipes["pairwise"]
    heavier = replace(recipe, rule=replace(recipe.rule, quality_weight=7.0, crowding_weight=0.01))
    one, two = (refit.refit(_judge(each, folder)).refit for each in (recipe, heavier))
    assert two["upper_bound"] >= one["value"] and one["upper_bound"] >= two["value"]
    with pytest.raises(InputError, match="has no direction, and its objective pairwise asks for one"):
        refit.refit(_judge(replace(recipe, rule=ScoreRule(0.5)), folder))


def test_it_does_not_depend_on_how_the_rows_are_cut_into_shards(learned, tmp_path):
    folder, recipes = learned
    table = pq.read_table(folder)
    other = _written(tmp_path, [table.slice(0, 7000), table.slice(7000, 1), table.slice(7001)])
    one, two = (refit.refit(_judge(recipes["pairwise"], place)) for place in (folder, other))
    assert two.refit["before"]["value"] == pytest.approx(one.refit["before"]["value"], abs=1e-3)
    assert two.refit["value"] == pytest.approx(one.refit["value"], abs=1e-3)


def test_rows_that_cannot_be_used_are_refused_or_left_out_and_counted(learned, tmp_path):
    _, recipes = learned
    table = _with(shard(400, 3, d=8), "quality_score", 7, float("nan"))
    folder = _written(tmp_path, [table])
    with pytest.raises(InputError, match=r"row 7 has NaN or infinite quality.*--drop_invalid"):
        refit.refit(_judge(recipes["pairwise"], folder))
    facts = refit.refit(_judge(recipes["pairwise"], folder, drop_invalid=True)).refit
    assert facts["rows"] == 399 and list(facts["dropped"].values()) == [1]


@pytest.mark.parametrize(
    "which, sentence", [("tokens", "fills a token budget"), ("groups", "quotas"), ("lists", "pinned")]
)
def test_what_has_no_single_threshold_of_rows_is_refused(which, sentence):
    with pytest.raises(OptionError, match=sentence):
        refit.check_refittable(made(**RECIPES[which]))


def test_rows_that_are_all_alike_are_refused(tmp_path):
    table = shard(50, 1)
    same = table.take(pa.array([3] * 50))
    with pytest.raises(InputError, match="alike"):
        refit.refit(_judge(made(), _written(tmp_path, [same])))


def test_a_bound_below_its_value_is_none():
    assert refit._proved(1.0, 0.9) == {"upper_bound": None, "gap": None}
    assert refit._proved(1.0, 1.0 - 1e-12) == {"upper_bound": 1.0, "gap": 0.0}
    assert refit._proved(1.0, 1.5) == {"upper_bound": 1.5, "gap": 0.5}


def test_it_can_be_stopped(learned, monkeypatch):
    folder, recipes = learned
    stop, judged = threading.Event(), Judge.__call__

    def slowly(self, place, first, batch):
        time.sleep(0.05)
        stop.set()
        return judged(self, place, first, batch)

    monkeypatch.setattr(Judge, "__call__", slowly)
    with pytest.raises(Stopped):
        refit.refit(_judge(recipes["pairwise"], folder), Work.of(stop.is_set))


def test_a_stop_is_heard_before_the_first_pass(learned, monkeypatch):
    folder, recipes = learned
    monkeypatch.setattr(Judge, "__call__", lambda *given: pytest.fail("rows were judged after the stop"))
    with pytest.raises(Stopped):
        refit.refit(_judge(recipes["pairwise"], folder), Work.of(lambda: True))


def test_the_command_writes_by_what_it_estimated_and_estimates_only_once(learned, tmp_path, capsys, monkeypatch):
    folder, recipes = learned
    monkeypatch.chdir(tmp_path)
    write_recipe(recipes["pairwise"], "r.json")
    words = ["apply", "r.json", folder, "--output", "out", "--refit", "--json"]
    assert main(words) == 0
    said = json.loads(capsys.readouterr().out.splitlines()[-1])
    used = read_recipe("out/recipe.json")
    assert said["kept"] == said["refit"]["kept"] == used.refit["kept"] and said["share_expected"] == said["share_kept"]
    assert said["refit"]["gap"] == used.refit["gap"] <= 1e-4 and used.refit["of"] == recipes["pairwise"].digest
    monkeypatch.setattr(refit, "pass_over", None)  # a second estimate would fail
    assert main(["apply", "r.json", f"{folder}/0.parquet", "--output", "out", "--refit"]) == 2
    assert "estimated from other shards" in capsys.readouterr().err
    assert main(words) == 0
    assert json.loads(capsys.readouterr().out.splitlines()[-1])["reused"] == 5
    assert main(words[:-1]) == 0
    printed = capsys.readouterr().out
    assert "no selection of so many rows is above" in printed and "Joint value over all of them" in printed
    # of other rows it tells nothing but where it was estimated
    assert main(["apply", "out/recipe.json", f"{folder}/0.parquet", "--output", "later"]) == 0
    printed = capsys.readouterr().out
    assert (
        f"When it was estimated, on {used.refit['rows']:,} rows: joint value" in printed and "over all" not in printed
    )
    write_recipe(made(**RECIPES["tokens"], quality=(FrozenQuality("quality_score", 1.0),)), "tokens.json")
    assert main(["apply", "tokens.json", folder, "--output", "none", "--refit"]) == 2
    assert "token budget" in capsys.readouterr().err


def test_an_estimate_is_used_again_while_the_shards_are_the_same_to_their_footers(tmp_path):
    (tmp_path / "in").mkdir()
    path, out = tmp_path / "in" / "a.parquet", tmp_path / "out"
    table = shard(400, 1)

    def write(table):
        pq.write_table(table, path, compression="none", use_dictionary=False)

    write(table)
    facts = path.stat()
    judge = _judge(made(), tmp_path / "in")
    estimated = refit.refit(judge)
    out.mkdir()
    write_recipe(estimated, out / "recipe.json")
    assert refit.kept_refit(judge, out).digest == estimated.digest
    turned = pa.array([-quality for quality in table["quality_score"].to_pylist()])
    write(table.set_column(table.column_names.index("quality_score"), "quality_score", turned))
    os.utime(path, ns=(facts.st_atime_ns, facts.st_mtime_ns))
    assert (path.stat().st_size, path.stat().st_mtime_ns) == (facts.st_size, facts.st_mtime_ns)
    assert refit.kept_refit(_judge(made(), tmp_path / "in"), out) is None
