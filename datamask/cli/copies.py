"""The command `copies`: how many rows nearly repeat another one, in the corpus and in uniform parts of it."""

from __future__ import annotations

import argparse

from datamask.cli.common import DONE, command_work, read_rows_of
from datamask.cli.output import check_output, percent, print_json, say
from datamask.cli.parser import corpus_config
from datamask.cli.streams import print_text
from datamask.errors import OptionError
from datamask.options.checks import number_text
from datamask.options.duplicates import duplicates_named, left_words
from datamask.runs.store import RunStore
from datamask.tables import OF_ROWS, with_fields, write_table

HALVINGS = 3
"""Of the corpus, for the sizes below it that are measured."""


def copies(options: argparse.Namespace) -> int:
    """`copies`: the rate at this size and at smaller ones; --remove and --pairs write what is kept and removed."""
    from datamask.corpus.copies import NEIGHBORS, find_duplicates, removed_pairs, subsample_rate
    from datamask.corpus.neighbors import neighbors_for
    from datamask.runs.kept_rows import write_kept

    if options.exact and options.remove is None and options.pairs is None:
        raise OptionError("--exact belongs to --remove or --pairs, which write the rows that are kept or removed")
    if not 0 < options.cosine <= 1:
        raise OptionError(f"--cosine must be above 0 and at most 1, got {options.cosine:g}")
    config = corpus_config(options)
    if options.remove is not None:
        options.remove = check_output(options.remove, config.inputs, "remove", OF_ROWS)
    if options.pairs is not None:
        options.pairs = check_output(options.pairs, config.inputs, "pairs", OF_ROWS)
    with command_work("and keeping what is built of the neighbor graph") as work:
        corpus = read_rows_of(config, work, ())
        graph = neighbors_for(
            corpus,
            min(NEIGHBORS, len(corpus)),
            RunStore(options.runs_dir).cache_dir,
            work=work,
        )
        n = len(corpus)
        sizes = sorted({max(n >> halving, 1) for halving in range(HALVINGS + 1)})
        rates = {rows: subsample_rate(graph, options.cosine, rows) for rows in sizes}
        collapse = "exact" if options.exact else number_text(options.cosine)
        found = find_duplicates(corpus, collapse, graph, work=work)
        if options.pairs is not None:
            ids = ("removed", "kept")
            written = with_fields(removed_pairs(corpus, found), *(corpus.id_field.with_name(name) for name in ids))
            write_table(options.pairs, written, ids)
        kept = None if options.remove is None else write_kept(corpus, found.kept, options.remove, work)
    if options.json:
        report = {
            "n": n,
            "cosine": options.cosine,
            "rate": rates[n],
            "removed": found.removed,
            "within": [{"rows": rows, "rate": rate} for rows, rate in rates.items()],
            "recall": graph.recall,
            "judged": found.judged,
            "left": found.left,
        }
        report |= {} if options.pairs is None else {"pairs": options.pairs}
        print_json(report | ({} if kept is None else {"kept": kept, "output": options.remove}))
    else:
        drops = "" if options.exact else f"; removing drops {percent(found.removed)}"
        print_text(f"{percent(rates[n])} of {n:,} rows have another at cosine {options.cosine:g} or more{drops}")
        for rows in sizes[:-1]:
            print_text(f"  of {rows:,} of them: {percent(rates[rows])}")
        which = duplicates_named(collapse, corpus.provenance.columns)
        if options.pairs is not None:
            print_text(f"{options.pairs}: {int((~found.kept).sum()):,} {which}, each with the row that is kept")
        if kept is not None:
            print_text(f"{options.remove}: {kept:,} of {n:,} rows; {n - kept:,} {which} were removed")
        if graph.recall < 1 and not options.exact:
            say(left_words(found.recall, found.judged, found.left))
    return DONE
