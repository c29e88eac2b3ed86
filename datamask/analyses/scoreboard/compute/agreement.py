"""Agreement: which samples a selection would keep again on a slightly different corpus, and which are coin-flips.

The selection is made again, with the run's own settings, on random parts of the corpus; each part leaves out a fifth of
the rows and draws its own masks. For a row the share of the parts that hold it in which it was selected says how much
its fate depends on the sample at hand. Parts are drawn without replacement: drawing with replacement would plant exact
copies, which some objectives see and others do not.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from datamask import learning, objectives
from datamask.analyses.scoreboard.compute.boards import selected_rows
from datamask.config import SelectionConfig
from datamask.corpus.corpus import Corpus
from datamask.corpus.list_length import list_length
from datamask.errors import OptionError
from datamask.evaluation.pool import Pool
from datamask.evaluation.problems import pose
from datamask.learning.loop import learn
from datamask.learning.masks import tie_order
from datamask.learning.problem import Problem
from datamask.objectives.contract import SetFunction
from datamask.objectives.joint import Joint, Term
from datamask.runs.store import Run
from datamask.runs.stored_measures import stored_agreement
from datamask.work.context import UNWATCHED, Work

RESAMPLES, KEPT = 20, 0.8
"""Parts, and the share of the rows in each."""


def agreement(
    pool: Pool,
    config: SelectionConfig,
    work: Work = UNWATCHED,
    *,
    resamples: int = RESAMPLES,
) -> tuple[np.ndarray, np.ndarray]:
    """Select again on `resamples` random parts of the pool.

    Lambda keeps the scale of the whole corpus. Neighbour lists of a part are those of the whole with the left-out rows
    taken out, cut to the shortest, so they stay the true nearest neighbours within the part.

    Args:
        config: the run's settings; its ratio holds within each part.

    Returns:
        int32 ``(N,)`` each: how many parts held a row, and in how many of them it was selected.

    Raises:
        OptionError: the settings have pins, quotas, given rows or a budget, which mean nothing on a part.
        Stopped: from `work`.
    """
    if config.ruled or config.budget is not None:
        raise OptionError(
            "agreement is found by selecting from random parts of the corpus, in which --pin, --quota, "
            "--given and --budget mean something else; make a run without them to see it"
        )
    posed = pose(pool, config, work.poll)
    n = len(pool)
    appeared, selected = np.zeros(n, np.int32), np.zeros(n, np.int32)
    random = np.random.default_rng(config.seed)
    for part in range(resamples):
        work.poll()
        work.report(part / resamples, f"selecting again, {part + 1} of {resamples}")
        rows = np.sort(random.choice(n, max(2, round(KEPT * n)), replace=False))
        part_config = replace(config, seed=(config.seed + part + 1) % 2**63)
        problem = _within(pool, posed.problem, part_config, rows)
        learned = learn(learning.load(config.estimator)(problem, part_config), poll=work.poll)
        appeared[rows] += 1
        selected[rows[learned.mask.cpu().numpy()]] += 1
    work.report(1.0, "finishing")
    return appeared, selected


def _within(pool: Pool, whole: Problem, config: SelectionConfig, rows: np.ndarray) -> Problem:
    """The problem on these rows alone, on the whole problem's scales."""
    row_index = torch.from_numpy(rows).to(pool.device)
    features = pool.features[row_index]
    length = list_length(whole.size / len(pool), len(pool))
    terms = tuple(
        Term(term.name, term.weight, _bound(pool, term.name, length, features, rows), term.scale)
        for term in whole.joint.terms
    )
    joint = Joint(whole.joint.quality.batch(row_index), terms, whole.joint.lamb, whole.joint.quality_scale)
    may = np.zeros(len(pool), dtype=bool)
    may[whole.eligible.cpu().numpy()] = True
    eligible = torch.from_numpy(may[rows].nonzero()[0]).to(pool.device)
    size = min(config.size(len(rows)), len(eligible) - 1)
    ties = tie_order(pool.corpus.hashes(config.seed)[rows], pool.device)
    column = None if whole.column is None else whole.column[row_index]
    return Problem(joint, size, eligible, ties, features, column=column)


def _bound(pool: Pool, name: str, length: int, features: Tensor, rows: np.ndarray) -> SetFunction:
    """The objective `name` bound to these rows; on neighbours, to what is left of lists of this length."""
    objective = objectives.load(name)
    if not objective.needs_neighbors:
        return objective.bind(features)
    graph = pool.graph(length)
    indices, similarities = lists_within(*graph.by_cosine(), rows)
    return objective.bind(
        features,
        (torch.from_numpy(indices).to(pool.device), torch.from_numpy(similarities).to(pool.device)),
        graph.exact,
    )


def lists_within(indices: np.ndarray, similarities: np.ndarray, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Neighbour lists of some rows among each other.

    Args:
        indices, similarities: ``(N, K)``, each row by falling similarity with itself first.
        rows: int64 ``(m,)``, rising.

    Returns:
        Positions in `rows`, int32 ``(m, k)``, and similarities ``(m, k)``; k is what the shortest list has left.
    """
    place = np.full(len(indices), -1, np.int32)
    place[rows] = np.arange(len(rows), dtype=np.int32)
    listed, near = place[indices[rows]], similarities[rows]
    inside = listed >= 0
    k = int(inside.sum(1).min())
    # those inside come first, in the order they had
    order = np.argsort(~inside, axis=1, kind="stable")[:, :k]
    return np.take_along_axis(listed, order, 1), np.take_along_axis(near, order, 1)


def write_agreement(
    run: Run,
    corpus: Corpus,
    cache_dir: Path,
    work: Work = UNWATCHED,
) -> None:
    """Make the run's selection again on random parts of the corpus, and keep how often each row was in, once.

    Raises:
        RunStateError: the run is not done, or of other rows. OptionError: its settings have pins, quotas, given rows or
            a budget. StoreError: it cannot be kept. Stopped: from `work`.
    """

    def counted() -> tuple[np.ndarray, np.ndarray]:
        selected_rows(run, corpus)
        config, device = run.config.selection, torch.device("cpu")
        stoppable = Work(work.poll)
        pool = Pool.under(config, corpus, device, Path(cache_dir), stoppable)
        return agreement(pool, config, work)

    stored_agreement(run, corpus.fingerprint, cache_dir).find_or_compute(counted, work.poll)
