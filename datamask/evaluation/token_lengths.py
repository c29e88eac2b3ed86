"""Lengths of rows in tokens, for whatever counts tokens in the place of rows."""

from __future__ import annotations

import numpy as np

from datamask.corpus.corpus import Corpus
from datamask.errors import InputError


def token_lengths(corpus: Corpus) -> np.ndarray:
    """Tokens per row, float64 ``(N,)``.

    Raises:
        InputError: the corpus has no lengths.
    """
    if corpus.lengths is None:
        raise InputError(
            "the tokens of every row are needed, and this corpus has no lengths; name their column with "
            "--length_column, or count rows"
        )
    return corpus.lengths
