"""What a run over all rows of a corpus beyond memory writes at its end; see `datamask.runs.whole`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import torch

from datamask.corpus.row_plan import column_id_field
from datamask.evaluation.reported import EXACT
from datamask.evaluation.result import ProvedBound, RunResult, WholeCounts
from datamask.evaluation.selection import Selection
from datamask.measured import Anchor, Anchors, TermValues
from datamask.out_of_core.scratch import Scratch, remove_scratch
from datamask.out_of_core.whole_corpus import WholeCorpus
from datamask.recipes.batches import shard_batches
from datamask.recipes.weights import slope
from datamask.runs import digests, run_facts
from datamask.runs.contents import Digest, changed
from datamask.runs.execution import AllRows, Execution
from datamask.runs.stages import finish_run
from datamask.storage.address import path_of
from datamask.tables import score_name


def write_all_rows(execution: Execution) -> None:
    """Write the selected rows of the whole, the sample's as they are over the whole, and the rule; the run is done."""
    run, writer, pool, over = execution.run, execution.writer, execution.pool, execution.all_rows
    scratch, solution = over.scratch, over.solution
    on_sample = _selected_of_sample(execution)
    selection = selected_on(execution, on_sample)
    writer.update_facts(selected=int(on_sample.sum()), dropped=scratch.dropped, **_ruled(over))
    writer.write_rows(selection.rows_table())
    if scratch.dropped:
        writer.write_left_out(_left_out(over.whole, scratch))
    contents: dict[str, str | None] = {}
    writer.write_large_selection(
        _schema(over.whole),
        _selected_parts(execution, contents),
        run_facts.provenance(run) | {"anchors": solution.anchors},
    )
    writer.update_facts(contents=digests.settled(contents, pool.stamps, execution.poll))
    recorder = execution.recorder
    result = _over_all_rows(execution).of_run(run.id, execution.effort(recorder.lines, None), None)
    execution.selection = replace(selection, result=result)
    _write_rule(execution, result.certificate.gap)
    execution.update_whole(scratch=None)
    finish_run(execution, solution.ending)
    remove_scratch(scratch.folder, run.id)  # last: a run that is killed before resumes with it


def _selected_of_sample(execution: Execution) -> np.ndarray:
    """Which rows of the sample are selected, bool ``(n,)``.

    Raises:
        InputError: the shards have changed since the sample was read. StoreError: the scratch was altered.
    """
    corpus, over = execution.pool.corpus, execution.all_rows
    scratch = over.scratch
    if tuple(corpus.provenance.files) != scratch.files:
        raise changed(path_of(scratch.files[0]), "there are other shards next to it")
    selected = np.zeros(len(corpus), bool)
    for number in np.unique(corpus.source_file).tolist():
        places = np.flatnonzero(corpus.source_file == number)
        rows = scratch.find(number, corpus.source_row[places])
        if (rows < 0).any():
            scratch.check_shard_changed(number, over.whole.source.shards[number], ["source_row"], execution.poll)
            raise changed(path_of(scratch.files[number]), "it holds other rows")
        selected[places] = over.solution.selected[rows]
    return selected


def _selected_parts(execution: Execution, contents: dict[str, str | None]) -> Iterator[pa.Table]:
    """The selected rows of the whole in input order, with their ids, which are read from the shards again.

    Args:
        contents: gets a digest of the selected rows of each shard that has some, all columns, by its path; None
            where pyarrow cannot take rows of a column.
    """
    over, lamb, poll = execution.all_rows, execution.config.lamb, execution.poll
    whole, scratch, size = over.whole, over.scratch, over.size
    rows = np.flatnonzero(over.solution.selected)
    quality, diversity = over.solution.scores(rows)
    score = lamb * quality + (1 - lamb) * diversity
    rank = np.empty(size, np.int64)
    rank[np.lexsort((rows, -score))] = np.arange(1, size + 1)
    reader, done, schema = whole.reader, 0, _schema(whole)
    for number, shard in enumerate(whole.source.shards):
        high = int(np.searchsorted(rows, scratch.starts[number + 1]))
        inside = scratch.place(rows[done:high])[1]
        if high == done:
            continue
        if inside[-1] >= shard.rows:
            scratch.check_shard_changed(number, shard, ["source_row"], poll)
            raise changed(path_of(shard.path), "it holds other rows")
        digest: Digest | None = Digest()
        for first, batch in shard_batches(shard, None, max(1.0, shard.facts.row_bytes), poll):
            low, end = np.searchsorted(inside, [first, first + batch.num_rows])
            if low == end:
                continue
            part = slice(done + int(low), done + int(end))
            places = pa.array(inside[low:end] - first)
            kept = shard.with_leaves(batch, reader.columns).select(reader.columns).take(places)
            if differing := scratch.differing(rows[part], whole, number, kept):
                scratch.check_shard_changed(number, shard, differing, poll)
                raise changed(path_of(shard.path), "it holds other rows")
            ids = reader.ids(whole.source.starts[number] + inside[low:end], kept)
            digest = digests.with_rows(digest, shard.path, batch, places)
            count = int(end - low)
            columns = [
                ids,
                rank[part],
                pa.nulls(count, pa.float32()),
                score[part],
                scratch.quality[rows[part]],
                quality[part],
                diversity[part],
                pa.array([shard.path] * count, pa.string()),
                inside[low:end],
            ]
            yield pa.table(columns, schema=schema)
        contents[str(path_of(shard.path))] = None if digest is None else digest.text()
        done = high
        execution.say_share(done / size, f"Writing {done:,} of {size:,} selected rows")


def _over_all_rows(execution: Execution) -> RunResult:
    """Return the result of the sample's selection with the values over all rows in the place of its own."""
    sample, over, config = execution.selection.result, execution.all_rows, execution.config
    solution, scratch = over.solution, over.scratch
    anchors, terms = Anchors.from_dict(solution.anchors), dict(config.terms)
    objectives = {name: solution.raw.get(name) for name in terms}
    shares = {name: _share(anchors.diversity[name], objectives[name]) for name in terms}
    quality, bound = solution.raw["quality"], solution.upper_bound
    return replace(
        sample,
        estimator=execution.run.config.selection.estimator,
        size=replace(
            sample.size,
            n=scratch.rows,
            selected=over.size,
            tokens=_tokens(over),
            given=0 if over.rules is None else int(over.rules.given.sum()),
            budget=None,
        ),
        raw=_term_values(config.lamb, quality, _weighed(terms, objectives)),
        objectives=objectives,
        values=EXACT,
        estimate=None,
        calibrated=_term_values(config.lamb, _share(anchors.quality, quality), _weighed(terms, shares)),
        anchors=anchors,
        certificate=ProvedBound()
        if bound is None
        else ProvedBound(bound, max(bound - solution.joint, 0.0), sample.certificate.holds_for),
        row_classes=None,
        weights=None,
        whole=WholeCounts(**solution.facts),
    )


def _ruled(over: AllRows) -> dict[str, Any]:
    """Facts on the rules over all rows, as a run in memory notes them."""
    rules = over.rules
    if rules is None:
        return {}
    return {
        "given": int(rules.given.sum()),
        "pinned": int(rules.pinned.sum()),
        "banned": int(rules.banned.sum()),
    }


def _term_values(lamb: float, quality: float | None, diversity: float | None) -> TermValues:
    """Quality, diversity, and both together; None where one that counts is not known."""
    parts = [(lamb, quality), (1 - lamb, diversity)]
    return TermValues(quality, diversity, _sum([(weight, value) for weight, value in parts if weight > 0]))


def _tokens(over: AllRows) -> float | None:
    """Of the selected rows; None where the corpus has no lengths."""
    scratch = over.scratch
    if not scratch.has_lengths:
        return None
    total, step = 0.0, 1 << 20
    for low in range(0, scratch.rows, step):
        high = min(low + step, scratch.rows)
        total += float(scratch.lengths(low, high)[over.solution.selected[low:high]].sum())
    return total


def _write_rule(execution: Execution, gap: float | None) -> None:
    """Keep the rule over all rows, where there is one."""
    over, solution = execution.all_rows, execution.all_rows.solution
    if solution.rule is None:
        return
    recipe, thresholds = solution.rule
    rows, size = over.scratch.rows, over.size
    facts = {
        "rows": rows,
        "kept": size,
        "share_kept": size / rows,
        "value": solution.joint,
        "upper_bound": solution.upper_bound,
        "gap": gap,
        **solution.facts,
    }
    made = replace(recipe, thresholds=thresholds, share=size / rows, all_rows=facts)
    execution.writer.write_recipe(made.to_json())


def _schema(whole: WholeCorpus) -> pa.Schema:
    """Of selection.parquet."""
    score = score_name(name for shard in whole.source.shards for name in shard.schema.names)
    numbers = [(name, pa.float64()) for name in (score, "quality", "marginal_quality", "marginal_diversity")]
    ids = column_id_field(whole.source, whole.columns.id, whole.columns.made_ids)
    places = [("source_file", pa.string()), ("source_row", pa.int64())]
    return pa.schema([ids, ("rank", pa.int64()), ("logit", pa.float32()), *numbers, *places])


def _left_out(whole: WholeCorpus, scratch: Scratch) -> pa.Table:
    """The rows that could not be used: ``source_file``, ``source_row``."""
    files: list[str] = []
    rows = []
    for number, shard in enumerate(whole.source.shards):
        places = np.arange(shard.rows)
        missing = places[scratch.find(number, places) < 0]
        rows.append(missing)
        files += [shard.path] * len(missing)
    return pa.table({"source_file": pa.array(files, pa.string()), "source_row": np.concatenate(rows)})


def selected_on(execution: Execution, selected: np.ndarray) -> Selection:
    """The sample's selection with those rows in the place of its own, and what each row is worth beside them.

    What was settled, and the inclusion weights, were those of the sample's own problem, and do not come along.
    """
    selection = execution.selection
    if selected.sum() < 2:
        return replace(selection, mask=selected, rows=np.flatnonzero(selected), settled=None, weights=None)
    joint, lamb = execution.posed.problem.joint, execution.config.lamb
    mask = torch.from_numpy(selected).to(joint.device)
    quality, diversity = (part.cpu().numpy() for part in joint.final_marginals(mask, execution.poll))
    score = lamb * quality + (1 - lamb) * diversity
    rows = np.flatnonzero(selected)
    rows = rows[np.argsort(-score[rows], kind="stable")]
    ids = selection.corpus.ids.take(pa.array(rows))
    return replace(
        selection,
        rows=rows,
        ids=ids,
        mask=selected,
        score=score,
        marginal_quality=quality,
        marginal_diversity=diversity,
        settled=None,
        weights=None,
    )


def _share(ends: Anchor | None, raw: float | None) -> float | None:
    """A raw value as share of the attainable gain; 0 where there is nothing to gain."""
    if raw is None or ends is None:
        return None
    return (raw - float(ends.random)) * slope({"quality": ends.to_dict()}, "calibrated", "quality")


def _weighed(weights: dict[str, float], values: dict[str, float | None]) -> float | None:
    return _sum([(weights[name], values[name]) for name in weights])


def _sum(parts: list[tuple[float, float | None]]) -> float | None:
    """The weighted sum; None where one of the values is not known."""
    total = 0.0
    for weight, value in parts:
        if value is None:
            return None
        total += weight * value
    return total
