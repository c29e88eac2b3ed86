"""What a run will cost, before it starts: rows, tokens, memory, and about how long it takes.

Time is `time_estimate`'s.

Tokens come from runs with this objective on this corpus, at this lambda or on both sides of it. Without any, nobody
knows how long the rows will be that an objective prefers: two ends are said, average rows and the rows of best quality.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from datamask import catalogue
from datamask.config import SelectionConfig
from datamask.corpus import Corpus
from datamask.dashboard.drawing import words
from datamask.dashboard.runs import time_estimate
from datamask.evaluation.result import NO_RESULT
from datamask.runs.store import Run

LOOKED_AT = 40
"""Newest runs looked at for a measurement; older ones may come from other hardware anyway."""

ALIKE = ("objective", "estimator", "scale", "prune", "collapse", "center", "pin", "ban", "quotas", "given")
"""Settings on which it depends how long the selected rows are, besides lambda and their number."""


@dataclass(frozen=True)
class Cost:
    """An estimate.

    Attributes:
        selected: S. tokens: its tokens, or what S rows of average length have; None without lengths.
        measured: whether the tokens are those of earlier runs, or of the settings themselves.
        best_tokens: of the S rows of best quality, None where it is not known.
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
    measured: bool = False
    best_tokens: float | None = None


def estimate(
    config: SelectionConfig,
    n: int,
    dim: int,
    fingerprint: str,
    runs: Iterable[Run],
    tokens: float | None = None,
    best_tokens: Callable[[int], float | None] | None = None,
) -> Cost:
    """What a run with these settings will cost on a corpus of n rows and dim dimensions.

    Args:
        config: the settings.
        n, dim, fingerprint: of the corpus. tokens: its sum of lengths, if it has lengths.
        runs: stored runs, newest first.
        best_tokens: tokens of so many rows of best quality, if the corpus has lengths.

    Raises:
        OptionError: the ratio selects none or all of the rows.
    """
    runs = list(itertools.islice(runs, LOOKED_AT))
    selected = config.size(n, tokens)
    needs_graph = any(catalogue.objective(name).needs_neighbors for name, _ in config.terms)
    masks = (config.n_rollout or 1) * n * (config.partial or 1.0)
    memory = n * dim * 4 + (n * 64 * 8 if needs_graph else 0) + int(masks * 5)
    seconds, basis = time_estimate.expected(config, n, dim, selected, fingerprint, runs)
    best = None if best_tokens is None or tokens is None or config.budget is not None else best_tokens(selected)
    length = None if tokens is None or config.budget is not None else _length(config, selected, fingerprint, runs)
    filled: float | None
    if config.budget is not None:
        filled, measured = config.budget, True
    elif length is not None:
        filled, measured = length * selected, True
    else:
        filled, measured = None if tokens is None else tokens * selected / n, False
    return Cost(selected, filled, seconds, basis, int(memory), config.budget is None, measured, best)


def sentence_of_two(solve: Cost | None, learn: Cost | None, n: int) -> str:
    """What is selected, and how long either way takes, in Markdown; one of the two may be None, refused."""
    first = _sized(solve, learn)
    ways = [("Solve", solve), ("Learn masks", learn)]
    known = [
        f"{name}: about **{words.roughly(cost.seconds)}**." for name, cost in ways if cost and cost.seconds is not None
    ]
    if not known:
        return f"{_rows(first, n)}. No estimate of the time yet."
    unknown = [f"{name}: no estimate yet." for name, cost in ways if cost and cost.seconds is None]
    return f"{_rows(first, n)}. {' '.join([*known, *unknown])}"


def epochs_of_two(solve: Cost | None, learn: Cost | None, trained: float, times: float = 1.0) -> str:
    """How often a training reads what is selected, in a sentence; empty where its tokens are not known.

    Args:
        trained: tokens that the model reads. times: all rows for each open one, where these are a sample.
    """
    first = _sized(solve, learn)
    if not first.tokens:
        return ""
    best = first.tokens if first.measured or first.best_tokens is None else first.best_tokens
    low, high = (times * amount for amount in sorted((first.tokens, best)))
    kept = _between(words.short(low), words.short(high))
    epochs = _between(*(f"{reads:.2g}" if reads < 10 else f"{reads:,.0f}" for reads in (trained / high, trained / low)))
    return f"{'On all rows, ' if times > 1 else ''}{kept} tokens: {epochs} epochs of {words.short(trained)}."


def _between(low: str, high: str) -> str:
    return low if low == high else f"{low} to {high}"


def details_of_two(solve: Cost | None, learn: Cost | None) -> str:
    """Where the estimates come from, for a help text: what both ways share is said once."""
    first = _sized(solve, learn)
    ways = [(name, cost) for name, cost in (("Solve", solve), ("Learn masks", learn)) if cost is not None]
    if len({cost.basis for _, cost in ways}) == 1:
        times = f"Time: {first.basis}."
    else:
        times = " ".join(f"Time of {name}: {cost.basis}." for name, cost in ways)
    text = f"{times} Memory: at least {words.size(max(cost.memory for _, cost in ways))}."
    if first.tokens is None or not first.exact:
        return text
    return text + (
        " Tokens: estimated from earlier runs."
        if first.measured
        else " Tokens: from rows of mean length to the rows of best quality."
    )


def _sized(solve: Cost | None, learn: Cost | None) -> Cost:
    """The one of two ways that says how many tokens: both select by the same settings, so one that was measured."""
    ways = [cost for cost in (solve, learn) if cost is not None]
    if not ways:
        raise ValueError("solve and learn are both None: at least one of the ways must have a cost")
    return next((cost for cost in ways if cost.measured), ways[0])


def _rows(cost: Cost, n: int) -> str:
    """What is selected."""
    rows = f"Keeps {'' if cost.exact else 'about '}**{cost.selected:,}** of {n:,} rows"
    if cost.tokens and (cost.measured or cost.best_tokens is None):
        rows += f" (about {words.short(cost.tokens)} tokens)"
    elif cost.tokens and cost.best_tokens is not None:
        low, high = (words.short(count) for count in sorted((cost.tokens, cost.best_tokens)))
        rows += f" (about {_between(low, high)} tokens)"
    return rows


def _length(config: SelectionConfig, selected: int, fingerprint: str, runs: Sequence[Run]) -> float | None:
    """Tokens of a selected row, read off earlier runs of this corpus between whose lambdas this one lies."""
    known: dict[float, float] = {}
    for run in runs:
        then, taken = run.config.selection, (run.status().result or NO_RESULT).size
        alike = all(getattr(then, name) == getattr(config, name) for name in ALIKE)
        size = taken.selected or 0
        # another size selects other rows: a little more or less changes nothing
        if (
            alike
            and taken.tokens
            and run.facts().get("fingerprint") == fingerprint
            and abs(size - selected) <= 0.1 * selected
        ):
            known.setdefault(then.lamb, taken.tokens / size)
    if not catalogue.estimator(config.estimator).guided:
        return next(iter(known.values()), None)
    below = max((lamb for lamb in known if lamb <= config.lamb), default=None)
    above = min((lamb for lamb in known if lamb >= config.lamb), default=None)
    if below is None or above is None:
        return None
    share = (config.lamb - below) / (above - below) if above > below else 0.0
    return known[below] + share * (known[above] - known[below])


def token_total(corpus: Corpus) -> float | None:
    """The sum of the length column, where there is one."""
    return None if corpus.lengths is None else float(np.nansum(corpus.lengths))


def best_tokens(corpus: Corpus, count: int) -> float | None:
    """The sum of the lengths of so many rows of best quality, where there are lengths."""
    if corpus.lengths is None:
        return None
    best = np.argpartition(-corpus.quality, min(count, len(corpus) - 1))[:count]
    return float(np.nansum(corpus.lengths[best]))
