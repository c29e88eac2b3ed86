"""The compiled facility solvers against brute force: greedy picks, swaps end where they should."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from datamask.errors import Stopped
from datamask.learning import eager_swaps, medoids
from datamask.learning.eager_swaps import EagerSwaps, SwapLimits
from datamask.learning.facility_solver import TEMPERATURES, _bonus
from datamask.learning.facility_solver import medoids as direct
from datamask.learning.lists import Lists, bits_for
from datamask.learning.medoids import greedy, pick_gains, reverse_lists
from datamask.learning.problem import Problem
from datamask.objectives.facility import Facility, exact_lists
from datamask.objectives.joint import Joint, Scale, Term
from datamask.objectives.quality import Quality
from tests.reference import truth


def unlimited(n):
    return SwapLimits.of_rows(np.zeros(n, bool), np.zeros(n, np.int32), np.zeros(1), np.full(1, n))


def swap(lists, bonus, member, visit):
    search = EagerSwaps(lists, bonus, member, visit, unlimited(len(member)))
    while not search.finished:
        search.advance()


def annealed(lists, bonus, member, visit, limits):
    """The members after passes with temperatures, and the subset of each call on the way."""
    search, met = EagerSwaps(lists, bonus, member, visit, limits, temperatures=TEMPERATURES), []
    while not search.finished:
        search.advance()
        met.append(member.copy())
    return member, met


def solved(features, bonus, size, passes=True):
    indices, similarities = (part.numpy() for part in exact_lists(features, len(features)))
    indices = indices.astype(np.int32)
    reverse = reverse_lists(indices, similarities)
    picks = greedy(*reverse, bonus, size, np.arange(len(features)))
    member = np.zeros(len(features), dtype=bool)
    member[picks] = True
    if passes:
        swap(Lists(indices, similarities), bonus, member, np.arange(len(features)))
    return picks, np.flatnonzero(member)


@pytest.mark.parametrize("seed", range(8))
def test_lazy_greedy_picks_what_plain_greedy_picks(seed):
    rng = np.random.default_rng(seed)
    x = truth.unit_rows(rng, 40, 4)
    bonus = rng.uniform(size=40) * (seed % 2)
    picks, _ = solved(torch.from_numpy(x).float(), bonus, 8, passes=False)
    for done in range(8):
        taken = picks[:done].tolist()
        values = [
            40 * truth.facility(x, [*taken, i]) + bonus[[*taken, i]].sum() if i not in taken else -np.inf
            for i in range(40)
        ]
        # float32 similarities: among candidates within rounding of the best, either is the greedy pick
        assert values[picks[done]] == pytest.approx(max(values), abs=1e-5)


def test_gains_of_picks_add_up_to_what_they_cover():
    x = truth.unit_rows(np.random.default_rng(0), 40, 4)
    reverse = reverse_lists(*(part.numpy() for part in exact_lists(torch.from_numpy(x).float(), 40)))
    picks = greedy(*reverse, np.zeros(40), 8, np.arange(40))
    gains = pick_gains(*reverse, np.zeros(40), picks)
    assert (np.diff(gains) <= 0).all()
    for count in (1, 4, 8):
        assert gains[:count].sum() == pytest.approx(40 * truth.facility(x, picks[:count].tolist()), abs=1e-4)


def test_lazy_greedy_hears_a_stop_between_its_looks(monkeypatch):
    monkeypatch.setattr(medoids, "PAIRS_AT_ONCE", 1)
    monkeypatch.setattr(medoids, "PAIRS_PER_ROW", 0)
    features, polls = torch.eye(20), []
    reverse = reverse_lists(*(part.numpy() for part in exact_lists(features, 20)))

    def stop():
        polls.append(1)
        if len(polls) > 3:
            raise Stopped("now")

    with pytest.raises(Stopped):
        greedy(*reverse, np.zeros(20), 8, np.arange(20), stop)


@pytest.mark.parametrize("seed", range(8))
def test_after_the_swaps_no_single_swap_helps(seed):
    rng = np.random.default_rng(seed)
    x = truth.unit_rows(rng, 30, 3)
    bonus = rng.uniform(size=30) * (seed % 2)
    picks, members = solved(torch.from_numpy(x).float(), bonus, 6)

    def f(m):
        return 30 * truth.facility(x, m) + bonus[list(m)].sum()

    here = f(members)
    assert len(members) == 6 and here >= f(picks) - 1e-6
    for j in members:
        for i in set(range(30)) - set(members):
            assert f([*(k for k in members if k != j), i]) <= here + 1e-5


def test_barred_candidates_never_enter(rng):
    features = torch.from_numpy(truth.unit_rows(rng, 50, 4)).float()
    bonus = np.zeros(50)
    bonus[::2] = -np.inf
    _, members = solved(features, bonus, 10)
    assert (members % 2 == 1).all()


def test_swaps_improve_a_random_start(rng):
    features = torch.from_numpy(truth.unit_rows(rng, 200, 6)).float()
    indices, similarities = (part.numpy() for part in exact_lists(features, 30))
    indices = indices.astype(np.int32)
    member = np.zeros(200, dtype=bool)
    member[rng.choice(200, size=20, replace=False)] = True
    function = Facility(features, *exact_lists(features, 30))
    before = function.value(torch.from_numpy(member.copy()))
    swap(Lists(indices, similarities), np.zeros(200), member, rng.permutation(200))
    assert member.sum() == 20
    assert function.value(torch.from_numpy(member)) > before + 0.005


def test_annealing_leaves_a_local_optimum_within_the_limits_and_ends_in_one(rng):
    features = torch.from_numpy(truth.unit_rows(rng, 300, 5)).float()
    function = Facility(features, *exact_lists(features, 40))
    indices, similarities = (part.numpy() for part in exact_lists(features, 40))
    lists, bonus, visit = Lists(indices.astype(np.int32), similarities), np.zeros(300), rng.permutation(300)
    pinned, group = np.arange(300) < 3, np.arange(300, dtype=np.int32) % 2
    limits = SwapLimits.of_rows(pinned, group, np.array([12, 10]), np.array([20, 18]))
    gains = []
    for _ in range(10):
        member = np.zeros(300, dtype=bool)
        member[:3] = True
        member[rng.choice(np.arange(4, 300, 2), 13, replace=False)] = True
        member[rng.choice(np.arange(5, 300, 2), 14, replace=False)] = True
        swaps = EagerSwaps(lists, bonus, member, visit, limits)
        while not swaps.finished:
            swaps.advance()
        optimum = function.value(torch.from_numpy(member.copy()))
        after, met = annealed(lists, bonus, member.copy(), visit, limits)
        assert len(met) > 3
        for subset in met:
            even = int(subset[::2].sum())
            assert subset[:3].all() and subset.sum() == 30 and 12 <= even <= 20
        again = EagerSwaps(lists, bonus, after.copy(), visit, limits)
        assert len(again.advance()) == 0
        gains.append(function.value(torch.from_numpy(after)) - optimum)
    assert np.median(gains) > 0.0002


def test_annealing_does_not_depend_on_how_often_it_polls(rng, monkeypatch):
    features = torch.from_numpy(truth.unit_rows(rng, 300, 6)).float()
    indices, similarities = (part.numpy() for part in exact_lists(features, 30))
    lists, begun = Lists(indices.astype(np.int32), similarities), np.arange(300) < 30
    visit, bonus = rng.permutation(300), rng.uniform(size=300)
    once, calls = annealed(lists, bonus, begun.copy(), visit, unlimited(300))
    monkeypatch.setattr(eager_swaps, "PAIRS_AT_ONCE", 300)
    often, more = annealed(lists, bonus, begun.copy(), visit, unlimited(300))
    assert len(more) > 3 * len(calls)
    np.testing.assert_array_equal(once, often)


def test_rounds_of_annealing_that_begin_together_end_as_one_after_another(rng):
    features = torch.from_numpy(truth.unit_rows(rng, 1_500, 8)).float()
    term = Term("facility", 1.0, Facility(features, *exact_lists(features, 40)))
    joint = Joint(Quality(torch.from_numpy(rng.normal(size=1_500))), (term,), 0.01)
    problem = Problem(joint, 300, torch.arange(1_500), torch.arange(1_500))
    before, masks, found = torch.get_num_threads(), [], []
    try:
        for threads in (1, 2, 5):
            torch.set_num_threads(threads)
            trace = []
            masks.append(direct(problem, trace=trace.append))
            found.append([point.metrics["anneals"] for point in trace if "anneals" in point.metrics])
    finally:
        torch.set_num_threads(before)
    assert len(found[0]) > 1, "no round found a better selection: nothing was to be begun anew"
    assert found[1] == found[2] == found[0]
    assert (masks[1] == masks[0]).all() and (masks[2] == masks[0]).all()


def test_lists_in_another_order_are_the_same_lists(rng):
    features = torch.from_numpy(truth.unit_rows(rng, 60, 4)).float()
    indices, similarities = (part.numpy() for part in exact_lists(features, 8))
    order, values = rng.permutation(60), rng.normal(size=60)
    plain = Lists.in_steps(indices.astype(np.int32), similarities)
    ordered = Lists.in_steps(indices.astype(np.int32), similarities, order=order)
    np.testing.assert_array_equal(order[ordered.indices], plain.indices[order])
    np.testing.assert_array_equal(ordered.near, plain.near[order])
    np.testing.assert_array_equal(ordered.by_position(values), values[order])
    np.testing.assert_array_equal(ordered.by_row(ordered.by_position(values)), values)


@pytest.mark.parametrize(("lowest", "bits"), [(-0.3, 16), (0.0, 16), (0.4, 16), (0.6, 17), (0.999, 24), (1.0, 24)])
def test_steps_are_as_fine_as_the_lowest_similarity_allows(lowest, bits):
    assert bits_for(lowest) == bits
    assert (1 - max(lowest, 1 / 65536)) * 2**bits <= 65535


@pytest.mark.parametrize("slope", [0.7, 11.3, 250.1])
def test_the_last_digits_of_the_scale_do_not_change_what_greedy_and_swaps_go_by(slope):
    """The ends of the scale are sums, whose last digits differ between processors."""
    rng = np.random.default_rng(0)
    quality = torch.from_numpy(rng.normal(size=200))
    features = torch.from_numpy(truth.unit_rows(rng, 200, 4)).float()
    facility, ties, bonuses = Facility(features, *exact_lists(features, 20)), torch.arange(200), []
    for digit in (-3e-6, 0.0, 3e-6):
        term = Term("facility", 1.0, facility, Scale(0.2, slope * (1 + digit)))
        joint = Joint(Quality(quality), (term,), 0.4, Scale(0.1, 0.4))
        bonuses.append(_bonus(Problem(joint, 20, torch.arange(200), ties)))
    np.testing.assert_array_equal(bonuses[0], bonuses[1])
    np.testing.assert_array_equal(bonuses[2], bonuses[1])
    exact = (quality - quality.mean()).numpy() / 20 * (0.4 * 0.4 / (0.6 * slope) * 200)
    np.testing.assert_allclose(bonuses[1], exact, rtol=1 / 2000)
