"""The same sweep over lambda on parts of the corpus, held against the whole one's, as curves and in a sentence."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from datamask.analyses.frontier.series import shared
from datamask.analyses.frontier.tables import Line
from datamask.config import CorpusConfig, SelectionConfig
from datamask.dashboard.tradeoff.spots import FREE, Spot, spot_of
from datamask.errors import DatamaskError
from datamask.runs.store import Run


@dataclass(frozen=True)
class Transfer:
    """The same sweep on slices of a corpus.

    Attributes:
        lines: by the slice's name, smallest first; each curve has the ends of its own scales.
        apart: by slice, the largest distance at one lambda from the whole corpus's curve, in shares, and at which.
    """

    lines: dict[str, Line]
    apart: dict[str, tuple[float, float]]


def transfer(
    runs: Iterable[Run], slices: Mapping[str, CorpusConfig], fingerprint: str, settings: SelectionConfig
) -> Transfer:
    """The curves with these settings on each slice; those with fewer than two points are left out.

    Args:
        slices: name -> corpus, the whole one last; fingerprint: of the whole one, which may have been opened by another
            path.
        settings: what the curve on the whole corpus shares.
    """
    last = list(slices)[-1]
    wanted = shared(settings, FREE)
    spots: dict[str, list[Spot]] = {name: [] for name in slices}
    for run in runs:
        try:
            config, whole_one = run.config, run.facts().get("fingerprint") == fingerprint
        except DatamaskError:  # listed elsewhere, with its reason
            continue
        name = last if whole_one else next((name for name, corpus in slices.items() if corpus == config.corpus), None)
        if name is not None and shared(config.selection, FREE) == wanted and (spot := spot_of(run)):
            spots[name].append(spot)
    lines = {
        name: Line(name, tuple(sorted(of_name, key=lambda spot: spot.lamb)))
        for name, of_name in spots.items()
        if len({spot.lamb for spot in of_name}) > 1
    }
    apart = {}
    whole = lines.get(last)
    if whole is not None:
        there = {lamb: (quality, diversity) for lamb, quality, diversity in whole.means()}
        for name, line in lines.items():
            gaps = [
                (math.dist(there[lamb], (quality, diversity)), lamb)
                for lamb, quality, diversity in line.means()
                if lamb in there
            ]
            if line is not whole and gaps:
                apart[name] = max(gaps)
    return Transfer(lines, apart)


def transfer_words(check: Transfer) -> str:
    """How well slices tell the whole corpus's frontier, in a sentence."""
    if not check.apart:
        return "Two curves with a common λ are needed to compare them."
    distances = [
        f"{name} differs by at most {100 * far:.1f} %, at λ {lamb:g}" for name, (far, lamb) in check.apart.items()
    ]
    worst = max(far for far, _ in check.apart.values())
    verdict = (
        "A λ chosen on a part holds for all rows."
        if worst < 0.05
        else "A λ chosen on a part gives another trade-off on all rows."
    )
    return f"Against all rows: {'; '.join(distances)}. {verdict}"
