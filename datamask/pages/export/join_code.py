"""Code that joins downloaded ids back to the shards, for pandas, datasets and DuckDB. Pure."""

from __future__ import annotations

import glob
from collections.abc import Iterable
from pathlib import Path

READERS = {".parquet": "parquet", ".csv": "csv", ".jsonl": "json"}
"""Kinds of shards that all three read, by the ending: what datasets and DuckDB call them."""


def join_code(id_column: str, ids: str, shards: Iterable[str]) -> dict[str, str]:
    """Return the code by the name of the library; empty where shards are of several kinds, or not read by all three.

    Args:
        id_column: of the shards and the ids. ids: a parquet file with that column. shards: paths of all of them.
    """
    paths = [Path(shard) for shard in shards]
    kinds = {READERS.get(path.suffix, "") for path in paths}
    if len(kinds) != 1 or "" in kinds:
        return {}
    (kind,) = kinds
    folders = dict.fromkeys((path.parent, path.suffix) for path in paths)
    patterns = [f"{glob.escape(str(folder))}/*{suffix}" for folder, suffix in folders]
    if len(paths) == 1:
        patterns = [glob.escape(str(paths[0]))]
    lines = ", lines=True" if kind == "json" else ""
    files = f"sorted(glob({patterns[0]!r}))"
    if len(patterns) > 1:
        files = f"[file for pattern in {patterns!r} for file in sorted(glob(pattern))]"
    column, listed = _sql(id_column, '"'), ", ".join(_sql(pattern, "'") for pattern in patterns)
    return {
        "pandas": f"""\
from glob import glob
import pandas as pd

files = {files}
ids = pd.read_parquet({ids!r})[{id_column!r}]
rows = pd.concat(pd.read_{kind}(file{lines}) for file in files)
kept = rows[rows[{id_column!r}].isin(ids)]""",
        "datasets": f"""\
from datasets import load_dataset

ids = set(load_dataset("parquet", data_files={ids!r}, split="train")[{id_column!r}])
rows = load_dataset({kind!r}, data_files={patterns!r}, split="train")
kept = rows.filter(lambda row: row[{id_column!r}] in ids)""",
        "DuckDB": f"""\
SELECT corpus.*
FROM read_{kind}([{listed}]) AS corpus
SEMI JOIN read_parquet({_sql(ids, "'")}) AS ids USING ({column})""",
    }


def _sql(text: str, quote: str) -> str:
    return quote + text.replace(quote, 2 * quote) + quote
