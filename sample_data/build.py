"""Build the demo corpus: docstrings of permissively licensed packages with embeddings, and what pages show of them.

    python sample_data/build.py MODEL
    python sample_data/build.py --results

MODEL is the folder of a model2vec model. Needs the packages of `sample_data.docstrings.PACKAGES` installed; downloads
nothing and imports none of the packages that it reads.

With `--results` the rows stay, and run, selections along λ, map, names and ablation are made anew: pages do not find
the committed ones after an option, a version or a definition changed. README.md describes the files.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import json
import re
import shutil
import sys
import tempfile
from collections import Counter, defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

ROOT = Path(__file__).resolve().parent.parent
if str(ROOT) not in sys.path:
    # run as a script, the folder on the path is this one and not the project's
    sys.path.insert(0, str(ROOT))

from datamask.ablation.question import GREEDY, SIMPLE, AblationQuestion  # noqa: E402 - after the path
from datamask.config import CorpusConfig, RunConfig, SelectionConfig  # noqa: E402
from datamask.corpus import open_corpus  # noqa: E402
from datamask.corpus.corpus import Corpus  # noqa: E402
from datamask.corpus.embedders.contract import METADATA_KEY, Embedder, metadata_of, unit_rows  # noqa: E402
from datamask.corpus.embedders.model2vec import Model2Vec  # noqa: E402
from datamask.corpus.preparation import feature_array  # noqa: E402
from datamask.files import replacing_folder, write_text  # noqa: E402
from datamask.work.kept import Kept  # noqa: E402
from sample_data.docstrings import collect, is_public, python_files  # noqa: E402
from sample_data.notice import notice, versions  # noqa: E402
from sample_data.uses import Uses, count_uses  # noqa: E402

if TYPE_CHECKING:
    from datamask.runs.store import RunStore

DEMO = ROOT / "sample_data" / "demo"
RESULTS = ROOT / "sample_data" / "demo_runs"
SHARD, NOTICE, FACTS = "demo.parquet", "NOTICE", "facts.json"

PER_SOURCE = 490
"""Docstrings of each package at most, so that none fills the map: some 6,000 in all."""

LONGEST = 2_000
"""Characters. Longer docstrings are left out, none is cut."""

RUN_ID, RUN_NAME = "demo-masks", "Demo (learned masks)"
SELECTION = {"estimator": "counterfactual", "lamb": 0.5}
QUESTION = AblationQuestion(
    label="source", methods=(*SIMPLE, GREEDY), lambdas=(0.0, 0.5, 0.85), objectives=("facility",), seeds=6
)

Row = tuple[str, str, str]
"""Qualified name, source, text."""


def choose(pool: list[Row]) -> list[Row]:
    """Return the demo's rows: of each source `PER_SOURCE` at most, those with the smallest hashes of their names."""
    by_source: dict[str, list[Row]] = defaultdict(list)
    for row in pool:
        if is_public(row[0]) and len(row[2]) <= LONGEST:
            by_source[row[1]].append(row)
    chosen = [row for rows in by_source.values() for row in sorted(rows, key=_hash)[:PER_SOURCE]]
    return sorted(chosen, key=_hash)


def words_and_marks(text: str) -> int:
    """Return how many words and punctuation marks a docstring has: its length, as no vocabulary is named."""
    return len(re.findall(r"\w+|[^\w\s]", text))


def _hash(row: Row) -> bytes:
    return hashlib.blake2b(row[0].encode(), digest_size=8).digest()


def quality_of(counts: np.ndarray) -> np.ndarray:
    """Return the quality of uses, float32: the binary logarithm of one more. A name that is not used has 0.

    Args:
        counts: uses outside the own module, ``(N,)``.

    Example:
        >>> quality_of(np.array([0.0, 3.0])).tolist()
        [0.0, 2.0]
    """
    quality: np.ndarray = np.log2(1.0 + counts).astype(np.float32)
    return quality


def table(rows: list[Row], uses: Uses, model: Embedder) -> pa.Table:
    """Return the corpus; rows that the model knows no word of are left out."""
    names, sources, texts = (list(column) for column in zip(*rows, strict=True))
    features = model.transform(texts)
    known = features.any(axis=1)
    # cosines of static embeddings are high: what all texts share is taken out
    features = unit_rows(features - features[known].mean(axis=0))
    counts = np.array([uses.counts.get(name, 0.0) for name in names])
    columns = {
        "chunk_id": pa.array(names),
        "quality_score": pa.array(quality_of(counts)),
        "feature_arr": feature_array(features),
        "text": pa.array(texts),
        "source": pa.array(sources).dictionary_encode(),
        "kind": pa.array([uses.kinds[name] for name in names]).dictionary_encode(),
        "uses": pa.array(counts.astype(np.float32)),
        "n_tokens": pa.array(np.array([words_and_marks(text) for text in texts], np.int32)),
    }
    made = pa.table(columns).filter(pa.array(known)).combine_chunks()
    return made.replace_schema_metadata({METADATA_KEY: metadata_of(model)})


def keep_results() -> None:
    """Compute what the pages show of the demo, and put it into `RESULTS`: the cache, and the folder of a run."""
    # torch comes with these
    from datamask.analyses.ablation.compute.kept_study import compute
    from datamask.dashboard.map import map_layout
    from datamask.runs.store import RunStore
    from datamask.work.context import Work

    # by its name alone: where it lies is known where it is opened
    with tempfile.TemporaryDirectory(prefix="datamask-demo-") as scratch, contextlib.chdir(DEMO):
        store, config = RunStore(scratch), CorpusConfig((SHARD,))
        corpus = open_corpus(config)
        map_layout.prepare(corpus, store.cache_dir, Work(report=_say))
        compute(corpus, QUESTION, store.cache_dir, work=Work(report=_say))
        _solve(corpus, store.cache_dir)
        with replacing_folder(RESULTS) as folder:
            for stored in results(corpus, store.cache_dir):
                target = folder / "cache" / stored.entry.subject
                target.mkdir(parents=True, exist_ok=True)
                shutil.copy(stored.path, target)
            _run(store, folder)


def _run(store: RunStore, folder: Path) -> None:
    """Select from the demo in the folder that is current, and put the folder of the run into `folder`."""
    from datamask.runs.attempt import attempt
    from datamask.work.context import Work

    config = RunConfig(CorpusConfig((SHARD,)), SelectionConfig.from_options(**SELECTION), RUN_NAME)
    run = store.create(config, run_id=RUN_ID)
    attempt(run, Work(report=_say))
    if run.status().state != "done":
        raise SystemExit(f"the run failed: {run.status().error}")
    shutil.copytree(run.path, folder / RUN_ID, ignore=shutil.ignore_patterns("*lock", "queue", "checkpoint.npz"))
    facts_file = folder / RUN_ID / "config.json"
    record = json.loads(facts_file.read_text())
    del record["facts"]["versions"]["platform"]  # the machine is nobody's business
    write_text(facts_file, json.dumps(record, indent=1))


def _solve(corpus: Corpus, cache_dir: Path) -> None:
    """Have the selections along λ kept that the slider beside the run shows."""
    from datamask.dashboard.tradeoff import lambda_points, live

    session = live.session(corpus, lambda_points.settings_of(None), cache_dir)
    session.job.wait()
    if not session.ready:
        raise SystemExit(f"λ was not solved: {session.error}")


def results(corpus: Corpus, cache_dir: Path) -> list[Kept[Any]]:
    """Describe the results in the cache that travel with the corpus."""
    from datamask.corpus.projections import DEFAULT
    from datamask.corpus.projections.layouts import stored_layout
    from datamask.dashboard.map.map_layout import stored_crowding
    from datamask.dashboard.map.named_regions import stored_regions
    from datamask.dashboard.tradeoff import kept_baselines, kept_points, lambda_points
    from datamask.runs.ablation_results import stored_result

    problem = kept_points.key_of(corpus, lambda_points.settings_of(None))
    points = kept_points.stored_points(corpus.fingerprint, problem, len(corpus), cache_dir)
    baselines = kept_baselines.stored_baselines(corpus.fingerprint, problem, cache_dir)
    return [
        stored_layout(corpus, cache_dir),
        stored_crowding(corpus, cache_dir),
        stored_regions(corpus, cache_dir, DEFAULT),
        stored_result(cache_dir, corpus.fingerprint, QUESTION.key),
        points,
        baselines,
    ]


def _say(share: float, what: str) -> None:
    print(f"\r{share:4.0%} {what[:70]:<70}", end="", file=sys.stderr, flush=True)


def build(model: Path) -> None:
    """Build the rows, whole or not at all, replacing those that were there. The same installation gives the same rows.

    Args:
        model: folder of a model2vec model.
    """
    uses, embedder = count_uses(python_files()), Model2Vec(model)
    made = table(choose(collect(progress=_say)), uses, embedder)
    with replacing_folder(DEMO) as folder:
        pq.write_table(made, folder / SHARD, compression="zstd", compression_level=19)
        write_text(folder / NOTICE, notice(sorted(set(made["source"].to_pylist()))))
        facts = {
            "rows": made.num_rows,
            "sources": dict(sorted(Counter(made["source"].to_pylist()).items())),
            "model": {"name": embedder.name, "digest": embedder.digest},
            "versions": versions(),
            "files": {name: hashlib.sha256((folder / name).read_bytes()).hexdigest() for name in (NOTICE, SHARD)},
        }
        write_text(folder / FACTS, json.dumps(facts, indent=1) + "\n")


def main(argv: list[str] | None = None) -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model", type=Path, nargs="?", help="folder of a model2vec model")
    parser.add_argument("--results", action="store_true", help="keep the rows; compute again what pages show of them")
    options = parser.parse_args(argv)
    if options.results == (options.model is not None):
        parser.error("name the folder of a model, or give --results")
    if options.model is not None:
        build(options.model)
    keep_results()


if __name__ == "__main__":
    main()
