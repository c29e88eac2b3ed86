"""Clusters of a corpus with words for them: computed once in the background, kept on disk. No streamlit.

The clusters are those of the scoreboard (k-means on the features). A cluster is called by the words that its texts hold
more often than all texts do; it is a name, not an explanation.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

from datamask.corpus import Corpus
from datamask.dashboard import tasks
from datamask.errors import poll_of
from datamask.files import DAMAGED, replacing

VERSION = 1
READ = 40
"""Texts of each cluster that are read for its name."""

LETTERS = 500
"""Of each of them."""

WORD = re.compile(r"[^\W\d_]{3,24}")
SAID = 3
"""Words in a name."""


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
    """The name under which `datamask.dashboard.tasks` knows the clustering of this corpus."""
    return f"topics-{corpus.fingerprint}"


def load(corpus: Corpus, cache_dir: str | Path) -> Topics | None:
    """The clusters; None where they are not computed yet."""
    try:
        with np.load(path_of(corpus, cache_dir), allow_pickle=False) as file:
            codes, names = file["codes"], tuple(map(str, file["names"]))
    except DAMAGED:
        return None
    valid = codes.shape == (len(corpus),) and codes.dtype == np.int32 and 0 <= codes.min() <= codes.max() < len(names)
    return Topics(codes, names) if valid else None


def start(corpus: Corpus, texts: pa.ChunkedArray | None, cache_dir: str | Path) -> tasks.Task:
    """Compute them in the background; joins the work under way where there is one."""
    def work(report: tasks.Progress, should_stop) -> None:
        # torch comes with it, so only in the thread that needs it
        from datamask.evaluation.measures.clusters import cluster_labels

        report(0.1, "grouping similar samples")
        poll = poll_of(should_stop, "grouping was stopped")
        codes = cluster_labels(corpus, Path(cache_dir), poll).astype(np.int32)
        report(0.8, "finding words for the groups")
        names = names_of(codes, texts)
        with replacing(path_of(corpus, cache_dir)) as part, part.open("wb") as file:
            np.savez_compressed(file, codes=codes, names=np.array(names))

    return tasks.start(key_of(corpus), work)


def names_of(codes: np.ndarray, texts: pa.ChunkedArray | None, seed: int = 0) -> tuple[str, ...]:
    """A name for each cluster, ``12 · plot, axis, colour``; its number alone where there are no texts.

    Words are ranked by ``p log(p / q)``, p the share of the cluster's texts that hold the word and q that of all read.
    """
    count = int(codes.max()) + 1
    if texts is None:
        return tuple(f"cluster {k + 1}" for k in range(count))
    order = np.random.default_rng(seed).permutation(len(codes))
    order = order[np.argsort(codes[order], kind="stable")]
    ends = np.searchsorted(codes[order], np.arange(count + 1))
    held = []
    for k in range(count):
        rows = order[ends[k]:ends[k + 1]][:READ]
        some = Counter()
        for text in texts.take(pa.array(rows)).to_pylist():
            some.update({word.lower() for word in WORD.findall((text or "")[:LETTERS])})
        held.append((some, max(len(rows), 1)))
    everywhere, read = Counter(), sum(size for _, size in held)
    for some, _ in held:
        everywhere.update(some)
    names = []
    for k, (some, size) in enumerate(held):
        weight = {word: n / size * np.log(n / size * read / everywhere[word]) for word, n in some.items()}
        ranked = sorted(some, key=lambda word, weight=weight: (-weight[word], word))
        names.append(" · ".join([str(k + 1), ", ".join(ranked[:SAID])]) if ranked else f"cluster {k + 1}")
    return tuple(names)


def path_of(corpus: Corpus, cache_dir: str | Path) -> Path:
    """Where the clusters are kept."""
    return Path(cache_dir) / corpus.fingerprint / f"topics-v{VERSION}.npz"
