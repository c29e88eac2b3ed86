"""How often random parts of the corpus select each row again."""

from __future__ import annotations

import numpy as np
from plotly import graph_objects as go

from datamask.dashboard.drawing import figures, palette
from datamask.dashboard.linked.settled_rows import CORE, Agreed

BIN = 0.05
"""Width of a bar: rows are drawn up to the core, which is one number on the page, as is what no part ever selects."""


def agreement(measured: Agreed, own: np.ndarray) -> go.Figure:
    """Rows by the share of parts that select them, the run's own below the others.

    Args:
        own: bool ``(N,)``, the run's rows.
    """
    edges = BIN * np.arange(round(CORE / BIN))
    drawn = figures.figure(
        figures.axis(
            "share of the random subsets that select the row",
            grid=False,
            range=[0, 100 * CORE],
            dtick=10,
            **figures.PERCENT,
        ),
        figures.axis("rows", nticks=6, tickformat=",~r", rangemode="tozero"),
        height=210,
    ).update_layout(barmode="stack")
    for name, mask, color in (
        ("selected by the run", own, palette.THEMED.accent),
        ("not selected", ~own, palette.THEMED.random),
    ):
        shares = measured.share[mask & (measured.share > 0) & ~measured.core]
        # shares are fractions of a few parts: rounding must not move one across the edge of its bar
        places = np.clip(np.floor(shares / BIN + 1e-9).astype(int), 0, len(edges) - 1)
        rows = np.bincount(places, minlength=len(edges))
        read = [f"{count:,} rows, {name}" for count in rows]
        figures.add(
            drawn,
            100 * edges,
            rows,
            name,
            read,
            go.Bar,
            width=100 * BIN,
            offset=0,
            marker={"color": color, "line": figures.SEAM},
        )
    return drawn
