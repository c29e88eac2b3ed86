"""What every selection stands beside: random and top-quality rows of the same size, and a fair cut of unequal ones."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from datamask.corpus.corpus import Corpus
from datamask.errors import InputError
from datamask.evaluation.token_lengths import token_lengths

RANDOM, TOP_QUALITY = "random", "top-quality"

ALIKE = 1.05
"""Sizes within this factor are the same ratio; the larger selection is then cut to the smaller."""

RANDOM_SEED, CUT_SEED, TIES_SEED = 1_000, 1_001, 0
"""Of the row hash; 0 to 5 belong to hold-outs."""


def reference_rows(corpus: Corpus, size: int, tokens: float | None = None) -> dict[str, np.ndarray]:
    """Rows of a random and of the top-quality selection of `size` rows, or of at most `tokens` tokens where given."""
    hashes = corpus.hashes(RANDOM_SEED)
    orders = {
        RANDOM: np.argsort(hashes, kind="stable"),
        TOP_QUALITY: np.lexsort((corpus.hashes(TIES_SEED), -corpus.quality)),
    }
    return {
        name: np.sort(order[:size] if tokens is None else _up_to(order, token_lengths(corpus), tokens))
        for name, order in orders.items()
    }


def comparable(
    corpus: Corpus, selections: Mapping[str, np.ndarray], cut: bool = False
) -> tuple[dict[str, np.ndarray], float | None, list[str]]:
    """Selections that may be compared: of one size, or of one number of tokens.

    Args:
        selections: name -> distinct rows.
        cut: cut larger selections at random to the smallest, however far apart.

    Returns:
        The selections (rows rising), the tokens they have in common where their numbers of rows differ (else None),
        and sentences on what was cut.

    Raises:
        InputError: sizes differ by more than 5 % and `cut` is off.
    """
    sizes = {name: len(rows) for name, rows in selections.items()}
    least, most = min(sizes.values()), max(sizes.values())
    selections = {name: np.sort(rows) for name, rows in selections.items()}
    if least == most:
        return selections, None, []
    if corpus.lengths is not None and (cut or most > ALIKE * least):
        tokens = {name: float(corpus.lengths[rows].sum()) for name, rows in selections.items()}
        fewest = min(tokens.values())
        if fewest > 0 and (cut or max(tokens.values()) <= ALIKE * fewest):
            order = corpus.hashes(CUT_SEED)
            cut_rows = {
                name: rows
                if tokens[name] == fewest
                else np.sort(_up_to(rows[np.argsort(order[rows], kind="stable")], corpus.lengths, fewest))
                for name, rows in selections.items()
            }
            return cut_rows, fewest, [f"Selections of unequal size were cut at random to {fewest:,.0f} tokens."]
    if most > ALIKE * least and not cut:
        listed = ", ".join(f"{name} {size:,}" for name, size in sizes.items())
        raise InputError(
            f"selections are compared at the same ratio, but their sizes differ ({listed}); select again "
            "at one ratio, or let the larger ones be cut at random"
        )
    order = corpus.hashes(CUT_SEED)
    cut_rows = {
        name: np.sort(rows[np.argsort(order[rows], kind="stable")[:least]]) for name, rows in selections.items()
    }
    return cut_rows, None, [f"Selections of unequal size were cut at random to {least:,} rows."]


def _up_to(rows: np.ndarray, lengths: np.ndarray, tokens: float) -> np.ndarray:
    """The first of `rows`, in their order, that hold at most `tokens` tokens, and at least one row."""
    return rows[: max(1, int(np.searchsorted(np.cumsum(lengths[rows]), tokens * (1 + 1e-12), side="right")))]
