"""The marked row: the one sample that the view is about, chosen by a click on the map or in a table."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from datamask.corpus import Corpus
from datamask.dashboard.shell import view as views


def chosen(corpus: Corpus) -> int | None:
    """The marked row of this corpus; None: none is, or it is a row of another corpus."""
    wanted = views.now().sample
    if not wanted:
        return None
    ids = corpus.ids
    text = ids if pa.types.is_string(ids.type) else ids.cast(pa.string())
    row: int = pc.index(text, pa.scalar(wanted, text.type)).as_py()
    if row < 0:
        views.change(sample="")
        return None
    return row


def choose(corpus: Corpus, row: int | None) -> None:
    """Mark a row; None: none."""
    views.change(sample="" if row is None else str(corpus.ids[int(row)].as_py()))
