"""The scoreboard as small drawings, and how often random parts of the corpus select each row again.

On each measure every run's value stands with its interval, beside random and top quality, on an axis of its own. Marks
of runs that were made by a measure are hollow.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
from plotly import graph_objects as go

from datamask.analyses.scoreboard.tables import RANDOM, TOP_QUALITY, Place, Row
from datamask.dashboard.drawing import figures, palette, svg, words
from datamask.dashboard.linked.settled_rows import CORE, FLIP, Agreed

WIDTH, LEFT, RIGHT, STEP = 460, 96, 14, 17

LOOKS = {RANDOM: ("random", "circle"), TOP_QUALITY: ("best", "square")}

STYLE = """.scores{display:grid;grid-template-columns:repeat(auto-fill,minmax(min(430px,100%),1fr));gap:18px 28px}
.score .head{display:flex;justify-content:space-between;gap:14px;align-items:baseline}
.score .says{font-size:.82em;opacity:.75}.score .verdict{font-size:.88em;text-align:right}"""
"""What goes with `scoreboard`."""


def scoreboard(rows: Sequence[Row], dark: bool | None = None) -> str:
    """All measures as HTML; what could not be measured is left to `missing`.

    Args:
        dark: the ground it is drawn on, as images; None: as inline drawings that follow the page around them.
    """
    return '<div class="scores">' + "".join(_measure(row, dark) for row in rows if row.places) + "</div>"


def missing(rows: Sequence[Row]) -> str:
    """The measures without a value, with the reason, in a sentence; empty where there are none."""
    names = [f"{row.label} ({row.verdict})" for row in rows if not row.places]
    return f"Not measured: {', '.join(names)}." if names else ""


def _measure(row: Row, dark: bool | None) -> str:
    picture = drawing(row)
    drawn = picture.markup() if dark is None else picture.image(dark)
    return (
        f'<div class="score"><div class="head"><b>{svg.escape(row.label)}</b>'
        f'<span class="verdict">{svg.escape(row.verdict)}</span></div>'
        f'<div class="says">{svg.escape(row.says)}</div>{drawn}</div>'
    )


def drawing(row: Row) -> svg.Drawing:
    """One measure: a line for each selection, one axis for all."""
    places = row.places
    ends = [end for place in places for end in (place.value, place.low, place.high) if end is not None]
    low, high = min(ends), max(ends)
    room = 0.06 * (high - low) or max(abs(high), 1e-9) * 0.05
    low, high = low - room, high + room
    bottom = 8 + STEP * len(places)
    picture = svg.Drawing(WIDTH, bottom + 30, f"{row.label}: " + ", ".join(_tooltip(place) for place in places))

    def at(value: float) -> float:
        return LEFT + (value - low) / (high - low) * (WIDTH - LEFT - RIGHT)

    for tick in svg.ticks(low, high):
        picture.line(at(tick), 4, at(tick), bottom)
        picture.text(at(tick), bottom + 13, words.value(tick), "text", "middle", 11)
    for line, place in enumerate(places):
        y = 4 + STEP * (line + 0.5)
        color, shape = LOOKS.get(place.key) or (f"series{_order(place)}", svg.SHAPES[_order(place)])
        name = place.letter or {RANDOM: "random", TOP_QUALITY: "top quality"}.get(place.key, place.label)
        picture.text(LEFT - 8, y + 4, name, "text", "end", 12, bold=bool(place.letter))
        if place.low is not None and place.high is not None:
            picture.line(at(place.low), y, at(place.high), y, color, 2)
        picture.mark(at(place.value), y, color, shape, hollow=place.optimised, title=_tooltip(place))
    hint = {"higher": "higher is better →", "lower": "← lower is better", "neither": ""}[row.better]
    anchor, x = ("start", LEFT) if row.better == "lower" else ("end", WIDTH - RIGHT)
    picture.text(x, bottom + 27, hint, "random", anchor, 11)
    return picture


def _order(place: Place) -> int:
    return "ABCD".index(place.letter) if place.letter in tuple("ABCD") else 0


def _tooltip(place: Place) -> str:
    text = f"{place.label}: {words.value(place.value)}"
    if place.low is not None:
        text += f" ({words.value(place.low)} to {words.value(place.high)})"
    return text + (", optimized by the run" if place.optimised else "")


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
