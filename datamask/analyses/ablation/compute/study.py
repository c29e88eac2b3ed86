"""From a question to its result, seed by seed."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from datamask.ablation.question import DUPLICATES, FIRST_SEEDS, RANDOM, AblationQuestion
from datamask.ablation.result import AblationResult
from datamask.analyses.ablation.compute.contestants import Contestants, measuring
from datamask.analyses.ablation.compute.kept import LOSSES, NOTHING_KEPT, SELECTION, StudyCache
from datamask.analyses.ablation.compute.selecting import random_rows
from datamask.analyses.ablation.compute.sources import in_space
from datamask.analyses.ablation.compute.targets import Plan, plan
from datamask.corpus.corpus import Corpus
from datamask.errors import OptionError
from datamask.evaluation.examples import Examples
from datamask.evaluation.holdout import subset
from datamask.evaluation.measures.ground import GRAPH_NEIGHBORS
from datamask.evaluation.pool import Pool
from datamask.learning.device import resolve
from datamask.options.duplicates import compared_by
from datamask.polling import Poll, no_poll
from datamask.work.context import Report, Work
from datamask.work.pace import RoundPace

PREPARED = 0.1
"""Share of the progress until the first seed begins."""


def ablate(
    corpus: Corpus,
    question: AblationQuestion,
    cache_dir: str | Path,
    *,
    texts: Sequence[str] = (),
    examples: Examples | None = None,
    device: str = "auto",
    progress: Report = lambda share, what: None,
    poll: Poll = no_poll,
    keep: StudyCache = NOTHING_KEPT,
    first: Callable[[AblationResult], None] = lambda result: None,
    seeds: int | None = None,
    pace: RoundPace | None = None,
) -> AblationResult:
    """Compare methods on targets.

    Args:
        corpus: with texts, or it is judged by its features.
        texts: where the target is the person's own texts. examples: where half of them scores the rows.
        cache_dir: where neighbor graphs and anchors are kept.
        keep: where selections and losses wait if this is stopped; the next call goes on from them.
        first: called once with the provisional result of the first seeds.
        seeds: stop after so many; None: after all planned. A result of fewer than planned stays provisional.
        pace: told what each method takes, so that it knows the share done and the seconds left.

    Raises:
        InputError: too few texts, words, rows or examples. OptionError: a target or label that does not fit.
        Stopped: from `poll`.

    Example:
        ``ablate(corpus, AblationQuestion(target=Target()), "runs/.kept").recommendation``
    """
    start, whole = time.monotonic(), corpus
    if question.target is not None and question.target.steers:
        if examples is None:
            raise OptionError(f"the target {question.target.kind!r} needs its examples, and none were given")
        examples = in_space(corpus, examples, lambda share, what: progress(0.4 * PREPARED * share, what), poll)
    most = question.rows * question.seeds
    if len(corpus) > most:
        corpus = subset(corpus, np.argsort(corpus.hashes(question.seed), kind="stable")[:most])
    pool = Pool(
        corpus,
        resolve(device),
        Path(cache_dir),
        work=Work(poll, lambda share, what: progress(0.6 * PREPARED * share, what)),
    )
    planned = plan(
        pool, pool.graph(GRAPH_NEIGHBORS), question, texts, examples, keep, lambda s, w: progress(0.08, w), poll
    )
    contestants = Contestants(question)
    texts_of = Texts(planned)
    done: list[np.ndarray] = []
    used: list[tuple[int, int, int]] = []
    wanted = min(question.seeds, seeds or question.seeds)

    def result() -> AblationResult:
        rows, selected, training = (round(float(number)) for number in np.mean(used, axis=0))
        sampled = (
            (f"Everything was done on a uniform sample of {len(corpus):,} of {len(whole):,} rows.",)
            if len(corpus) < len(whole)
            else ()
        )
        same = compared_by(corpus.provenance.columns)
        duplicates = (f"Exact duplicates are rows with the same {same}.",) if DUPLICATES in question.methods else ()
        return AblationResult(
            question,
            whole.fingerprint,
            len(whole),
            rows,
            selected,
            planned.meter.judge,
            planned.meter.unit,
            training,
            planned.meter.counts,
            contestants.methods,
            planned.targets,
            np.stack([texts_of.values(sums) for sums in done]),
            texts_of.variances(np.mean(done, axis=0), [method.simple for method in contestants.methods]),
            sampled + duplicates + planned.notes,
            time.monotonic() - start,
            time.time(),
        )

    pace = RoundPace() if pace is None else pace
    pace.plan(wanted, contestants.steps)
    for place in range(wanted):
        stored = _stored(keep)

        def begin(step: str, what: str, place: int = place) -> None:
            pace.begin(step)
            progress(PREPARED + (1 - PREPARED) * pace.share, f"{what}, seed {place + 1} of {wanted}")

        def computed(stored: int | None = stored) -> bool:
            return stored is None or _stored(keep) != stored

        with pace.round(computed):
            sums, counts = one_seed(planned, contestants, place, Path(cache_dir), pool, begin, poll, keep)
        done.append(sums)
        used.append(counts)
        if len(done) == FIRST_SEEDS < question.seeds:
            first(result())
    progress(1.0, "finishing")
    return result()


def _stored(keep: StudyCache) -> int | None:
    """How many selections and losses are kept; None where nothing is."""
    return None if keep is NOTHING_KEPT else sum(len(keep.names(kind)) for kind in (SELECTION, LOSSES))


class Texts:
    """The held-out texts of a plan, target after target: from summed losses of texts to values of targets."""

    def __init__(self, planned: Plan) -> None:
        self._weights = [np.asarray(planned.meter.weights(texts), float) for texts in planned.texts]
        self._units = [np.unique(units, return_inverse=True)[1] for units in planned.units]
        self._ends = np.cumsum([len(texts) for texts in planned.texts])[:-1]

    def values(self, sums: np.ndarray) -> np.ndarray:
        """float64 ``(M, T)``: losses per word, byte or row, of sums ``(M, D)``."""
        parts = np.split(sums, self._ends, axis=1)
        return np.stack([part.sum(axis=1) / weights.sum() for part, weights in zip(parts, self._weights)], axis=1)

    def variances(self, sums: np.ndarray, simple: Sequence[bool]) -> np.ndarray:
        """float64 ``(M, S, T)``: of the difference of each method to each simple one, by which texts were held out.

        The delta method for a ratio of sums; texts that nearly repeat each other count as one.
        """
        of_targets = []
        for part, weights, unit in zip(np.split(sums, self._ends, axis=1), self._weights, self._units):
            left = part - part.sum(axis=1, keepdims=True) / weights.sum() * weights
            of_units = np.zeros((unit.max() + 1, len(left)))
            np.add.at(of_units, unit, left.T)
            count = len(of_units)
            covariance = of_units.T @ of_units / weights.sum() ** 2 * (count / max(count - 1, 1))
            own = np.diag(covariance)
            pairs = own[:, None] + own[None, :] - 2 * covariance
            of_targets.append(np.maximum(pairs[:, np.flatnonzero(simple)], 0.0))
        return np.stack(of_targets, axis=2)


def one_seed(
    planned: Plan,
    contestants: Contestants,
    place: int,
    cache_dir: Path,
    whole: Pool,
    begin: Callable[[str, str], None],
    poll: Poll,
    keep: StudyCache,
) -> tuple[np.ndarray, tuple[int, int, int]]:
    """Losses of every method on every text in one seed, float64 ``(M, D)``; rows, rows selected, and the budget.

    Args:
        begin: called with the name of each of `Contestants.steps` before it, and what it is in words.
    """
    question, remaining = contestants.question, planned.remaining[place]
    texts = np.concatenate(planned.texts)
    pool = Pool(subset(planned.corpus, remaining), whole.device, cache_dir, work=Work(poll))
    labels = {method.name: method.label for method in contestants.methods}

    def tick(name: str) -> None:
        begin(name, f"selecting by {labels[name]}")

    seed = 1_000 * question.seed + place
    chosen = contestants.selections(pool, seed, poll, tick, keep)
    size = len(next(iter(chosen.values()))) if chosen else max(1, round(question.ratio * len(pool)))
    chosen = {name: remaining[selected] for name, selected in chosen.items()}
    drawn = random_rows(remaining, size, place, 0, question.seed)
    budget = planned.meter.budget([*chosen.values(), *drawn])

    def losses(name: str, selected: np.ndarray) -> np.ndarray:
        begin(measuring(name), "measuring")
        return planned.meter.losses(selected, budget, texts, 31 + seed, poll)

    by_name = {name: losses(name, selected) for name, selected in chosen.items()}
    by_name[RANDOM] = np.mean([losses(RANDOM, selected) for selected in drawn], axis=0)
    return np.stack([by_name[method.name] for method in contestants.methods]), (len(pool), size, budget)
