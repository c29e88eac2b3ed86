"""The pair-wise dual against exhaustive search, against Frank-Wolfe, and against the exact values of its roundings."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch

from datamask import objectives
from datamask.config import SelectionConfig
from datamask.errors import Stopped
from datamask.learning import newton
from datamask.learning.newton import TOLERANCE, PairwiseDual, _spread
from datamask.learning.problem import Problem
from datamask.learning.relaxation import advance, begin, upper_bound
from datamask.learning.relaxed import relaxed
from datamask.learning.solvers import solver_of
from datamask.learning.state import State
from datamask.learning.warm_start import WarmStart
from datamask.objectives.joint import Joint, Scale, Term
from datamask.objectives.quality import Quality
from datamask.polling import no_poll
from tests.reference import truth


def make(rng, n, d, size, lamb, eligible=None, objective="pairwise"):
    """A pair-wise problem with odd scales, and its value function in float64 numpy."""
    x, q = truth.unit_rows(rng, n, d), rng.normal(size=n)
    function = objectives.load(objective).bind(torch.from_numpy(x).float())
    joint = Joint(
        Quality(torch.from_numpy(q)), (Term(objective, 1.0, function, Scale(-0.1, 1.5)),), lamb, Scale(0.2, 0.7)
    )
    rows = torch.arange(n) if eligible is None else torch.as_tensor(eligible)

    def f(members):
        members = list(members)
        return lamb * (q[members].mean() - 0.2) * 0.7 + (1 - lamb) * (truth.pairwise(x, members) + 0.1) * 1.5

    return Problem(joint, size, rows, torch.from_numpy(rng.permutation(n))), f


@pytest.mark.parametrize("seed", range(25))
def test_a_bound_is_never_below_the_best_subset_wherever_it_is_taken(seed):
    rng = np.random.default_rng(seed)
    n, size = int(rng.integers(6, 12)), int(rng.integers(2, 5))
    eligible = np.sort(rng.choice(n, size=n - int(rng.integers(0, 2)), replace=False))
    problem, f = make(rng, n, 3, size, rng.choice([0.0, 0.3, 0.8, 1.0]), eligible)
    best = max(f(m) for m in itertools.combinations(eligible.tolist(), size))
    dual = PairwiseDual(problem)
    found = dual.solve()
    assert found.upper_bound >= best - 1e-9
    members = found.mask.nonzero().squeeze(1).tolist()
    assert len(members) == size and set(members) <= set(eligible.tolist())
    assert f(members) <= best + 1e-9
    if dual.kappa:
        for _ in range(5):  # any y bounds, the solution's is only the tightest
            y = torch.from_numpy(rng.normal(size=3)) * size
            assert dual.upper_bound(y) >= found.upper_bound - 2 * TOLERANCE


@pytest.mark.parametrize("lamb", [0.0, 0.2, 0.7])
def test_value_and_bound_meet_where_there_is_room(lamb):
    """n 3 000, d 8: the gap of the rounding is below 1e-4, and Frank-Wolfe agrees with the bound."""
    rng = np.random.default_rng(3)
    problem, f = make(rng, 3000, 8, 600, lamb)
    found = PairwiseDual(problem).solve()
    value = f(found.mask.nonzero().squeeze(1).tolist())
    assert 0 <= found.upper_bound - value < 1e-4
    here = begin(problem)
    for _ in range(200):
        here, _ = advance(problem, here)
    assert found.upper_bound == pytest.approx(upper_bound(problem, here.weights), abs=2e-4)
    assert found.upper_bound <= upper_bound(problem, here.weights) + TOLERANCE


def test_a_step_is_solved_also_where_products_are_slow():
    """400 rows whose spectrum falls by nine orders of magnitude, nearly without smoothing."""
    rng = np.random.default_rng(5)
    x = rng.normal(size=(400, 500)) * np.geomspace(1.0, 1e-4, 500)
    function = objectives.load("pairwise").bind(torch.from_numpy(x / np.linalg.norm(x, axis=1, keepdims=True)).float())
    joint = Joint(Quality(torch.zeros(400)), (Term("pairwise", 1.0, function),), 0.0)
    dual = PairwiseDual(Problem(joint, 100, torch.arange(400), torch.arange(400)))
    residual, smooth = torch.from_numpy(rng.normal(size=500)), 1e-9
    step = dual._newton_step(torch.full((400,), 0.5, dtype=torch.float64), residual, smooth, no_poll)
    centered = dual.x.double() - dual.x.double().mean(0)
    left = smooth * step + 0.25 * (centered.T @ (centered @ step)) - smooth * residual
    assert float(left.norm()) <= 1e-3 * smooth * float(residual.norm())


def test_a_neighbours_solution_is_a_good_start():
    rng = np.random.default_rng(5)
    problem, _ = make(rng, 4000, 16, 900, 0.4)
    near, _ = make(np.random.default_rng(5), 4000, 16, 900, 0.42)
    first = PairwiseDual(problem).solve()
    cold, warm = PairwiseDual(near).solve(), PairwiseDual(near).solve(first.y)
    assert warm.steps <= cold.steps
    assert warm.upper_bound == pytest.approx(cold.upper_bound, abs=2 * TOLERANCE)


@pytest.mark.parametrize("lamb", [0.0, 0.5])
def test_the_solution_of_a_sample_is_a_good_start(monkeypatch, lamb):
    problem, _ = make(np.random.default_rng(5), 20_000, 16, 4500, lamb, np.arange(100, 20_000))
    cold = PairwiseDual(problem).solve()
    monkeypatch.setattr(newton, "PILOT_ROWS", 8000)
    monkeypatch.setattr(newton, "MANY_ROWS", 15_000)
    dual = PairwiseDual(problem)
    assert float((dual._pilot(no_poll) - cold.y).norm()) < 0.1 * float(cold.y.norm())
    found = dual.solve()
    assert found.upper_bound == pytest.approx(cold.upper_bound, abs=2 * TOLERANCE)
    assert 0 <= found.upper_bound - problem.joint.evaluate(found.mask).joint < 1e-4


def test_copies_and_equal_qualities_do_no_harm():
    """Every row ten times and one quality: thousands of rows on the threshold."""
    rng = np.random.default_rng(8)
    x = np.repeat(truth.unit_rows(rng, 300, 6), 10, axis=0)
    function = objectives.load("pairwise").bind(torch.from_numpy(x).float())
    joint = Joint(Quality(torch.ones(3000)), (Term("pairwise", 1.0, function, Scale(0.0, 2.0)),), 0.9)
    problem = Problem(joint, 750, torch.arange(3000), torch.arange(3000))
    found = PairwiseDual(problem).solve()
    assert int(found.mask.sum()) == 750
    assert found.upper_bound - joint.evaluate(found.mask).joint < 1e-4


def test_it_is_for_pairwise_alone_and_can_be_stopped():
    rng = np.random.default_rng(1)
    assert solver_of(make(rng, 20, 3, 5, 0.5)[0]).dual is PairwiseDual
    other = make(rng, 20, 3, 5, 0.5, objective="disf_fixed")[0]
    assert solver_of(other).dual is None
    at_one = make(rng, 20, 3, 5, 1.0, objective="disf_fixed")[0]  # at lambda 1 no diversity counts
    assert solver_of(at_one).dual is PairwiseDual

    def poll():
        raise Stopped("stop")

    with pytest.raises(Stopped):
        PairwiseDual(make(rng, 20, 3, 5, 0.5)[0]).solve(poll=poll)


@pytest.mark.parametrize("lamb", [0.4, 1.0])
def test_the_learner_steps_from_its_state_alone_and_starts_where_it_is_told(lamb):
    """A state written down and read again goes on to the same end; a neighbour's last state saves steps."""
    config = SelectionConfig.from_options(estimator="relaxed", objective="pairwise", lamb=lamb)

    def run(problem, state=None, start=None, write_down=False):
        learner = relaxed(problem, config, start)
        state = learner.init() if state is None else state
        while learner.finished(state) is None:
            state, record = learner.step(state)
            assert record.metrics["upper_bound"] >= record.values.joint - 1e-9
            if write_down:
                arrays, values = state.arrays()
                state, learner = State.from_arrays(arrays, values, learner.device), relaxed(problem, config)
        return state, learner.result(state)

    problem, _ = make(np.random.default_rng(5), 3000, 16, 700, lamb)
    (whole, mask), (_, same) = run(problem), run(problem, write_down=True)
    assert torch.equal(mask, same)
    near, _ = make(np.random.default_rng(5), 3000, 16, 700, min(1.0, lamb + 0.02))
    y = None if lamb == 1 else whole.logits[:-2]
    (cold, far), (warm, close) = run(near), run(near, start=WarmStart(mask, mask.double(), y=y))
    assert warm.step <= cold.step
    assert near.joint.evaluate(close).joint == pytest.approx(near.joint.evaluate(far).joint, abs=2e-5)


@pytest.mark.parametrize("seed", range(4))
def test_steps_beyond_the_solution_stay_finite(seed):
    """Although at some of them every row is decided, and nothing has any spread."""
    problem, _ = make(np.random.default_rng(seed), 30, 8, 6, 0.95)
    estimator = relaxed(problem, SelectionConfig.from_options(estimator="relaxed", objective="pairwise", lamb=0.95))
    state = estimator.init()
    for _ in range(40):
        state, _ = estimator.step(state)
        assert torch.isfinite(state.logits).all()
    assert float(estimator.inclusion(state).sum()) == pytest.approx(6)


@pytest.mark.parametrize("unit", [1.0, 1e200])
def test_the_spread_is_the_standard_deviation_also_where_squares_are_beyond_float64(unit):
    numbers = np.random.default_rng(0).normal(size=50)
    assert _spread(torch.from_numpy(unit * numbers)) == pytest.approx(unit * numbers.std(ddof=1), rel=1e-12)


def with_common_offset(rng, n, d, offset):
    """Unit rows that share a direction, float64, and what a corpus keeps of them: read as float32, then scaled."""
    x = rng.normal(size=(n, d)) + offset * rng.normal(size=d)
    read = x.astype(np.float32)
    lengths = np.sqrt(np.einsum("ij,ij->i", read, read).astype(np.float64))
    kept = read * (1.0 / lengths).astype(np.float32)[:, None]
    return x / np.linalg.norm(x, axis=1, keepdims=True), torch.from_numpy(kept)


@pytest.mark.parametrize("offset", [0.0, 30.0, 1e4])
@pytest.mark.parametrize("seed", range(20))
def test_a_bound_holds_for_the_rows_before_float32_rounded_them(seed, offset):
    """Where rows share a direction, their float32 lengths tell more subsets apart than their angles do."""
    rng = np.random.default_rng([seed, int(offset)])
    n, size = int(rng.integers(6, 12)), int(rng.integers(2, 6))
    x, kept = with_common_offset(rng, n, int(rng.integers(2, 6)), offset)
    values = [truth.pairwise(x, members) for members in itertools.combinations(range(n), size)]
    scale = Scale(float(np.mean(values)), 1.0 / (max(values) - float(np.mean(values))))
    function = objectives.load("pairwise").bind(kept)
    joint = Joint(Quality(torch.zeros(n, dtype=torch.float64)), (Term("pairwise", 1.0, function, scale),), 0.0)
    dual = PairwiseDual(Problem(joint, size, torch.arange(n), torch.arange(n)))
    # at the best subset's own sum the bound comes as close to it as a bound can
    best = list(itertools.combinations(range(n), size))[int(np.argmax(values))]
    ys = [dual.solve().y, torch.from_numpy(x[list(best)].sum(0))]
    assert min(dual.upper_bound(y) for y in ys) >= 1.0 - 1e-15 / (max(values) - scale.zero)


def test_the_bound_of_every_step_holds_for_those_rows_too():
    _, kept = with_common_offset(np.random.default_rng(6), 400, 8, 30.0)
    joint = Joint(Quality(torch.zeros(400)), (Term("pairwise", 1.0, objectives.load("pairwise").bind(kept)),), 0.0)
    problem = Problem(joint, 80, torch.arange(400), torch.arange(400))
    learner, dual = relaxed(problem, SelectionConfig.from_options(estimator="relaxed", lamb=0.0)), PairwiseDual(problem)
    state, record = learner.step(learner.init())
    y = state.logits[:-2]
    assert record.metrics["upper_bound"] == pytest.approx(dual.upper_bound(y), abs=1e-13)
    assert dual.upper_bound(y) > dual.upper_bound(y, rounding=0.0) + 1e-9


def test_a_value_is_that_of_the_rows_before_float32_made_them_unit_length():
    """Mean cosine .999: what rounding adds to the lengths would be some millionths of the scale."""
    rng = np.random.default_rng(3)
    x, kept = with_common_offset(rng, 2_000, 32, 30.0)
    function = objectives.load("pairwise").bind(kept)
    ends = truth.pairwise(x, range(2_000)), truth.pairwise(x, np.argsort(x @ x.sum(0))[:200])
    members = np.sort(rng.choice(2_000, 200, replace=False))
    mask = torch.zeros(2_000, dtype=torch.bool)
    mask[members] = True
    assert abs(function.value(mask) - truth.pairwise(x, members)) <= 1e-7 * (ends[1] - ends[0])
    mean = torch.full((2_000,), 0.1, dtype=torch.float64)
    assert function.concave(mean, 200)[0] == pytest.approx(-((0.1 * x.sum(0)) @ (0.1 * x.sum(0)) - 200) / (200 * 199))
