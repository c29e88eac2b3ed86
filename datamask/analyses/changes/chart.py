"""Change of the selected share, group by group."""

from __future__ import annotations

import pandas as pd
from plotly import graph_objects as go

from datamask.analyses.changes.tables import LESS, MORE, SAME
from datamask.dashboard.drawing import figures, palette, svg, words
from datamask.dashboard.drawing.interval_dots import interval_dots


def shifts(table: pd.DataFrame, overall: float, *, dark: bool = False) -> go.Figure:
    """Groups with the change of their selected share in percentage points.

    Args:
        table: of `first_shifts`.
        overall: change over all rows, the dashed line.
        dark: whether the page's ground is dark.
    """
    tone = palette.shades(dark)
    ends = [0.0, 100 * overall, *(100 * table["low"]), *(100 * table["high"])]
    ticks = svg.ticks(min(ends), max(ends), 4)
    hover_texts = [
        figures.hover(
            ("", row.group),
            *((name, _points(getattr(row, column))) for name, column in TIPS.items()),
            *((name, f"{getattr(row, name):,}") for name in ("kept", "gained", "lost", "n")),
        )
        for row in figures.records(table)
    ]
    return interval_dots(
        table,
        "change",
        hover_texts,
        {LESS: tone.best, MORE: tone.accent, SAME: tone.random},
        overall=overall,
        title="change, percentage points,<br>with 95 % interval",
        ticks={"tickvals": ticks, "ticktext": [words.signed(tick, 0 if tick == round(tick) else 1) for tick in ticks]},
        pixels=150,
        dark=dark,
    )


TIPS = {"change": "change", "from": "low", "to": "high"}


def first_shifts(table: pd.DataFrame, limit: int = 16) -> pd.DataFrame:
    """The groups worth a look, the greatest loss on top; all where there are few."""
    return table.head(limit).sort_values("change", kind="stable")


def _points(share: float) -> str:
    return f"{words.signed(100 * share)}{words.GAP}%"
