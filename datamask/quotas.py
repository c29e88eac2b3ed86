"""Groups of quotas, and whether any selection can obey them, pins and given rows: counted, and refused with the reason.

Loads no torch.

Posing a problem asks here, and so does a page before a run is started.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

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

Groups = tuple[np.ndarray, np.ndarray, np.ndarray, tuple[str, ...]]
"""Group of every row int64 ``(n,)`` from 0, least and most of each group ``(C,)``, and their names. What is counted is
members, int64, or under a token budget their tokens, float64."""


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
    return group, *quota_limits(quotas, group, size, given, lengths)


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


def tokens_by_group(group: np.ndarray, lengths: np.ndarray, groups: int) -> np.ndarray:
    """The tokens of some rows by group, float64 ``(C,)``. NumPy alone gives integers where there are no rows."""
    return np.bincount(group, lengths, groups).astype(np.float64)


def check_tokens(groups: Groups, lengths: np.ndarray, pinned: np.ndarray, given: np.ndarray, size: float) -> None:
    """Raise the reason why no selection can spend a token budget so that each group has its share.

    Args:
        groups, pinned, given: as of `check_rules`. lengths: float64, tokens of the same rows. size: tokens, those of
            the given rows among them.

    Raises:
        OptionError: a group has too few tokens, its pins have too many, and so on.
    """
    group, low, high, names = groups

    def tokens(rows: np.ndarray) -> np.ndarray:
        return tokens_by_group(group[rows], lengths[rows], len(names))

    had = tokens(given)
    lows, highs = np.maximum(low - had, 0.0), high - had
    there, fixed, size = tokens(np.ones(len(group), bool)) - had, tokens(pinned) - had, size - float(had.sum())
    slack = SLACK * size
    for name, least, most, has, pins in zip(names, lows, highs, there, fixed):
        if least > has + slack:
            raise OptionError(
                f"--quota: {name} must have at least {least:,.0f} of the {size:,.0f} tokens, but {has:,.0f} may be "
                "selected"
            )
        if pins > most + slack:
            raise OptionError(
                f"--quota: {name} may have at most {most:,.0f} of the {size:,.0f} tokens, but {pins:,.0f} are pinned"
            )
    least, most = float(np.maximum(lows, fixed).sum()), float(np.minimum(highs, there).sum())
    if not least - slack <= size <= most + slack:
        raise OptionError(
            f"--quota and --pin allow from {least:,.0f} to {most:,.0f} tokens together, but {size:,.0f} are to be "
            "selected; loosen a quota or change --budget"
        )


def binding(groups: Groups, selected: np.ndarray, free: np.ndarray, lengths: np.ndarray | None = None) -> np.ndarray:
    """Which groups a selection gives as little or as much as it may, bool ``(C,)``; of tokens to within one row.

    Args:
        selected, free: bool ``(m,)``, the rows that are in, and those that may be in or out.
        lengths: tokens of each row, where they are what is counted.
    """
    group, low, high, names = groups
    held = np.bincount(group[selected], None if lengths is None else lengths[selected], len(names))
    if lengths is None:
        return (held == low) | (held == high)
    row = np.zeros(len(names))
    np.maximum.at(row, group[free], lengths[free])
    return ((held < low + row) & (low > 0)) | (held > high - row)


def check_rules(groups: Groups, pinned: np.ndarray, given: np.ndarray, size: int) -> None:
    """Raise the reason why no selection of `size` can obey the rules.

    Args:
        groups: of the rows that may be selected. pinned, given: bool, of the same rows; given ones are pinned too.
        size: S, the given rows among them.

    Raises:
        OptionError: too many pins, a minimum above what a group has, maxima that leave too few rows, and so on.
    """
    group, low_counts, high_counts, names = groups
    size = size - int(given.sum())
    pins = int((pinned & ~given).sum())
    if pins > size:
        raise OptionError(f"--pin names {pins:,} rows, but only {size:,} are to be selected; raise --select_ratio")
    had = np.bincount(group[given], minlength=len(names))
    lows, highs = np.maximum(low_counts - had, 0), high_counts - had
    there = np.bincount(group, minlength=len(names)) - had
    fixed_counts = np.bincount(group[pinned], minlength=len(names)) - had
    for name, low, high, has, fixed in zip(names, lows, highs, there, fixed_counts):
        if low > has:
            raise OptionError(f"--quota: {name} must have at least {low:,} rows, but {has:,} may be selected")
        if fixed > high:
            raise OptionError(f"--quota: {name} may have at most {high:,} rows, but {fixed:,} are pinned")
    least = int(np.maximum(lows, fixed_counts).sum())
    most = int(np.minimum(highs, there).sum())
    if not least <= size <= most:
        raise OptionError(
            f"--quota and --pin allow from {least:,} to {most:,} rows together, but {size:,} are "
            "to be selected; loosen a quota or change --select_ratio"
        )
