"""The phases of a run: what is expected of each, and that a run tells of them in their order."""

from __future__ import annotations

import pytest

from datamask.config import CorpusConfig, RunConfig, SelectionConfig
from datamask.corpus import neighbors, partition_search
from datamask.runs import phases
from datamask.runs.callbacks import Callbacks
from datamask.runs.execute import execute
from datamask.runs.phases import PLANNED, Phase
from datamask.work.context import Work
from datamask.work.pace import PhasePace
from tests.commands import TINY
from tests.work.test_pace import told, worst

GRAPH, ENDS, REFERENCES, LEARNING, ENDING = PLANNED
MEASURED = {
    # seconds of one core at 100,000 x 64, S a tenth, an approximate graph: quiet, and beside four busy processes
    "relaxed": (
        {GRAPH: 3.6, ENDS: 2.5, REFERENCES: 0.2, LEARNING: 2.1, ENDING: 7.4},
        {GRAPH: 8.2, ENDS: 4.3, REFERENCES: 0.4, LEARNING: 2.7, ENDING: 12.2},
    ),
    "counterfactual": (
        {GRAPH: 4.1, ENDS: 3.0, REFERENCES: 0.2, LEARNING: 7.7, ENDING: 6.8},
        {GRAPH: 9.3, ENDS: 6.4, REFERENCES: 0.4, LEARNING: 12.4, ENDING: 12.0},
    ),
}


def expected(n=100_000, dim=64, graph=True, approximate=True, cores=1, **options) -> dict[str, float]:
    config = SelectionConfig.from_options(**{"objective": "facility", "select_ratio": 0.1, **options})
    return phases.expected_seconds(config, n, dim, listed=80, approximate=approximate, graph=graph, cores=cores)


@pytest.mark.parametrize("place", [0, 1], ids=["quiet", "busy"])
@pytest.mark.parametrize("estimator", MEASURED)
def test_runs_that_were_measured_are_told_within_two_after_a_tenth(estimator, place):
    took = MEASURED[estimator][place]
    telling = (GRAPH, LEARNING) if estimator == "counterfactual" else (GRAPH,)
    for kept in ((), (GRAPH,), (GRAPH, ENDS)):
        plan = expected(estimator=estimator, graph=GRAPH not in kept)
        seen, _ = told(plan, {phase: took[phase] for phase in took if phase not in kept}, tells=telling, step=0.1)
        after = [entry for entry in seen if entry[2] is not None]
        assert worst(after) < 2.0, kept
        assert len(after) > 0.7 * len(seen)


@pytest.mark.parametrize("estimator", ["relaxed", "counterfactual", "reinforce", "semdedup", "random"])
@pytest.mark.parametrize("objective", ["facility", "pairwise", "disf", "facility:1,pairwise:1"])
def test_every_run_has_a_plan_that_goes_with_its_rows(estimator, objective):
    few, many = (expected(n, estimator=estimator, objective=objective) for n in (50_000, 100_000))
    assert tuple(few) == PLANNED and min(few.values()) > 0
    # steps are planned from the rows, so that more of them make none of many masks
    for phase in (ENDS, REFERENCES, ENDING):
        assert many[phase] - 0.05 == pytest.approx(2 * (few[phase] - 0.05))
    assert many[GRAPH] > 2 * few[GRAPH] and expected(graph=False)[GRAPH] < few[GRAPH]


def test_a_graph_of_all_pairs_goes_with_their_number_and_the_cores():
    few, many = (expected(n, approximate=False)[GRAPH] - 0.05 for n in (50_000, 100_000))
    assert many == pytest.approx(4 * few)
    assert expected(approximate=False, cores=4)[GRAPH] - 0.05 == pytest.approx(many / 4)


class Told(PhasePace):
    """Remembers what a run tells."""

    def __init__(self):
        super().__init__()
        self.planned, self.begun = {}, []

    def plan(self, seconds):
        self.planned = dict(seconds)
        super().plan(seconds)

    def begin(self, phase, done=None):
        if phase not in self.begun:
            self.begun.append(phase)
        super().begin(phase, done)


@pytest.mark.parametrize("estimator", ["relaxed", "counterfactual"])
def test_a_run_tells_its_phases_and_leaves_out_what_is_kept(store, monkeypatch, estimator):
    monkeypatch.setattr(neighbors, "LEAST_APPROXIMATE", 100)
    monkeypatch.setattr(partition_search, "cells_needed", lambda *args: 2)

    def run(lamb: float):
        options = {"objective": "facility", "select_ratio": 0.1, "estimator": estimator, "n_epochs": 4}
        config = SelectionConfig.from_options(**options, neighbors="approximate", lamb=lamb, device="cpu")
        pace, shares = Told(), []
        execute(
            store.create(RunConfig(CorpusConfig((TINY,)), config)),
            Work(report=lambda share, what: shares.append(share)),
            callbacks=Callbacks(pace=pace),
        )
        assert shares == sorted(shares) and shares[-1] == pace.share == 1.0 and pace.left == 0.0
        return pace

    first, second = run(0.5), run(0.3)
    assert first.begun == list(Phase) and tuple(first.planned) == PLANNED
    assert second.begun == [Phase.OPENING, *PLANNED[2:], Phase.WRITING] and second.planned[GRAPH] < first.planned[GRAPH]
