"""Learning curves of several runs in one chart."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd
from plotly import graph_objects as go

from datamask.analyses.convergence.chart import AXES
from datamask.dashboard.drawing import figures, palette, words


def overlay(
    table: pd.DataFrame,
    labels: Sequence[str],
    x: str = "step",
    *,
    measure: str = "joint",
    dark: bool = False,
    height: int = 260,
    finals: pd.DataFrame | None = None,
) -> go.Figure:
    """A line per run, with a mark where its polished selection ended.

    Args:
        table: of `comparison.curves`. A baseline has no steps: one row, drawn as a mark.
        labels: the runs in their order, which gives colour and dash.
        x: ``step`` or ``seconds``. measure: what the values are, for the axis.
        dark: whether the page's ground is dark. height: of the whole figure, in pixels.
        finals: where polished selections ended, as `comparison.finals` gives them; a diamond each.
    """
    tone = palette.shades(dark)
    drawn = figures.figure(
        figures.axis(AXES[x], grid=False, nticks=7, rangemode="tozero"),
        figures.axis(f"{measure}<br>({words.ends(measure)})", nticks=7, **figures.PERCENT),
        height=height,
        dark=dark,
    )
    figures.line_across(drawn, tone.random, y=0, dash="2px,3px")
    figures.write(drawn, "random subset", 1, 0, tone.random, xref="paper", align="right", middle="bottom", down=-1)
    for label, color, dash in zip(labels, palette.categories(len(labels)), figures.DASHES):
        name = figures.cut(label, 420)
        line = {"color": color, "width": 2.4, "dash": dash}
        figures.key_only(drawn, name, mode="lines", line=line)
        points = table[table["run"] == label].dropna(subset=[x])
        drawn.add_trace(
            go.Scatter(
                x=points[x],
                y=100 * points["value"],
                customdata=points[["step", "seconds"]],
                mode="lines" if len(points) > 1 else "markers",
                line=line,
                marker={"color": color, "symbol": "diamond", "size": 9},
                cliponaxis=len(points) > 1,
                hovertemplate=f"<b>{figures.plain(label)}</b><br>step: %{{customdata[0]:,}}<br>"
                f"seconds: %{{customdata[1]:.1f}}<br>{measure}: %{{y:.1f}}\u00a0%<extra></extra>",
            )
        )
        ends = None if finals is None else finals[finals["run"] == label].dropna(subset=[x])
        if ends is not None and len(ends):
            drawn.add_trace(
                go.Scatter(
                    x=ends[x],
                    y=100 * ends["value"],
                    mode="markers",
                    marker={
                        "color": color,
                        "symbol": "diamond",
                        "size": 11,
                        "line": {"color": tone.ground, "width": 1.2},
                    },
                    cliponaxis=False,
                    hovertemplate=f"<b>{figures.plain(label)}</b><br>final selection: %{{y:.1f}}\u00a0%<extra></extra>",
                )
            )
    return drawn
