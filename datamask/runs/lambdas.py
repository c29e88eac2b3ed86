"""Answer "which lambda?" and keep the answer beside the runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from datamask.config.lambda_question import LambdaQuestion
from datamask.corpus.corpus import Corpus
from datamask.errors import poll_of
from datamask.evaluation.lambdas import which_lambda
from datamask.runs.lambda_answers import VERSION, save


def answer(corpus: Corpus, question: LambdaQuestion, cache_dir: str | Path, *, texts: Sequence[str] = (),
           device: str = "auto", progress: Callable[[float, str], None] = lambda share, what: None,
           should_stop: Callable[[], bool] = lambda: False) -> dict:
    """Compute the answer and write it; see `datamask.evaluation.lambdas.which_lambda` for what it holds.

    Raises:
        InputError: no texts, or too few. OptionError: a target or ratio that does not fit the corpus.
        StoreError: the answer cannot be written. Stopped: `should_stop` answered true; nothing is kept.
    """
    poll = poll_of(should_stop, "the search for a lambda was stopped; nothing was kept")
    found = {"version": VERSION, **which_lambda(corpus, question, cache_dir, texts=texts, device=device,
                                                progress=progress, poll=poll)}
    save(cache_dir, found)
    return found
