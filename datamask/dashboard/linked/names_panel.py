"""Names of the regions on the map, and what a press on one does: it shows the rows inside alone."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from datamask.dashboard.drawing import words
from datamask.dashboard.linked import groups_panel
from datamask.dashboard.linked.brushing import Linked, take
from datamask.dashboard.linked.tally import Tally
from datamask.dashboard.map import named_regions
from datamask.dashboard.map.canvas_map import Named
from datamask.dashboard.map.filters import Among
from datamask.dashboard.map.scene import Ground

NAMES = "names"
"""Name of their tally."""

PRESS = " Press to filter by it."
"""The end of what a name says where a press shows its rows alone."""


def tally(view: Linked, ground: Ground) -> Tally | None:
    """The regions, to be counted along lambda; None: there are none."""
    column = named_regions.column_of(ground.kind)
    if column not in view.rows.classes:
        return None
    codes, known = view.rows.classes[column]
    return Tally(NAMES, codes, len(known))


def names(view: Linked, ground: Ground, cache_dir: Path, selected: np.ndarray | None) -> list[Named]:
    """What stands on the map, the largest regions first.

    Args:
        view: with the conditions that hold. selected: bool ``(N,)``, the current selection, if there is one.
    """
    regions = named_regions.load(view.corpus, cache_dir, ground.kind)
    if regions is None or named_regions.column_of(ground.kind) not in view.rows.classes:
        return []
    inside = regions.codes >= 0
    sizes = np.bincount(regions.codes[inside], minlength=len(regions.names))
    hits = None if selected is None else np.bincount(regions.codes[inside & selected], minlength=len(sizes))
    answer = []
    for code, (name, (x, y)) in enumerate(zip(regions.names, regions.places.tolist(), strict=True)):
        sentence = f"{name}: {sizes[code]:,} rows"
        if selected is not None and hits is not None:
            share, everywhere = (words.percent(float(part)) for part in (hits[code] / sizes[code], selected.mean()))
            sentence += f", {share} of them selected (all rows: {everywhere})"
        answer.append(Named(code, name, x, y, f"{sentence}.{PRESS}"))
    return answer


def opened(view: Linked, ground: Ground) -> list[int]:
    """Codes of the regions whose rows are shown alone."""
    column = named_regions.column_of(ground.kind)
    condition = view.filters.of(column)
    if not isinstance(condition, Among):
        return []
    known = view.rows.classes[column][1]
    return [known.index(name) for name in condition.names if name in known]


def press(view: Linked, ground: Ground, code: int) -> None:
    """Show the rows of a region alone; all again where they are. For the map's `on_name`."""
    column = named_regions.column_of(ground.kind)
    name = view.rows.classes[column][1][code]
    if view.filters.of(column) == Among(column, (name,)):
        take(None, column)
    else:
        groups_panel.open_group(view.corpus, Among(column, (name,)))
