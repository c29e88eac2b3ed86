"""Rules of a run on all rows by passes: ids of files, looked up in the shards."""

from __future__ import annotations

import itertools
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow.compute as pc

from datamask.config import SelectionConfig
from datamask.corpus.sampling import row_hash
from datamask.errors import InputError, OptionError
from datamask.evaluation.id_lists import distinct_ids
from datamask.out_of_core.row_rules import RowRules
from datamask.out_of_core.scratch import Scratch
from datamask.out_of_core.whole_corpus import WholeCorpus
from datamask.work.context import Work


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
            the same rows, or leave too few. Stopped: from `work`.
    """
    wanted = config.size(scratch.rows)
    if not config.ruled and config.ban is None:
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
    if left <= size:
        raise OptionError(
            f"--ban and --given leave {left - size + wanted:,} of {scratch.rows:,} rows, but {wanted:,} are to be "
            "selected; leave out fewer rows, or lower --select_ratio"
        )
    return RowRules(named["pin"], named["ban"], given), wanted


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
