"""Made files with the columns of corpora that everybody starts from: FineWeb, FineWeb-Edu, DCLM, Dolma, RedPajama."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from tests.making.packed_files import packed

SYLLABLES = ("ba", "do", "ki", "lu", "me", "no", "ra", "ti")
WORDS = [first + second for first in SYLLABLES for second in SYLLABLES]
FAVORITES = 5
"""Words of a text, of which it holds some more than others: texts about different things have different features."""
DCLM_SCORE = "fasttext_openhermes_reddit_eli5_vs_rw_v2_bigram_200k_train_prob"


def text(i):
    rng = np.random.default_rng(i)
    favorites = rng.choice(WORDS, FAVORITES, replace=False)
    drawn = rng.choice(favorites, 80, p=rng.dirichlet(np.ones(FAVORITES)))
    return " ".join(drawn) + f" and the end of text {i}."


def fineweb(i):
    return {
        "text": text(i),
        "id": f"<urn:uuid:{i:08d}>",
        "dump": "CC-MAIN-2024-10",
        "url": f"https://example.org/{i}",
        "date": "2024-03-01T00:00:00Z",
        "file_path": "s3://commoncrawl/x.warc.gz",
        "language": "en",
        "language_score": 0.9 + i / 1000,
        "token_count": 30 + i,
    }


def fineweb_edu(i):
    return fineweb(i) | {"score": 2.5 + i / 50, "int_score": 3}


def dclm(i):
    return {
        "bff_contained_ngram_count_before_dedupe": i % 3,
        "language_id_whole_page_fasttext": {"en": 0.8 + i / 500},
        "metadata": {
            "Content-Length": str(1000 + i),
            "WARC-Date": "2022-05-16T00:00:00Z",
            "WARC-Record-ID": f"<urn:uuid:{i:08d}>",
            "WARC-Type": "response",
        },
        "previous_word_count": 30 + i,
        "text": text(i),
        "url": f"https://example.org/{i}",
        "warcinfo": "robots: classic",
        DCLM_SCORE: 0.02 + i / 100,
    }


def dolma(i):
    return {
        "id": f"doc-{i}",
        "text": text(i),
        "source": "common-crawl",
        "added": "2023-04-11T09:57:03.044571+00:00",
        "created": "2020-01-17T12:48:45Z",
        "metadata": {
            "url": f"https://example.org/{i}",
            "length": 100 + i,
            "provenance": "cc.json.gz:1",
            "cc": {"n": i},
        },
    }


def redpajama(i):
    return {
        "raw_content": text(i),
        "doc_id": f"2023-06/0000/en_head.json.gz/{i}",
        "meta": json.dumps({"url": f"https://example.org/{i}", "perplexity": 200 + i}),
        "quality_signals": json.dumps({"ccnet_length": [[0, 1, 100 + i]]}),
    }


LAYOUTS = {
    "FineWeb": (fineweb, ".parquet", "id", "quality_score", "token_count"),
    "FineWeb-Edu": (fineweb_edu, ".parquet", "id", "score", "token_count"),
    "DCLM": (dclm, ".jsonl.zst", "metadata.WARC-Record-ID", DCLM_SCORE, "n_tokens"),
    "Dolma": (dolma, ".json.gz", "id", "quality_score", "n_tokens"),
    "RedPajama": (redpajama, ".json.zst", "doc_id", "quality_score", "n_tokens"),
}
"""Name -> how a row is made, the ending of its files as shipped, and the columns of ids, quality and length."""


def write(path: Path, made: list[dict]) -> Path:
    """Write rows as a file of this name, and return its path."""
    if path.suffix == ".parquet":
        pq.write_table(pa.Table.from_pylist(made), path)
    else:
        path.write_bytes(packed(path, "".join(json.dumps(row) + "\n" for row in made).encode()))
    return path
