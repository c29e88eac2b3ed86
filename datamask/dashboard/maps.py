"""The map: one plotly figure whose panels show the same samples at the same places, each coloured by something else.

Up to `places.MAX_POINTS` rows every sample is a point. Above that, hexagons of *all* rows are what is seen, and a clear
sample of the rows on top answers the pointer. The figure never depends on what was selected in it: a chart that changes
is mounted anew, and would lose the lasso that changed it.
"""

from __future__ import annotations

from collections.abc import Sequence

from plotly import graph_objects as go

from datamask.dashboard import palette
from datamask.dashboard.layers import Blank, Category, Change, Layer, Number, Selection
from datamask.dashboard.panels import Panel
from datamask.dashboard.places import Places
from datamask.dashboard.regions import Region

GAP = 0.018
"""Share of the figure's width between two panels."""


def draw_map(places: Places, layers: Sequence[Layer], hover: Sequence[str], *, outlines: Sequence[Region] = (),
             dark: bool = False, height: int = 490) -> go.Figure:
    """Draw one panel per layer, side by side, with matched axes and equal aspect.

    Args:
        layers: one to four, each of the places' N rows.
        hover: labels of the drawn rows (`places.hover_texts`).
        outlines: regions drawn on an earlier map of the same places, shown dotted in every panel.
        dark: whether the page is dark.
        height: in pixels.

    Raises:
        ValueError: no layer, or a layer or the hover texts have another number of rows than the places.
    """
    n = len(places.points)
    if not layers:
        raise ValueError("layers must hold at least one layer to draw, got none")
    for layer in layers:
        if not isinstance(layer, Blank) and rows_of(layer) != n:
            raise ValueError(f"layer {layer.title!r} must have a value for each of {n:,} rows, got {rows_of(layer):,}")
    if len(hover) != len(places.drawn):
        raise ValueError(f"hover must have {len(places.drawn):,} texts, one per drawn row, got {len(hover):,}")
    tone = palette.shades(dark)
    figure = go.Figure()
    x0, x1, y0, y1 = places.view
    width = (1 - GAP * (len(layers) - 1)) / len(layers)
    plain = {"showgrid": False, "zeroline": False, "showticklabels": False, "ticks": "", "showline": True,
             "mirror": True, "linecolor": tone.grid, "linewidth": 1, "constrain": "range"}
    lines = 1
    for i, layer in enumerate(layers):
        left = i * (width + GAP)
        key = "" if i == 0 else str(i + 1)
        figure.update_layout({
            f"xaxis{key}": {**plain, "domain": [left, left + width], "anchor": f"y{key}", "range": [x0, x1],
                            **({"matches": "x"} if i else {})},
            f"yaxis{key}": {**plain, "anchor": f"x{key}", "range": [y0, y1],
                            **({"matches": "y"} if i else {"scaleanchor": "x", "scaleratio": 1})},
        })
        panel = Panel(figure, places, hover, dark, f"x{key}", f"y{key}", left, width)
        panel.draw(layer)
        lines = max(lines, panel.lines)
    figure.update_layout(
        template=palette.template(dark), height=height, showlegend=False,
        margin={"l": 2, "r": 2, "t": 52, "b": 20 + 17 * lines},
        dragmode="lasso", hovermode="closest", hoverdistance=12,
        modebar={"bgcolor": "rgba(0,0,0,0)", "color": tone.random, "activecolor": tone.accent},
        newselection={"line": {"color": tone.text, "width": 1.5, "dash": "solid"}},
        # the opacity of an active selection is its outline's too: a clear fill keeps the outline visible
        activeselection={"fillcolor": "rgba(127, 127, 127, 0.12)", "opacity": 1.0},
        hoverlabel={"font": {"family": palette.template(dark).layout.font.family, "size": 12}})
    for region in outlines:
        path = "M" + "L".join(f"{x:.5g},{y:.5g}" for x, y in region.corners) + "Z"
        for i in range(len(layers)):
            key = "" if i == 0 else str(i + 1)
            # a halo in the page's colour, so that the dots show on dark and on pale cells alike
            for line in ({"color": tone.ground, "width": 4}, {"color": tone.text, "width": 1.5, "dash": "dot"}):
                figure.add_shape(type="path", path=path, xref=f"x{key}", yref=f"y{key}", layer="above", line=line)
    return figure


def rows_of(layer: Number | Selection | Category | Change) -> int:
    """How many rows a layer has values for."""
    if isinstance(layer, Number):
        return len(layer.values)
    return len(layer.selected if isinstance(layer, Selection) else layer.codes)
