"""The dual of either moments against exhaustive search, Frank-Wolfe, and the exact values of its roundings."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch

from datamask import objectives
from datamask.config import SelectionConfig
from datamask.errors import Stopped
from datamask.learning import relaxation
from datamask.learning.newton import TOLERANCE, QuadraticDual, _spread
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

SUM = "pairwise:0.7,disf_fixed:0.3"
SLACK = {"pairwise": 1e-9, "disf_fixed": 1e-5, SUM: 1e-5}
"""DiSF's rows are standardised in float32, those of the truth in float64."""

ALL = pytest.mark.parametrize("objective", SLACK)


def make(rng, n, d, size, lamb, eligible=None, objective="pairwise"):
    """A problem with odd scales, and its value function in float64 numpy."""
    x, q = truth.unit_rows(rng, n, d), rng.normal(size=n)
    weights = {name: float(weight or 1) for name, _, weight in (part.partition(":") for part in objective.split(","))}
    rows_of = torch.from_numpy(x).float()
    terms = [Term(name, w, objectives.load(name).bind(rows_of), Scale(-0.1, 1.5)) for name, w in weights.items()]
    joint = Joint(Quality(torch.from_numpy(q)), tuple(terms), lamb, Scale(0.2, 0.7))
    rows = torch.arange(n) if eligible is None else torch.as_tensor(eligible)

    def f(members):
        members = list(members)
        diversity = sum(weight * getattr(truth, name)(x, members) for name, weight in weights.items())
        return lamb * (q[members].mean() - 0.2) * 0.7 + (1 - lamb) * (diversity + 0.1) * 1.5

    return Problem(joint, size, rows, torch.from_numpy(rng.permutation(n))), f


@ALL
@pytest.mark.parametrize("seed", range(25))
def test_a_bound_is_never_below_the_best_subset_wherever_it_is_taken(seed, objective):
    rng = np.random.default_rng(seed)
    n, size = int(rng.integers(6, 12)), int(rng.integers(2, 5))
    eligible = np.sort(rng.choice(n, size=n - int(rng.integers(0, 2)), replace=False))
    problem, f = make(rng, n, 3, size, rng.choice([0.0, 0.3, 0.8, 1.0]), eligible, objective)
    best = max(f(m) for m in itertools.combinations(eligible.tolist(), size))
    dual = QuadraticDual(problem)
    found = dual.solve()
    assert found.upper_bound >= best - SLACK[objective]
    members = found.mask.nonzero().squeeze(1).tolist()
    assert len(members) == size and set(members) <= set(eligible.tolist())
    assert f(members) <= best + 1e-9
    if dual.kappa:
        for _ in range(5):  # any y bounds, the solution's is only the tightest
            y = torch.from_numpy(rng.normal(size=dual.phi.length)) * size
            assert dual.upper_bound(y) >= best - SLACK[objective]


@ALL
@pytest.mark.parametrize("lamb", [0.0, 0.2, 0.7])
def test_value_and_bound_meet_where_there_is_room(lamb, objective):
    """n 3 000, d 8: the gap of the rounding is below 1e-4, and Frank-Wolfe agrees with the bound."""
    rng = np.random.default_rng(3)
    problem, f = make(rng, 3000, 8, 600, lamb, objective=objective)
    found = QuadraticDual(problem).solve()
    value = f(found.mask.nonzero().squeeze(1).tolist())
    assert problem.joint.evaluate(found.mask).joint == pytest.approx(value, abs=SLACK[objective])
    assert -SLACK[objective] <= found.upper_bound - value < 1e-4
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
    dual = QuadraticDual(Problem(joint, 100, torch.arange(400), torch.arange(400)))
    residual, smooth = torch.from_numpy(rng.normal(size=500)), 1e-9
    step = dual._newton_step(torch.full((400,), 0.5, dtype=torch.float64), residual, smooth, no_poll)
    centered = function.features.double() - function.features.double().mean(0)
    left = smooth * step + 0.25 * (centered.T @ (centered @ step)) - smooth * residual
    assert float(left.norm()) <= 1e-3 * smooth * float(residual.norm())


@ALL
def test_a_neighbours_solution_is_a_good_start(objective):
    problem, _ = make(np.random.default_rng(5), 4000, 16, 900, 0.4, objective=objective)
    near, _ = make(np.random.default_rng(5), 4000, 16, 900, 0.42, objective=objective)
    first = QuadraticDual(problem).solve()
    cold, warm = QuadraticDual(near).solve(), QuadraticDual(near).solve(first.y)
    assert warm.steps <= cold.steps
    assert warm.upper_bound == pytest.approx(cold.upper_bound, abs=2 * TOLERANCE)


@ALL
@pytest.mark.parametrize("lamb", [0.0, 0.5])
def test_the_solution_of_a_sample_is_a_good_start(monkeypatch, lamb, objective):
    problem, _ = make(np.random.default_rng(5), 20_000, 16, 4500, lamb, np.arange(100, 20_000), objective)
    cold = QuadraticDual(problem).solve()
    dual = QuadraticDual(problem)
    monkeypatch.setattr(type(dual.phi), "pilot_rows", 8000)
    monkeypatch.setattr(type(dual.phi), "many_rows", 15_000)
    assert -TOLERANCE <= dual.upper_bound(dual._pilot(no_poll)) - cold.upper_bound < 5e-4
    found = dual.solve()
    assert found.upper_bound == pytest.approx(cold.upper_bound, abs=2 * TOLERANCE)
    assert 0 <= found.upper_bound - problem.joint.evaluate(found.mask).joint < 1e-4


@pytest.mark.parametrize("scale", [0.5, 2.0])
def test_a_y_with_a_diagonal_bounds_too(scale):
    """Second moments have none, and a kept proof is not believed for what it should be."""
    problem, f = make(np.random.default_rng(0), 10, 3, 4, 0.0, objective="disf_fixed")
    best = max(f(members) for members in itertools.combinations(range(10), 4))
    assert QuadraticDual(problem).upper_bound(scale * torch.eye(3, dtype=torch.float64).view(-1)) >= best


def test_a_sum_with_fewer_components_than_dimensions_has_steps_in_one_type():
    """Where rows near the threshold are many of the one and few of the other."""
    x = torch.from_numpy(truth.unit_rows(np.random.default_rng(0), 20_000, 128)).float()
    functions = [objectives.load("pairwise").bind(x), objectives.load("disf_fixed").bind(x[:, :16].contiguous())]
    terms = tuple(Term(name, 0.5, each) for name, each in zip(("pairwise", "disf_fixed"), functions))
    problem = Problem(
        Joint(Quality(torch.zeros(20_000)), terms, 0.0), 5_000, torch.arange(20_000), torch.arange(20_000)
    )
    dual = QuadraticDual(problem)
    point = dual.advance(dual.begin())
    assert torch.isfinite(point.y).all()


def test_copies_and_equal_qualities_do_no_harm():
    """Every row ten times and one quality: thousands of rows on the threshold."""
    rng = np.random.default_rng(8)
    x = np.repeat(truth.unit_rows(rng, 300, 6), 10, axis=0)
    function = objectives.load("pairwise").bind(torch.from_numpy(x).float())
    joint = Joint(Quality(torch.ones(3000)), (Term("pairwise", 1.0, function, Scale(0.0, 2.0)),), 0.9)
    problem = Problem(joint, 750, torch.arange(3000), torch.arange(3000))
    found = QuadraticDual(problem).solve()
    assert int(found.mask.sum()) == 750
    assert found.upper_bound - joint.evaluate(found.mask).joint < 1e-4


def test_it_is_for_pairwise_alone_or_many_rows_of_second_moments_and_can_be_stopped():
    rng = np.random.default_rng(1)
    assert solver_of(make(rng, 20, 3, 5, 0.5)[0]).dual is QuadraticDual
    for objective in ("disf_fixed", SUM):
        few, many = (make(rng, n, 64, 4096, 0.5, objective=objective)[0] for n in (7_000, 8_000))
        assert solver_of(few).dual is None and solver_of(many).dual is QuadraticDual
    at_one = make(rng, 20, 3, 5, 1.0, objective="disf_fixed")[0]  # at lambda 1 no diversity counts
    assert solver_of(at_one).dual is QuadraticDual

    def poll():
        raise Stopped("stop")

    with pytest.raises(Stopped):
        QuadraticDual(make(rng, 20, 3, 5, 0.5)[0]).solve(poll=poll)


@ALL
@pytest.mark.parametrize("lamb", [0.0, 0.4, 1.0])
def test_the_learner_steps_from_its_state_alone_and_starts_where_it_is_told(monkeypatch, lamb, objective):
    """A state written down and read again goes on to the same end; a neighbour's last state saves steps."""
    monkeypatch.setattr(relaxation, "MOST_STARTS", 0)  # as where rows are many
    config = SelectionConfig.from_options(estimator="relaxed", objective=objective, lamb=lamb)

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

    problem, _ = make(np.random.default_rng(5), 3000, 16, 700, lamb, objective=objective)
    (whole, mask), (again, same) = run(problem), run(problem, write_down=True)
    assert torch.equal(whole.logits, again.logits) and torch.equal(mask, same)
    near, _ = make(np.random.default_rng(5), 3000, 16, 700, min(1.0, lamb + 0.02), objective=objective)
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
    dual = QuadraticDual(Problem(joint, size, torch.arange(n), torch.arange(n)))
    # at the best subset's own sum the bound comes as close to it as a bound can
    best = list(itertools.combinations(range(n), size))[int(np.argmax(values))]
    ys = [dual.solve().y, torch.from_numpy(x[list(best)].sum(0))]
    assert min(dual.upper_bound(y) for y in ys) >= 1.0 - 1e-15 / (max(values) - scale.zero)


def test_the_bound_of_every_step_holds_for_those_rows_too():
    _, kept = with_common_offset(np.random.default_rng(6), 400, 8, 30.0)
    joint = Joint(Quality(torch.zeros(400)), (Term("pairwise", 1.0, objectives.load("pairwise").bind(kept)),), 0.0)
    problem = Problem(joint, 80, torch.arange(400), torch.arange(400))
    learner, dual = (
        relaxed(problem, SelectionConfig.from_options(estimator="relaxed", lamb=0.0)),
        QuadraticDual(problem),
    )
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
