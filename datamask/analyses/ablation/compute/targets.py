"""What selections are measured on: held-out rows of several targets or of one kind, own texts, or examples.

Of a target among several, a quarter of its rows is held out, from `LEAST_HELD` to `MOST_HELD` of them; of a single one
half. Held-out rows leave the corpus before it is dealt to the seeds, and so do rows that nearly repeat them. Every seed
is asked all of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from datamask.ablation.question import LABEL_REGIONS, AblationQuestion
from datamask.ablation.result import BESIDES, POOL_LABEL, TargetFacts
from datamask.ablation.wording import POOL_NOTE
from datamask.analyses.ablation.compute.aiming import aim, example_notes, with_quality
from datamask.analyses.ablation.compute.kept import StudyCache
from datamask.analyses.ablation.compute.meters import FeatureMeter, Meter, TextMeter
from datamask.analyses.ablation.compute.parts import parts
from datamask.analyses.ablation.compute.sources import read_proxy, text_column
from datamask.config.target import LEAST_TEXTS, Target
from datamask.corpus.copies import near_families
from datamask.corpus.corpus import Corpus
from datamask.corpus.equal_rows import equal_features
from datamask.corpus.neighbors import NeighborGraph
from datamask.errors import InputError, OptionError
from datamask.evaluation.examples import Examples
from datamask.evaluation.holdout import (
    LEAST_REMAINING,
    LONGEST_CHAIN,
    hashed,
    near_rows,
    own_texts,
    target_rows,
    units_of,
)
from datamask.evaluation.meaning import Meaning
from datamask.evaluation.measures.copies import NEAR
from datamask.evaluation.pool import Pool
from datamask.learning.kmeans import kmeans_labels
from datamask.polling import Poll
from datamask.work.context import Report

LEAST_HELD, MOST_HELD = 300, 1_000
"""Held-out texts of each of several targets, all seeds together."""

HELD_SHARE = 1 / 3
"""Of all rows, held out for all targets together at most."""

MOST_HELD_ALONE = 5_000
"""Held-out texts of a single target, all seeds together."""

LEAST_ROWS = 40
"""Rows that a seed must have to select from."""

LEAST_TARGETS, MOST_TARGETS = 8, 20
ROWS_PER_REGION = 1_200
POOL = "pool"

FEATURES_NOTE = (
    "The corpus has no texts here, so methods are evaluated by its features: the distance from held-out rows to the "
    "nearest selected row. That is a weaker test than text, because methods select by the same features."
)


@dataclass(frozen=True)
class Plan:
    """A question, ready to be computed.

    Attributes:
        corpus: whose rows are selected, by its quality. meter: measures selections. targets: T of them.
        texts: by target, int64 numbers of its held-out texts. units: likewise, texts of one number nearly repeat each
            other.
        remaining: by seed, int64 rows of the corpus that may be selected, rising. notes: sentences to read next to the
            result.
    """

    corpus: Corpus
    meter: Meter
    targets: tuple[TargetFacts, ...]
    texts: tuple[np.ndarray, ...]
    units: tuple[np.ndarray, ...]
    remaining: tuple[np.ndarray, ...]
    notes: tuple[str, ...]


def plan(
    pool: Pool,
    graph: NeighborGraph,
    question: AblationQuestion,
    texts: Sequence[str],
    examples: Examples | None,
    kept: StudyCache,
    progress: Report,
    poll: Poll,
) -> Plan:
    """Deal the rows to the seeds, and hold the targets out.

    Args:
        graph: of the pool. texts: of a target that is the person's own texts. examples: with features, of a target of
            which half scores. kept: what earlier trainings gave.

    Raises:
        InputError: too few texts, rows or examples. OptionError: a target or label that the corpus does not have.
    """
    corpus, target = pool.corpus, question.target
    if target is not None and target.steers and examples is not None:
        return _example_plan(pool, graph, question, target, examples, kept, progress, poll)
    own = target is not None and target.kind == "texts"
    if text_column(corpus) is None:
        if own or question.judge != "bigram":
            raise InputError(
                "Texts of your own and --judge transformer need a corpus with texts, and this one has no text column; "
                "open shards that carry their texts, or use --target ids:FILE or features:FILE.parquet"
            )
        meter: Meter = FeatureMeter(corpus.features, corpus.lengths)
        words, units, askable = None, units_of_features(corpus, graph), np.ones(len(corpus), bool)
    else:
        words, proxy = read_proxy(pool, texts, question.judge, kept, progress, poll)
        meter = TextMeter(proxy, words, question.most, kept)
        units, askable = units_of(graph, words), words.lengths[: len(corpus)] > 0
    if own and words is not None and target is not None:
        numbers, leaving = own_texts(len(corpus), words, Meaning(words, question.seed, poll), poll)
        numbers = meter.limit(numbers, 1)
        fact, remaining = TargetFacts("texts", target.label, len(numbers)), _remaining(units, leaving, question)
        return Plan(corpus, meter, (fact,), (numbers,), (np.arange(len(numbers)),), remaining, ())
    named, more = _kinds(pool, question, askable, poll)
    held = _held_out([kind for _, _, kind in named], question)
    poll()
    leaving = np.zeros(len(corpus), bool)
    leaving[np.concatenate(held)] = True
    leaving = near_rows(corpus.features, leaving, poll)
    if words is not None:
        text = words.text_of[: len(corpus)]
        leaving |= np.isin(text, text[np.concatenate(held)])
    held = [meter.limit(each, len(held)) for each in held]
    facts = tuple(
        TargetFacts(name, label, len(numbers), _circular(corpus, target), POOL_NOTE if name == POOL else "")
        for (name, label, _), numbers in zip(named, held)
    )
    few = [fact.label for fact in facts if fact.texts < LEAST_HELD]
    if few and target is None:
        more = (
            *more,
            f"{len(few)} of {len(facts)} targets have fewer than {LEAST_HELD} held-out texts, so "
            "small differences may not show.",
        )
    return Plan(
        corpus,
        meter,
        facts,
        tuple(held),
        tuple(units[each] for each in held),
        _remaining(units, leaving, question),
        (FEATURES_NOTE, *more) if words is None else more,
    )


def units_of_features(corpus: Corpus, graph: NeighborGraph) -> np.ndarray:
    """A number for each row, equal for rows that nearly repeat each other by their features: int64 ``(N,)``.

    As `units_of`, for rows without texts: of a long chain only rows with equal features are one.
    """
    family = near_families(graph, NEAR)
    sizes = np.bincount(family)
    # numbers of families come first
    return np.where(sizes[family] <= LONGEST_CHAIN, family, len(family) + equal_features(corpus.features))


def _circular(corpus: Corpus, target: Target | None) -> bool:
    """Whether a target is made of a column of the quality that methods select by."""
    if target is None:
        return False
    return target.circular or (target.kind == "score" and target.column in corpus.provenance.columns["quality"])


def _kinds(
    pool: Pool, question: AblationQuestion, askable: np.ndarray, poll: Poll
) -> tuple[list[tuple[str, str, np.ndarray]], tuple[str, ...]]:
    """Name, label and rows, bool ``(N,)``, of every target; and notes."""
    corpus, target = pool.corpus, question.target
    if target is not None:
        name = POOL if target.kind == "random" else target.kind
        kind = target_rows(corpus, target) & askable
        if (count := int(kind.sum()) // 2) < LEAST_TEXTS:
            raise OptionError(
                f"--target: {count:,} texts of the kind {target.label!r} can be held out; at least {LEAST_TEXTS} are "
                "needed to tell methods apart"
            )
        return [(name, target.label, kind)], ()
    labels, note = _labels(pool, question, poll)
    named = [(POOL, POOL_LABEL, askable)]
    return named + [(name, name, rows & askable) for name, rows in labels], (note,)


def _labels(pool: Pool, question: AblationQuestion, poll: Poll) -> tuple[list[tuple[str, np.ndarray]], str]:
    """Several targets, name and rows: values of the label column asked for or of the one that fits best, else regions.

    Raises:
        OptionError: no such column, or fewer than two of its values have enough rows.
    """
    corpus = pool.corpus
    if question.label and question.label != LABEL_REGIONS:
        if question.label not in corpus.metadata.column_names:
            raise OptionError(
                f"--label: the corpus has no column {question.label!r}; it has "
                f"{', '.join(corpus.metadata.column_names) or 'no metadata columns'}"
            )
        values = _values(corpus, question.label, 2 * LEAST_TEXTS)
        if len(values) < 2:
            raise OptionError(
                f"--label {question.label} needs at least two values with {2 * LEAST_TEXTS} rows each, and has "
                f"{len(values)}; name another column, or {LABEL_REGIONS}"
            )
        return values, f"{BESIDES}each target is one value of column {question.label}."
    if not question.label:
        fitting = {
            name: values
            for name, column in corpus.metadata_columns.items()
            if column.kind == "class" and len(values := _values(corpus, name, 2 * LEAST_HELD)) >= LEAST_TARGETS
        }
        if fitting:
            best = max(fitting, key=lambda name: sum(int(rows.sum()) for _, rows in fitting[name]))
            note = f"{BESIDES}each target is one value of column {best}, the label column that covers most rows."
            return fitting[best], note
    count = int(np.clip(len(corpus) // ROWS_PER_REGION, LEAST_TARGETS, MOST_TARGETS))
    region = kmeans_labels(pool.features, min(count, len(corpus)), question.seed, poll).cpu().numpy()
    found = [(f"region {place + 1}", region == place) for place in range(count)]
    # k-means leaves some small ones, whose regrets would be noise
    large = [(name, rows) for name, rows in found if rows.sum() >= 2 * LEAST_HELD]
    return (
        large if len(large) >= LEAST_TARGETS else [(name, rows) for name, rows in found if rows.sum() >= LEAST_TEXTS],
        f"{BESIDES}the targets are k-means regions of the features that methods select by, because no label column was "
        f"named or has {LEAST_TARGETS} values with {2 * LEAST_HELD} rows each.",
    )


def _values(corpus: Corpus, column: str, least: int) -> list[tuple[str, np.ndarray]]:
    """The most frequent values of a column with at least so many rows: name and rows, bool ``(N,)``."""
    cells = corpus.metadata[column]
    coded = pc.dictionary_encode(pc.cast(cells, pa.string())).combine_chunks()
    coded = coded.chunk(0) if isinstance(coded, pa.ChunkedArray) else coded
    codes = pc.fill_null(coded.indices, -1).to_numpy()
    counts = np.bincount(codes[codes >= 0], minlength=len(coded.dictionary))
    frequent = [code for code in np.argsort(-counts, kind="stable")[:MOST_TARGETS] if counts[code] >= least]
    return [(str(coded.dictionary[int(code)]), codes == code) for code in frequent]


def _held_out(kinds: Sequence[np.ndarray], question: AblationQuestion) -> list[np.ndarray]:
    """The held-out rows of every target, in a random order; no row is held out for two targets."""
    several = len(kinds) > 1
    share, most = (0.25, MOST_HELD) if several else (0.5, MOST_HELD_ALONE)
    totals = [int(kind.sum()) for kind in kinds]
    wanted = [int(np.clip(share * total, min(LEAST_HELD, total // 2), most)) for total in totals]
    if several:
        # the pool comes first, so that its held-out rows are a random draw of all
        wanted[0] = min(wanted[0], round(sum(wanted[1:]) / (len(wanted) - 1)))
    # a small corpus keeps most of its rows to select from
    fits = min(1.0, HELD_SHARE * len(kinds[0]) / max(sum(wanted), 1))
    wanted = [int(fits * number) for number in wanted]
    rows = np.arange(len(kinds[0]))
    shuffled = rows[np.argsort(hashed(rows, 104_729 + question.seed), kind="stable")]
    taken, held = np.zeros(len(rows), bool), []
    for kind, number in zip(kinds, wanted):
        free = shuffled[kind[shuffled] & ~taken[shuffled]]
        held.append(free[: max(1, min(number, len(free) // 2))])
        taken[held[-1]] = True
    return held


def _remaining(units: np.ndarray, leaving: np.ndarray, question: AblationQuestion) -> tuple[np.ndarray, ...]:
    """What each seed may select from.

    Raises:
        InputError: next to nothing is left.
    """
    left = np.flatnonzero(~leaving)
    dealt = tuple(left[part] for part in parts(units[left], question.seeds, question.rows, question.seed))
    least = min(map(len, dealt))
    if least < LEAST_ROWS or len(left) < LEAST_REMAINING * len(units):
        raise InputError(
            f"{len(left):,} of {len(units):,} rows are left without held-out rows and their duplicates, and "
            f"one of {question.seeds} seeds gets {least:,} of them; choose fewer --seeds (at "
            "least 6), or open a larger or less repetitive corpus"
        )
    return dealt


def _example_plan(
    pool: Pool,
    graph: NeighborGraph,
    question: AblationQuestion,
    target: Target,
    examples: Examples,
    kept: StudyCache,
    progress: Report,
    poll: Poll,
) -> Plan:
    """The plan of examples: half of them scores the rows, and the other half evaluates."""
    corpus, features = pool.corpus, examples.features
    assert features is not None
    n, m = len(corpus), len(examples)
    texts = examples.texts if text_column(corpus) is not None else None
    if texts is None and question.judge != "bigram":
        raise OptionError(
            f"--judge {question.judge} learns from texts, and {examples.name if text_column(corpus) else 'the corpus'} "
            "has none; leave it out, and the examples are evaluated by their features"
        )
    askable, repeating = np.ones(m, bool), np.zeros(n, bool)
    if texts is None:
        words, units = None, units_of_features(corpus, graph)
        meter: Meter = FeatureMeter(np.concatenate([corpus.features, features]), corpus.lengths)
    else:
        words, proxy = read_proxy(pool, texts, question.judge, kept, progress, poll)
        meter, units = TextMeter(proxy, words, question.most, kept), units_of(graph, words)
        askable = words.lengths[n:] > 0
        repeating = np.isin(words.text_of[:n], words.text_of[n:][askable])
    aimed = aim(corpus.features, features, texts, askable, question.seed, poll)
    leaving = aimed.leaving | repeating
    numbers = meter.limit(n + aimed.judging, 1)
    facts = TargetFacts("examples", target.label, len(numbers))
    notes = tuple(example_notes(examples, aimed, int(leaving.sum()), words is not None))
    return Plan(
        with_quality(corpus, aimed.quality),
        meter,
        (facts,),
        (numbers,),
        (aimed.units[: len(numbers)],),
        _remaining(units, leaving, question),
        notes,
    )
