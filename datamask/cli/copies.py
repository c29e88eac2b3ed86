"""The command `copies`: how many rows nearly repeat another one, and how many would in a larger corpus."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from datamask.cli.common import DONE, command_work
from datamask.cli.output import percent, print_json, say
from datamask.cli.parser import corpus_config
from datamask.cli.streams import print_text
from datamask.errors import OptionError
from datamask.runs.rooted import absolute_corpus
from datamask.runs.store import RunStore

if TYPE_CHECKING:
    from datamask.corpus.copy_growth import CopyGrowth

HALVINGS = 4
"""Of the corpus, for the sizes below it that are told."""

MOST_TIMES = 1e9


def copies(options: argparse.Namespace) -> int:
    """`copies`: the rate at this size, at smaller ones, and by a law at a larger one."""
    from datamask.corpus.copies import families
    from datamask.corpus.copy_growth import NEIGHBORS, copy_growth
    from datamask.corpus.neighbors import neighbors_for
    from datamask.corpus.opening import read_corpus
    from datamask.runs.kept_rows import write_kept

    if options.exact and options.remove is None:
        raise OptionError("--exact belongs to --remove OUT.parquet, which writes the rows that are kept")
    if not 1 < options.times <= MOST_TIMES:
        raise OptionError(f"--times must be above 1 and at most {MOST_TIMES:,.0f}, got {options.times:g}")
    if not 0 < options.cosine <= 1:
        raise OptionError(f"--cosine must be above 0 and at most 1, got {options.cosine:g}")
    with command_work("and keeping what is built of the neighbor graph") as work:
        corpus = read_corpus(absolute_corpus(corpus_config(options)), work)
        graph = neighbors_for(
            corpus,
            min(NEIGHBORS, len(corpus)),
            RunStore(options.runs_dir).cache_dir,
            work=work,
        )
        growth = copy_growth(graph, options.cosine)
        kept = None
        if options.remove is not None:
            duplicates = "exact" if options.exact else str(options.cosine)
            rows = families(corpus, duplicates, graph)
            kept = write_kept(corpus, rows, options.remove, work)
    if options.json:
        print_json(_report(growth, options.times) | ({} if kept is None else {"kept": kept, "output": options.remove}))
    else:
        print_text("\n".join(_lines(growth, options.times)))
        if kept is not None:
            which = "exact duplicates" if options.exact else f"semantic duplicates (cosine {options.cosine:g} or more)"
            print_text(f"{options.remove}: {kept:,} of {growth.n:,} rows; {growth.n - kept:,} {which} were removed")
        for doubt in growth.doubts(options.times):
            say(f"not to be trusted: {doubt}")
    return DONE


def _sizes(growth: CopyGrowth) -> list[int]:
    return sorted({max(growth.n >> halving, 1) for halving in range(HALVINGS + 1)})


def _report(growth: CopyGrowth, times: float) -> dict[str, Any]:
    value, low, high = growth.beyond(times)
    return {
        "n": growth.n,
        "cosine": growth.cosine,
        "rate": growth.now,
        "within": [{"rows": rows, "rate": growth.within(rows)} for rows in _sizes(growth)],
        "times": times,
        "foretold": {"rate": value, "low": low, "high": high},
        "foretold_by_half": growth.foretold,
        "collapse": growth.suggested(times),
        "recall": growth.recall,
        "doubts": growth.doubts(times),
    }


def _lines(growth: CopyGrowth, times: float) -> list[str]:
    value, low, high = growth.beyond(times)
    collapse = growth.suggested(times)
    return [
        f"{percent(growth.now)} of {growth.n:,} rows have another at cosine {growth.cosine:g} or more",
        *(f"  of {rows:,} of them: {percent(growth.within(rows))}" for rows in _sizes(growth)[:-1]),
        f"  of {times:g} times as many: {percent(value)} ({percent(low)} to {percent(high)}, if the law holds; half of "
        f"these rows foretold {percent(growth.foretold)})",
        "to collapse no larger a share of those than of these: "
        + ("keep to exact copies" if collapse is None else f"--collapse {collapse:.3f}"),
    ]
