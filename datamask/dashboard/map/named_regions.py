"""The named regions of a layout: its areas, called by the words that set their texts apart. No streamlit.

They are computed with the layout and kept on disk. A region is called by the words that its texts hold more often than
all texts do, words without a subject of their own ("this", "have") aside; it is a name, not an explanation.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

from datamask.corpus import Corpus
from datamask.corpus.beginnings import beginnings
from datamask.corpus.projections import PROJECTIONS
from datamask.dashboard.map.areas import areas_of
from datamask.work.kept import Kept
from datamask.work.result_file import Content, Entry, require

VERSION = 1
READ = 200
"""Texts of each region that are read for its name."""

LETTERS = 500
"""Of each of them."""

WORD = re.compile(r"[^\W\d_]{3,24}")
IN_A_NAME, AT_MOST = 2, 5
"""Words of a name, and of one that would else be another's."""

ALIKE = 4
"""Letters that two words begin with, from which on one of them is enough for a name: array, arrays."""


@dataclass(frozen=True)
class NamedRegions:
    """The regions of a layout, the one with the most rows first.

    Attributes:
        codes: int32 ``(N,)``; -1: in no region.
        names: of the regions, all different.
        places: float32 ``(R, 2)``, where each is densest.
    """

    codes: np.ndarray
    names: tuple[str, ...]
    places: np.ndarray


def column_of(projection: str) -> str:
    """What the regions of a projection are called as a column of the rows."""
    return f"{projection} region"


def load(corpus: Corpus, cache_dir: str | Path, projection: str) -> NamedRegions | None:
    """The regions of a layout; None where they are not computed yet."""
    return stored_regions(corpus, cache_dir, projection).find_again()


def regions_of(points: np.ndarray, texts: pa.ChunkedArray | None) -> NamedRegions:
    """Divide a layout, float ``(N, 2)``, into named regions; an area without words of its own is none."""
    areas = areas_of(points)
    named = {area: name for area, name in enumerate(names_of(areas.codes, texts)) if name}
    region_of = np.full(len(areas.peaks) + 1, -1, np.int32)  # the last entry is read by rows of no area
    region_of[list(named)] = np.arange(len(named))
    return NamedRegions(region_of[areas.codes], tuple(named.values()), areas.peaks[list(named)])


def names_of(codes: np.ndarray, texts: pa.ChunkedArray | None, seed: int = 0) -> list[str]:
    """A name for each group of rows, ``plot, axis``; empty for one without words that are not another's.

    Words are ranked by ``p log(p / q)^2``, p the share of the group's texts that hold the word and q, below it, that of
    all read.

    Args:
        codes: int ``(N,)``, -1 for a row of no group.
    """
    held = [_words(texts, codes, code, seed) for code in range(int(codes.max(initial=-1)) + 1)]
    everywhere: Counter[str] = Counter()
    for some, _ in held:
        everywhere.update(some)
    read = sum(size for _, size in held)
    ranked = []
    for some, size in held:
        more = {word: np.log(n / size * read / everywhere[word]) for word, n in some.items()}
        weight = [(-some[word] / size * value**2, word) for word, value in more.items() if value > 0]
        ranked.append(_unlike(word for _, word in sorted(weight)))
    names, counts = [""] * len(held), Counter[str]()
    for count in range(IN_A_NAME, AT_MOST + 1):  # one word more for all whose name is another's too
        names = [", ".join(words[:count]) if counts[name] != 1 else name for words, name in zip(ranked, names)]
        counts = Counter(names)
    return [name if counts[name] == 1 else "" for name in names]


def _words(texts: pa.ChunkedArray | None, codes: np.ndarray, code: int, seed: int) -> tuple[Counter[str], int]:
    """How many of some texts of a group hold each word, and of how many."""
    if texts is None:
        return Counter(), 1
    # takes a moment to import, and only this needs it
    from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS

    rows = np.random.default_rng(seed).permutation(np.flatnonzero(codes == code))[:READ]
    held: Counter[str] = Counter()
    for text in beginnings(texts, rows, LETTERS).to_pylist():
        held.update({word.lower() for word in WORD.findall(text or "")} - ENGLISH_STOP_WORDS)
    return held, max(len(rows), 1)


def _unlike(ranked: Iterable[str]) -> list[str]:
    """The first words that do not begin alike."""
    words: list[str] = []
    for word in ranked:
        if len(words) < AT_MOST and not any(_alike(word, other) for other in words):
            words.append(word)
    return words


def _alike(one: str, other: str) -> bool:
    return one[:ALIKE] == other[:ALIKE]


def stored_regions(corpus: Corpus, cache_dir: str | Path | None, projection: str) -> Kept[NamedRegions]:
    """Describe the regions of a layout in the cache."""
    kind = PROJECTIONS[projection]
    return Kept(
        cache_dir,
        Entry(corpus.fingerprint, f"{kind.key}-regions", VERSION, str(kind.version)),
        read=lambda content: _kept_regions(content, len(corpus)),
        write=lambda regions: Content(
            arrays={"codes": regions.codes, "names": np.array(regions.names, str), "places": regions.places}
        ),
        required=True,
    )


def _kept_regions(content: Content, n: int) -> NamedRegions:
    """The regions that a file holds. Raises Implausible where they are none of n rows."""
    codes, names, places = (content.arrays[name] for name in ("codes", "names", "places"))
    require(codes.dtype == np.int32 and codes.shape == (n,), "the regions are of another corpus")
    require(
        names.dtype.kind == "U" and names.ndim == 1 and len(set(names.tolist())) == len(names),
        "the regions have no names of their own",
    )
    require(codes.min() >= -1 and codes.max() < len(names), "a region has no name")
    require(places.dtype == np.float32 and places.shape == (len(names), 2), "a region has no place")
    codes.flags.writeable = False
    return NamedRegions(codes, tuple(map(str, names)), places)
