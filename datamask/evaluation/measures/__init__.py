"""The measures of the scoreboard: how good a selection is by things it was mostly not made for.

To add one: a file here with a function of (ground, selections, entry) that gives a list of `Measured`, and a line in
the table below. It then appears in `score --panel`, its JSON and the scoreboard by itself.
"""

from __future__ import annotations

from datamask import catalogue
from datamask.evaluation.measures.clusters import cluster_entropy
from datamask.evaluation.measures.copies import exact_copy_rate, near_copy_rate
from datamask.evaluation.measures.coverage import tf_idf_coverage
from datamask.evaluation.measures.drift import domain_drift, number_drift
from datamask.evaluation.measures.entry import MeasureEntry
from datamask.evaluation.measures.language import cross_entropy
from datamask.evaluation.measures.objective import objective
from datamask.evaluation.measures.quality import column_means, mean_quality
from datamask.evaluation.measures.vendi import vendi

_ROWS = "bootstrap over the selected rows"
_TANGENT = "bootstrap over the selected rows, along the tangent"
_POOL = "bootstrap over the corpus's rows"

QUALITY = MeasureEntry(
    "quality",
    "Mean quality",
    "Mean quality score of the selected rows.",
    "higher",
    True,
    _ROWS,
    0.1,
    mean_quality,
)


def objective_measure(name: str) -> MeasureEntry:
    """The measure of an objective, by its name in the catalogue or as one's own ``module:Class``."""
    entry = catalogue.objective(name)
    return MeasureEntry(
        entry.name,
        entry.label,
        entry.sees,
        "higher",
        True,
        _POOL if entry.name == "facility" else _TANGENT,
        entry.effort,
        objective,
    )


OBJECTIVES: tuple[MeasureEntry, ...] = tuple(objective_measure(entry.name) for entry in catalogue.OBJECTIVES)

PANEL: tuple[MeasureEntry, ...] = (
    QUALITY,
    MeasureEntry(
        "column",
        "Mean of column",
        "Mean of one of the columns that make up the quality score.",
        "higher",
        True,
        _ROWS,
        0.02,
        column_means,
    ),
    *(entry for entry in OBJECTIVES if entry.name != "vendi"),  # it has its row below, as the score
    MeasureEntry(
        "vendi",
        "Vendi score",
        "The effective number of different rows, from the entropy of their directions. It does not count duplicates.",
        "higher",
        True,
        _TANGENT,
        0.2,
        vendi,
    ),
    MeasureEntry(
        "clusters",
        "Cluster entropy",
        "How evenly the selection spreads over the corpus's topics, found by k-means.",
        "higher",
        False,
        _ROWS,
        2.3,
        cluster_entropy,
    ),
    MeasureEntry(
        "near_copies",
        "Semantic duplicates",
        "Share of selected rows with another selected row at cosine 0.95 or more.",
        "lower",
        True,
        _ROWS,
        0.02,
        near_copy_rate,
    ),
    MeasureEntry(
        "exact_copies",
        "Exact duplicates",
        "Share of selected rows whose text another selected row has too; in a corpus without texts, whose features.",
        "lower",
        True,
        _ROWS,
        0.1,
        exact_copy_rate,
    ),
    MeasureEntry(
        "tfidf",
        "TF-IDF coverage",
        "Mean TF-IDF similarity of a text of the corpus to the nearest other selected text. It does not use the "
        "features.",
        "higher",
        False,
        _POOL,
        1.9,
        tf_idf_coverage,
    ),
    MeasureEntry(
        "cross_entropy",
        "Cross-entropy",
        "Nats per word of held-out text, by a bigram model that learns from equally many words of each selection. "
        "Held-out rows and their duplicates are removed after selecting, which costs a diverse selection more; "
        "`ablate` removes them before.",
        "lower",
        False,
        "5 hold-outs",
        0.35,
        cross_entropy,
    ),
    MeasureEntry(
        "domain",
        "Domain drift",
        "How far the shares of a column's values are from those of the corpus: 0 equal, 1 disjoint (Jensen-Shannon).",
        "neither",
        False,
        _ROWS,
        0.04,
        domain_drift,
    ),
    MeasureEntry(
        "drift",
        "Drift",
        "How far the mean of a column is from its mean in the corpus, in standard deviations.",
        "neither",
        False,
        _ROWS,
        0.06,
        number_drift,
    ),
)
"""Every measure, in the order of a panel."""

__all__ = ["OBJECTIVES", "PANEL", "QUALITY", "MeasureEntry", "objective_measure"]
