"""A map as a picture in a file: every sample counted into pixels, so that no order of drawing decides what is seen."""

from __future__ import annotations

import base64
import io

import numpy as np
from PIL import Image

from datamask.dashboard.map.places import place
from datamask.dashboard.map.scales import blend, cividis, rgb

SIDE = 560
"""Pixels of a panel's side."""

SCALE = cividis(dark=True)
"""Colours of quality; even the darkest shows on a white and on a dark page."""

CHOSEN, OTHERS = "#1F86CC", "#8A949E"
"""Colours of selected samples and of the rest, on either page."""

PALE = 0.45
"""Opacity of the rest beside what is selected: on a white as on a dark page they must stand back."""

FAINT = 0.55
"""Opacity of a pixel that one mark covers; more of them make it solid."""


def panels(points: np.ndarray, selected: np.ndarray, *numbers: np.ndarray) -> tuple[str, ...]:
    """Pictures of one map, by selection and by each of the numbers, as data addresses of PNG files on a clear ground.

    A pixel shows the selected share, or the mean of the numbers, of the samples whose marks cover it. The colours of
    numbers end at their 2nd and 98th percentile.

    Args:
        points: float ``(N, 2)``; selected: bool ``(N,)``; numbers: float ``(N,)`` each.
    """
    pixels, rows = _stamped(points)
    count = np.bincount(pixels, minlength=SIDE * SIDE)
    there = count > 0

    def mean(values: np.ndarray) -> np.ndarray:
        return np.bincount(pixels, values[rows], SIDE * SIDE)[there] / count[there]

    share = mean(selected.astype(float))
    dense = 1 - (1 - FAINT) ** np.minimum(count[there], 8)
    others, chosen = rgb([OTHERS, CHOSEN]).astype(float)
    return (
        _png(there, others + share[:, None] * (chosen - others), 255 * dense * (PALE + (1 - PALE) * share)),
        *(_png(there, blend(SCALE, mean(_scaled(values))), 255 * dense) for values in numbers),
    )


def _scaled(values: np.ndarray) -> np.ndarray:
    """The values as shares of the way from their 2nd to their 98th percentile, between 0 and 1."""
    low, high = np.percentile(values, (2, 98))
    return np.clip((values - low) / (high - low), 0, 1) if high > low else np.full(len(values), 0.5)


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


def _png(there: np.ndarray, colors: np.ndarray, cover: np.ndarray) -> str:
    picture = np.zeros((SIDE * SIDE, 4), np.uint8)
    picture[there, :3], picture[there, 3] = np.round(colors), np.round(cover)
    # few colours are enough for a map and make a third of the size
    small = Image.fromarray(picture.reshape(SIDE, SIDE, 4)).quantize(128, method=Image.Quantize.FASTOCTREE)
    sink = io.BytesIO()
    small.save(sink, "PNG", optimize=True)
    return "data:image/png;base64," + base64.b64encode(sink.getvalue()).decode()
