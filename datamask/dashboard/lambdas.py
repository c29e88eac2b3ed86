"""The search for a lambda behind its page: one at a time per corpus, in a thread, its answer on disk. No streamlit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from datamask.config.lambda_question import LambdaQuestion
from datamask.corpus import Corpus
from datamask.dashboard import tasks
from datamask.errors import StoreError
from datamask.runs.lambda_answers import answer_entry
from datamask.work.cache import Cache


@dataclass(frozen=True)
class Asked:
    """What a search is about: the question, and the person's own texts where they are its target."""

    question: LambdaQuestion
    texts: tuple[str, ...] = ()


def key_of(corpus: Corpus) -> str:
    """The name under which `datamask.dashboard.tasks` knows the search on this corpus."""
    return f"lambdas-{corpus.fingerprint}"


def start(corpus: Corpus, question: LambdaQuestion, cache_dir: str | Path, texts: Sequence[str] = (),
          sign: tasks.Sign | None = None) -> tasks.Task:
    """Search in the background, or join the search under way.

    The task's result is the answer's key, what it is about an `Asked`.
    """
    def work(report: tasks.Progress, should_stop) -> str:
        # torch comes with them, so only in the thread that needs it
        from datamask.evaluation.threads import threads
        from datamask.runs.jobs import beside_the_server
        from datamask.runs.lambdas import answer

        with threads(beside_the_server()):
            key = answer(corpus, question, cache_dir, texts=texts, progress=report, should_stop=should_stop)["key"]
        if not Cache(cache_dir).has(answer_entry(corpus.fingerprint, key)):
            raise StoreError(f"the answer was found, but cannot be kept in {cache_dir}, where this page looks for it; "
                             "make room there, or make the folder writable, and ask again")
        return key

    return tasks.start(key_of(corpus), work, sign=sign, about=Asked(question, tuple(texts)))
