"""An independent reading of shards, straight from pyarrow, and whether an open corpus says the same."""

from __future__ import annotations

import decimal
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from datamask.corpus.corpus import Corpus
from tests.torture.contract import Finding

BEYOND = 2**53
"""Whole numbers of this size are not all floats; then only their order can be kept."""


def read(paths: Sequence[str | Path], columns: Sequence[str]) -> dict[str, list]:
    """The values of these columns over all files, in order; ArrowException or OSError where pyarrow says no."""
    values: dict[str, list] = {name: [] for name in columns}
    for path in paths:
        table = pq.read_table(path, columns=list(columns), use_threads=False, page_checksum_verification=True)
        table.validate(full=True)
        for name in columns:
            values[name] += table[name].to_pylist()
    return values


def check_same(corpus: Corpus) -> None:
    """Everything an open corpus holds is whole, and is what the shards say.

    Raises:
        Finding: it is not.
    """
    for name, data in (("ids", corpus.ids), ("metadata", corpus.metadata)):
        try:
            data.validate(full=True)
            values = data.to_pylist()
            str(values).encode("utf-8", "surrogatepass")
        except (pa.ArrowException, UnicodeDecodeError, ValueError, OverflowError) as error:
            raise Finding(
                f"accepted, but its {name} cannot be used: {type(error).__name__}: {str(error)[:300]}"
            ) from error
    if not (np.isfinite(corpus.features).all() and np.isfinite(corpus.quality).all()):
        raise Finding("accepted, but features or quality are not finite")
    lengths = np.linalg.norm(corpus.features.astype(np.float64), axis=1)
    if np.abs(lengths - 1).max() > 1e-3:
        raise Finding(f"accepted, but a feature has length {lengths[np.abs(lengths - 1).argmax()]:.6g}, not 1")
    _compare(corpus)


def _compare(corpus: Corpus) -> None:
    roles = corpus.provenance.columns
    quality = roles["quality"][0]
    wanted = dict.fromkeys([roles["id"], quality, roles["feature"]])
    try:
        columns = read(corpus.provenance.files, list(wanted))
    except (pa.ArrowException, OSError, UnicodeDecodeError, KeyError) as error:
        raise Finding(f"accepted, but pyarrow does not read it: {type(error).__name__}: {str(error)[:300]}") from error
    starts = np.cumsum([0, *(pq.read_metadata(path).num_rows for path in corpus.provenance.files)])
    rows = starts[corpus.source_file] + corpus.source_row
    ids = [columns[roles["id"]][row] for row in rows]
    if [str(value) for value in ids] != [str(value) for value in corpus.ids.to_pylist()]:
        raise Finding("accepted with other ids than pyarrow reads")
    if len(roles["quality"]) == 1 and not roles.get("falling"):
        _compare_quality([columns[quality][row] for row in rows], corpus.quality)
    vectors = np.array([columns[roles["feature"]][row] for row in rows], np.float64)
    # by the largest first: squares of 1e300 are no numbers
    vectors = vectors / np.abs(vectors).max(axis=1, keepdims=True)
    vectors = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    difference = np.abs(vectors - corpus.features).max()
    if not difference < 1e-5:
        raise Finding(f"accepted with features that differ by {difference:.3g} from those pyarrow reads")


def _compare_quality(values: list, quality: np.ndarray) -> None:
    if any(isinstance(value, int) and abs(value) > BEYOND for value in values):
        order = {value: place for place, value in enumerate(sorted(set(values)))}
        rank = np.unique(quality, return_inverse=True)[1]
        if [order[value] for value in values] != rank.tolist():
            raise Finding("accepted whole numbers beyond 2^53 as qualities and lost their order")
        return
    expected = np.array([float(value) for value in values])
    # pyarrow's cast of decimals may be off by the last digit
    exact = not any(isinstance(value, decimal.Decimal) for value in values)
    if not np.allclose(expected, quality, rtol=0 if exact else 1e-15, atol=0):
        worst = int(np.abs(expected - quality).argmax())
        raise Finding(f"accepted quality {quality[worst]!r} where pyarrow reads {expected[worst]!r}")
