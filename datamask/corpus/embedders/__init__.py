"""Embedders: what makes features of texts.

| word | features |
|---|---|
| ``tfidf`` | TF-IDF and truncated SVD, learned from the texts themselves (`datamask.corpus.text_features`) |
| ``model2vec:PATH`` | a static embedding model in a folder of this machine (`model2vec`) |
| ``st:NAME_OR_PATH`` | a sentence-transformers model in a folder, or on the Hugging Face Hub (`sentences`) |
| ``MODULE:FUNCTION`` | a function of your own: a list of texts to an array ``(n, d)`` (`function`) |

To add one: a file here with a class that keeps the `contract`, and its line in the table.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from datamask.corpus.embedders.contract import TFIDF, Embedder
from datamask.corpus.embedders.function import FUNCTION_NAME, FunctionEmbedder
from datamask.corpus.embedders.model2vec import Model2Vec
from datamask.corpus.embedders.sentences import SentenceModel, is_sentence_model
from datamask.errors import OptionError

EMBEDDERS: dict[str, Callable[[str, str | None], Embedder]] = {
    "model2vec": lambda path, device: Model2Vec(path),
    "st": SentenceModel,
}
"""Word before the colon -> what opens the embedder that the rest names, for a device."""


def embedder_of(name: str, device: str | None = None) -> Embedder | None:
    """Return the embedder that ``--embedder`` names; None for ``tfidf``, which learns from the texts.

    Args:
        device: that a sentence-transformers model computes on; None: a GPU where there is one.

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
        return EMBEDDERS[kind](rest, device)
    if FUNCTION_NAME.fullmatch(name):
        return FunctionEmbedder(name)
    raise OptionError(
        f"--embedder must be {TFIDF}, model2vec:PATH, st:NAME_OR_PATH or MODULE:FUNCTION, such as "
        f"mypackage.mymodule:embed, got {name!r}"
    )


def embedder_in(folder: Path) -> Embedder:
    """Return the embedder whose model a folder holds.

    Raises:
        OptionError: it holds none that can be used.
    """
    return SentenceModel(folder) if is_sentence_model(folder) else Model2Vec(folder)
