"""The live lambda under pins, bans, quotas, given rows and token budgets: rules hold exactly, values are a run's."""

from __future__ import annotations

import itertools
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from datamask import select
from datamask.config import Quota, SelectionConfig
from datamask.evaluation.frontier import at_lambda
from datamask.evaluation.live import open_live
from tests.making.pools import corpus_of
from tests.reference import truth

N, D = 240, 6
LAMBDAS = (0.0, 0.3, 0.5, 0.9, 0.99, 1.0)
BETWEEN = (0.13, 0.41, 0.72, 0.97)
COMPARED = (0.0, BETWEEN[1], 0.99)
"""Where a run is made beside: at an end, twice in between, where little but quality counts."""

EXACTLY = 1e-9


@pytest.fixture(scope="module")
def corpus():
    rng = np.random.default_rng(5)
    cloud = rng.integers(6, size=N)
    features = rng.normal(size=(6, D))[cloud] + 0.5 * rng.normal(size=(N, D))
    source = pa.array([f"s{k % 4}" for k in cloud]).dictionary_encode()
    return corpus_of(
        features, rng.normal(size=N) + cloud / 3, lengths=rng.integers(5, 60, N).astype(float), source=source
    )


@pytest.fixture
def ruled(corpus, tmp_path):
    """Settings by what limits them."""

    def ids(name, rows):
        path = tmp_path / f"{name}.txt"
        path.write_text("".join(f"{row}\n" for row in rows))
        return str(path)

    # the worst by quality are pinned and the best banned, so that a solver that forgot a rule would be seen
    worst = np.argsort(corpus.quality)
    pin, ban, given = ids("pin", worst[:5]), ids("ban", worst[-9:]), ids("given", worst[5:25])
    tokens = float(corpus.lengths.sum())
    quotas = (Quota("source", "s0", 0.0, 0.1), Quota("source", "s1", 0.4, 1.0))
    return {
        "pins": {"pin": pin},
        "bans": {"ban": ban},
        "quotas": {"quotas": quotas},
        "given": {"given": given},
        "all rules": {"pin": pin, "ban": ban, "given": given, "quotas": quotas, "select_ratio": 0.2},
        "tokens": {"budget": 0.3 * tokens},
        "tokens and rules": {"budget": 0.3 * tokens, "pin": pin, "ban": ban, "given": given},
    }


def settings(objective, limits, **given):
    return SelectionConfig.from_options(**{"objective": objective, "device": "cpu", **limits, **given})


def obeys(corpus, limits, config, mask):
    """Whether a selection obeys its rules, read from the settings alone."""

    def rows(name):
        return [] if name not in limits else [int(line) for line in Path(limits[name]).read_text().split()]

    assert mask[rows("pin")].all() and not mask[rows("ban")].any() and not mask[rows("given")].any()
    if "budget" in limits:
        free = np.setdiff1d(np.arange(N), rows("pin") + rows("given") + rows("ban"))
        tokens = corpus.lengths[mask].sum()
        assert limits["budget"] - corpus.lengths[free].max() <= tokens <= limits["budget"]
        return
    size = config.size(N)
    assert mask.sum() == size
    source = np.array(corpus.metadata["source"].to_pylist())
    for quota in limits.get("quotas", ()):
        inside = int((mask & (source == quota.value)).sum())
        assert np.ceil(quota.low * size - EXACTLY) <= inside <= np.floor(quota.high * size + EXACTLY)


def of_definition(corpus, objective, live, mask):
    """Quality and diversity of a selection with the given rows, as shares, from their definitions in float64 numpy."""
    members = (mask | live.posed.given).nonzero()[0]
    anchors = live.posed.anchors()
    q0, d0 = anchors.quality.to_dict(), anchors.diversity[objective].to_dict()
    quality = (corpus.quality[members].mean() - q0["random"]) / (q0["best"] - q0["random"])
    value = getattr(truth, objective)(corpus.features.astype(np.float64), members)
    return quality, (value - d0["random"]) / (d0["best"] - d0["random"])


LIMITS = ("pins", "bans", "quotas", "given", "all rules", "tokens", "tokens and rules")


@pytest.mark.parametrize("limits", LIMITS)
@pytest.mark.parametrize("objective", ["pairwise", "facility"])
def test_rules_hold_exactly_and_values_are_those_of_a_run(corpus, ruled, tmp_path, objective, limits):
    config = settings(objective, ruled[limits])
    live = open_live(corpus, config, tmp_path)
    for lamb in LAMBDAS:
        assert live.solve(lamb).solved
    for lamb in live.lambdas:
        if live.provable(lamb):
            live.prove(lamb)
    answers = [live.answer(lamb) for lamb in (*LAMBDAS, *BETWEEN)] + [live.refined(BETWEEN[1])]
    assert sum(not answer.solved for answer in answers) >= len(BETWEEN)
    for answer in answers:
        obeys(corpus, ruled[limits], config, answer.mask)
        problem = at_lambda(live.posed, answer.lamb).problem
        whole = answer.mask | live.posed.given
        values = problem.joint.evaluate(problem.pinned.new_tensor(whole))
        shares = at_lambda(live.posed, answer.lamb).shares(values)
        assert (answer.quality, answer.diversity) == pytest.approx((shares.quality, shares.diversity), abs=2e-6)
        if config.budget is None:
            reference = of_definition(corpus, objective, live, answer.mask)
            assert (answer.quality, answer.diversity) == pytest.approx(reference, abs=2e-5)
        assert answer.gap is not None and answer.gap >= 0
        if answer.lamb not in COMPARED:
            continue
        run = select(corpus, replace(config, lamb=answer.lamb), cache_dir=tmp_path)
        joint = run.summary["calibrated"]["joint"]
        assert joint <= answer.joint + answer.gap + 1e-6  # its bound holds for what the run found
        if run.summary["gap"] is not None:
            assert answer.joint <= joint + run.summary["gap"] + 1e-6
        if answer.solved:
            assert answer.joint >= joint - 5e-3


@pytest.mark.parametrize("limits", ("pins", "given", "pins and quotas", "pins and tokens"))
def test_where_rules_leave_little_to_choose_the_slider_proves_as_much_as_a_run(corpus, tmp_path, limits):
    def ids(rows):
        path = tmp_path / "ids.txt"
        path.write_text("".join(f"{row}\n" for row in rows))
        return str(path)

    worst = np.argsort(corpus.quality)
    rows = worst[:36]
    held = {
        "pins": {"select_ratio": 40 / N, "pin": ids(rows)},
        "given": {"select_ratio": 4 / N, "given": ids(worst[:120])},
        "pins and quotas": {
            "select_ratio": 40 / N,
            "pin": ids(rows[::4]),
            "quotas": (Quota("source", "s1", 0.4, 0.55),),
        },
        "pins and tokens": {"budget": float(corpus.lengths[rows].sum()) + 200.0, "pin": ids(rows)},
    }[limits]
    config = settings("pairwise", held)
    live = open_live(corpus, config, tmp_path)
    for lamb in (0.2, 0.5, 0.8):
        run = select(corpus, replace(config, lamb=lamb), cache_dir=tmp_path)
        answer, joint = live.solve(lamb), run.summary["calibrated"]["joint"]
        assert answer.joint + answer.gap <= joint + run.summary["gap"] + 2e-4
        if config.budget is None:  # a run keeps the best rounding of all its steps, which under a budget differ by more
            assert answer.gap <= run.summary["gap"] + 2e-4


@pytest.mark.parametrize("limits", ("quotas", "tokens"))
@pytest.mark.parametrize("objective", ["pairwise", "facility"])
@pytest.mark.parametrize("seed", range(3))
def test_no_allowed_selection_is_worth_more_than_its_bound(tmp_path, objective, limits, seed):
    rng = np.random.default_rng(seed)
    n = 11
    lengths = rng.integers(5, 30, n).astype(float)
    kinds = [str(k) for k in rng.permutation([0] * 6 + [1] * 5)]
    small = corpus_of(truth.unit_rows(rng, n, 3), rng.normal(size=n), lengths=lengths, kind=kinds)
    pinned, given, banned = 2, 7, 4
    files = {}
    for name, row in (("pin", pinned), ("given", given), ("ban", banned)):
        (tmp_path / f"{name}.txt").write_text(f"{row}\n")
        files[name] = str(tmp_path / f"{name}.txt")
    quota = {"select_ratio": 5 / n, "quotas": (Quota("kind", "0", 0.2, 0.4),)}
    budget = float(np.floor(0.4 * lengths.sum()))
    live = open_live(
        small, settings(objective, {**files, **(quota if limits == "quotas" else {"budget": budget})}), tmp_path
    )
    for lamb in (0.0, 0.5, 0.99):
        live.solve(lamb)
        if live.provable(lamb):
            live.prove(lamb)
    free = [row for row in range(n) if row not in (pinned, given, banned)]
    allowed = []
    for count in range(n - 3):
        for chosen in itertools.combinations(free, count):
            members = [pinned, *chosen]
            if limits == "quotas":
                zeros = sum(kinds[row] == "0" for row in members)
                fits = len(members) == 5 and 1 <= zeros <= 2
            else:
                least = budget - lengths[free].max()
                fits = least <= lengths[members].sum() <= budget
            if fits:
                allowed.append([given, *members])
    assert len(allowed) > 5
    for lamb in (0.0, 0.25, 0.5, 0.8, 0.99):
        answer = live.answer(lamb)
        chosen = sorted([given, *answer.mask.nonzero()[0].tolist()])
        assert chosen in [sorted(members) for members in allowed]
        posed = at_lambda(live.posed, lamb)
        values = []
        for members in allowed:
            mask = posed.problem.ties.new_zeros(n).bool()
            mask[members] = True
            values.append(posed.shares(posed.problem.joint.evaluate(mask)).joint)
        assert max(values) <= answer.joint + answer.gap + 1e-6
        assert answer.joint <= max(values) + 1e-6


@pytest.mark.parametrize("limits", ("all rules", "tokens and rules"))
@pytest.mark.parametrize("objective", ["disf_fixed", "vendi", "disf"])
def test_what_is_learned_obeys_rules_too_and_answers_with_what_is_solved(corpus, ruled, tmp_path, objective, limits):
    config = settings(objective, ruled[limits])
    live = open_live(corpus, config, tmp_path)
    for lamb in (0.3, 0.5):
        live.solve(lamb)
    solved = [live.answer(lamb) for lamb in (0.3, 0.5)]
    near = live.answer(0.41)
    assert near.solved_at in (0.3, 0.5, 1.0)
    for answer in (*solved, near):
        obeys(corpus, ruled[limits], config, answer.mask)


def test_pins_and_the_like_leave_nothing_of_what_is_given_in_the_answer(corpus, ruled, tmp_path):
    live = open_live(corpus, settings("facility", ruled["given"]), tmp_path)
    live.solve(0.5)
    (point,) = live.solved()
    assert not (point.mask & live.posed.given).any() and live.posed.given.sum() == 20
    assert point.mask.sum() == live.posed.wanted
