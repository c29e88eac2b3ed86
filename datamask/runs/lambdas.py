"""Answer "which lambda?" and keep the answer beside the runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from datamask.config.lambda_question import LambdaQuestion
from datamask.corpus.corpus import Corpus
from datamask.errors import poll_of
from datamask.evaluation.lambdas import which_lambda
from datamask.runs.lambda_answers import VERSION, forget_unfinished, save, unfinished


def answer(corpus: Corpus, question: LambdaQuestion, cache_dir: str | Path, *, texts: Sequence[str] = (),
           device: str = "auto", progress: Callable[[float, str], None] = lambda share, what: None,
           should_stop: Callable[[], bool] = lambda: False) -> dict:
    """Compute the answer and write it; see `datamask.evaluation.lambdas.which_lambda` for what it holds.

    What is selected on the way is kept until the answer is written, of the newest question on a corpus only: asked the
    same again after a stop, the search goes on from there.

    Raises:
        InputError: no texts, or too few. OptionError: a target or ratio that does not fit the corpus.
        StoreError: the answer cannot be written. Stopped: `should_stop` answered true.
    """
    keep = unfinished(cache_dir, corpus.fingerprint, question.key)
    forget_unfinished(cache_dir, corpus.fingerprint, but=keep)
    poll = poll_of(should_stop, "the search for a lambda was stopped; asked the same again, it goes on from what it "
                                "has selected")
    found = {"version": VERSION, **which_lambda(corpus, question, cache_dir, texts=texts, device=device,
                                                progress=progress, poll=poll, keep=keep)}
    save(cache_dir, found)
    forget_unfinished(cache_dir, corpus.fingerprint)
    return found
