"""From a question to its answer: holdouts, selections, losses, statistics, a plain record."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from datamask import catalogue
from datamask.config import SelectionConfig
from datamask.config.lambda_question import LambdaQuestion
from datamask.corpus.corpus import Corpus
from datamask.corpus.sampling import row_hash
from datamask.errors import OptionError
from datamask.evaluation.examples import Examples
from datamask.evaluation.lambdas import wording
from datamask.evaluation.lambdas.holdout import (
    SPLITS,
    Holdout,
    RestrictedPool,
    subset,
)
from datamask.evaluation.lambdas.judges import Halves, Judge
from datamask.evaluation.lambdas.kept import NOTHING_KEPT, Kept
from datamask.evaluation.lambdas.measuring import DRAWS
from datamask.evaluation.lambdas.selecting import scales, select_all, settings
from datamask.evaluation.lambdas.statistics import Sample, judge, luck_of, verdict
from datamask.evaluation.lambdas.trial import example_trial, in_space, text_trial
from datamask.evaluation.measures.ground import GRAPH_NEIGHBORS
from datamask.evaluation.pool import Pool
from datamask.evaluation.problems import PosedProblem
from datamask.learning.device import resolve
from datamask.objectives.facility import list_length
from datamask.polling import Poll, no_poll
from datamask.work.context import Report

SELECTING, PREPARED = 0.75, 0.15
"""Shares of the progress: until everything is prepared, and until everything is selected."""

TOP_QUALITY = "top-quality"


@dataclass
class _Ratio:
    """What was selected at one ratio.

    Attributes:
        chosen: per holdout, (objective, lambda) -> rows of the corpus. sizes: S per holdout.
    """

    chosen: list[dict[tuple[str, float], np.ndarray]]
    sizes: list[int]


def which_lambda(
    corpus: Corpus,
    question: LambdaQuestion,
    cache_dir: str | Path,
    *,
    texts: Sequence[str] = (),
    examples: Examples | None = None,
    device: str = "auto",
    progress: Report = lambda share, what: None,
    poll: Poll = no_poll,
    keep: Kept = NOTHING_KEPT,
) -> dict[str, Any]:
    """Answer a question.

    Args:
        corpus: with a text column, unless examples are judged by their features.
        texts: where the target is the person's own texts. examples: where it steers by half of them.
        cache_dir: where the neighbour graph and the anchors are kept.
        keep: where the selections for this question on this corpus wait if the search is stopped; the next search goes
            on from them.

    Returns:
        Plain values: ``question, key, fingerprint, n, rows, target, splits, draws, judge, seconds, created, headline,
        notes`` and ``measures``, a list of ``name, label, unit, says, counts, curves, named, random``. A curve has
        ``objective, ratio, selected, words`` (or bytes, as ``counts`` says), ``points``
        (``lamb, value, difference, low, high, level``), ``best`` (a lambda), ``verdict``, ``against_random``,
        ``levels`` (lambdas level with the best), ``sentence``.

    Raises:
        InputError: no texts, or too few words, texts or examples. OptionError: a target or ratio that does not fit.
        Stopped: from `poll`.
    """
    start, progress = time.monotonic(), _rising(progress)
    if question.target.steers:
        if examples is None:
            raise OptionError(f"the target {question.target.kind!r} needs its examples, and none were given")
        examples = in_space(corpus, examples, lambda share, what: progress(0.4 * PREPARED * share, what), poll)
    whole_rows, fingerprint = len(corpus), corpus.fingerprint
    if whole_rows > question.rows:
        corpus = subset(corpus, np.argsort(row_hash(corpus.ids, question.seed), kind="stable")[: question.rows])
    pool = Pool(
        corpus,
        resolve(device),
        Path(cache_dir),
        poll=poll,
        progress=lambda share, what: progress(0.5 * PREPARED * share, what),
    )
    graph = pool.graph(_longest(question, len(corpus)))

    def preparing(share: float, what: str) -> None:
        progress((0.5 + 0.5 * share) * PREPARED, what)

    if question.target.steers and examples is not None:
        trial = example_trial(pool, graph, question, examples, keep.lessons(), preparing, poll)
    else:
        trial = text_trial(pool, graph, question, texts, keep.lessons(), preparing, poll)
    by_ratio = _select(trial.pool, trial.holdouts, question, progress, poll, keep)
    sampled = (
        [f"Everything was done on a uniform sample of {len(corpus):,} of {whole_rows:,} rows."]
        if len(corpus) < whole_rows
        else []
    )
    result = {
        "question": question.to_dict(),
        "key": question.key,
        "fingerprint": fingerprint,
        "n": whole_rows,
        "rows": len(corpus),
        "target": {
            "label": question.target.label,
            "kind": question.target.kind,
            "circular": question.target.circular,
            **trial.target,
        },
        "splits": SPLITS,
        "draws": DRAWS,
        "judge": trial.judge.name,
        "measures": _measured(trial.holdouts, by_ratio, trial.judge, question, progress, poll),
        "notes": sampled + trial.notes,
        "seconds": time.monotonic() - start,
        "created": time.time(),
    }
    progress(1.0, "finishing")
    return wording.worded(result)


def _rising(progress: Report) -> Report:
    """Progress that never goes back: parts of the work count from 0 by themselves, whenever they come."""
    most = 0.0

    def report(share: float, what: str) -> None:
        nonlocal most
        most = max(most, share)
        progress(most, what)

    return report


def _longest(question: LambdaQuestion, n: int) -> int:
    """The longest neighbour lists that any of the objectives will ask for, so that the graph is built once."""
    needed = any(
        catalogue.objective(name).needs_neighbors
        for objective in question.objectives
        for name, _ in SelectionConfig.from_options(objective=objective).terms
    )
    return max([GRAPH_NEIGHBORS, *(list_length(ratio, n) for ratio in question.ratios if needed)])


def _select(
    pool: Pool, holdouts: Sequence[Holdout], question: LambdaQuestion, progress: Report, poll: Poll, kept: Kept
) -> dict[float, _Ratio]:
    """Every selection in every holdout, one holdout's features at a time."""
    by_ratio = {ratio: _Ratio([], []) for ratio in question.ratios}
    curves = [
        settings(objective, ratio, question.seed) for ratio in question.ratios for objective in question.objectives
    ]
    whole: list[PosedProblem] = []
    for config in curves:
        progress(PREPARED, f"finding the ends of the scale of {wording.spoken_objective(config.objective)}")
        whole.append(scales(pool, config, poll))
    total, solved = len(holdouts) * len(curves) * len(question.lambdas), 0
    for number, holdout in enumerate(holdouts, 1):
        remaining_pool = RestrictedPool(pool, holdout.remaining, poll)
        for curve, (config, posed) in enumerate(zip(curves, whole)):
            ratio = by_ratio[config.select_ratio]
            if len(ratio.chosen) < number:
                ratio.chosen.append({})
                ratio.sizes.append(config.size(len(remaining_pool)))

            def tick(lamb: float, config: SelectionConfig = config, number: int = number) -> None:
                nonlocal solved
                where = f", round {number} of {len(holdouts)}" if len(holdouts) > 1 else ""
                progress(
                    PREPARED + (SELECTING - PREPARED) * solved / total,
                    f"selecting by {wording.spoken_objective(config.objective)} at lambda {lamb:g}{where}",
                )
                solved += 1

            selections = select_all(
                remaining_pool, posed, config, question.lambdas, poll, tick, kept.under(f"{number}-{curve}")
            )
            for lamb, rows in zip(question.lambdas, selections):
                ratio.chosen[-1][config.objective, lamb] = holdout.remaining[rows]
        for config in curves[:: len(question.objectives)]:
            best = np.lexsort((remaining_pool.ties(question.seed).cpu().numpy(), -remaining_pool.corpus.quality))
            by_ratio[config.select_ratio].chosen[-1][TOP_QUALITY, 1.0] = np.sort(
                holdout.remaining[best[: by_ratio[config.select_ratio].sizes[-1]]]
            )
    return by_ratio


def _measured(
    holdouts: Sequence[Holdout],
    by_ratio: dict[float, _Ratio],
    judge: Judge,
    question: LambdaQuestion,
    progress: Report,
    poll: Poll,
) -> list[dict[str, Any]]:
    """The records of the judge's measures."""
    records = judge.records()
    steps, done = len(by_ratio) * SPLITS, 0
    for ratio, selected in by_ratio.items():
        budget = judge.budget([rows for chosen in selected.chosen for rows in chosen.values()], ratio)
        halves: list[list[Halves]] = []
        for holdout, chosen, size in zip(holdouts, selected.chosen, selected.sizes):
            for split in holdout.splits:

                def tick(share: float, done: int = done, budget: int = budget) -> None:
                    progress(
                        SELECTING + (1 - SELECTING) * (done + share) / steps,
                        f"{judge.doing(budget)}, round {done % SPLITS + 1} of {SPLITS}",
                    )

                halves.append(judge.losses(chosen, holdout.remaining, size, budget, split, len(halves), poll, tick))
                done += 1
        for record, of_measure in zip(records, zip(*halves)):
            choose, report = zip(*of_measure)
            _judged(
                record,
                Sample(choose, 0),
                Sample(report, 1),
                list(selected.chosen[0]),
                question,
                ratio,
                selected.sizes,
                budget,
            )
    return records


def _judged(
    record: dict[str, Any],
    choose: Sample,
    report: Sample,
    names: list[tuple[str, float]],
    question: LambdaQuestion,
    ratio: float,
    sizes: Sequence[int],
    budget: int,
) -> None:
    """Every curve of one ratio into the record of a measure."""
    random = len(names)
    curves = len(question.objectives) * len(question.ratios)
    luck = luck_of([choose, report])
    means = report.means()
    places = {
        objective: [names.index((objective, lamb)) for lamb in question.lambdas] for objective in question.objectives
    }
    judged = {objective: judge(choose, report, at, random, curves, luck) for objective, at in places.items()}
    chosen = {objective: places[objective][curve.best] for objective, curve in judged.items()}
    # the best of all curves is chosen on the choosing half too
    leader = min(chosen, key=lambda objective: choose.means()[chosen[objective]])
    to_leader = report.widening([(at, chosen[leader]) for objective, at in chosen.items() if objective != leader])
    common = {"ratio": ratio, "selected": round(float(np.mean(sizes))), "words": budget}
    for objective, curve in judged.items():
        points = [
            {
                "lamb": lamb,
                "value": float(means[place]),
                "difference": d,
                "low": low,
                "high": high,
                "level": level,
                "choosing": float((choose.values[:, place] - choose.values[:, random]).mean()),
            }
            for lamb, place, (d, low, high), level in zip(
                question.lambdas, places[objective], curve.differences, curve.level
            )
        ]
        record["curves"].append(
            {
                "objective": objective,
                **common,
                "points": points,
                "best": question.lambdas[curve.best],
                "verdict": curve.verdict,
                "against_random": _interval(curve.against_random),
                "levels": [lamb for lamb, level in zip(question.lambdas, curve.level) if level],
                "leads": objective == leader,
                "against_leader": None
                if objective == leader
                else _interval(report.difference(chosen[objective], chosen[leader], to_leader)),
            }
        )
    top = names.index((TOP_QUALITY, 1.0))
    difference = report.difference(top, random, report.widening([(top, random)], luck))
    record["named"].append(
        {
            "name": TOP_QUALITY,
            **common,
            "value": float(means[top]),
            **_interval(difference),
            "verdict": verdict(difference),
        }
    )
    record["random"].append(
        {
            **common,
            "value": float(means[random]),
            "spread": float(report.random_values.std(axis=1, ddof=1).mean()),
            "luck": luck.variance**0.5,
        }
    )


def _interval(difference: tuple[float, float, float]) -> dict[str, float]:
    """An interval under its names."""
    return dict(zip(("difference", "low", "high"), difference))
