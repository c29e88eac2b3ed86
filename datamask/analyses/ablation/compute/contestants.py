"""The methods of an ablation, as settings of a selection, and what each of them selects from a pool."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from datamask import catalogue, learning
from datamask.ablation.methods import GREEDY_LAMBDA, single
from datamask.ablation.question import DUPLICATES, RANDOM, SIMPLE, TOP_QUALITY, AblationQuestion
from datamask.ablation.result import Method
from datamask.analyses.ablation.compute.kept import NOTHING_KEPT, StudyCache
from datamask.analyses.ablation.compute.selecting import scales, select_all, settings
from datamask.config import SelectionConfig
from datamask.evaluation.pool import Pool
from datamask.evaluation.problems import pose
from datamask.learning.loop import learn
from datamask.polling import Poll, no_poll

LABELS = {
    RANDOM: "Random",
    DUPLICATES: "Exact duplicates removed",
    "semdedup": "SemDeDup",
    "soft-quality": "Soft quality",
    TOP_QUALITY: "Top quality",
    "cluster-balanced": "Cluster-balanced",
    "greedy": f"Greedy, facility location λ {GREEDY_LAMBDA:g}",
    "masks": "Learned masks (the paper's preset)",
}


@dataclass(frozen=True)
class Contestants:
    """The methods of a question, in the order of a result.

    Attributes:
        question: what is asked.
    """

    question: AblationQuestion

    @property
    def methods(self) -> tuple[Method, ...]:
        """All of them, random first."""
        question = self.question
        single = tuple(
            Method(
                name,
                LABELS[name],
                name in SIMPLE,
                {"greedy": "facility", "masks": "pairwise"}.get(name, ""),
                {"greedy": GREEDY_LAMBDA, "masks": 0.5}.get(name),
            )
            for name in question.methods
        )
        curves = tuple(
            Method(f"{objective}-{lamb:g}", f"{_label(objective)} λ {lamb:g}", False, objective, lamb)
            for objective in question.objectives
            for lamb in question.lambdas
        )
        return single + curves

    @property
    def steps(self) -> tuple[str, ...]:
        """The work of one seed, in order: each method selects, then each is measured, random last."""
        names = [method.name for method in self.methods if method.name != RANDOM]
        return *names, *(measuring(name) for name in (*names, RANDOM))

    def selections(
        self,
        pool: Pool,
        seed: int,
        poll: Poll = no_poll,
        tick: Callable[[str], None] = lambda what: None,
        kept: StudyCache = NOTHING_KEPT,
    ) -> dict[str, np.ndarray]:
        """What every method but random selects: by its name, int64 ``(S,)`` rows of the pool, rising.

        Args:
            seed: of draws and ties. tick: called with the name of each method before it selects.
            kept: what an earlier search selected from the same rows, and where these selections go.
        """
        question, chosen = self.question, dict[str, np.ndarray]()
        for name in question.methods:
            if name != RANDOM:
                tick(name)
                chosen[name] = _selected(pool, single(name, question.ratio, len(pool), seed), poll, kept)
        for objective in question.objectives:
            config = settings(objective, question.ratio, seed)
            named = kept.under(_digest(pool, config))
            posed = scales(pool, config, poll)

            def ticking(lamb: float, objective: str = objective) -> None:
                tick(f"{objective}-{lamb:g}")

            found = select_all(pool, posed, config, question.lambdas, poll, ticking, named)
            chosen |= {f"{objective}-{lamb:g}": rows for lamb, rows in zip(question.lambdas, found)}
        return chosen


def measuring(name: str) -> str:
    """The name of the step that measures what a method selected."""
    return f"measuring {name}"


def _selected(pool: Pool, config: SelectionConfig, poll: Poll, kept: StudyCache) -> np.ndarray:
    """The selection of one setting."""
    name, size = _digest(pool, config), config.size(len(pool))

    def learned() -> np.ndarray:
        estimator = learning.load(config.estimator)(pose(pool, config, poll).problem, config)
        return np.flatnonzero(learn(estimator, poll=poll).mask.cpu().numpy())

    return kept.selection(name, size, len(pool)).find_or_compute(learned)


def _digest(pool: Pool, config: SelectionConfig) -> str:
    """The name of a selection: the same rows and settings have the same."""
    told = json.dumps([pool.corpus.fingerprint, config.to_dict()], sort_keys=True, default=str)
    return hashlib.sha256(told.encode()).hexdigest()[:20]


def _label(objective: str) -> str:
    return next((entry.label for entry in catalogue.OBJECTIVES if entry.name == objective), objective)
