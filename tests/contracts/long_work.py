"""Everything that takes long behind a page, a line each; `test_long_work` holds all of it to the same contract."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from datamask.config import CorpusConfig, RunConfig, SelectionConfig
from datamask.config.lambda_question import LambdaQuestion
from datamask.corpus import Corpus
from datamask.dashboard import explanations, grounds, lambdas, measuring, sweeping, topics
from datamask.dashboard.openings import Openings
from datamask.runs.run_queue import RunQueue
from datamask.runs.store import Run, RunStore
from datamask.runs.varying import Plan
from datamask.work.job import Job


@dataclass(frozen=True)
class World:
    """What the work is about: an open corpus, its runs folder, and a finished run on it."""

    config: CorpusConfig
    corpus: Corpus
    store: RunStore
    run: Run

    @property
    def cache_dir(self) -> Path:
        return self.store.cache_dir


def _run(world: World) -> Job:
    """A run of ten million steps; asked for again while it is under way, the one that there is."""
    run_queue = RunQueue(world.store.root)
    settings = SelectionConfig.from_options(
        objective="pairwise", estimator="reinforce", n_epochs=10_000_000, device="cpu"
    )
    run = world.store.create(RunConfig(world.config, settings))
    run_queue.submit(run.id)
    return run_queue.active()[0]


def _sweep(world: World) -> Job:
    points = sweeping.along_lambda(["disf"], [0.2, 0.5], estimator="counterfactual", n_epochs=100_000, device="cpu")
    return sweeping.start(world.store.root, world.corpus.fingerprint, [Plan(world.config, points, "sweep")])


def _near_copies(world: World) -> Job:
    openings = Openings(world.store.root)
    opening = openings.start(world.config, "corpus")
    opening.job.wait(240)
    openings.count_copies(opening)
    return opening.counting


WORK: dict[str, Callable[[World], Job]] = {
    "why a sample": lambda world: explanations.ask(world.run, 0, [world.run]),
    "when a sample changes sides": lambda world: explanations.flip(world.run, 0, explanations.Along()),
    "borderline samples": lambda world: explanations.deck(world.run, 5, 0),
    "crowding and layout": lambda world: grounds.start(world.corpus, world.cache_dir),
    "topics": lambda world: topics.start(world.corpus, None, world.cache_dir),
    "scoreboard": lambda world: measuring.start_board([world.run], world.corpus, world.cache_dir),
    "agreement": lambda world: measuring.start_agreement(world.run, world.corpus, world.cache_dir),
    "which lambda": lambda world: lambdas.start(world.corpus, LambdaQuestion(), world.cache_dir),
    "sweep": _sweep,
    "near-copies": _near_copies,
    "run": _run,
}
"""Name -> starts the work, or joins it."""

NOT_JOINED = {"run", "near-copies"}
"""A run is asked for by an id, once; openings are joined by their own tests."""
