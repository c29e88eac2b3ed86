"""What features can do: two numbers of a sample of rows, each next to what shuffled labels would give.

- How well a linear probe predicts the quality: ridge regression of the rank of the quality on the features, fitted on
  one half of the rows and tried on the other, both ways around; Spearman's correlation on the rows it has not seen.
- How often the nearest rows share a label. For shuffled labels the expected share is known:
  sum over labels of c (c - 1) / (m (m - 1)), where c of m rows have that label.

Rows with the same features count once: otherwise a copy in the other half would answer for the probe, and a row's
nearest rows would be its copies.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from datamask.corpus.corpus import Corpus
from datamask.corpus.sampling import row_hash
from datamask.polling import Poll
from datamask.work.context import UNWATCHED, Work

SAMPLE = 4_000
"""Rows that are looked at: a second or two, and a correlation of shuffled labels within 0.03 of zero."""

WIDE = 512
"""Above so many dimensions half as many rows are looked at, since the time grows with the dimensions squared."""

LEAST = 40
"""Rows below which a probe says nothing."""

NEIGHBORS = 10
LABEL_COLUMNS = 4
SHUFFLES = 5
PENALTIES = np.logspace(-3, 3, 13)


@dataclass(frozen=True)
class SharedLabel:
    """How often the nearest rows share a label.

    Attributes:
        column: of the labels. share: of the nearest rows that have the row's own label. shuffled: the same expected for
            shuffled labels.
    """

    column: str
    share: float
    shuffled: float


@dataclass(frozen=True)
class FeatureProbe:
    """What the features of a corpus can do.

    Attributes:
        rows: that were looked at, no two with the same features. sampled: rows at random that these are of.
        correlation: Spearman's of quality and prediction on rows that the probe has not seen; None: too few rows, or
            all of one quality. shuffled: the mean of the same over `SHUFFLES` shuffles of the quality.
        labels: of the first `LABEL_COLUMNS` label columns.
    """

    rows: int
    correlation: float | None
    shuffled: float | None
    labels: tuple[SharedLabel, ...]
    sampled: int

    def sentences(self) -> list[str]:
        """Return what was found, a sentence each."""
        if self.correlation is None or self.shuffled is None:
            said = ["Too few different rows or scores for a linear probe."]
        else:
            said = [
                f"A linear probe predicts quality scores with rank correlation {_number(self.correlation)} on held-out "
                f"rows (shuffled: {_number(self.shuffled)})."
            ]
        return said + [
            f"Nearest neighbors with the same {label.column}: {100 * label.share:.0f} % (shuffled: "
            f"{100 * label.shuffled:.0f} %)."
            for label in self.labels
        ]


def probe_features(corpus: Corpus, work: Work = UNWATCHED) -> FeatureProbe:
    """Return what the features of a uniform sample of rows can do; the same for the same corpus.

    Args:
        corpus: N rows.
        work: asked between parts that take a second at most.

    Raises:
        Stopped: from `work.poll`.

    Example:
        >>> probe_features(corpus).sentences()[0]  # doctest: +SKIP
        'A linear probe predicts the quality with rank correlation 0.41 on rows it has not seen (shuffled: 0.00).'
    """
    work.report(0.0, "Choosing rows")
    hashes = row_hash(corpus.ids, 0)
    most = SAMPLE if corpus.dim <= WIDE else SAMPLE // 2
    sample = np.argpartition(hashes, most)[:most] if len(hashes) > most else np.arange(len(hashes))
    sample = sample[np.argsort(hashes[sample], kind="stable")]
    work.poll()
    firsts: dict[bytes, int] = {}
    for row in sample.tolist():
        firsts.setdefault(corpus.features[row].tobytes(), row)
    rows = np.fromiter(firsts.values(), np.int64)
    work.report(0.2, "Fitting a linear probe")
    features, correlation, shuffled = corpus.features[rows], None, None
    if len(rows) >= LEAST and len(np.unique(corpus.quality[rows])) > 1:
        correlation, shuffled = _probe(features, corpus.quality[rows], work.poll)
    work.poll()
    work.report(0.7, "Comparing the nearest rows")
    labels = _labels(corpus, rows, features) if len(rows) >= LEAST else ()
    return FeatureProbe(len(rows), correlation, shuffled, labels, len(sample))


def _probe(features: np.ndarray, quality: np.ndarray, poll: Poll) -> tuple[float, float]:
    """Spearman's correlation on unseen rows, and the mean of the same over shuffles of the quality."""
    from scipy.stats import rankdata
    from sklearn.linear_model import RidgeCV

    # ranks: a few huge scores, such as counts, would otherwise be all that the squared error sees
    ranks, rng = rankdata(quality), np.random.default_rng(0)
    targets = np.column_stack([ranks, *(rng.permutation(ranks) for _ in range(SHUFFLES))])
    halves = np.arange(len(ranks)) % 2 == 0
    found = np.zeros((2, targets.shape[1]))
    for number, seen in enumerate((halves, ~halves)):
        poll()
        model = RidgeCV(alphas=PENALTIES, alpha_per_target=True).fit(features[seen], targets[seen])
        predicted = model.predict(features[~seen])
        for place in range(targets.shape[1]):
            found[number, place] = _correlation(rankdata(predicted[:, place]), rankdata(targets[~seen, place]))
    mean = found.mean(axis=0)
    return float(mean[0]), float(mean[1:].mean())


def _correlation(one: np.ndarray, other: np.ndarray) -> float:
    one, other = one - one.mean(), other - other.mean()
    scale = float(np.sqrt((one @ one) * (other @ other)))
    return float(one @ other) / scale if scale else 0.0


def _labels(corpus: Corpus, rows: np.ndarray, features: np.ndarray) -> tuple[SharedLabel, ...]:
    """The shares of the first label columns, over pairs of which both rows have a label."""
    columns = [
        column.name for column in corpus.metadata_columns.values() if column.kind == "class" and column.distinct > 1
    ][:LABEL_COLUMNS]
    if not columns:
        return ()
    from sklearn.neighbors import NearestNeighbors

    near = NearestNeighbors(n_neighbors=NEIGHBORS, algorithm="brute").fit(features).kneighbors(return_distance=False)
    shares = []
    for name in columns:
        values = pc.dictionary_encode(corpus.metadata[name].combine_chunks().take(pa.array(rows)))
        codes = pc.fill_null(values.indices, -1).to_numpy(zero_copy_only=False)
        counts = np.bincount(codes[codes >= 0])
        both = (codes[:, None] >= 0) & (codes[near] >= 0)
        if len(counts) > 1 and both.any():
            share = float((codes[:, None] == codes[near])[both].mean())
            total = int(counts.sum())
            shares.append(SharedLabel(name, share, float((counts * (counts - 1.0)).sum() / (total * (total - 1.0)))))
    return tuple(shares)


def _number(value: float) -> str:
    """Two digits behind the point, and no minus before a zero."""
    return f"{value:.2f}" if abs(value) >= 0.005 else "0.00"
