"""The ends of the calibrated scale over all rows of a scratch: random is 0, the best that a term reaches alone is 1.

Quality's are exact. The random end of a diversity term is in closed form; the best end is the value of the selection
that the dual finds over all rows, with the run's own S: it contains ``-1 / (S - 1)`` (pair-wise similarity) or grows
with ``1 / S`` (DiSF with fixed scale), so no sample says it. All are valued on the rows as the shards have them. Ends
that are known from memory, where it holds all rows, are taken over.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

import numpy as np

from datamask.measured import Anchor, is_bound
from datamask.out_of_core import streamed_dual
from datamask.out_of_core.exact_values import Candidate, ExactValues, PoolSquares
from datamask.out_of_core.scratch import Scratch, Shuffled
from datamask.recipes.recipe import Recipe, ScoreRule
from datamask.recipes.stepping import rule_of
from datamask.recipes.weights import Weights
from datamask.work.context import UNWATCHED, Work
from datamask.work.kept import Kept, of_work
from datamask.work.result_file import Content, Entry, digest_of

LEAST = 1e-6
"""Weight of a random number for each row, times S - 1, with which a term alone is solved. Where a term has many best
selections, as without a common direction, no rule says which rows make one: this number does, and costs the value less
than `LEAST` of the reach."""

FLAT = 0.1
"""Squared length of the sum of members, against that of rows without structure, below which the optimum is flat."""


@dataclass(frozen=True)
class Start:
    """Where the search for a term's best end begins: means over what the term alone selects from a sample.

    Attributes:
        direction: float64 ``(d,)``, mean unit feature. moment: float64 ``(d, d)``, mean y y' without its diagonal.
        members: how many rows these are the means of.
    """

    members: int = 0
    direction: np.ndarray | None = None
    moment: np.ndarray | None = None


@dataclass(frozen=True)
class Alone:
    """What a term alone selects from all rows.

    Attributes:
        candidate: the selection. best: its value on the rows of the scratch, which are rounded.
    """

    candidate: Candidate
    best: float


class ScaleEnds:
    """The ends of quality's scale and of every term's: first on the rows of the scratch, then as the shards have them.

    Attributes:
        alone: by term, what it alone selects, where its ends are to be found.
    """

    def __init__(
        self,
        scratch: Scratch,
        recipe: Recipe,
        size: int,
        starts: Mapping[str, Start],
        work: Work = UNWATCHED,
        *,
        known: Mapping[str, Mapping[str, Any]] = MappingProxyType({}),
        block_rows: int,
    ) -> None:
        """Solve every term alone.

        Args:
            recipe: of the objective, with the standardisation of all rows. size: S. starts: by term.
            known: by term, ends of all rows that were found otherwise, as runs keep them.
            block_rows: bounds the memory; see `streamed_dual.memory_bytes`.

        Raises:
            InputError: no such selection is possible. Stopped: on request; finished passes are kept in the scratch.
        """
        streamed_dual.check_size(scratch.rows, size)
        self._scratch, self._size, self._known = scratch, size, known
        self._names = [name for name, _ in recipe.terms]
        made_of = {"scratch": scratch.digest, "size": size, "terms": self._names}
        entry = Entry("ends", "ends", 1, digest_of(made_of))
        self._stored: Kept[dict[str, Any]] = of_work(scratch.folder, entry, lambda content: content.value, Content)
        self.alone: dict[str, Alone] = {}
        self.exact = self._stored.find()
        """The ends as the shards have them, once they are known."""
        unknown = [name for name in self._names if name not in known] if self.exact is None else []
        for number, name in enumerate(unknown):
            part = work.part(number / len(unknown), (number + 1) / len(unknown))
            self.alone[name] = _solved_alone(scratch, recipe, name, size, starts, block_rows, part)
        if self.exact is None and not unknown:
            self.value([], None)

    @property
    def needs_squares(self) -> bool:
        """Whether the random end of a term is known from the squares of all rows alone."""
        return "disf_fixed" in self.alone

    @property
    def rounded(self) -> dict[str, Any]:
        """The ends on the rows of the scratch."""
        return self._ends({name: (each.best, np.inf) for name, each in self.alone.items()}, None)

    def value(self, values: Sequence[ExactValues], squares: PoolSquares | None) -> dict[str, Any]:
        """Take note of what the selections in `alone` are worth on the shards; the ends, as runs keep them."""
        found = {name: (value.raw[name], value.bound) for name, value in zip(self.alone, values)}
        self.exact = self._ends(found, squares)
        return self.exact

    def keep(self) -> None:
        """Write the ends down, so that a run that is resumed finds them."""
        assert self.exact is not None
        self._stored.keep(self.exact)

    def _ends(self, found: Mapping[str, tuple[float, float]], squares: PoolSquares | None) -> dict[str, Any]:
        """found: by term, best value and bound."""
        scratch, size = self._scratch, self._size
        diversity = {name: dict(ends) for name, ends in self._known.items()}
        for name, (best, bound) in found.items():
            random = _random(scratch, name, size, squares)
            valid = is_bound(bound, max(best, random))
            diversity[name] = Anchor.found(random, best, bound if valid else np.inf).to_dict()
        return {
            "quality": scratch.quality_ends(size).to_dict(),
            "diversity": {name: diversity[name] for name in self._names},
        }


def _solved_alone(
    scratch: Scratch,
    recipe: Recipe,
    name: str,
    size: int,
    starts: Mapping[str, Start],
    block_rows: int,
    work: Work,
) -> Alone:
    """What a term alone selects from all rows."""
    shuffled = Shuffled(scratch)
    least = LEAST / (size - 1)
    pilot = _pilot_squares(scratch) if name == "disf_fixed" else None
    rule = _first_rule(scratch, starts.get(name, Start()), pilot)
    alone = replace(recipe, objective=name, lamb=least, scale="raw", rule=rule)
    dual = streamed_dual.solve(
        shuffled,
        alone,
        size,
        _naming(work, name),
        block_rows=block_rows,
        name=f"dual-{name}",
        random=_random(scratch, name, size, pilot),
    )
    assert dual.least is not None
    # the bound of the term itself leaves the random numbers out
    alone = replace(alone, lamb=0.0)
    rule = rule_of(replace(alone, rule=dual.least), Weights.of(alone), size)
    tau, spread = streamed_dual.Pilot(scratch).threshold(rule, size)
    return Alone(Candidate(alone, dual.selected(scratch.rows), rule, tau, spread), dual.raw[name])


def _first_rule(scratch: Scratch, start: Start, pilot: PoolSquares | None) -> ScoreRule:
    """The rule under which the first pass scores; `pilot`: squares of some rows, where the rule has moments.

    Where the members of the sample cancel each other far better than rows without structure would, the optimum is
    flat, and any direction would take its members from one side alone. There the first members are random ones.
    """
    d = scratch.dim
    if pilot is None:
        direction = scratch.moments.mean if start.direction is None else start.direction
        flat = start.members * float(direction @ direction) < FLAT
        return ScoreRule(0.0, direction=np.zeros(d) if flat else direction)
    mean, inverse_sd = scratch.moments.standardisation()
    moment = np.zeros((d, d)) if start.moment is None else start.moment
    flat = start.members * float(np.square(moment).sum()) < FLAT * pilot.own / max(pilot.rows, 1)
    return ScoreRule(0.0, moment=np.zeros((d, d)) if flat else moment, mean=mean, inverse_sd=inverse_sd)


def _pilot_squares(scratch: Scratch) -> PoolSquares:
    mean, inverse_sd = scratch.moments.standardisation()
    squares = PoolSquares.none(scratch.dim)
    squares.add((scratch.rows_at(streamed_dual.pilot_rows(scratch.rows)).astype(float) - mean) * inverse_sd)
    return squares


def _naming(work: Work, name: str) -> Work:
    """The same work, which says of what term it is."""
    report = work.report
    return replace(work, report=lambda share, what: report(share, f"Best {name} alone: {what[:1].lower()}{what[1:]}"))


def _random(scratch: Scratch, name: str, size: int, squares: PoolSquares | None) -> float:
    """Value of a random selection; of `disf_fixed` by the squares of all rows, or estimated by those of some."""
    if squares is None or name == "pairwise":
        rows, mean = scratch.rows, scratch.moments.mean
        return -(rows * float(mean @ mean) - 1.0) / (rows - 1)
    return squares.random(size)
