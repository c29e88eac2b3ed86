"""Small runs for the tests of the run folder."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from datamask.config import CorpusConfig, RunConfig, SelectionConfig
from datamask.runs.store import Run, RunStore


def config(name: str = "", **selection) -> RunConfig:
    """A run's settings on a shard that need not exist."""
    return RunConfig(CorpusConfig(("shard.parquet",)), SelectionConfig.from_options(**selection), name)


def finished(root: Path, shards: dict[str, pa.Table], considered: dict[str, list[int]], selected: dict[str, list[int]],
             **options) -> Run:
    """A done run over real shards: writes them, and the tables a worker would have written.

    Args:
        shards: file name -> its table, with an ``id`` column.
        considered: file name -> the rows that are in the corpus.
        selected: file name -> those of them that are selected.
    """
    rows = []
    for name, table in shards.items():
        pq.write_table(table, root / name)
        ids = table["id"].to_pylist()
        rows += [{"id": ids[row], "source_file": str(root / name), "source_row": row,
                  "selected": row in selected[name]} for row in considered[name]]
    table = pa.Table.from_pylist(rows)
    code = table.schema.get_field_index("source_file")
    table = table.set_column(code, "source_file", table["source_file"].dictionary_encode())
    run = RunStore(root / "runs").create(config(**options))
    with run.writer() as writer:
        writer.set_status("running")
        writer.update_facts(columns={"id": "id"}, files=[str(root / name) for name in shards])
        writer.write_rows(table)
        chosen = [row for row in rows if row["selected"]]
        writer.write_selection(pa.table({"id": [row["id"] for row in chosen],
                                         "rank": list(range(1, len(chosen) + 1))}), run.config.to_dict())
        writer.finish("done", {"selected": len(chosen)}, "converged")
    return run
