"""Small drawings as SVG text, for pictures that must also stand in a file that is opened without a network.

Colours are CSS variables (`style`), so that one drawing serves light and dark. Every text passes through one escaping
function.
"""

from __future__ import annotations

import base64
import html
import math
from dataclasses import fields

from datamask.dashboard.drawing import palette, words

FONT = "font-family:system-ui,'Source Sans','Segoe UI',sans-serif"
SHAPES = ("circle", "diamond", "triangle", "square")

CORNERS = {
    "diamond": ((0, -1.3), (1.3, 0), (0, 1.3), (-1.3, 0)),
    "triangle": ((0, -1.2), (1.15, 0.9), (-1.15, 0.9)),
    "square": ((-0.9, -0.9), (0.9, -0.9), (0.9, 0.9), (-0.9, 0.9)),
}
"""Of a mark of size 1, around its place."""


def style(dark: bool) -> str:
    """The roles of the palette as CSS variables: ``--accent:#0072B2;...``, and ``--series0`` to ``--series3``."""
    tone = palette.shades(dark)
    roles = [f"--{field.name}:{getattr(tone, field.name)}" for field in fields(tone)]
    series = [tone.accent, *palette.OKABE_ITO[1:4]]
    return ";".join([*roles, *(f"--series{k}:{color}" for k, color in enumerate(series))])


def escape(text: object) -> str:
    """Text of any origin for a place between tags or in quotes; what no UTF-8 can hold is escaped too."""
    return html.escape(words.printable(str(text)), quote=True)


def ticks(low: float, high: float, count: int = 4) -> list[float]:
    """About `count` round numbers from low to high."""
    if not (math.isfinite(low) and math.isfinite(high)) or high <= low:
        return [low] if math.isfinite(low) else []
    step = (high - low) / max(count, 1)
    power = 10.0 ** math.floor(math.log10(step))
    step = next(power * factor for factor in (1, 2, 2.5, 5, 10) if power * factor >= step * 0.999)
    first = math.ceil(low / step - 1e-9)
    return [float(f"{k * step:.12g}") for k in range(first, math.floor(high / step + 1e-9) + 1)]


class Drawing:
    """One picture, `width` by `height` units; (0, 0) is top left. It shrinks with its page and never grows past it."""

    def __init__(self, width: float, height: float, label: str) -> None:
        self.width, self.height, self.label = width, height, label
        self.parts: list[str] = []

    def line(self, x1: float, y1: float, x2: float, y2: float, color: str = "grid", width: float = 1.0) -> None:
        """A straight line."""
        self.parts.append(
            f'<line x1="{x1:.2f}" y1="{y1:.2f}" x2="{x2:.2f}" y2="{y2:.2f}" stroke="var(--{color})" '
            f'stroke-width="{width}"/>'
        )

    def mark(
        self,
        x: float,
        y: float,
        color: str = "accent",
        shape: str = "circle",
        size: float = 4.5,
        hollow: bool = False,
        title: str = "",
    ) -> None:
        """A mark with a text under the pointer; a hollow one shows the page's ground inside."""
        inside = "var(--ground)" if hollow else f"var(--{color})"
        look = f'fill="{inside}" stroke="var(--{color})" stroke-width="{1.8 if hollow else 1}"'
        tooltip = f"<title>{escape(title)}</title>" if title else ""
        if shape == "circle":
            self.parts.append(f'<circle cx="{x:.2f}" cy="{y:.2f}" r="{size}" {look}>{tooltip}</circle>')
            return
        road = " ".join(f"{x + a * size:.2f},{y + b * size:.2f}" for a, b in CORNERS[shape])
        self.parts.append(f'<polygon points="{road}" {look}>{tooltip}</polygon>')

    def text(
        self,
        x: float,
        y: float,
        content: object,
        color: str = "text",
        anchor: str = "start",
        size: float = 12,
        bold: bool = False,
    ) -> None:
        """One line of words; `y` is its base line, `anchor` start, middle or end."""
        weight = ' font-weight="600"' if bold else ""
        self.parts.append(
            f'<text x="{x:.2f}" y="{y:.2f}" fill="var(--{color})" text-anchor="{anchor}" '
            f'font-size="{size}"{weight}>{escape(content)}</text>'
        )

    def markup(self, variables: str = "") -> str:
        """The whole drawing as an ``svg`` element.

        Args:
            variables: CSS variables of its colours; empty: those of the page around it hold.
        """
        look = f"width:100%;max-width:{self.width:g}px;height:auto;{FONT};{variables}"
        return (
            f'<svg viewBox="0 0 {self.width:g} {self.height:g}" role="img" '
            f'aria-label="{escape(self.label)}" style="{escape(look)}">' + "".join(self.parts) + "</svg>"
        )

    def image(self, dark: bool) -> str:
        """The drawing as an ``img`` that needs no file: for pages that take foreign ``svg`` elements out.

        What it shows is said in words under the pointer, since an image has no marks to point at.
        """
        alone = self.markup(style(dark)).replace("<svg ", '<svg xmlns="http://www.w3.org/2000/svg" ', 1)
        source = base64.b64encode(alone.encode()).decode()
        description = escape(self.label)
        return (
            f'<img src="data:image/svg+xml;base64,{source}" alt="{description}" title="{description}" '
            f'style="width:100%;max-width:{self.width:g}px">'
        )
