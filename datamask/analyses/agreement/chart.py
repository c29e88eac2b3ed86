"""How often random parts of the corpus select each sample again."""

from __future__ import annotations

import numpy as np
import pandas as pd
from plotly import graph_objects as go

from datamask.dashboard.drawing import figures, palette, words
from datamask.dashboard.linked.agreed import CORE, FLIP, Agreed

BINS = 18
"""Bars up to the core, a twentieth wide."""


def histogram(measured: Agreed, own: np.ndarray) -> pd.DataFrame:
    """The undecided by the share of parts that select them: ``low, high, of, rows, base, top``, selected ones below.

    The core and what no part ever selects are left out: they are nearly all, and one number each says it.
    """
    edges = np.linspace(0, CORE, BINS + 1)
    width, tables, base = CORE / BINS, [], np.zeros(BINS)
    for name, mask in (("selected by the run", own), ("not selected", ~own)):
        values = measured.share[mask & (measured.share > 0) & ~measured.core]
        # shares are fractions of a few parts: rounding must not move one across the edge of its bar
        counts = np.bincount(np.clip(np.floor(values / width + 1e-9).astype(int), 0, BINS - 1), minlength=BINS)
        tables.append(
            pd.DataFrame(
                {"low": edges[:-1], "high": edges[1:], "of": name, "rows": counts, "base": base, "top": base + counts}
            )
        )
        base = base + counts
    return pd.concat(tables, ignore_index=True)


def agreement(table: pd.DataFrame, *, dark: bool = False, height: int = 210) -> go.Figure:
    """A histogram, the run's own samples below the others, the coin-flips shaded.

    Args:
        table: of `histogram`.
        dark: whether the page's ground is dark.
        height: of the whole figure, in pixels.
    """
    tone = palette.shades(dark)
    drawn = figures.figure(
        figures.axis(
            "share of the random subsets that select the row",
            grid=False,
            range=[0, 100 * CORE],
            tickvals=[10 * k for k in range(round(10 * CORE) + 1)],
            ticktext=[words.percent(k / 10) for k in range(round(10 * CORE) + 1)],
        ),
        figures.axis("unstable rows", nticks=6, tickformat=",~r", rangemode="tozero"),
        height=height,
        dark=dark,
    )
    low, high = FLIP
    drawn.add_shape(
        type="rect",
        x0=100 * low,
        x1=100 * high,
        y0=0,
        y1=1,
        yref="paper",
        line={"width": 0},
        fillcolor=figures.faded(tone.muted, 0.22),
        layer="between",
    )
    for of, color in (("selected by the run", tone.accent), ("not selected", tone.quality)):
        bars = table[table["of"] == of]
        drawn.add_trace(
            go.Bar(
                name=of,
                showlegend=True,
                x=100 * bars["low"],
                width=100 * (bars["high"] - bars["low"]),
                offset=0,
                base=bars["base"],
                y=bars["top"] - bars["base"],
                marker={"color": color, "line": {"color": tone.ground, "width": 1}},
                hovertext=[
                    figures.hover(
                        ("", bar.of),
                        ("from", words.percent(bar.low)),
                        ("to", words.percent(bar.high)),
                        ("rows", f"{bar.rows:,}"),
                    )
                    for bar in figures.records(bars)
                ],
                **figures.BAR_HOVER,
            )
        )
    figures.write(
        drawn, "unstable", 100 * low, 1, tone.text, yref="paper", middle="top", right=4, down=2, ground=tone.ground
    )
    return drawn
