"""What `--collapse` removes, in words: the same ones on every page, in every report and on the command line."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

GROUPS = "column:"
"""What begins a ``--collapse`` by the groups of a column."""


def column_of(collapse: str) -> str | None:
    """Return the column whose groups ``--collapse`` names; None: it names none.

    Example:
        >>> column_of("column:minhash_group")
        'minhash_group'
    """
    return collapse.removeprefix(GROUPS) if collapse.startswith(GROUPS) else None


def is_cosine(collapse: str) -> bool:
    """Whether ``--collapse`` names a cosine, for which the neighbor graph is needed."""
    return collapse not in ("none", "exact") and column_of(collapse) is None


def compared_by(columns: Mapping[str, Any] | None) -> str:
    """``text`` or ``features``: what exact duplicates have in common.

    Args:
        columns: role -> name, of a corpus or a run; None: not known.
    """
    return "text" if (columns or {}).get("text") else "features"


def duplicates_named(collapse: str, columns: Mapping[str, Any] | None) -> str:
    """Name the duplicates of which the best row is kept.

    Args:
        collapse: as the option of that name, but not ``none``. columns: as of `compared_by`.

    Example:
        >>> duplicates_named("exact", {"text": "content"})
        'exact duplicates (same text)'
    """
    if collapse == "exact":
        return f"exact duplicates (same {compared_by(columns)})"
    if (column := column_of(collapse)) is not None:
        return f"rows with the same {column}"
    return f"semantic duplicates (cosine {collapse} or more)"


def left_words(recall: float, judged: int, left: int) -> str:
    """Say what an approximate neighbor graph may have left of semantic duplicates; the numbers are of `Duplicates`."""
    return (
        f"the neighbors are approximate (recall {100 * recall:.1f} %): of {judged:,} kept rows that were compared with "
        f"all kept rows, {left:,} still {'has' if left == 1 else 'have'} a duplicate"
    )
