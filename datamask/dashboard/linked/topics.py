"""Clusters of a corpus with words for them: computed once in the background, kept on disk. No streamlit.

The clusters are those of the scoreboard (k-means on the features). A cluster is called by the words that its texts hold
more often than all texts do, words without a subject of their own ("this", "have") aside; it is a name, not an
explanation.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

from datamask.corpus import Corpus
from datamask.corpus.beginnings import beginnings
from datamask.work.job import Job
from datamask.work.lanes import Priority
from datamask.work.result_file import Content, Entry, require
from datamask.work.stored import StoredResult
from datamask.work.worker import worker

VERSION = 1
READ = 40
"""Texts of each cluster that are read for its name."""

LETTERS = 500
"""Of each of them."""

WORD = re.compile(r"[^\W\d_]{3,24}")
IN_A_NAME = 3
"""Words."""


@dataclass(frozen=True)
class Topics:
    """The clusters.

    Attributes:
        codes: int32 ``(N,)``.
        names: of the clusters, all different.
    """

    codes: np.ndarray
    names: tuple[str, ...]


def key_of(corpus: Corpus) -> str:
    """The name under which the worker knows the clustering of this corpus."""
    return f"topics-{corpus.fingerprint}"


def load(corpus: Corpus, cache_dir: str | Path) -> Topics | None:
    """The clusters; None where they are not computed yet."""
    return stored_topics(corpus, cache_dir).find_again()


def start(
    corpus: Corpus, texts: pa.ChunkedArray | None, cache_dir: str | Path, priority: Priority = Priority.PAGE
) -> Job:
    """Compute them in the background; joins the work under way where there is one."""

    def compute(job: Job) -> Topics:
        # torch comes with it, so only in the thread that needs it
        from datamask.evaluation.measures.clusters import cluster_labels

        job.report(0.1, "finding groups of similar rows")
        codes = cluster_labels(corpus, Path(cache_dir), job.poll).astype(np.int32)
        job.report(0.8, "finding words for the groups")
        return Topics(codes, names_of(codes, texts))

    def work(job: Job) -> None:
        stored_topics(corpus, cache_dir).find_or_compute(lambda: compute(job), job.poll)

    return worker().start(key_of(corpus), work, device="cpu", priority=priority)


def names_of(codes: np.ndarray, texts: pa.ChunkedArray | None, seed: int = 0) -> tuple[str, ...]:
    """A name for each cluster, ``12 · plot, axis, colour``; its number alone where there are no texts.

    Words are ranked by ``p log(p / q)``, p the share of the cluster's texts that hold the word and q that of all read.
    """
    count = int(codes.max()) + 1
    if texts is None:
        return tuple(f"cluster {k + 1}" for k in range(count))
    # takes a moment to import, and only this needs it
    from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS

    order = np.random.default_rng(seed).permutation(len(codes))
    order = order[np.argsort(codes[order], kind="stable")]
    ends = np.searchsorted(codes[order], np.arange(count + 1))
    held = []
    for k in range(count):
        rows = order[ends[k] : ends[k + 1]][:READ]
        some: Counter[str] = Counter()
        for text in beginnings(texts, rows, LETTERS).to_pylist():
            some.update({word.lower() for word in WORD.findall(text or "")} - ENGLISH_STOP_WORDS)
        held.append((some, max(len(rows), 1)))
    everywhere: Counter[str] = Counter()
    read = sum(size for _, size in held)
    for some, _ in held:
        everywhere.update(some)
    names = []
    for k, (some, size) in enumerate(held):
        weight = {word: n / size * np.log(n / size * read / everywhere[word]) for word, n in some.items()}
        ranked = [word for _, word in sorted((-value, word) for word, value in weight.items())]
        names.append(" · ".join([str(k + 1), ", ".join(ranked[:IN_A_NAME])]) if ranked else f"cluster {k + 1}")
    return tuple(names)


def stored_topics(corpus: Corpus, cache_dir: str | Path | None) -> StoredResult[Topics]:
    """Describe a corpus's clusters and their words in the cache."""
    return StoredResult(
        cache_dir,
        Entry(corpus.fingerprint, "topics", VERSION),
        read=lambda content: _kept_topics(content, len(corpus)),
        write=lambda topics: Content(arrays={"codes": topics.codes, "names": np.array(topics.names)}),
        required=True,
    )


def _kept_topics(content: Content, n: int) -> Topics:
    """The clusters that a file holds. Raises Implausible where they are none of n rows."""
    codes, names = content.arrays["codes"], content.arrays["names"]
    require(codes.dtype == np.int32 and codes.shape == (n,), "the clusters are of another corpus")
    require(
        names.dtype.kind == "U" and names.ndim == 1 and len(set(names.tolist())) == len(names),
        "the clusters have no names of their own",
    )
    require(codes.min() >= 0 and codes.max() < len(names), "a cluster has no name")
    codes.flags.writeable = False
    return Topics(codes, tuple(map(str, names)))
