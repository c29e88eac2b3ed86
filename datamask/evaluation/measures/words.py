"""The words of a corpus as numbers, and their TF-IDF: what the measures on text are made of.

Words are runs of letters and digits in lower case; a script written without spaces goes character by character. All in
Arrow's own loops: 60 000 texts of 80 words take a second or two.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from datamask.corpus import row_hash
from datamask.polling import Poll, no_poll

if TYPE_CHECKING:
    from scipy.sparse import csr_array

TEXTS_AT_ONCE = 4_096
CHARACTERS = 120_000_000
"""Read of all texts together: beyond, each is cut shorter, and the numbers below keep fitting into memory."""

LONGEST, SHORTEST = 2_000, 300
"""Characters read of each text at most, and at least as long as it has them."""

VOCABULARY = 30_000
LEAST_COUNT = 3
"""A word counts as known from so many occurrences in the corpus; the rest are one word, `UNKNOWN`."""

UNKNOWN = 0
COMMON_SHARE = 0.05
COMMON_ROWS = 50
"""Words of more than this share of the texts, and more than so many, stay out of TF-IDF: they weigh next to nothing and
would cost nearly all of the time."""

_IDEOGRAMS = r"([\x{3040}-\x{30ff}\x{3400}-\x{4dbf}\x{4e00}-\x{9fff}\x{ac00}-\x{d7af}])"


@dataclass(frozen=True)
class Words:
    """N texts as word numbers.

    Attributes:
        tokens: int32 ``(T,)``, all texts end to end; `UNKNOWN` for a word outside the vocabulary.
        starts: int64 ``(N + 1,)``, where each text begins.
        vocabulary: V, the numbers in use, `UNKNOWN` included.
        rows_with: int64 ``(V,)``, texts that hold each word.
        text_of: uint64 ``(N,)``, a hash of each text's read part: equal for equal texts.
        cut: characters after which texts were cut.
    """

    tokens: np.ndarray
    starts: np.ndarray
    vocabulary: int
    rows_with: np.ndarray
    text_of: np.ndarray
    cut: int

    def __len__(self) -> int:
        return len(self.starts) - 1

    @property
    def lengths(self) -> np.ndarray:
        """Words of each text, int64 ``(N,)``."""
        return np.diff(self.starts)

    def of(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The words of `rows` end to end, in their order, and the place in `rows` that each belongs to."""
        lengths = self.lengths[rows]
        owner = np.repeat(np.arange(len(rows)), lengths)
        within = np.arange(len(owner)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
        return self.tokens[self.starts[rows][owner] + within], owner

    def tf_idf(self, rows: np.ndarray) -> csr_array:
        """TF-IDF of these texts: sparse float32 ``(m, V)``, rows of unit norm, or empty where no word counts.

        ``(1 + log tf) log(N / df)``, without unknown and very common words.
        """
        from scipy.sparse import csr_array

        tokens, owner = self.of(rows)
        limit = max(COMMON_SHARE * len(self), COMMON_ROWS)
        informative = (tokens != UNKNOWN) & (self.rows_with[tokens] <= limit)
        keys, counts = np.unique(
            owner[informative] * np.int64(self.vocabulary) + tokens[informative], return_counts=True
        )
        row, word = np.divmod(keys, self.vocabulary)
        weight = (1.0 + np.log(counts)) * np.log(len(self) / np.maximum(self.rows_with[word], 1))
        norms = np.sqrt(np.bincount(row, weight**2, len(rows)))
        weight = (weight / np.maximum(norms[row], 1e-12)).astype(np.float32)
        starts = np.concatenate([[0], np.cumsum(np.bincount(row, minlength=len(rows)))])
        return csr_array((weight, word, starts), shape=(len(rows), self.vocabulary))


def read_words(texts: pa.ChunkedArray, poll: Poll = no_poll) -> Words:
    """Number the words of a text column; null is the empty text."""
    n = len(texts)
    cut = int(np.clip(CHARACTERS // max(n, 1), SHORTEST, LONGEST))
    parts, lengths, hashes = [], [], []
    for low in range(0, n, TEXTS_AT_ONCE):
        poll()
        part = pc.fill_null(texts.slice(low, TEXTS_AT_ONCE).cast(pa.large_string()), "")
        part = pc.utf8_slice_codeunits(part, 0, cut).combine_chunks()
        hashes.append(row_hash(part, 0))
        words = _split(part)
        lengths.append(np.diff(words.offsets.to_numpy()))
        parts.append(words.flatten().dictionary_encode())
    poll()
    joined = pa.chunked_array(parts, pa.dictionary(pa.int32(), pa.large_string())).unify_dictionaries()
    numbers = np.concatenate([chunk.indices.to_numpy() for chunk in joined.chunks] or [np.empty(0, np.int32)])
    starts = np.concatenate([[0], np.cumsum(np.concatenate([*lengths, np.empty(0, np.int64)]))]).astype(np.int64)
    tokens, vocabulary = _most_frequent(numbers)
    text_of = np.concatenate([*hashes, np.empty(0, np.uint64)])
    return Words(tokens, starts, vocabulary, _rows_with(tokens, starts, vocabulary, poll), text_of, cut)


def _split(texts: pa.Array) -> pa.LargeListArray:
    lower = pc.replace_substring_regex(pc.utf8_lower(texts), _IDEOGRAMS, r" \1 ")
    spaced = pc.utf8_trim(pc.replace_substring_regex(lower, r"[^\pL\pN]+", " "), " ")
    words = pc.split_pattern(spaced, " ")
    # splitting an empty text gives one empty word
    return pc.if_else(pc.equal(spaced, ""), pa.scalar([], words.type), words).cast(pa.large_list(pa.large_string()))


def _most_frequent(numbers: np.ndarray) -> tuple[np.ndarray, int]:
    """Word numbers by falling frequency, from 1 on; rare ones are `UNKNOWN`. And how many numbers there are."""
    counts = np.bincount(numbers) if len(numbers) else np.zeros(1, np.int64)
    order = np.argsort(-counts, kind="stable")
    frequent = order[: min(VOCABULARY - 1, int((counts >= LEAST_COUNT).sum()))]
    renumbered = np.zeros(len(counts), np.int32)
    renumbered[frequent] = np.arange(1, len(frequent) + 1)
    return renumbered[numbers], len(frequent) + 1


def _rows_with(tokens: np.ndarray, starts: np.ndarray, vocabulary: int, poll: Poll) -> np.ndarray:
    total = np.zeros(vocabulary, np.int64)
    n = len(starts) - 1
    for low in range(0, n, TEXTS_AT_ONCE):
        poll()
        high = min(low + TEXTS_AT_ONCE, n)
        part = tokens[starts[low] : starts[high]].astype(np.int64)
        owner = np.repeat(np.arange(high - low), np.diff(starts[low : high + 1]))
        total += np.bincount(np.unique(owner * vocabulary + part) % vocabulary, minlength=vocabulary)
    return total
