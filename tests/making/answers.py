"""Answers to "which lambda?" as they are stored, made without computing them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

from datamask.config.target import Target
from datamask.runs import lambda_answers
from tests.making.old_answers import worded

LAMBDAS = (0.0, 0.2, 0.5, 1.0)


def curve(
    objective: str,
    differences,
    *,
    leads: bool = False,
    best: int = 0,
    width: float = 0.01,
    ratio: float = 0.1,
    level=None,
) -> dict:
    """A curve with these differences to random, each within `width`."""
    low, high = differences[best] - width, differences[best] + width
    level = level or [abs(value - differences[best]) < width for value in differences]
    return {
        "objective": objective,
        "ratio": ratio,
        "selected": 24,
        "words": 1200,
        "best": LAMBDAS[best],
        "leads": leads,
        "verdict": "helps" if high < 0 else "hurts" if low > 0 else "level",
        "against_random": {"difference": differences[best], "low": low, "high": high},
        "against_leader": None,
        "levels": [lamb for lamb, flag in zip(LAMBDAS, level) if flag],
        "points": [
            {
                "lamb": lamb,
                "value": 6 + d,
                "difference": d,
                "low": d - width,
                "high": d + width,
                "level": flag,
                "choosing": d,
            }
            for lamb, d, flag in zip(LAMBDAS, differences, level)
        ],
    }


def old_question(objectives: Sequence[str], ratios: Sequence[float], lambdas: Sequence[float], target: Target) -> dict:
    """A question as versions before 0.4 stored it, with their first proxy model."""
    lists = {"objectives": list(objectives), "ratios": list(ratios), "lambdas": list(lambdas)}
    return {**lists, "target": asdict(target), "words": 250_000, "rows": 100_000, "seed": 0}


def key_of(question: Mapping) -> str:
    """The key under which they kept its answer."""
    return hashlib.sha256(json.dumps(question, sort_keys=True).encode()).hexdigest()[:12]


def made_answer(
    fingerprint: str, *curves: dict, target: Target | None = None, created: float = 1.7e9, by_features: bool = False
) -> dict:
    """A stored answer with these curves for both measures, or for the one of examples without texts."""
    target = target or Target()
    curves = curves or (
        curve("facility", (-0.05, -0.045, 0.02, 0.2), leads=True),
        curve("pairwise", (0.5, 0.5, 0.4, 0.2), best=3),
    )
    ratios = sorted({one["ratio"] for one in curves})
    question = old_question(list(dict.fromkeys(one["objective"] for one in curves)), ratios, LAMBDAS, target)

    def measure(name: str, unit: str) -> dict:
        return {
            "name": name,
            "label": name.replace("_", " ").capitalize(),
            "unit": unit,
            "says": "Lower is better.",
            "curves": [dict(one) for one in curves],
            "named": [
                {
                    "name": "top-quality",
                    "ratio": ratio,
                    "selected": 24,
                    "words": 1200,
                    "value": 6.2,
                    "difference": 0.2,
                    "low": 0.19,
                    "high": 0.21,
                    "verdict": "hurts",
                }
                for ratio in ratios
            ],
            "random": [
                {
                    "ratio": ratio,
                    "selected": 24,
                    "words": 1200,
                    "value": 6.0,
                    "spread": 0.01,
                    "luck": 0.004,
                }
                for ratio in ratios
            ],
        }

    return worded(
        {
            "version": 1,
            "question": question,
            "key": key_of(question),
            "fingerprint": fingerprint,
            "n": 240,
            "rows": 240,
            "splits": 5,
            "draws": 4,
            "seconds": 3.0,
            "created": created,
            "target": {
                "label": target.label,
                "kind": target.kind,
                "circular": target.circular,
                "texts": 60,
                "words": 600,
                "held_out": 12,
                "near_copies": 3,
            },
            "notes": ["Everything was done on a uniform sample of 240 of 300 rows.", "The second measure is made up."],
            "measures": [measure("nearness", "cosine distance")]
            if by_features
            else [measure("cross_entropy", "nats per word"), measure("coverage", "cosine distance")],
        }
    )


def keep_answer(cache_dir: Path, answer: Mapping) -> None:
    """Keep an answer where versions before 0.4 kept it."""
    assert lambda_answers.stored_answer(cache_dir, answer["fingerprint"], answer["key"]).keep(dict(answer))
