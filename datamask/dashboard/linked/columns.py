"""The columns that the linked views look at: what every corpus and run have, and what the shards brought besides.

A column of the shards that is called as one of the former, or as a view, is shown as ``NAME (column)``: both can be
looked at. Everything is cached for all sessions, bounded, and read-only.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import streamlit as st

from datamask.corpus import Corpus
from datamask.corpus.projections import PROJECTIONS
from datamask.dashboard.linked import best_rows, brushing, facets, groups, settled_rows
from datamask.dashboard.linked.facets import Facet
from datamask.dashboard.map import map_layout, named_regions
from datamask.dashboard.map.filters import SPOKEN, Holding, Rows
from datamask.dashboard.map.layers import Blank, Category, Layer, layer_of_column, number
from datamask.dashboard.map.named_regions import NamedRegions
from datamask.dashboard.map.scene import RunColumns

QUALITY, CROWDING, MARGINAL, SCORE, LENGTH = (
    "quality",
    "similarity to neighbors",
    "marginal diversity in this run",
    "score",
    "length",
)
"""Names of what every corpus and run have; all others are columns of the shards."""

SELECTED, BAND = brushing.SELECTED, "length band"

REGIONS = {named_regions.column_of(projection): projection for projection in PROJECTIONS}
"""Names of the columns of regions, and the projections whose they are."""

OF_RUN = frozenset((SELECTED, MARGINAL, SCORE, settled_rows.BY_PROOF, settled_rows.BY_PARTS))
"""Names of what is another thing for each run."""

TAKEN = frozenset(
    (
        *(QUALITY, CROWDING, best_rows.NAME, LENGTH, BAND, Holding("").name, *brushing.DRAWN),
        *REGIONS,
        *OF_RUN,
    )
)
"""Names that mean the same on every corpus, whether there is such a thing yet or not."""


def shown_names(columns: Iterable[str]) -> dict[str, str]:
    """What each column of the shards is called in the linked views, by its name in the shards."""
    columns = list(columns)
    shown: dict[str, str] = {}
    for name in columns:
        label = name
        while label in TAKEN or (label != name and label in columns):
            label += " (column)"
        shown[name] = label
    return shown


WITHOUT_UNIT = (MARGINAL, SCORE)
"""Numbers of a run on a scale of its own: a page says at which percentile a row lies, not 0.0003408."""


def shown_name(corpus: Corpus, column: str) -> str:
    """What a metadata column is called in the linked views."""
    return shown_names(corpus.metadata.column_names)[column]


def columns_shown(corpus: Corpus, names: Iterable[str]) -> dict[str, str]:
    """Those of these names that are metadata columns, each with the column's name in the shards."""
    column_of = {label: column for column, label in shown_names(corpus.metadata.column_names).items()}
    return {name: column_of[name] for name in names if name in column_of}


def rows(
    corpus: Corpus, cache_dir: Path, run_id: str, run: RunColumns | None, selected: np.ndarray | None = None
) -> Rows:
    """What filters, distributions and groups look at; the map's places are not among it.

    Args:
        run_id, run: whose scores there are; empty and None: there is no run.
        selected: bool ``(N,)``, the current selection; None: nothing is selected.
    """
    crowding = map_layout.crowding(corpus, cache_dir)
    found = {name: named_regions.load(corpus, cache_dir, projection) for name, projection in REGIONS.items()}
    regions = {name: each for name, each in found.items() if each is not None and each.names}
    kept = _rows(corpus.identity, run_id, crowding is not None, tuple(regions), corpus, run, crowding, regions)
    if selected is None:
        return kept
    classes = {**kept.classes, SELECTED: (selected.astype(np.int32), ("not selected", "selected"))}
    for last in (*REGIONS, BAND):
        if last in classes:
            classes[last] = classes.pop(last)
    return replace(kept, classes=classes)


@st.cache_resource(max_entries=4, show_spinner="Reading the columns")
def _rows(
    identity: str,
    run_id: str,
    has_crowding: bool,
    with_regions: tuple[str, ...],
    _corpus: Corpus,
    _run: RunColumns | None,
    _crowding: np.ndarray | None,
    _regions: Mapping[str, NamedRegions],
) -> Rows:
    numbers, classes = facets.columns_of(_corpus.metadata, _corpus.metadata_columns)
    shown = shown_names(_corpus.metadata.column_names)
    numbers = {shown[name]: values for name, values in numbers.items()}
    classes = {shown[name]: codes for name, codes in classes.items()}
    length, unit = facets.lengths(_corpus)
    numbers = {
        QUALITY: _corpus.quality,
        **({LENGTH: length} if length is not None else {}),
        **({CROWDING: _crowding} if _crowding is not None else {}),
        **({MARGINAL: _run.marginal_diversity, SCORE: _run.score} if _run is not None else {}),
        **numbers,
    }
    classes |= {name: (regions.codes, regions.names) for name, regions in _regions.items()}
    if length is not None:
        classes[BAND] = groups.bands(length, unit)
    return Rows(len(_corpus), numbers, classes, _corpus.texts)


def choices(rows: Rows) -> list[str]:
    """Names for the menus of the map's panels, crowding included before it is known."""
    first = [SELECTED, QUALITY, CROWDING, best_rows.NAME]
    if SCORE in rows.numbers:
        first += [MARGINAL, SCORE, settled_rows.BY_PROOF, settled_rows.BY_PARTS]
    return list(dict.fromkeys([*first, *rows.numbers, *(name for name in rows.classes if name != SELECTED)]))


def distributions(corpus: Corpus, run_id: str, rows: Rows, *, of_run: bool) -> list[Facet]:
    """Every number and class of some rows as bars to brush; bands and regions are the groups' business.

    Args:
        run_id: the run's that rows have scores of, or empty. of_run: whether this run is the current selection, so that
            its scores belong to it.
    """
    numbers = tuple(name for name in rows.numbers if of_run or name not in (MARGINAL, SCORE))
    classes = tuple(name for name in rows.classes if name not in (*REGIONS, BAND, SELECTED))
    drawn = _distributions(corpus.identity, run_id, numbers, classes, rows)
    if SELECTED in rows.classes:
        drawn = [*drawn, facets.class_facet(SELECTED, title_of(SELECTED), *rows.classes[SELECTED])]
    return [facet for facet in drawn if facet is not None]


@st.cache_resource(max_entries=4, show_spinner="Counting")
def _distributions(
    identity: str, run_id: str, numbers: tuple[str, ...], classes: tuple[str, ...], _rows: Rows
) -> list[Facet | None]:
    return [
        *(facets.number_facet(name, title_of(name), _rows.numbers[name]) for name in numbers),
        *(facets.class_facet(name, title_of(name), *_rows.classes[name]) for name in classes),
    ]


def layer(corpus: Corpus, name: str, rows: Rows, run_id: str) -> Layer:
    """What a panel of the map shows of one of these columns; a blank panel while its values are being computed."""
    if name == CROWDING and name not in rows.numbers:
        return Blank(title_of(name), "waits for the neighbors")
    return _layer(corpus.identity, run_id, name, corpus, rows)


@st.cache_resource(max_entries=16, show_spinner=False)
def _layer(identity: str, run_id: str, name: str, _corpus: Corpus, _rows: Rows) -> Layer:
    if name in _rows.numbers:
        return number(title_of(name), _rows.numbers[name])
    column = columns_shown(_corpus, [name]).get(name)
    if column is not None:
        return replace(layer_of_column(_corpus.metadata_columns[column], _corpus.metadata[column]), title=name)
    codes, names = _rows.classes[name]
    return Category.of(title_of(name), pa.chunked_array([pa.DictionaryArray.from_arrays(codes, list(names))]))


def title_of(name: str) -> str:
    """What stands over a panel: a column of the shards keeps its own spelling."""
    spoken = spoken_of(name)
    return spoken[0].upper() + spoken[1:] if name in (QUALITY, CROWDING, MARGINAL, SCORE, LENGTH, SELECTED) else name


def spoken_of(name: str) -> str:
    """What a menu calls it."""
    return SPOKEN.get(name, name)
