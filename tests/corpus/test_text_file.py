"""Texts in a mapped file: the same as in the shards, whatever rows are opened."""

from __future__ import annotations

import errno
import tempfile

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from datamask.config import CorpusConfig
from datamask.corpus import open_corpus, text_file
from datamask.errors import InputError
from datamask.evaluation.holdout import subset

KINDS = [pa.string(), pa.large_string(), pa.string_view(), pa.dictionary(pa.int32(), pa.string()), None]


def shards(folder, kinds, n=200):
    """A shard of each kind of text, with nulls and an invalid row; None: without that column. And all texts.

    Their column `view`, of texts too, is like any other.
    """
    rng, every = np.random.default_rng(0), []
    for place, kind in enumerate(kinds):
        texts = [None if k % 7 == 0 else f"text {place} {k} ä" * (k % 5) for k in range(n)]
        table = {
            "id": [f"{place}-{k}" for k in range(n)],
            "quality_score": [None, *rng.normal(size=n - 1)],
            "feature_arr": pa.FixedSizeListArray.from_arrays(pa.array(rng.normal(size=4 * n).astype(np.float32)), 4),
        }
        table["view"] = pa.array(texts, pa.string_view())
        if kind is not None:
            table["text"] = pa.array(texts, pa.string()).cast(kind)
        pq.write_table(pa.table(table), folder / f"{place}.parquet", row_group_size=64)
        every += texts if kind is not None else [None] * n
    return every


@pytest.mark.parametrize("kinds", [KINDS, KINDS[:1], KINDS[3:4], KINDS[1:3]])
@pytest.mark.parametrize("rows", [None, 90])
def test_the_corpus_has_the_texts_of_its_rows(tmp_path, kinds, rows):
    every = shards(tmp_path, kinds)
    corpus = open_corpus(CorpusConfig((str(tmp_path),), drop_invalid=True, rows=rows))
    expected = [every[200 * file + row] for file, row in zip(corpus.source_file, corpus.source_row, strict=True)]
    assert corpus.texts.to_pylist() == expected and len(corpus) <= (rows or 199 * len(kinds))
    seen = zip(corpus.texts.to_pylist(), corpus.metadata["view"].to_pylist(), strict=True)
    assert all(text in (view, None) for text, view in seen) and corpus.metadata["view"].null_count < 60 * len(kinds)
    some = np.arange(0, len(corpus), 3)
    assert subset(corpus, some).texts.to_pylist() == [expected[row] for row in some]
    assert subset(corpus, some).metadata.num_rows == len(some)


def test_a_disk_that_is_full_is_named_in_a_sentence(tmp_path, monkeypatch):
    shards(tmp_path, KINDS[:1])

    def full(*arguments):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(pa.ipc.RecordBatchStreamWriter, "write_batch", full, raising=False)
    with pytest.raises(InputError, match=r"to the folder for temporary files: No space left on device; free some"):
        open_corpus(CorpusConfig((str(tmp_path),), drop_invalid=True))


def test_they_lie_on_a_disk_where_temporary_files_lie_in_memory(monkeypatch):
    folders, usual = [], tempfile.TemporaryFile
    monkeypatch.setattr(tempfile, "TemporaryFile", lambda dir: folders.append(dir) or usual(dir=dir))
    for in_memory in (False, True):
        monkeypatch.setattr(text_file, "lies_in_memory", lambda folder, answer=in_memory: answer)
        file = text_file.TextFile(pa.string())
        file.add(pa.array(["a", None]))
        assert [array.to_pylist() for array in file.arrays()] == [["a", None]]
    assert folders == [tempfile.gettempdir(), "/var/tmp"]
