"""New texts in the space of a corpus whose TF-IDF features `datamask prepare` made.

What `prepare` learned is not kept with the shards, and need not be: learned again from the corpus's own texts
(`TextFeatures`), it spans the same space up to a rotation, which is found on half of some rows and tried on the others.
Where the rows come out elsewhere than they are, the features were made by something else, and new texts are refused.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from datamask.corpus.beginnings import beginnings
from datamask.corpus.corpus import Corpus
from datamask.corpus.text_features import FIT_LIMIT, TextFeatures
from datamask.errors import InputError
from datamask.work.context import UNWATCHED, Work

COMPARED = 4_000
"""Rows looked at, half to find the rotation and half to try it."""

SAME, SHARE = 0.95, 0.9
"""So near must a row come out to where it is, and so many of the rows. Of 12,000 package descriptions, with 64 and with
256 dimensions, all come out at a cosine of 1.0000; learned from a random half of what was prepared, 30 to 44 % of them
reach 0.95; of embeddings by a transformer none does, half lie below 0.49."""

WAY_OUT = (
    "give the features of your texts, by the model that made the corpus's (--target features:FILE.parquet), or the ids "
    "of rows of the corpus (--target ids:FILE)"
)


def features_of_texts(corpus: Corpus, texts: Sequence[str], work: Work = UNWATCHED) -> np.ndarray:
    """Features of new texts, float32 ``(m, d)`` of unit length; all zero where no word of a text is known.

    Raises:
        InputError: the corpus has no texts, or its features were not made of them by `datamask prepare`.
        Stopped: from `work.poll`.
    """
    column = corpus.provenance.columns.get("text")
    if column not in corpus.metadata.column_names:
        raise InputError(f"texts have no place among features without the texts they were made of; {WAY_OUT}")

    def texts_of(rows: np.ndarray) -> list[str]:
        return [text or "" for text in beginnings(corpus.metadata[column], rows).to_pylist()]

    order = np.argsort(corpus.hashes(), kind="stable")
    learned = TextFeatures(corpus.dim).fit(texts_of(np.sort(order[:FIT_LIMIT])), work=work)
    compared = order[:COMPARED]
    remade = learned.transform(texts_of(compared))
    rotation, agreement = _rotation(remade, corpus.features[compared])
    if not agreement >= SHARE:
        raise InputError(
            f"example texts need TF-IDF features that `datamask prepare` made of the corpus's texts: made again, "
            f"{agreement:.0%} of the rows come out where they are, {SHARE:.0%} are needed; open all shards that were "
            f"prepared together, or {WAY_OUT}"
        )
    turned = learned.transform(texts) @ rotation
    lengths = np.linalg.norm(turned, axis=1, keepdims=True)
    features: np.ndarray = np.where(lengths > 0, turned / np.where(lengths > 0, lengths, 1.0), 0.0).astype(np.float32)
    return features


def _rotation(remade: np.ndarray, features: np.ndarray) -> tuple[np.ndarray, float]:
    """The rotation, float64 ``(d', d)``, that brings the first half of some rows nearest to the features of these
    (Schoenemann 1966), and the share of the other half that it brings within `SAME`."""
    half = len(remade) // 2
    left, _, right = np.linalg.svd(remade[:half].T.astype(np.float64) @ features[:half], full_matrices=False)
    rotation = left @ right
    turned = remade[half:] @ rotation
    lengths = np.linalg.norm(turned, axis=1)
    cosines = (turned * features[half:]).sum(axis=1) / np.where(lengths > 0, lengths, 1.0)
    return rotation, float((cosines >= SAME).mean()) if len(cosines) else 0.0
