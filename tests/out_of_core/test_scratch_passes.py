"""Passes over a scratch by tasks: the same to the last bit, whoever does them; only lost work is repeated."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from datamask.errors import Stopped
from datamask.out_of_core import scratch_passes
from datamask.out_of_core.engines import open_engine
from datamask.out_of_core.scratch import Shuffled
from datamask.out_of_core.scratch_passes import FOLDER, Passes, ScratchFeed
from datamask.out_of_core.streamed_dual import Dual, solve
from datamask.polling import no_poll
from datamask.recipes.scoring import Scorer
from datamask.work.context import Work
from tests.making.shards import SerialEngine, clustered, forget_dual, scratch_of
from tests.out_of_core.watched import WatchedEngine
from tests.recipes.test_stepping import KINDS, _any_recipe

ROWS, DIM, SIZE, BLOCK = 12_000, 8, 1_500, 4_096


@pytest.fixture
def scratch(tmp_path):
    return scratch_of(tmp_path, *clustered(ROWS, DIM, seed=5))


def recipe_of(kind="sum"):
    return _any_recipe(np.random.default_rng(2), DIM, **KINDS[kind])


def solved(scratch, engine=None, kind="sum", **options) -> Dual:
    forget_dual(scratch)
    return solve(scratch, recipe_of(kind), SIZE, block_rows=BLOCK, engine=engine, **options)


def same(one: Dual, other: Dual) -> bool:
    rules = [rule.parts()[1] for rule in (one.rule, other.rule)]
    return (
        one.packed.tobytes() == other.packed.tobytes()
        and one.passes == other.passes
        and all(np.array_equal(rules[0][name], rules[1][name]) for name in rules[0])
    )


@pytest.mark.parametrize("kind", ["pairwise", "sum", "quality"])
def test_tasks_in_any_order_come_to_what_threads_come_to(kind, scratch):
    expected = solved(scratch, kind=kind)
    for backwards in (False, True):
        engine = SerialEngine(backwards)
        assert same(solved(scratch, engine, kind), expected)
        parts = ScratchFeed(scratch, BLOCK).tasks
        assert parts > 20 and Counter(engine.calls) == {("part", n): len(expected.passes) for n in range(parts)}
    assert not (scratch.folder / FOLDER).exists()


def test_a_worker_that_dies_costs_one_task(scratch, tmp_path):
    expected = solved(scratch)
    with WatchedEngine(open_engine("local", workers=2), tmp_path / "notes", die=7) as engine:
        assert same(solved(scratch, engine), expected)
    times = Counter(each.number for each in engine.begun())
    assert times.pop(7) == len(expected.passes) + 1
    assert set(times.values()) == {len(expected.passes)}


def test_what_was_begun_in_threads_goes_on_by_tasks_and_the_other_way_round(scratch):
    expected = solved(scratch)
    for first, then in ((None, SerialEngine()), (SerialEngine(), None)):
        seen: list[int] = []

        def on_pass(dual: Dual, seen=seen) -> None:
            seen.append(len(dual.passes))

        with pytest.raises(Stopped):
            solved(scratch, first, work=Work.of(lambda seen=seen: len(seen) == 2), on_pass=on_pass)
        again = solve(scratch, recipe_of(), SIZE, block_rows=BLOCK, engine=then)
        assert same(again, expected)
        if then is not None:
            assert len(then.calls) == ScratchFeed(scratch, BLOCK).tasks * (len(expected.passes) - 2)


def test_a_part_that_is_there_is_not_done_again(scratch, monkeypatch):
    """A driver that is killed leaves files of tasks that came before their turn."""
    rule = recipe_of().rule
    expected = Passes(scratch, BLOCK)(rule, 0.0, 1.0, "x")
    engine = SerialEngine(backwards=True)
    stopping = Work.of(lambda: len(engine.calls) == 20)
    with pytest.raises(Stopped):
        Passes(scratch, BLOCK, engine)(rule, 0.0, 1.0, "x", stopping)
    passes = Passes(scratch, BLOCK, engine)
    again = passes(rule, 0.0, 1.0, "x")
    assert len(engine.calls) == ScratchFeed(scratch, BLOCK).tasks
    assert np.array_equal(again.sums, expected.sums) and np.array_equal(again.moments, expected.moments)


@pytest.mark.parametrize("kind", ["pairwise", "sum"])
def test_the_sums_are_those_of_the_definition(kind, scratch):
    """All rows at once, in float64, under a threshold for each cut."""
    rule = recipe_of(kind).rule
    x, q = scratch.features(0, ROWS).astype(float), scratch.quality
    scores = Scorer(rule)(q, x)
    expected, sd = float(np.quantile(scores, 0.9)), float(scores.std())
    passes = Passes(scratch, BLOCK)
    one_pass = passes(rule, expected, sd, "x")
    assert np.allclose(passes.scores, scores, atol=1e-12)
    assert one_pass.rows == ROWS == one_pass.counts.sum()
    for cut in range(0, len(one_pass.cuts), max(1, len(one_pass.cuts) // 9)):
        members = passes.scores >= one_pass.edges[one_pass.cuts[cut]]
        mean, moment = one_pass.members(cut)
        assert one_pass.kept(cut) == members.sum()
        assert one_pass.mean_quality(cut) == pytest.approx(q[members].mean(), abs=1e-12)
        assert np.allclose(mean, x[members].mean(axis=0), atol=1e-12)
        if kind == "sum":
            y = rule.standardised(x[members])
            whole = y.T @ y / len(y)
            np.fill_diagonal(whole, 0.0)
            assert np.allclose(moment, whole, atol=1e-9)


def test_random_numbers_stand_for_quality_in_a_task_too(scratch):
    rule = replace(recipe_of("pairwise").rule, quality_weight=1e-3)
    here, there = (Passes(Shuffled(scratch), BLOCK, engine) for engine in (None, SerialEngine()))
    sums = [passes(rule, 0.0, 1.0, "x").qualities for passes in (here, there)]
    assert np.array_equal(*sums) and np.array_equal(here.scores, there.scores)
    assert not np.allclose(sums[0].sum(), scratch.quality.sum())


def test_tasks_read_no_more_of_a_scratch_than_their_rows(scratch, monkeypatch):
    """A worker that read the quality of all rows would hold as much memory as the driver."""
    engine = SerialEngine()
    monkeypatch.setattr(scratch_passes.Scratch, "_whole", None)
    Passes(scratch, BLOCK, engine)(recipe_of().rule, 0.0, 1.0, "x", Work(no_poll))
    assert engine.calls
