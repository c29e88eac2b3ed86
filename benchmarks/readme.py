"""The table of the README: what deduplication and top-k keep, and what facility location keeps, at equal tokens.

    python -m benchmarks.readme [CORPUS] [--output FOLDER]

CORPUS is any corpus with texts and lengths (sample_data/demo/demo.parquet). Each selection fills 30 % of the tokens.
Writes readme.json and readme.md. Coverage is the mean cosine of the corpus's rows to the nearest selected row, which
facility location maximizes; TF-IDF coverage measures the same on words, which no method sees. The proxy loss is that
of a bigram model on five hold-outs. Seconds are CPU seconds of the second call, so that nothing is compiled in them;
each call builds its own neighbor graph where it needs one.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.corpus import machine
from datamask import CorpusConfig, open_corpus, select
from datamask.evaluation.comparing import scoreboard

DEMO = "sample_data/demo/demo.parquet"
SHARE = 0.3
METHODS: dict[str, dict[str, Any]] = {
    "random": {"estimator": "random"},
    "top-k by quality": {"estimator": "top-quality"},
    "semantic dedup (cosine 0.95) + top-k": {"estimator": "top-quality", "collapse": "0.95"},
    "facility λ 0.5": {"objective": "facility", "lamb": 0.5, "estimator": "relaxed"},
    "facility λ 0.8": {"objective": "facility", "lamb": 0.8, "estimator": "relaxed"},
}
MEASURES = {
    "quality": "mean quality",
    "near_copies": "semantic duplicates",
    "facility": "coverage",
    "tfidf": "TF-IDF coverage",
    "cross_entropy": "proxy loss",
}
"""Measure of the panel -> its column."""


def measure(corpus_path: str) -> dict[str, Any]:
    """Select by every method at equal tokens, and measure what came out."""
    corpus = open_corpus(CorpusConfig((corpus_path,)))
    assert corpus.lengths is not None, "the corpus needs a length column"
    budget = SHARE * float(corpus.lengths.sum())
    rows, seconds = {}, {}
    for name, options in METHODS.items():
        for _ in range(2):
            began = time.process_time()
            rows[name] = select(corpus, budget=budget, **options).rows
            seconds[name] = time.process_time() - began
    with tempfile.TemporaryDirectory() as kept:
        board = scoreboard(corpus, rows, kept, references=False, cut=True, calibrate=False)
    found = {row["measure"]: row["selections"] for row in board["measures"] if row["measure"] in MEASURES}
    return {
        "corpus": corpus_path,
        "rows": len(corpus),
        "tokens": board["tokens"],
        "selected": board["selected"],
        "seconds": seconds,
        "measures": {
            key: {name: {end: found[key][name][end] for end in ("value", "low", "high")} for name in METHODS}
            for key in MEASURES
        },
        "machine": machine(),
    }


def table(result: dict[str, Any]) -> str:
    """Return the Markdown table of a result."""
    lines = [f"| | rows | {' | '.join(MEASURES.values())} | CPU seconds |", "| --- |" + " --- |" * (len(MEASURES) + 2)]
    for name in METHODS:
        value = {key: result["measures"][key][name]["value"] for key in MEASURES}
        cells = (
            f"{result['selected'][name]:,}",
            f"{value['quality']:.2f}",
            f"{100 * value['near_copies']:.1f} %",
            f"{value['facility']:.3f}",
            f"{value['tfidf']:.3f}",
            f"{value['cross_entropy']:.2f}",
            f"{result['seconds'][name]:.1f}",
        )
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpus", nargs="?", default=DEMO)
    parser.add_argument("--output", type=Path, default=Path("benchmarks/results"))
    options = parser.parse_args()
    result = measure(options.corpus)
    (options.output / "readme.json").write_text(json.dumps(result, indent=1, ensure_ascii=False) + "\n", "utf-8")
    (options.output / "readme.md").write_text(table(result), "utf-8")
    print(table(result))


if __name__ == "__main__":
    main()
