"""Held-out text, and the corpus as it would be without it: five times for rows of the corpus, once for own texts.

Whatever is held out, and every near-copy of it, leaves the corpus before anything is selected: the selection is the one
that a corpus without that text would get. To select first and drop afterwards would be unfair in another way: a
selection that keeps one member of each family would lose whole families, one that keeps them all would not.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from datamask.config.lambda_question import LEAST_TEXTS, Target
from datamask.corpus import row_hash
from datamask.corpus.copies import ROUNDING, near_families
from datamask.corpus.corpus import Corpus
from datamask.corpus.neighbors import NeighborGraph
from datamask.errors import InputError, OptionError
from datamask.evaluation.lambdas.meaning import Meaning
from datamask.evaluation.measures.copies import NEAR
from datamask.evaluation.measures.words import Words
from datamask.evaluation.pool import Pool
from datamask.polling import Poll, no_poll

SPLITS = 5
FOLDS = 20
"""Rows are dealt into twenty by ``hash(id) mod 20``; split j holds out the next few of them."""

ENOUGH_TEXTS = 400
"""Texts to be asked per split: where one twentieth of the rows has fewer of the target, up to four are held out."""

HALF_WORDS = 100_000
"""Words asked per half of a split at most; more would cost time and hardly narrow an interval."""

LEAST_REMAINING = 0.25
"""Share of the rows that must be left to select from."""

LONGEST_CHAIN = 50
BEST_SHARE = 0.25
ROWS_AT_ONCE = 32_768


@dataclass(frozen=True)
class HeldOutTexts:
    """The held-out texts of one split, as text numbers of the `Words`, in two halves that share no near-copies."""

    choose: np.ndarray
    report: np.ndarray


@dataclass(frozen=True)
class Holdout:
    """What may be selected, and what is then asked.

    Attributes:
        remaining: int64, rows of the corpus that may be selected. near_copies: how many left besides the held-out rows.
        splits: what is asked; several where all are asked of the same remaining rows.
    """

    remaining: np.ndarray
    near_copies: int
    splits: tuple[HeldOutTexts, ...]


class RestrictedPool(Pool):
    """Some rows of a pool as a pool of their own; its neighbour lists are what is left of the whole ones.

    A row whose list got shorter is listed itself in the free places, at similarity 0, which adds to no objective.
    """

    def __init__(self, whole: Pool, rows: np.ndarray, poll: Poll = no_poll) -> None:
        super().__init__(subset(whole.corpus, rows), whole.device, whole.cache_dir, poll=poll)
        self._whole, self._rows = whole, rows

    def graph(self, k: int) -> NeighborGraph:
        """What is left of the first k listed neighbours of each row."""
        k = min(k, len(self))
        if self._graph is None or self._graph.k < k:
            self._graph = restricted_graph(self._whole.graph(k), self._rows, self._poll)
        return self._graph


def subset(corpus: Corpus, rows: np.ndarray) -> Corpus:
    """Some rows of a corpus, in rising order, as a corpus."""
    rows = np.sort(rows)
    named = hashlib.sha256(corpus.fingerprint.encode() + rows.astype("<i8").tobytes()).hexdigest()
    take = pa.array(rows)
    lengths = None if corpus.lengths is None else corpus.lengths[rows]
    return replace(
        corpus,
        ids=corpus.ids.take(take),
        quality=corpus.quality[rows],
        features=corpus.features[rows],
        lengths=lengths,
        metadata=corpus.metadata.take(take),
        source_file=corpus.source_file[rows],
        source_row=corpus.source_row[rows],
        fingerprint=named,
        norms=None if corpus.norms is None else corpus.norms[rows],
    )


def restricted_graph(graph: NeighborGraph, rows: np.ndarray, poll: Poll = no_poll) -> NeighborGraph:
    """The lists of `rows` (rising) without all other rows, renumbered; see `RestrictedPool`."""
    place = np.full(len(graph.indices), -1, np.int32)
    place[rows] = np.arange(len(rows), dtype=np.int32)
    indices = np.empty((len(rows), graph.k), np.int32)
    similarities = np.empty((len(rows), graph.k), np.float32)
    for low in range(0, len(rows), ROWS_AT_ONCE):
        poll()
        part = rows[low : low + ROWS_AT_ONCE]
        listed = place[graph.indices[part]]
        order = np.argsort(listed < 0, axis=1, kind="stable")
        listed = np.take_along_axis(listed, order, 1)
        absent = listed < 0
        block = slice(low, low + len(part))
        indices[block] = np.where(absent, np.arange(low, low + len(part), dtype=np.int32)[:, None], listed)
        similarities[block] = np.where(absent, 0.0, np.take_along_axis(graph.similarities[part], order, 1))
    return NeighborGraph(indices, similarities, False)


def target_rows(corpus: Corpus, target: Target) -> np.ndarray:
    """bool ``(N,)``: the rows that are of the target's kind (before any are held out).

    Raises:
        OptionError: no such column, or one without numbers.
    """
    if target.kind == "quality":
        best: np.ndarray = corpus.quality >= np.quantile(corpus.quality, 1 - BEST_SHARE)
        return best
    if target.kind in ("column", "score"):
        if target.column in _quality_columns(corpus) and target.column not in corpus.metadata.column_names:
            raise OptionError(
                f"--target: {target.column!r} is the corpus's quality column; use --target quality for its best rows"
            )
        if target.column not in corpus.metadata.column_names:
            raise OptionError(
                f"--target: the corpus has no column {target.column!r}; it has "
                f"{', '.join(corpus.metadata.column_names) or 'no metadata columns'}"
            )
        if target.kind == "score":
            return _high(corpus, target.column)
        equal = pc.equal(corpus.metadata[target.column].cast(pa.string()), target.value)
        of_value: np.ndarray = pc.fill_null(equal, False).to_numpy().astype(bool)
        return of_value
    return np.ones(len(corpus), bool)


def _quality_columns(corpus: Corpus) -> tuple[str, ...]:
    names = corpus.provenance.columns.get("quality") or ()
    return (names,) if isinstance(names, str) else tuple(names)


def _high(corpus: Corpus, column: str) -> np.ndarray:
    """bool ``(N,)``: the best quarter by a column of numbers; rows without one are not in it."""
    if not corpus.metadata_columns[column].has_numbers:
        raise OptionError(f"--target high:{column} needs a column of numbers, and the values of {column!r} are none")
    scores = pc.cast(corpus.metadata[column], pa.float64()).to_numpy().astype(float)
    scores = np.where(np.isfinite(scores), scores, -np.inf)
    known = np.isfinite(scores)
    best: np.ndarray = known & (scores >= np.quantile(scores[known], 1 - BEST_SHARE)) if known.any() else known
    return best


def held_out_rows(
    corpus: Corpus, words: Words, graph: NeighborGraph, target: Target, poll: Poll = no_poll
) -> list[Holdout]:
    """A holdout per split, its target held-out rows of the corpus.

    Raises:
        OptionError: too few rows of the target. InputError: nearly all rows repeat the held-out ones.
    """
    of_target = target_rows(corpus, target) & (words.lengths[: len(corpus)] > 0)
    fold = (row_hash(corpus.ids, 0) % np.uint64(FOLDS)).astype(np.int64)
    each = int(np.clip(np.ceil(ENOUGH_TEXTS * FOLDS / max(of_target.sum(), 1)), 1, FOLDS // SPLITS))
    texts = int((of_target & (fold < each * SPLITS)).sum())
    if texts < LEAST_TEXTS:
        raise OptionError(
            f"--target: there are {texts:,} texts of the kind {target.label!r}; at least {LEAST_TEXTS} "
            "are needed to tell selections apart"
        )
    unit, text = units_of(graph, words), words.text_of[: len(corpus)]
    holdouts = []
    for j in range(SPLITS):
        poll()
        held = fold // each == j
        leaving = near_rows(graph, held, poll) | np.isin(text, text[held])
        rows = np.flatnonzero(held & of_target)
        holdouts.append(
            holdout_without(leaving, int(leaving.sum() - held.sum()), (halves(rows, unit[rows], words, j),))
        )
    return holdouts


def units_of(graph: NeighborGraph, words: Words) -> np.ndarray:
    """A number for each row, equal for rows that say nearly the same: int64 ``(N,)``.

    Families of near-copies, but a chain of more than `LONGEST_CHAIN` of them says little about its ends: there, rows
    with the same text.
    """
    family = near_families(graph, NEAR)
    first = np.unique(words.text_of[: len(family)], return_index=True, return_inverse=True)
    same_text = first[1][first[2]]
    sizes = np.bincount(family)
    # numbers of families come first, those of texts after them
    return np.where(sizes[family] <= LONGEST_CHAIN, family, len(family) + same_text)


def near_rows(graph: NeighborGraph, held: np.ndarray, poll: Poll = no_poll) -> np.ndarray:
    """The rows of `held`, and those at cosine `NEAR` or above to one of them, as far as either lists the other."""
    leaving = held.copy()
    for low in range(0, len(held), ROWS_AT_ONCE):
        poll()
        part = slice(low, low + ROWS_AT_ONCE)
        near = graph.similarities[part] >= NEAR - ROUNDING
        leaving[part] |= (near & held[graph.indices[part]]).any(axis=1)
        held_part = held[part]
        leaving[graph.indices[part][held_part][near[held_part]]] = True
    return leaving


def holdout_without(leaving: np.ndarray, near_copies: int, splits: tuple[HeldOutTexts, ...]) -> Holdout:
    """The holdout whose remaining rows are all but the `leaving` ones.

    Raises:
        InputError: next to nothing is left.
    """
    remaining_rows = np.flatnonzero(~leaving)
    if len(remaining_rows) < LEAST_REMAINING * len(leaving):
        raise InputError(
            f"{near_copies:,} of {len(leaving):,} rows nearly repeat the held-out text, so that too little "
            "is left to select from; use texts of your own that are less like the corpus, or open a "
            "corpus whose features tell its samples apart"
        )
    return Holdout(remaining_rows, near_copies, splits)


def held_out_own_texts(corpus: Corpus, words: Words, meaning: Meaning, poll: Poll = no_poll) -> Holdout:
    """One holdout for texts of the person's own, numbered after the corpus's rows: dealt into five splits.

    Raises:
        InputError: too few texts with words in them, or nearly all rows repeat them.
    """
    texts, leaving = own_texts(len(corpus), words, meaning, poll)
    dealt = words.text_of[texts] // np.uint64(2) % np.uint64(SPLITS)
    splits = tuple(halves(texts[dealt == j], texts[dealt == j], words, j) for j in range(SPLITS))
    return holdout_without(leaving, int(leaving.sum()), splits)


def own_texts(n: int, words: Words, meaning: Meaning, poll: Poll = no_poll) -> tuple[np.ndarray, np.ndarray]:
    """The person's own texts that can be asked, numbered after the n rows of the corpus, and the rows that repeat them.

    Returns:
        int64, text numbers; bool ``(n,)``.

    Raises:
        InputError: too few texts with words in them.
    """
    texts = np.arange(n, len(words))
    texts = texts[words.lengths[texts] > 0]
    _, first = np.unique(words.text_of[texts], return_index=True)
    texts = texts[np.sort(first)]
    if len(texts) < LEAST_TEXTS:
        raise InputError(
            f"--target: {len(texts):,} different texts have words in them; at least {LEAST_TEXTS} are "
            "needed to tell selections apart"
        )
    leaving = np.isin(words.text_of[:n], words.text_of[texts]) | (meaning.nearest(np.arange(n), texts, poll) >= NEAR)
    return texts, leaving


def halves(texts: np.ndarray, units: np.ndarray, words: Words, split: int) -> HeldOutTexts:
    """Deal texts into the half that chooses and the half that reports; those of one unit stay together."""
    drawn = np.random.default_rng([split, 7]).permutation(len(texts))
    texts, units = texts[drawn], units[drawn]
    # whole units go to one half, by a hash that knows nothing of the texts' order
    side = hashed(units, split) % np.uint64(2) == 0
    return HeldOutTexts(_within(texts[side], words.lengths), _within(texts[~side], words.lengths))


def hashed(numbers: np.ndarray, seed: int) -> np.ndarray:
    """uint64: a hash of whole numbers."""
    return row_hash(pa.array(np.asarray(numbers, np.int64)), seed)


def _within(texts: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    return texts[: max(1, int(np.searchsorted(np.cumsum(lengths[texts]), HALF_WORDS, side="right")))]
