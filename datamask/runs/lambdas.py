"""Answer "which lambda?" and keep the answer beside the runs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from datamask.config.lambda_question import LambdaQuestion
from datamask.corpus.corpus import Corpus
from datamask.evaluation.examples import Examples
from datamask.evaluation.lambdas import which_lambda
from datamask.evaluation.lambdas.kept import forget, kept_for
from datamask.polling import poll_of
from datamask.runs.lambda_answers import VERSION, save
from datamask.work.context import UNWATCHED, Work


def answer(
    corpus: Corpus,
    question: LambdaQuestion,
    cache_dir: str | Path,
    *,
    texts: Sequence[str] = (),
    examples: Examples | None = None,
    device: str = "auto",
    work: Work = UNWATCHED,
) -> dict[str, Any]:
    """Compute the answer and keep it; see `datamask.evaluation.lambdas.which_lambda` for what it holds.

    What is selected on the way is kept until the answer is, of the newest question on a corpus only: asked the same
    again after a stop, the search goes on from there. An answer that cannot be kept is logged, and given all the same.

    Raises:
        InputError: no texts, or too few of them or of the examples. OptionError: a target or ratio that does not fit
            the corpus.
        Stopped: from `work`.
    """
    forget(cache_dir, corpus.fingerprint, but=question.key)
    poll = poll_of(
        work.stopping, "the search for a lambda was stopped; asked the same again, it goes on from what it has selected"
    )
    record = {
        "version": VERSION,
        **which_lambda(
            corpus,
            question,
            cache_dir,
            texts=texts,
            examples=examples,
            device=device,
            progress=work.report,
            poll=poll,
            keep=kept_for(cache_dir, corpus.fingerprint, question.key),
        ),
    }
    if save(cache_dir, record):
        forget(cache_dir, corpus.fingerprint)
    return record
