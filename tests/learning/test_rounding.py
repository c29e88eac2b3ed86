"""Swaps among rows near the threshold, against all swaps tried one by one."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from datamask.errors import Stopped
from datamask.learning import rounding
from datamask.learning.rounding import Part, swap_near


def off_diagonal(z):
    moment = z.T @ z
    np.fill_diagonal(moment, 0.0)
    return moment


def problem(seed, rows, beside):
    """Random rows with both kinds of parts, members beside them, and the objective by its definition."""
    rng = np.random.default_rng(seed)
    worth, x, y = rng.normal(size=rows), *rng.normal(size=(2, rows + beside, 3))
    parts = [Part(0.05, x[:rows], x[rows:].sum(axis=0)), Part(0.02, y[:rows], off_diagonal(y[rows:]))]

    def objective(inside):
        members = np.append(inside, np.ones(beside, bool))
        sums = x[members].sum(axis=0), off_diagonal(y[members])
        return worth[inside].sum() - 0.05 * np.square(sums[0]).sum() - 0.02 * np.square(sums[1]).sum()

    return worth, parts, objective, rng.random(rows) < 0.4


@pytest.mark.parametrize("seed", range(10))
def test_it_ends_where_no_swap_helps_and_keeps_the_number_of_members(seed):
    worth, parts, objective, inside = problem(seed, 14, 6)
    before, size = objective(inside), inside.sum()
    swaps = swap_near(inside, worth, parts)
    assert inside.sum() == size and (swaps == 0 or objective(inside) > before)
    for out, into in itertools.product(np.flatnonzero(inside), np.flatnonzero(~inside)):
        other = inside.copy()
        other[[out, into]] = False, True
        assert objective(other) <= objective(inside) + 1e-10


def test_every_swap_raises_the_objective_by_what_was_reckoned(monkeypatch):
    """Also many swaps after what rows are worth was computed, and where few pairs are tried."""
    monkeypatch.setattr(rounding, "TRIED", 5)
    worth, parts, objective, inside = problem(3, 400, 50)
    values = []
    swaps = swap_near(inside, worth, parts, lambda: values.append(objective(inside)))
    assert swaps > 4 * rounding.POLLED and np.all(np.diff(values) > 0)
    again = inside.copy()
    assert swap_near(again, worth, parts) == 0 and np.array_equal(again, inside)


def test_it_hears_a_stop_and_ends_where_no_row_can_be_told_from_another():
    worth, parts, _, inside = problem(0, 14, 6)

    def poll():
        raise Stopped("stop")

    with pytest.raises(Stopped):
        swap_near(inside, worth, parts, poll)
    for nothing in (np.full(14, -np.inf), np.full(14, np.nan)):
        with np.errstate(invalid="ignore"):
            assert swap_near(inside, nothing, parts) == 0
    assert swap_near(np.ones(14, bool), worth, parts) == swap_near(np.zeros(14, bool), worth, parts) == 0
