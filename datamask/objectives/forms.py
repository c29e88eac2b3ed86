"""Quadratic forms and sums of products of wide rows, in fewer or narrower products than written out."""

from __future__ import annotations

import torch
from torch import Tensor

BLOCK = 256
"""Dimensions at a time of a form; narrower blocks leave out more, and multiply more slowly."""

SUMMED_ROWS = 2_048
"""Rows whose products are added up in float32, less their mean: of so few, the sum is as exact as the rows, in half of
the time that float64 takes."""


def form(rows: Tensor, matrix: Tensor) -> Tensor:
    """``x' M x`` of rows ``(b, d)``, M symmetric: by what is on and above its diagonal, 5/8 of the products."""
    d = rows.shape[1]
    if d <= BLOCK or len(rows) <= d:  # making the triangle would take what it spares
        return ((rows @ matrix) * rows).sum(1)
    upper = matrix.triu(1).mul_(2.0)
    upper.diagonal().copy_(matrix.diagonal())
    out = rows.new_zeros(len(rows))
    for start in range(0, d, BLOCK):
        end = min(start + BLOCK, d)
        out += torch.linalg.vecdot(rows[:, :end] @ upper[:end, start:end], rows[:, start:end])
    return out


def add_products(second: Tensor, rows: Tensor, weights: Tensor | None = None) -> Tensor:
    """Add ``sum of w_i y_i y_i'`` of at most `SUMMED_ROWS` rows ``(b, d)``, which are changed, to a matrix ``(d, d)``.

    Args:
        weights: ``(b,)``; None: all 1.

    Returns:
        ``sum of w_i y_i``, in the matrix's type.
    """
    if weights is None:
        total, count = rows.sum(0, dtype=second.dtype), float(len(rows))
    else:
        total, count = weights.to(second.dtype) @ rows.to(second.dtype), float(weights.sum())
    mean = total / count
    rows -= mean.to(rows.dtype)  # rows that lie close together differ in digits that products of whole rows lack
    weighted = rows if weights is None else rows * weights.to(rows.dtype)[:, None]
    for start in range(0, rows.shape[1], BLOCK):  # the rest is alike, as the matrix is
        end = min(start + BLOCK, rows.shape[1])
        part = rows[:, :end].T @ weighted[:, start:end]
        own = part[start:]  # rounded, it is not quite symmetric
        second[:start, start:end] += part[:start]
        second[start:end, :start] += part[:start].T
        second[start:end, start:end] += (own + own.T) / 2
    second.addr_(mean, total)
    return total
