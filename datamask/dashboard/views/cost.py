"""What a run will cost, before it starts: rows, tokens, memory, and about how long it takes.

Time comes from runs already made: on this corpus, with this objective and estimator, else on other corpora, scaled by
the work of a step. Without any, there is no number: a guess about an unknown machine would be worse than none.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from dataclasses import dataclass

from datamask import catalogue
from datamask.config import SelectionConfig
from datamask.dashboard import words
from datamask.runs.store import Run

LOOKED_AT = 40
"""Newest runs looked at for a measurement; older ones may come from other hardware anyway."""


WARM = 5
"""Steps of an unfinished run from which its pace is believed; the first ones still compile and load."""


@dataclass(frozen=True)
class Cost:
    """An estimate.

    Attributes:
        selected: S. tokens: expected tokens of a selection of average length, None without lengths.
        seconds: about how long, None where nothing was measured yet. basis: where the number comes from.
        exact: whether exactly S rows are selected; a token budget is filled by about so many.
        memory: bytes the features, their neighbour lists and a step's masks take together.
    """

    selected: int
    tokens: float | None
    seconds: float | None
    basis: str
    memory: int
    exact: bool = True


def work(config: SelectionConfig, n: int, dim: int) -> float:
    """The work of all steps in arbitrary units: masks times rows of a batch times dimensions, over all steps."""
    entry = catalogue.estimator(config.estimator)
    if "n_epochs" not in entry.defaults:
        return 0.0
    masks = float(config.n_epochs) * (config.n_rollout or 1) * (config.partial or 1.0)
    return masks * n * (1 - config.prune) * dim


def estimate(config: SelectionConfig, n: int, dim: int, fingerprint: str, runs: Iterable[Run],
             tokens: float | None = None) -> Cost:
    """What a run with these settings will cost on a corpus of n rows and dim dimensions.

    Args:
        config: the settings.
        n, dim, fingerprint: of the corpus. tokens: its sum of lengths, if it has lengths.
        runs: stored runs, newest first.

    Raises:
        OptionError: the ratio selects none or all of the rows.
    """
    selected = config.size(n, tokens)
    needs_graph = any(catalogue.objective(name).needs_neighbors for name, _ in config.terms)
    masks = (config.n_rollout or 1) * n * (config.partial or 1.0)
    memory = n * dim * 4 + (n * 64 * 8 if needs_graph else 0) + int(masks * 5)
    seconds, basis = _time(config, n, dim, fingerprint, runs)
    return Cost(selected, None if tokens is None else tokens * selected / n, seconds, basis, int(memory),
                config.budget is None)


def sentence(cost: Cost, n: int) -> str:
    """The cost in a line or two of Markdown."""
    rows = f"Selects {'' if cost.exact else 'about '}**{cost.selected:,}** of {n:,} rows"
    if cost.tokens:
        rows += f", about {words.short(cost.tokens)} tokens"
    if cost.seconds is None:
        return f"{rows}. No run like this yet, so no estimate of the time."
    return f"{rows}, in about **{words.roughly(cost.seconds)}**."


def details(cost: Cost) -> str:
    """Where the estimate comes from, for a help text."""
    return (f"Time: {cost.basis}. Memory: at least {words.size(cost.memory)} for features, neighbour lists and masks. "
            "Tokens: if the selection's rows are of average length.")


def _time(config: SelectionConfig, n: int, dim: int, fingerprint: str, runs: Iterable[Run]) -> tuple[float | None, str]:
    scaled = None
    for run in itertools.islice(runs, LOOKED_AT):
        then, facts = run.config.selection, run.facts()
        if then.estimator != config.estimator or then.objective != config.objective or not facts.get("dim"):
            continue
        learning, steps, around = _spent(run)
        if learning is None:
            continue
        rows = facts["n"]
        same = facts.get("fingerprint") == fingerprint
        done = work(then, rows, facts["dim"]) * steps / max(then.n_epochs or 1, 1)
        scale = work(config, n, dim) / done if done > 0 else n / rows
        seconds = learning * scale + around * (1 if same else n / rows)
        if same:
            return seconds, "measured on an earlier run of this corpus"
        scaled = scaled or seconds
    return scaled, "scaled from a run on another corpus" if scaled else "no run like this one has been made here yet"


def _spent(run: Run) -> tuple[float | None, int, float]:
    """Seconds of learning, the steps they went into, and seconds of everything else; None where nothing is known."""
    summary = run.status().summary
    if summary and summary.get("seconds") is not None:
        learning = float(summary["seconds"])
        return learning, int(summary.get("steps") or 0), max(0.0, (summary.get("seconds_total") or 0.0) - learning)
    metrics = run.metrics()
    if len(metrics.get("seconds", ())) < WARM:
        return None, 0, 0.0
    return float(metrics["seconds"][-1]), int(metrics["step"][-1]), 0.0
