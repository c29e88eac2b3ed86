"""The rule of a selection: what a row adds, by the definitions, and the threshold that is wrong about the fewest."""

from __future__ import annotations

import itertools
import json
from dataclasses import replace

import numpy as np
import pyarrow.parquet as pq
import pytest

from datamask.config import QualityColumn, Quota, SelectionConfig
from datamask.corpus import open_corpus
from datamask.corpus.centered import centered
from datamask.corpus.quality import transform
from datamask.errors import DatamaskError, InputError, OptionError, RunStateError
from datamask.objectives import disf
from datamask.recipes import learned, quality, sharpening, thresholds
from datamask.recipes.quality import total
from datamask.recipes.recipe import Recipe
from datamask.runs.imports import import_ids
from datamask.runs.recipe import recipe_of
from datamask.runs.store import RunStore
from tests.making.derivable_runs import N, done
from tests.reference import truth

KINDS = {
    "pairwise": {"objective": "pairwise"},
    "lambda 0": {"objective": "pairwise", "lamb": 0.0},
    "raw": {"objective": "pairwise", "scale": "raw"},
    "learned": {"objective": "pairwise", "estimator": "counterfactual", "n_epochs": 20},
    "centered": {"objective": "pairwise", "center": True},
    "disf_fixed": {"objective": "disf_fixed"},
    "components": {"objective": "pairwise:2,disf_fixed:1", "components": 4},
    "sum": {"objective": "pairwise:2,disf_fixed:1"},
    "budget": {"objective": "pairwise:2,disf_fixed:1", "budget": 150_000},
    "random": {"objective": "pairwise:1,disf_fixed:1", "estimator": "random"},
}


@pytest.fixture(scope="module")
def run_of(tmp_path_factory):
    """A run of a kind, done once."""
    runs = {}

    def of(kind: str):
        if kind not in runs:
            runs[kind] = done(tmp_path_factory.mktemp("kind"), **KINDS[kind])
        return runs[kind]

    return of


def _read(run):
    """The run's corpus as it was opened, the features that its objective saw, and the run's rows."""
    corpus = open_corpus(run.config.corpus)
    space = centered(corpus) if run.config.selection.center else corpus
    return corpus, space.features.astype(np.float64), run.rows()


def _score(recipe: Recipe, x: np.ndarray, quality: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """The score of rows as the recipe's own words define it, from the JSON."""
    rule = json.loads(recipe.to_json())["rule"]
    score = rule["quality_weight"] * quality + rule["length_weight"] * lengths
    if rule["direction"] is not None:
        score -= rule["crowding_weight"] * (x @ np.array(rule["direction"]))
    if rule["moment"] is not None:
        y = (_kept(recipe, x) - np.array(rule["mean"])) * np.array(rule["inverse_sd"])
        score -= rule["moment_weight"] * np.einsum("ia,ab,ib->i", y, np.array(rule["moment"]), y)
    return score


def _kept(recipe: Recipe, x: np.ndarray) -> np.ndarray:
    """Rows on the components that a rule names, of unit length."""
    axes = json.loads(recipe.to_json())["rule"]["axes"]
    z = x if axes is None else x @ np.array(axes)
    return z / np.linalg.norm(z, axis=1, keepdims=True)


@pytest.mark.parametrize("kind", KINDS)
def test_the_score_is_what_the_run_itself_noted_for_every_row(kind, run_of, monkeypatch):
    monkeypatch.setattr(sharpening, "SHARPENINGS", 0)  # the direction is the members' mean then
    run = run_of(kind)
    recipe = recipe_of(run)
    corpus, x, rows = _read(run)
    chosen = rows["selected"].to_numpy()
    rule, size = recipe.rule, chosen.sum()
    own = np.zeros(N)  # a member's pair with itself is in the run's score, and in no unseen row's
    weight = np.ones(N) / size
    if recipe.of == "tokens":
        weight = corpus.lengths / KINDS[kind]["budget"]
    if rule.direction is not None:
        mean = corpus.lengths @ x / corpus.lengths.sum() if recipe.of == "tokens" else np.zeros(x.shape[1])
        squares = ((x - mean) ** 2).sum(axis=1)
        own += rule.crowding_weight / 2 * weight * squares * (np.where(chosen, 1, -1) if mean.any() else 2 * chosen)
    if rule.moment is not None:
        y = (_kept(recipe, x) - rule.mean) * rule.inverse_sd
        moments = y[:, :, None] * y[:, None, :] * (1 - np.eye(y.shape[1]))
        if recipe.of == "tokens":
            moments = moments - np.tensordot(corpus.lengths / corpus.lengths.sum(), moments, 1)
        own += rule.moment_weight / 2 * weight * (moments**2).sum(axis=(1, 2)) * np.where(chosen, 1, -1)
    noted = rows["score"].to_numpy() / weight
    made = _score(recipe, x, corpus.quality, corpus.lengths) + own
    made, noted = made - made.mean(), noted - noted.mean()  # constants are in the threshold
    assert np.abs(made - noted).max() < 1e-5 * noted.std()
    assert recipe.rule.direction is None or not np.allclose(recipe.rule.direction, 0)


def test_a_swap_changes_the_value_by_the_difference_of_scores_in_every_small_problem(tmp_path):
    """By enumeration, against the definitions: f(U - j + i) - f(U) = (score_i - score_j) / S + what the pair adds."""
    rng = np.random.default_rng(5)
    n, size, d = 9, 4, 3
    x, q = truth.unit_rows(rng, n, d), rng.normal(size=n)
    for members in itertools.combinations(range(n), size):
        mask = np.zeros(n, bool)
        mask[list(members)] = True
        direction = learned.weighted_mean(x, mask / size)
        score = 0.5 * q - 0.5 * 2 * size / (size - 1) * (x @ direction)
        for j, i in itertools.product(members, set(range(n)) - set(members)):
            swapped = [*(set(members) - {j}), i]
            change = 0.5 * (q[swapped].mean() - q[list(members)].mean())
            change += 0.5 * (truth.pairwise(x, swapped) - truth.pairwise(x, members))
            pair = 0.5 * 2 / (size * (size - 1)) * (x[i] @ x[j] - 1)
            assert change == pytest.approx((score[i] - score[j]) / size + pair, abs=1e-12)


def test_at_the_best_of_all_subsets_no_row_is_further_on_the_wrong_side_than_its_own_pair():
    """The best of 12,870 subsets, found by trying them all: a row outside outscores none inside by more than that."""
    rng = np.random.default_rng(1)
    n, size = 16, 8
    subsets = np.array(list(itertools.combinations(range(n), size)))
    masks = np.zeros((len(subsets), n))
    np.put_along_axis(masks, subsets, 1.0, axis=1)
    for _ in range(20):
        x, q = truth.unit_rows(rng, n, 3), rng.normal(size=n)
        crowding = np.einsum("ij,jk,ik->i", masks, x @ x.T, masks)
        mask = masks[(0.2 * masks @ q / size - (crowding - size) / (size * (size - 1))).argmax()].astype(bool)
        score = 0.2 * q - 2 * size / (size - 1) * (x @ learned.weighted_mean(x, mask / size))
        slack = 2 / (size - 1) * (1 - x[~mask] @ x[mask].T)
        assert (score[~mask][:, None] - score[mask][None, :] <= slack + 1e-12).all()
        tau = thresholds.threshold(score, mask, np.ones(n))
        wrong = (score >= tau) != mask
        assert np.abs(score[wrong] - tau).max(initial=0.0) <= slack.max()


def test_no_other_threshold_of_that_size_leaves_fewer_rows_on_the_wrong_side():
    rng = np.random.default_rng(2)
    for _ in range(200):
        n = int(rng.integers(4, 30))
        scores = rng.integers(0, 8, n).astype(float)
        inside = scores + 2 * rng.normal(size=n) > 4
        amounts = rng.integers(1, 4, n).astype(float)
        if not inside.any() or inside.all() or len(set(scores)) == 1:
            continue
        off = {
            tau: abs(amounts[scores >= tau].sum() - amounts[inside].sum()) for tau in set(scores) if tau > scores.min()
        }
        allowed = max(thresholds.OFF_SIZE * amounts[inside].sum(), min(off.values()))
        fewest = min(((scores >= tau) != inside).sum() for tau, missed in off.items() if missed <= allowed)
        tau = thresholds.threshold(scores, inside, amounts)
        assert ((scores >= tau) != inside).sum() == fewest
        assert abs(amounts[scores >= tau].sum() - amounts[inside].sum()) <= allowed


def test_where_all_scores_are_equal_there_is_no_threshold():
    with pytest.raises(InputError, match="no threshold tells rows apart"):
        thresholds.threshold(np.ones(5), np.arange(5) < 2, np.ones(5))


def test_a_sharper_direction_leaves_fewer_rows_on_the_wrong_side(tmp_path, monkeypatch):
    run = done(tmp_path, center=True, lamb=0.1)
    sharp = recipe_of(run)
    monkeypatch.setattr(sharpening, "SHARPENINGS", 0)
    blunt = recipe_of(run)
    assert sharp.learned["otherwise"] < 0.3 * blunt.learned["otherwise"]
    assert np.linalg.norm(sharp.rule.direction - blunt.rule.direction) < 0.05


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "random"])
def test_applied_to_its_own_corpus_it_gives_the_selection_but_for_the_rows_it_counts(kind, run_of):
    run = run_of(kind)
    recipe = recipe_of(run)
    corpus, x, rows = _read(run)
    score = _score(recipe, x, corpus.quality, corpus.lengths)
    kept, chosen = score >= recipe.thresholds.tau, rows["selected"].to_numpy()
    amounts = corpus.lengths if recipe.of == "tokens" else np.ones(N)
    learned = recipe.learned
    assert learned["otherwise"] == (kept != chosen).sum() <= 0.05 * chosen.sum()
    assert learned["kept"] == kept.sum() and learned["selected"] == chosen.sum() and learned["rows"] == N
    assert learned["share_kept"] == pytest.approx(amounts[kept].sum() / amounts.sum())
    assert learned["share_selected"] == pytest.approx(amounts[chosen].sum() / amounts.sum())
    assert recipe.share == pytest.approx(150_000 / amounts.sum() if recipe.of == "tokens" else 0.3)
    assert learned["run"] == run.id and learned["fingerprint"] == corpus.fingerprint
    assert not recipe.notes


def test_a_run_that_ended_far_from_an_optimum_says_so(tmp_path):
    recipe = recipe_of(done(tmp_path, estimator="random"))
    assert recipe.learned["otherwise"] > 100 and "come out otherwise than in the run" in recipe.notes[0]
    assert recipe.notes[0].endswith("--estimator relaxed ends at an optimum.")


def test_few_rows_for_the_unknowns_of_a_rule_are_said_with_their_number(tmp_path):
    run = done(tmp_path, objective="disf_fixed", estimator="relaxed", select_ratio=0.01)
    recipe = recipe_of(run)
    dim = recipe.features.dim
    assert f"{dim * (dim - 1) // 2:,} unknowns" in recipe.notes[0] and recipe.notes[0].endswith("Select more rows.")


@pytest.mark.parametrize("columns", ["edu:2:z,quality_score:1:rank", "quality_score:3:z", "edu:-1:rank", "edu:2:raw"])
def test_transforms_are_frozen_as_they_were(columns, tmp_path):
    run = done(tmp_path, {"quality_columns": tuple(columns.split(","))})
    recipe = recipe_of(run)
    table = pq.read_table(tmp_path / "shards")
    values = [table[column.name].to_numpy().astype(np.float64) for column in recipe.quality]
    assert np.allclose(total(recipe.quality, values), run.rows()["quality"].to_numpy(), atol=1e-12)
    again = Recipe.from_dict(json.loads(recipe.to_json()))
    assert np.array_equal(total(again.quality, values), total(recipe.quality, values))
    assert recipe.learned["otherwise"] <= 12


def test_the_ranks_of_a_long_column_are_kept_at_so_many_places(monkeypatch):
    values = np.random.default_rng(0).normal(size=4000).round(3)
    exact = transform(values, "rank")
    assert np.array_equal(quality.FrozenQuality.of(QualityColumn("q", 1.0, "rank"), values)(values), exact)
    monkeypatch.setattr(quality, "MOST_KNOTS", 101)
    short = quality.FrozenQuality.of(QualityColumn("q", 1.0, "rank"), values)
    assert len(short.values) <= 101 and np.abs(short(values) - exact).max() < 0.01
    assert short(np.array([-100.0, 100.0])).tolist() == [exact.min(), exact.max()]


def test_pins_bans_and_quotas_hold(tmp_path):
    (tmp_path / "pin.txt").write_text("\n".join(f"0-{row}" for row in range(0, 40, 2)))
    (tmp_path / "ban.txt").write_text("\n".join(f"0-{row}" for row in range(1, 41, 2)))
    run = done(
        tmp_path,
        pin=str(tmp_path / "pin.txt"),
        ban=str(tmp_path / "ban.txt"),
        quotas=(Quota("source", "web", 0.6, 1.0), Quota("source", "code", 0.0, 0.05), Quota("source", "no", 0.0, 1.0)),
    )
    recipe = recipe_of(run)
    assert set(recipe.always) == {f"0-{row}" for row in range(0, 40, 2)}
    assert set(recipe.never) == {f"0-{row}" for row in range(1, 41, 2)}
    groups = recipe.thresholds.groups
    # web has a lower price than what is free, code a higher one; of "no" there is no row, so nothing binds it
    assert recipe.thresholds.column == "source"
    assert groups["web"] < recipe.thresholds.tau < groups["code"] and groups["no"] == recipe.thresholds.tau
    corpus, x, rows = _read(run)
    score = _score(recipe, x, corpus.quality, corpus.lengths)
    source = np.array(corpus.metadata["source"].to_pylist())
    kept = score >= np.array([groups.get(name, recipe.thresholds.tau) for name in source])
    ids, chosen = np.array(corpus.ids.to_pylist()), rows["selected"].to_numpy()
    kept = (kept | np.isin(ids, recipe.always)) & ~np.isin(ids, recipe.never)
    assert recipe.learned["otherwise"] == (kept != chosen)[~np.isin(ids, recipe.never)].sum() <= 20
    for name in ("web", "code", "books"):
        assert abs(kept[source == name].sum() - chosen[source == name].sum()) <= 4


def test_shares_of_tokens_have_thresholds_of_their_own(tmp_path):
    run = done(tmp_path, budget=150_000, quotas=(Quota("source", "web", 0.6, 0.6), Quota("source", "code", 0.0, 1.0)))
    recipe = recipe_of(run)
    groups, tau = recipe.thresholds.groups, recipe.thresholds.tau
    corpus, x, rows = _read(run)
    score = _score(recipe, x, corpus.quality, corpus.lengths)
    source = np.array(corpus.metadata["source"].to_pylist())
    kept = score >= np.array([groups.get(name, tau) for name in source])
    assert groups["web"] != tau == groups["code"], "what does not bind shares the threshold of the rest"
    assert recipe.learned["otherwise"] == (kept != rows["selected"].to_numpy()).sum() <= 0.05 * N
    assert corpus.lengths[kept & (source == "web")].sum() == pytest.approx(90_000, rel=0.05)


def test_a_group_of_which_nothing_may_be_kept_has_no_threshold(tmp_path):
    run = done(tmp_path, quotas=(Quota("source", "web", 0.0, 0.0), Quota("source", "code", 1.0, 1.0)))
    thresholds = recipe_of(run).thresholds
    assert thresholds.groups["web"] is None and thresholds.groups["code"] is not None
    assert thresholds.tau is None  # nor is there anything of the rest


def test_the_rest_of_the_settings_have_their_place(tmp_path):
    (tmp_path / "given.txt").write_text("\n".join(f"0-{row}" for row in range(60)))
    given = recipe_of(done(tmp_path, given=str(tmp_path / "given.txt")))
    assert set(given.never) == {f"0-{row}" for row in range(60)} and given.learned["otherwise"] <= 12
    pruned = recipe_of(done(tmp_path, prune=0.4, collapse="exact"))
    quality = np.sort(pq.read_table(tmp_path / "shards")["quality_score"].to_numpy())[::-1]
    worst = round(0.6 * N) - 1
    assert quality[worst + 1] < pruned.thresholds.least_quality < quality[worst]
    assert "exact duplicates (same features)" in pruned.notes[0] and "lower quality" in pruned.notes[1]
    alone = recipe_of(done(tmp_path, lamb=1.0, objective="facility", estimator="top-quality"))
    assert not alone.rule.needs_features and alone.learned["otherwise"] == 0


@pytest.mark.parametrize(
    "selection, sentence",
    [
        ({"objective": "facility"}, "acility location has no recipe: each row depends on others"),
        ({"objective": "pairwise:1,disf:1"}, "iSF .* has no recipe: each row depends"),
        ({"objective": "vendi"}, "bjective vendi has no per-row rule"),
    ],
)
def test_an_objective_without_a_rule_is_refused_in_a_sentence(selection, sentence, tmp_path):
    with pytest.raises(OptionError, match=sentence):
        recipe_of(done(tmp_path, estimator="top-quality", **selection))


def test_ids_chosen_elsewhere_have_no_rule(tmp_path):
    run = done(tmp_path)
    (tmp_path / "ids.txt").write_text("\n".join(f"0-{row}" for row in range(300)))
    config = replace(
        run.config,
        ids=str(tmp_path / "ids.txt"),
        selection=SelectionConfig(objective="pairwise", estimator="imported"),
    )
    imported = import_ids(RunStore(tmp_path / "runs"), config)
    with pytest.raises(OptionError, match="mported ids"):
        recipe_of(imported)


def test_an_unfinished_run_and_another_corpus_are_refused(tmp_path):
    run = done(tmp_path)
    unfinished = RunStore(tmp_path / "runs").create(run.config)
    with pytest.raises(RunStateError):
        recipe_of(unfinished)
    table = pq.read_table(tmp_path / "shards" / "a.parquet")
    pq.write_table(table.slice(1), tmp_path / "shards" / "a.parquet")
    with pytest.raises(InputError, match="has changed since the run"):
        recipe_of(run)
    (tmp_path / "shards" / "a.parquet").unlink()
    with pytest.raises(DatamaskError, match="is gone since the run"):
        recipe_of(run)


def test_a_dead_dimension_is_dead_by_the_same_share_as_in_the_objective():
    assert learned.DEAD_SHARE == disf.DEAD_SHARE
