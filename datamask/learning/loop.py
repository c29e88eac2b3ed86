"""The learning loop: begin, step until the estimator says it has finished, read the selection off.

    learned = learn(estimator, poll=poll)               # a selection, however it is found
    learn(estimator, state, poll=poll, watch=recorder)  # the same from a checkpoint, looked at on the way

Whoever wants to know about the steps (a run that records them, a bar that moves) overrides methods of `Watch`; nobody
else writes such a loop.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from torch import Tensor

from datamask.errors import Stopped
from datamask.learning.problem import Problem
from datamask.learning.state import State, StepRecord
from datamask.learning.trace import Trace, TracePoint, no_trace
from datamask.polling import Poll, no_poll


class Estimator(Protocol):
    """What every entry of the catalogue's estimators is: hyper-parameters in the object, running state a value.

    Attributes:
        warm: whether `init` took up where another run ended.
        total_steps: the most steps there are; 0 where there are none.
        problem: what it solves.
    """

    warm: bool = False
    total_steps: int
    problem: Problem

    def init(self) -> State: ...

    def check(self, state: State) -> None: ...

    def step(self, state: State, poll: Poll = no_poll, trace: Trace = no_trace) -> tuple[State, StepRecord]: ...

    def finished(self, state: State) -> str | None: ...

    def result(self, state: State, poll: Poll = no_poll, trace: Trace = no_trace) -> Tensor: ...

    def logits(self, state: State) -> Tensor | None:
        """The logits over all n rows, NaN where not eligible; None: what it keeps are no logits."""
        return None

    def inclusion(self, state: State, poll: Poll = no_poll) -> Tensor | None:
        """The chance of each row to be selected, float64 ``(n,)``; None: it knows in and out alone."""
        return None


@dataclass(frozen=True)
class Learned:
    """Where learning ended.

    Attributes:
        state: the last one.
        ending: the sentence with which it ended.
        mask: bool ``(n,)``, the selection, polished where that was asked for.
    """

    state: State
    ending: str
    mask: Tensor


class Watch:
    """What looks on while an estimator works. Nothing happens unless a method is overridden."""

    def stepped(self, state: State, record: StepRecord) -> None:
        """After every step."""

    def traced(self, point: TracePoint) -> None:
        """At points of the way that are no step of the estimator: within a long step, or after the last one."""

    def stopped(self, state: State) -> None:
        """`poll` has ended the work: `state` is what the last whole step left, and can be gone on from."""

    def ended(self, state: State, ending: str) -> None:
        """After the last step, before the selection is read off and polished."""


UNWATCHED = Watch()


class ShareWatch(Watch):
    """Tells the share of the steps that is done, from 0 to 1, and ``step 3 of 60``."""

    def __init__(self, estimator: Estimator, progress: Callable[[float, str], None]) -> None:
        self._total, self._progress = estimator.total_steps, progress

    def stepped(self, state: State, record: StepRecord) -> None:
        self._progress(min(state.step / self._total, 1.0), f"step {state.step:,} of {self._total:,}")


def learn(
    estimator: Estimator, state: State | None = None, *, poll: Poll = no_poll, watch: Watch = UNWATCHED
) -> Learned:
    """Let an estimator find its selection.

    Args:
        state: where it goes on from; None: from its beginning.

    Raises:
        Stopped: from `poll`, after `watch` has been given the state to keep.
    """
    state = estimator.init() if state is None else state
    while (ending := estimator.finished(state)) is None:
        try:
            state, record = estimator.step(state, poll, watch.traced)
        except Stopped:
            watch.stopped(state)
            raise
        watch.stepped(state, record)
    watch.ended(state, ending)
    return Learned(state, ending, estimator.result(state, poll, watch.traced))
