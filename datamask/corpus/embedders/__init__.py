"""Embedders: what makes features of texts.

| word | features |
|---|---|
| ``tfidf`` | TF-IDF and truncated SVD, learned from the texts themselves (`datamask.corpus.text_features`) |
| ``model2vec:PATH`` | a static embedding model in a folder of this machine (`model2vec`) |
| ``MODULE:FUNCTION`` | a function of your own: a list of texts to an array ``(n, d)`` (`function`) |

To add one: a file here with a class that keeps the `contract`, and its line in the table.
"""

from __future__ import annotations

from collections.abc import Callable

from datamask.corpus.embedders.contract import TFIDF, Embedder
from datamask.corpus.embedders.function import FUNCTION_NAME, FunctionEmbedder
from datamask.corpus.embedders.model2vec import Model2Vec
from datamask.errors import OptionError

EMBEDDERS: dict[str, Callable[[str], Embedder]] = {"model2vec": Model2Vec}
"""Word before the colon -> what opens the embedder that the rest names."""


def embedder_of(name: str) -> Embedder | None:
    """Return the embedder that ``--embedder`` names; None for ``tfidf``, which learns from the texts.

    A function runs code of its author: call this only with names that the person in front of the machine gave.

    Raises:
        OptionError: the name is none of the table, or what it names cannot be used.

    Example:
        >>> embedder_of("tfidf") is None
        True
    """
    if name == TFIDF:
        return None
    kind, _, rest = name.partition(":")
    if kind in EMBEDDERS:
        return EMBEDDERS[kind](rest)
    if FUNCTION_NAME.fullmatch(name):
        return FunctionEmbedder(name)
    raise OptionError(
        f"--embedder must be {TFIDF}, model2vec:PATH or MODULE:FUNCTION, such as mypackage.mymodule:embed, got {name!r}"
    )
