"""The clusters of a corpus, offered where a panel needs them and they are not there yet."""

from __future__ import annotations

from pathlib import Path

from datamask.corpus import Corpus
from datamask.dashboard.linked import topics
from datamask.dashboard.shell import background


def offer(corpus: Corpus, cache_dir: Path, name: str) -> topics.Topics | None:
    """Return the clusters; while there are none, offer them by a button of that name and return None."""
    return background.offer(
        topics.key_of(corpus),
        "Find clusters",
        lambda: topics.start(corpus, corpus.texts, cache_dir),
        name=name,
        icon=":material/bubble_chart:",
        find=lambda: topics.load(corpus, cache_dir),
    )
