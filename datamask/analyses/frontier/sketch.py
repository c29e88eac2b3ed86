"""A sketch of the frontier for a corpus that has none yet, without a number that could be taken for a result."""

from __future__ import annotations

import math

from datamask.dashboard.drawing.svg import Drawing

SIDE = 300


def sketch(dark: bool) -> str:
    """Axes, a curve with a few points, its price, and the unreachable corner, as HTML; named as a sketch."""
    picture = Drawing(
        SIDE + 40,
        SIDE + 30,
        "A sketch: quality across, diversity up, one curve from λ 0 at the upper "
        "left to λ 1 at the lower right, a dotted tangent at its middle, the corner beyond it gray",
    )
    left, low, reach = 46.0, SIDE - 10.0, 220.0
    road = [
        (left + reach * math.sin(turn), low - reach * math.cos(turn))
        for turn in (math.pi / 2 * k / 40 for k in range(41))
    ]
    picture.area(
        [*road, (left + reach + 14, low), (left + reach + 14, low - reach - 14), (left, low - reach - 14)],
        "muted",
        0.35,
    )
    picture.line(left, low, left + reach + 24, low, "muted", 1.2)
    picture.line(left, low, left, low - reach - 24, "muted", 1.2)
    picture.path(road, "accent", 2, "6 4")
    for place in (0, 10, 20, 30, 40):
        picture.mark(*road[place])
    x, y = road[20]
    picture.line(x - 46, y - 46, x + 46, y + 46, "text", 1.5, "2 3")
    picture.mark(x, y, "text", "circle", 8, hollow=True)
    picture.mark(x, y)
    picture.text(road[0][0] + 8, road[0][1] + 20, "λ 0", "text", size=11)
    picture.text(road[40][0] - 8, road[40][1] - 10, "λ 1", "text", "end", 11)
    picture.text(x - 14, y + 22, "the price here", "text", "end", 11)
    picture.text(left + reach + 10, low - reach + 4, "out of reach", "text", "end", 11)
    picture.mark(left, low, "random", "square")
    picture.text(left + 9, low - 8, "random", "random", size=11)
    picture.text(left + reach / 2, low + 22, "quality kept", "text", "middle")
    picture.text(4, 16, "diversity kept", "text")
    picture.text(SIDE + 36, SIDE + 26, "a sketch, not your corpus", "random", "end", 11)
    return picture.image(dark)
