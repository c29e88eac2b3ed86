"""The result of a run: every number that is reported about a selection, as one typed, frozen value.

`RunResult.to_dict` is the one encoder and `RunResult.from_dict` the one decoder of what status.json stores under
``summary`` and the command line prints with ``--json``. To report a new number, add its field here, fill it where it is
measured (`datamask.evaluation.selection`, or `RunResult.of_run` for what a run alone knows), and read it as an
attribute. The checks of stored records follow.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from datamask.measured import Anchors, ComponentFacts, Estimate, GraphFacts, RowClasses, TermValues, WeightTotals
from datamask.schemas import (
    COUNT,
    EVERY,
    NONE,
    NUMBER,
    TEXT,
    accepts_none,
    decode,
    encode,
    grouped,
    schema_of,
    stored,
)

EXACT, LISTED = "exact", "listed"
"""What a bound holds for: the objective itself, or the objective on the lists of an approximate neighbor graph."""


@dataclass(frozen=True)
class SelectedSize:
    """How much was selected, and of how much.

    Attributes:
        n: rows of the corpus that the values are over. selected: rows selected, the given ones not among them.
        given: rows that one had already. budget: tokens asked for; None: a number of rows was.
        tokens: of the selected rows; None: the corpus has no lengths.
    """

    n: int | None = stored(COUNT)
    selected: int | None = stored(COUNT)
    given: int | None = stored(COUNT)
    budget: float | None = stored(NUMBER | NONE)
    tokens: float | None = stored(NUMBER | NONE)


@dataclass(frozen=True)
class ProvedBound:
    """What is proved about the joint value, on the run's scale.

    Attributes:
        upper_bound: no selection under the same rules has a higher value; None: nothing is proved.
        gap: the bound less the value reached.
        holds_for: `EXACT` or `LISTED`; None: there is no bound.
    """

    upper_bound: float | None = stored(NUMBER | NONE)
    gap: float | None = stored(NUMBER | NONE)
    holds_for: str | None = stored(TEXT | NONE, "bound_holds_for")

    @property
    def exact(self) -> bool:
        """Whether there is a bound, and it holds for the objective itself."""
        return self.upper_bound is not None and self.holds_for != LISTED


@dataclass(frozen=True)
class RunEffort:
    """What a run took.

    Attributes:
        steps: of its learner. warm_from: the run whose end it started from; None: it started from nothing.
        seconds: of learning, swaps and bound. seconds_graph: of the neighbor graph. seconds_ends: of solving for the
            ends of the scales. seconds_total: of all of it.
        peak_memory_bytes: of the process. device: where it was computed.
    """

    steps: int | None = stored(COUNT)
    warm_from: str | None = stored(TEXT | NONE)
    seconds: float | None = stored(NUMBER)
    seconds_graph: float | None = stored(NUMBER)
    seconds_ends: float | None = stored(NUMBER)
    seconds_total: float | None = stored(NUMBER)
    peak_memory_bytes: int | None = stored(COUNT)
    device: str | None = stored(TEXT)


@dataclass(frozen=True)
class RunResult:
    """Everything that is reported about one selection.

    A field is None where the selection has no such value.

    Attributes:
        run_id, status: of the run; None: the selection was made in memory and kept as none.
        estimator: the method, ``imported`` for a list of ids.
        size: rows and tokens.
        raw: values of the subset in the objectives' own units; on an approximate graph the diversity is the lower bound
            that its lists show.
        objectives: the raw value of every diversity objective, by its name.
        components: on which some of the objectives are defined; None: all are on all dimensions.
        values: ``exact``, or ``estimate`` where `estimate` stands beside a lower bound.
        estimate: of the exact diversity; None: it is exact.
        calibrated: the values as shares of the attainable gain: 0 random, 1 the best that is known.
        scale: ``calibrated`` or ``raw``, the run's scale.
        anchors: the ends of the calibrated scales.
        certificate: upper bound and gap.
        row_classes: how many rows the proof decides; None: it decides none, or is too far off to.
        weights: what the inclusion weights come to; None: the method has none.
        effort: steps, time and memory.
        graph: what is known about the neighbor graph; None: none was needed.
        unknown_ids: ids of an imported list that the corpus does not have.

    Example:
        >>> RunResult.from_dict({"n": 600, "selected": 60, "gap": 0.01, "upper_bound": 0.7}).certificate.gap
        0.01
    """

    run_id: str | None = stored(TEXT)
    status: str | None = stored(TEXT)
    estimator: str | None = stored(TEXT)
    size: SelectedSize = grouped(SelectedSize)
    raw: TermValues = grouped(TermValues)
    objectives: Mapping[str, float | None] | None = stored({EVERY: NUMBER | NONE})
    components: ComponentFacts | None = stored((ComponentFacts.SCHEMA, NONE), of=ComponentFacts.from_dict)
    values: str | None = stored(TEXT)
    estimate: Estimate | None = stored((Estimate.SCHEMA, NONE), of=Estimate.from_dict)
    calibrated: TermValues = stored(TermValues.SCHEMA, of=TermValues.from_dict, default=TermValues())
    scale: str | None = stored(TEXT)
    anchors: Anchors | None = stored(Anchors.SCHEMA, of=Anchors.from_dict)
    certificate: ProvedBound = grouped(ProvedBound)
    row_classes: RowClasses | None = stored((RowClasses.SCHEMA, NONE), "settled", RowClasses.from_dict)
    weights: WeightTotals | None = stored((WeightTotals.SCHEMA, NONE), of=WeightTotals.from_dict)
    effort: RunEffort = grouped(RunEffort)
    graph: GraphFacts | None = stored((GraphFacts.SCHEMA, NONE), "neighbors", GraphFacts.from_dict)
    unknown_ids: int | None = stored(COUNT)

    def of_run(
        self,
        run_id: str,
        effort: RunEffort,
        graph: GraphFacts | None,
        unknown_ids: int | None = None,
    ) -> RunResult:
        """Return the result of the finished run that this selection is of."""
        return replace(
            self,
            run_id=run_id,
            status="done",
            effort=effort,
            graph=graph,
            unknown_ids=unknown_ids,
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the record: what status.json stores under ``summary``, and ``--json`` prints."""
        return {name: entry for name, entry in encode(self).items() if entry is not None or name in _NULLABLE}

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> RunResult:
        """Return the result that a record holds; entries that are no field are ignored.

        Args:
            record: its entries are of the types of `SUMMARY`, as `datamask.schemas.check` says.
        """
        return decode(cls, record)


SUMMARY = schema_of(RunResult)
"""The types of a record's entries, by name."""

_NULLABLE = frozenset(
    name for name, held in encode(RunResult()).items() if held is not None or accepts_none(SUMMARY[name])
)
"""Entries that a record has also where there is nothing to say."""

NO_RESULT = RunResult()
"""Of a run that has not ended: nothing is known."""


def percent_up(gap: float) -> float:
    """A proved gap in percent, with two decimals, rounded up: a bound that is rounded down is none.

    Args:
        gap: as a share of the value, at least 0.

    Example:
        >>> percent_up(0.00012), percent_up(0.0001)
        (0.02, 0.01)
    """
    # a gap that has two decimals already is not to be raised by what binary fractions lack
    return math.ceil(1e4 * gap - 1e-3) / 100
