"""The search for a lambda behind its page: one at a time per corpus, in a thread, its answer on disk. No streamlit."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from datamask.config.lambda_question import LambdaQuestion, Target
from datamask.corpus import Corpus
from datamask.dashboard.drawing.signs import Sign
from datamask.errors import InputError, StoreError
from datamask.runs.lambda_answers import answer_entry, load
from datamask.work.cache import Cache
from datamask.work.job import Job
from datamask.work.lanes import Priority
from datamask.work.worker import worker

if TYPE_CHECKING:
    from datamask.evaluation.examples import Examples


@dataclass(frozen=True)
class Asked:
    """What a search is about: the question, and the person's own texts or examples where they are its target."""

    question: LambdaQuestion
    texts: tuple[str, ...] = ()
    examples: Examples | None = None


def key_of(corpus: Corpus) -> str:
    """The name under which the worker knows the search on this corpus."""
    return f"lambdas-{corpus.fingerprint}"


def examples_of(corpus: Corpus, source: str, name: str, content: bytes) -> tuple[Examples, Target]:
    """The examples in a file that a browser sent, and their target.

    Args:
        source: what they are, one of `datamask.config.lambda_question.STEERING`. name: of the file.

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


def start(
    corpus: Corpus,
    question: LambdaQuestion,
    cache_dir: str | Path,
    texts: Sequence[str] = (),
    sign: Sign | None = None,
    examples: Examples | None = None,
) -> Job:
    """Search in the background, or join the search under way.

    The job's result is the answer's key, what it is about an `Asked`.
    """

    def work(job: Job) -> str:
        # torch comes with them, so only in the thread that needs it
        from datamask.evaluation.threads import threads
        from datamask.runs.lambdas import answer
        from datamask.runs.run_queue import beside_the_server

        entry, key = answer_entry(corpus.fingerprint, question.key), question.key
        with threads(beside_the_server()):
            Cache(cache_dir).once(
                entry,
                lambda: load(cache_dir, corpus.fingerprint, key),
                lambda: answer(
                    corpus,
                    question,
                    cache_dir,
                    texts=texts,
                    examples=examples,
                    progress=job.report,
                    should_stop=job.should_stop,
                ),
                job.should_stop,
            )
        if not Cache(cache_dir).has(entry):
            raise StoreError(
                f"the answer was found, but cannot be kept in {cache_dir}, where this page looks for it; "
                "make room there, or make the folder writable, and ask again"
            )
        return key

    return worker().start(
        key_of(corpus),
        work,
        device="cpu",
        priority=Priority.SWEEP,
        sign=sign,
        about=Asked(question, tuple(texts), examples),
    )
