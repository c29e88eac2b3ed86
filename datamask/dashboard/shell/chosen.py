"""The marked row: the one sample that the view is about, chosen by a click on the map or in a table."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from datamask.corpus import Corpus
from datamask.dashboard.shell import view as views


def chosen(corpus: Corpus) -> int | None:
    """The marked row of this corpus; None: none is, or it is a row of another corpus."""
    wanted = views.now().sample
    row = row_of(corpus, wanted) if wanted else None
    if wanted and row is None:
        views.change(sample="")
    return row


def row_of(corpus: Corpus, wanted: str) -> int | None:
    """The row of an id as a text; None: there is none."""
    ids = corpus.ids
    text = ids if pa.types.is_string(ids.type) else ids.cast(pa.string())
    row: int = pc.index(text, pa.scalar(wanted, text.type)).as_py()
    return row if row >= 0 else None


def choose(corpus: Corpus, row: int | None) -> None:
    """Mark a row; None: none."""
    views.change(sample="" if row is None else str(corpus.ids[int(row)].as_py()))
