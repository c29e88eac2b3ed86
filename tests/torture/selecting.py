"""Select from an accepted corpus with drawn settings, and look at what comes out."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from datamask import CorpusConfig, select
from datamask.corpus.corpus import Corpus
from tests.torture.contract import Finding
from tests.torture.judging import REFUSED, attempted

WAYS = (
    ("facility", "relaxed"),
    ("facility", "greedy"),
    ("pairwise", "greedy"),
    ("pairwise", "counterfactual"),
    ("facility", "counterfactual"),
    ("disf_fixed", "semdedup"),
    ("vendi", "counterfactual"),
    ("disf", "greedy"),
    ("pairwise", "top-quality"),
    ("facility", "random"),
    ("facility", "reinforce"),
)


def select_and_check(corpus: Corpus, config: CorpusConfig, rng: np.random.Generator, folder: Path) -> str:
    """Select in memory: as many rows as promised, none twice, finite values.

    Raises:
        Finding: otherwise.
    """
    objective, estimator = WAYS[int(rng.integers(len(WAYS)))]
    ratio, lamb = float(rng.choice([0.1, 0.3, 0.5])), float(rng.choice([0.0, 0.5, 1.0]))
    steps = {"n_epochs": 5} if estimator in ("counterfactual", "relaxed", "reinforce") else {}
    doing = f"selecting by {objective}, {estimator}, lambda {lamb:g}, ratio {ratio:g}"
    word, selection = attempted(
        lambda: select(
            corpus,
            objective=objective,
            estimator=estimator,
            lamb=lamb,
            select_ratio=ratio,
            device="cpu",
            cache_dir=folder / "cache",
            **steps,
        ),
        doing,
    )
    if word == REFUSED:
        return "accepted, selection refused"
    table = selection.table()
    ids = table[corpus.provenance.columns["id"]].to_pylist()
    if len(set(map(str, ids))) != len(ids) or not set(map(str, ids)) <= set(map(str, corpus.ids.to_pylist())):
        raise Finding(f"{doing}: ids twice, or of no row")
    if len(ids) != selection.summary["selected"]:
        raise Finding(f"{doing}: {len(ids)} rows, but the summary says {selection.summary['selected']}")
    for name in ("quality", "diversity", "joint"):
        if not np.isfinite(selection.summary[name]):
            raise Finding(f"{doing}: {name} is {selection.summary[name]}")
    return "accepted and selected"
