"""Import: anyone's list of ids becomes a done run, measured on the same scales as every other.

Nothing is selected here. The list is read against the corpus, its value, bound and marginals are measured as a learned
selection's are, and a run folder is written that pages, exports and comparisons read like any other. The run is made
last, so that whatever goes wrong before leaves nothing behind.
"""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from datamask.config import RunConfig, SelectionConfig
from datamask.corpus.shared_corpora import shared_corpora
from datamask.errors import DatamaskError, InputError, OptionError
from datamask.evaluation.id_lists import IdList, read_rows
from datamask.evaluation.pool import Pool
from datamask.evaluation.problems import pose
from datamask.evaluation.result import RunEffort, RunResult
from datamask.evaluation.selection import Selection
from datamask.learning.device import resolve
from datamask.runs import run_facts
from datamask.runs.mapping import input_stamps
from datamask.runs.store import Run, RunStore
from datamask.work.context import UNWATCHED, Work


def import_ids(store: RunStore, config: RunConfig, work: Work = UNWATCHED) -> Run:
    """Make a done run of the ids in ``config.ids``.

    Args:
        store: where it goes.
        config: corpus, list, name, and a selection whose estimator is ``imported``; its objective, lambda and scale say
            how the list is measured, its ratio follows from the list.

    Returns:
        The run; its summary has ``unknown_ids`` beside what every summary has.

    Raises:
        InputError: the list cannot be read, is no selection of this corpus, or holds ids that are not in it and
            ``config.ignore_unknown`` is false.
        OptionError: ``config.ids`` is None, or a setting does not hold. StoreError: as it comes. Stopped:
            from `work`; nothing was written.
    """
    ids = config.ids
    if ids is None:
        raise OptionError("--ids is required: the file of the ids that are to be imported")
    began = time.perf_counter()
    device = resolve(config.selection.device)
    stamps = input_stamps(config.corpus, work.poll)
    corpus = shared_corpora().get(config.corpus, work.part(0.0, 0.3), beside=config.selection.beside)
    id_list = read_rows(ids, corpus)
    if id_list.unknown and not config.ignore_unknown:
        raise InputError(
            f"{ids}: {id_list.unknown:,} of its {id_list.unknown + len(id_list.rows):,} ids are "
            f"not in the corpus of {len(corpus):,} rows, the first of them {id_list.example!r}; "
            "--ignore_unknown imports the others"
        )
    config = replace(
        config,
        selection=_sized(config.selection, len(id_list.rows), len(corpus)),
        name=config.name or Path(ids).stem,
    )
    reached = 0.3

    def measuring(share: float, what: str) -> None:
        nonlocal reached  # several measures count from nothing, and the share shown never falls
        reached = max(reached, 0.3 + 0.5 * share)
        work.report(reached, what)

    pool = Pool.under(config.selection, corpus, device, store.cache_dir, replace(work, report=measuring))
    measuring(0.0, "measuring the ends of the scales")
    ends_began, graph_before = time.perf_counter(), pool.seconds_graph
    posed = pose(pool, config.selection, work.poll)
    seconds_ends = time.perf_counter() - ends_began - (pool.seconds_graph - graph_before)
    work.report(0.8, "measuring the imported ids")
    mask = torch.zeros(len(corpus), dtype=torch.bool, device=device)
    mask[torch.from_numpy(id_list.rows).to(device)] = True
    start = time.perf_counter()
    selection = Selection.measured(corpus, config.selection, posed, mask, None, work.poll)
    facts = {
        **run_facts.of_corpus(corpus),
        **run_facts.of_problem(posed, work.poll),
        "device": str(device),
        **run_facts.of_graph(pool),
        "threads": torch.get_num_threads(),
    }
    effort = RunEffort(
        steps=0,
        seconds=time.perf_counter() - start,
        seconds_graph=pool.seconds_graph,
        seconds_ends=seconds_ends,
        seconds_total=time.perf_counter() - began,
        peak_memory_bytes=run_facts.peak_memory(),
        device=str(device),
    )
    run = _written(
        store,
        config,
        facts,
        selection,
        lambda run: selection.result.of_run(run.id, effort, pool.graph_facts(), unknown_ids=id_list.unknown),
        _ending(ids, id_list),
        stamps,
    )
    work.report(1.0, "done")
    return run


def _sized(selection: SelectionConfig, size: int, n: int) -> SelectionConfig:
    """`selection` with the shortest ratio that stands for `size` of `n`: 6 367 of 63 666 are 0.1, as when selected."""
    for digits in range(1, 16):
        ratio = round(size / n, digits)
        if 0 < ratio < 1 and math.floor(ratio * n + 0.5) == size:
            return replace(selection, select_ratio=ratio)
    return replace(selection, select_ratio=size / n)


def _written(
    store: RunStore,
    config: RunConfig,
    facts: Mapping[str, Any],
    selection: Selection,
    result: Callable[[Run], RunResult],
    ending: str,
    stamps: dict[str, str],
) -> Run:
    """The run folder, whole or not at all."""
    run = store.create(config)
    try:
        with run.writer() as writer:
            writer.set_status("running", message="writing")
            writer.update_facts(**facts)
            writer.write_rows(selection.rows_table())
            writer.update_facts(contents=stamps)
            writer.write_selection(selection.table(), run_facts.provenance(run))
            writer.finish("done", result(run), ending)
    except BaseException:
        with contextlib.suppress(DatamaskError):  # what went wrong first is what counts
            store.remove(run.id)
        raise
    return run


def _ending(path: str, id_list: IdList) -> str:
    left_out = f"; {id_list.unknown:,} more are not in this corpus" if id_list.unknown else ""
    return f"{len(id_list.rows):,} ids imported from {Path(path).name}{left_out}"
