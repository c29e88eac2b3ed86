"""The corpora of the study: what a seed draws of each, what leaves it, its features and its scores.

| part | what |
|---|---|
| pool | rows that may be selected |
| a target's name | held-out texts of that target |

A sample is one parquet file in the work folder: the rows of one seed of one corpus, with the columns `part`, `good`,
`rules` (a score) and those of the corpus. Every arm of the corpus selects from the same sample.
"""

from __future__ import annotations

import hashlib
import tomllib
import zlib
from collections.abc import Mapping, Sequence
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
from datamask.corpus.equal_rows import exact_families
from datamask.corpus.preparation import feature_array, nonzero, prepared_columns
from datamask.corpus.text_features import TextFeatures
from datamask.evaluation.holdout import subset
from datamask.evaluation.measures.words import Words, read_words
from datamask.evaluation.pool import Pool
from datamask.files import replacing
from sample_data.docstrings import collect

PLAN = Path(__file__).parent / "evidence_plan.toml"
POOL = "pool"
DIM = 256
"""Of TF-IDF features."""

HASHES, PENALTY = 2**18, 10.0
"""Of the classifier: buckets for words and pairs of words, and the inverse of its regularization."""

ROWS_AT_ONCE = 2_000


def plan(path: Path = PLAN) -> dict[str, Any]:
    """Return the plan of the study; a corpus `like` another has all that it does not say itself from that one."""
    asked = tomllib.loads(path.read_text(encoding="utf-8"))
    corpora = asked["corpora"]
    asked["corpora"] = {name: corpora.get(facts.get("like"), {}) | facts for name, facts in corpora.items()}
    return asked


def read_table(corpus: str, paths: Mapping[str, str | None], work: Path) -> pa.Table:
    """Return every row of a corpus, with ids, texts and the columns that targets and scores name.

    Args:
        paths: of the folders with its shards; the docstrings have none and are collected once into the work folder.
    """
    if corpus == "docstrings":
        return _docstrings(work)
    if corpus == "texts":
        parts = []
        for file in sorted(Path(_given(corpus, paths)).glob("*.parquet")):
            part = pq.read_table(file, columns=["text"])
            # ids by row: some senses of the dictionary share theirs
            ids = pa.array([f"{file.stem}/{row}" for row in range(part.num_rows)])
            kinds = pa.array([file.stem] * part.num_rows)
            parts.append(pa.table({"chunk_id": ids, "text": part["text"], "kind": kinds}))
        return pa.concat_tables(parts)
    table = _shards(_given(corpus, paths))
    if corpus == "packages":
        side = _shards(_given("use", paths))
        place = {name: row for row, name in enumerate(side["chunk_id"].to_pylist())}
        side = side.take(pa.array([place[name] for name in table["chunk_id"].to_pylist()]))
        names = ["rules" if name == "quality_score" else name for name in table.column_names]
        table = table.rename_columns(names).append_column("quality_score", side["log_use"])
        table = table.append_column("debtags", side["debtags"])
    return table


def _shards(folder: str) -> pa.Table:
    # by file: the folder may hold a README too
    return ds.dataset(sorted(str(file) for file in Path(folder).glob("*.parquet"))).to_table()


def _given(corpus: str, paths: Mapping[str, str | None]) -> str:
    path = paths.get(corpus)
    if path is None:
        raise SystemExit(f"--{corpus} must name the folder of these shards; it was not given")
    return path


def _docstrings(work: Path) -> pa.Table:
    file = work / "docstrings.parquet"
    if not file.exists():
        # one row per text: many methods inherit theirs
        distinct = list({text: (name, source, text) for name, source, text in reversed(collect())}.values())[::-1]
        names, sources, bodies = zip(*dict.fromkeys(distinct), strict=True)
        with replacing(file) as part:
            pq.write_table(pa.table({"chunk_id": names, "text": bodies, "kind": sources}), part)
    return pq.read_table(file)


def members(table: pa.Table, rule: Mapping[str, Any]) -> np.ndarray:
    """Return which rows a rule of the plan names, bool ``(N,)``; an empty rule names all.

    Args:
        rule: `column`, and one of `equals`, `holds` (of a list), `least` (a value), `top` (a share of the rows);
            `but`, a rule whose rows are left out.
    """
    if not rule:
        return np.ones(len(table), bool)
    column = table[rule["column"]]
    if "holds" in rule:
        named = np.array([rule["holds"] in (values or ()) for values in column.to_pylist()])
    elif "equals" in rule:
        named = np.asarray(pc.fill_null(pc.equal(pc.cast(column, pa.string()), rule["equals"]), False))
    else:
        values = column.to_numpy().astype(float)
        named = values >= (rule["least"] if "least" in rule else np.quantile(values, 1 - rule["top"]))
    return named & ~members(table, rule["but"]) if "but" in rule else named


def dealt(of: Mapping[str, np.ndarray], rows: int, held: int, seed: int) -> np.ndarray:
    """Return which part each row is in, by a draw of the seed: a target's name, `POOL`, or "" for none.

    Args:
        of: target -> bool ``(N,)``, its rows. held: rows of each target at most, and at most half of what there is.
    """
    rng = np.random.default_rng([seed, zlib.crc32(",".join(of).encode())])
    part = np.full(len(next(iter(of.values()))), "", dtype=object)
    # small targets first: a large one can do without the rows that they share
    for name in sorted(of, key=lambda name: of[name].sum()):
        free = np.flatnonzero(of[name] & (part == ""))
        part[rng.choice(free, min(held, int(of[name].sum()) // 2, len(free)), replace=False)] = name
    rest = rng.permutation(np.flatnonzero(part == ""))
    part[rest[:rows]] = POOL
    return part


def too_near(features: np.ndarray, texts: np.ndarray, pool: np.ndarray, held: np.ndarray, cosine: float) -> np.ndarray:
    """Return which rows of the pool have a held-out row's text, or reach `cosine` to one, bool ``(n,)``.

    Args:
        features: float ``(N, d)``. texts: ``(N,)``. pool, held: rows.
    """
    unit = features / np.maximum(np.linalg.norm(features, axis=1, keepdims=True), 1e-12)
    near = np.isin(texts[pool], texts[held])
    for low in range(0, len(pool), ROWS_AT_ONCE):
        block = slice(low, low + ROWS_AT_ONCE)
        near[block] |= (unit[pool[block]] @ unit[held].T).max(axis=1) >= cosine
    return near


def write_sample(table: pa.Table, facts: Mapping[str, Any], asked: Mapping[str, Any], seed: int, output: Path) -> None:
    """Draw a sample of a corpus, make what it lacks of scores and features, and write it."""
    of = {name: members(table, rule) for name, rule in facts["targets"].items()}
    part = dealt(of, asked["rows"], facts["held"], seed)
    good = members(table, facts["good"])
    taken = np.flatnonzero(part != "")
    sample, part, good = table.take(pa.array(taken)), part[taken], good[taken]
    texts = [text or "" for text in sample["text"].to_pylist()]
    if "rules" not in sample.column_names:
        sample = sample.append_column("rules", prepared_columns(texts, None, ["quality"])[0]["quality"])
    if "quality_score" not in sample.column_names:
        sample = sample.append_column("quality_score", sample["rules"])
    if "feature_arr" not in sample.column_names:
        sample = sample.append_column("feature_arr", text_features(texts, part == POOL))
    features = sample["feature_arr"].combine_chunks()
    features = features.chunk(0) if isinstance(features, pa.ChunkedArray) else features
    matrix = features.flatten().to_numpy(zero_copy_only=False).astype(np.float32).reshape(len(sample), -1)
    pool, held = np.flatnonzero(part == POOL), np.flatnonzero(part != POOL)
    stays = nonzero(features)
    stays[pool[too_near(matrix, np.array(texts, dtype=object), pool, held, asked["near"])]] = False
    columns = sample.select(["chunk_id", "text", "quality_score", "rules", "feature_arr"])
    columns = columns.append_column("part", pa.array(part.tolist())).append_column("good", pa.array(good))
    with replacing(output) as file:
        pq.write_table(columns.filter(pa.array(stays)), file)


def text_features(texts: Sequence[str], in_pool: np.ndarray) -> pa.FixedSizeListArray:
    """Return TF-IDF features that are learned from the pool alone."""
    learned = TextFeatures(DIM, 0).fit([text for text, inside in zip(texts, in_pool, strict=True) if inside])
    return feature_array(learned.transform(list(texts)))


@dataclass(frozen=True)
class Setting:
    """A sample, read.

    Attributes:
        corpus: all its rows. words: of their texts. pool: int64, rows that may be selected, rising. targets: name ->
            rows, in a random order. file: where it is.
    """

    corpus: Corpus
    words: Words
    pool: np.ndarray
    targets: dict[str, np.ndarray]
    file: Path

    @property
    def pool_texts(self) -> list[str]:
        texts = self.corpus.metadata["text"].take(pa.array(self.pool))
        return [text or "" for text in texts.to_pylist()]

    @property
    def first_copies(self) -> np.ndarray:
        """Rows of the pool without those whose text came before."""
        family = exact_families(subset(self.corpus, self.pool))
        rows: np.ndarray = self.pool[np.unique(family)]
        return rows


def open_setting(sample: Path, targets: Sequence[str]) -> Setting:
    """Read a sample."""
    corpus = open_corpus(CorpusConfig((str(sample),)))
    part = np.asarray(corpus.metadata["part"].to_pylist())
    words = read_words(corpus.metadata["text"].cast(pa.large_string()))
    spoken = words.lengths > 0
    # always the same order: a proxy model that reads only the first of them reads all kinds
    order = np.random.default_rng(11).permutation(len(part))
    return Setting(
        corpus,
        words,
        np.flatnonzero(part == POOL),
        {name: order[(part == name)[order] & spoken[order]] for name in targets},
        sample,
    )


def scores_of(setting: Setting, quality: str, seed: int) -> np.ndarray:
    """Return the scores of the pool's rows, float64 ``(n,)``: its own, by rules, or by the classifier."""
    if quality == "rules":
        return np.asarray(setting.corpus.metadata["rules"]).astype(float)[setting.pool]
    if quality == "classifier":
        good = np.asarray(setting.corpus.metadata["good"]).astype(bool)[setting.pool]
        return classified(setting.pool_texts, good, seed)
    return setting.corpus.quality[setting.pool]


def classified(texts: Sequence[str], good: np.ndarray, seed: int) -> np.ndarray:
    """Return how much each text reads like the good ones: log odds, float64 ``(n,)``.

    Logistic regression on hashed words and pairs of words. Each half of the texts, drawn by the seed, is scored by the
    classifier that learned from the other half, so that no row is scored by what learned from it.
    """
    from sklearn.feature_extraction.text import HashingVectorizer
    from sklearn.linear_model import LogisticRegression

    hashing = HashingVectorizer(n_features=HASHES, ngram_range=(1, 2), alternate_sign=False, norm="l2")
    features = hashing.transform(texts)
    drawn = np.random.default_rng([seed, 17]).permutation(len(texts))
    scores = np.empty(len(texts))
    for half, other in ((drawn[::2], drawn[1::2]), (drawn[1::2], drawn[::2])):
        model = LogisticRegression(C=PENALTY, max_iter=1_000, class_weight="balanced").fit(features[other], good[other])
        scores[half] = model.decision_function(features[half])
    return scores


def other_features(setting: Setting) -> np.ndarray:
    """Return TF-IDF features of the pool's rows, learned from them: float32 ``(n, d)`` of unit length."""
    file = setting.file.with_suffix(".tfidf.npy")
    if not file.exists():
        made = text_features(setting.pool_texts, np.ones(len(setting.pool), bool))
        matrix = made.flatten().to_numpy(zero_copy_only=False).astype(np.float32).reshape(len(made), -1)
        # a text without a word in common with the others is far from all of them
        matrix[~matrix.any(axis=1), 0] = 1.0
        with replacing(file) as part, part.open("wb") as opened:
            np.save(opened, matrix / np.linalg.norm(matrix, axis=1, keepdims=True))
    stored: np.ndarray = np.load(file)
    return stored


def pool_of(setting: Setting, quality: np.ndarray, features: np.ndarray | None, cache: Path) -> Pool:
    """Return the pool with this quality, float64 ``(n,)``, and these features; None: the sample's."""
    corpus = subset(setting.corpus, setting.pool)
    digest = hashlib.sha256(corpus.fingerprint.encode() + quality.astype("<f8").tobytes())
    if features is not None:
        digest.update(features.tobytes())
        corpus = replace(corpus, features=features)
    corpus = replace(corpus, quality=quality.astype(corpus.quality.dtype), fingerprint=digest.hexdigest())
    return Pool(corpus, torch.device("cpu"), cache)
