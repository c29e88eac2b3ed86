"""Drift: how far a selection's lengths, domains and qualities have moved from its corpus. Neither way is better."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from datamask.corpus.corpus import Corpus
from datamask.corpus.decode import numbers, plain
from datamask.evaluation.measures.entry import MeasureEntry, Selections
from datamask.evaluation.measures.ground import Ground
from datamask.evaluation.measures.reading import NORMAL, Measured, Reading

LEVELS = 50
"""A text column with at most so many different values is a domain; with more it is a text."""

COLUMNS = 20
"""At most so many columns of each kind, in their order."""

MISSING = "(none)"


def js_distance(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Jensen-Shannon distance between shares, base 2: 0 for equal, 1 for disjoint; ``(..., k)``, ``(k,)`` to ``(...)``.

    The square root of the divergence (Endres and Schindelin 2003), as scipy has it.
    """
    middle = (first + second) / 2

    def divergence(shares: np.ndarray) -> np.ndarray:
        with np.errstate(divide="ignore", invalid="ignore"):
            bits: np.ndarray = np.where(shares > 0, shares * np.log2(shares / middle), 0.0).sum(-1)
        return bits

    distance: np.ndarray = np.sqrt(
        np.maximum(0.0, (divergence(first) + divergence(np.broadcast_to(second, middle.shape))) / 2)
    )
    return distance


def domain_drift(ground: Ground, selections: Selections, entry: MeasureEntry) -> list[Measured]:
    """Jensen-Shannon distance to the corpus for every column of few values, with each level's change of share."""
    measurements = []
    for column, levels, labels in domains(ground.corpus):
        ground.poll()
        whole = np.bincount(labels, minlength=len(levels)) / len(labels)
        readings = {}
        for name, rows in selections.items():
            counts = np.bincount(labels[rows], minlength=len(levels))
            shares, draws, spread = counts / len(rows), None, None
            if ground.resampling and len(rows) > 1:
                resampled = ground.count_draws(labels[rows], len(levels), rows)
                resampled /= np.maximum(resampled.sum(1, keepdims=True), 1.0)
                draws, spread = js_distance(resampled, whole), NORMAL * resampled.std(0, ddof=1)
            table: list[dict[str, Any]] = [
                {
                    "level": level,
                    "n": int(counts[k]),
                    "share": float(shares[k]),
                    "pool_share": float(whole[k]),
                    "change": float(shares[k] - whole[k]),
                    "reach": None if spread is None else float(spread[k]),
                }
                for k, level in enumerate(levels)
            ]
            moved = max(table, key=lambda level: abs(level["change"]))
            note = f"most: {moved['level']} {100 * moved['pool_share']:.1f} % to {100 * moved['share']:.1f} %"
            readings[name] = Reading(
                float(js_distance(shares, whole)), draws, "bootstrap", note, {"levels": table}, (0.0, 1.0)
            )
        measurements.append(entry.measured(readings, column=column, label=f"{entry.label}: {column}"))
    return measurements


def number_drift(ground: Ground, selections: Selections, entry: MeasureEntry) -> list[Measured]:
    """Standardised mean difference to the corpus, (mean of selection - mean of corpus) / sd of corpus, per column."""
    measurements = []
    for column, values in number_columns(ground.corpus):
        ground.poll()
        not_null = ~np.isnan(values)
        mean, sd = values[not_null].mean(), values[not_null].std()
        if not sd > 1e-12 * abs(mean):
            continue  # a constant cannot drift
        standard, readings = (values - mean) / sd, {}
        for name, rows in selections.items():
            rows = rows[not_null[rows]]
            if not len(rows):
                readings[name] = Reading(None, note="every value is null")
                continue
            share = float(standard[rows].mean())
            readings[name] = Reading(
                share,
                ground.mean_draws(standard[rows], rows),
                "bootstrap",
                f"mean {mean + sd * share:.4g}, corpus {mean:.4g} (sd {sd:.4g})",
            )
        measurements.append(entry.measured(readings, column=column, label=f"{entry.label}: {column}"))
    return measurements


def domains(corpus: Corpus) -> list[tuple[str, list[str], np.ndarray]]:
    """Columns of 2 to 50 different texts or truth values: name, levels by falling count, each row's level ``(N,)``."""
    columns: list[tuple[str, list[str], np.ndarray]] = []
    for column in corpus.metadata_columns.values():
        if len(columns) == COLUMNS:
            break
        # more levels than that in the first rows are more in all: texts are told apart without touching all of them
        if column.cells not in ("text", "truth") or column.distinct > LEVELS:
            continue
        values = plain(corpus.metadata[column.name].combine_chunks()).cast(pa.string()).fill_null(MISSING)
        encoded = values.dictionary_encode()
        labels = encoded.indices.to_numpy().astype(np.int64)
        counts = np.bincount(labels)
        order = np.argsort(-counts, kind="stable")
        place = np.empty_like(order)
        place[order] = np.arange(len(order))
        if 2 <= len(order) <= LEVELS:
            spelled = encoded.dictionary.to_pylist()
            columns.append((column.name, [spelled[k] for k in order], place[labels]))
    return columns


def number_columns(corpus: Corpus) -> list[tuple[str, np.ndarray]]:
    """Length, quality, and every column of numbers, float64 ``(N,)``, NaN where null."""
    columns = [("quality", corpus.quality)]
    if corpus.lengths is not None:
        columns.append((corpus.provenance.columns.get("length") or "length", corpus.lengths))
    for column in corpus.metadata_columns.values():
        if len(columns) == COLUMNS:
            break
        if column.has_numbers:
            values = numbers(corpus.metadata[column.name].combine_chunks())[0]
            if np.isfinite(values).any() and not np.isinf(values).any():
                columns.append((column.name, values))
    return columns
