"""How often random parts of the corpus select each row again."""

from __future__ import annotations

import numpy as np
from plotly import graph_objects as go

from datamask.dashboard.drawing import figures, palette, words
from datamask.dashboard.linked.settled_rows import CORE, Agreed

BIN = 0.05
"""Width of a bar: rows are drawn up to the core, which is one number on the page, as is what no part ever selects."""


def agreement(measured: Agreed, own: np.ndarray) -> go.Figure:
    """Rows by the share of parts that select them, the run's own below the others.

    Args:
        own: bool ``(N,)``, the run's rows.
    """
    tone, bars = palette.THEMED, round(CORE / BIN)
    drawn = figures.figure(
        figures.axis(
            "share of the random subsets that select the row",
            grid=False,
            range=[0, CORE],
            tickvals=[k / 10 for k in range(round(10 * CORE) + 1)],
            ticktext=[words.percent(k / 10) for k in range(round(10 * CORE) + 1)],
        ),
        figures.axis("rows", nticks=6, tickformat=",~r", rangemode="tozero"),
        height=210,
    )
    drawn.update_layout(barmode="stack")
    for name, mask, color in (("selected by the run", own, tone.accent), ("not selected", ~own, tone.random)):
        shares = measured.share[mask & (measured.share > 0) & ~measured.core]
        # shares are fractions of a few parts: rounding must not move one across the edge of its bar
        places = np.clip(np.floor(shares / BIN + 1e-9).astype(int), 0, bars - 1)
        drawn.add_trace(
            go.Bar(
                name=name,
                showlegend=True,
                x=BIN * np.arange(bars),
                y=np.bincount(places, minlength=bars),
                width=BIN,
                offset=0,
                marker={"color": color, "line": {"color": tone.ground, "width": 1}},
                hovertemplate="%{y:,} rows<extra></extra>",
            )
        )
    return drawn
