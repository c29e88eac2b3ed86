"""Everything that takes long behind a page, a line each; `test_long_work` holds all of it to the same contract."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from datamask.ablation.question import AblationQuestion
from datamask.analyses.ablation import ablation_job
from datamask.analyses.explanation import explanations
from datamask.analyses.frontier import sweeping
from datamask.analyses.scoreboard import measuring
from datamask.config import CorpusConfig, RunConfig, SelectionConfig
from datamask.config.target import Target
from datamask.corpus import Corpus, FirstLook
from datamask.corpus.neighbors import stored_graph
from datamask.corpus.projections import DEFAULT
from datamask.dashboard.data import first_looks, preparing
from datamask.dashboard.data.openings import Openings
from datamask.dashboard.map import map_layout
from datamask.pages.export import whole_work
from datamask.runs import ablation_results, applying, stored_measures
from datamask.runs.run_queue import RunQueue
from datamask.runs.store import Run, RunStore
from datamask.runs.varying import Plan, points
from datamask.work.job import Job


@dataclass(frozen=True)
class World:
    """What the work is about: an open corpus, its runs folder, and a finished run on it.

    Attributes:
        brief: whether the work is to end soon, where it can be asked for less.
    """

    config: CorpusConfig
    corpus: Corpus
    store: RunStore
    run: Run
    brief: bool = False

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
    return run_queue.submit(run.id)


def _sweep(world: World) -> Job:
    given = {"objective": "disf", "estimator": "counterfactual", "n_epochs": 100_000, "device": "cpu"}
    spanned = points(given, [("lamb", (0.2, 0.5))])
    return sweeping.start(world.store.root, world.corpus.fingerprint, Plan(world.config, spanned, "sweep"))


def _near_copies(world: World) -> Job:
    openings = Openings(world.store.root)
    opening = openings.start(world.config, "corpus")
    opening.job.wait(240)
    openings.count_copies(opening)
    return opening.counting


def _first_look(world: World) -> Job:
    look = FirstLook(world.corpus, 1, 1, len(world.corpus))
    return first_looks.start(look, f"of the contract {id(world)}").job


def _texts(world: World) -> Job:
    path = world.store.root / "texts.parquet"
    words = ["river", "stone", "cloud", "engine", "market", "violin", "garden"]
    if not path.exists():  # asked again, it joins a job that may be reading
        pq.write_table(pa.table({"text": [" ".join(words[k % 5 : k % 7 + 1]) + " end" for k in range(600)]}), path)
    return preparing.start(world.store.root, CorpusConfig((str(path),)), "text", None)


def _projection(world: World) -> str:
    return "PCA" if world.brief else DEFAULT


def _question(world: World) -> AblationQuestion:
    """Of held-out text, in brief with few methods; much is selected, so that there are words enough."""
    few = {"methods": ("random", "top-quality"), "objectives": ("pairwise",), "lambdas": (0.5,)} if world.brief else {}
    return AblationQuestion(target=Target("random"), ratio=0.9, seeds=6, words=1_000, **few)


def _of_job(world: World, job: Job) -> tuple[str, str]:
    return job.state, job.error


def _of_run(world: World, job: Job) -> tuple[str, str]:
    status = world.store.get(job.about).status()
    return status.state, status.error or ""


@dataclass(frozen=True)
class Work:
    """One kind of long work.

    Attributes:
        start: starts it, or joins it.
        joined: whether who asks again gets the job under way.
        kept: what is found on disk once it is done, None before; None where it keeps nothing in the cache.
        kinds: what it keeps, as `tests.work.kinds` calls it; damage is tried there.
        ends: whether it ends by itself, in seconds, where it is asked for less.
        outcome: how a job of it ended, and the sentence where it failed; a run says so in its folder.
        instead: where nothing is kept in the cache, what holds instead.
    """

    start: Callable[[World], Job]
    joined: bool = True
    kept: Callable[[World], Any] | None = None
    kinds: tuple[str, ...] = ()
    ends: bool = True
    outcome: Callable[[World, Job], tuple[str, str]] = _of_job
    instead: str = ""


IN_MEMORY = "an answer about one sample is held in memory, for this process alone"
RUN_FOLDERS = "runs keep their folders: tests/runs and `make torture` kill, damage and double them there"

WORK: dict[str, Work] = {
    "why a sample": Work(lambda world: explanations.ask(world.run, 0, [world.run]), instead=IN_MEMORY),
    "when a sample changes sides": Work(
        lambda world: explanations.flip(world.run, 0, explanations.Along()), instead=IN_MEMORY
    ),
    "crowding and layout": Work(
        lambda world: map_layout.start(world.corpus, world.cache_dir, _projection(world)),
        kept=lambda world: map_layout.layout(world.corpus, world.cache_dir, _projection(world)),
        kinds=("graph", "half-built graph", "crowding", "layout", "regions"),
    ),
    "scoreboard": Work(
        lambda world: measuring.start_board([world.run], world.corpus, world.cache_dir),
        kept=lambda world: _whole_board(world),
        kinds=("scoreboard", "ends of pairwise", "ends of facility", "proved ends of pairwise", "clusters", "graph"),
    ),
    "agreement": Work(
        lambda world: measuring.start_agreement(world.run, world.corpus, world.cache_dir),
        kept=lambda world: stored_measures.stored_agreement(
            world.run, world.corpus.fingerprint, world.cache_dir
        ).find(),
        kinds=("agreement",),
    ),
    "ablation": Work(
        lambda world: ablation_job.start(world.corpus, _question(world), world.cache_dir),
        kept=lambda world: ablation_results.load(world.cache_dir, world.corpus.fingerprint, _question(world).key),
        kinds=("ablation", "selection of a search", "losses of a training"),
    ),
    "plan of all rows": Work(
        lambda world: whole_work.start_plan(
            applying.over_all_rows(world.run.config, world.run.path.parent), world.run.path.parent
        ),
        instead="a plan is held in memory, for this process alone",
    ),
    "sweep": Work(_sweep, ends=False, instead=RUN_FOLDERS),
    "near-copies": Work(
        _near_copies,
        joined=False,  # by tests of openings: every visit to the page has an opening of its own
        kept=lambda world: stored_graph(world.corpus, world.cache_dir).find(),
        kinds=("graph", "half-built graph"),
    ),
    "preparing texts": Work(
        _texts, instead="what is made is an upload, kept by its content: tests/dashboard/data/test_preparing.py"
    ),
    "first look": Work(
        _first_look,
        joined=False,  # every opening has its own
        instead="the pictures of a first look are held in memory until the corpus is open",
    ),
    "run": Work(_run, joined=False, ends=False, outcome=_of_run, instead=RUN_FOLDERS),  # asked for by an id, once
}
"""Name -> the work."""

KEPT = [name for name, work in WORK.items() if work.kept is not None]


def _whole_board(world: World) -> dict | None:
    board = stored_measures.stored_board([world.run], world.corpus.fingerprint, world.cache_dir).find()
    return None if board is None or board["left"] else board
