"""What a run will cost, before it starts: rows, tokens, memory, and about how long it takes.

Time is `time_estimate`'s.

Tokens come from selections of this problem, at this lambda or on both sides of it. Without any, nobody knows how long
the rows are that an objective prefers, and a range is said (`token_range`).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from datamask import catalogue
from datamask.config import SelectionConfig
from datamask.config.selection import RULES
from datamask.corpus import Corpus
from datamask.dashboard.drawing import words
from datamask.dashboard.runs import time_estimate
from datamask.evaluation.result import NO_RESULT
from datamask.runs.store import Run

LOOKED_AT = 40
"""Newest runs looked at for a measurement; older ones may come from other hardware anyway."""

NEAR = 0.03
"""Of tokens: two neighbors along lambda that differ by no more are said as one number."""

ALIKE = ("objective", "estimator", "scale", "prune", "collapse", "center", "components", *RULES)
"""Settings on which it depends how long the selected rows are, besides lambda and their number."""


@dataclass(frozen=True)
class Cost:
    """An estimate.

    Attributes:
        selected: S. tokens: the least and the most of them, about, equal where it is known; None without lengths.
        measured: whether the tokens are those of earlier selections, or of the settings themselves.
        seconds: about how long, None where nothing was measured yet. basis: where the number comes from.
        exact: whether exactly S rows are selected; a token budget is filled by about so many.
        memory: bytes the features, their neighbour lists and a step's masks take together.
    """

    selected: int
    tokens: tuple[float, float] | None
    seconds: float | None
    basis: str
    memory: int
    exact: bool = True
    measured: bool = False


def estimate(
    config: SelectionConfig,
    n: int,
    dim: int,
    fingerprint: str,
    runs: Iterable[Run],
    tokens: float | None = None,
    between: Callable[[int, float], tuple[float, float]] | None = None,
    solved: Mapping[float, float] = {},
) -> Cost:
    """What a run with these settings will cost on a corpus of n rows and dim dimensions.

    Args:
        config: the settings.
        n, dim, fingerprint: of the corpus. tokens: its sum of lengths, if it has lengths.
        runs: stored runs, newest first.
        between: the least and the most tokens of so many rows at a lambda; without it, rows have mean length.
        solved: tokens of selections of this problem, by lambda.

    Raises:
        OptionError: the ratio selects none or all of the rows.
    """
    runs = list(itertools.islice(runs, LOOKED_AT))
    selected = config.size(n, tokens)
    needs_graph = any(catalogue.objective(name).needs_neighbors for name, _ in config.terms)
    masks = (config.n_rollout or 1) * n * (config.partial or 1.0)
    memory = n * dim * 4 + (n * 64 * 8 if needs_graph else 0) + int(masks * 5)
    seconds, basis = time_estimate.expected(config, n, dim, selected, fingerprint, runs)
    if config.budget is not None:
        amounts, measured = (config.budget, config.budget), True
    elif tokens is None:
        amounts, measured = None, False
    else:
        known = _known(config, selected, fingerprint, runs, solved)
        mean = tokens * selected / n
        amounts = known or ((mean, mean) if between is None else between(selected, config.lamb))
        measured = known is not None
    return Cost(selected, amounts, seconds, basis, int(memory), config.budget is None, measured)


def sentence_of_two(solve: Cost | None, learn: Cost | None, n: int, shown: int | None = None) -> str:
    """What is selected, and how long a way takes where that is known, in Markdown; one may be None, refused.

    Args:
        n: rows of the corpus. shown: the selected rows that the page says already; their number is not said again.
    """
    first = _sized(solve, learn)
    size = [] if first.selected == shown else [f"{_rows(first, n)}."]
    ways = [("Solve", solve), ("Learn masks", learn)]
    known = [(name, cost.seconds) for name, cost in ways if cost is not None and cost.seconds is not None]
    return " ".join([*size, *(f"{name}: about **{words.roughly(seconds)}**." for name, seconds in known)])


def epochs_of_two(solve: Cost | None, learn: Cost | None, trained: float, times: float = 1.0) -> str:
    """How often a training reads what is selected, in a sentence; empty where its tokens are not known.

    Args:
        trained: tokens that the model reads. times: all rows for each open one, where these are a sample.
    """
    first = _sized(solve, learn)
    if not first.tokens or not first.tokens[0]:
        return ""
    low, high = (times * amount for amount in first.tokens)
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
        " Tokens: of selections of this problem at this λ, or on both sides of it."
        if first.measured
        else " Tokens: a range, because no selection of this problem is known yet."
    )


def _sized(solve: Cost | None, learn: Cost | None) -> Cost:
    """The one of two ways that says how many tokens: both select by the same settings, so one that was measured."""
    ways = [cost for cost in (solve, learn) if cost is not None]
    if not ways:
        raise ValueError("solve and learn are both None: at least one of the ways must have a cost")
    return next((cost for cost in ways if cost.measured), ways[0])


def _rows(cost: Cost, n: int) -> str:
    """What is selected."""
    rows = f"Selects {'' if cost.exact else 'about '}**{cost.selected:,}** of {n:,} rows"
    if cost.tokens:
        rows += f" (about {_between(*map(words.short, cost.tokens))} tokens)"
    return rows


def _known(
    config: SelectionConfig, selected: int, fingerprint: str, runs: Sequence[Run], solved: Mapping[float, float]
) -> tuple[float, float] | None:
    """The least and the most tokens, by selections of this problem between whose lambdas this one lies."""
    guided = catalogue.estimator(config.estimator).guided
    known = dict(solved) if guided else {}
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
            known.setdefault(then.lamb, taken.tokens / size * selected)
    if known and not guided:
        return (next(iter(known.values())),) * 2
    below = max((lamb for lamb in known if lamb <= config.lamb), default=None)
    above = min((lamb for lamb in known if lamb >= config.lamb), default=None)
    if below is None or above is None:
        return None
    low, high = sorted((known[below], known[above]))
    if high > (1 + NEAR) * low:
        return low, high
    share = (config.lamb - below) / (above - below) if above > below else 0.0
    return (known[below] + share * (known[above] - known[below]),) * 2


def token_total(corpus: Corpus) -> float | None:
    """The sum of the length column, where there is one."""
    return None if corpus.lengths is None else float(np.nansum(corpus.lengths))


def token_range(corpus: Corpus, typical: np.ndarray, count: int, lamb: float) -> tuple[float, float]:
    """The least and the most tokens that so many selected rows have, whatever objective selects them.

    At lambda 1 they are the rows of best quality. At lambda 0 they are taken to lie between rows of mean length, the
    most typical rows and the least typical ones; between, the ends are weighted. Two standard deviations of a random
    draw are added. That contained 252 of 252 selections by three objectives of three corpora.

    Args:
        typical: float ``(N,)``, similarity of each row to the mean row.
    """
    lengths = np.nan_to_num(corpus.lengths) if corpus.lengths is not None else np.ones(len(corpus))
    best, most, least = (
        float(lengths[np.argpartition(-values, min(count, len(corpus) - 1))[:count]].sum())
        for values in (corpus.quality, typical, -typical)
    )
    ends = [best, *(lamb * best + (1 - lamb) * diverse for diverse in (lengths.mean() * count, most, least))]
    chance = 2 * float(lengths.std()) * math.sqrt(count * (1 - count / len(corpus)))
    return max(min(ends) - chance, 0.0), max(ends) + chance
