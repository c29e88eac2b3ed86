"""A corpus at a glance: how large, how its quality is spread, its first rows, and every problem found in it."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from datamask.corpus import Corpus

BINS = 48
FIRST_ROWS = 100
TEXT_LIMIT = 240


def quality_histogram(corpus: Corpus) -> pd.DataFrame:
    """Columns ``low, high, rows``: how many rows have their quality in each of up to `BINS` equal bins."""
    values = corpus.quality
    distinct = np.unique(values[:100_000])
    bins = int(min(BINS, max(1, len(distinct))))
    rows, edges = np.histogram(values, bins=bins)
    return pd.DataFrame({"low": edges[:-1], "high": edges[1:], "rows": rows})


def first_rows(corpus: Corpus, count: int = FIRST_ROWS) -> pd.DataFrame:
    """The first rows as text: id, quality, length, then the metadata, each cell cut at `TEXT_LIMIT` characters."""
    count = min(count, len(corpus))
    roles = corpus.provenance.columns
    table = {
        str(roles.get("id") or "id"): [str(v) for v in corpus.ids.slice(0, count).to_pylist()],
        "quality": corpus.quality[:count],
    }
    if corpus.lengths is not None:
        table[str(roles.get("length") or "length")] = corpus.lengths[:count]
    text = roles.get("text")
    names = [n for n in corpus.metadata.column_names if n not in table]
    for name in sorted(names, key=lambda n: n != text):
        cells = corpus.metadata[name].slice(0, count)
        if corpus.metadata_columns[name].has_numbers:
            table[name] = cells.to_pandas()
        else:
            if pa.types.is_string(cells.type) or pa.types.is_large_string(cells.type):
                cells = pc.utf8_slice_codeunits(cells, 0, TEXT_LIMIT + 1)
            table[name] = [_cut(value) for value in cells.to_pylist()]
    return pd.DataFrame(table)


def problems(corpus: Corpus) -> pd.DataFrame:
    """Columns ``problem, rows``: every reason why rows were left out, the most frequent first."""
    dropped = sorted(corpus.provenance.dropped.items(), key=lambda item: -item[1])
    return pd.DataFrame(
        {"problem": [reason for reason, _ in dropped], "rows": [count for _, count in dropped]},
    ).astype({"rows": "int64"})


def constant_quality(corpus: Corpus) -> str:
    """A sentence where all rows have one quality; empty else."""
    if len(corpus) < 2 or float(np.ptp(corpus.quality)) > 0:
        return ""
    return (
        f"The quality score is {corpus.quality[0]:.4g} in all {len(corpus):,} rows, so it prefers none; choose another "
        "quality column."
    )


def _cut(value: object) -> str:
    if value is None:
        return ""
    text = " ".join(str(value).split())
    return text if len(text) <= TEXT_LIMIT else text[: TEXT_LIMIT - 1] + "…"
