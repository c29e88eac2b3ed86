"""Explanations: parts against plain float64 numpy, witnesses against a dense count, flips by solving again."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from datamask import objectives
from datamask.analyses.explanation.compute import Again, Explainer, Flip, find_flip, flips, intervals, witnesses
from datamask.analyses.explanation.compute.flips import TOLERANCE, nearest_change
from datamask.api import select
from datamask.config import CorpusConfig, Quota, SelectionConfig
from datamask.corpus import open_corpus
from datamask.evaluation.frontier import frontier
from datamask.evaluation.pool import Pool
from datamask.objectives.facility import exact_lists
from datamask.polling import no_poll
from datamask.work.context import Work
from tests.commands import TINY


@pytest.fixture(scope="module")
def corpus():
    return open_corpus(CorpusConfig((TINY,)))


@pytest.fixture(scope="module")
def pool(corpus, tmp_path_factory):
    return Pool(corpus, torch.device("cpu"), tmp_path_factory.mktemp("cache"))


def made(pool, **options):
    """The settings, a selection's mask and its explainer."""
    config = SelectionConfig.from_options(
        **{"select_ratio": 0.2, "estimator": "counterfactual", "n_epochs": 20, **options}
    )
    mask = select(pool.corpus, config, cache_dir=pool.cache_dir).mask
    return config, mask, Explainer(pool, config, mask)


@pytest.mark.parametrize(
    "objective", ["pairwise", "facility", "disf", "disf_fixed", "vendi", "pairwise:0.3,facility:0.7"]
)
def test_parts_add_up_and_the_threshold_cuts_s_samples(pool, objective):
    _, mask, explainer = made(pool, objective=objective)
    # copies of one text, which the corpus has, stand on the threshold together
    assert (explainer.score > explainer.threshold).sum() <= mask.sum() <= (explainer.score >= explainer.threshold).sum()
    rows = np.r_[mask.nonzero()[0][:5], (~mask).nonzero()[0][:5]]
    for told in explainer.explain(rows):
        assert sum(part.value for part in told.parts) == pytest.approx(told.score - told.threshold, abs=1e-12)
        assert [part.name for part in told.parts[:2]] == ["average row", "quality"]
        assert told.selected == mask[told.row] and told.state == ("selected" if told.selected else "not selected")
        assert told.sentence.startswith("Selected: " if told.selected else "Left out: ")
        assert told.margin * explainer.sd == pytest.approx(told.score - told.threshold)


def test_pairwise_is_quality_and_crowding_and_names_no_neighbour(pool):
    _, mask, explainer = made(pool, objective="pairwise", estimator="relaxed", n_epochs=None, lamb=0.4)
    x, q = pool.corpus.features.astype(np.float64), pool.corpus.quality
    x /= np.linalg.norm(x, axis=1, keepdims=True)  # float32 rounded their lengths
    size = int(mask.sum())
    scales = explainer._posed.problem.joint
    crowding = x @ x[mask].sum(0) - mask
    quality = 0.4 * scales.quality_scale.slope * q / size
    diversity = 0.6 * scales.terms[0].scale.slope * -2 * crowding / (size * (size - 1))
    assert explainer.score == pytest.approx(quality + diversity, rel=1e-9)
    assert explainer.exceptions <= pool.corpus.dim  # an optimum is a threshold, all but about d samples
    told = explainer.explain([7])[0]
    assert told.facts["mean_cosine"] == pytest.approx(crowding[7] / (size - mask[7]), rel=1e-5)
    assert told.witnesses == {} and "cover" not in told.sentence
    assert told.parts[1].value == pytest.approx(quality[7] - quality.mean(), rel=1e-9)


def test_facility_counts_the_rows_only_a_member_covers_and_those_another_would(pool):
    _, mask, explainer = made(pool, objective="facility", lamb=0.0)
    x = pool.corpus.features.astype(np.float64)
    near = np.maximum(0, x @ x[mask].T)
    members = mask.nonzero()[0]
    falling = np.sort(near, axis=1)[:, ::-1]
    best, second, owner = falling[:, 0], falling[:, 1], members[near.argmax(1)]
    weight = explainer._weights["facility"]
    member = int(owner[best - second > 1e-3][0])
    told = explainer.explain([member])[0]
    covered = owner == member
    covered[member] = False  # every member is the closest one to itself: that is no news
    assert told.witness_counts["facility"] == covered.sum()
    gain = np.where(owner == member, best - second, 0)
    assert told.score == pytest.approx(weight * gain.sum() / len(x), rel=1e-5)
    for one in explainer.explain(members):
        others = (owner == one.row).sum() > (owner[one.row] == one.row)
        assert not others or "no other row relies" not in one.sentence
        assert others or "closest selected row for" not in one.sentence
    shown = told.witnesses["facility"]
    assert [w.kind for w in shown] == ["covers"] * len(shown)
    assert member not in [w.row for w in shown]
    assert shown[0].amount == pytest.approx(weight * gain[covered].max() / len(x), rel=1e-5)
    other = int((~mask).nonzero()[0][3])
    told = explainer.explain([other])[0]
    gain = np.maximum(0, x @ x[other] - best)
    assert gain[other] > 0, "closer to itself than any member, which is not counted"
    assert told.witness_counts["facility"] == (np.delete(gain, other) > 5e-7).sum()
    assert other not in [w.row for w in told.witnesses["facility"]]
    assert told.score == pytest.approx(weight * gain.sum() / len(x), rel=1e-5)
    assert told.nearest_selected == owner[other]
    assert told.nearest_similarity == pytest.approx(best[other], abs=1e-6)


@pytest.mark.parametrize("select_ratio", [0.1, 0.3])
def test_the_nearest_member_is_the_same_for_few_rows_and_for_many(pool, select_ratio):
    _, mask, explainer = made(pool, objective="pairwise", select_ratio=select_ratio, estimator="random", n_epochs=None)
    x = pool.corpus.features.astype(np.float64)
    cosine = x @ x.T
    np.fill_diagonal(cosine, -np.inf)
    cosine[:, ~mask] = -np.inf
    rows = np.r_[mask.nonzero()[0][:4], (~mask).nonzero()[0][:4]]
    for told in [*explainer.explain(rows), *(explainer.explain([row])[0] for row in rows)]:
        assert mask[told.nearest_selected] and told.nearest_selected != told.row
        assert told.nearest_similarity == pytest.approx(cosine[told.row].max(), abs=1e-6)
        assert cosine[told.row, told.nearest_selected] == pytest.approx(cosine[told.row].max(), abs=1e-6)


def test_no_row_is_nearer_to_a_copy_of_its_member_by_rounding():
    rows = np.random.default_rng(0).normal(size=(300, 384))
    rows = (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)
    features = torch.from_numpy(np.concatenate([rows, rows]))
    function = objectives.load("facility").bind(features, exact_lists(features, 8))
    witnesses_of = witnesses.facility(function, torch.arange(600) < 300, no_poll)
    assert [witnesses_of(copy) for copy in range(300, 600)] == [((), 0)] * 300


def test_disf_witnesses_add_up_to_its_part(pool):
    _, mask, explainer = made(pool, objective="disf", lamb=0.0, n_epochs=3)
    function = explainer._posed.problem.joint.terms[0].function
    shares = function.by_dimension(torch.from_numpy(mask), 5)
    x = pool.corpus.features.astype(np.float64)
    z = (x - x[mask].mean(0)) / x[mask].std(0)
    c = np.corrcoef(x[mask], rowvar=False)
    off = c - np.eye(len(c))
    d = len(c)
    truth = -2 * (z[5] * (off @ z[5]) - z[5] ** 2 * (c * off).sum(1)) / ((mask.sum() - 1) * d * (d - 1))
    assert shares.numpy() == pytest.approx(truth, rel=1e-4, abs=1e-12)
    told = explainer.explain([5])[0]
    assert told.witnesses["disf"][0].row == np.abs(truth).argmax()


def test_what_was_settled_before_learning_is_said(corpus, pool, tmp_path):
    # a corpus with a copy: the worse of the two goes
    ids = corpus.ids.to_pylist()
    (tmp_path / "pin.txt").write_text("\n".join(map(str, ids[:2])))
    (tmp_path / "ban.txt").write_text(str(ids[2]))
    _, _, explainer = made(
        pool,
        objective="pairwise",
        pin=str(tmp_path / "pin.txt"),
        prune=0.3,
        ban=str(tmp_path / "ban.txt"),
        collapse="0.8",
    )
    told = {
        name: [t for t in explainer.explain(np.arange(len(corpus))) if t.state == name]
        for name in ("pinned", "banned", "pruned", "near-copy")
    }
    assert [t.row for t in told["pinned"]] == [0, 1] and all(t.selected for t in told["pinned"])
    assert [t.row for t in told["banned"]] == [2]
    assert told["pruned"] and told["near-copy"]
    for t in told["near-copy"]:
        assert not t.selected and corpus.quality[t.copy_of] >= corpus.quality[t.row]
        assert f"duplicate of {ids[t.copy_of]}" in t.sentence


@pytest.mark.parametrize("counted", ["rows", "tokens"])
def test_groups_whose_quota_binds_have_their_own_threshold(corpus, pool, counted):
    column = corpus.metadata.column_names[0]
    values = np.array(corpus.metadata[column].to_pylist())
    name, there = max(((v, (values == v).sum()) for v in set(values)), key=lambda pair: pair[1])
    high = 0.5 * there / len(values)
    size = {"select_ratio": None, "budget": 0.3 * corpus.lengths.sum()} if counted == "tokens" else {}
    _, mask, explainer = made(pool, objective="pairwise", quotas=(Quota(column, name, 0.0, high),), **size)
    group = values == name
    if counted == "rows":
        assert mask[group].sum() == int(high * mask.sum() + 1e-9)
    # the last rows that fit into a budget are not those of the highest score per token
    beside = 2 if counted == "tokens" else 0
    for rows in (group, ~group):
        assert abs(int((explainer.score > explainer.threshold)[rows].sum()) - int(mask[rows].sum())) <= beside
    assert len(set(explainer.threshold)) == 2


def test_intervals_are_the_runs_of_lambdas():
    assert intervals([0, 0.5, 1], [True, True, False]) == [(0, 0.5)]
    assert intervals([1, 0, 0.5, 0.25], [True, True, False, True]) == [(0, 0.25), (1, 1)]
    assert intervals([0, 1], [False, False]) == []


@pytest.mark.parametrize(
    "options",
    [{"objective": "pairwise", "estimator": "relaxed"}, {"objective": "facility", "n_epochs": 8}],
    ids=("pairwise", "facility"),
)
def test_a_flip_is_where_selecting_again_says_in_fewer_selections_than_halving(corpus, pool, options):
    config = SelectionConfig.from_options(select_ratio=0.2, device="cpu", **options)

    def member(lamb: float) -> np.ndarray:
        return select(corpus, replace(config, lamb=lamb), cache_dir=pool.cache_dir).mask

    at = {lamb: member(lamb) for lamb in (0.0, 0.5, 1.0)}
    again = Again(pool, config, at[0.5])
    rows = np.flatnonzero(at[0.0] != at[1.0])[:4]
    shares, solved = [], 0
    for row in rows:
        found = find_flip(again, int(row), work=Work(report=lambda share, what: shares.append(share)))
        solved += found.solved
        assert [bool(member(lamb)[row]) for lamb in found.around] == [found.below, not found.below]
        assert 0 < found.around[1] - found.around[0] <= TOLERANCE and found.around[0] < found.lamb < found.around[1]
        assert sorted(shares) == shares and shares[0] >= 0 and shares[-1] <= 1
        shares.clear()
    # halving from 0 to 1 would take twelve for each
    assert solved < 11 * len(rows)
    lamb, known = again.config.lamb, again.known(int(rows[0]))
    assert known[lamb] == at[0.5][rows[0]] and {0.0, 1.0} & set(known)


def test_selections_are_counted_though_old_ones_are_forgotten(pool, monkeypatch):
    monkeypatch.setattr(flips, "KEPT", 3)
    config = SelectionConfig.from_options(objective="pairwise", estimator="relaxed", select_ratio=0.2, lamb=0.5)
    ends = frontier(pool, config, [0.0, 0.5, 1.0])
    row = int(np.flatnonzero(ends[0].mask != ends[2].mask)[0])
    forgetful, again = (Again(pool, config, ends[1].mask) for _ in range(2))
    found = find_flip(forgetful, row)
    assert len(forgetful.known(row)) == 3 < found.solved == forgetful.made
    monkeypatch.undo()
    assert find_flip(again, row) == found


def test_a_sample_that_never_changes_sides_has_no_flip_and_stored_runs_need_not_be_made_again(pool):
    config = SelectionConfig.from_options(objective="pairwise", estimator="relaxed", select_ratio=0.2, lamb=0.5)
    ends = frontier(pool, config, [0.0, 0.5, 1.0])
    never = int(np.flatnonzero(~(ends[0].mask | ends[1].mask | ends[2].mask))[0])
    again = Again(pool, config, ends[1].mask)
    assert find_flip(again, never, {0.0: False, 1.0: False}) == Flip(None, False, (0.0, 1.0), 0)
    assert nearest_change({0.0: False, 0.2: True, 0.4: True, 0.9: False}, 0.4) == (0.4, 0.9)
    assert nearest_change({0.0: False, 0.6: True, 0.9: False}, 0.9) == (0.6, 0.9)
    assert nearest_change({0.5: True}, 0.5) is None


def test_given_rows_and_a_token_budget(corpus, pool, tmp_path):
    (tmp_path / "given.txt").write_text("\n".join(map(str, corpus.ids.to_pylist()[:3])))
    _, _, explainer = made(pool, objective="pairwise", given=str(tmp_path / "given.txt"))
    told = explainer.explain([0, 1, 2])
    assert [t.state for t in told] == ["given"] * 3 and all(t.sentence.startswith("You have it already") for t in told)
    budget = 0.2 * corpus.lengths.sum()
    _, mask, explainer = made(pool, objective="pairwise", select_ratio=None, budget=budget, lamb=0.5)
    rows = np.arange(20)
    for t in explainer.explain(rows):
        assert sum(part.value for part in t.parts) == pytest.approx(t.score - t.threshold, abs=1e-12)
    above, level = explainer.score > explainer.threshold, explainer.score == explainer.threshold  # copies are level
    assert above.sum() <= mask.sum() <= (above | level).sum()
    # rows compete per token: with quality alone the score is the quality itself, whatever the length
    _, _, explainer = made(pool, objective="pairwise", select_ratio=None, budget=budget, lamb=1.0)
    order = np.argsort(corpus.quality)
    assert (np.diff(explainer.score[order]) >= -1e-12).all()
