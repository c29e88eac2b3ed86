"""Warm starts: which finished run the next one goes on from, and where that one ended. Loads no torch.

The rules may differ, and so may lambda and the number of rows: what the earlier run found is brought under the new
rules by `datamask.learning.warm_start`. A start changes how soon a run ends, not what it optimises or obeys.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np

from datamask import catalogue
from datamask.config import SelectionConfig
from datamask.errors import DatamaskError, StoreError
from datamask.runs.formats import load_sealed
from datamask.runs.store import Run

FARTHEST = 0.2
"""In lambda: from farther away a start saves nothing."""

LARGEST_RATIO = 1.5
"""Of the two amounts that are to be selected."""


def warm_start(config: SelectionConfig, runs: Iterable[Run], fingerprint: str) -> str | None:
    """The id of the run that one with these settings starts from; None: from nothing.

    Of the runs of the same estimator and objective on this corpus the one nearest in lambda, then in the amount, then
    the newest. Settings that were run before start as they did then, so that they give what they gave; a learner that
    draws masks starts from its own seed's run, because selections of several seeds are held against each other.

    Args:
        runs: newest first.
    """
    if not catalogue.estimator(config.estimator).warm or not all(
        catalogue.objective(name).warm for name, _ in config.terms
    ):
        return None
    nearest: tuple[float, float] | None = None
    nearest_id: str | None = None
    for run in runs:
        try:
            then, facts, done = run.config.selection, run.facts(), run.status().state == "done"
        except DatamaskError:  # a damaged record is nothing to start from
            continue
        if not done or facts.get("fingerprint") != fingerprint:
            continue
        if then == config:
            return facts.get("warm_from")
        distance = _distance(then, config)
        if distance is not None and run.has_rows and (nearest is None or distance < nearest):
            nearest, nearest_id = distance, run.id
    return nearest_id


def _distance(then: SelectionConfig, now: SelectionConfig) -> tuple[float, float] | None:
    """How far two settings are from each other, in lambda and in the amount; None: too far, or something else."""

    def bound(settings: SelectionConfig) -> tuple[object, ...]:
        seeded = catalogue.estimator(settings.estimator).seeded
        return (
            settings.estimator,
            settings.objective,
            settings.center,
            settings.components,
            settings.scale,
            settings.budget is None,
            settings.seed if seeded else None,
        )

    def amount(settings: SelectionConfig) -> float:
        return settings.select_ratio if settings.budget is None else settings.budget

    if bound(then) != bound(now):
        return None
    in_lambda, in_amount = round(abs(then.lamb - now.lamb), 9), abs(math.log(amount(then) / amount(now)))
    return (in_lambda, in_amount) if in_lambda <= FARTHEST and in_amount <= math.log(LARGEST_RATIO) else None


def stored_end(run: Run, n: int) -> dict[str, np.ndarray]:
    """Where a run ended, as arrays for `datamask.learning.warm_start.WarmStart`.

    Args:
        n: rows of the corpus.

    Raises:
        StoreError: it has no rows, or they are not those of this corpus.
    """
    rows = run.rows(("selected", "eligible", "score", "logit"), optional=("given",))
    if rows.num_rows != n:
        raise StoreError(f"run {run.id} has {rows.num_rows:,} rows, and the corpus {n:,}")
    given = rows["given"].to_numpy() if "given" in rows.column_names else np.zeros(n, dtype=bool)
    could = rows["eligible"].to_numpy() | given
    end = {"mask": rows["selected"].to_numpy() | given, "score": rows["score"].to_numpy().astype(np.float64)}
    checkpoint = run.path / "checkpoint.npz"
    state = load_sealed(checkpoint)[0].get("logits") if checkpoint.is_file() else None
    if state is not None and (state.ndim != 1 or state.dtype.kind != "f"):
        raise StoreError(f"{checkpoint} is damaged: its logits are {state.dtype} {state.shape}")
    if run.config.selection.estimator != "relaxed":
        logits = rows["logit"].to_numpy(zero_copy_only=False).astype(np.float32)
        # given rows have no line of their own in the selection, but a logit they had
        if state is not None and len(state) == int(could.sum()):
            logits[could] = state
        end["logits"] = logits
    elif state is not None and len(state) == int(could.sum()) + 1 and 0 <= state[:-1].min() <= state[:-1].max() <= 1:
        end["weights"] = np.zeros(n)
        end["weights"][could] = state[:-1]  # beside how far steps reached
    elif state is not None and len(state) > 2:
        end["y"] = state[:-2]  # beside the smoothing and the threshold (`datamask.learning.relaxed_steps`)
    return end
