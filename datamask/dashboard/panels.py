"""One panel of the map: the traces, the scale and the key for one layer. Plotly, no streamlit.

A panel has one trace of points in random order, so that no class always covers another. In hexagon mode this trace is
there but clear: it gives the hover texts and the lasso something to catch, and the hexagons are what is seen.
"""

from __future__ import annotations

import html
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from plotly import graph_objects as go
from plotly.colors import sample_colorscale

from datamask.dashboard import palette, words
from datamask.dashboard.layers import (
    CHANGE_NAMES,
    GAINED,
    KEPT,
    LOST,
    NEITHER,
    Blank,
    Category,
    Change,
    Layer,
    Number,
    Selection,
)
from datamask.dashboard.places import Places, cut

STEPS = 15
"""Colour steps of the hexagons. Each is one closed path to draw, and more could not be told apart."""

KEY_WIDTH = 330
"""Pixels of a panel's key before it wraps; panels are about that wide on a laptop screen."""


@dataclass
class Panel:
    """Where in the figure a layer is drawn.

    Attributes:
        figure: the figure that is added to.
        places: where the samples lie; hover: labels of the drawn ones.
        x, y: the panel's axes, ``"x2"``, ``"y2"``.
        left, width: its place across the figure, as shares.
        lines: of its scale or key below; known once it is drawn.
    """

    figure: go.Figure
    places: Places
    hover: Sequence[str]
    dark: bool
    x: str
    y: str
    left: float
    width: float
    lines: int = 1

    def draw(self, layer: Layer) -> None:
        """Add the layer's traces, its title above and its scale or key below."""
        if isinstance(layer, Number):
            self._number(layer)
        elif isinstance(layer, Category):
            self._category(layer)
        elif isinstance(layer, Selection):
            self._selection(layer)
        elif isinstance(layer, Change):
            self._change(layer)
        else:
            self._blank(layer)
        self.figure.add_annotation(
            text=f"<b>{cut(layer.title, 46)}</b>", x=self.left, y=1.0, xref="paper", yref="paper", xanchor="left",
            yanchor="bottom", showarrow=False, font={"size": 14}, yshift=3)

    # -- the four kinds -----------------------------------------------------------------------------------------

    def _number(self, layer: Number) -> None:
        scale = cividis(self.dark)
        # the label says quality already
        name = "" if layer.title.lower() == "quality" else html.escape(layer.title.lower()).replace("%{", "% {")
        bar = self._bar(*_ticks(layer.low, layer.high, layer.clipped))
        if self.places.cells is None:
            self._points({"color": layer.values[self.places.drawn], "cmin": layer.low, "cmax": layer.high,
                          "colorscale": scale, "colorbar": bar}, f"{name} %{{marker.color:.4~g}}" if name else "")
            return
        # means spread less than single values: on the values' own scale every cell would look the same
        means = self.places.cells.means(layer.values)
        shown = means[self.places.cells.cell]
        shown = shown[np.isfinite(shown)]
        low, high = np.percentile(shown, (2, 98)) if len(shown) else (layer.low, layer.high)
        if not low < high:
            low, high = layer.low, layer.high
        self._hexagons((means - low) / (high - low), scale)
        self._bar_alone(scale, *_ticks(low, high, True, "cell mean"))
        self._clear_points(means, f"{name or 'quality'} %{{customdata[1]:.4~g}} on average")

    def _category(self, layer: Category) -> None:
        colors = category_colors(layer, self.dark)
        steps = len(colors)
        if self.places.cells is None:
            self._points({"color": layer.codes[self.places.drawn], "cmin": -0.5, "cmax": steps - 0.5,
                          "colorscale": _flat(colors)})
        else:
            # a cell has the colour of its most frequent class; the pointer tells by what majority
            table = np.bincount(self.places.cells.cell * steps + layer.codes,
                                minlength=len(self.places.cells.counts) * steps).reshape(-1, steps)
            for code, color in enumerate(colors):
                cells = np.flatnonzero(table.argmax(axis=1) == code)
                self._path(cells, color, 1.0)
            self._clear_points(table.max(axis=1) / self.places.cells.counts, "%{customdata[1]:.0%} of one class")
        self._key([("●", color, f"{name} {count:,}") for color, name, count in zip(colors, layer.names, layer.counts)])

    def _selection(self, layer: Selection) -> None:
        tone = palette.shades(self.dark)
        if self.places.cells is None:
            chosen = layer.selected[self.places.drawn]
            size = self._size()
            self._points({"color": chosen.astype(np.uint8), "cmin": 0, "cmax": 1,
                          "colorscale": _flat([tone.muted, tone.accent]),
                          # not much larger, or a third of the samples would look like nearly all of them
                          "size": np.where(chosen, 1.05 * size, 0.95 * size).astype(np.float32),
                          "opacity": np.where(chosen, 0.9, 0.75).astype(np.float32)})
            self._key([("●", tone.accent, f"selected {layer.selected.sum():,}"),
                       ("●", tone.muted, f"not selected {(~layer.selected).sum():,}")])
            return
        shares, ratio = self.places.cells.shares(layer.selected), layer.ratio
        # each side of the ratio has its own half of the scale: 0 is as far as a share can fall, 98 % of rows lie in
        # cells below the top, and the middle colour means "as everywhere"
        top = min(max(float(np.quantile(shares[self.places.cells.cell], 0.98)), ratio + 0.25 * (1 - ratio)), 1.0)
        below, above = 0.5 * shares / max(ratio, 1e-12), 0.5 + 0.5 * (shares - ratio) / max(top - ratio, 1e-12)
        scale = [list(stop) for stop in palette.share_scale(self.dark)]
        self._hexagons(np.where(shares < ratio, below, above), scale)
        self._bar_alone(scale, [0.0, 0.5, 1.0],
                        ["0 %", f"{words.percent(ratio)} everywhere", f"≥ {words.percent(top)}"])
        hits = np.bincount(self.places.cells.cell[layer.selected], minlength=len(shares))
        self._clear_points(hits, "%{customdata[1]:,} of them selected")

    def _change(self, layer: Change) -> None:
        tone = palette.shades(self.dark)
        counts = np.bincount(layer.codes, minlength=4)
        if self.places.cells is None:
            codes, size = layer.codes[self.places.drawn], self._size()
            colors = [tone.muted, tone.random, tone.best, tone.accent]
            glyphs = dict(zip((NEITHER, KEPT, LOST, GAINED), ("●", "●", "✕", "▲")))
            symbols = np.array(["circle", "circle", "x", "triangle-up"])
            # of equal weight to the eye: a cross covers more than a triangle of its size
            sizes = np.array([0.9, 0.9, 1.15, 1.55], np.float32) * size
            self._points({"color": codes, "cmin": -0.5, "cmax": 3.5, "colorscale": _flat(colors),
                          "symbol": symbols[codes], "size": sizes[codes],
                          "opacity": np.array([0.4, 0.6, 0.95, 0.95], np.float32)[codes]})
            self._key([(glyphs[k], colors[k], f"{CHANGE_NAMES[k]} {counts[k]:,}")
                       for k in (GAINED, LOST, KEPT, NEITHER)])
            return
        cells = self.places.cells
        net = (np.bincount(cells.cell[layer.codes == GAINED], minlength=len(cells.counts)).astype(float)
               - np.bincount(cells.cell[layer.codes == LOST], minlength=len(cells.counts)))
        # shrunk toward no change, as shares are toward the ratio
        shift = net / (cells.counts + 10.0)
        top = max(float(np.quantile(np.abs(shift)[cells.cell], 0.98)), 0.02)
        scale = [list(stop) for stop in palette.share_scale(self.dark)]
        self._hexagons(0.5 + 0.5 * shift / top, scale)
        self._bar_alone(scale, [0.0, 0.5, 1.0],
                        [f"≤ −{words.percent(top)}", "gained less lost", f"≥ +{words.percent(top)}"])
        self._clear_points(net, "%{customdata[1]:+,} of them selected")

    def _blank(self, layer: Blank) -> None:
        # an axis without a trace is not drawn; this one has a trace that shows nothing
        self.figure.add_trace(go.Scatter(x=[None], y=[None], xaxis=self.x, yaxis=self.y, hoverinfo="skip"))
        self.figure.add_annotation(
            text=cut(layer.text, 60), x=self.left + self.width / 2, y=0.5, xref="paper", yref="paper", showarrow=False,
            xanchor="center", font={"size": 13, "color": palette.shades(self.dark).random})

    # -- marks --------------------------------------------------------------------------------------------------

    def _size(self) -> float:
        """Marker size in pixels: smaller the more there are, so that crowded places stay readable."""
        return float(np.clip(7.0 - 1.15 * np.log10(max(len(self.places.drawn), 1)), 2.0, 6.0))

    def _points(self, marker: dict, said: str = "") -> None:
        points = self.places.points[self.places.drawn]
        marker = {"size": self._size(), "opacity": 0.85, **marker, "line": {"width": 0}}
        template = "%{hovertext}" + (f"<br>{said}" if said else "") + "<extra></extra>"
        self.figure.add_trace(go.Scattergl(
            x=points[:, 0], y=points[:, 1], mode="markers", marker=marker, xaxis=self.x, yaxis=self.y,
            hovertext=self.hover, hovertemplate=template, unselected={"marker": {"opacity": 0.08}}))

    def _clear_points(self, values: np.ndarray, said: str) -> None:
        """The sample that answers the pointer on a map of hexagons, knowing its cell's count and value."""
        cells, drawn = self.places.cells, self.places.drawn
        points, own = self.places.points[drawn], cells.cell[drawn]
        known = np.column_stack([cells.counts[own], values[own]]).astype(np.float32)
        tone = palette.shades(self.dark)
        self.figure.add_trace(go.Scattergl(
            x=points[:, 0], y=points[:, 1], mode="markers", xaxis=self.x, yaxis=self.y, customdata=known,
            marker={"size": 3, "color": tone.text, "opacity": 0.0, "line": {"width": 0}}, hovertext=self.hover,
            hovertemplate=f"%{{hovertext}}<br>its cell: %{{customdata[0]:,}} samples, {said}<extra></extra>",
            selected={"marker": {"opacity": 0.0}}, unselected={"marker": {"opacity": 0.0}}))

    def _hexagons(self, position: np.ndarray, scale: list) -> None:
        """Cells coloured by where their value stands on the scale: ``(C,)``, 0 to 1, clipped; NaN stays blank."""
        known = np.isfinite(position)
        step = np.clip(np.nan_to_num(position) * STEPS, 0, STEPS - 1).astype(int)
        # the middle step lies exactly on the middle of the scale, the outer ones on its ends
        colors = sample_colorscale(scale, [k / (STEPS - 1) for k in range(STEPS)])
        for k in range(STEPS):
            self._path(np.flatnonzero(known & (step == k)), colors[k], 1.0)

    def _path(self, cells: np.ndarray, color: str, opacity: float) -> None:
        if not len(cells):
            return
        xs, ys = self.places.cells.outlines(cells)
        self.figure.add_trace(go.Scatter(
            x=xs, y=ys, mode="lines", fill="toself", fillcolor=color, opacity=opacity, line={"width": 0},
            xaxis=self.x, yaxis=self.y, hoverinfo="skip"))

    # -- scales and keys ----------------------------------------------------------------------------------------

    def _bar(self, ticks: list[float], labels: list[str]) -> dict:
        tone = palette.shades(self.dark)
        return {"orientation": "h", "x": self.left + self.width / 2, "xanchor": "center", "y": -0.012, "yanchor": "top",
                "len": self.width * 0.84, "lenmode": "fraction", "thickness": 9, "outlinewidth": 0, "tickvals": ticks,
                "ticktext": labels, "ticks": "", "tickfont": {"size": 12, "color": tone.text}, "ypad": 2}

    def _bar_alone(self, scale: list, ticks: list[float], labels: list[str]) -> None:
        """A colour bar for hexagons, which have none of their own."""
        low, high = ticks[0], ticks[-1]
        self.figure.add_trace(go.Scatter(
            x=[None], y=[None], mode="markers", xaxis=self.x, yaxis=self.y, hoverinfo="skip",
            marker={"color": [low], "cmin": low, "cmax": high, "colorscale": scale,
                    "colorbar": self._bar(ticks, labels)}))

    def _key(self, entries: list[tuple[str, str, str]]) -> None:
        """Glyph, colour and name of each class, wrapped at the panel's width."""
        lines: list[list[str]] = [[]]
        filled = 0
        for glyph, color, name in entries:
            wide = 6.4 * min(len(name), 28) + 26
            if lines[-1] and filled + wide > KEY_WIDTH:
                lines.append([])
                filled = 0
            lines[-1].append(f'<span style="color:{color}">{glyph}</span> {cut(name, 28)}')
            filled += wide
        self.lines = len(lines)
        self.figure.add_annotation(
            text="<br>".join("   ".join(line) for line in lines), x=self.left, y=-0.012, xref="paper", yref="paper",
            xanchor="left", yanchor="top", showarrow=False, align="left", font={"size": 12})


def cividis(dark: bool = False) -> list[list]:
    """Cividis without the end that would sink into the page: its darkest part on dark, its palest on light."""
    low, high = (0.22, 1.0) if dark else (0.0, 0.96)
    stops = np.linspace(0, 1, 16)
    colors = sample_colorscale(palette.SCALE, list(low + (high - low) * stops))
    return [[float(stop), color] for stop, color in zip(stops, colors)]


def category_colors(layer: Category, dark: bool = False) -> list[str]:
    """Okabe-Ito by rank; "other" and "(none)" are the grey of what is not selected."""
    colors = palette.categories(len(layer.names))
    if layer.names and layer.names[-1] in ("other", "(none)"):
        colors[-1] = palette.shades(dark).muted
    return colors


def _flat(colors: list[str]) -> list[list]:
    """A colour scale of equal steps without blending, for codes 0 .. len - 1 on the range -0.5 .. len - 0.5."""
    return [[edge / len(colors), color] for k, color in enumerate(colors) for edge in (k, k + 1)]


def _ticks(low: float, high: float, clipped: bool, middle: str = "") -> tuple[list[float], list[str]]:
    center = (low + high) / 2
    marks = [f"{low:,.3g}", middle or f"{center:,.3g}", f"{high:,.3g}"]
    if clipped:
        marks[0], marks[2] = f"≤ {marks[0]}", f"≥ {marks[2]}"
    return [float(low), float(center), float(high)], marks
