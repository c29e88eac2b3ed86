"""A run on all rows of a corpus that is not held in memory.

It begins as a run on a uniform sample: that gives the ends of the scales, the weights of the terms and, for objectives
with a rule, where to begin; it is also what pages draw. Then the shards are read once into scratch, and a solver of
`datamask.out_of_core.solvers` selects from all of it. rows.parquet has the sample's rows, selected as they are over the
whole; selection.parquet the selected rows of the whole, in input order, written as they are read.

The fact ``whole`` says so: ``sample_rows``, ``rows`` (valid ones), ``selected``, ``shards``, ``scratch`` (where it
lies, while it does), ``scratch_bytes``, ``memory_bytes`` (what the solver takes at most) and what the solver counts.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import torch

from datamask.corpus.corpus import Corpus
from datamask.corpus.opening import fits_in_memory, read_corpus
from datamask.errors import StoreError
from datamask.evaluation.anchors import diversity_anchor, diversity_best
from datamask.evaluation.pool import Pool
from datamask.evaluation.problems import PosedProblem
from datamask.evaluation.reported import ESTIMATE, EXACT
from datamask.evaluation.result import ProvedBound, RunResult, WholeCounts
from datamask.evaluation.selection import Selection
from datamask.learning.loop import Estimator, Learned
from datamask.measured import Anchor, Anchors, TermValues
from datamask.out_of_core.scale_ends import Start
from datamask.out_of_core.scratch import Scratch, remove_scratch, scratch_bytes, scratch_folder
from datamask.out_of_core.scratch_writing import centered, write_scratch
from datamask.out_of_core.solvers import BLOCK_ROWS, Step, WholeProblem, WholeSolution, driving, solver_for
from datamask.out_of_core.streamed_dual import BLOCK_BYTES
from datamask.out_of_core.whole_corpus import WholeCorpus, check_wholly_readable, sample_rows
from datamask.polling import Poll, no_poll
from datamask.recipes.batches import shard_batches
from datamask.recipes.learned import standardisation, weighted_mean, weighted_moment
from datamask.recipes.weights import slope
from datamask.runs import digests, run_facts
from datamask.runs.contents import Digest, changed
from datamask.runs.execute import Execution
from datamask.runs.recipe import selection_of_sample
from datamask.runs.recording import Recorder
from datamask.runs.store import Run, RunStore
from datamask.storage.address import path_of
from datamask.work.context import Work
from datamask.work.pace import duration

SCRATCH, PASSES, WRITING = "scratch", "passes", "writing"
"""Phases after those of the sample."""

IN_MEMORY = "disf_fixed"
"""The objective whose scale ends where memory says, if it holds all rows. Pair-wise similarity needs none of that: its
search is proved right in both places."""

AVERAGED = 0.4
"""Share of the first of these that is done when the mean of all rows is known, where it is subtracted."""

_READ, _WRITTEN = (8e-7, 1.2e-8), (8e-7, 1.2e-8)
"""Seconds of the first and the last of these phases per row, and per row and dimension: both decode every row."""


def wants_all_rows(run: Run, poll: Poll = no_poll) -> bool:
    """Whether a run selects from all rows of a corpus out of core: scratch was asked for, or they do not fit.

    Raises:
        InputError, RemoteError, Stopped: as `datamask.corpus.opening.open_corpus`.
    """
    selection = run.config.selection
    if run.whole is not None or selection.scratch_dir is not None:
        return True
    return selection.scope is not None and not fits_in_memory(run.config.corpus, poll)


class WholeExecution(Execution):
    """One attempt at such a run."""

    def go(self, pool: Pool | None = None) -> RunResult:
        self.solver = solver_for(self.config)
        corpus = self.run.config.corpus
        check_wholly_readable(corpus)
        self.facts: dict[str, Any] = {**(self.run.whole or {}), "sample_rows": corpus.rows or sample_rows(self.config)}
        self.writer.update_facts(whole=self.facts)
        self.remove_left()
        # the corpus of a sweep may be another sample than ours
        with driving(self.config):
            return super().go(None)

    @property
    def folder(self) -> Path:
        """Where the scratch lies."""
        return scratch_folder(self.run.id, self.config.scratch_dir)

    def remove_left(self) -> None:
        """Remove what runs of this store that are done could not remove, or were killed before they did."""
        for other in RunStore(self.run.path.parent).list():
            with contextlib.suppress(StoreError):
                if other.whole is not None and other.status().state == "done":
                    remove_scratch(scratch_folder(other.id, other.config.selection.scratch_dir), other.id)

    def kept(self) -> str:
        if not self.folder.is_dir():
            return ""
        return f"; its scratch stays in {self.folder}, where resuming goes on"

    def plan(self, pool: Pool) -> None:
        super().plan(pool)
        rows, dim = pool.corpus.provenance.total_rows, pool.corpus.dim
        self.pace.plan(
            self.pace.ahead
            | {
                name: rows * (each + dim * every)
                for name, (each, every) in ((SCRATCH, _READ), (PASSES, self.solver.seconds), (WRITING, _WRITTEN))
            }
        )

    def ended(
        self,
        pool: Pool,
        posed: PosedProblem,
        estimator: Estimator,
        learned: Learned,
        recorder: Recorder,
        selection: Selection,
    ) -> RunResult:
        sample = selection_of_sample(self.run.config, pool.corpus, posed, selection, self.poll)
        whole = WholeCorpus.open(self.run.config.corpus, quality=sample.quality, poll=self.poll)
        block_rows = self.config.block_rows or BLOCK_ROWS
        self.solver.check_size(whole.source.rows, self.config.size(whole.source.rows))
        self.announce(whole, block_rows)
        self.pace.begin(SCRATCH, 0.0)
        beside = self.solver.disk(whole.source.rows, whole.dim, self.config.size(whole.source.rows))
        work, averaged = Work(self.poll, self.at_share), 0.0
        if self.config.center:
            averaged = AVERAGED
            whole = centered(whole, self.folder, work.part(0.0, averaged), beside=beside)
        scratch = write_scratch(whole, self.folder, work.part(averaged, 1.0), beside=beside)
        size = self.config.size(scratch.rows)
        self.know(rows=scratch.rows, selected=size)
        ends = self.ends_in_memory(pool, scratch, size, block_rows)
        self.pace.begin(PASSES, 0.0)
        recipe = sample.recipe
        starts = {} if recipe is None else self.starts(pool, posed)
        problem = WholeProblem(self.config, scratch, size, block_rows, whole, recipe, starts, ends)
        solution = self.solver.solve(problem, work, self.step_of(recorder))
        recorder.count_seconds()
        self.know(**solution.facts)
        self.pace.begin(WRITING, 0.0)
        on_sample = self.sample_rows(pool.corpus, whole, scratch, solution)
        self.selection = _selected_on(posed, selection, on_sample, self)
        self.writer.update_facts(selected=int(on_sample.sum()), dropped=scratch.dropped)
        self.writer.write_rows(self.selection.rows_table())
        if scratch.dropped:
            self.writer.write_left_out(_left_out(whole, scratch))
        contents: dict[str, str | None] = {}
        self.writer.write_large_selection(
            _schema(whole),
            self.selected_parts(whole, scratch, solution, size, contents),
            run_facts.provenance(self.run) | {"anchors": solution.anchors},
        )
        self.writer.update_facts(contents=digests.settled(contents, pool.stamps, self.poll))
        result = self.over_all_rows(selection.result, scratch, solution, size).of_run(
            self.run.id, self.effort(recorder.lines, pool, None), solution.graph, recorder.look()
        )
        self.selection = replace(self.selection, result=result)
        self.write_rule(solution, size, scratch.rows, result.certificate.gap)
        self.know(scratch=None)
        self.writer.finish("done", result, solution.ending, step=learned.state.step, total_steps=estimator.total_steps)
        remove_scratch(self.folder, self.run.id)  # last: whoever is killed before goes on with it
        self.pace.over()
        self.progress(1.0, "done")
        return result

    def starts(self, pool: Pool, posed: PosedProblem) -> dict[str, Start]:
        """Means over what each term alone selects from the sample."""
        features, starts = pool.space.features, {}
        for name, _ in self.config.terms:
            mask = diversity_best(pool, name, posed.problem.size, self.poll).cpu().numpy()
            members = int(mask.sum())
            shares = mask / members
            if name == "pairwise":
                starts[name] = Start(members, direction=weighted_mean(features, shares, self.poll))
            else:
                standard = standardisation(features, self.poll)
                starts[name] = Start(members, moment=weighted_moment(features, shares, *standard, self.poll))
        return starts

    def ends_in_memory(self, pool: Pool, scratch: Scratch, size: int, block_rows: int) -> dict[str, dict[str, Any]]:
        """Ends of scales over all rows that are taken from memory, as runs keep them, by term; mostly none.

        Two searches for the best end of `IN_MEMORY` end apart, and calibrated values with them. Where the memory that
        the run was announced to take holds all rows, there is one search; which of the two it is follows from the
        settings, the rows and the machine, never from what others hold of the memory.

        Raises:
            NoRoomError: others hold that memory.
        """
        copies = 3 if self.config.center else 2
        if IN_MEMORY not in dict(self.config.terms) or 4 * copies * scratch.rows > BLOCK_BYTES * block_rows:
            return {}
        if len(pool) != scratch.rows:
            corpus = replace(self.run.config.corpus, rows=None)
            if scratch.dropped or not fits_in_memory(corpus, self.poll):
                return {}
            opened = read_corpus(corpus, Work(self.poll, self.say_share))
            pool = Pool(
                opened, pool.device, pool.cache_dir, poll=self.poll, progress=self.say_share, center=pool.center
            )
        return {IN_MEMORY: diversity_anchor(pool, IN_MEMORY, size, self.poll).to_dict()}

    def announce(self, whole: WholeCorpus, block_rows: int) -> None:
        """Say, before anything of it is written, what the work takes."""
        rows, size = whole.source.rows, self.config.size(whole.source.rows)
        disk = scratch_bytes(rows, whole.dim, lengths=whole.columns.length is not None)
        disk += self.solver.disk(rows, whole.dim, size)
        memory = self.solver.memory(self.config, rows, whole.dim, size)
        self.know(shards=len(whole.source.shards), scratch=str(self.folder), scratch_bytes=disk, memory_bytes=memory)
        self.note(
            f"all {rows:,} rows of {len(whole.source.shards):,} shards, out of core: {_gigabytes(disk)} of scratch in "
            f"{self.folder}, at most {_gigabytes(memory)} of memory (--block_rows {block_rows:,})"
        )

    def say(self, what: str) -> None:
        self.tell(what)
        left = self.pace.left
        self.writer.beat(
            0, self.config.n_epochs or 0, what + ("" if left is None else f", about {duration(left)} left")
        )

    def say_share(self, share: float, what: str) -> None:
        """What is being done, in the middle of a phase."""
        self.say(what)

    def know(self, **facts: Any) -> None:
        """Add to what the run says of the whole."""
        self.facts = {**self.facts, **facts}
        self.writer.update_facts(whole=self.facts)

    def at_share(self, share: float, what: str) -> None:
        """How far the phase under way is."""
        self.pace.at(share)
        self.say(what)

    def step_of(self, recorder: Recorder) -> Step:
        """What hears of every step while it is solved: it writes a line of metrics."""
        line, steps = recorder.lines, 0

        def step(numbers: dict[str, float]) -> None:
            nonlocal steps
            steps += 1
            recorder.count_seconds()
            record = {"step": line + steps, "seconds": self.clock.learning, "pass": steps, **numbers}
            self.writer.append_metrics(record)

        return step

    def sample_rows(self, corpus: Corpus, whole: WholeCorpus, scratch: Scratch, solution: WholeSolution) -> np.ndarray:
        """Which rows of the sample are selected, bool ``(n,)``.

        Raises:
            InputError: the shards have changed since the sample was read. StoreError: the scratch was altered.
        """
        if tuple(corpus.provenance.files) != scratch.files:
            raise changed(path_of(scratch.files[0]), "there are other shards next to it")
        selected = np.zeros(len(corpus), bool)
        for number in np.unique(corpus.source_file).tolist():
            places = np.flatnonzero(corpus.source_file == number)
            rows = scratch.find(number, corpus.source_row[places])
            if (rows < 0).any():
                scratch.check_shard_changed(number, whole.source.shards[number], ["source_row"], self.poll)
                raise changed(path_of(scratch.files[number]), "it holds other rows")
            selected[places] = solution.selected[rows]
        return selected

    def selected_parts(
        self, whole: WholeCorpus, scratch: Scratch, solution: WholeSolution, size: int, contents: dict[str, str | None]
    ) -> Iterator[pa.Table]:
        """The selected rows of the whole in input order, with their ids, which are read from the shards again.

        Args:
            contents: gets a digest of the selected rows of each shard that has some, all columns, by its path; None
                where pyarrow cannot take rows of a column.
        """
        rows = np.flatnonzero(solution.selected)
        quality, diversity = solution.scores(rows)
        score = self.config.lamb * quality + (1 - self.config.lamb) * diversity
        rank = np.empty(size, np.int64)
        rank[np.lexsort((rows, -score))] = np.arange(1, size + 1)
        reader, done, schema = whole.reader, 0, _schema(whole)
        for number, shard in enumerate(whole.source.shards):
            high = int(np.searchsorted(rows, scratch.starts[number + 1]))
            inside = scratch.place(rows[done:high])[1]
            if high == done:
                continue
            if inside[-1] >= shard.rows:
                scratch.check_shard_changed(number, shard, ["source_row"], self.poll)
                raise changed(path_of(shard.path), "it holds other rows")
            digest: Digest | None = Digest()
            for first, batch in shard_batches(shard, None, max(1.0, shard.facts.row_bytes), self.poll):
                low, end = np.searchsorted(inside, [first, first + batch.num_rows])
                if low == end:
                    continue
                part = slice(done + int(low), done + int(end))
                places = pa.array(inside[low:end] - first)
                kept = shard.with_leaves(batch, reader.columns).select(reader.columns).take(places)
                if differing := scratch.differing(rows[part], reader, number, kept):
                    scratch.check_shard_changed(number, shard, differing, self.poll)
                    raise changed(path_of(shard.path), "it holds other rows")
                ids = reader.ids(number, first, kept)
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
            self.at_share(done / size, f"Writing {done:,} of {size:,} selected rows")

    def over_all_rows(self, sample: RunResult, scratch: Scratch, solution: WholeSolution, size: int) -> RunResult:
        """Return the result of the sample's selection with the values over all rows in the place of its own."""
        anchors, terms = Anchors.from_dict(solution.anchors), dict(self.config.terms)
        objectives = {name: solution.raw.get(name) for name in terms}
        shares = {name: _share(anchors.diversity[name], objectives[name]) for name in terms}
        quality, bound = solution.raw["quality"], solution.upper_bound
        return replace(
            sample,
            size=replace(sample.size, n=scratch.rows, selected=size, tokens=self.tokens(scratch, solution)),
            raw=self.term_values(quality, _weighed(terms, objectives)),
            objectives=objectives,
            values=EXACT if solution.estimate is None else ESTIMATE,
            estimate=solution.estimate,
            calibrated=self.term_values(_share(anchors.quality, quality), _weighed(terms, shares)),
            anchors=anchors,
            certificate=ProvedBound()
            if bound is None
            else ProvedBound(bound, max(bound - solution.joint, 0.0), sample.certificate.holds_for),
            row_classes=None,
            weights=None,
            whole=WholeCounts(**solution.facts),
        )

    def term_values(self, quality: float | None, diversity: float | None) -> TermValues:
        """Quality, diversity, and both together; None where one that counts is not known."""
        lamb = self.config.lamb
        parts = [(lamb, quality), (1 - lamb, diversity)]
        return TermValues(quality, diversity, _sum([(weight, value) for weight, value in parts if weight > 0]))

    def tokens(self, scratch: Scratch, solution: WholeSolution) -> float | None:
        """Of the selected rows; None where the corpus has no lengths."""
        if not scratch.has_lengths:
            return None
        total, step = 0.0, 1 << 20
        for low in range(0, scratch.rows, step):
            high = min(low + step, scratch.rows)
            total += float(scratch.lengths(low, high)[solution.selected[low:high]].sum())
        return total

    def write_rule(self, solution: WholeSolution, size: int, rows: int, gap: float | None) -> None:
        """Keep the rule over all rows, where there is one."""
        if solution.rule is None:
            return
        recipe, thresholds = solution.rule
        refit_facts = {
            "rows": rows,
            "kept": size,
            "share_kept": size / rows,
            "value": solution.joint,
            "upper_bound": solution.upper_bound,
            "gap": gap,
            **solution.facts,
        }
        made = replace(recipe, thresholds=thresholds, share=size / rows, refit=refit_facts)
        self.writer.write_recipe(made.to_json())


def _schema(whole: WholeCorpus) -> pa.Schema:
    """Of selection.parquet."""
    return pa.schema(
        {
            whole.columns.id: whole.reader.id_type,
            "rank": pa.int64(),
            "logit": pa.float32(),
            **dict.fromkeys(("score", "quality", "marginal_quality", "marginal_diversity"), pa.float64()),
            "source_file": pa.string(),
            "source_row": pa.int64(),
        }
    )


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


def _selected_on(
    posed: PosedProblem, selection: Selection, selected: np.ndarray, execution: WholeExecution
) -> Selection:
    """The sample's selection with those rows in the place of its own, and what each row is worth beside them.

    What was settled, and the inclusion weights, were those of the sample's own problem, and do not come along.
    """
    if selected.sum() < 2:
        return replace(selection, mask=selected, rows=np.flatnonzero(selected), settled=None, weights=None)
    joint, lamb = posed.problem.joint, execution.config.lamb
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


def _gigabytes(count: int) -> str:
    return f"{count / 1e9:,.1f} GB" if count >= 1e8 else f"{count / 1e6:,.1f} MB"
