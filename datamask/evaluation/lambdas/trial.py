"""What a question needs to be tried: the rows and the quality to select by, what is held out, and who judges.

Of a target that is text, the corpus's own quality is selected by, and its rows are held out or the person's texts stand
for themselves. Of examples, half are the quality (`aiming`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from datamask.config.lambda_question import LambdaQuestion
from datamask.corpus.corpus import Corpus
from datamask.corpus.neighbors import NeighborGraph
from datamask.corpus.text_space import features_of_texts
from datamask.errors import InputError, OptionError
from datamask.evaluation.examples import Examples, check_count, distinct
from datamask.evaluation.lambdas.aiming import AimedPool, aim, aimed_holdout, example_notes
from datamask.evaluation.lambdas.holdout import Holdout, held_out_own_texts, held_out_rows, units_of
from datamask.evaluation.lambdas.judges import FeatureJudge, Judge, TextJudge
from datamask.evaluation.lambdas.kept import Lessons
from datamask.evaluation.lambdas.meaning import SAME_KIND, Meaning, agreement
from datamask.evaluation.lambdas.proxy_models import BigramProxy, ProxyModel, TransformerProxy, asked_within
from datamask.evaluation.lambdas.transformer import SMALL, read_bytes
from datamask.evaluation.measures.words import Words, read_words
from datamask.evaluation.pool import Pool
from datamask.polling import Poll, no_poll
from datamask.work.context import Report, Work


@dataclass(frozen=True)
class Trial:
    """A question, ready to be tried.

    Attributes:
        pool: whose rows are selected, by its quality. holdouts: what may be selected, and what is then asked.
        target: what an answer says of the target: ``texts, words`` that are asked, ``held_out`` rows and
            ``near_copies`` that left; of examples also ``examples, repeated, steering, judging`` and
            ``near_copies_between`` the halves.
        notes: sentences that a person should read beside the answer.
    """

    pool: Pool
    holdouts: list[Holdout]
    judge: Judge
    target: dict[str, Any]
    notes: list[str]


def text_column(corpus: Corpus) -> str | None:
    """The column of the corpus's texts; None: it has none."""
    column = corpus.provenance.columns.get("text")
    return column if column in corpus.metadata.column_names else None


def text_trial(
    pool: Pool,
    graph: NeighborGraph,
    question: LambdaQuestion,
    texts: Sequence[str],
    lessons: Lessons,
    progress: Report,
    poll: Poll,
) -> Trial:
    """The trial of a target that is text: of the corpus, or the person's own `texts`. `lessons`: of earlier trainings.

    Raises:
        InputError: the corpus has no texts, or there are too few. OptionError: too few rows of the target.
    """
    corpus = pool.corpus
    if text_column(corpus) is None:
        raise InputError(
            "this target needs text, and the corpus has no text column; open shards that carry their texts, or use "
            "examples among the features (--target ids:FILE or features:FILE.parquet)"
        )
    words, meaning, proxy = _read(pool, texts, question, lessons, progress, poll)
    units = np.concatenate([units_of(graph, words), 2 * len(corpus) + np.arange(len(words) - len(corpus))])
    own = question.target.kind == "texts"
    if own:
        holdouts = [held_out_own_texts(corpus, words, meaning, poll)]
    else:
        holdouts = held_out_rows(corpus, words, graph, question.target, poll)
    holdouts = [asked_within(holdout, proxy) for holdout in holdouts]
    held_out = len(corpus) - np.mean([len(holdout.remaining) + holdout.near_copies for holdout in holdouts])
    facts = {**_asked(holdouts, words), "held_out": 0 if own else int(held_out), "near_copies": _left(holdouts)}
    judge = TextJudge(proxy, meaning, units, question.most, question.seed)
    return Trial(pool, holdouts, judge, facts, _second_opinion(meaning, graph, question.seed))


def example_trial(
    pool: Pool,
    graph: NeighborGraph,
    question: LambdaQuestion,
    examples: Examples,
    lessons: Lessons,
    progress: Report,
    poll: Poll,
) -> Trial:
    """The trial of examples with features (`in_space`): by their texts where they and the corpus have some, else by
    the features.

    Raises:
        InputError: too few different examples are left to judge by, or nearly all rows repeat them.
        OptionError: a transformer is to judge, and there are no texts.
    """
    corpus, seed = pool.corpus, question.seed
    features = examples.features
    assert features is not None
    n, m = len(corpus), len(examples)
    texts = examples.texts if text_column(corpus) is not None else None
    if texts is None and question.judge != "bigram":
        raise OptionError(
            f"--judge {question.judge} learns from texts, and {examples.name if text_column(corpus) else 'the corpus'} "
            "has none; leave it out, and the examples are evaluated by their features"
        )
    words, askable, repeating = None, np.ones(m, bool), np.zeros(n, bool)
    if texts is not None:
        words, meaning, proxy = _read(pool, texts, question, lessons, progress, poll)
        askable = words.lengths[n:] > 0
        repeating = np.isin(words.text_of[:n], words.text_of[n:][askable])
    aimed = aim(corpus.features, features, texts, askable, seed, poll)
    leaving = aimed.leaving | repeating
    notes = example_notes(examples, aimed, int(leaving.sum()), words is not None)
    judge: Judge
    if words is None:
        holdout = aimed_holdout(aimed, aimed.judging, leaving)
        units = np.zeros(m, np.int64)
        units[aimed.judging] = aimed.units
        judge = FeatureJudge(corpus.features, features, units, seed)
        asked = {"texts": len(aimed.judging), "words": 0}
    else:
        holdout = asked_within(aimed_holdout(aimed, n + aimed.judging, leaving), proxy)
        units = np.zeros(n + m, np.int64)
        units[n + aimed.judging] = aimed.units
        judge = TextJudge(proxy, meaning, units, question.most, seed)
        asked = _asked([holdout], words)
        notes += _second_opinion(meaning, graph, seed)
    facts = {
        **asked,
        "held_out": 0,
        "near_copies": holdout.near_copies,
        "examples": m,
        "repeated": examples.repeated,
        "steering": len(aimed.steering),
        "judging": len(aimed.judging),
        "near_copies_between": aimed.near_copies,
    }
    return Trial(AimedPool(pool, aimed.quality, poll), [holdout], judge, facts, notes)


def in_space(corpus: Corpus, examples: Examples, progress: Report, poll: Poll = no_poll) -> Examples:
    """The examples with features in the corpus's space: their own, else made of their texts.

    Raises:
        InputError: texts, and the corpus's features were not made by `datamask prepare`; or too few with known words.
        Stopped: from `poll`.
    """
    if examples.features is not None:
        return examples
    texts = examples.texts or ()
    features = features_of_texts(corpus, texts, Work(poll, progress))
    known = np.flatnonzero(features.any(axis=1))
    places = known[distinct(features[known], tuple(texts[place] for place in known))]
    return check_count(replace(examples, features=features[places], texts=tuple(texts[place] for place in places)))


def read_proxy(
    pool: Pool, more: Sequence[str], judge: str, lessons: Lessons, progress: Report, poll: Poll
) -> tuple[Words, ProxyModel]:
    """The words of the corpus's texts and of more texts after them, and who learns from them."""
    progress(0.0, "reading the texts")
    corpus = pool.corpus
    own = corpus.metadata[text_column(corpus)].cast(pa.large_string())
    after = pa.chunked_array([pa.array(list(more), pa.large_string())])
    everything = pa.chunked_array([*own.chunks, *after.chunks], pa.large_string())
    words = read_words(everything, poll)
    proxy: ProxyModel = BigramProxy(words)
    if judge == "transformer":
        proxy = TransformerProxy(read_bytes(everything, words.cut, poll), pool.device, SMALL, lessons)
    return words, proxy


def _read(
    pool: Pool, more: Sequence[str], question: LambdaQuestion, lessons: Lessons, progress: Report, poll: Poll
) -> tuple[Words, Meaning, ProxyModel]:
    """What `read_proxy` gives, and the second representation of all texts."""
    words, proxy = read_proxy(pool, more, question.judge, lessons, progress, poll)
    progress(0.4, "learning the second representation")
    return words, Meaning(words, question.seed, poll), proxy


def _asked(holdouts: Sequence[Holdout], words: Words) -> dict[str, int]:
    halves = [half for holdout in holdouts for split in holdout.splits for half in (split.choose, split.report)]
    return {"texts": sum(map(len, halves)), "words": int(sum(words.lengths[half].sum() for half in halves))}


def _left(holdouts: Sequence[Holdout]) -> int:
    return int(np.mean([holdout.near_copies for holdout in holdouts]))


def _second_opinion(meaning: Meaning, graph: NeighborGraph, seed: int) -> list[str]:
    """How far the second measure is one."""
    agrees = agreement(meaning, graph, seed)
    if not np.isfinite(agrees):
        return []
    measured = f"(rank correlation {agrees:.2f})".replace("-", "−")
    return [
        f"The second measure is hardly a second opinion here: it orders neighboring texts much as the "
        f"corpus's own features do {measured}."
        if agrees >= SAME_KIND
        else f"The second measure orders neighboring texts otherwise than the corpus's features do {measured}."
    ]
