"""The frontier: curves over lambda in the plane of quality and diversity, named points, the proved edge, the price."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from plotly import graph_objects as go

from datamask import catalogue
from datamask.analyses.frontier import tables
from datamask.analyses.frontier.tables import Line
from datamask.dashboard.drawing import figures, palette, words
from datamask.dashboard.tradeoff.geometry import Window, edge, spaced, tangent, window_of
from datamask.dashboard.tradeoff.spots import Spot

SYMBOLS = ("circle", "square", "diamond", "triangle-up", "pentagon", "hexagon")
DASHES = ("solid", "dash", "dot", "dashdot", "longdash", "longdashdot")
"""Shape and dash of the first, second ... curve of one objective: its colour alone says which objective it is."""

APART = 0.11
"""Least distance between two labelled points, in shares."""

REACH = 0.2
"""Half the length of the tangent, in shares."""

QUALITY, DIVERSITY = "quality (0 % random, 100 % best found)", "diversity (0 % random, 100 % best found)"

SHOWN = {"selected": {"marker": {"opacity": 1}}, "unselected": {"marker": {"opacity": 1}}}
"""Of marks that can be pressed: what is chosen gets a ring; nothing turns pale."""


@dataclass(frozen=True)
class Here:
    """A selection that is on no curve: its name and its values, as shares."""

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
        here: the current selection, which gets a dot of its own; None: it is on a curve, or of another problem.
        solved: by rising lambda, what the Map's slider has solved.
        height: in pixels.
    """
    names = tables.line_names(lines) if names is None else names
    dots = [*solved, *([] if here is None else [here])]
    points = [*(spot for line in lines for spot in line.spots), *named]
    window = window_of([(each.quality, each.diversity) for group in (points, dots) for each in group])
    tone, looks = palette.THEMED, styles(lines)
    figure = _empty(window, height)
    if focus is not None:
        x, height_at = edge(focus.planes, window)
        if height_at.min() < window.y1:
            outline = [*x, window.x1, window.x0], [*height_at, window.y1, window.y1]
            figures.area(figure, *outline, tone.random, "provably unreachable")
    if solved:
        _dots(figure, solved, "solved on the Map", mode="lines+markers", marker={"size": 5}, line={"width": 1})
    for line in lines:
        color, symbol, dash = looks[line.key]
        if line.joined:
            _, quality, diversity = zip(*line.means())
            figures.add(figure, quality, diversity, mode="lines", line={"color": color, "width": 2, "dash": dash})
        mark = {"color": color, "size": 9, "line": {"width": 1, "color": tone.ground}}
        _marks(figure, line.spots, window, names[line.key], symbol, mark)
    colors = {line.scale: looks[line.key][0] for line in lines}
    for spot in named:
        mark = {"color": colors.get(spot.scale, tone.text), "size": 12, "line": {"width": 1, "color": tone.text}}
        _marks(figure, [spot], window, spot.label, "star", mark, legend=False)
    cross = {"symbol": "x-thin", "size": 11, "line": {"width": 2, "color": tone.random}}
    figures.add(figure, [0.0], [0.0], read=["random (0 % by definition)"], mode="markers", marker=cross)
    _labels(figure, lines, named, window)
    if chosen is not None and window.holds(chosen.quality, chosen.diversity):
        _price(figure, chosen)
    if here is not None:
        look = {"symbol": "circle-open-dot", "size": 15, "color": tone.best, "line": {"width": 2}}
        _dots(figure, [here], "the current selection", mode="markers", marker=look, **SHOWN)
    return figure


def _dots(figure: go.Figure, dots: Sequence[Here], name: str, **look: Any) -> None:
    """Selections that are on no curve; a press on them opens nothing."""
    read = [figures.hover(("", dot.name), *_shares(dot)) for dot in dots]
    x, y = [dot.quality for dot in dots], [dot.diversity for dot in dots]
    figures.add(figure, x, y, name, read, **look)
    figure.data[-1].update(line={"color": palette.THEMED.random})


def _shares(dot: Here | Spot) -> list[tuple[str, str]]:
    return [("quality", words.percent(dot.quality, 1)), ("diversity", words.percent(dot.diversity, 1))]


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


def _empty(window: Window, height: int) -> go.Figure:
    ticks = [round(0.2 * k, 1) for k in range(-3, 8)]
    plain: dict[str, Any] = {
        "tickvals": ticks,
        "ticktext": [words.percent(tick) for tick in ticks],
        "zeroline": True,
        "zerolinecolor": palette.THEMED.muted,
        "constrain": "domain",
        "fixedrange": False,
    }
    across = figures.axis(QUALITY, range=[window.x0, window.x1], **plain)
    up = figures.axis(DIVERSITY, range=[window.y0, window.y1], scaleanchor="x", constraintoward="top", **plain)
    figure = figures.figure(across, up, height=height)
    return figure.update_layout(dragmode="pan", clickmode="event+select")


def _marks(
    figure: go.Figure,
    spots: Sequence[Spot],
    window: Window,
    name: str,
    symbol: str,
    mark: dict[str, Any],
    legend: bool = True,
) -> None:
    """Marks that can be pressed; those of points beyond the window stand at its edge and point outwards."""
    title = figures.plain(name)
    places = [window.nearest(spot.quality, spot.diversity) for spot in spots]
    figures.add(
        figure,
        [x for x, _ in places],
        [y for _, y in places],
        title if legend else "",
        [f"<b>{title}</b><br>{_hover(spot)}" for spot in spots],
        mode="markers",
        customdata=[spot.run_id for spot in spots],
        marker={**mark, "symbol": [_outwards(spot, window) or symbol for spot in spots]},
        cliponaxis=False,
        **SHOWN,
    )


def _outwards(spot: Spot, window: Window) -> str:
    """The mark of a point beyond the window; empty for one inside."""
    if spot.diversity < window.y0 or spot.diversity > window.y1:
        return "triangle-down" if spot.diversity < window.y0 else "triangle-up"
    return "" if window.holds(spot.quality, spot.diversity) else f"triangle-{'left' if spot.quality < 0 else 'right'}"


def _hover(spot: Spot) -> str:
    values = _shares(spot)
    if spot.raw_quality is not None:
        values.insert(1, ("mean score", words.value(spot.raw_quality)))
    if spot.raw_diversity is not None:
        values.append(("diversity, unscaled", words.value(spot.raw_diversity)))
    if catalogue.estimator(spot.settings.estimator).guided:
        values.insert(0, ("λ", f"{spot.lamb:g}"))
    return figures.hover(*values, *([] if spot.gap is None else [("gap", words.percent(spot.gap, 2))]))


# -- words -------------------------------------------------------------------------------------------------------------


def _labels(figure: go.Figure, lines: Sequence[Line], named: Sequence[Spot], window: Window) -> None:
    """Words at the points: random, then named ones, then λ 0.5 and 0 of each curve, then all that have room."""
    said = [(0.0, 0.0, "random")]
    # a random draw lies beside the cross that says so
    said += [(spot.quality, spot.diversity, spot.label) for spot in named if spot.settings.estimator != "random"]
    for line in lines:
        means = sorted(line.means(), key=lambda point: (point[0] != 0.5, point[0] != 0.0))
        said += [(x, y, f"λ {lamb:g}") for lamb, x, y in means]
    said = [each for each in said if window.holds(*each[:2])]
    said = [said[place] for place in spaced([(x, y) for x, y, _ in said], APART)] + _beyond(lines, named, window)
    figures.add(
        figure,
        [x for x, _, _ in said],
        [y for _, y, _ in said],
        mode="text",
        # an em space off the mark, which may have a ring
        text=["<br>".join(f"\u2003{line}\u2003" for line in figures.plain(text).split("\n")) for _, _, text in said],
        # towards the middle, where there is room
        textposition=["top left" if x > 0.5 and len(text) > 6 else "top right" for x, _, text in said],
        textfont=figures.HALO,
        cliponaxis=False,
    )


def _beyond(lines: Sequence[Line], named: Sequence[Spot], window: Window) -> list[tuple[float, float, str]]:
    """Points beyond the window with their values, each a line higher than the one before, since words are wide."""
    groups = [[spot for spot in line.spots if _outwards(spot, window)] for line in lines]
    groups += [[spot] for spot in named if _outwards(spot, window)]
    said: list[tuple[float, float, str]] = []
    for spots in filter(None, groups):
        upright = not window.y0 <= spots[0].diversity <= window.y1
        value = words.percent(max((spot.diversity if upright else spot.quality for spot in spots), key=abs))
        least, most = (f"{spot.lamb:g}" for spot in (spots[0], spots[-1]))
        label = spots[0].label if spots[0] in named else f"λ {least}" + (f" to {most}" if least != most else "")
        place = window.nearest(spots[0].quality, spots[0].diversity)
        said.append((*place, f"{label}: {value}" + "\n" * (len(said) + 1)))
    return said


def _price(figure: go.Figure, spot: Spot) -> None:
    text = palette.THEMED.text
    if spot.priced:
        x, y = zip(*tangent(spot.quality, spot.diversity, spot.lamb, REACH))
        dotted = {"color": text, "width": 1.5, "dash": "dot"}
        figures.add(figure, x, y, "tangent at the point", mode="lines", line=dotted)
    ring = {"symbol": "circle-open", "size": 19, "color": text, "line": {"width": 2.5}}
    figures.add(figure, [spot.quality], [spot.diversity], mode="markers", marker=ring)
