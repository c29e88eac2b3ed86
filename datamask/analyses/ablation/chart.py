"""Methods by targets as a heat map, and methods on one target as dots with intervals."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
import pandas as pd
from plotly import graph_objects as go

from datamask.ablation import wording
from datamask.analyses.ablation.tables import VERDICTS
from datamask.dashboard.drawing import figures, palette

ROW = 24
"""Pixels of a method's row."""

NAMES = 250
"""Pixels that a method's name takes at most; a target's takes fewer, at a slant."""

MANY = 14
"""Targets up to which the numbers fit their cells in a window 1000 pixels wide; with more the pointer reads them."""

CLIP = 90
"""Percentile of the differences at which the color is full, so that one failure does not turn the others white."""


def heat_map(cells: pd.DataFrame, unit: str, regrets: Mapping[str, float]) -> go.Figure:
    """Differences from random of methods by targets: blue is better, brown is worse, gray is level with random.

    Args:
        cells: of `tables.cells`. unit: of a difference. regrets: the largest of each method, in the last column.
    """
    names, targets = list(dict.fromkeys(cells["method"])), list(dict.fromkeys(cells["target"]))
    shape = (len(names), len(targets))
    difference = cells["difference"].to_numpy().reshape(shape)
    told = cells["verdict"].isin([VERDICTS["better"], VERDICTS["worse"]]).to_numpy().reshape(shape)
    level = (cells["random"] | (cells["verdict"] == VERDICTS["level"])).to_numpy().reshape(shape)
    others = np.abs(difference[~level])
    full = float(np.percentile(others, CLIP)) if others.size else 0.0
    drawn = figures.figure(
        figures.axis(
            grid=False,
            side="top",
            tickvals=list(range(len(targets) + 1)),
            ticktext=[*(figures.cut(target, 170) for target in targets), "largest regret"],
            range=[-0.5, len(targets) + 0.5],
        )
        | {"tickangle": -30},
        figures.rows(names, NAMES, grid=False),
        height=ROW * len(names) + 114,
        margin={"t": 110, "r": 50},
    )
    drawn.add_trace(
        go.Heatmap(
            # blue, which is better, is the upper end of the scale
            z=np.where(level, 0.0, -difference),
            zmin=-(full or 1.0),
            zmax=full or 1.0,
            colorscale=list(zip((0.0, 0.5, 1.0), palette.THEMED_SHARES)),
            showscale=False,
            xgap=2,
            ygap=2,
            text=np.where(told & (len(targets) <= MANY), [[_short(value) for value in row] for row in difference], ""),
            texttemplate="%{text}",
            # left to itself Plotly shrinks numbers until they are hard to read
            textfont={"size": 13},
            hoverinfo="skip",
        )
    )
    # a press on a heat map says nothing to the page; one on a mark does, so each cell has one that is not seen
    figures.add(
        drawn,
        np.tile(np.arange(len(targets)), len(names)),
        np.repeat(np.arange(len(names)), len(targets)),
        "",
        [_hover(cell, unit) for cell in figures.records(cells)],
        mode="markers",
        marker={"symbol": "square", "size": ROW - 6, "color": "rgba(0,0,0,0)"},
        customdata=cells[["method_name"]].to_numpy(),
    )
    # all of a wide cell is its mark's
    drawn.update_layout(hoverdistance=-1)
    beside = [f"{regrets[name]:.3f}" for name in names]
    column = [len(targets)] * len(names)
    figures.add(drawn, column, list(range(len(names))), mode="text", text=beside, textfont=figures.LETTERS)
    return drawn


def interval_rows(cells: pd.DataFrame, unit: str, best_simple: str) -> go.Figure:
    """Differences to random with their intervals, one a method, and a line at the best simple baseline.

    Args:
        cells: of `tables.overall`. best_simple: its method; "": the result is provisional.
    """
    # random is the line at 0
    table = cells[~cells["random"]].sort_values("difference", kind="stable").reset_index(drop=True)
    tone = palette.THEMED
    over = f",<br>{table['target'].iloc[0]}" if table["target"].iloc[0].startswith("mean over") else ""
    # in three lines, which a phone has room for
    title = f"difference to random{over}<br>{figures.plain(unit)}<br>lower is better"
    drawn = figures.figure(
        figures.axis(title, zeroline=True, zerolinecolor=tone.muted),
        figures.rows(list(table["method"]), NAMES),
        height=ROW * len(table) + figures.NUMBERS + 7 * figures.LINE,  # on a phone the legend has four lines
    )
    baseline = cells[cells["method"] == best_simple]
    if len(baseline):
        drawn.add_vline(float(baseline["difference"].iloc[0]), line_color=tone.best, **figures.ACROSS)
        line = {"color": tone.best, "dash": "3px,3px", "width": 1.2}
        figures.add(drawn, [None], [None], "best simple baseline", mode="lines", line=line)
    looks = {
        "": (tone.muted, "circle"),
        VERDICTS["better"]: (tone.accent, "triangle-down"),
        VERDICTS["worse"]: (tone.best, "triangle-up"),
        VERDICTS["level"]: (tone.random, "circle"),
    }
    for verdict, (color, symbol) in looks.items():
        those = table[table["verdict"] == verdict]
        if those.empty:
            continue
        figures.add(
            drawn,
            those["difference"],
            list(those.index),
            f"{verdict} than random" if verdict in ("better", "worse") else verdict or "no interval yet",
            [_hover(cell, unit) for cell in figures.records(those)],
            mode="markers",
            marker={"color": color, "symbol": symbol, "size": 10},
            error_x=figures.error_bar(those["difference"], those["low"], those["high"], color),
        )
    return drawn


def _short(difference: float) -> str:
    """A difference in two significant digits, ``+.22`` or ``−1.3``: thirteen fit side by side in a narrow window."""
    decimals = 1 - math.floor(math.log10(abs(difference))) if difference else 2
    text = f"{difference:+.{min(max(decimals, 0), 4)}f}".replace("-", "−")
    return text[0] + text[1:].removeprefix("0")


def _hover(cell, unit: str) -> str:
    """What the pointer reads at a method on a target."""
    lines = [
        ("", cell.method),
        ("target", cell.target),
        ("difference from random", f"{wording.signed(cell.difference)} {unit}"),
    ]
    if np.isfinite(cell.low):
        lines.append(("interval", f"{wording.signed(cell.low)} to {wording.signed(cell.high)}"))
    if cell.verdict:
        lines.append(("verdict", cell.verdict))
    return figures.hover(*lines)
