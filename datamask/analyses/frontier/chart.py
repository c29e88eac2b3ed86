"""The frontier: curves over lambda in the plane of quality and diversity, named points, the proved edge, the price."""

from __future__ import annotations

import html
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from plotly import graph_objects as go

from datamask import catalogue
from datamask.analyses.frontier import tables
from datamask.analyses.frontier.tables import Line
from datamask.dashboard.drawing import figures, palette, words
from datamask.dashboard.drawing.legend import curve_key, ink
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
"""Least distance between two labelled points of a curve, in shares."""

SAME_ARROW = 0.05
"""A far-off point this near to an arrow of its objective has its words there, and no arrow of its own."""

BESIDE = 0.25
"""Arrows this near to each other would have their words over each other."""

REACH = 0.2
"""Half the length of the tangent, in shares."""

QUALITY, DIVERSITY = "quality (0 % random, 100 % best found)", "diversity (0 % random, 100 % best found)"


@dataclass(frozen=True)
class Here:
    """The current selection, where it is no stored run: its name and its values, as shares."""

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
    dark: bool = False,
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
        dark: whether the page is dark. height: in pixels.
    """
    names = tables.line_names(lines) if names is None else names
    window = window_of(
        [(spot.quality, spot.diversity) for line in lines for spot in line.spots]
        + [(spot.quality, spot.diversity) for spot in named]
        + ([(here.quality, here.diversity)] if here is not None else [])
    )
    tone = palette.shades(dark)
    figure = go.Figure()
    _axes(figure, window, tone, dark, height)
    if focus is not None:
        _proved(figure, focus, window, dark)
    looks = styles(lines, dark)
    colors = {line.scale: looks[line.key][0] for line in lines}
    for line in lines:
        _curve(figure, line, names[line.key], looks[line.key], tone)
    figure.add_trace(
        go.Scatter(
            x=[0.0],
            y=[0.0],
            mode="markers",
            name="a random subset",
            marker={"symbol": "x-thin", "size": 11, "line": {"width": 2, "color": tone.random}},
            hovertemplate="random (0 % by definition)<extra></extra>",
        )
    )
    inside = [spot for spot in named if window.holds(spot.quality, spot.diversity)]
    _named(figure, inside, colors, tone)
    far = _beyond(lines, named, window)
    for end in far:
        _arrow(figure, end, colors.get(end.spots[0].scale, tone.text))
    said = [*_points(inside, tone, dark), *_edges(far, window, colors, tone, dark), *_lambdas(lines, looks, dark)]
    for text, x, y, color, align, right, down in said:
        figures.write(figure, text, x, y, color, align=align, right=right, down=down, ground=tone.ground)
    if chosen is not None and window.holds(chosen.quality, chosen.diversity):
        _price(figure, chosen, tone)
    if here is not None:
        figure.add_trace(
            go.Scatter(
                x=[here.quality],
                y=[here.diversity],
                mode="markers",
                name="the current selection",
                marker={"symbol": "circle-open-dot", "size": 15, "color": tone.best, "line": {"width": 2}},
                text=[
                    f"<b>current: {html.escape(here.name)}</b><br>quality {words.percent(here.quality, 1)}"
                    f"<br>diversity {words.percent(here.diversity, 1)}"
                ],
                **figures.HOVER,
                selected={"marker": {"opacity": 1}},
                unselected={"marker": {"opacity": 1}},
            )
        )
    return figure


def legend(
    lines: Sequence[Line],
    names: Mapping[str, str],
    *,
    focus: Line | None = None,
    chosen: Spot | None = None,
    here: Here | None = None,
    dark: bool = False,
) -> str:
    """The key to the picture as HTML that wraps with its page; of the same arguments as `frontier`."""
    tone = palette.shades(dark)
    looks = styles(lines, dark)
    entries = [(names[line.key], *looks[line.key][:2], looks[line.key][2] if line.joined else "") for line in lines]
    more = [("provably unreachable", tone.muted, "area", "")] if focus is not None and focus.planes else []
    more += [("tangent at the point", tone.text, "", "dot")] if chosen is not None and chosen.priced else []
    more += [("current selection", tone.best, "circle-open", "")] if here is not None else []
    return curve_key([*entries, *more])


def styles(lines: Sequence[Line], dark: bool = False) -> dict[str, tuple[str, str, str]]:
    """Colour, symbol and dash of each curve: the colour follows the objective, the rest tells its curves apart."""
    order = [entry.name for entry in catalogue.OBJECTIVES]
    tone = palette.shades(dark)
    # the darker ones would sink into a dark ground
    tones = {palette.LIGHT.accent: tone.accent, palette.LIGHT.diversity: tone.diversity, palette.LIGHT.best: tone.best}
    seen: dict[str, int] = {}
    looks = {}
    for line in lines:
        objective = line.settings.objective
        place = order.index(objective) if objective in order else len(order)
        nth = seen.setdefault(objective, 0)
        seen[objective] += 1
        color = palette.OKABE_ITO[place % 7]
        looks[line.key] = (tones.get(color, color), SYMBOLS[nth % len(SYMBOLS)], DASHES[nth % len(DASHES)])
    return looks


def _axes(figure: go.Figure, window: Window, tone: palette.Shades, dark: bool, height: int) -> None:
    ticks = [round(0.2 * k, 1) for k in range(-3, 8)]
    plain = {
        "tickvals": ticks,
        "ticktext": [words.percent(tick) for tick in ticks],
        "zeroline": True,
        "zerolinewidth": 1,
        "zerolinecolor": tone.muted,
        "constrain": "domain",
        "fixedrange": False,
    }
    figure.update_layout(
        template=palette.template(dark),
        height=height,
        margin={"l": 8, "r": 8, "t": 12, "b": 8},
        hovermode="closest",
        dragmode="pan",
        hoverdistance=24,
        clickmode="event+select",
        xaxis={**plain, "range": [window.x0, window.x1], "title": {"text": QUALITY, "standoff": 6}},
        yaxis={
            **plain,
            "range": [window.y0, window.y1],
            "title": {"text": DIVERSITY, "standoff": 4},
            "scaleanchor": "x",
            "scaleratio": 1,
            "constraintoward": "top",
        },
        showlegend=False,
        modebar={"bgcolor": "rgba(0,0,0,0)", "color": tone.random, "activecolor": tone.accent},
    )


def _proved(figure: go.Figure, line: Line, window: Window, dark: bool) -> None:
    polygon = unreachable(line.planes, window)
    if not len(polygon):
        return
    x, y = polygon.T
    figure.add_trace(
        go.Scatter(
            x=[*x, x[0]],
            y=[*y, y[0]],
            mode="lines",
            fill="toself",
            hoverinfo="skip",
            line={"width": 0},
            fillcolor="rgba(154,166,178,0.22)" if dark else "rgba(122,133,144,0.20)",
            name="provably unreachable",
        )
    )


def _curve(figure: go.Figure, line: Line, name: str, look: tuple[str, str, str], tone: palette.Shades) -> None:
    color, symbol, dash = look
    label = html.escape(name)
    if line.joined:
        means = line.means()
        figure.add_trace(
            go.Scatter(
                x=[quality for _, quality, _ in means],
                y=[diversity for _, _, diversity in means],
                mode="lines",
                line={"color": color, "width": 2, "dash": dash},
                hoverinfo="skip",
            )
        )
    figure.add_trace(
        go.Scatter(
            x=[spot.quality for spot in line.spots],
            y=[spot.diversity for spot in line.spots],
            mode="markers",
            customdata=[spot.run_id for spot in line.spots],
            name=label,
            marker={"color": color, "symbol": symbol, "size": 9, "line": {"width": 1, "color": tone.ground}},
            text=[_hover(spot) for spot in line.spots],
            hovertemplate=f"<b>{label}</b><br>%{{text}}<extra></extra>",
            # what is chosen gets a ring; nothing turns pale
            selected={"marker": {"opacity": 1}},
            unselected={"marker": {"opacity": 1}},
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


def _named(figure: go.Figure, inside: Sequence[Spot], colors: Mapping[str, str], tone: palette.Shades) -> None:
    if not inside:
        return
    figure.add_trace(
        go.Scatter(
            x=[spot.quality for spot in inside],
            y=[spot.diversity for spot in inside],
            mode="markers",
            customdata=[spot.run_id for spot in inside],
            marker={
                "symbol": "star",
                "size": 12,
                "color": [colors.get(spot.scale, tone.text) for spot in inside],
                "line": {"width": 1, "color": tone.text},
            },
            text=[f"<b>{html.escape(spot.label)}</b><br>{_hover(spot)}" for spot in inside],
            **figures.HOVER,
            selected={"marker": {"opacity": 1}},
            unselected={"marker": {"opacity": 1}},
        )
    )


@dataclass(frozen=True)
class _Far:
    """What one arrow stands for: the runs, the words (none: beside another's), and whether another is drawn instead."""

    arrow: Arrow
    spots: list[Spot]
    label: str
    text: str
    shared: bool = False


def _beyond(lines: Sequence[Line], named: Sequence[Spot], window: Window) -> list[_Far]:
    """Arrows where curves leave the window, then those of named points beyond it."""
    labelled: list[_Far] = []
    for line in lines:
        means, left = line.means(), []
        road = [(quality, diversity) for _, quality, diversity in means] if line.joined else []
        for arrow, beyond in exits(road, window):
            there = {means[place][0] for place in beyond}
            spots = [spot for spot in line.spots if spot.lamb in there]
            left += spots
            lambdas = sorted(there)
            label = f"λ {lambdas[0]:g}" + (f" to {lambdas[-1]:g}" if len(lambdas) > 1 else "")
            labelled.append(_Far(arrow, spots, label, _far_words(label, spots, arrow, window)))
        # a seed may lie beyond though the mean of its lambda does not
        named = [*named, *(spot for spot in line.spots if spot not in left)]
    for spot in named:
        edge = edge_arrow(spot.quality, spot.diversity, window)
        if edge is None:
            continue
        label = spot.label if not catalogue.estimator(spot.settings.estimator).learns else f"λ {spot.lamb:g}"
        text = _far_words(label, [spot], edge, window)
        near = [
            place
            for place, other in enumerate(labelled)
            if other.spots[0].scale == spot.scale
            and math.dist((other.arrow.x, other.arrow.y), (edge.x, edge.y)) < SAME_ARROW
        ]
        for place in near:
            before, _, value = labelled[place].text.partition(": ")
            if text == f"{label}: {value}":
                # one arrow, one value: both names stand before it
                labelled[place], text = replace(labelled[place], text=f"{before}, {label}:\n{value}"), ""
                break
        labelled.append(_Far(edge, [spot], label, text, bool(near)))
    return labelled


def _far_words(label: str, spots: Sequence[Spot], arrow: Arrow, window: Window) -> str:
    """The value of the farthest of them on the axis that ends at the arrow; short, since there is little room."""
    upright = arrow.y <= window.y0 + 1e-9 or arrow.y >= window.y1 - 1e-9
    farthest = max((spot.diversity if upright else spot.quality for spot in spots), key=abs)
    many = len({spot.lamb for spot in spots}) > 1
    return f"{label}: {'to ' if many else ''}{words.percent(farthest)}"


def _arrow(figure: go.Figure, far: _Far, color: str) -> None:
    """At the edge, on with the curve; its runs can be clicked there."""
    arrow = far.arrow
    if not far.shared:
        figure.add_annotation(
            x=arrow.x,
            y=arrow.y,
            ax=-20 * arrow.right,
            ay=20 * arrow.up,
            axref="pixel",
            ayref="pixel",
            text="",
            showarrow=True,
            arrowhead=2,
            arrowwidth=2,
            arrowcolor=color,
        )
    figure.add_trace(
        go.Scatter(
            x=[arrow.x] * len(far.spots),
            y=[arrow.y] * len(far.spots),
            mode="markers",
            customdata=[spot.run_id for spot in far.spots],
            marker={"size": 14, "opacity": 0.01, "color": color},
            text=[_hover(spot) for spot in far.spots],
            hovertemplate=f"<b>{html.escape(far.label)}</b>, outside the picture<br>%{{text}}<extra></extra>",
        )
    )


# -- words -------------------------------------------------------------------------------------------------------------

Said = tuple[str, float, float, str, str, float, float]
"""Words, the point they belong to, their color, how they are aligned there, and pixels to the right and down."""


def _points(inside: Sequence[Spot], tone: palette.Shades, dark: bool) -> Iterator[Said]:
    """Of a random subset and of the named points in the window; of those near each other the first alone."""
    yield "random", 0.0, 0.0, ink(tone.random, dark), "left", 9, 12
    # a random draw lies beside the cross that says so
    drawn = [spot for spot in inside if spot.settings.estimator != "random"]
    for place in spaced([(spot.quality, spot.diversity) for spot in drawn], APART / 2):
        spot = drawn[place]
        # towards the middle, where there is room
        align, right = ("right", -10) if spot.quality > 0.5 else ("left", 10)
        yield spot.label, spot.quality, spot.diversity, tone.text, align, right, 0


def _edges(
    far: Sequence[_Far], window: Window, colors: Mapping[str, str], tone: palette.Shades, dark: bool
) -> Iterator[Said]:
    said: list[Arrow] = []
    for end in filter(lambda end: end.text, far):
        color = ink(colors.get(end.spots[0].scale, tone.text), dark)
        align = "right" if end.arrow.x > (window.x0 + window.x1) / 2 else "left"
        # the words of arrows side by side stand below each other
        beside = sum(math.dist((other.x, other.y), (end.arrow.x, end.arrow.y)) < BESIDE for other in said)
        down = (30 + 16 * beside) * (1 if end.arrow.up > 0 else -1)
        said.append(end.arrow)
        yield end.text, end.arrow.x, end.arrow.y, color, align, 0, down


def _lambdas(lines: Sequence[Line], looks: Mapping[str, tuple[str, str, str]], dark: bool) -> Iterator[Said]:
    """Of some points of each curve: its middle, its beginning, then what is far enough from all labelled before."""
    before: list[tuple[float, float]] = []
    for line in lines:
        means, color = line.means(), looks[line.key][0]
        points = [(quality, diversity) for _, quality, diversity in means]
        ends = [place for place, (lamb, _, _) in enumerate(means) if lamb == 0.5] + [0]
        chosen = spaced([*before, *points], APART, first=[*range(len(before)), *(len(before) + end for end in ends)])
        for place in chosen:
            if place < len(before):
                continue
            lamb, quality, diversity = means[place - len(before)]
            # outside of a curve that falls to the right
            yield f"λ {lamb:g}", quality, diversity, ink(color, dark), "left", 4 + 6 * lamb, -12 + 8 * lamb
        before = [*before, *(points[place - len(before)] for place in chosen if place >= len(before))]


def _price(figure: go.Figure, spot: Spot, tone: palette.Shades) -> None:
    if spot.priced:
        (x1, y1), (x2, y2) = tangent(spot.quality, spot.diversity, spot.lamb, REACH)
        figure.add_trace(
            go.Scatter(
                x=[x1, x2],
                y=[y1, y2],
                mode="lines",
                hoverinfo="skip",
                name="tangent at the point",
                line={"color": tone.text, "width": 1.5, "dash": "dot"},
            )
        )
    figure.add_trace(
        go.Scatter(
            x=[spot.quality],
            y=[spot.diversity],
            mode="markers",
            hoverinfo="skip",
            showlegend=False,
            marker={"symbol": "circle-open", "size": 19, "color": tone.text, "line": {"width": 2.5}},
        )
    )
