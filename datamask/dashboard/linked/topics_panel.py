"""The clusters of a corpus, offered where a panel needs them and they are not there yet."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from datamask.corpus import Corpus
from datamask.dashboard.linked import topics
from datamask.dashboard.shell import background


def offer(
    corpus: Corpus,
    cache_dir: Path,
    name: str,
    label: str = "Find clusters",
    icon: str = ":material/bubble_chart:",
    **look: Any,
) -> topics.Topics | None:
    """Return the clusters; while there are none, offer them and return None.

    Args:
        name, label, icon: of the button. look: all else of `background.offer`.
    """
    return background.offer(
        topics.key_of(corpus),
        label,
        lambda: topics.start(corpus, corpus.texts, cache_dir),
        name=name,
        icon=icon,
        find=lambda: topics.load(corpus, cache_dir),
        **look,
    )
