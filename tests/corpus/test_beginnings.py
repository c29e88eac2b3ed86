"""The beginnings of texts: as cut from the whole texts, and without a copy of them."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from datamask.corpus.beginnings import beginnings


@pytest.mark.parametrize("rows", [[], [0], [4, 0, 4, 2], [5, 4, 3, 2, 1, 0]])
def test_they_are_those_of_the_whole_texts(rows):
    texts = pa.chunked_array([["ab", None], [], ["äöü"], ["", "xyz", "q"]], pa.string())
    rows = np.array(rows, np.int64)
    assert beginnings(texts, rows, 2).to_pylist() == [
        None if t is None else t[:2] for t in texts.take(rows).to_pylist()
    ]


def test_no_more_than_a_chunk_of_long_texts_is_copied():
    texts = pa.chunked_array([["z" * (1 << 20)] * 4] * 40)
    before = pa.default_memory_pool().max_memory()
    used = pa.default_memory_pool().bytes_allocated()
    assert pc.utf8_length(beginnings(texts, np.arange(160), 400)).to_pylist() == [400] * 160
    assert pa.default_memory_pool().max_memory() <= max(before, used + (16 << 20))
