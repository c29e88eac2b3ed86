"""A selection: the outcome of a learner, with everything that is reported about it."""

from __future__ import annotations

import shlex
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import torch
from torch import Tensor

from datamask import server_note
from datamask.config import SelectionConfig
from datamask.corpus.corpus import Corpus
from datamask.errors import OptionError, RunStateError
from datamask.evaluation.problems import PosedProblem
from datamask.evaluation.reported import reported
from datamask.evaluation.result import ProvedBound, RunResult, SelectedSize
from datamask.learning.certificates import certify
from datamask.learning.problem import Problem
from datamask.learning.settled import Settled
from datamask.learning.solvers import solver_of
from datamask.learning.trace import Trace, no_trace
from datamask.measured import TermValues, WeightTotals
from datamask.polling import Poll, no_poll
from datamask.repeat_counts import repeats, weightless
from datamask.tables import as_found, score_name, with_fields, write_table

if TYPE_CHECKING:
    import pandas as pd
    import plotly.graph_objects as go

SETTLING = 1e-3
"""A gap between bound and value, on the run's scale, from which on no row is worth trying to settle. One of 1e-5
settled three in four of 63,666 package descriptions."""


@dataclass(frozen=True)
class Selection:
    """S selected rows of a corpus of N, as `select` returns them.

    Attributes:
        rows: int64 ``(S,)``, positions in the corpus, strongest first (by logit, else by score, under a budget by
            score per token).
        ids: their ids, in the same order and in the type of the id column.
        mask: bool ``(N,)``, the selected rows.
        eligible: bool ``(N,)``, rows that could have been selected.
        given: bool ``(N,)``, rows that you already have; in none of the above but in all values.
        logits: float32 ``(N,)``, NaN where not eligible; None for a method without logits.
        score: float64 ``(N,)``, ``lambda * marginal_quality + (1 - lambda) * marginal_diversity``.
        marginal_quality: float64 ``(N,)``, frozen-size marginals of quality at the final subset, on the run's scale.
        marginal_diversity: float64 ``(N,)``, the same of diversity.
        result: the values of the subset on the whole corpus, with anchors, bound and gap.
        corpus: the corpus.
        settled: the required rows (in every selection with at least this value) and the excluded ones; None: unknown.
        run: folder of its run; None: in memory only.
        weights: float64 ``(N,)``, repeat weights from 0 to 1: how much of each row belongs to the solution before it
            is cut to S rows. They add up to S, or under a budget their tokens fill it; None: the method has none.

    Examples:
        >>> from datamask import CorpusConfig, open_corpus, select
        >>> corpus = open_corpus(CorpusConfig(["sample_data/tiny"]))
        >>> selection = select(corpus, objective="pairwise", select_ratio=0.1)
        >>> sorted(selection.rows) == sorted(selection.mask.nonzero()[0])
        True
    """

    rows: np.ndarray
    ids: pa.Array
    mask: np.ndarray
    eligible: np.ndarray
    given: np.ndarray
    logits: np.ndarray | None
    score: np.ndarray
    marginal_quality: np.ndarray
    marginal_diversity: np.ndarray
    result: RunResult
    corpus: Corpus
    settled: Settled | None = None
    run: Path | None = None
    weights: np.ndarray | None = None

    @classmethod
    def measured(
        cls,
        corpus: Corpus,
        config: SelectionConfig,
        posed: PosedProblem,
        mask: Tensor,
        logits: Tensor | None,
        poll: Poll = no_poll,
        trace: Trace = no_trace,
        inclusion: Tensor | None = None,
    ) -> Selection:
        """Measure a final subset.

        Args:
            mask: bool ``(N,)``, the given rows among them.
            logits: ``(N,)``, NaN where not eligible, or None.
            trace: told of the steps of the bound.
            inclusion: float64 ``(N,)``, inclusion weights, those of the given rows among them; None: there are none.
        """
        joint = posed.problem.joint
        values = joint.evaluate(mask, poll)
        raw = reported(joint, config.terms, mask, values, seed=config.seed, poll=poll)
        proof = certify(posed.problem, mask, values.joint, poll, trace=trace)
        settle = solver_of(posed.problem).settled
        settled = None
        if settle is not None and proof is not None and proof.upper_bound - proof.value < SETTLING:
            settled = settle(posed.problem, mask, values.joint, poll)
            proof = replace(proof, upper_bound=min(proof.upper_bound, settled.upper_bound))
        quality, diversity = (part.cpu().numpy() for part in joint.final_marginals(mask, poll))
        score = config.lamb * quality + (1 - config.lamb) * diversity
        chosen = mask.cpu().numpy() & ~posed.given
        members = chosen.nonzero()[0]
        strengths = None if logits is None else logits.float().cpu().numpy()
        strength = _by_priority(posed.problem, score) if strengths is None else strengths
        # equal strength is ordered by the seeded hash, as everywhere
        rows = members[np.lexsort((posed.problem.ties.cpu().numpy()[members], -strength[members]))]
        eligible = np.zeros(len(corpus), dtype=bool)
        eligible[posed.problem.eligible.cpu().numpy()] = True
        eligible &= ~posed.given
        weights = None if inclusion is None else np.where(posed.given, 0.0, inclusion.cpu().numpy())
        if weights is not None and not np.isfinite(weights).all():
            weights = None  # what was learned are no finite numbers; the selection stands without them
        joint_raw = config.lamb * values.raw_quality + (1 - config.lamb) * raw.diversity
        result = RunResult(
            estimator=config.estimator,
            size=SelectedSize(
                n=len(corpus),
                selected=len(rows),
                given=int(posed.given.sum()),
                budget=config.budget,
                tokens=None if corpus.lengths is None else float(corpus.lengths[chosen].sum()),
            ),
            raw=TermValues(values.raw_quality, raw.diversity, joint_raw),
            objectives=raw.raw_diversity,
            components=posed.component_facts(mask, poll),
            values=raw.kind,
            estimate=raw.estimate,
            calibrated=posed.shares(values),
            scale=config.scale,
            anchors=posed.anchors(),
            certificate=ProvedBound()
            if proof is None
            else ProvedBound(proof.upper_bound, proof.upper_bound - proof.value, proof.holds_for),
            row_classes=None if settled is None else settled.counts(),
            weights=None if weights is None else WeightTotals(float(weights.sum()), int((weights > 0).sum())),
        )
        return cls(
            rows,
            corpus.ids.take(pa.array(rows)),
            chosen,
            eligible,
            posed.given,
            strengths,
            score,
            quality,
            diversity,
            result,
            corpus,
            settled,
            weights=weights,
        )

    def __len__(self) -> int:
        return len(self.rows)

    def to_pandas(self) -> pd.DataFrame:
        """Return the selected rows, strongest first, as a DataFrame; the columns are those of `table`."""
        frame: pd.DataFrame = as_found(self.table()).to_pandas()
        return frame

    def save(self, path: str | Path) -> None:
        """Write the selected rows, strongest first, in the format of the name.

        Args:
            path: ends in ``.parquet``, ``.csv``, ``.jsonl`` or, for the ids alone, ``.txt``.

        Raises:
            OptionError: it has another ending. StoreError: it cannot be written.
        """
        write_table(path, self.table())

    def map(self) -> go.Figure:
        """Return the corpus as a Plotly figure: two principal components of the features, a point per row.

        Buttons color it by selection, quality or diversity (what a row adds to it).
        """
        from datamask.evaluation.selection_map import figure

        return figure(self)

    @property
    def summary(self) -> dict[str, Any]:
        """Return the result as plain values, as ``--json`` prints it."""
        return self.result.to_dict()

    def show(self) -> str:
        """Say where the dashboard shows this selection.

        Returns:
            The address of its run on the map if a dashboard of its runs folder is up, else a sentence with the command
            that starts one.

        Raises:
            RunStateError: it has no run.
        """
        if self.run is None:
            raise RunStateError('this selection is in memory only; `select(..., runs_dir="runs")` keeps it as a run')
        address = server_note.address_of(self.run.parent)
        if address is not None:
            return f"{address}?run={self.run.name}"
        source = self.corpus.provenance.config
        words = ["datamask", "open", *(source.inputs if source else ()), "--runs", str(self.run.parent)]
        return f"no dashboard of {self.run.parent} is up; `{shlex.join(words)}` starts one"

    def rows_table(self, rows: np.ndarray | None = None) -> pa.Table:
        """Return all N rows in input order, or those at `rows` in their order, with the columns of rows.parquet."""
        corpus, at = self.corpus, slice(None) if rows is None else rows
        ids = corpus.ids if rows is None else corpus.ids.take(pa.array(rows))
        weights, lengths = self.weights, None if self.weights is None else corpus.lengths

        def numbers(values: np.ndarray | None, kind: pa.DataType) -> pa.Array:
            if values is None:
                return pa.nulls(len(ids), kind)
            return pa.array(values[at], kind, mask=~np.isfinite(values[at]) if kind == pa.float32() else None)

        files = pa.array(list(corpus.provenance.files), pa.string())
        columns = {
            "source_file": pa.DictionaryArray.from_arrays(pa.array(corpus.source_file[at]), files),
            "source_row": pa.array(corpus.source_row[at]),
            "selected": pa.array(self.mask[at]),
            "eligible": pa.array(self.eligible[at]),
            "given": pa.array(self.given[at]),
            "logit": numbers(self.logits, pa.float32()),
            "score": pa.array(self.score[at]),
            "quality": pa.array(corpus.quality[at]),
            "marginal_quality": pa.array(self.marginal_quality[at]),
            "marginal_diversity": pa.array(self.marginal_diversity[at]),
            "settled": self._settled_column(at),
            "weight": numbers(weights, pa.float64()),
            "tokens": numbers(lengths, pa.float64()),
        }
        return _beside(corpus, ids, columns)

    def repeats(self, samples: int | None = None, tokens: float | None = None, seed: int = 0) -> np.ndarray:
        """Return how often to repeat each row in training. The mean of a count over the seeds follows its weight.

        Args:
            samples: sum of the counts. None, without `tokens`: the number of selected rows.
            tokens: sum of the tokens with repeats; met to the longest row.
            seed: draws the rows whose count is rounded up.

        Returns:
            int64 ``(N,)``.

        Raises:
            OptionError: the method has no repeat weights, both amounts are given, one is out of range, or tokens are
                given and the corpus has no lengths.
        """
        if self.weights is None:
            raise OptionError(weightless(str(self.result.estimator)))
        order = self.corpus.hashes(seed)
        return repeats(self.weights, order, seed, samples=samples, tokens=tokens, lengths=self.corpus.lengths)

    def _settled_column(self, at: slice | np.ndarray) -> pa.Array:
        """True: in every selection with at least this value; false: in none; null: open, or not eligible."""
        if self.settled is None:
            return pa.nulls(len(self.mask[at]), pa.bool_())
        inside, outside = self.settled.inside[at], self.settled.outside[at]
        return pa.array(inside, mask=~(inside | outside))

    def table(self) -> pa.Table:
        """The selected rows by rank: the columns of OUT.parquet."""
        selected_rows = self.rows_table(self.rows)
        columns = {
            "rank": pa.array(np.arange(1, len(self.rows) + 1)),
            **{
                score_name(self.corpus.input_columns) if name == "score" else name: selected_rows[name]
                for name in ("logit", "score", "quality", "marginal_quality", "marginal_diversity")
            },
            "source_file": selected_rows["source_file"].cast(pa.string()),
            "source_row": selected_rows["source_row"],
        }
        return _beside(self.corpus, selected_rows[self.corpus.id_field.name], columns)


def _beside(corpus: Corpus, ids: pa.Array, columns: dict[str, pa.Array]) -> pa.Table:
    """The ids, first, and of the columns all but one of their name."""
    field = corpus.id_field
    others = {name: column for name, column in columns.items() if name != field.name}
    return with_fields(pa.table({field.name: ids, **others}), field)


def _by_priority(problem: Problem, score: np.ndarray) -> np.ndarray:
    """Scores ``(n,)`` in the order in which rows should be taken."""
    rows = problem.eligible.cpu()
    strength = score.copy()
    strength[rows.numpy()] = problem.limits.priority(torch.from_numpy(score)[rows]).numpy()
    return strength
