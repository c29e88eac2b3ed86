"""Scores and embeddings of texts, made behind the Data page as `datamask prepare` makes them.

What is made is kept among the uploads, once per content, so it is bounded and removed as they are, and opened as soon
as it is there. Features come from TF-IDF or a model in a folder that visitors may read; functions are for the command
line, since a name that a visitor types must never be imported.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import time
from collections.abc import Callable, Iterable
from pathlib import Path

from datamask.config import CorpusConfig
from datamask.corpus.embedders import embedder_in
from datamask.corpus.preparation import prepare_shards
from datamask.dashboard.data.inputs import keep_uploads
from datamask.dashboard.data.openings import openings, title_of
from datamask.dashboard.drawing.signs import Sign
from datamask.files import sweep
from datamask.work.job import Job
from datamask.work.worker import worker

FOLDER = ".preparing"
KEPT_SECONDS = 86400.0
"""Embeddings of a stopped preparation are kept for a day."""


def key(runs_dir: Path, config: CorpusConfig, text_column: str, model: Path | None) -> str:
    """The name under which the worker knows this preparation."""
    asked = [str(runs_dir), list(config.inputs), text_column, str(model)]
    return f"prepare {hashlib.sha256(json.dumps(asked).encode()).hexdigest()[:16]}"


def start(
    runs_dir: Path,
    config: CorpusConfig,
    text_column: str,
    model: Path | None,
    used: Callable[[], Iterable[CorpusConfig]] = tuple,
) -> Job:
    """Prepare texts in the background, or join the job that does. Its result is the configuration of what it made.

    Args:
        runs_dir: the folder of all runs.
        config: of files with texts, every path checked against the roots.
        text_column: the column with the texts.
        model: the folder of an embedding model, checked in the same way; None: TF-IDF.
        used: as of `keep_uploads`.
    """
    name = key(runs_dir, config, text_column, model)

    def work(job: Job) -> CorpusConfig:
        folder = runs_dir / FOLDER
        _tidy(folder)
        made = folder / f"{name.rpartition(' ')[2]}.parquet"
        embedder = embedder_in(model) if model is not None else None
        try:
            prepare_shards(config.inputs, made, text_column=text_column, embedder=embedder, work=job.work)
            upload = f"{Path(title_of(config)).stem}-{model.name if model is not None else 'tfidf'}.parquet"
            with made.open("rb") as file:
                (kept,) = keep_uploads([(upload, file)], runs_dir, used)
        finally:
            made.unlink(missing_ok=True)
        prepared = CorpusConfig((str(kept),))
        openings(runs_dir).start(prepared, title_of(prepared))
        return prepared

    sign = Sign(f"Embeddings of {title_of(config)}", "pages/data.py", {})
    return worker().start(name, work, device="cpu", sign=sign)


def _tidy(folder: Path) -> None:
    """Remove what killed preparations left, and embeddings of more than a day ago."""
    sweep(folder)
    with contextlib.suppress(OSError):
        for file in folder.glob(".*.embeddings"):
            if time.time() - file.stat().st_mtime > KEPT_SECONDS:
                file.unlink()
