"""Rules of a run on all rows: ids of files and values of a column, looked up in the shards."""

from __future__ import annotations

import itertools
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from datamask.config import SelectionConfig
from datamask.corpus.sampling import row_hash
from datamask.corpus.shards import scan
from datamask.errors import InputError, OptionError
from datamask.evaluation.id_lists import distinct_ids
from datamask.out_of_core.row_rules import RowRules
from datamask.out_of_core.scratch import Scratch
from datamask.out_of_core.whole_corpus import WholeCorpus
from datamask.quotas import quota_labels, quota_limits
from datamask.work.context import Work

LABEL_BYTES = 64
"""Of a value of the column of a quota, decoded, about."""


def of_sample(config: SelectionConfig, share: float) -> SelectionConfig:
    """Settings for the sample of a run under rules, which hold over all rows and are looked up there.

    Args:
        share: of all rows that are in the sample.
    """
    free = replace(config, pin=None, ban=None, given=None, quotas=())
    if config.budget is None:
        return free
    return replace(free, budget=config.budget * share)


def read_rules(
    config: SelectionConfig, whole: WholeCorpus, scratch: Scratch, work: Work
) -> tuple[RowRules | None, int]:
    """The rules of a selection over the rows of a scratch, and S, the rows to select beside the given ones.

    Raises:
        InputError: a file of ids cannot be read, or names rows that are not in the corpus. OptionError: two rules name
            the same rows, there is no such column, or there is a budget and no lengths. Stopped: from `work`.
    """
    lengths = scratch.lengths(0, scratch.rows) if config.budget is not None and scratch.has_lengths else None
    wanted = config.size(scratch.rows, None if lengths is None else float(lengths.sum()))
    if not config.ruled and config.ban is None and config.budget is None:
        return None, wanted
    named = {
        option: _named(path, option, whole, scratch, work)
        for option in ("pin", "ban", "given")
        for path in [getattr(config, option)]
    }
    for first, second in itertools.combinations(named, 2):
        if both := int((named[first] & named[second]).sum()):
            raise OptionError(f"--{first} and --{second} both name {both:,} rows; take them out of one of the two")
    given = named["given"]
    size, left = wanted + int(given.sum()), int((~named["ban"]).sum())
    if left <= size and config.budget is None:
        raise OptionError(
            f"--ban and --given leave {left - size + wanted:,} of {scratch.rows:,} rows, but {wanted:,} are to be "
            "selected; leave out fewer rows, or lower --select_ratio"
        )
    group = _groups(config, whole, scratch, work)
    total = size if config.budget is None or lengths is None else config.budget + float(lengths[given].sum())
    low, high, names = quota_limits(config.quotas, group, total, given, lengths)
    return RowRules(named["pin"], named["ban"], given, group, low, high, names, config.budget, lengths), wanted


def _named(path: str | None, option: str, whole: WholeCorpus, scratch: Scratch, work: Work) -> np.ndarray:
    """The rows that a file of ids names, bool ``(N,)``."""
    mask = np.zeros(scratch.rows, bool)
    if path is None:
        return mask
    ids = distinct_ids(Path(path), whole.columns.id, whole.reader.id_type)
    # few rows share a hash with one of these, so few are read
    rows = np.flatnonzero(np.isin(scratch.id_hash, row_hash(ids, 0)))
    shards, inside = scratch.place(rows)
    found = whole.ids_at(whole.source.starts[shards] + inside, work.poll)
    mask[rows[pc.is_in(found, value_set=ids).to_numpy(zero_copy_only=False)]] = True
    unknown = ids.filter(pc.invert(pc.is_in(ids, value_set=found)))
    if len(unknown):
        raise InputError(
            f"--{option} {path}: {len(unknown):,} of its ids are not in the corpus, such as {str(unknown[0])!r}; take "
            "them out, or open the shards they are in"
        )
    return mask


def _groups(config: SelectionConfig, whole: WholeCorpus, scratch: Scratch, work: Work) -> np.ndarray:
    """The quota group of every row, int32 ``(N,)``."""
    group = np.zeros(scratch.rows, np.int32)
    if not config.quotas:
        return group
    column, source = config.quotas[0].column, whole.source
    schema = source.shards[0].schema
    if column not in schema.names:
        raise OptionError(f"--quota: the corpus has no column {column!r}; it has {', '.join(schema.names)}")

    def take(numbers: np.ndarray, batch: pa.RecordBatch) -> None:
        shard = int(np.searchsorted(source.starts, numbers[0], side="right")) - 1
        rows = scratch.find(shard, numbers - int(source.starts[shard]))
        labels = quota_labels(config.quotas, batch.column(column))
        group[rows[rows >= 0]] = labels[rows >= 0]  # threads write different rows

    scan(source, [column], take, row_bytes=LABEL_BYTES, work=work, what="Reading the column of the quotas")
    return group
