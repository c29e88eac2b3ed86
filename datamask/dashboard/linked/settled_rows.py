"""Which rows of a selection are settled, as layers of the map: by the proof of its value, or on parts.

By proof a sample is in every selection as good as the run's, in none, or open (`datamask.learning.settled`). Where the
run is made again on random parts of the corpus it is certain to be in, certain to be out, a coin-flip, or between these
(`datamask.analyses.scoreboard.compute.agreement`). Where a run has neither, a sentence says why.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from datamask import catalogue
from datamask.config import SelectionConfig
from datamask.dashboard.drawing import words
from datamask.dashboard.map.hexagons import Hexagons
from datamask.dashboard.map.layers import Blank, Classes, Layer, Number
from datamask.evaluation.result import RunResult

BY_PROOF, BY_PARTS = "rows by proof", "stability across subsets"
"""Names in the menus of the map."""

PARTS, CORE, FLIP = 20, 0.9, (0.3, 0.7)
"""Parts that are drawn, by `datamask.analyses.scoreboard.compute.agreement`, which loads torch; the share of them from
which on a row is of the core, and the shares between which it is a coin-flip."""

INELIGIBLE, INSIDE, OUTSIDE, OPEN, LEANING = range(5)
"""Codes of a row: could not be selected; certain to be in, certain to be out; undecided; by parts: neither."""

PROOF_NAMES = ("required", "excluded", "interchangeable")
PARTS_NAMES = ("stable, selected", "stable, not selected", "unstable", "between")
ROLES = ("accent", "random", "best", "quality")
SHAPES = ("circle", "square", "diamond", "triangle")

CERTAIN_OUT = 1 - CORE
"""Selected in at most this share of the parts: certain to be out, as the core is certain to be in."""

ROUNDING = 1e-9
"""Of a share of some parts."""


@dataclass(frozen=True)
class Agreed:
    """Attributes:
    share: float64 ``(N,)``, of the parts that held a row those in which it was selected; NaN: in none.
    core: bool ``(N,)``, the consensus core; flips: bool ``(N,)``, the coin-flips.
    kept: of the rows that the run itself selected, the share in the core.
    repeated: of the rows that the run itself selected, the mean share of parts that select them again.
    """

    share: np.ndarray
    core: np.ndarray
    flips: np.ndarray
    kept: float
    repeated: float


def agreed(appeared: np.ndarray, selected: np.ndarray, own: np.ndarray) -> Agreed:
    """From the stored counts.

    Args:
        appeared, selected: int ``(N,)``, parts that held the row, and that selected it. own: bool ``(N,)`` of the run.
    """
    share = np.divide(selected, appeared, out=np.full(len(selected), np.nan), where=appeared > 0)
    core, flips = share >= CORE, (share >= FLIP[0]) & (share <= FLIP[1])
    inside = share[own & np.isfinite(share)]
    return Agreed(share, core, flips, float(core[own].mean()), float(inside.mean()) if len(inside) else np.nan)


def proof_codes(settled: np.ndarray, eligible: np.ndarray) -> np.ndarray:
    """The code of each row by the proof, uint8 ``(N,)``.

    Args:
        settled: int8 ``(N,)``, 1: in every selection as good; 0: in none; -1: open, or not eligible. eligible: bool
            ``(N,)``.
    """
    codes = np.full(len(settled), INELIGIBLE, np.uint8)
    codes[eligible & (settled < 0)] = OPEN
    codes[settled == 1] = INSIDE
    codes[eligible & (settled == 0)] = OUTSIDE
    return codes


def part_codes(agreed: Agreed) -> np.ndarray:
    """The code of each row by how often parts of the corpus select it, uint8 ``(N,)``."""
    share = agreed.share
    codes = np.full(len(share), INELIGIBLE, np.uint8)
    known = np.isfinite(share)
    codes[known] = LEANING
    codes[known & agreed.flips] = OPEN
    codes[known & agreed.core] = INSIDE
    codes[known & (share <= CERTAIN_OUT + ROUNDING)] = OUTSIDE
    return codes


def layer(name: str, codes: np.ndarray, cells: Hexagons | None) -> Layer:
    """What a map shows of the codes: a shape for each kind of point; of hexagons the share that is not settled.

    Few samples are open as a rule, so that the most frequent kind of a hexagon would never be the one looked for.

    Args:
        name: `BY_PROOF` or `BY_PARTS`. codes: uint8 ``(N,)``. cells: the map's hexagons; None: it draws points.
    """
    names = PROOF_NAMES if name == BY_PROOF else PARTS_NAMES
    if cells is None:
        left = int((codes == INELIGIBLE).sum())
        note = f"{left:,} rows could not be selected and are pale" if left else ""
        return Classes(title_of(name), codes, names, ROLES[: len(names)], SHAPES[: len(names)], note=note)
    undecided = np.where(codes == INELIGIBLE, np.nan, (codes == OPEN) | (codes == LEANING)).astype(np.float32)
    what = "interchangeable" if name == BY_PROOF else "not stable"
    if not np.isfinite(undecided).any():
        return Blank(title_of(name), "no row could be selected")
    # the scale where no hexagon but a few has any
    most = float(np.nanmax(cells.means(undecided)))
    return Number(f"Share {what}", undecided, 0.0, most if most > 0 else 1.0, False)


def title_of(name: str) -> str:
    """What stands over a panel."""
    return name[0].upper() + name[1:]


def about(name: str) -> str:
    """What the colours mean, for the help of the menu."""
    if name == BY_PROOF:
        return (
            f"*{title_of(BY_PROOF)}*: required rows are in every optimal selection, excluded rows in none, "
            "interchangeable rows in some."
        )
    return (
        f"*{title_of(BY_PARTS)}*: a stable row is selected in at least {words.percent(CORE)} of the random subsets "
        f"that contain it, an unstable row in {words.percent(FLIP[0])} to {words.percent(FLIP[1])}."
    )


def no_proof(config: SelectionConfig, result: RunResult) -> str:
    """Why nothing is settled by proof, in words for an empty panel."""
    terms = [name for name, _ in config.terms]
    if config.estimator == catalogue.IMPORTED.name:
        return "imported ids have no proof"
    if terms != ["pairwise"] and config.lamb < 1:
        return f"the proof of {' and '.join(terms)} classifies no row; the proof of pair-wise similarity does"
    if config.ruled or config.budget is not None:
        return "with pins, quotas, given rows or a budget the proof classifies no row"
    if result.certificate.upper_bound is None:
        return "this run has no bound"
    return "the bound is too loose to classify a row"


def never(config: SelectionConfig) -> str:
    """Why parts of the corpus cannot select as the run did; empty where they can."""
    if config.estimator == catalogue.IMPORTED.name:
        return "the method that selected imported ids is unknown"
    if config.ruled or config.budget is not None:
        return "pins, quotas, given rows and budgets have another meaning on a subset"
    return ""
