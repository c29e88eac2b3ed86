"""Groups of quotas, and whether any selection can obey them, pins and given rows: counted, and refused with the reason.

Loads no torch.

Posing a problem asks here, and so does a page before a run is started.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from datamask.config import Quota
from datamask.errors import OptionError

if TYPE_CHECKING:
    import pyarrow as pa

    from datamask.corpus.corpus import Corpus

SLACK = 1e-12
"""Of a token budget: so much is the rounding of sums."""

NO_VALUE = "(none)"
"""What rows without a value are called among the values of a column."""


class Groups(NamedTuple):
    """Group of every row int64 ``(n,)`` from 0, least and most of each group ``(C,)``, and their names, for sentences.

    Members are counted, or under a token budget their tokens.
    """

    group: np.ndarray
    low: np.ndarray
    high: np.ndarray
    names: tuple[str, ...]


def quota_bounds(low: float, high: float, size: int) -> tuple[int, int]:
    """Counts for a quota given in shares of the selection: ``ceil(low S)`` and ``floor(high S)``, rounding forgiven.

    Where no whole number lies between the two, as for a fixed share, the numbers on both sides of them.
    """
    least, most = math.ceil(low * size - 1e-9), math.floor(high * size + 1e-9)
    return min(least, most), max(least, most)


def quota_groups(
    quotas: Sequence[Quota], corpus: Corpus, size: float, given: np.ndarray, lengths: np.ndarray | None = None
) -> Groups:
    """The groups of quotas; rows of values without one form the first, free group.

    Quotas are shares of the new rows: those a group is given already are added to both its counts. A value is named as
    pages name it: "(none)" is every row without one, and true and false are so in any case.

    Args:
        quotas: on one column of the corpus's metadata. size: the given rows among them. given: bool ``(n,)``.
        lengths: tokens of each row, float64 ``(n,)``; then they are what is counted, in `size` too.

    Raises:
        OptionError: there is no such column.
    """
    group = np.zeros(len(given), dtype=np.int64)
    if quotas:
        column = quotas[0].column
        names = corpus.metadata.column_names
        if column not in names:
            others = ", ".join([*names, *corpus.provenance.unread])
            raise OptionError(f"--quota: the corpus has no column {column!r}; it has {others or 'no metadata columns'}")
        group = quota_labels(quotas, corpus.metadata[column])
    return Groups(group, *quota_limits(quotas, group, size, given, lengths))


def quota_labels(quotas: Sequence[Quota], column: pa.Array | pa.ChunkedArray) -> np.ndarray:
    """The group of each row by its value of the column of `quotas`, int64 ``(n,)``; see `quota_groups`."""
    import pyarrow as pa
    import pyarrow.compute as pc

    group = np.zeros(len(column), dtype=np.int64)
    values = pc.fill_null(column.cast(pa.string()), NO_VALUE)
    is_truth = pa.types.is_boolean(column.type)
    for number, quota in enumerate(quotas, 1):
        # Arrow writes true where Python, and so every page, writes True
        value = quota.value.lower() if is_truth else quota.value
        group[pc.equal(values, value).to_numpy(zero_copy_only=False)] = number
    return group


def quota_limits(
    quotas: Sequence[Quota], group: np.ndarray, size: float, given: np.ndarray, lengths: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray, tuple[str, ...]]:
    """The least and most of each group, and their names, by the groups of all rows; see `quota_groups`."""
    already = np.bincount(group[given], None if lengths is None else lengths[given], len(quotas) + 1)
    new = size - already.sum()
    shares = [
        (quota.low * new, quota.high * new) if lengths is not None else quota_bounds(quota.low, quota.high, int(new))
        for quota in quotas
    ]
    low, high = np.array([(0 * size, size), *shares]).T
    low[1:] += already[1:]
    high[1:] += already[1:]
    return low, high, ("the rest", *(f"{quota.column}={quota.value}" for quota in quotas))


def amount_by_group(group: np.ndarray, lengths: np.ndarray | None, rows: np.ndarray, groups: int) -> np.ndarray:
    """The number of rows, or of their tokens, by group: float64 ``(C,)``.

    Args:
        group, lengths: of all rows; lengths are None where rows are counted. rows: a mask, or int64.
    """
    counted = np.bincount(group[rows], None if lengths is None else lengths[rows], groups)
    return counted.astype(np.float64)  # NumPy gives integers where there are no rows


def unit_and_option(lengths: np.ndarray | None) -> tuple[str, str]:
    """What is counted, and the option that says how much of it to select: for sentences."""
    return ("rows", "--select_ratio") if lengths is None else ("tokens", "--budget")


def check_groups(
    groups: Groups, pinned: np.ndarray, given: np.ndarray, most: float, lengths: np.ndarray | None = None
) -> None:
    """Raise the reason why no selection can have this size and obey the pins and quotas.

    Args:
        groups: of the rows that may be selected. pinned, given: bool, of the same rows; given ones are pinned too.
        most: rows or tokens to select, the given ones among them.
        lengths: float64, tokens of the same rows, where they are what is counted.

    Raises:
        OptionError: too many pins, a minimum above what a group has, maxima that leave too little, and so on; of a
            budget also that no row fits next to the pins, or that all rows do.
    """
    group, low, high, names = groups
    had = amount_by_group(group, lengths, given, len(names))
    size, lows, highs = most - float(had.sum()), np.maximum(low - had, 0.0), high - had
    there = amount_by_group(group, lengths, np.ones(len(group), bool), len(names)) - had
    fixed = amount_by_group(group, lengths, pinned, len(names)) - had
    pins, slack = float(fixed.sum()), SLACK * size
    unit, option = unit_and_option(lengths)
    if pins > size + slack:
        what = f"{pins:,.0f} rows" if lengths is None else f"rows of {pins:,.0f} tokens"
        raise OptionError(f"--pin names {what}, but only {size:,.0f} are to be selected; raise {option}")
    if lengths is not None:
        if pinned.all() or lengths[~pinned].min() > size - pins:
            raise OptionError(
                f"--budget of {size:,.0f} tokens leaves {size - pins:,.0f} to choose, which no row fits in; raise it"
            )
        if there.sum() <= size:
            raise OptionError(
                f"--budget of {size:,.0f} tokens holds all {there.sum():,.0f} that may be selected; lower it, prune "
                "less, or ban fewer"
            )
    of_size = "rows" if lengths is None else f"of the {size:,.0f} tokens"
    for name, least, greatest, has, held in zip(names, lows, highs, there, fixed):
        if least > has + slack:
            raise OptionError(
                f"--quota: {name} must have at least {least:,.0f} {of_size}, but {has:,.0f} may be selected"
            )
        if held > greatest + slack:
            raise OptionError(f"--quota: {name} may have at most {greatest:,.0f} {of_size}, but {held:,.0f} are pinned")
    least, greatest = float(np.maximum(lows, fixed).sum()), float(np.minimum(highs, there).sum())
    if not least - slack <= size <= greatest + slack:
        raise OptionError(
            f"--quota and --pin allow from {least:,.0f} to {greatest:,.0f} {unit} together, but {size:,.0f} are to be "
            f"selected; loosen a quota or change {option}"
        )


def binding(groups: Groups, selected: np.ndarray, free: np.ndarray, lengths: np.ndarray | None = None) -> np.ndarray:
    """Which groups a selection gives as little or as much as it may, bool ``(C,)``; of tokens to within one row.

    Args:
        selected, free: bool ``(m,)``, the rows that are in, and those that may be in or out.
        lengths: tokens of each row, where they are what is counted.
    """
    group, low, high, names = groups
    held = amount_by_group(group, lengths, selected, len(names))
    if lengths is None:
        return (held == low) | (held == high)
    row = np.zeros(len(names))
    np.maximum.at(row, group[free], lengths[free])
    return ((held < low + row) & (low > 0)) | (held > high - row)
