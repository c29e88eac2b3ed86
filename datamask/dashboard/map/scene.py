"""What the map pages share: coordinates, labels and the columns of a run, each computed once.

Everything is cached for all sessions, bounded, and read-only. Any visitor may clear these caches; all that is lost is
the time to fill them again.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import streamlit as st

from datamask.corpus import Corpus
from datamask.corpus.beginnings import beginnings
from datamask.corpus.projections import PROJECTIONS, STAND_IN
from datamask.corpus.projections.layouts import Layout
from datamask.dashboard.map import map_layout, parcels
from datamask.dashboard.map.places import Places, labels, place
from datamask.runs.store import Run
from datamask.tables import table_bytes, with_fields

TEXT_SHOWN = 400
"""Characters of a text that a table cell gets."""


@dataclass(frozen=True)
class Ground:
    """Where a map is drawn.

    Attributes:
        kind: name of the projection.
        places: coordinates and what is drawn of them.
        layout: what was measured of it; None: nothing yet.
        scope: names corpus and projection.
    """

    kind: str
    places: Places
    layout: Layout | None
    scope: str

    @property
    def caption(self) -> str:
        """How many rows are drawn where not all are, and what not to read off the map, on one line."""
        n, m = len(self.places.points), len(self.places.drawn)
        drawn = f"{m:,} of {n:,} rows, drawn at random · " if self.places.cells is None and m < n else ""
        return f"{drawn}{map_layout.reading(self.kind, self.layout)}."


def ground(corpus: Corpus, cache_dir: Path, wanted: str, hexagons: bool | None) -> Ground:
    """The wanted projection, or the one that is there at once for as long as the wanted one is not.

    Args:
        wanted: its name. hexagons: None: by the number of rows.
    """
    # read anew every time, a few milliseconds: it may have appeared since
    layout, kind = map_layout.layout(corpus, cache_dir, wanted), PROJECTIONS[wanted]
    if layout is None and kind.at_once is None:
        kind = STAND_IN
        layout = map_layout.layout(corpus, cache_dir, kind.name)
    places = _places(corpus.fingerprint, kind.name, hexagons, corpus, layout)
    return Ground(kind.name, places, layout, f"{corpus.fingerprint} {kind.name}")


@st.cache_resource(max_entries=8, show_spinner="Placing the rows")
def _places(fingerprint: str, kind: str, hexagons: bool | None, _corpus: Corpus, _layout: Layout | None) -> Places:
    return place(PROJECTIONS[kind].coordinates(_corpus.features) if _layout is None else _layout.points, hexagons)


def ground_parcel(corpus: Corpus, ground: Ground) -> bytes:
    """Coordinates and labels of the drawn samples, as the map in the browser wants them."""
    places = ground.places
    return _ground_parcel(corpus.identity, ground.scope, places.cells is None, len(places.drawn), corpus, places)


@st.cache_resource(max_entries=6, show_spinner="Placing the rows")
def _ground_parcel(identity: str, scope: str, points: bool, drawn: int, _corpus: Corpus, _places: Places) -> bytes:
    return parcels.ground_parcel(_places, _labels(_corpus.identity, drawn, _corpus, _places))


@st.cache_resource(max_entries=4, show_spinner="Reading the drawn rows")
def _labels(identity: str, drawn: int, _corpus: Corpus, _places: Places) -> list[str]:
    # the drawing order depends on the number of rows alone, so every projection of a corpus shares these
    rows = pa.array(_places.drawn)
    texts = _corpus.texts
    return labels(
        _corpus.ids.take(rows).to_pylist(),
        _corpus.quality[_places.drawn],
        None if texts is None else beginnings(texts, _places.drawn, 400).to_pylist(),
    )


@dataclass(frozen=True)
class RunColumns:
    """What the pages need of rows.parquet: bool and float32 arrays ``(N,)``.

    `settled` is int8: 1: in every selection as good as the run's, by proof; 0: in none; -1: open. None: of an earlier
    version.
    """

    selected: np.ndarray
    score: np.ndarray
    marginal_quality: np.ndarray
    marginal_diversity: np.ndarray
    eligible: np.ndarray
    settled: np.ndarray | None


def run_columns(run: Run) -> RunColumns:
    """The columns of a finished run."""
    return _run_columns(run.id, (run.path / "rows.parquet").stat().st_mtime_ns, run)


@st.cache_resource(max_entries=8, show_spinner="Reading the run")
def _run_columns(run_id: str, changed: int, _run: Run) -> RunColumns:
    names = ("score", "marginal_quality", "marginal_diversity")
    table = _run.rows(("selected", *names), optional=("eligible", "settled"))
    n, known = table.num_rows, table.column_names
    eligible = (
        table["eligible"].to_numpy(zero_copy_only=False).astype(bool) if "eligible" in known else np.ones(n, bool)
    )
    settled = None
    if "settled" in known and pa.types.is_boolean(table["settled"].type):
        settled = pc.fill_null(table["settled"].cast(pa.int8()), -1).to_numpy(zero_copy_only=False)
    numbers = {name: table[name].to_numpy(zero_copy_only=False).astype(np.float32) for name in names}
    selected = table["selected"].to_numpy(zero_copy_only=False).astype(bool)
    return RunColumns(selected=selected, eligible=eligible, settled=settled, **numbers)


def sample_table(corpus: Corpus, rows: np.ndarray, extra: Mapping[str, str] | None = None) -> pa.Table:
    """Some rows for a table on a page: id, quality, the start of the text, and other metadata columns.

    Args:
        rows: int64 ``(n,)``.
        extra: the other columns: what each is called in the table, and its name in the shards.
    """
    taken = pa.array(rows)
    columns = {
        str(corpus.provenance.columns.get("id", "id")): corpus.ids.take(taken),
        "quality": pa.array(corpus.quality[rows]),
    }
    for name, column in (extra or {}).items():
        if name not in columns:
            columns[name] = corpus.metadata[column].take(taken)
    texts = corpus.texts
    if texts is not None:
        columns["text"] = beginnings(texts, rows, TEXT_SHOWN)
    return pa.table(columns)


def id_table(corpus: Corpus, rows: np.ndarray, selected: np.ndarray | None = None) -> pa.Table:
    """Some rows for a download: id, quality, whether selected where that is known, and their place in the input."""
    taken = pa.array(rows)
    columns = {
        str(corpus.provenance.columns.get("id", "id")): corpus.ids.take(taken),
        "quality": pa.array(corpus.quality[rows]),
    }
    if selected is not None:
        columns["selected"] = pa.array(selected[rows])
    columns["source_file"] = pa.array(list(corpus.provenance.files)).take(pa.array(corpus.source_file[rows]))
    columns["source_row"] = pa.array(corpus.source_row[rows])
    return with_fields(pa.table(columns), corpus.id_field)


def id_file(corpus: Corpus, rows: np.ndarray, ending: str, selected: np.ndarray | None = None) -> bytes:
    """The file of `id_table` in the format of an ending such as ``.csv``."""
    return table_bytes(id_table(corpus, rows, selected), ending)
