"""Keys to pictures as HTML: they wrap with the page, where a figure's own would squeeze the figure."""

from __future__ import annotations

import html
from collections.abc import Sequence

from plotly import graph_objects as go

SHAPES = {
    "circle": "border-radius:50%",
    "square": "",
    "diamond": "transform:rotate(45deg) scale(.85)",
    "triangle-up": "clip-path:polygon(50% 0,100% 100%,0 100%)",
    "triangle-down": "clip-path:polygon(0 0,100% 0,50% 100%)",
    "triangle-right": "clip-path:polygon(0 0,100% 50%,0 100%)",
    "cross": "clip-path:polygon(33% 0,67% 0,67% 33%,100% 33%,100% 67%,67% 67%,67% 100%,33% 100%,33% 67%,0 67%,0 33%,"
    "33% 33%)",
    "pentagon": "clip-path:polygon(50% 0,100% 38%,81% 100%,19% 100%,0 38%)",
    "hexagon": "clip-path:polygon(25% 0,75% 0,100% 50%,75% 100%,25% 100%,0 50%)",
}
"""A mark of ten pixels, by plotly's name of it, as CSS."""

DASHES = {"solid": "solid", "dot": "dotted", "2px,2px": "dotted", "1px,3px": "dotted"}
"""Kinds of lines that CSS tells apart, by plotly's names; all others are dashed."""


def key_of(figure: go.Figure) -> str:
    """The key to the traces of a figure that have ``showlegend``; empty where none has."""
    entries = [_entry(trace) for trace in figure.data if trace.showlegend]
    return curve_key(entries, figure.layout.legend.title.text or "") if entries else ""


def _entry(trace) -> tuple[str, str, str, str]:
    """Name, colour, symbol and dash of a trace of lines, marks or bars."""
    name = html.unescape(trace.name)  # it is escaped for Plotly
    if trace.type == "bar":
        return name, trace.marker.color, "square", ""
    marked, joined = ("markers" in trace.mode, "lines" in trace.mode)
    return (
        name,
        trace.marker.color if marked else trace.line.color,
        (trace.marker.symbol or "circle") if marked else "",
        (trace.line.dash or "solid") if joined else "",
    )


def curve_key(entries: Sequence[tuple[str, str, str, str]], title: str = "") -> str:
    """The key to curves.

    Args:
        entries: name, colour, symbol (empty: none; ``area``: a filled patch) and dash (empty:
            no line) of each.
        title: of all of them.
    """
    shown = [f"<span>{html.escape(title)}</span>"] if title else []
    for name, color, symbol, dash in entries:
        parts = ""
        if dash:
            parts += (
                f'<span style="position:absolute;left:0;right:0;top:6px;border-top:2px '
                f'{DASHES.get(dash, "dashed")} {color}"></span>'
            )
        if symbol == "area":
            parts += (
                f'<span style="position:absolute;left:0;right:0;top:1px;height:12px;opacity:.45;'
                f'background:{color}"></span>'
            )
        elif symbol == "circle-open":
            parts += (
                f'<span style="position:absolute;left:9px;top:2px;width:10px;height:10px;box-sizing:border-box;'
                f'border:2px solid {color};border-radius:50%"></span>'
            )
        elif symbol:
            parts += (
                f'<span style="position:absolute;left:9px;top:2px;width:10px;height:10px;background:{color};'
                f'{SHAPES[symbol]}"></span>'
            )
        shown.append(
            '<span style="white-space:nowrap"><span aria-hidden="true" style="display:inline-block;'
            f'position:relative;width:28px;height:14px;vertical-align:-2px;margin-right:6px">{parts}</span>'
            f"{html.escape(name)}</span>"
        )
    return (
        '<div style="display:flex;flex-wrap:wrap;gap:2px 18px;font-size:.85rem;line-height:1.5">'
        + "".join(shown)
        + "</div>"
    )


def ink(color: str, dark: bool) -> str:
    """A colour of the palette for letters: on a light page darker, so that orange and sky blue can be read."""
    if dark:
        return color
    red, green, blue = (int(color[k : k + 2], 16) for k in (1, 3, 5))
    return "#" + "".join(f"{round(0.66 * part):02x}" for part in (red, green, blue))
