"""The demo corpus, which comes with the program, with what was computed of it beforehand.

Map, run, selections along λ and ablation are copied into the runs folder when the demo is opened there, so that they
are looked for in one place. Results in the cache are copied whenever they are missing; the run is copied once, so that
one that somebody deletes does not come back.
"""

from __future__ import annotations

import json
import logging
import shutil
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from datamask import parquet
from datamask.config import CorpusConfig
from datamask.dashboard.server.scripts import FOLDER
from datamask.errors import DatamaskError
from datamask.files import replacing, replacing_folder, write_text
from datamask.runs.store import RunStore
from datamask.work.locks import only_one

log = logging.getLogger(__name__)

DEMO = FOLDER / "sample_data" / "demo"
CORPUS = DEMO / "demo.parquet"
TITLE, RUN_ID = "Demo corpus", "demo-masks"

NOTE = ".demo"
"""In a runs folder: the demo was opened there."""


def config() -> CorpusConfig:
    """Return the demo as a corpus."""
    return CorpusConfig(inputs=(str(CORPUS),))


def results() -> Path:
    """Return the folder with what was computed of the demo: cache and run."""
    return CORPUS.parent.with_name("demo_runs")


def install(runs_dir: Path) -> None:
    """Copy what was computed of the demo into a runs folder. Safe from any thread and process.

    What cannot be written is logged: the demo opens all the same, and its map is computed.
    """
    try:
        with only_one(runs_dir / ".demo.lock"):
            for source in sorted(results().glob("cache/*/*.cache")):
                target = RunStore(runs_dir).cache_dir / source.relative_to(results() / "cache")
                if not target.is_file():
                    with replacing(target) as part:
                        shutil.copyfile(source, part)
            if not (runs_dir / NOTE).is_file():
                if (results() / RUN_ID).is_dir() and not (runs_dir / RUN_ID).exists():
                    _install_run(runs_dir / RUN_ID)
                write_text(runs_dir / NOTE, "")
    except (DatamaskError, OSError) as error:
        log.warning("what was computed of the demo is not copied: %s", error)


def _install_run(target: Path) -> None:
    """Copy the run. What names the corpus, ``demo.parquet`` where it was built, names the place where it lies here."""
    name, here = CORPUS.name, str(CORPUS)
    with replacing_folder(target) as part:
        for source in (results() / RUN_ID).iterdir():
            if source.suffix == ".json":
                write_text(part / source.name, source.read_text().replace(json.dumps(name), json.dumps(here)))
            elif source.suffix == ".parquet":
                table = parquet.read_table(source)
                at, field = table.schema.get_field_index("source_file"), table.schema.field("source_file")
                files = pa.array([here] * table.num_rows).cast(field.type)
                known = {key: text.replace(name.encode(), here.encode()) for key, text in _metadata(table).items()}
                pq.write_table(table.set_column(at, field, files).replace_schema_metadata(known), part / source.name)
            else:
                shutil.copyfile(source, part / source.name)


def _metadata(table: pa.Table) -> dict[bytes, bytes]:
    return dict(table.schema.metadata or {})
