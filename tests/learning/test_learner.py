"""The learner's loop body: state, schedule, resume, stop, pruned rows."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from datamask import catalogue, learning
from datamask.catalogue import NOT_FINITE
from datamask.config import SelectionConfig
from datamask.errors import OptionError, Stopped
from datamask.learning import counterfactual
from datamask.learning import learner as learner_module
from datamask.learning.problem import Problem
from datamask.learning.state import State
from datamask.objectives import disf
from datamask.objectives.disf import DiSF
from datamask.objectives.facility import Facility, exact_lists
from datamask.objectives.joint import Joint, Scale, Term
from datamask.objectives.quality import Quality
from tests.reference import truth

N, SIZE = 300, 60
LEARNERS = [entry.name for entry in catalogue.ESTIMATORS if "n_rollout" in entry.defaults]


def make(estimator, rng_seed=0, eligible=None, lamb=0.5, **options):
    import numpy as np

    rng = np.random.default_rng(rng_seed)
    features = torch.from_numpy(truth.unit_rows(rng, N, 6)).float()
    quality = Quality(torch.from_numpy(rng.normal(size=N)))
    joint = Joint(
        quality, (Term("facility", 1.0, Facility(features, *exact_lists(features, N)), Scale(0.8, 10.0)),), lamb
    )
    if estimator in LEARNERS:
        options = {"n_epochs": 12, "n_rollout": 8, **options}
    config = SelectionConfig.from_options(estimator=estimator, lamb=lamb, select_ratio=SIZE / N, **options)
    eligible = torch.arange(N) if eligible is None else eligible
    ties = torch.randperm(N, generator=torch.Generator().manual_seed(1))
    problem = Problem(joint, SIZE, eligible, ties, features)
    return learning.load(estimator)(problem, config)


def run(learner, state=None, steps=None):
    state = learner.init() if state is None else state
    while learner.finished(state) is None and steps != 0:
        state, _ = learner.step(state)
        steps = None if steps is None else steps - 1
    return state


@pytest.mark.parametrize("estimator", LEARNERS)
@pytest.mark.parametrize("partial", [0.3, 1.0])
def test_resumed_equals_unbroken(estimator, partial):
    learner = make(estimator, partial=partial)
    unbroken = run(learner)
    half = run(learner, steps=5)
    again = State.from_arrays(*half.arrays(), torch.device("cpu"))
    resumed = run(make(estimator, partial=partial), again)
    assert torch.equal(unbroken.logits, resumed.logits)
    assert torch.equal(learner.result(unbroken), learner.result(resumed))


@pytest.mark.parametrize("estimator", LEARNERS)
def test_learning_beats_where_it_started(estimator):
    learner = make(estimator, n_epochs=60, n_rollout=64, partial=1.0, max_lr=1.0, min_lr=0.1, init="same")
    joint = learner.problem.joint
    random = joint.evaluate(make("random").result(None)).joint
    assert joint.evaluate(learner.result(run(learner))).joint > random + 0.2


@pytest.mark.parametrize("estimator", [entry.name for entry in catalogue.ESTIMATORS])
def test_result_has_the_size_and_only_eligible_rows(estimator):
    eligible = torch.arange(0, N, 2)
    learner = make(estimator, eligible=eligible)
    mask = learner.result(run(learner))
    assert int(mask.sum()) == SIZE
    assert not bool(mask[1::2].any())


@pytest.mark.parametrize("estimator", LEARNERS)
def test_a_stopped_step_leaves_the_state_as_it_was(estimator):
    learner = make(estimator)
    state = run(learner, steps=3)
    before = state.arrays()[0]["logits"].copy()

    def stop():
        raise Stopped("now")

    with pytest.raises(Stopped):
        learner.step(state, stop)
    assert (state.logits.numpy() == before).all()
    assert torch.equal(run(learner, state).logits, run(learner).logits)


def test_only_the_batch_moves():
    learner = make("reinforce", partial=0.2)
    first = learner.init()
    after, _ = learner.step(first)
    assert 0 < int((after.logits != first.logits).sum()) <= round(0.2 * N)


def test_learning_rate_is_linear():
    learner = make("reinforce", n_epochs=11, max_lr=10.0, min_lr=1.0)
    assert [learner.learning_rate(s) for s in (0, 5, 10)] == pytest.approx([10.0, 5.5, 1.0])


def test_logits_that_are_no_numbers_end_it():
    learner = make("reinforce")
    state = learner.init()
    state.logits[0] = float("nan")
    assert learner.finished(state) == NOT_FINITE


def test_init_quality_is_the_z_score_and_constant_quality_gives_zeros():
    learner = make("reinforce", init="quality")
    scores = learner.problem.joint.quality.scores
    assert torch.allclose(learner.init().logits, ((scores - scores.mean()) / scores.std()).float())
    learner.problem.joint.quality.scores.fill_(3.0)
    assert learner.init().logits.abs().max() == 0.0


@pytest.mark.parametrize("estimator", LEARNERS)
def test_seed_decides(estimator):
    a, b, c = (run(make(estimator, seed=s)).logits for s in (0, 0, 1))
    assert torch.equal(a, b) and not torch.equal(a, c)


def test_evaluations_are_spread_over_the_run():
    learner = make("reinforce", n_epochs=250)
    state, seen = learner.init(), []
    while learner.finished(state) is None:
        state, record = learner.step(state)
        if record.values is not None:
            seen.append(record.step)
    assert seen[-1] == 250 and 100 <= len(seen) <= 126
    assert {"decided", "missed"} <= set(record.metrics)


def decorrelating(estimator, **options):
    """A learner of DiSF on 400 rows."""
    rng = np.random.default_rng(3)
    function = DiSF.bind(torch.from_numpy(rng.normal(size=(400, 6)) @ rng.normal(size=(6, 6))).float())
    joint = Joint(
        Quality(torch.from_numpy(rng.normal(size=400))), (Term("disf", 1.0, function, Scale(-0.1, 20.0)),), 0.5
    )
    problem = Problem(joint, 100, torch.arange(400), torch.randperm(400, generator=torch.Generator().manual_seed(1)))
    config = SelectionConfig.from_options(objective="disf", estimator=estimator, lamb=0.5, select_ratio=0.25, **options)
    return learning.load(estimator)(problem, config)


def test_learning_stops_once_the_selection_stands_still_where_swaps_outdo_it(monkeypatch):
    learner = decorrelating("counterfactual")
    ended = run(learner)
    assert 2 <= ended.step < learner.total_steps and "changed less than 0.5%" in learner.finished(ended)
    monkeypatch.setattr(counterfactual, "STILL", -1.0)
    monkeypatch.setattr(learner_module, "STILL", -1.0)
    assert run(decorrelating("counterfactual")).step == counterfactual.BEFORE_SWAPS
    monkeypatch.setattr(disf, "LONG_STEP", 0.0)
    assert run(decorrelating("counterfactual")).step == counterfactual.LONG_STEPS
    joint = learner.problem.joint
    every = decorrelating("counterfactual", n_epochs=59)
    assert joint.evaluate(learner.result(ended)).joint >= joint.evaluate(every.result(run(every))).joint - 0.005


@pytest.mark.parametrize(
    ("estimator", "options"),
    [
        ("counterfactual", {"polish": "none"}),
        ("counterfactual", {"n_epochs": 20}),
        ("reinforce", {"n_epochs": 20, "n_rollout": 4, "max_lr": 1e-6, "min_lr": 0.0, "polish": "swaps"}),
    ],
)
def test_all_steps_are_taken_where_no_swaps_follow_or_somebody_chose_their_number(estimator, options):
    learner = decorrelating(estimator, **options)
    assert run(learner).step == learner.total_steps


def test_top_quality_is_the_sort():
    learner = make("top-quality")
    expected = learner.problem.joint.quality.scores.topk(SIZE).indices.sort().values
    assert learner.result(None).nonzero().squeeze(1).tolist() == expected.tolist()


def test_every_estimator_of_the_catalogue_loads():
    for entry in catalogue.ESTIMATORS:
        assert learning.load(entry.name).__name__ == entry.code.split(":")[1]


@pytest.mark.parametrize("estimator", LEARNERS)
def test_rows_that_may_not_be_selected_still_belong_to_the_pool(estimator, monkeypatch):
    """Without a batch, pruned rows are covered rows: the objective of a step is the whole corpus's, never rebuilt."""
    learner = make(estimator, eligible=torch.arange(0, N, 2), partial=1.0)
    monkeypatch.setattr(type(learner.problem.joint), "batch", lambda *a: pytest.fail("rebuilt"))
    seen = []
    original = learner.direction

    def direction(joint, masks, moved, poll):
        seen.append((joint.n, masks.shape[1], int(masks[:, 1::2].sum())))
        return original(joint, masks, moved, poll)

    learner.direction = direction
    state, _ = learner.step(learner.init())
    assert seen == [(N, N, 0)] and len(state.logits) == N // 2


def test_reinforce_ends_with_the_strongest_rows_of_its_last_step():
    learner = make("reinforce", n_epochs=6, polish="none")
    state = run(learner)
    assert learner.result(state).nonzero().squeeze(1).tolist() == sorted(state.logits.topk(SIZE).indices.tolist())


@pytest.mark.parametrize("estimator", [*LEARNERS, "relaxed"])
def test_settings_of_an_estimator_without_steps_are_refused(estimator):
    settings = SelectionConfig.from_options(estimator="top-quality")
    with pytest.raises(OptionError, match=r"--n_epochs must be set"):
        learning.load(estimator)(make("top-quality").problem, settings)
