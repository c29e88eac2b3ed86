"""The ablation of a corpus in the background: one at a time, in a thread, its result on disk. No streamlit."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from datamask.ablation.offer import MODELS
from datamask.ablation.question import AblationQuestion
from datamask.ablation.result import AblationResult
from datamask.config.target import Target
from datamask.corpus import Corpus
from datamask.dashboard.drawing.signs import Sign
from datamask.errors import InputError, StoreError
from datamask.runs.ablation_results import load
from datamask.work import lanes
from datamask.work.job import Job
from datamask.work.lanes import Priority
from datamask.work.pace import RoundPace
from datamask.work.worker import worker

if TYPE_CHECKING:
    from datamask.evaluation.examples import Examples


@dataclass(frozen=True)
class Asked:
    """What a job is about: the question, and the person's own texts or examples where they are its target."""

    question: AblationQuestion
    texts: tuple[str, ...] = ()
    examples: Examples | None = None


def key_of(corpus: Corpus) -> str:
    """The name under which the worker knows the ablation of this corpus."""
    return f"ablation-{corpus.fingerprint}"


def examples_of(corpus: Corpus, source: str, name: str, content: bytes) -> tuple[Examples, Target]:
    """The examples in a file that a browser sent, and their target.

    Args:
        source: what they are, one of `datamask.config.target.STEERING`. name: of the file.

    Raises:
        InputError: they cannot be read, or are too few or too many.
    """
    from datamask.evaluation.examples import read_examples

    # read from a file, so that a page takes what the command line takes
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / Path(name).name
        place.write_bytes(content)
        try:
            return read_examples(source, place, corpus), Target.examples(source, content, place.name)
        except InputError as error:
            raise InputError(str(error).replace(str(place), place.name)) from error


def minutes_to_confirm(result: AblationResult) -> float:
    """About how long the second proxy model takes for a result, from a few timed steps: a second or two."""
    from datamask.analyses.ablation.compute.kept_study import plan_confirmation

    return plan_confirmation(result)[1]


def start(
    corpus: Corpus,
    question: AblationQuestion,
    cache_dir: str | Path,
    texts: Sequence[str] = (),
    sign: Sign | None = None,
    examples: Examples | None = None,
) -> Job:
    """Compute a result in the background, or join the job under way.

    A question to the second proxy model is computed for its first seeds only, which is enough to confirm a result. The
    job's result is the question's key, what it is about an `Asked`.
    """

    pace = RoundPace(lanes.clock)

    def work(job: Job) -> str:
        # torch comes with them, so only in the thread that needs it
        from datamask.analyses.ablation.compute.kept_study import CONFIRM_SEEDS, compute
        from datamask.evaluation.threads import threads
        from datamask.runs.run_queue import beside_the_server

        seeds = CONFIRM_SEEDS if question.judge == MODELS[1] else question.seeds
        with threads(beside_the_server()):
            result = compute(
                corpus, question, cache_dir, texts=texts, examples=examples, work=job.work, seeds=seeds, pace=pace
            )
        stored = load(cache_dir, corpus.fingerprint, question.key)
        if stored is None or stored.seeds < result.seeds:
            raise StoreError(
                f"the result cannot be stored in {cache_dir}; free some space or make the folder writable, and "
                "start again"
            )
        return question.key

    return worker().start(
        key_of(corpus),
        work,
        device="cpu",
        priority=Priority.SWEEP,
        sign=sign,
        pace=pace.update,
        about=Asked(question, tuple(texts), examples),
    )
