"""The frontier: curves over lambda in the plane of quality and diversity, named points, the proved edge, the price."""

from __future__ import annotations

import html
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from plotly import graph_objects as go

from datamask import catalogue
from datamask.dashboard import palette, words
from datamask.dashboard.geometry import Arrow, Window, edge_arrow, spaced, tangent, unreachable, window_of
from datamask.dashboard.views import frontier as views
from datamask.dashboard.views.frontier import Line, Spot

SYMBOLS = ("circle", "square", "diamond", "triangle-up", "pentagon", "hexagon")
DASHES = ("solid", "dash", "dot", "dashdot", "longdash", "longdashdot")
"""Shape and dash of the first, second ... curve of one objective: its colour alone says which objective it is."""

APART = 0.11
"""Least distance between two labelled points of a curve, in shares."""

SAME_BLOCK, APART_BLOCKS = 0.25, 0.45
"""Arrows this near to the first of a block have their words in it; blocks this far apart do not reach each other."""

LINE = 16
"""Pixels from one line of words to the next."""

REACH = 0.2
"""Half the length of the tangent, in shares."""

QUALITY, DIVERSITY = "quality, share of the attainable gain", "diversity, share of the attainable gain"


def frontier(lines: Sequence[Line], named: Sequence[Spot] = (), *, names: Mapping[str, str] | None = None,
             focus: Line | None = None, chosen: Spot | None = None, dark: bool = False, height: int = 560) -> go.Figure:
    """Draw curves and points; every marker's ``customdata`` is the run's id.

    Args:
        lines: curves, each of its own runs.
        named: points on no curve.
        names: of the curves by key; None: as `views.line_names` calls them.
        focus: the curve whose proved edge is shaded; None: none.
        chosen: the point that gets the ring and, where its lambda is a price, the tangent.
        dark: whether the page is dark. height: in pixels.
    """
    names = views.line_names(lines) if names is None else names
    window = window_of([(spot.quality, spot.diversity) for line in lines for spot in line.spots]
                       + [(spot.quality, spot.diversity) for spot in named])
    tone = palette.shades(dark)
    figure = go.Figure()
    _axes(figure, window, tone, dark, height)
    if focus is not None:
        _proved(figure, focus, window, tone, dark)
    looks = styles(lines, dark)
    for line in lines:
        _curve(figure, line, names[line.key], looks[line.key], window, tone)
    figure.add_trace(go.Scatter(x=[0.0], y=[0.0], mode="markers", name="a random subset", showlegend=False,
                                marker={"symbol": "x-thin", "size": 11, "line": {"width": 2, "color": tone.random}},
                                hovertemplate="a random subset: 0 % of both by definition<extra></extra>"))
    _label(figure, "random", 0.0, 0.0, (0.6, -0.6), tone.random)
    colors = {line.scale: looks[line.key][0] for line in lines}
    _named(figure, named, colors, window, tone)
    _far(figure, lines, named, colors, window, tone)
    if chosen is not None and window.holds(chosen.quality, chosen.diversity):
        _price(figure, chosen, tone)
    return figure


def styles(lines: Sequence[Line], dark: bool = False) -> dict[str, tuple[str, str, str]]:
    """Colour, symbol and dash of each curve: the colour follows the objective, the rest tells its curves apart."""
    order = [entry.name for entry in catalogue.OBJECTIVES]
    tone = palette.shades(dark)
    # the darker ones would sink into a dark ground
    tones = {palette.LIGHT.accent: tone.accent, palette.LIGHT.diversity: tone.diversity, palette.LIGHT.best: tone.best}
    seen: dict[str, int] = {}
    found = {}
    for line in lines:
        objective = line.settings.objective
        place = order.index(objective) if objective in order else len(order)
        nth = seen.setdefault(objective, 0)
        seen[objective] += 1
        color = palette.OKABE_ITO[place % 7]
        found[line.key] = (tones.get(color, color), SYMBOLS[nth % len(SYMBOLS)], DASHES[nth % len(DASHES)])
    return found


def _axes(figure: go.Figure, window: Window, tone: palette.Shades, dark: bool, height: int) -> None:
    ticks = [round(0.2 * k, 1) for k in range(-3, 8)]
    plain = {"tickvals": ticks, "ticktext": [words.percent(tick) for tick in ticks], "zeroline": True,
             "zerolinewidth": 1, "zerolinecolor": tone.muted, "constrain": "domain", "fixedrange": False}
    figure.update_layout(
        template=palette.template(dark), height=height, margin={"l": 8, "r": 8, "t": 12, "b": 8},
        hovermode="closest", dragmode="pan", hoverdistance=24, clickmode="event+select",
        xaxis={**plain, "range": [window.x0, window.x1], "title": {"text": QUALITY, "standoff": 6}},
        yaxis={**plain, "range": [window.y0, window.y1], "title": {"text": DIVERSITY, "standoff": 4},
               "scaleanchor": "x", "scaleratio": 1},
        legend={"orientation": "h", "x": 0, "y": 1.01, "xanchor": "left", "yanchor": "bottom",
                "itemsizing": "constant", "itemclick": False, "itemdoubleclick": False},
        modebar={"bgcolor": "rgba(0,0,0,0)", "color": tone.random, "activecolor": tone.accent})


def _proved(figure: go.Figure, line: Line, window: Window, tone: palette.Shades, dark: bool) -> None:
    polygon = unreachable(line.planes, window)
    if not len(polygon):
        return
    x, y = polygon.T
    figure.add_trace(go.Scatter(
        x=[*x, x[0]], y=[*y, y[0]], mode="lines", fill="toself", hoverinfo="skip", line={"width": 0},
        fillcolor="rgba(154,166,178,0.22)" if dark else "rgba(122,133,144,0.20)", name="proved out of reach"))


def _curve(figure: go.Figure, line: Line, name: str, look: tuple[str, str, str], window: Window,
           tone: palette.Shades) -> None:
    color, symbol, dash = look
    means = line.means()
    said = html.escape(name)
    figure.add_trace(go.Scatter(
        x=[quality for _, quality, _ in means], y=[diversity for _, _, diversity in means], mode="lines",
        line={"color": color, "width": 2, "dash": dash}, hoverinfo="skip", showlegend=False))
    figure.add_trace(go.Scatter(
        x=[spot.quality for spot in line.spots], y=[spot.diversity for spot in line.spots], mode="markers",
        customdata=[spot.run_id for spot in line.spots], name=said,
        marker={"color": color, "symbol": symbol, "size": 9, "line": {"width": 1, "color": tone.ground}},
        text=[_hover(spot) for spot in line.spots], hovertemplate=f"<b>{said}</b><br>%{{text}}<extra></extra>",
        # what is chosen gets a ring; nothing turns pale
        selected={"marker": {"opacity": 1}}, unselected={"marker": {"opacity": 1}}))
    points = [(quality, diversity) for _, quality, diversity in means]
    ends = [place for place, (lamb, _, _) in enumerate(means) if lamb == 0.5] + [0]
    for place in spaced(points, APART, first=ends):
        lamb, quality, diversity = means[place]
        # at the lower edge stand the arrows
        if window.holds(quality, diversity - APART):
            _label(figure, f"λ {lamb:g}", quality, diversity, (lamb, 1 - lamb), color)


def _hover(spot: Spot) -> str:
    said = (f"λ {spot.lamb:g}<br>" if catalogue.estimator(spot.settings.estimator).guided else "")
    said += f"quality {words.percent(spot.quality, 1)}"
    if spot.raw_quality is not None:
        said += f" (mean {words.value(spot.raw_quality)})"
    said += f"<br>diversity {words.percent(spot.diversity, 1)}"
    if spot.raw_diversity is not None:
        said += f" (raw {words.value(spot.raw_diversity)})"
    if spot.gap is not None:
        said += f"<br>proved within {words.percent(spot.gap, 2)} of the best for its λ"
    return said


def _label(figure: go.Figure, text: str, x: float, y: float, toward: tuple[float, float], color: str) -> None:
    """Words beside a point, some pixels off in a direction."""
    length = max((toward[0] ** 2 + toward[1] ** 2) ** 0.5, 1e-9)
    right, up = toward[0] / length, toward[1] / length
    figure.add_annotation(x=x, y=y, text=text, showarrow=False, font={"size": 12, "color": color},
                          xshift=8 * right, yshift=12 * up, xanchor="left" if right > 0.4 else "center",
                          yanchor="middle")


def _named(figure: go.Figure, named: Sequence[Spot], colors: Mapping[str, str], window: Window,
           tone: palette.Shades) -> None:
    here = [spot for spot in named if window.holds(spot.quality, spot.diversity)]
    if not here:
        return
    figure.add_trace(go.Scatter(
        x=[spot.quality for spot in here], y=[spot.diversity for spot in here], mode="markers", showlegend=False,
        customdata=[spot.run_id for spot in here],
        marker={"symbol": "star", "size": 12, "color": [colors.get(spot.scale, tone.text) for spot in here],
                "line": {"width": 1, "color": tone.text}},
        text=[f"<b>{html.escape(spot.label)}</b><br>{_hover(spot)}" for spot in here],
        hovertemplate="%{text}<extra></extra>", selected={"marker": {"opacity": 1}},
        unselected={"marker": {"opacity": 1}}))
    for spot in here:
        # a random draw lies beside the cross that says so
        if spot.settings.estimator != "random":
            figure.add_annotation(x=spot.quality, y=spot.diversity, text=html.escape(spot.label), showarrow=False,
                                  font={"size": 12, "color": tone.text}, xanchor="right", xshift=-9)


def _far(figure: go.Figure, lines: Sequence[Line], named: Sequence[Spot], colors: Mapping[str, str], window: Window,
         tone: palette.Shades) -> None:
    """Arrows at the edge for what lies beyond it, with the value that put it there: one per curve and side."""
    found = _beyond(lines, named, window)
    for far in found:
        arrow, color = far.arrow, colors.get(far.spots[0].scale, tone.text)
        figure.add_annotation(x=arrow.x, y=arrow.y, ax=-20 * arrow.right, ay=20 * arrow.up, axref="pixel",
                              ayref="pixel", text="", showarrow=True, arrowhead=2, arrowwidth=2, arrowcolor=color)
        figure.add_trace(go.Scatter(
            x=far.x, y=far.y, mode="markers", showlegend=False, customdata=[spot.run_id for spot in far.spots],
            marker={"size": 14, "opacity": 0.01, "color": color}, text=[_hover(spot) for spot in far.spots],
            hovertemplate=f"<b>{html.escape(far.label)}</b>, beyond the picture<br>%{{text}}<extra></extra>"))
    # words in blocks beside the arrows, one below the other, so that no arrow runs through them
    block, level = -math.inf, 0
    for far in sorted((far for far in found if far.arrow.up < 0), key=lambda far: far.arrow.x):
        level = 0 if far.arrow.x - block > APART_BLOCKS else level + 1
        block = far.arrow.x if far.arrow.x - block > SAME_BLOCK else block
        _words(figure, far, colors, tone, x=block, xanchor="right", xshift=-9, yshift=10 + LINE * level)
    for level, far in enumerate(far for far in found if far.arrow.up >= 0):
        left = far.arrow.right < 0
        # below the curves, which are high there
        _words(figure, far, colors, tone, x=far.arrow.x, xanchor="left" if left else "right",
               xshift=6 if left else -6, yshift=-(150 if left else 24) - LINE * level)


@dataclass(frozen=True)
class _Far:
    """What one arrow stands for: the runs, where each would be at the edge, and the words."""

    arrow: Arrow
    spots: list[Spot]
    x: list[float]
    y: list[float]
    label: str
    said: str


def _beyond(lines: Sequence[Line], named: Sequence[Spot], window: Window) -> list[_Far]:
    groups: dict[tuple, list[tuple[Spot, Arrow]]] = {}
    for key, spots in [*(("", [spot]) for spot in named), *((line.key, line.spots) for line in lines)]:
        for spot in spots:
            arrow = edge_arrow(spot.quality, spot.diversity, window)
            if arrow is not None:
                groups.setdefault((key or spot.run_id, bool(key), arrow.right, arrow.up), []).append((spot, arrow))
    found = []
    for (_, on_curve, _, up), pairs in groups.items():
        spots, arrows = [spot for spot, _ in pairs], [arrow for _, arrow in pairs]
        lambdas = sorted({spot.lamb for spot in spots})
        label = f"λ {lambdas[0]:g}" + (f" to {lambdas[-1]:g}" if len(lambdas) > 1 else "")
        label = label if on_curve else spots[0].label
        farthest = max((spot.diversity if up else spot.quality for spot in spots), key=abs)
        said = (f"{label}: {'diversity' if up else 'quality'} {'to ' if len(lambdas) > 1 else ''}"
                f"{words.percent(farthest)}")
        nearest = min(arrows, key=lambda arrow: (arrow.y, arrow.x) if not up else (arrow.x, arrow.y))
        found.append(_Far(nearest, spots, [arrow.x for arrow in arrows], [arrow.y for arrow in arrows], label, said))
    return found


def _words(figure: go.Figure, far: _Far, colors: Mapping[str, str], tone: palette.Shades, **place) -> None:
    figure.add_annotation(text=html.escape(far.said), y=far.arrow.y, yanchor="middle", showarrow=False,
                          bgcolor=tone.ground, opacity=0.9,
                          font={"size": 12, "color": colors.get(far.spots[0].scale, tone.text)}, **place)


def _price(figure: go.Figure, spot: Spot, tone: palette.Shades) -> None:
    if spot.priced:
        (x1, y1), (x2, y2) = tangent(spot.quality, spot.diversity, spot.lamb, REACH)
        figure.add_trace(go.Scatter(x=[x1, x2], y=[y1, y2], mode="lines", hoverinfo="skip", name="price at the point",
                                    line={"color": tone.text, "width": 1.5, "dash": "dot"}))
    figure.add_trace(go.Scatter(
        x=[spot.quality], y=[spot.diversity], mode="markers", hoverinfo="skip", showlegend=False,
        marker={"symbol": "circle-open", "size": 19, "color": tone.text, "line": {"width": 2.5}}))
