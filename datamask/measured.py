"""Values that are measured of a selection, and how records store them.

They are frozen, light to import, and know no torch: objectives and evaluation make them, runs store them, and pages
read them. `datamask.evaluation.result.RunResult` puts them together.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any, ClassVar

from datamask.schemas import COUNT, EVERY, NONE, NUMBER, TEXT, Complete, Schema, decode, encode, stored

ANCHOR_VERSION = 12
"""Of the ends of scales: raise it when a reference solver of `datamask.evaluation.anchors` changes."""

RANDOM_DRAWS, DRAWN_ROWS = (3, 32), 32_000_000
"""Fewest and most random subsets, of facility location or under a budget, whose mean value is the random end of a
scale; and the rows in which they are drawn, all together: for so many rows the mean is as precise as one of all."""

PROVED, FOUND = "proved", "best found"

PROVED_GAP = 1e-4
"""A best end is called proved when its bound is within this share of the distance from random to best."""

NO_GAIN = 1e-7
"""Relative gain that is none: features are float32, so where all are the same, sizes differ by so much all the same."""

BOUND_ROUNDING = 1e-9
"""A bound may lie so far below its value, relative: float64 sums are rounded."""


def random_draws(rows: int) -> int:
    """How many random subsets of so many rows the random end of a scale is the mean of.

    Example:
        >>> random_draws(1_000_000), random_draws(5_000_000), random_draws(50_000_000)
        (32, 6, 3)
    """
    fewest, most = RANDOM_DRAWS
    return max(fewest, min(most, DRAWN_ROWS // max(rows, 1)))


@dataclass(frozen=True)
class TermValues:
    """Values of one subset: of quality, of diversity, and of both weighed by lambda.

    Attributes:
        quality, diversity, joint: None where the value is not known.
    """

    quality: float | None = stored(NUMBER | NONE)
    diversity: float | None = stored(NUMBER | NONE)
    joint: float | None = stored(NUMBER | NONE)

    SCHEMA: ClassVar[Schema] = {"quality": NUMBER | NONE, "diversity": NUMBER | NONE, "joint": NUMBER | NONE}

    def of(self, measure: str) -> float | None:
        """Return the value of ``quality``, ``diversity`` or ``joint``."""
        values = {"quality": self.quality, "diversity": self.diversity, "joint": self.joint}
        return values[measure]

    def to_dict(self) -> dict[str, Any]:
        return encode(self)

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> TermValues:
        return decode(cls, record)


@dataclass(frozen=True)
class Anchor:
    """The two ends of a term's calibrated scale.

    Attributes:
        random: raw value of a random subset of size S; maps to 0.
        best: raw value of the best subset known for this term alone; maps to 1.
        best_kind: ``proved`` (no selection of S samples has a higher value, to the digits shown) or ``best found``.
    """

    random: float
    best: float
    best_kind: str

    SCHEMA: ClassVar[Schema] = Complete(random=NUMBER, best=NUMBER, best_kind=TEXT)

    @property
    def constant(self) -> bool:
        """Whether no selection differs from another on this term, so that it has no scale."""
        return not self.best - self.random > 1e-9 * max(abs(self.best), abs(self.random))

    @classmethod
    def found(cls, random: float, best: float, bound: float) -> Anchor:
        """Return the ends of a term whose best end was found, under a bound of what there is to find."""
        best = best_end(random, best)
        return cls(random, best, PROVED if bound - best <= PROVED_GAP * abs(best - random) else FOUND)

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> Anchor:
        return cls(record["random"], record["best"], record["best_kind"])


def best_end(random: float, best: float) -> float:
    """Return the best end: never below the random one, and equal to it where only rounding is between them."""
    best = max(best, random)
    return random if best - random <= NO_GAIN * max(abs(best), abs(random)) else best


def is_bound(bound: float, value: float, rounding: float = 0.0) -> bool:
    """Whether a bound can be one of a value: sums are rounded, but one that lies further below is a fault.

    Args:
        rounding: by how much the value itself may be too high.
    """
    return bool(bound >= value - rounding - BOUND_ROUNDING * max(1.0, abs(value)))


@dataclass(frozen=True)
class Anchors:
    """The ends of the calibrated scale of every term.

    Attributes:
        quality: of quality; None where they are not known.
        diversity: of every diversity objective, by its name.
    """

    quality: Anchor | None = None
    diversity: Mapping[str, Anchor] = field(default_factory=dict)

    SCHEMA: ClassVar[Schema] = {"quality": Anchor.SCHEMA, "diversity": {EVERY: Anchor.SCHEMA}}

    def to_dict(self) -> dict[str, Any]:
        record: dict[str, Any] = {} if self.quality is None else {"quality": self.quality.to_dict()}
        return record | {"diversity": {name: anchor.to_dict() for name, anchor in self.diversity.items()}}

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> Anchors:
        quality, diversity = record.get("quality"), record.get("diversity") or {}
        return cls(
            None if quality is None else Anchor.from_dict(quality),
            {name: Anchor.from_dict(anchor) for name, anchor in diversity.items()},
        )


BASELINE_DRAWS = 20
"""Random selections whose mean is said of random rows."""


@dataclass(frozen=True)
class BaselineValues:
    """What the rows of a baseline are worth.

    Attributes:
        score: mean quality score; under a token budget of the tokens. raw: of the objective.
        quality, diversity: as shares of the attainable gain.
        bits: their mask, packed.
    """

    score: float
    raw: float
    quality: float
    diversity: float
    bits: bytes


@dataclass(frozen=True)
class Baselines:
    """The baselines under the rules of a problem.

    Attributes:
        objective: whose values they are. ends: its random and best value, raw: 0 % and 100 %.
        exact: whether values are exact; else they are of listed pairs, and a little low.
        random: means over several draws, and the rows of the first. best: of the rows with the best scores.
    """

    objective: str
    ends: tuple[float, float]
    exact: bool
    random: BaselineValues
    best: BaselineValues

    def raw(self, share: float) -> float:
        """The raw value of a diversity that is given as a share of the attainable gain."""
        return self.ends[0] + share * (self.ends[1] - self.ends[0])

    def to_dict(self) -> dict[str, Any]:
        """The values, without the rows."""
        record = asdict(self)
        del record["random"]["bits"], record["best"]["bits"]
        return record

    @classmethod
    def from_dict(cls, record: Mapping[str, Any], bits: Mapping[str, bytes]) -> Baselines:
        """What `to_dict` gave, with the rows of both by name."""
        low, high = map(float, record["ends"])
        random, best = (BaselineValues(**record[name], bits=bits[name]) for name in ("random", "best"))
        return cls(record["objective"], (low, high), bool(record["exact"]), random, best)


@dataclass(frozen=True)
class Estimate:
    """An exact value, estimated.

    Attributes:
        value: the estimate. low, high: ends of its 95 % interval; low is at least the value read off the lists.
        rows: how many rows were compared with all members.
    """

    value: float
    low: float
    high: float
    rows: int

    SCHEMA: ClassVar[Schema] = Complete(value=NUMBER, low=NUMBER, high=NUMBER, rows=COUNT)

    def scaled(self, slope: float, offset: float = 0.0) -> Estimate:
        """The estimate of ``slope * value + offset``; `slope` is not negative."""
        return replace(
            self,
            value=slope * self.value + offset,
            low=slope * self.low + offset,
            high=slope * self.high + offset,
        )

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> Estimate:
        return cls(record["value"], record["low"], record["high"], record["rows"])


@dataclass(frozen=True)
class GraphFacts:
    """What is known about a neighbor graph.

    Attributes:
        kind: ``exact`` or ``approximate``.
        k: K, the length of the lists.
        recall: share of the true neighbors that the lists hold.
        recall_rows: how many rows that was measured on; 0 where the graph is exact.
    """

    kind: str
    k: int
    recall: float
    recall_rows: int

    SCHEMA: ClassVar[Schema] = Complete(kind=TEXT, k=COUNT, recall=NUMBER, recall_rows=COUNT)

    @property
    def approximate(self) -> bool:
        """Whether the lists miss neighbors."""
        return self.kind == "approximate"

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> GraphFacts:
        return cls(record["kind"], record["k"], record["recall"], record["recall_rows"])


@dataclass(frozen=True)
class ComponentFacts:
    """What is known about the components that objectives are defined on.

    Attributes:
        kept: how many. of: d, the dimensions of the features. share: of the trace of the mean of ``x x'``.
        on_all: the raw value of each of these objectives on all dimensions, which has no bound; None: it takes more
            memory than there is.
    """

    kept: int
    of: int
    share: float
    on_all: Mapping[str, float | None]

    SCHEMA: ClassVar[Schema] = Complete(kept=COUNT, of=COUNT, share=NUMBER, on_all={EVERY: NUMBER | NONE})

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> ComponentFacts:
        return cls(record["kept"], record["of"], record["share"], record["on_all"])


@dataclass(frozen=True)
class RowClasses:
    """How many eligible rows a proof decides.

    Attributes:
        inside: rows that are in every selection at least as good. outside: rows that are in none of them.
        open: rows that some of them have and others not, as far as is proved.
    """

    inside: int
    outside: int
    open: int

    SCHEMA: ClassVar[Schema] = Complete(inside=COUNT, outside=COUNT, open=COUNT)

    @property
    def settled(self) -> int:
        """Rows that are in all of them or in none."""
        return self.inside + self.outside

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> RowClasses:
        return cls(record["inside"], record["outside"], record["open"])


@dataclass(frozen=True)
class WeightTotals:
    """What the inclusion weights come to.

    Attributes:
        sum: of all weights. samples: how many rows have one above 0.
    """

    sum: float
    samples: int

    SCHEMA: ClassVar[Schema] = Complete(sum=NUMBER, samples=COUNT)

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> WeightTotals:
        return cls(record["sum"], record["samples"])
