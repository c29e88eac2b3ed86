"""What the document says of the planted benchmark is what came out; the benchmark itself runs small."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
from scipy.stats import binomtest

from benchmarks import planted_ablation

ROOT = Path(__file__).parents[3]


def test_the_document_says_what_came_out():
    report = json.loads(planted_ablation.RESULTS.read_text())
    for kind, of_kind in report["seeds"].items():
        counted = report["counts"][kind]
        right = sum(answer["right"] for answer in of_kind.values())
        ends = binomtest(len(of_kind) - right, len(of_kind)).proportion_ci(0.95, "exact")
        assert (counted["of"], counted["right"]) == (len(of_kind), right)
        assert counted["wrong_interval"] == [round(ends.low, 4), round(ends.high, 4)]
        # at most 20 s each
        assert counted["most_cpu_seconds"] < 20
    planted, null = report["counts"]["planted"], report["counts"]["null"]
    assert planted["of"] == 20 and planted["right"] >= 18
    assert null["of"] == 200 and null["of"] - null["right"] <= 15
    assert [not answer["claims"] for answer in report["seeds"]["null"].values()] == [
        answer["right"] for answer in report["seeds"]["null"].values()
    ]
    written = " ".join((ROOT / "docs" / "ablation.md").read_text().split())
    assert f"better than random in {planted['right']} of {planted['of']} seeds" in written
    low, high = (f"{100 * end:.1f} %" for end in null["wrong_interval"])
    claims = null["of"] - null["right"]
    assert f"Of {null['of']} null corpora {claims} {'leads' if claims == 1 else 'lead'} to any claim" in written
    assert f"(95 % interval of that share {low} to {high})" in written


def test_the_planted_method_selects_most_wanted_rows():
    shares = planted_ablation.wanted_shares(0)
    assert max(shares, key=shares.__getitem__) == planted_ablation.PLANTED


def test_a_null_corpus_keeps_its_texts_features_and_scores_apart():
    corpus = planted_ablation.planted_corpus(1_000, n=500)[0]
    null = planted_ablation.shuffled(corpus, 0)
    assert null.metadata["text"].to_pylist() == corpus.metadata["text"].to_pylist()
    assert sorted(null.quality) == sorted(corpus.quality) and (null.quality != corpus.quality).mean() > 0.9
    # every row of features is still there, in another place
    places = (null.features @ corpus.features.T).argmax(axis=1)
    assert sorted(places) == list(range(500)) and (places != np.arange(500)).mean() > 0.9
