"""The corpora of the study: what a seed draws of each, what leaves it, and its two kinds of quality.

| part | what |
|---|---|
| pool | what is selected from |
| reference | texts that a person would call good: what the classifier learns to tell from the pool |
| random, kind | targets: rows drawn as the pool's are, or of one kind |
| good | a target: reference texts that the classifier has not seen |

A sample is one parquet file in the work folder, with a column `part`; a row is in one part alone.
"""

from __future__ import annotations

import hashlib
import tomllib
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import torch

from datamask.config import CorpusConfig
from datamask.corpus import open_corpus
from datamask.corpus.corpus import Corpus
from datamask.corpus.preparation import nonzero, prepared_columns
from datamask.corpus.text_features import TextFeatures
from datamask.evaluation.lambdas.holdout import near_rows, subset
from datamask.evaluation.measures.words import Words, read_words
from datamask.evaluation.pool import Pool
from datamask.files import replacing
from sample_data.build import collect

PLAN = Path(__file__).parent / "evidence_targets.toml"
POOL, REFERENCE = "pool", "reference"
PART_OF_TARGET = {"random": "random", "reference": "good", "kind": "kind"}
NEIGHBORS = 64
HASHES, PENALTY = 2**18, 10.0
"""Of the classifier: places that words and pairs of them are hashed to, and the inverse of its regularisation."""


def plan(path: Path = PLAN) -> dict[str, Any]:
    """What was named beforehand."""
    return tomllib.loads(path.read_text(encoding="utf-8"))


def texts_of(corpus: str, path: str | None, work: Path) -> pa.Table:
    """Every text of a corpus with its `kind`, ids first; packages with their scores and features.

    Args:
        path: of its shards; the docstrings have none, and are gathered once into the work folder.
    """
    if corpus == "packages":
        table = ds.dataset(_given(corpus, path)).to_table(
            ["chunk_id", "text", "domain", "quality_score", "feature_arr"]
        )
        kinds = table["domain"].cast(pa.string())
        return table.drop_columns(["domain"]).append_column("kind", kinds)
    if corpus == "texts":
        tables = []
        for file in sorted(Path(_given(corpus, path)).glob("*.parquet")):
            part = pq.read_table(file, columns=["text"])
            # by row: some senses of the dictionary share their id
            ids = pa.array([f"{file.stem}/{row}" for row in range(part.num_rows)])
            tables.append(
                pa.table({"chunk_id": ids, "text": part["text"], "kind": pa.array([file.stem] * part.num_rows)})
            )
        return pa.concat_tables(tables)
    gathered = work / "docstrings.parquet"
    if not gathered.exists():
        names, sources, bodies = zip(*dict.fromkeys(_distinct(collect())))
        with replacing(gathered) as part:
            pq.write_table(pa.table({"chunk_id": names, "text": bodies, "kind": sources}), part)
    return pq.read_table(gathered)


def _given(corpus: str, path: str | None) -> str:
    if path is None:
        raise SystemExit(f"--{corpus} must name the folder of these shards; it was not given")
    return path


def _distinct(rows: list[tuple[str, str, str]]) -> list[tuple[str, str, str]]:
    """One row per text: many methods inherit theirs."""
    return list({text: (name, source, text) for name, source, text in reversed(rows)}.values())[::-1]


def dealt(kinds: np.ndarray, facts: Mapping[str, Any], rows: int, held: int, seed: int) -> np.ndarray:
    """Which part each row is in, by a draw of the seed: "" for a row that is in none.

    Args:
        kinds: str ``(N,)``. facts: of the corpus, from the plan. held: rows of each part but the pool; of the reference
            and of a kind at most a third of what there is, so that the pool has its own.
    """
    rng = np.random.default_rng([seed, zlib.crc32(facts["kind_column"].encode())])
    drawn = rng.permutation(len(kinds))
    part = np.full(len(kinds), "", dtype="<U9")
    parts = [(REFERENCE, np.isin(kinds, facts["reference"]))]
    if "reference" in facts["targets"]:
        parts.append((PART_OF_TARGET["reference"], np.isin(kinds, facts["reference"])))
    if "kind" in facts["targets"]:
        parts.append((PART_OF_TARGET["kind"], kinds == facts["target_kind"]))
    for name, of_kind in parts:
        free = drawn[of_kind[drawn] & (part[drawn] == "")]
        part[free[: min(held, int(of_kind.sum()) // 3)]] = name
    # drawn anew: of the kinds above the first in the order of `drawn` are gone
    rest = rng.permutation(np.flatnonzero(part == ""))
    if "random" in facts["targets"]:
        part[rest[:held]] = PART_OF_TARGET["random"]
        rest = rest[held:]
    part[rest[:rows]] = POOL
    return part


def write_sample(table: pa.Table, facts: Mapping[str, Any], rows: int, held: int, seed: int, output: Path) -> None:
    """Draw a sample, make what it lacks of scores and features (learned from its pool alone), and write it."""
    part = dealt(np.asarray(table["kind"].to_pylist()), facts, rows, held, seed)
    taken = np.flatnonzero(part != "")
    sample = table.take(pa.array(taken)).append_column("part", pa.array(part[taken]))
    if "feature_arr" not in sample.column_names:
        bodies = sample["text"].to_pylist()
        in_pool = part[taken] == POOL
        features = TextFeatures(256, 0).fit([text for text, inside in zip(bodies, in_pool) if inside])
        made = prepared_columns(bodies, features)
        for name in ("quality_score", "feature_arr"):
            sample = sample.append_column(name, made[name])
        sample = sample.filter(pa.array(nonzero(made["feature_arr"])))
    with replacing(output) as file:
        pq.write_table(sample, file)


@dataclass(frozen=True)
class Setting:
    """One sample, read: what a seed of a corpus is.

    Attributes:
        corpus: all its rows. words: of their texts. pool: int64, rows that may be selected, rising. targets: name ->
            rows, in a random order. reference: rows that the classifier takes for good.
        left: rows of the pool that left as near-copies of what was taken out.
    """

    corpus: Corpus
    words: Words
    pool: np.ndarray
    targets: dict[str, np.ndarray]
    reference: np.ndarray
    left: int

    @property
    def texts(self) -> list[str]:
        return [text or "" for text in self.corpus.metadata["text"].to_pylist()]


def open_setting(sample: Path, facts: Mapping[str, Any], cache: Path) -> Setting:
    """Read a sample. Near-copies (cosine 0.95 or above among listed neighbours, or the same text) of a target leave
    the pool and the reference, those of the reference the pool."""
    corpus = open_corpus(CorpusConfig((str(sample),)))
    part = np.asarray(corpus.metadata["part"].to_pylist())
    words = read_words(corpus.metadata["text"].cast(pa.large_string()))
    graph = Pool(corpus, torch.device("cpu"), cache).graph(NEIGHBORS)
    asked = np.isin(part, [PART_OF_TARGET[name] for name in facts["targets"]])
    near_target = near_rows(graph, asked) | np.isin(words.text_of, words.text_of[asked])
    reference = (part == REFERENCE) & ~near_target
    near_any = near_target | near_rows(graph, reference) | np.isin(words.text_of, words.text_of[reference])
    pool = (part == POOL) & ~near_any
    has_words = words.lengths > 0
    return Setting(
        corpus,
        words,
        np.flatnonzero(pool),
        {name: shuffled((part == PART_OF_TARGET[name]) & has_words) for name in facts["targets"]},
        np.flatnonzero(reference),
        int(((part == POOL) & near_any).sum()),
    )


def shuffled(mask: np.ndarray) -> np.ndarray:
    """The rows of a mask in a random order, always the same: a judge that asks for the first of them asks for all
    kinds, whatever order the shards are in."""
    return np.random.default_rng(11).permutation(np.flatnonzero(mask))


def classified(texts: list[str], pool: np.ndarray, reference: np.ndarray, seed: int) -> np.ndarray:
    """How much more like the reference than like the pool each row of the pool reads: log odds, float64.

    As DCLM's filter, a linear classifier on words and pairs of words, equally many of both kinds. No row is scored by a
    classifier that learned from it: of the pool's two halves, drawn by the seed, each is scored by what learned from
    the other, since a pool as small as this is no endless web.
    """
    from sklearn.feature_extraction.text import HashingVectorizer
    from sklearn.linear_model import LogisticRegression

    hashing = HashingVectorizer(n_features=HASHES, ngram_range=(1, 2), alternate_sign=False, norm="l2")
    features = hashing.transform(texts)
    drawn = np.random.default_rng([seed, 17]).permutation(len(pool))
    scores = np.empty(len(pool))
    for half, other in ((drawn[::2], drawn[1::2]), (drawn[1::2], drawn[::2])):
        negatives = pool[other[: len(reference)]]
        rows = np.concatenate([reference, negatives])
        good = np.arange(len(rows)) < len(reference)
        model = LogisticRegression(C=PENALTY, max_iter=1_000, class_weight="balanced").fit(features[rows], good)
        scores[half] = model.decision_function(features[pool[half]])
    return scores


def told_apart(scores: np.ndarray, kinds: np.ndarray, reference: list[str]) -> float:
    """The chance that a row of the reference's kinds scores above another row of the pool (AUC)."""
    from sklearn.metrics import roc_auc_score

    return float(roc_auc_score(np.isin(kinds, reference), scores))


def kinds_of(setting: Setting) -> np.ndarray:
    """The kind of each row of the pool."""
    return np.asarray(pc.cast(setting.corpus.metadata["kind"], pa.string()).to_pylist())[setting.pool]


def pool_of(setting: Setting, quality: np.ndarray | None, cache: Path) -> Pool:
    """The pool with its own quality, by rules, or with this one, float64 ``(n,)`` in the order of `Setting.pool`."""
    corpus = subset(setting.corpus, setting.pool)
    if quality is not None:
        digest = hashlib.sha256(corpus.fingerprint.encode() + quality.astype("<f8").tobytes()).hexdigest()
        corpus = replace(corpus, quality=quality.astype(corpus.quality.dtype), fingerprint=digest)
    return Pool(corpus, torch.device("cpu"), cache)
