"""The search for a lambda behind its page: one at a time per corpus, in a thread, its answer on disk. No streamlit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from datamask.config.lambda_question import LambdaQuestion
from datamask.corpus import Corpus
from datamask.dashboard.signs import Sign
from datamask.errors import StoreError
from datamask.runs.lambda_answers import answer_entry, load
from datamask.work.cache import Cache
from datamask.work.job import Job
from datamask.work.lanes import Priority
from datamask.work.worker import worker


@dataclass(frozen=True)
class Asked:
    """What a search is about: the question, and the person's own texts where they are its target."""

    question: LambdaQuestion
    texts: tuple[str, ...] = ()


def key_of(corpus: Corpus) -> str:
    """The name under which the worker knows the search on this corpus."""
    return f"lambdas-{corpus.fingerprint}"


def start(
    corpus: Corpus, question: LambdaQuestion, cache_dir: str | Path, texts: Sequence[str] = (), sign: Sign | None = None
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
                    corpus, question, cache_dir, texts=texts, progress=job.report, should_stop=job.should_stop
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
        key_of(corpus), work, device="cpu", priority=Priority.SWEEP, sign=sign, about=Asked(question, tuple(texts))
    )
