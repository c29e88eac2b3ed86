"""Names of the regions on the map: by what they are named, the clusters behind them, and what a press on one does."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import streamlit as st

from datamask.corpus import Corpus
from datamask.dashboard.drawing import words
from datamask.dashboard.linked import columns, groups_panel, topics
from datamask.dashboard.linked.brushing import Linked, take
from datamask.dashboard.linked.region_names import RegionName, region_names, short_names
from datamask.dashboard.linked.tally import Tally
from datamask.dashboard.map import map_layout, preparing_panel
from datamask.dashboard.map.canvas_map import Named
from datamask.dashboard.map.filters import Among, Rows
from datamask.dashboard.map.scene import Ground
from datamask.work.worker import worker

BY = "names_by"
NAMES = "names"
"""Name of their tally."""

WORDS, NOTHING = "words of clusters", "nothing"
CLASSES = 100
"""Of a column, at most: one with more is a list of names rather than of groups."""

ABOUT = "Zoom in to see more names. Press a name to filter by it."
PRESS = " Press to filter by it."
"""The end of what a name says where a press shows its samples alone."""


def choices(corpus: Corpus, rows: Rows) -> list[str]:
    """What the regions of this corpus can be named by; nothing alone where there is nothing."""
    columns_of_classes = [
        name
        for name, (_, names) in rows.classes.items()
        if name not in (columns.SELECTED, columns.CLUSTER, columns.BAND) and 2 <= len(names) <= CLASSES
    ]
    return [*([WORDS] if corpus.texts is not None else []), *columns_of_classes, NOTHING]


def control(corpus: Corpus, rows: Rows) -> str:
    """The menu; what is chosen in it."""
    known = choices(corpus, rows)
    if st.session_state.get(BY, known[0]) not in known:
        del st.session_state[BY]
    by = st.selectbox("Names on the map", known, key=BY, help=ABOUT, bind="query-params", persist_state="session")
    if known == [NOTHING]:
        st.caption(f"This corpus has no texts to name regions by, and no column with 2 to {CLASSES} classes.")
    return by


def column_of(by: str) -> str:
    """The column of groups behind a choice; an empty string for no names."""
    return {WORDS: columns.CLUSTER, NOTHING: ""}.get(by, by)


def begin(corpus: Corpus, cache_dir: Path, by: str) -> bool:
    """Start the clusters where they are wanted and may start by themselves; whether they were.

    They wait for the layout, and for the user on a large corpus, after they or the layout were stopped or have failed,
    and while a run needs the cores.
    """
    jobs = (worker().find(key) for key in (topics.key_of(corpus), map_layout.key_of(corpus)))
    # done and not on disk: the cache was emptied since
    begun = any(job is not None and job.state != "done" for job in jobs)
    if begun or by != WORDS or corpus.texts is None or preparing_panel.waits(corpus):
        return False
    if topics.load(corpus, cache_dir) is not None:
        return False
    topics.start(corpus, corpus.texts, cache_dir)
    return True


def tally(view: Linked, by: str) -> Tally | None:
    """The groups behind the names, to be counted along lambda; None: there are none."""
    column = column_of(by)
    if column not in view.rows.classes:
        return None
    codes, known = view.rows.classes[column]
    return Tally(NAMES, codes, len(known))


def names(view: Linked, ground: Ground, by: str, selected: np.ndarray | None) -> list[Named]:
    """What stands on the map, the largest groups first.

    Args:
        view: with the conditions that hold. by: a choice of `control`.
        selected: bool ``(N,)``, the current selection, if there is one.
    """
    column = column_of(by)
    if column not in view.rows.classes:
        return []
    codes, known = view.rows.classes[column]
    if column == columns.CLUSTER and len(known) == 1:
        return []
    identity = view.corpus.identity
    named = _names(identity, ground.kind, ground.places.cells is None, column, len(known), ground, codes, known)
    kept = None if selected is None else _kept(identity, view.selection, column, len(known), codes, selected)
    everywhere = 0.0 if selected is None else float(selected.mean())
    answer = []
    for region, name in zip(named, short_names([region.name for region in named]), strict=True):
        sentence, share = f"{name}: {region.n:,} rows", ""
        if kept is not None:
            share = words.percent(kept[region.code])
            sentence += f", {share} of them selected (all rows: {words.percent(everywhere)})"
        answer.append(Named(region.code, name, share, region.x, region.y, f"{sentence}.{PRESS}"))
    return answer


@st.cache_data(max_entries=16, show_spinner=False)
def _names(
    identity: str,
    projection: str,
    points: bool,
    column: str,
    count: int,
    _ground: Ground,
    _codes: np.ndarray,
    _known: tuple[str, ...],
) -> list[RegionName]:
    return region_names(_ground.places.points, _ground.places.view, _codes, _known)


@st.cache_data(max_entries=32, show_spinner=False)
def _kept(
    identity: str, selection: str, column: str, count: int, _codes: np.ndarray, _selected: np.ndarray
) -> np.ndarray:
    """The selected share of each group, by its code."""
    inside = _codes >= 0
    sizes = np.bincount(_codes[inside], minlength=count)
    hits = np.bincount(_codes[inside & _selected], minlength=count)
    return hits / np.maximum(sizes, 1)


def opened(view: Linked, by: str) -> list[int]:
    """Codes of the groups whose samples are shown alone."""
    column = column_of(by)
    condition = view.filters.of(column)
    if not isinstance(condition, Among):
        return []
    known = view.rows.classes[column][1]
    return [known.index(name) for name in condition.names if name in known]


def press(view: Linked, by: str, code: int) -> None:
    """Show the samples of a group alone; all again where they are. For the map's `on_name`."""
    column = column_of(by)
    name = view.rows.classes[column][1][code]
    if view.filters.of(column) == Among(column, (name,)):
        take(None, column)
    else:
        groups_panel.open_group(view.corpus, Among(column, (name,)))
