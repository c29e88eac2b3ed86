"""A map as a picture in a file: every sample counted into pixels, so that no order of drawing decides what is seen."""

from __future__ import annotations

import base64
import io

import numpy as np
from PIL import Image

from datamask.dashboard.map.places import place
from datamask.dashboard.map.scales import rgb

SIDE = 560
"""Pixels of a panel's side."""

CHOSEN, OTHERS = "#1F86CC", "#8A949E"
"""Colours of selected samples and of the rest, on either page."""

PALE = 0.45
"""Opacity of the rest beside what is selected: on a white as on a dark page they must stand back."""

FAINT = 0.55
"""Opacity of a pixel that one mark covers; more of them make it solid."""


def picture(points: np.ndarray, selected: np.ndarray) -> bytes:
    """A map by selection as a PNG on a clear ground: a pixel shows the selected share of the rows whose marks cover it.

    Args:
        points: float ``(N, 2)``; selected: bool ``(N,)``.
    """
    pixels, rows = _stamped(points)
    count = np.bincount(pixels, minlength=SIDE * SIDE)
    there = count > 0
    share = np.bincount(pixels, selected[rows].astype(float), SIDE * SIDE)[there] / count[there]
    dense = 1 - (1 - FAINT) ** np.minimum(count[there], 8)
    others, chosen = rgb([OTHERS, CHOSEN]).astype(float)
    return _png(there, others + share[:, None] * (chosen - others), 255 * dense * (PALE + (1 - PALE) * share))


def address(picture: bytes) -> str:
    """A picture as a data address, which a page holds in itself."""
    return "data:image/png;base64," + base64.b64encode(picture).decode()


def _stamped(points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Which pixels each mark covers: pixel numbers and the rows they belong to, equally long."""
    x0, x1, y0, y1 = place(points, hexagons=False).view
    x = np.floor((points[:, 0] - x0) / (x1 - x0) * SIDE).astype(int)
    y = np.floor((y1 - points[:, 1]) / (y1 - y0) * SIDE).astype(int)
    reach = 2 if len(points) < 3000 else 1 if len(points) < 100_000 else 0
    pixels, rows = [], []
    for dx in range(-reach, reach + 1):
        for dy in range(-reach, reach + 1):
            if dx * dx + dy * dy > reach * reach + 0.5:
                continue
            inside = np.flatnonzero((x + dx >= 0) & (x + dx < SIDE) & (y + dy >= 0) & (y + dy < SIDE))
            pixels.append((y[inside] + dy) * SIDE + x[inside] + dx)
            rows.append(inside)
    return np.concatenate(pixels), np.concatenate(rows)


def _png(there: np.ndarray, colors: np.ndarray, cover: np.ndarray) -> bytes:
    picture = np.zeros((SIDE * SIDE, 4), np.uint8)
    picture[there, :3], picture[there, 3] = np.round(colors), np.round(cover)
    # few colours are enough for a map and make a third of the size
    small = Image.fromarray(picture.reshape(SIDE, SIDE, 4)).quantize(128, method=Image.Quantize.FASTOCTREE)
    sink = io.BytesIO()
    small.save(sink, "PNG", optimize=True)
    return sink.getvalue()
