"""What is said of one sample."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

SELECTED, LEFT = "selected", "not selected"
PINNED, GIVEN, BANNED, PRUNED, COPY = "pinned", "given", "banned", "pruned", "near-copy"
"""How a sample came in or stayed out; all but the first two were settled before anything was learned."""


@dataclass(frozen=True)
class Part:
    """One bar of the waterfall.

    Attributes:
        name: ``average sample``, ``quality`` or an objective's name.
        value: on the scale of the score; a sample's parts add up to its score minus the threshold.
    """

    name: str
    value: float


@dataclass(frozen=True)
class Witness:
    """A sample or feature dimension behind a part.

    Attributes:
        kind: ``covers`` (a row that this member covers and that would fall back to its next best), ``would cover`` (a
            row that this sample would serve better than any member does), ``similar`` (a selected listed neighbour) or
            ``dimension``.
        row: row of the corpus, or the dimension.
        similarity: cosine with the sample; None for a dimension.
        otherwise: the row's cosine with its next best (``covers``) or present best (``would cover``) member.
        amount: what it adds to the part, on the scale of the score, before the pool's average is taken off.
    """

    kind: str
    row: int
    similarity: float | None
    otherwise: float | None
    amount: float


@dataclass(frozen=True)
class Explanation:
    """Why one sample is in, or not.

    Attributes:
        row: its row in the corpus; id: its id.
        selected: whether it is in; state: how it came in or stayed out.
        score, threshold: on the run's scale; margin: their difference, in standard deviations of all scores.
        parts: add up to ``score - threshold``.
        expected: whether its side of the threshold is the side it is on.
        facts: named numbers: ``quality_above`` and ``quality_below``, the shares of the corpus with lower and higher
            quality; ``<objective>_above``, the share with a smaller part in that objective; for pair-wise similarity
            ``mean_cosine``, with the other members.
        witnesses: by objective, the largest first; witness_counts: how many there are.
        nearest_selected, nearest_similarity: the most similar other member, whatever the objective; -1 and 0 for none.
        copy_of: the row that was kept instead of this near-copy; -1 where it is none.
        sentence: all this in one sentence.
    """

    row: int
    id: Any
    selected: bool
    state: str
    score: float
    threshold: float
    margin: float
    parts: tuple[Part, ...]
    expected: bool
    facts: dict[str, float]
    witnesses: dict[str, tuple[Witness, ...]] = field(default_factory=dict)
    witness_counts: dict[str, int] = field(default_factory=dict)
    nearest_selected: int = -1
    nearest_similarity: float = 0.0
    copy_of: int = -1
    sentence: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON and tables."""
        return asdict(self)
