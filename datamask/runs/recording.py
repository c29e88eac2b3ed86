"""What a run writes down while it learns: a line of metrics per step, and checkpoints."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from torch import Tensor

from datamask.errors import InputError
from datamask.learning.diagnostics import overlap
from datamask.learning.loop import Estimator, Watch
from datamask.learning.state import State, StepRecord
from datamask.learning.trace import TracePoint
from datamask.objectives.joint import Values
from datamask.polling import Poll
from datamask.runs.store import Run
from datamask.runs.writer import RunWriter
from datamask.work import lanes
from datamask.work.pace import STEPS

CHECKPOINT_SECONDS = 10.0


@dataclass
class Clock:
    """Seconds spent on a run over all attempts, giving way to others aside; ``learning`` survives checkpoints."""

    began: float = field(default_factory=lanes.clock)
    learning: float = 0.0
    before: float = 0.0
    graph: float = 0.0
    ends: float = 0.0

    @property
    def total(self) -> float:
        return self.before + lanes.clock() - self.began


class Recorder(Watch):
    """Looks on for a run: a line of metrics per step, and one per point of the way that is no step of the estimator.

    Lines are numbered through: ``step`` of a line is the estimator's step and the points told before it.

    Args:
        clock: seconds of the estimator's work are added to its ``learning``; those of looking on are not.
        poll: ends the measuring of a point of the way.
        progress: called after every step with the share of the steps that is done, and a few words.
        alone: what each term alone would select, by its name, bool ``(n,)``: every line says how near the subset is.
        first: the step, from 0, at which learning began.
    """

    def __init__(
        self,
        run: Run,
        writer: RunWriter,
        estimator: Estimator,
        clock: Clock,
        *,
        poll: Poll,
        progress: Callable[[float, str], None],
        alone: Mapping[str, Tensor],
        first: int,
    ) -> None:
        self._run, self._writer, self._estimator, self._clock = run, writer, estimator, clock
        self._poll, self._progress, self._alone = poll, progress, alone
        self._step, self._traced, self._traced_before = first, 0, 0
        self._saved = time.monotonic()
        self._since = lanes.clock()

    @property
    def lines(self) -> int:
        """The number of the last line of metrics.jsonl."""
        return self._step + self._traced

    def resume(self, state: State, traced: int) -> None:
        """Go on from a checkpoint.

        Args:
            traced: lines up to it that were no steps of the estimator.
        """
        self._step, self._traced, self._traced_before = state.step, traced, traced

    def stepped(self, state: State, record: StepRecord) -> None:
        self.count_seconds()
        self._step, self._traced_before = state.step, self._traced
        self._writer.append_metrics(self._line(record.step + self._traced, record.metrics, record.values, state.subset))
        if time.monotonic() - self._saved > CHECKPOINT_SECONDS:
            self._checkpoint(state)
            self._saved = time.monotonic()
        total = self._estimator.total_steps
        self._progress(state.step / max(total, 1), f"{STEPS}{state.step:,} of {total:,}")
        self._writer.beat(state.step, total, "learning")
        self._since = lanes.clock()

    def traced(self, point: TracePoint) -> None:
        self.count_seconds()
        self._traced += 1
        values = point.values
        if point.mask is not None:
            with contextlib.suppress(InputError):  # what has no value is told without; the end will say why
                values = self._estimator.problem.joint.evaluate(point.mask, self._poll)
        self._writer.append_metrics(self._line(self._step + self._traced, point.metrics, values, point.mask))
        self._since = lanes.clock()

    def stopped(self, state: State) -> None:
        self._checkpoint(state)

    def ended(self, state: State, ending: str) -> None:
        if len(state.logits):
            with contextlib.suppress(ValueError):  # logits that are no longer finite: nothing to go on from
                self._estimator.check(state)
                self._checkpoint(state)
        self._progress(1.0, "local search and bound")
        self._writer.beat(0, self._estimator.total_steps, "local search and bound")  # 0: what goes on is no step
        self._since = lanes.clock()

    def count_seconds(self) -> None:
        """Add the time since the last look to that of learning."""
        now = lanes.clock()
        self._clock.learning += now - self._since
        self._since = now

    def _line(
        self, step: int, metrics: Mapping[str, float], values: Values | None, subset: Tensor | None
    ) -> dict[str, Any]:
        """One line of metrics.jsonl."""
        line: dict[str, Any] = {"step": step, "seconds": self._clock.learning, **metrics}
        if values is not None:
            if subset is not None:
                line |= {f"overlap_{name}": overlap(subset, mask) for name, mask in self._alone.items()}
            weights = dict(self._run.config.selection.terms)
            line |= {
                "joint": values.joint,
                "quality": values.quality,
                "diversity": values.diversity,
                "raw_quality": values.raw_quality,
                "raw_diversity": sum(weights[name] * raw for name, raw in values.raw_diversity.items()),
            }
        return line

    def _checkpoint(self, state: State) -> None:
        """Write down where the estimator stands."""
        arrays, values = state.arrays()
        self._writer.save_checkpoint(
            arrays,
            {
                "state": values,
                "traced": self._traced_before,
                "seconds": self._clock.learning,
                "seconds_total": self._clock.total,
                "seconds_graph": self._clock.graph,
            },
        )
