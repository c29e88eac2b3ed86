"""The scoreboard as small drawings, and how often random parts of the corpus select each row again.

On each measure every run's value stands with its interval, beside random and top quality, on an axis of its own. Marks
of runs that were made by a measure are hollow.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from plotly import graph_objects as go

from datamask.analyses.scoreboard.tables import RANDOM, TOP_QUALITY, Place, Row
from datamask.dashboard.drawing import figures, palette, svg, words
from datamask.dashboard.linked.settled_rows import CORE, Agreed

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


BIN = 0.05
"""Width of a bar: rows are drawn up to the core, which is one number on the page, as is what no part ever selects."""


def agreement(measured: Agreed, own: np.ndarray, *, dark: bool = False) -> go.Figure:
    """Rows by the share of parts that select them, the run's own below the others.

    Args:
        own: bool ``(N,)``, the run's rows. dark: whether the page's ground is dark.
    """
    tone, bars = palette.shades(dark), round(CORE / BIN)
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
        dark=dark,
    )
    drawn.update_layout(barmode="stack")
    for name, mask, color in (("selected by the run", own, tone.accent), ("not selected", ~own, tone.quality)):
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
