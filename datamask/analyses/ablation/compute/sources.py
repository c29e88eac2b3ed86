"""What targets are read from: the texts of a corpus, examples in its space, and the proxy model of both."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa

from datamask.analyses.ablation.compute.kept import StudyCache
from datamask.analyses.ablation.compute.proxy_models import BigramProxy, ProxyModel, TransformerProxy
from datamask.analyses.ablation.compute.transformer import SMALL, read_bytes
from datamask.corpus.corpus import Corpus
from datamask.corpus.text_space import features_of_texts
from datamask.evaluation.examples import Examples, check_count, distinct
from datamask.evaluation.measures.words import Words, read_words
from datamask.evaluation.pool import Pool
from datamask.polling import Poll, no_poll
from datamask.work.context import Report, Work


def text_column(corpus: Corpus) -> str | None:
    """The column of the corpus's texts; None: it has none."""
    column = corpus.provenance.columns.get("text")
    return column if column in corpus.metadata.column_names else None


def in_space(corpus: Corpus, examples: Examples, progress: Report, poll: Poll = no_poll) -> Examples:
    """The examples with features in the corpus's space: their own, else made of their texts.

    Raises:
        InputError: texts, and the corpus's features were not made by `datamask prepare`; or too few with known words.
        Stopped: from `poll`.
    """
    if examples.features is not None:
        return examples
    texts = examples.texts or ()
    features = features_of_texts(corpus, texts, Work(poll, progress))
    known = np.flatnonzero(features.any(axis=1))
    places = known[distinct(features[known], tuple(texts[place] for place in known))]
    return check_count(replace(examples, features=features[places], texts=tuple(texts[place] for place in places)))


def read_proxy(
    pool: Pool, more: Sequence[str], judge: str, lessons: StudyCache, progress: Report, poll: Poll
) -> tuple[Words, ProxyModel]:
    """The words of the corpus's texts and of more texts after them, and who learns from them."""
    progress(0.0, "reading the texts")
    corpus = pool.corpus
    own = corpus.metadata[text_column(corpus)].cast(pa.large_string())
    after = pa.chunked_array([pa.array(list(more), pa.large_string())])
    everything = pa.chunked_array([*own.chunks, *after.chunks], pa.large_string())
    words = read_words(everything, poll)
    proxy: ProxyModel = BigramProxy(words)
    if judge == "transformer":
        proxy = TransformerProxy(read_bytes(everything, words.cut, poll), pool.device, SMALL, lessons)
    return words, proxy
