"""The frontier: curves over lambda in the plane of quality and diversity; and both over another setting."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from plotly import graph_objects as go

from datamask import catalogue
from datamask.analyses.frontier import tables
from datamask.analyses.frontier.tables import TERMS, Series
from datamask.dashboard.drawing import figures, palette, words
from datamask.dashboard.tradeoff.geometry import HalfPlane, edge
from datamask.dashboard.tradeoff.spots import Spot

SYMBOLS = ("circle", "square", "diamond", "triangle-up", "pentagon", "hexagon")
DASHES = ("solid", "dash", "dot", "dashdot", "longdash", "longdashdot")
"""Shape and dash of the first, second ... curve of one objective: its colour alone says which objective it is."""

APART = 0.11
"""Least distance between two points with words, in shares."""

NEAR, MARGIN = (-0.2, 1.2), 0.06
"""An axis is stretched to values between these, with room around them; a person can move to those beyond."""

TITLE = "% of the way from random to the best found"

FARTHEST = -60.0
"""Percent. Named levels below it are left to the table, or they would squeeze all others."""

LOG_FROM = 20.0
"""An axis whose last value is so many times the first is logarithmic."""

HEIGHT = 460

SHOWN = {"selected": {"marker": {"opacity": 1}}, "unselected": {"marker": {"opacity": 1}}}
"""Of marks that can be pressed: what is chosen gets a ring; nothing turns pale."""


@dataclass(frozen=True)
class Here:
    """A selection that is on no curve: its name and its values, as shares."""

    name: str
    quality: float
    diversity: float


def frontier(
    lines: Sequence[Series],
    named: Sequence[Spot] = (),
    *,
    names: Mapping[str, str] | None = None,
    planes: Sequence[HalfPlane] = (),
    chosen: Spot | None = None,
    here: Here | None = None,
    solved: Sequence[Here] = (),
    height: int = 560,
) -> go.Figure:
    """Draw curves and points; every marker's ``customdata`` is the run's id.

    Args:
        lines: curves, each of its own runs.
        named: points on no curve.
        names: of the curves by key; None: as `tables.names` calls them.
        planes: what is proved; the gray side.
        chosen: the point that gets the ring.
        here: the current selection, which gets a dot of its own; None: it is on a curve, or of another problem.
        solved: by rising lambda, what the Map's slider has solved.
        height: in pixels.
    """
    names = tables.names(lines) if names is None else names
    dots = [*solved, *([] if here is None else [here]), *(spot for line in lines for spot in line.spots), *named]
    across, up = (_range([getattr(dot, term) for dot in dots]) for term in TERMS)
    tone, looks = palette.THEMED, styles(lines)
    drawn = _plane(across, up, height)
    x = np.linspace(*across, 601)
    proved = edge(planes, x, *up)
    if proved.min() < up[1]:
        figures.area(drawn, [*x, *across[::-1]], [*proved, up[1], up[1]], tone.random, "provably unreachable")
    if solved:
        _dots(drawn, solved, "solved on the Map", mode="lines+markers", marker={"size": 5}, line={"width": 1})
    for line in lines:
        color, symbol, dash = looks[line.key]
        # two points would only be joined by a chord
        if len(line.levels) > 2:
            _, quality, diversity = zip(*line.means())
            figures.add(drawn, quality, diversity, mode="lines", line={"color": color, "width": 2, "dash": dash})
        mark = {"color": color, "size": 9, "symbol": symbol, "line": {"width": 1, "color": tone.ground}}
        _marks(drawn, line.spots, names[line.key], mark)
    colors = {line.scale: looks[line.key][0] for line in lines}
    for spot in named:
        color = colors.get(spot.scale, tone.text)
        mark = {"color": color, "size": 12, "symbol": "star", "line": {"width": 1, "color": tone.text}}
        _marks(drawn, [spot], spot.label, mark, legend=False)
    cross = {"symbol": "x-thin", "size": 11, "line": {"width": 2, "color": tone.random}}
    figures.add(drawn, [0.0], [0.0], read=["random (0 % by definition)"], mode="markers", marker=cross)
    _labels(drawn, lines, named)
    if chosen is not None:
        ring = {"symbol": "circle-open", "size": 19, "color": tone.text, "line": {"width": 2.5}}
        figures.add(drawn, [chosen.quality], [chosen.diversity], mode="markers", marker=ring)
    if here is not None:
        look = {"symbol": "circle-open-dot", "size": 15, "color": tone.best, "line": {"width": 2}}
        _dots(drawn, [here], "the current selection", mode="markers", marker=look, **SHOWN)
    return drawn


def _range(values: Sequence[float]) -> tuple[float, float]:
    near = [value for value in values if NEAR[0] <= value <= NEAR[1]]
    return min(0.0, *near, 1.0) - MARGIN, max(1.0, *near, 0.0) + MARGIN


def far(spot: Spot) -> bool:
    """Whether a point lies outside of the picture at first."""
    return not all(NEAR[0] <= getattr(spot, term) <= NEAR[1] for term in TERMS)


def _plane(across: tuple[float, float], up: tuple[float, float], height: int) -> go.Figure:
    ticks = [round(0.2 * k, 1) for k in range(-10, 8)]
    plain: dict[str, Any] = {
        "tickvals": ticks,
        "ticktext": [words.percent(tick) for tick in ticks],
        "zeroline": True,
        "zerolinecolor": palette.THEMED.muted,
        "constrain": "domain",
        "fixedrange": False,
    }
    ends = "(0 % random, 100 % best found)"
    quality = figures.axis(f"quality {ends}", range=across, **plain)
    diversity = figures.axis(f"diversity {ends}", range=up, scaleanchor="x", constraintoward="top", **plain)
    return figures.figure(quality, diversity, height=height).update_layout(dragmode="pan", clickmode="event+select")


def _dots(drawn: go.Figure, dots: Sequence[Here], name: str, **look: Any) -> None:
    """Selections that are on no curve; a press on them opens nothing."""
    read = [figures.hover(("", dot.name), *_shares(dot)) for dot in dots]
    x, y = [dot.quality for dot in dots], [dot.diversity for dot in dots]
    figures.add(drawn, x, y, name, read, **look)
    drawn.data[-1].update(line={"color": palette.THEMED.random})


def _shares(dot: Here | Spot) -> list[tuple[str, str]]:
    return [(term, words.percent(getattr(dot, term), 1)) for term in TERMS]


def _marks(drawn: go.Figure, spots: Sequence[Spot], name: str, mark: dict[str, Any], legend: bool = True) -> None:
    """Marks that can be pressed."""
    title = figures.plain(name)
    figures.add(
        drawn,
        [spot.quality for spot in spots],
        [spot.diversity for spot in spots],
        title if legend else "",
        [f"<b>{title}</b><br>{_hover(spot)}" for spot in spots],
        mode="markers",
        customdata=[spot.run_id for spot in spots],
        marker=mark,
        **SHOWN,
    )


def _hover(spot: Spot) -> str:
    values = _shares(spot)
    if spot.raw_quality is not None:
        values.insert(1, ("mean score", words.value(spot.raw_quality)))
    if spot.raw_diversity is not None:
        values.append(("diversity, unscaled", words.value(spot.raw_diversity)))
    if catalogue.estimator(spot.settings.estimator).guided:
        values.insert(0, ("λ", f"{spot.lamb:g}"))
    return figures.hover(*values, *([] if spot.gap is None else [("gap", words.percent(spot.gap, 2))]))


def _labels(drawn: go.Figure, lines: Sequence[Series], named: Sequence[Spot]) -> None:
    """Words at the points: random, then named ones, then λ 0.5 and 0 of each curve, then all that have room."""
    wanted = [(0.0, 0.0, "random")]
    # a random draw lies beside the cross that says so
    wanted += [(spot.quality, spot.diversity, spot.label) for spot in named if spot.settings.estimator != "random"]
    for line in lines:
        means = sorted(line.means(), key=lambda point: (point[0] != 0.5, point[0] != 0.0))
        wanted += [(x, y, f"λ {lamb:g}") for lamb, x, y in means]
    said: list[tuple[float, float, str]] = []
    for x, y, text in wanted:
        if all(math.dist((x, y), other[:2]) >= APART for other in said):
            said.append((x, y, text))
    figures.add(
        drawn,
        [x for x, _, _ in said],
        [y for _, y, _ in said],
        mode="text",
        # an em space off the mark, which may have a ring
        text=[f"\u2003{figures.plain(text)}\u2003" for _, _, text in said],
        # towards the middle, where there is room
        textposition=["top left" if x > 0.5 and len(text) > 6 else "top right" for x, _, text in said],
        textfont=figures.HALO,
    )


def styles(lines: Sequence[Series]) -> dict[str, tuple[str, str, str]]:
    """Colour, symbol and dash of each curve: the colour follows the objective, the rest tells its curves apart."""
    order = [entry.name for entry in catalogue.OBJECTIVES]
    seen: dict[str, int] = {}
    looks = {}
    for line in lines:
        objective = line.settings.objective
        place = order.index(objective) if objective in order else len(order)
        nth = seen.setdefault(objective, 0)
        seen[objective] += 1
        looks[line.key] = (palette.themed(place), SYMBOLS[nth % len(SYMBOLS)], DASHES[nth % len(DASHES)])
    return looks


# -- over another setting ----------------------------------------------------------------------------------------------


def values(table: pd.DataFrame, title: str, *, counted: bool, percent: bool = False) -> go.Figure:
    """Quality and diversity over what varies: along an axis of numbers, or a line for each named level.

    Args:
        table: of `tables.ends`; the bars around each mean go from the worst to the best seed.
        title: of what varies.
        counted: whether the values are numbers. percent: whether they are shares, drawn as percent.
    """
    random, levels = palette.THEMED.random, list(dict.fromkeys(table["level"]))
    if counted:
        at = table["value"].astype(float) * (100 if percent else 1)
        low, high = float(at.min()), float(at.max())
        log = low > 0 and high / low >= LOG_FROM
        across = figures.log_axis(title, low, high) if log else figures.axis(title, grid=False, nticks=9)
        across.update(figures.PERCENT if percent else {})
        drawn = figures.figure(across, figures.axis(TITLE, nticks=7), height=HEIGHT)
        drawn.add_hline(0, line_color=random, **figures.ACROSS)
    else:
        at = table["level"].map(levels.index) + table["term"].map({"quality": -0.14, "diversity": 0.14})
        least, most = max(min(table["low"].min(), 0.0), FARTHEST), max(table["high"].max(), 100.0)
        room = 0.04 * (most - least)
        ends = {"range": [least - room, most + room], "nticks": 8, **figures.PERCENT}
        across = figures.axis(TITLE.replace(" to", "<br>to"), **ends)
        drawn = figures.figure(across, figures.rows(levels), height=34 * len(levels) + 82)
        drawn.add_vline(0, line_color=random, **figures.ACROSS)
    for term, points in table.assign(at=at).groupby("term", sort=False):
        first = term == TERMS[0]
        color = palette.THEMED.quality if first else palette.THEMED.diversity
        bar = figures.error_bar(points["share"], points["low"], points["high"], color, thickness=1.5)
        mark = {"color": color, "size": 9, "symbol": "circle" if first or counted else "diamond"}
        line = {"color": color, "width": 2.5, "dash": "solid" if first else "6px,3px"}
        read = [_level_hover(row, title) for row in figures.records(points)]
        if counted:
            look = {"mode": "lines+markers", "line": line, "error_y": bar}
            figures.add(drawn, points["at"], points["share"], str(term), read, marker=mark, **look)
        else:
            look = {"mode": "markers", "error_x": bar}
            figures.add(drawn, points["share"], points["at"], str(term), read, marker=mark, **look)
    return drawn


def _level_hover(row: Any, title: str) -> str:
    return figures.hover(
        ("", row.term),
        (title, row.level),
        ("share, %", f"{row.share:.1f}".replace("-", "−")),
        ("raw value", words.value(row.raw)),
        ("seeds", row.n),
    )
