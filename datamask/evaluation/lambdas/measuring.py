"""What each selection teaches: one loss per held-out text, for two measures.

Cross-entropy: minus log probability of the text's words, or bytes, under a model trained on the selection. Coverage:
one minus the text's cosine to the nearest training text in the space of `meaning`. Both on the same training text:
exactly so many words or bytes, drawn at random from the selection, whole texts but for the last.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from datamask.evaluation.lambdas.holdout import HeldOutTexts
from datamask.evaluation.lambdas.meaning import Meaning
from datamask.evaluation.lambdas.proxy_models import ProxyModel, cut
from datamask.evaluation.lambdas.statistics import Losses, share_of_sets
from datamask.polling import Poll, no_poll

DRAWS = 4
"""Random selections per half of a split; their mean loss is what the others are held against."""

Selections = Mapping[Any, np.ndarray]
"""By a name of any type, rows of the corpus."""


def random_rows(remaining: np.ndarray, size: int, split: int, half: int, seed: int) -> list[np.ndarray]:
    """`DRAWS` random selections of `size` of the remaining rows."""
    generators = [np.random.default_rng([seed, 31, split, half, draw]) for draw in range(DRAWS)]
    return [generator.choice(remaining, size, replace=False) for generator in generators]


def measure(
    proxy: ProxyModel,
    meaning: Meaning,
    selections: Selections,
    remaining: np.ndarray,
    size: int,
    budget: int,
    held_out: HeldOutTexts,
    units: np.ndarray,
    split: int,
    seed: int,
    poll: Poll = no_poll,
    tick: Callable[[float], None] = lambda share: None,
) -> tuple[tuple[Losses, Losses], tuple[Losses, Losses]]:
    """Both measures of all selections and of random ones on both halves of a split.

    Args:
        proxy: what learns from each selection. budget: how much of its text, as the proxy model counts.
        selections: name -> rows of the corpus. Random comes last in the losses.
        remaining, size: what random selections are drawn from, and how many rows they hold.
        units: by text number, texts of one number are near-copies.
        tick: called with the share of the trainings that is done.

    Returns:
        Cross-entropy (choosing half, reporting half), and coverage likewise.
    """
    entropy: list[Losses] = []
    coverage: list[Losses] = []
    losses_of: dict[bytes, tuple[np.ndarray, np.ndarray]] = {}
    done, total = 0, 2 * (len(selections) + DRAWS)
    for half, texts in enumerate((held_out.choose, held_out.report)):
        poll()
        losses_of.clear()
        shuffle = 2 * (SEEDS * seed + split) + half + 100

        def losses(
            rows: np.ndarray,
            order: int = shuffle,
            texts: np.ndarray = texts,
        ) -> tuple[np.ndarray, np.ndarray]:
            nonlocal done
            tick(done / total)
            done += 1
            trained = cut(proxy, rows, budget, order)
            key = trained.tobytes()
            # two lambdas may give one selection, and quality alone is the same under every objective
            if key not in losses_of:
                poll()
                losses_of[key] = (
                    proxy.sums(trained, budget, texts, order, poll),
                    1.0 - meaning.nearest(texts, trained, poll),
                )
            return losses_of[key]

        random = random_rows(remaining, size, split, half, seed)
        drawn = [losses(rows) for rows in random]
        words = float(np.mean([proxy.lengths[rows].sum() for rows in random]))
        of_sets = share_of_sets(size / len(remaining), min(budget / words, 1.0))
        columns = [losses(rows) for rows in selections.values()]
        lengths = proxy.weights(texts)
        for into, which, weights in ((entropy, 0, lengths), (coverage, 1, np.ones(len(texts)))):
            of_random = np.column_stack([pair[which] for pair in drawn])
            sums = np.column_stack([*(pair[which] for pair in columns), of_random.mean(axis=1)])
            into.append(Losses(sums, weights, units[texts], of_random, of_sets))
    return (entropy[0], entropy[1]), (coverage[0], coverage[1])


SEEDS = 1_000
"""Seeds are told apart by this much in the numbers of the hash."""


def available(proxy: ProxyModel, selections: Sequence[np.ndarray]) -> int:
    """Words, or bytes, of the shortest of these selections."""
    return min(int(proxy.lengths[rows].sum()) for rows in selections)
