"""A small corpus on disk and finished runs on it, written through the store as a worker would, in milliseconds."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from datamask.config import CorpusConfig, RunConfig, SelectionConfig
from datamask.corpus import Corpus
from datamask.runs.execute import execute
from datamask.runs.store import Run, RunStore
from datamask.work.context import Work

NASTY = "<b>bold</b> & [link](http://x) $x$ =1+1"


def write_shard(path: Path, n: int = 240, seed: int = 0, tail: str = "") -> CorpusConfig:
    """Three clumps in 8 dimensions, with text, a source to colour by and token counts; row 0 has a nasty text.

    Args:
        tail: ends every other text.
    """
    rng = np.random.default_rng(seed)
    clump = rng.integers(0, 3, n)
    features = rng.normal(0, 0.25, (n, 8))
    features[np.arange(n), clump] += 1.0
    texts = [NASTY, *(f"sample {i} of clump {clump[i]}, a few words long{tail}" for i in range(1, n))]
    pq.write_table(
        pa.table(
            {
                "chunk_id": [f"doc-{i:04d}" for i in range(n)],
                "quality_score": rng.normal(5, 1, n).astype(np.float32),
                "feature_arr": pa.FixedSizeListArray.from_arrays(pa.array(features.astype(np.float32).ravel()), 8),
                "text": texts,
                "source": pa.array(np.array(["web", "books", "code"])[clump]).dictionary_encode(),
                "n_tokens": rng.integers(5, 50, n).astype(np.int32),
            }
        ),
        path,
    )
    return CorpusConfig((str(path),))


def execute_run(store: RunStore, config: CorpusConfig, name: str = "", **options) -> Run:
    """A run that was really made, on one thread; options: of its `SelectionConfig`."""
    run = store.create(RunConfig(config, SelectionConfig.from_options(device="cpu", **options), name))
    execute(run, Work(threads=1))
    return run


def finish_run(
    store: RunStore,
    corpus: Corpus,
    config: CorpusConfig,
    scores: np.ndarray,
    *,
    name: str = "",
    shares: dict[str, float | None] | None = None,
    anchors: dict | None = None,
    run: Run | None = None,
    **options,
) -> Run:
    """A done run that selected the highest `scores`, with a short learning curve.

    Args:
        shares: calibrated quality and diversity of its summary.
        anchors: of its summary; None: 0 to 1 for every term.
        run: one that waits, which is done then; None: another one.
        options: of its `SelectionConfig`.
    """
    if run is None:
        run = store.create(RunConfig(config, SelectionConfig.from_options(**options), name))
    selection = run.config.selection
    n = len(corpus)
    size = selection.size(n)
    order = np.argsort(-np.asarray(scores), kind="stable")
    selected = np.zeros(n, bool)
    selected[order[:size]] = True
    shares = {"quality": 0.8, "diversity": 0.6, **(shares or {})}
    reached = {term: share or 0.0 for term, share in shares.items()}
    joint = selection.lamb * reached["quality"] + (1 - selection.lamb) * reached["diversity"]
    # the ends of a real run change with its size, here too little to be seen in a value
    end = {"random": 0.0, "best": 1.0 + 1e-9 * size, "best_kind": "best found"}
    anchors = anchors or {"quality": end, "diversity": {name: end for name, _ in selection.terms}}
    rows = pa.table(
        {
            "chunk_id": corpus.ids,
            "source_file": pa.array(["a.parquet"] * n).dictionary_encode(),
            "source_row": pa.array(np.arange(n)),
            "selected": pa.array(selected),
            "eligible": pa.array(np.ones(n, bool)),
            "logit": pa.array(scores, pa.float32()),
            "score": pa.array(scores, pa.float64()),
            "quality": pa.array(corpus.quality),
            "marginal_quality": pa.array(corpus.quality / size),
            "marginal_diversity": pa.array(np.linspace(-1, 1, n)),
        }
    )
    with run.writer() as writer:
        writer.set_status("running")
        writer.update_facts(
            fingerprint=corpus.fingerprint,
            n=n,
            selected=size,
            dim=corpus.dim,
            total_rows=n,
            anchors=anchors,
            columns=corpus.provenance.columns,
        )
        for step in range(1, 6):
            part = step / 5
            writer.append_metrics(
                {
                    "step": step,
                    "seconds": 0.1 * step,
                    "joint": joint * part,
                    "quality": reached["quality"] * part,
                    "diversity": reached["diversity"] * part,
                    "raw_quality": 5 + part,
                    "raw_diversity": -1 + part,
                }
            )
        writer.write_rows(rows)
        chosen = rows.take(pa.array(order[:size]))
        writer.write_selection(
            chosen.select(["chunk_id", "logit", "score", "quality", "source_file"]), run.config.to_dict()
        )
        writer.finish(
            "done",
            None,
            "converged",
            step=5,
            total_steps=5,
            summary={
                "run_id": run.id,
                "n": n,
                "selected": size,
                "tokens": None,
                "quality": float(corpus.quality[selected].mean()),
                "diversity": -0.25,
                "joint": 0.5,
                "calibrated": {**shares, "joint": joint},
                "anchors": anchors,
                "steps": 5,
                "seconds": 0.5,
            },
        )
    return run
