"""Compute an ablation and keep its result next to the runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from datamask.ablation.offer import MODELS
from datamask.ablation.question import FIRST_SEEDS, AblationQuestion
from datamask.ablation.result import AblationResult
from datamask.analyses.ablation.compute import ablate
from datamask.analyses.ablation.compute.kept import ABLATION, StudyCache
from datamask.analyses.ablation.compute.meters import asked_bytes
from datamask.analyses.ablation.compute.proxy_models import seconds_of_training
from datamask.analyses.ablation.compute.sources import text_column
from datamask.corpus.corpus import Corpus
from datamask.errors import OptionError
from datamask.evaluation.examples import Examples
from datamask.learning.device import resolve
from datamask.polling import poll_of
from datamask.runs.ablation_results import save, stored_result
from datamask.work.context import UNWATCHED, Work
from datamask.work.pace import RoundPace

CONFIRM_SEEDS = FIRST_SEEDS
"""Seeds that the second proxy model is trained in: enough to rank the methods, which is all it is for."""


def compute(
    corpus: Corpus,
    question: AblationQuestion,
    cache_dir: str | Path,
    *,
    texts: Sequence[str] = (),
    examples: Examples | None = None,
    device: str = "auto",
    work: Work = UNWATCHED,
    first: Callable[[AblationResult], None] = lambda result: None,
    seeds: int | None = None,
    pace: RoundPace | None = None,
) -> AblationResult:
    """Find a result, or compute it and keep it; the provisional one of the first seeds is kept until then.

    Selections and losses are kept by what they were made from, so that the next call goes on after a stop, and another
    question on the same rows computes what is new alone.

    Args:
        first: called with a provisional result, once computed. seeds, pace: see `study.ablate`.

    Raises:
        InputError: too few texts, words, rows or examples. OptionError: a target or label that does not fit.
        Stopped: from `work`.
    """

    def first_answer(result: AblationResult) -> None:
        save(cache_dir, result)
        first(result)

    poll = poll_of(work.stopping, "the ablation was stopped; the same command continues where it stopped")
    return stored_result(cache_dir, corpus.fingerprint, question.key).find_or_compute(
        lambda: ablate(
            corpus,
            question,
            cache_dir,
            texts=texts,
            examples=examples,
            device=device,
            progress=work.report,
            poll=poll,
            keep=StudyCache(cache_dir, corpus.fingerprint, ABLATION),
            first=first_answer,
            seeds=seeds,
            pace=pace,
        ),
        poll,
        enough=lambda result: result.seeds >= (seeds or question.seeds),
    )


def check_confirmation(corpus: Corpus, examples: Examples | None = None) -> None:
    """Refuse a second proxy model before anything is computed, where no texts are learned from.

    Raises:
        OptionError: the corpus has no texts, or the examples of the target have none.
    """
    if text_column(corpus) is None:
        lacking = "the corpus has"
    elif examples is not None and examples.texts is None:
        lacking = "the examples have"
    else:
        return
    raise OptionError(f"--confirm runs a second proxy model on texts, and {lacking} none; leave it out")


def plan_confirmation(result: AblationResult, device: str = "auto") -> tuple[AblationQuestion, float]:
    """The question for the second proxy model, and about how many minutes it takes: trainings times a timed one.

    Raises:
        OptionError: the result has no second proxy model, because no texts were learned from.
    """
    if result.judge != MODELS[0]:
        raise OptionError(
            f"--confirm needs a result of the {MODELS[0]} model, got one of {result.judge}; a corpus without texts "
            "has no second proxy model"
        )
    question = result.question.by(MODELS[1])
    # random selection is drawn several times
    trainings = CONFIRM_SEEDS * (len(result.methods) + 3)
    each = seconds_of_training(question.train_bytes, asked_bytes(len(result.targets)), resolve(device))
    return question, trainings * each / 60
