"""The one learning loop: what it gives, what it tells on the way, and that nobody writes another."""

from __future__ import annotations

import ast
from pathlib import Path

import numpy as np
import pytest
import torch

import datamask
from datamask import learning, objectives
from datamask.config import SelectionConfig
from datamask.errors import Stopped
from datamask.learning.loop import ShareWatch, Watch, learn
from datamask.learning.problem import Problem
from datamask.objectives.facility import exact_lists
from datamask.objectives.joint import Joint, Term
from datamask.objectives.quality import Quality
from tests.reference import truth

STEPS = {"counterfactual": 7, "reinforce": 7, "relaxed": None, "greedy": None, "random": None}


def made(name, objective="pairwise"):
    rng = np.random.default_rng(3)
    features = torch.from_numpy(truth.unit_rows(rng, 60, 6)).float()
    function = objectives.load(objective).bind(features, exact_lists(features, 20))
    joint = Joint(Quality(torch.from_numpy(rng.normal(size=60))), (Term(objective, 1.0, function),), 0.4)
    problem = Problem(joint, 12, torch.arange(60), torch.from_numpy(rng.permutation(60)), features)
    options = {"n_epochs": STEPS[name]} if STEPS[name] else {}
    return learning.load(name)(problem, SelectionConfig.from_options(estimator=name, objective=objective, **options))


class Noting(Watch):
    """Notes what it is told; lets the work be stopped after some steps."""

    def __init__(self, steps=None):
        self.steps, self.states, self.kept, self.ending = steps, [], None, None

    def poll(self):
        if self.steps is not None and len(self.states) >= self.steps:
            raise Stopped("stopped on request")

    def stepped(self, state, record):
        assert record.step == state.step
        self.states.append(state)

    def stopped(self, state):
        self.kept = state

    def ended(self, state, ending):
        self.ending = (state, ending)


@pytest.mark.parametrize("name", STEPS)
def test_every_step_is_told_and_then_the_end(name):
    estimator, watch = made(name), Noting()
    learned = learn(estimator, watch=watch)
    assert learned.mask.sum() == 12 and watch.kept is None
    assert watch.ending == (learned.state, learned.ending) and learned.ending == estimator.finished(learned.state)
    assert [state.step for state in watch.states] == sorted({state.step for state in watch.states})
    if STEPS[name]:
        assert len(watch.states) == STEPS[name] == estimator.total_steps


@pytest.mark.parametrize(
    ("name", "objective"), [("counterfactual", "pairwise"), ("reinforce", "pairwise"), ("relaxed", "vendi")]
)
def test_a_stop_hands_over_the_last_whole_state_and_going_on_ends_as_if_unbroken(name, objective):
    watch = Noting(steps=3)
    with pytest.raises(Stopped):
        learn(made(name, objective), poll=watch.poll, watch=watch)
    assert watch.kept is watch.states[-1] and watch.kept.step == 3 and watch.ending is None
    after, whole = learn(made(name, objective), watch.kept), learn(made(name, objective))
    assert torch.equal(after.state.logits, whole.state.logits) and torch.equal(after.mask, whole.mask)


def test_the_share_rises_to_one_in_words():
    heard = []
    estimator = made("counterfactual")
    learn(estimator, watch=ShareWatch(estimator, lambda share, what: heard.append((share, what))))
    assert heard[0] == (pytest.approx(1 / 7), "step 1 of 7") and heard[-1] == (1.0, "step 7 of 7")


def test_nobody_writes_another_loop():
    """Whoever asks an estimator whether it has finished, in a loop, copies `learn`."""
    loops = []
    texts = {path: path.read_text(encoding="utf-8") for path in sorted(Path(datamask.__file__).parent.rglob("*.py"))}
    for path, text in texts.items():
        for node in ast.walk(ast.parse(text)) if ".finished(" in text else ():
            if isinstance(node, ast.While | ast.For) and ".finished(" in ast.unparse(node):
                loops.append(path.name)
    assert loops == ["loop.py"]
