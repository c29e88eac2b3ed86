"""What a run on all rows leaves for the pages, which draw a uniform sample of them.

Its arrays lie in mapped files (`datamask.runs.mapping`), and its stages are those of every run. It differs in what it
keeps: rows.parquet has the rows of the sample, left_out.parquet the rows that could not be used, where there are any,
and recipe.json the rule, where there is one. The fact ``whole`` says so: ``sample_rows``, ``rows`` (valid ones),
``selected``, ``shards``, the ``fingerprint`` of all rows, and ``no_rule``, why there is none.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from datamask.config import CorpusConfig
from datamask.corpus.corpus import Corpus
from datamask.corpus.opening import open_sources
from datamask.errors import DatamaskError, Stopped
from datamask.memory import reuse_large_blocks
from datamask.polling import Poll
from datamask.recipes.derive import refusal
from datamask.runs.contents import changed
from datamask.runs.execution import Execution
from datamask.runs.mapping import corpus_of, sample_rows
from datamask.runs.recipe import recipe_of_selection
from datamask.storage.address import path_of
from datamask.work.context import Work


def open_sample(execution: Execution) -> Corpus:
    """The rows that pages draw.

    Raises:
        As `datamask.corpus.open_corpus`.
    """
    run = execution.run
    execution.update_whole(sample_rows=run.config.corpus.rows or sample_rows(execution.config))
    execution.left_told = True
    execution.say("opening the rows that pages draw")
    reuse_large_blocks()
    return corpus_of(run, Work(execution.poll, execution.say_part))


def write_rows(execution: Execution, sample: Corpus) -> None:
    """Write the rows of the sample as they are among all, the rows that could not be used, and the rule."""
    writer, selection = execution.writer, execution.selection
    corpus, rows = selection.corpus, rows_of_sample(sample, selection.corpus)
    writer.update_facts(selected=int(selection.mask[rows].sum()), dropped=corpus.provenance.dropped)
    execution.update_whole(selected=len(selection))
    writer.write_rows(selection.rows_table(rows))
    if len(corpus) < corpus.provenance.total_rows:
        writer.write_left_out(_left_out(corpus, execution.run.config.corpus, execution.poll))
    if refusal(execution.config):
        return
    execution.say("finding the rule")
    try:
        recipe = recipe_of_selection(execution.run, selection, execution.poll)
    except Stopped:
        raise
    except DatamaskError as error:  # the selection stands without a rule; the next who asks for it reads why
        execution.update_whole(no_rule=" ".join(str(error).split()))
    else:
        writer.write_recipe(recipe.to_json())


def rows_of_sample(sample: Corpus, corpus: Corpus) -> np.ndarray:
    """Where the rows of the sample stand among all, int64 ``(n,)``.

    Raises:
        InputError: the shards have changed since the sample was read.
    """
    if sample.provenance.files != corpus.provenance.files:
        raise changed(path_of(corpus.provenance.files[0]), "there are other shards next to it")
    # rows are in input order: by file, and by row inside
    key, wanted = (each.source_file.astype(np.int64) << 40 | each.source_row for each in (corpus, sample))
    rows: np.ndarray = np.minimum(np.searchsorted(key, wanted), len(key) - 1)
    same = (key[rows] == wanted) & (corpus.features[rows] == sample.features).all(axis=1)
    same &= pc.equal(corpus.ids.take(pa.array(rows)), sample.ids).to_numpy(zero_copy_only=False)
    if len(other := np.flatnonzero(~same)):
        file = corpus.provenance.files[sample.source_file[other[0]]]
        raise changed(path_of(file), "it holds other rows")
    return rows


def _left_out(corpus: Corpus, config: CorpusConfig, poll: Poll) -> pa.Table:
    """The rows that could not be used: ``source_file``, ``source_row``."""
    files, rows = [], []
    shards = open_sources(config, Work(poll))["input"].shards
    starts = np.searchsorted(corpus.source_file, np.arange(len(shards) + 1))  # rows are in the order of the files
    for number, shard in enumerate(shards):
        poll()
        held = corpus.source_row[starts[number] : starts[number + 1]]
        missing = np.setdiff1d(np.arange(shard.rows), held)
        rows.append(missing)
        files += [shard.path] * len(missing)
    return pa.table({"source_file": pa.array(files, pa.string()), "source_row": np.concatenate(rows)})
