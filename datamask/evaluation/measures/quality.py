"""Mean quality, of the sum that selections are made by and of every single column in it."""

from __future__ import annotations

import numpy as np

from datamask.corpus.decode import numbers
from datamask.evaluation.measures.entry import MeasureEntry, Selections
from datamask.evaluation.measures.ground import Ground
from datamask.evaluation.measures.reading import Measured, Reading


def mean_quality(ground: Ground, selections: Selections, entry: MeasureEntry) -> list[Measured]:
    """Mean of the weighted sum of the quality columns, with its share of the attainable gain."""
    scores, readings = ground.corpus.quality, {}
    for name, rows in selections.items():
        value = float(scores[rows].mean())
        readings[name] = Reading(
            value, ground.mean_draws(scores[rows], rows), "bootstrap", extra=ground.share("quality", len(rows), value)
        )
    return [entry.measured(readings)]


def column_means(ground: Ground, selections: Selections, entry: MeasureEntry) -> list[Measured]:
    """Mean of each quality column as it stands in the input, where these are not the quality itself."""
    corpus, measurements = ground.corpus, []
    for column in corpus.provenance.columns.get("quality") or []:
        if column not in corpus.metadata.column_names:
            continue
        values, null = numbers(corpus.metadata[column].combine_chunks())
        readings = {}
        for name, rows in selections.items():
            valid_rows = rows[~null[rows]]
            if not len(valid_rows):
                readings[name] = Reading(None, note="every value is null")
                continue
            missing = len(rows) - len(valid_rows)
            readings[name] = Reading(
                float(np.mean(values[valid_rows])),
                ground.mean_draws(values[valid_rows], valid_rows),
                "bootstrap",
                note=f"{missing:,} nulls left out" if missing else "",
            )
        measurements.append(
            entry.measured(readings, column=column, label=f"{entry.label}: {column}", circular=("quality",))
        )
    return measurements
