"""From a question to its answer: holdouts, selections, losses, statistics, a plain record."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from torch import Tensor

from datamask import catalogue
from datamask.config import SelectionConfig
from datamask.config.lambda_question import LambdaQuestion
from datamask.corpus.corpus import Corpus
from datamask.corpus.sampling import row_hash
from datamask.errors import InputError
from datamask.evaluation.lambdas import wording
from datamask.evaluation.lambdas.holdout import (
    SPLITS,
    Holdout,
    Report,
    RestrictedPool,
    held_out_own_texts,
    held_out_rows,
    subset,
    units_of,
)
from datamask.evaluation.lambdas.kept import NOTHING_KEPT, Kept
from datamask.evaluation.lambdas.meaning import SAME_KIND, Meaning, agreement
from datamask.evaluation.lambdas.measuring import DRAWS, available, measure
from datamask.evaluation.lambdas.selecting import scales, select_all, settings
from datamask.evaluation.lambdas.statistics import Losses, Sample, judge, verdict
from datamask.evaluation.measures.ground import GRAPH_NEIGHBORS
from datamask.evaluation.measures.words import Words, read_words
from datamask.evaluation.pool import Pool
from datamask.evaluation.problems import PosedProblem
from datamask.learning.device import resolve
from datamask.objectives.contract import Poll, no_poll
from datamask.objectives.facility import list_length

LEAST_WORDS = 1_000
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
    device: str = "auto",
    progress: Report = lambda share, what: None,
    poll: Poll = no_poll,
    keep: Kept = NOTHING_KEPT,
) -> dict[str, Any]:
    """Answer a question.

    Args:
        corpus: with a text column.
        texts: where the target is the person's own texts.
        cache_dir: where the neighbour graph and the anchors are kept.
        keep: where the selections for this question on this corpus wait if the search is stopped; the next search goes
            on from them.

    Returns:
        Plain values: ``question, key, fingerprint, n, rows, target, splits, draws, seconds, created, headline, notes``
        and ``measures``, a list of ``name, label, unit, says, curves, named, random``. A curve has
        ``objective, ratio, selected, words, points`` (``lamb, value, difference, low, high, level``), ``best`` (a
        lambda), ``verdict``, ``against_random``, ``levels`` (lambdas level with the best), ``sentence``.

    Raises:
        InputError: no texts, or too few words or texts. OptionError: a target or ratio that does not fit.
        Stopped: from `poll`.
    """
    start, progress = time.monotonic(), _rising(progress)
    column = corpus.provenance.columns.get("text")
    if column not in corpus.metadata.column_names:
        raise InputError(
            "which lambda helps is judged by text, and the corpus has no text column; open shards that "
            "carry their texts"
        )
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
    progress(0.5 * PREPARED, "reading the texts")
    column_texts = corpus.metadata[column].cast(pa.large_string())
    own = pa.chunked_array([pa.array(list(texts), pa.large_string())])
    words = read_words(pa.chunked_array([*column_texts.chunks, *own.chunks], pa.large_string()), poll)
    progress(0.7 * PREPARED, "learning the second representation")
    meaning = Meaning(words, question.seed, poll)
    units = np.concatenate([units_of(graph, words), 2 * len(corpus) + np.arange(len(words) - len(corpus))])
    if question.target.kind == "texts":
        holdouts = [held_out_own_texts(corpus, words, meaning, poll)]
    else:
        holdouts = held_out_rows(corpus, words, graph, question.target, poll)
    by_ratio = _select(pool, holdouts, question, progress, poll, keep)
    measures = _measured(holdouts, by_ratio, words, meaning, units, question, progress, poll)
    notes = _notes(whole_rows, len(corpus), agreement(meaning, graph, question.seed))
    splits = [split for holdout in holdouts for split in holdout.splits]
    target = {
        "label": question.target.label,
        "kind": question.target.kind,
        "circular": question.target.circular,
        "texts": int(sum(len(split.choose) + len(split.report) for split in splits)),
        "words": int(sum(words.lengths[half].sum() for split in splits for half in (split.choose, split.report))),
        "held_out": 0
        if question.target.kind == "texts"
        else int(len(corpus) - np.mean([len(holdout.remaining) + holdout.near_copies for holdout in holdouts])),
        "near_copies": int(np.mean([holdout.near_copies for holdout in holdouts])),
    }
    result = {
        "question": question.to_dict(),
        "key": question.key,
        "fingerprint": fingerprint,
        "n": whole_rows,
        "rows": len(corpus),
        "target": target,
        "splits": SPLITS,
        "draws": DRAWS,
        "measures": measures,
        "notes": notes,
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
    starts: list[dict[float, Tensor]] = [{} for _ in curves]
    for config in curves:
        progress(PREPARED, f"finding the ends of the scale of {wording.spoken_objective(config.objective)}")
        whole.append(scales(pool, config, poll))
    total, solved = len(holdouts) * len(curves) * len(question.lambdas), 0
    for number, holdout in enumerate(holdouts, 1):
        remaining_pool = RestrictedPool(pool, holdout.remaining, poll)
        for curve, (config, posed, start) in enumerate(zip(curves, whole, starts)):
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
                remaining_pool, posed, config, question.lambdas, start, poll, tick, kept.under(f"{number}-{curve}")
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
    words: Words,
    meaning: Meaning,
    units: np.ndarray,
    question: LambdaQuestion,
    progress: Report,
    poll: Poll,
) -> list[dict[str, Any]]:
    """The records of both measures."""
    entropy, coverage = _measure("cross_entropy"), _measure("coverage")
    steps, done = len(by_ratio) * SPLITS, 0
    for ratio, selected in by_ratio.items():
        budget = min(question.words, *(available(words, list(chosen.values())) for chosen in selected.chosen))
        if budget < LEAST_WORDS:
            raise InputError(
                f"A selection at ratio {ratio:g} has only {budget:,} words to train on, {LEAST_WORDS:,} "
                "are needed; choose a larger ratio or a larger corpus"
            )
        halves: tuple[list[list[Losses]], list[list[Losses]]] = ([[], []], [[], []])
        spreads: list[np.ndarray] = []
        for holdout, chosen, size in zip(holdouts, selected.chosen, selected.sizes):
            for split in holdout.splits:
                progress(
                    SELECTING + (1 - SELECTING) * done / steps,
                    f"training on {budget:,} words of each selection, round {done % SPLITS + 1} of {SPLITS}",
                )
                *both, spread = measure(
                    words,
                    meaning,
                    chosen,
                    holdout.remaining,
                    size,
                    budget,
                    split,
                    units,
                    len(spreads),
                    question.seed,
                    poll,
                )
                for into, (choosing, reporting) in zip(halves, both):
                    into[0].append(choosing)
                    into[1].append(reporting)
                spreads.append(spread)
                done += 1
        for record, (choose, report), values in zip((entropy, coverage), halves, np.stack(spreads, axis=1)):
            _judged(
                record,
                Sample(choose, 0),
                Sample(report, 1),
                list(selected.chosen[0]),
                values,
                question,
                ratio,
                selected.sizes,
                budget,
            )
    return [entropy, coverage]


def _judged(
    record: dict[str, Any],
    choose: Sample,
    report: Sample,
    names: list[tuple[str, float]],
    random_values: np.ndarray,
    question: LambdaQuestion,
    ratio: float,
    sizes: Sequence[int],
    budget: int,
) -> None:
    """Every curve of one ratio into the record of a measure."""
    random = len(names)
    curves = len(question.objectives) * len(question.ratios)
    means = report.means()
    places = {
        objective: [names.index((objective, lamb)) for lamb in question.lambdas] for objective in question.objectives
    }
    judged = {objective: judge(choose, report, at, random, curves) for objective, at in places.items()}
    chosen = {objective: places[objective][curve.best] for objective, curve in judged.items()}
    # the best of all curves is chosen on the choosing half too
    leader = min(chosen, key=lambda objective: choose.means()[chosen[objective]])
    to_leader = report.excess([(at, chosen[leader]) for objective, at in chosen.items() if objective != leader])
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
    difference = report.difference(top, random, report.excess([(top, random)]))
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
        {**common, "value": float(means[random]), "spread": float(random_values.std(axis=1, ddof=1).mean())}
    )


def _interval(difference: tuple[float, float, float]) -> dict[str, float]:
    """An interval under its names."""
    return dict(zip(("difference", "low", "high"), difference))


def _measure(name: str) -> dict[str, Any]:
    """An empty record of a measure."""
    about = {
        "cross_entropy": (
            "Cross-entropy",
            "nats per word",
            "How badly a small model, trained on the selection, predicts the target. Lower is better.",
        ),
        "coverage": (
            "Distance to the nearest training text",
            "cosine distance",
            "How far each target text is from the nearest text the model was trained on, in a space made from "
            "words alone. Lower is better.",
        ),
    }[name]
    return {
        "name": name,
        "label": about[0],
        "unit": about[1],
        "says": about[2],
        "curves": [],
        "named": [],
        "random": [],
    }


def _notes(n: int, rows: int, agrees: float) -> list[str]:
    notes = []
    if rows < n:
        notes.append(f"Everything was done on a uniform sample of {rows:,} of {n:,} rows.")
    if np.isfinite(agrees):
        measured = f"(rank correlation {agrees:.2f})".replace("-", "−")
        notes.append(
            f"The second measure is hardly a second opinion here: it orders neighbouring texts much as the "
            f"corpus's own features do {measured}."
            if agrees >= SAME_KIND
            else f"The second measure orders neighbouring texts otherwise than the corpus's features do {measured}."
        )
    return notes
