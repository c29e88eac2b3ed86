"""A target that steers: half of a person's examples gives the quality to select by, the other half judges.

The quality of a row is the rank, in [0, 1], of its mean cosine to the `NEAREST` of the steering half that are nearest
to it (benchmark-targeted ranking, BETR, arXiv 2507.12466, with features in the place of a trained scorer). The corpus's
own quality is not used.

| symbol | meaning |
|---|---|
| E, m | unit features of the m examples |
| A, B | places of the steering and of the judging half, dealt by a seed; no example is in both |
| k | ``min(NEAREST, |A|)`` |
| c_i | mean of the k largest ``x_i . e_a`` over a in A |
| q_i | ``(rank of c_i - 1) / (N - 1)``, equal ones share their mean rank |

Nothing may be judged by what it was steered by: of the judging half, whatever is a near-copy of the steering half, or
has its text, is taken out and counted. And nothing may be selected that a person already has: the examples of either
half, and every near-copy of one, leave the corpus before anything is selected, however the examples were named.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components
from scipy.stats import rankdata

from datamask.corpus.copies import ROUNDING
from datamask.corpus.corpus import Corpus
from datamask.errors import InputError
from datamask.evaluation.examples import Examples
from datamask.evaluation.measures.copies import NEAR, nearest_cosine
from datamask.polling import Poll, no_poll

NEAREST = 8
"""Examples of the steering half whose mean cosine a row goes by: one alone may be an odd one, all of them blur what
several kinds of examples have in common."""

LEAST_JUDGES = 40
"""Different examples that must be left to judge by: ten cells of four."""

DECIMALS = 6
"""Of a mean cosine before it is ranked: equal rows may differ by rounding."""

ROWS_AT_ONCE = 2_048


@dataclass(frozen=True)
class Aim:
    """What examples make of a corpus.

    Attributes:
        quality: float64 ``(N,)``, q.
        leaving: bool ``(N,)``, rows that are an example or a near-copy of one.
        steering: int64, places of the examples whose nearness is the quality.
        judging: int64, places of the others that are no near-copies of these, in an order that knows nothing of them.
        units: int64, for each of `judging` the number of its family of near-copies among them.
        near_copies: how many others were taken out because they are.
    """

    quality: np.ndarray
    leaving: np.ndarray
    steering: np.ndarray
    judging: np.ndarray
    units: np.ndarray
    near_copies: int


def with_quality(corpus: Corpus, quality: np.ndarray) -> Corpus:
    """The same rows with another quality, under a fingerprint of their own."""
    named = hashlib.sha256(corpus.fingerprint.encode() + quality.astype("<f8").tobytes()).hexdigest()
    return replace(corpus, quality=quality, fingerprint=named)


def aim(
    rows: np.ndarray,
    features: np.ndarray,
    texts: Sequence[str] | None,
    askable: np.ndarray,
    seed: int = 0,
    poll: Poll = no_poll,
) -> Aim:
    """Deal the examples into halves, rank the corpus by the one, make the other ready to judge.

    Args:
        rows: float32 ``(N, d)``, the corpus's features. features: float32 ``(m, d)``, the examples'. All of unit
            length.
        texts: m of them, or None.
        askable: bool ``(m,)``, which examples can be asked for; the others can only steer.

    Raises:
        InputError: too few different examples are left to judge by.
    """
    steering, judging = deal(len(features), seed)
    near = nearest_cosine(features[judging], features[steering], poll) >= NEAR - ROUNDING
    if texts is not None:
        steering_texts = {texts[place] for place in steering} - {""}
        near |= np.array([texts[place] in steering_texts for place in judging], bool)
    judging = judging[~near & askable[judging]]
    units = families_of(features[judging], poll)
    if len(set(units.tolist())) < LEAST_JUDGES:
        raise InputError(
            f"--target: of the {len(near):,} examples of the evaluating half {int(near.sum()):,} are duplicates of "
            f"the steering half, and {len(set(units.tolist())):,} different ones are left; at least {LEAST_JUDGES} are "
            f"needed to tell selections apart. Give more examples, or less alike ones"
        )
    means, nearest = nearness(rows, features, steering, poll)
    return Aim(ranks(means), nearest >= NEAR - ROUNDING, steering, judging, units, int(near.sum()))


def deal(m: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Places of the steering half (the smaller one, where m is odd) and of the judging half, in random orders."""
    order = np.random.default_rng([2507, seed]).permutation(m)
    return order[: m // 2], order[m // 2 :]


def nearness(
    rows: np.ndarray, examples: np.ndarray, steering: np.ndarray, poll: Poll = no_poll
) -> tuple[np.ndarray, np.ndarray]:
    """c of each row, and its cosine to the nearest of all examples: float64 ``(N,)`` each."""
    k = min(NEAREST, len(steering))
    means, nearest = np.empty(len(rows)), np.empty(len(rows))
    steered = np.zeros(len(examples), bool)
    steered[steering] = True
    for low in range(0, len(rows), ROWS_AT_ONCE):
        poll()
        part = slice(low, low + ROWS_AT_ONCE)
        cosines = rows[part] @ examples.T
        nearest[part] = cosines.max(axis=1)
        toward = cosines[:, steered]
        means[part] = np.partition(toward, toward.shape[1] - k, axis=1)[:, -k:].mean(axis=1, dtype=np.float64)
    return means, nearest


def ranks(means: np.ndarray) -> np.ndarray:
    """q of c."""
    quality: np.ndarray = (rankdata(np.round(means, DECIMALS)) - 1) / max(1, len(means) - 1)
    return quality


def families_of(features: np.ndarray, poll: Poll = no_poll) -> np.ndarray:
    """A number for each row, equal for those that near-copies connect: int64 ``(m,)``."""
    firsts, seconds = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
    for low in range(0, len(features), ROWS_AT_ONCE):
        poll()
        first, second = np.nonzero(features[low : low + ROWS_AT_ONCE] @ features.T >= NEAR - ROUNDING)
        firsts.append(first + low)
        seconds.append(second)
    pairs = np.concatenate(firsts), np.concatenate(seconds)
    near = coo_array((np.ones(len(pairs[0]), bool), pairs), shape=(len(features), len(features)))
    families: np.ndarray = connected_components(near, directed=False)[1].astype(np.int64)
    return families


def example_notes(examples: Examples, aimed: Aim, left: int, by_text: bool) -> list[str]:
    """What was done with the examples, in sentences; `left` is how many rows left the corpus."""
    repeated = f" ({examples.repeated:,} more repeat them)" if examples.repeated else ""
    k = min(NEAREST, len(aimed.steering))
    return [
        f"Of {len(examples):,} different examples{repeated}, {len(aimed.steering):,} steer: quality is the rank of a "
        f"row's mean cosine to the {k} of them nearest to it, and the corpus's own quality is not used. The others "
        f"evaluate: {len(aimed.judging):,} of them, without {aimed.near_copies:,} duplicates of the steering half "
        f"(cosine {NEAR:g} or more, or the same text).",
        f"{left:,} rows that are an example, or a duplicate of one, were removed from the corpus before anything was "
        "selected: what you have already is not selected again.",
        *(
            []
            if by_text
            else [
                "The examples have no texts here, so they are evaluated by the features of the selections. That is a "
                "weaker test than text, because it sees only what these features see."
            ]
        ),
    ]
