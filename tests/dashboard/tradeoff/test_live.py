"""Sessions behind the slider: prepared once, answering while they warm up, bounded, ended on request."""

from __future__ import annotations

import threading
from dataclasses import replace
from pathlib import Path

import pytest

from datamask.config import CorpusConfig, SelectionConfig
from datamask.corpus import open_corpus
from datamask.dashboard.tradeoff import answers, live
from datamask.evaluation.live import GRID
from datamask.evaluation.live import Live as Solver
from datamask.polling import no_poll, poll_of
from datamask.work import lanes
from datamask.work.lanes import Priority

TINY = str(Path(__file__).parents[3] / "sample_data" / "tiny")
LONG = 120.0


pytestmark = pytest.mark.usefixtures("live_of_its_own")


@pytest.fixture(scope="module")
def corpus():
    return open_corpus(CorpusConfig((TINY,)))


def options(**given):
    return SelectionConfig.from_options(**{"objective": "pairwise", "estimator": "relaxed", **given})


def test_one_session_serves_all_who_ask_for_the_same(corpus, tmp_path):
    first = live.session(corpus, options(lamb=0.2), tmp_path)
    assert live.session(corpus, options(lamb=0.7), tmp_path) is first and live.find(corpus, options()) is first
    answer = first.answer(0.42, LONG)
    assert answer.lamb == 0.42 and int(answer.mask.sum()) == 360
    first.wait(LONG)
    assert first.ready and first.job.share == 1.0
    better = first.answer(0.42, LONG)  # more is known by now, so it is worked out once more
    assert better is not answer and better.joint >= answer.joint - 1e-6
    assert first.answer(0.42, 0.0) is better


@pytest.mark.parametrize("objective", ["pairwise", "facility"])
def test_what_is_solved_is_what_it_answers(corpus, tmp_path, objective):
    session = live.session(corpus, options(objective=objective), tmp_path)
    session.wait(LONG)
    changes, solved = session.solved
    assert session.quick and changes > len(solved) - 1 and [point.answer.lamb for point in solved] == sorted(GRID)
    for point in solved:
        answer = session.answer(point.answer.lamb, LONG)
        assert (point.mask == answer.mask).all() and point.answer.gap == pytest.approx(answer.gap, abs=1e-12)
        told = (point.answer.quality, point.answer.diversity, point.answer.joint, point.answer.solved_at)
        assert told == (answer.quality, answer.diversity, answer.joint, answer.solved_at)


def test_a_lambda_beside_the_grid_leaves_what_is_told_of_the_grid(corpus, tmp_path):
    session = live.session(corpus, options(), tmp_path)
    session.wait(LONG)
    changes, solved = session.solved
    for lamb in (0.12, 0.63, 0.87):
        assert session.refined(lamb, LONG).solved
    after, now = session.solved
    assert [point.answer.lamb for point in now] == sorted(GRID)
    assert after == changes and [live._shown(point) for point in now] == [live._shown(point) for point in solved]
    # where something of it would be shown otherwise, it is told
    session._solved = changes, (*solved[:-1], replace(solved[-1], answer=replace(solved[-1].answer, gap=0.25)))
    assert session.refined(0.31, LONG).solved and session.solved[0] == changes + 1


def test_ids_written_anew_to_a_file_of_rules_are_another_problem(corpus, tmp_path):
    pins = tmp_path / "pins.txt"
    pins.write_text("\n".join(map(str, corpus.ids.to_pylist()[:3])))
    settings = options(pin=str(pins))
    first = live.session(corpus, settings, tmp_path)
    first.wait(LONG)
    assert live.find(corpus, settings) is first and all(point.mask[:3].all() for point in first.solved[1])
    pins.write_text("\n".join(map(str, corpus.ids.to_pylist()[:7])))
    assert live.find(corpus, settings) is None
    pins.unlink()
    gone = live.session(corpus, settings, tmp_path)
    gone.wait(LONG)
    assert not gone.alive and "no such file" in gone.error


def test_a_request_goes_before_the_grid(corpus, tmp_path, monkeypatch):
    solved, begun = [], threading.Event()
    solve = Solver.solve

    def recorded(self, lamb, poll=lambda: None):
        solved.append(lamb)
        if len(solved) == 2:
            # asked while the second lambda of the grid is being solved
            assert begun.wait(LONG)
            with session._changed:
                session._wanted["now"] = lambda solver, _: solve(solver, 0.33)
            poll()
        return solve(self, lamb, poll)

    monkeypatch.setattr(Solver, "solve", recorded)
    session = live.session(corpus, options(), tmp_path)
    begun.set()
    session.wait(LONG)
    assert session.ready and session._results["now"][1].lamb == 0.33
    # what was given up for the request was solved again
    assert solved[1] == solved[2] and sorted(set(solved)) == sorted(GRID)


def test_after_a_request_that_fails_nothing_waits_for_it(corpus, tmp_path, monkeypatch):
    def failing(solver, lamb, poll):
        raise ValueError("no answer")

    monkeypatch.setattr(Solver, "answer", failing)
    session = live.session(corpus, options(), tmp_path)
    assert session.answer(0.42, LONG) is None and not session.alive
    session.wait(LONG)
    assert session.job.ended


def test_the_longest_unused_makes_room_and_an_ended_one_is_started_anew(corpus, tmp_path):
    sessions = [live.session(corpus, options(select_ratio=ratio), tmp_path) for ratio in (0.1, 0.2, 0.3)]
    sessions[0].wait(LONG)
    assert sessions[0].job.state == "stopped" and not sessions[0].alive
    assert live.find(corpus, options(select_ratio=0.1)) is None
    sessions[2].stop()
    sessions[2].wait(LONG)
    assert not sessions[2].alive and sessions[2].answer(0.5, LONG) is None
    assert live.session(corpus, options(select_ratio=0.3), tmp_path) is not sessions[2]


def test_what_nobody_asked_for_takes_nobodys_room(corpus, tmp_path):
    ratios = [options(select_ratio=ratio) for ratio in (0.1, 0.2, 0.3, 0.4)]
    asked = [live.session(corpus, config, tmp_path) for config in ratios[:2]]
    assert live.unasked(corpus, ratios[2], tmp_path, Priority.UNASKED) is None
    assert all(session.alive for session in asked)
    # one that has ended makes room, and so does one that nobody asked for, though it is the younger one
    asked[0].stop()
    first = live.unasked(corpus, ratios[2], tmp_path, Priority.UNASKED)
    assert first is not None and live.find(corpus, ratios[0]) is None and asked[1].alive
    assert live.unasked(corpus, ratios[2], tmp_path) is first
    second = live.session(corpus, ratios[3], tmp_path)
    assert asked[1].alive and second.alive and not first.alive
    # who wants an answer of it has asked for it
    asked[1].stop()
    third = live.unasked(corpus, ratios[2], tmp_path, Priority.UNASKED)
    assert third.answer(0.5, LONG) is not None
    assert live.unasked(corpus, ratios[0], tmp_path) is None and third.alive
    # but one that has solved all, which is kept on disk, gives way to what a page cannot do without
    third.wait(LONG)
    assert live.unasked(corpus, ratios[0], tmp_path, needed=True) is not None and not (second.alive and third.alive)


def test_what_a_person_asks_for_while_it_is_prepared_unasked_becomes_as_urgent_as_that(corpus, tmp_path):
    over, inside, order = threading.Event(), threading.Event(), []

    def busy():
        with lanes.turn("cpu", Priority.RUN, poll_of(over.is_set)):
            inside.set()
            over.wait(LONG)

    def sweep():
        with lanes.turn("cpu", Priority.SWEEP, no_poll):
            order.append(session.preparing)

    holder, waiter = threading.Thread(target=busy), threading.Thread(target=sweep)
    holder.start()
    assert inside.wait(LONG)
    session = live.unasked(corpus, options(), tmp_path, Priority.UNASKED)
    waiter.start()
    while len(lanes.lane("cpu")._waiting) < 2:
        holder.join(0.01)
    assert live.session(corpus, options(), tmp_path) is session
    over.set()
    waiter.join(LONG)
    holder.join(LONG)
    session.wait(LONG)
    # it waited behind the sweep, which came later, until somebody asked for it
    assert order == [False] and session.ready


@pytest.mark.parametrize("begin", [live.session, live.unasked])
def test_a_run_waits_for_the_ends_and_the_middle_and_not_for_the_grid(corpus, tmp_path, monkeypatch, begin):
    solved, begun, queued, order = [], threading.Event(), threading.Event(), []
    solve = Solver.solve

    def recorded(self, lamb, poll=lambda: None):
        begun.set()
        assert queued.wait(LONG)
        found = solve(self, lamb, poll)
        solved.append(lamb)
        return found

    def run():
        with lanes.turn("cpu", Priority.RUN, no_poll):
            order.extend(solved)

    monkeypatch.setattr(Solver, "solve", recorded)
    session = begin(corpus, options(), tmp_path)
    assert begun.wait(LONG)
    waiter = threading.Thread(target=run)
    waiter.start()
    while not lanes.lane("cpu")._waiting:
        waiter.join(0.01)
    queued.set()
    waiter.join(LONG)
    session.wait(LONG)
    # a first lambda that was solved when the run came counts too; more urgent ones may be between
    assert sorted(order[:3]) == sorted(live.FIRST) and len(order) <= len(live.FIRST) + 1
    assert session.ready and sorted(solved) == sorted(GRID)


def test_when_it_is_ready_facility_is_proved_between_the_grid(corpus, tmp_path):
    session = live.session(corpus, options(objective="facility"), tmp_path)
    session.wait(LONG)
    assert session.ready and session.job.message.startswith("proving")
    answer = session.answer(0.47, LONG)
    assert not answer.solved and 0 <= answer.gap < 0.01


def test_what_cannot_be_is_said(corpus, tmp_path):
    refused = live.session(corpus, options(objective="pairwise:1,facility:1", estimator="counterfactual"), tmp_path)
    refused.wait(LONG)
    assert refused.job.state == "failed" and not refused.alive and "live lambda" in refused.error


def test_a_gap_is_said_once_it_is_proved():
    assert answers.proof_words(0.22, final=False)[0] == "not proved yet"
    assert answers.proof_words(0.22, final=True) == ("gap 22.00\u00a0%",) * 2
    assert answers.proof_words(1e-6, final=True) == ("proved near the best for this λ ✓", "gap 0.01\u00a0%")
    assert answers.proof_words(None, final=False) == ("", "")
