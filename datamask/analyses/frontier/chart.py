"""The frontier: curves over lambda in the plane of quality and diversity, named points, the proved edge, the price."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from plotly import graph_objects as go

from datamask import catalogue
from datamask.analyses.frontier import tables
from datamask.analyses.frontier.tables import Line
from datamask.dashboard.drawing import figures, palette, words
from datamask.dashboard.drawing.palette import Shades
from datamask.dashboard.tradeoff.geometry import (
    Arrow,
    Window,
    edge_arrow,
    exits,
    spaced,
    tangent,
    unreachable,
    window_of,
)
from datamask.dashboard.tradeoff.spots import Spot

SYMBOLS = ("circle", "square", "diamond", "triangle-up", "pentagon", "hexagon")
DASHES = ("solid", "dash", "dot", "dashdot", "longdash", "longdashdot")
"""Shape and dash of the first, second ... curve of one objective: its colour alone says which objective it is."""

APART = 0.11
"""Least distance between two labelled points, in shares."""

SAME_ARROW, BESIDE = 0.05, 0.25
"""Arrows nearer to each other are one; those nearer to each other than the second share their words."""

REACH = 0.2
"""Half the length of the tangent, in shares."""

QUALITY, DIVERSITY = "quality (0 % random, 100 % best found)", "diversity (0 % random, 100 % best found)"

SHOWN = {"selected": {"marker": {"opacity": 1}}, "unselected": {"marker": {"opacity": 1}}}
"""Of marks that can be pressed: what is chosen gets a ring; nothing turns pale."""


@dataclass(frozen=True)
class Here:
    """A selection that is no stored run: its name and its values, as shares."""

    name: str
    quality: float
    diversity: float


def frontier(
    lines: Sequence[Line],
    named: Sequence[Spot] = (),
    *,
    names: Mapping[str, str] | None = None,
    focus: Line | None = None,
    chosen: Spot | None = None,
    here: Here | None = None,
    solved: Sequence[Here] = (),
    height: int = 560,
) -> go.Figure:
    """Draw curves and points; every marker's ``customdata`` is the run's id.

    Args:
        lines: curves, each of its own runs.
        named: points on no curve.
        names: of the curves by key; None: as `tables.line_names` calls them.
        focus: the curve whose proved edge is shaded; None: none.
        chosen: the point that gets the ring and, where its lambda is a price, the tangent.
        here: the current selection, which gets a dot of its own; None: it is a stored run, or of another problem.
        solved: by rising lambda, what the Map's slider has solved.
        height: in pixels.
    """
    names = tables.line_names(lines) if names is None else names
    extra = [(each.quality, each.diversity) for each in (*solved, *([] if here is None else [here]))]
    spots = [*(spot for line in lines for spot in line.spots), *named]
    window = window_of([*((spot.quality, spot.diversity) for spot in spots), *extra])
    tone, looks = palette.THEMED, styles(lines)
    figure = _empty(window, tone, height)
    if focus is not None and len(shade := unreachable(focus.planes, window)):
        x, y = shade.T
        figures.area(figure, [*x, x[0]], [*y, y[0]], tone.random, name="provably unreachable", showlegend=True)
    if solved:
        figure.add_trace(
            go.Scatter(
                x=[each.quality for each in solved],
                y=[each.diversity for each in solved],
                mode="lines+markers",
                name="solved on the Map",
                showlegend=True,
                line={"color": tone.random, "width": 1},
                marker={"size": 5, "color": tone.random},
                text=[_said(each) for each in solved],
                **figures.HOVER,
            )
        )
    for line in lines:
        _curve(figure, line, names[line.key], looks[line.key], tone)
    colors = {line.scale: looks[line.key][0] for line in lines}
    inside = [spot for spot in named if window.holds(spot.quality, spot.diversity)]
    _marks(
        figure,
        inside,
        {
            "symbol": "star",
            "size": 12,
            "color": [colors.get(spot.scale, tone.text) for spot in inside],
            "line": {"width": 1, "color": tone.text},
        },
        [f"<b>{figures.plain(spot.label)}</b><br>{_hover(spot)}" for spot in inside],
    )
    figure.add_trace(
        go.Scatter(
            x=[0.0],
            y=[0.0],
            mode="markers",
            marker={"symbol": "x-thin", "size": 11, "line": {"width": 2, "color": tone.random}},
            hovertemplate="random (0 % by definition)<extra></extra>",
        )
    )
    _arrows(figure, _beyond(lines, named, window), window, colors, tone)
    _labels(figure, lines, inside, tone)
    if chosen is not None and window.holds(chosen.quality, chosen.diversity):
        _price(figure, chosen, tone)
    if here is not None:
        look = {"symbol": "circle-open-dot", "size": 15, "color": tone.best, "line": {"width": 2}}
        figure.add_trace(
            go.Scatter(
                x=[here.quality],
                y=[here.diversity],
                mode="markers",
                name="the current selection",
                showlegend=True,
                marker=look,
                text=[_said(here, "current: ")],
                **figures.HOVER,
                **SHOWN,
            )
        )
    return figure


def _said(here: Here, before: str = "") -> str:
    return figures.hover(
        ("", f"{before}{here.name}"),
        ("quality", words.percent(here.quality, 1)),
        ("diversity", words.percent(here.diversity, 1)),
    )


def styles(lines: Sequence[Line]) -> dict[str, tuple[str, str, str]]:
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


def _empty(window: Window, tone: Shades, height: int) -> go.Figure:
    ticks = [round(0.2 * k, 1) for k in range(-3, 8)]
    plain: dict[str, Any] = {
        "tickvals": ticks,
        "ticktext": [words.percent(tick) for tick in ticks],
        "zeroline": True,
        "zerolinewidth": 1,
        "zerolinecolor": tone.muted,
        "constrain": "domain",
        "fixedrange": False,
    }
    across = figures.axis(QUALITY, range=[window.x0, window.x1], **plain)
    up = figures.axis(DIVERSITY, range=[window.y0, window.y1], **plain)
    up.update(scaleanchor="x", scaleratio=1, constraintoward="top")
    figure = figures.figure(across, up, height=height)
    modebar = {"bgcolor": "rgba(0,0,0,0)", "color": tone.random, "activecolor": tone.accent}
    return figure.update_layout(dragmode="pan", clickmode="event+select", modebar=modebar)


def _curve(figure: go.Figure, line: Line, name: str, look: tuple[str, str, str], tone: Shades) -> None:
    color, symbol, dash = look
    if line.joined:
        _, quality, diversity = zip(*line.means())
        stroke = {"color": color, "width": 2, "dash": dash}
        figure.add_trace(go.Scatter(x=quality, y=diversity, mode="lines", line=stroke, hoverinfo="skip"))
    mark = {"color": color, "symbol": symbol, "size": 9, "line": {"width": 1, "color": tone.ground}}
    title = figures.plain(name)
    _marks(figure, line.spots, mark, [f"<b>{title}</b><br>{_hover(spot)}" for spot in line.spots], title)


def _marks(figure: go.Figure, spots: Sequence[Spot], mark: Mapping, texts: Sequence[str], name: str = "") -> None:
    """Marks that can be pressed; those with a name have an entry in the legend."""
    if spots:
        figure.add_trace(
            go.Scatter(
                x=[spot.quality for spot in spots],
                y=[spot.diversity for spot in spots],
                mode="markers",
                customdata=[spot.run_id for spot in spots],
                name=name,
                showlegend=bool(name),
                marker=mark,
                text=texts,
                **figures.HOVER,
                **SHOWN,
            )
        )


def _hover(spot: Spot) -> str:
    text = f"λ {spot.lamb:g}<br>" if catalogue.estimator(spot.settings.estimator).guided else ""
    text += f"quality {words.percent(spot.quality, 1)}"
    if spot.raw_quality is not None:
        text += f" (mean {words.value(spot.raw_quality)})"
    text += f"<br>diversity {words.percent(spot.diversity, 1)}"
    if spot.raw_diversity is not None:
        text += f" (raw {words.value(spot.raw_diversity)})"
    if spot.gap is not None:
        text += f"<br>gap {words.percent(spot.gap, 2)}"
    return text


# -- points beyond the window ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Far:
    """What one arrow stands for: the runs, what they are called, and the value that is farthest off."""

    arrow: Arrow
    spots: Sequence[Spot]
    label: str
    value: str


def _beyond(lines: Sequence[Line], named: Sequence[Spot], window: Window) -> list[Far]:
    """Arrows where curves leave the window, then those of named points beyond it."""
    found: list[Far] = []
    for line in lines:
        means, left = line.means(), []
        road = [(quality, diversity) for _, quality, diversity in means] if line.joined else []
        for arrow, beyond in exits(road, window):
            there = sorted({means[place][0] for place in beyond})
            spots = [spot for spot in line.spots if spot.lamb in there]
            left += spots
            label = f"λ {there[0]:g}" + (f" to {there[-1]:g}" if len(there) > 1 else "")
            found.append(Far(arrow, spots, label, _farthest(spots, arrow, window)))
        # a seed may lie beyond though the mean of its lambda does not
        named = [*named, *(spot for spot in line.spots if spot not in left)]
    for spot in named:
        if (edge := edge_arrow(spot.quality, spot.diversity, window)) is not None:
            label = spot.label if not catalogue.estimator(spot.settings.estimator).learns else f"λ {spot.lamb:g}"
            found.append(Far(edge, [spot], label, _farthest([spot], edge, window)))
    return found


def _farthest(spots: Sequence[Spot], arrow: Arrow, window: Window) -> str:
    """The value on the axis that ends at the arrow; short, since there is little room."""
    upright = arrow.y <= window.y0 + 1e-9 or arrow.y >= window.y1 - 1e-9
    farthest = max((spot.diversity if upright else spot.quality for spot in spots), key=abs)
    return ("to " if len({spot.lamb for spot in spots}) > 1 else "") + words.percent(farthest)


def _arrows(figure: go.Figure, far: Sequence[Far], window: Window, colors: Mapping[str, str], tone: Shades) -> None:
    """At the edge, on with the curves; the runs can be pressed there. Arrows side by side have their words together."""
    groups: list[list[Far]] = []
    for end in far:
        near = next((group for group in groups if _apart(group[0].arrow, end.arrow) < BESIDE), None)
        groups.append([end]) if near is None else near.append(end)
        figure.add_trace(
            go.Scatter(
                x=[end.arrow.x] * len(end.spots),
                y=[end.arrow.y] * len(end.spots),
                mode="markers",
                customdata=[spot.run_id for spot in end.spots],
                marker={"size": 14, "opacity": 0.01, "color": tone.text},
                text=[f"<b>{figures.plain(end.label)}</b>, outside the picture<br>{_hover(s)}" for s in end.spots],
                **figures.HOVER,
            )
        )
    raised = 0
    for group in groups:
        said: dict[tuple[str, str], list[str]] = {}
        for end in group:
            said.setdefault((colors.get(end.spots[0].scale, tone.text), end.value), []).append(figures.plain(end.label))
        text = "<br>".join(
            f'<span style="color:{color}">●</span> {", ".join(labels)}: {value}'
            for (color, value), labels in said.items()
        )
        drawn: list[Arrow] = []
        for end in group:
            if all(_apart(end.arrow, other) >= SAME_ARROW for other in drawn):
                # words may be wider than what is between two groups, so those of the second stand higher
                tail = 20 if drawn else 20 + 16 * raised
                _arrow(figure, end, "" if drawn else text, tail, window, colors, tone)
                drawn.append(end.arrow)
        raised += len(said)


def _arrow(
    figure: go.Figure, end: Far, text: str, tail: int, window: Window, colors: Mapping[str, str], tone: Shades
) -> None:
    """An arrow of so many pixels, with words at its tail that lie inside the window."""
    arrow, side = end.arrow, "right" if end.arrow.x > (window.x0 + window.x1) / 2 else "left"
    figure.add_annotation(
        x=arrow.x,
        y=arrow.y,
        ax=-tail * arrow.right,
        ay=tail * arrow.up,
        text=text,
        showarrow=True,
        arrowhead=2,
        arrowwidth=2,
        arrowcolor=colors.get(end.spots[0].scale, tone.text),
        xanchor=side,
        yanchor="bottom" if arrow.up < 0 else "top",
        align=side,
        font=figures.HALO,
    )


def _apart(first: Arrow, second: Arrow) -> float:
    return math.dist((first.x, first.y), (second.x, second.y))


# -- words -------------------------------------------------------------------------------------------------------------


def _labels(figure: go.Figure, lines: Sequence[Line], inside: Sequence[Spot], tone: Shades) -> None:
    """Words at the points: random, then named ones, then λ 0.5 and 0 of each curve, then all that have room."""
    # a random draw lies beside the cross that says so
    said = [(0.0, 0.0, "random", "bottom right")]
    for spot in inside:
        if spot.settings.estimator != "random":
            # towards the middle, where there is room
            side = "middle left" if spot.quality > 0.5 else "middle right"
            said.append((spot.quality, spot.diversity, spot.label, side))
    for line in lines:
        means = sorted(line.means(), key=lambda point: (point[0] != 0.5, point[0] != 0.0))
        said += [(quality, diversity, f"λ {lamb:g}", "top right") for lamb, quality, diversity in means]
    said = [said[place] for place in spaced([(x, y) for x, y, _, _ in said], APART)]
    x, y, texts, sides = zip(*said)
    figure.add_trace(
        go.Scatter(
            x=x,
            y=y,
            mode="text",
            # an em space off the mark, which may have a ring
            text=[f"\u2003{figures.plain(text)}\u2003" for text in texts],
            textposition=sides,
            textfont=figures.HALO,
            hoverinfo="skip",
        )
    )


def _price(figure: go.Figure, spot: Spot, tone: Shades) -> None:
    if spot.priced:
        (x1, y1), (x2, y2) = tangent(spot.quality, spot.diversity, spot.lamb, REACH)
        figure.add_trace(
            go.Scatter(
                x=[x1, x2],
                y=[y1, y2],
                mode="lines",
                hoverinfo="skip",
                name="tangent at the point",
                showlegend=True,
                line={"color": tone.text, "width": 1.5, "dash": "dot"},
            )
        )
    figure.add_trace(
        go.Scatter(
            x=[spot.quality],
            y=[spot.diversity],
            mode="markers",
            hoverinfo="skip",
            marker={"symbol": "circle-open", "size": 19, "color": tone.text, "line": {"width": 2.5}},
        )
    )
