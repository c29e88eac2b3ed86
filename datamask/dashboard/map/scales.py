"""Colours as numbers: scales blended at given positions, and the colours of a map's classes. Pure numpy."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from datamask.dashboard.drawing import palette
from datamask.dashboard.map.layers import Category

CIVIDIS = ("#00224e", "#123570", "#3b496c", "#575d6d", "#707173", "#8a8678", "#a59c74", "#c3b369", "#e1cc55", "#fee838")
"""Monotone in lightness, and the same for colour-blind readers (Nunez, Anderton, Renslow 2018)."""


def rgb(colors: Sequence[str]) -> np.ndarray:
    """``#rrggbb`` colours as uint8 ``(n, 3)``."""
    return np.array([[int(color[i : i + 2], 16) for i in (1, 3, 5)] for color in colors], np.uint8).reshape(-1, 3)


def blend(stops: Sequence[tuple[float, str]], positions: np.ndarray) -> np.ndarray:
    """Colours between the stops of a scale, uint8 ``(n, 3)``.

    Args:
        stops: rising position and ``#rrggbb``.
        positions: ``(n,)``; beyond the ends they take the ends' colours.
    """
    known = rgb([color for _, color in stops]).astype(float)
    at = [position for position, _ in stops]
    return np.stack([np.interp(positions, at, known[:, k]) for k in range(3)], axis=1).round().astype(np.uint8)


def cividis(dark: bool = False) -> list[tuple[float, str]]:
    """Stops of cividis without the end that would sink into the page: its darkest part on dark, its palest on light."""
    whole = list(zip(np.linspace(0, 1, len(CIVIDIS)), CIVIDIS))
    low, high = (0.22, 1.0) if dark else (0.0, 0.96)
    stops = np.linspace(0, 1, 16)
    return [(float(stop), hexadecimal(color)) for stop, color in zip(stops, blend(whole, low + (high - low) * stops))]


def hexadecimal(color: np.ndarray) -> str:
    """Three bytes as ``#rrggbb``."""
    return "#" + "".join(f"{int(part):02x}" for part in color[:3])


def category_colors(layer: Category, dark: bool = False) -> list[str]:
    """Okabe-Ito by rank; "other" and "(none)" are the grey of what is not selected."""
    colors = palette.categories(len(layer.names))
    if layer.names and layer.names[-1] in ("other", "(none)"):
        colors[-1] = palette.shades(dark).muted
    return colors
