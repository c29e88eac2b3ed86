"""`Execution`: one attempt at a run, with what its stages share.

A stage is a function of it: it takes what the stages before it left there, and leaves what those after it need.
"""

from __future__ import annotations

import contextlib
import time
from dataclasses import dataclass, field
from typing import Any

from torch import Tensor

from datamask.config import SelectionConfig
from datamask.corpus.corpus import Corpus
from datamask.evaluation.pool import Pool
from datamask.evaluation.problems import PosedProblem
from datamask.evaluation.result import RunEffort
from datamask.evaluation.selection import Selection
from datamask.learning.loop import Estimator, Learned
from datamask.runs import run_facts
from datamask.runs.callbacks import Callbacks
from datamask.runs.phases import Phase, phase_of
from datamask.runs.recording import Clock, Recorder
from datamask.runs.store import Run
from datamask.runs.writer import RunWriter
from datamask.work.context import Work
from datamask.work.pace import PhasePace, duration

TOLD_SECONDS = 1.0
"""Between two tellings of the time left where nothing else is told."""


@dataclass
class Execution:
    """One attempt at a run.

    Attributes:
        run, writer: the run, and what writes it. config: its settings.
        work: whether to go on, and who is told how far it is.
        held: what is held until the attempt ends.
        shared: the run's corpus where it is open already; None: it is to be opened.
        left_told: whether the run's status tells the time left.
        pool: the corpus on its device. graph_before: seconds of its graph that are of other runs.
        alone: what each term alone would select, by its name: bool ``(n,)``.
        first: the step, from 0, at which learning began: a warm start enters later.
        selection: what is selected; with the result of the run once that is written.
        sample: of a run on mapped arrays the rows that pages draw (`datamask.runs.whole`); None: these draw all.
    """

    run: Run
    writer: RunWriter
    work: Work
    callbacks: Callbacks
    held: contextlib.ExitStack
    shared: Pool | None = None
    left_told: bool = False
    clock: Clock = field(default_factory=Clock)
    pool: Pool = field(init=False)
    graph_before: float = field(init=False)
    posed: PosedProblem = field(init=False)
    alone: dict[str, Tensor] = field(default_factory=dict)
    first: int = 0
    estimator: Estimator = field(init=False)
    learned: Learned = field(init=False)
    recorder: Recorder = field(init=False)
    selection: Selection = field(init=False)
    sample: Corpus | None = None

    def __post_init__(self) -> None:
        self.config: SelectionConfig = self.run.config.selection
        self._share, self._what, self._told_at = 0.0, "", time.monotonic()

    @property
    def pace(self) -> PhasePace:
        return self.callbacks.pace

    def poll(self) -> None:
        """End the work where it is to end; tell the caller the time left where nothing was told for a while.

        Raises:
            Stopped: the run is to stop.
        """
        self.work.poll()
        if self._what and time.monotonic() - self._told_at >= TOLD_SECONDS:
            self.tell(self._what)

    def tell(self, what: str) -> None:
        """Tell the caller. The share never falls."""
        self._share, self._what, self._told_at = max(self._share, self.pace.share), what, time.monotonic()
        self.work.report(self._share, what)

    def say(self, what: str) -> None:
        """Tell the caller, and those who read the run folder."""
        self.tell(what)
        left = self.pace.left if self.left_told else None
        self.writer.beat(0, self.config.n_epochs or 0, what if left is None else f"{what}, about {duration(left)} left")

    def say_part(self, share: float, what: str) -> None:
        """Tell what is being done in the middle of a phase, of which the share says nothing."""
        self.say(what)

    def say_opened(self, share: float, what: str) -> None:
        """Tell how far the corpus is read."""
        self.pace.opening(share)
        self.say(what)

    def say_prepared(self, share: float, what: str) -> None:
        """Tell how far the pool is with a part of its preparation, of which several may count from nothing."""
        if (phase := phase_of(what)) is not None:
            self.pace.begin(phase)
            if phase == Phase.GRAPH:  # solving for the ends may be done at any share
                self.pace.at(share)
        self.say(what)

    def update_whole(self, **facts: Any) -> None:
        """Add to what a run on mapped arrays says of all rows."""
        self.writer.update_facts(whole={**(self.run.whole or {}), **facts})

    def effort(self, steps: int, warm_from: str | None) -> RunEffort:
        """Return what the run took: `steps` is the last one of its learner."""
        return RunEffort(
            steps=steps - self.first,
            warm_from=warm_from,
            seconds=self.clock.learning,
            seconds_graph=self.clock.graph,
            seconds_ends=self.clock.ends,
            seconds_total=self.clock.total,
            peak_memory_bytes=run_facts.peak_memory(),
            device=str(self.pool.device),
        )
