"""What the maps of the page are colored by: the current selection, a column, or what a run knows of each row."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from datamask.analyses.scoreboard import stability_panel
from datamask.dashboard.linked import best_rows, columns
from datamask.dashboard.map import scene
from datamask.dashboard.map.filters import Rows
from datamask.dashboard.map.layers import Change, Layer, Selection
from datamask.dashboard.map.scene import Ground
from datamask.dashboard.runs import listing
from datamask.dashboard.shell import session
from datamask.dashboard.workspace.current import Current
from datamask.runs.store import Run


def scored(current: Current) -> Run | None:
    """The run whose scores there are to see: the one that is the current selection, else the one that is shown."""
    selection = current.selection
    return selection.run if selection is not None and selection.run is not None else current.workspace.run


def layer(
    name: str, current: Current, rows: Rows, ground: Ground, chosen: Sequence[str], change: Change | None = None
) -> Layer:
    """What a map shows that is colored by that name, at whatever λ.

    Args:
        rows: of `columns.rows`, with the scores of `scored`. chosen: what the maps of the page are colored by.
        change: what stands for the selection while it is compared; None: it is not.
    """
    workspace, selection, run = current.workspace, current.selection, scored(current)
    corpus, scores_of = workspace.corpus, "" if run is None else run.id
    if name == columns.SELECTED:
        if selection is not None:
            return change or Selection(selection.title, selection.mask)
        name = next((other for other in (columns.QUALITY, columns.CROWDING) if other not in chosen), columns.QUALITY)
        return columns.layer(corpus, name, rows, scores_of)
    if name == best_rows.NAME:
        return best_rows.layer(current.along.mask_at(1.0), current.along.mask_at(0.0), workspace.refusal)
    if run is not None and name in stability_panel.NAMES:
        cells, cache_dir = ground.places.cells, session.store().cache_dir
        drawn = stability_panel.layer(name, run, scene.run_columns(run), corpus, cache_dir, cells)
    else:
        drawn = columns.layer(corpus, name, rows, scores_of)
    own = selection is not None and selection.run is not None
    if own or run is None or name not in columns.OF_RUN:
        return drawn
    return replace(drawn, title=f"{drawn.title}, of {listing.name_of(run)}")
