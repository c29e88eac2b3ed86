"""More like these: rows by their cosine to the mean of the marked row, or of those in the lasso, as a condition.

like=0.82 row doc-0007     like=0.75 region UMAP.lasso,0,0,9,8,000999...
"""

from __future__ import annotations

import contextlib
import math
from dataclasses import replace

import numpy as np
import streamlit as st

from datamask.analyses.samples.nearest import cosines_to
from datamask.corpus import Corpus
from datamask.dashboard.linked.brushing import Linked
from datamask.dashboard.map import shared_view
from datamask.dashboard.map.filters import Alike
from datamask.dashboard.map.places import cut
from datamask.dashboard.map.regions import rows_inside
from datamask.dashboard.map.scene import Ground
from datamask.dashboard.shell import chosen
from datamask.dashboard.shell import view as views

FIRST = 100
"""Rows that pass at first, about."""

LEAST = "like_least"
"""Key of the slider."""

ABOUT = "Shows the rows with at least this cosine to the mean of these rows. Then pin or ban them."


def taking(view: Linked, ground: Ground) -> Linked:
    """With the condition of the view; without one where it cannot be read, or names no rows on this map."""
    least, _, source = views.now().like.partition(" ")
    with contextlib.suppress(ValueError):
        if source and 0 <= float(least) <= 1:
            rows = rows_of(view.corpus, ground, source)
            if len(rows):
                said = (
                    f"row {cut(source.removeprefix('row '), 24)}"
                    if source.startswith("row ")
                    else f"{len(rows):,} rows"
                )
                condition = Alike(float(least), source, said, _cosines(view.corpus.identity, source, view.corpus, rows))
                return replace(view, filters=view.filters.taking(condition))
    return view


def rows_of(corpus: Corpus, ground: Ground, source: str) -> np.ndarray:
    """The rows that a source names, int64; none where it is of another projection or corpus, or cannot be read."""
    kind, _, text = source.partition(" ")
    if kind == "row":
        row = chosen.row_of(corpus, text)
        return np.array([] if row is None else [row], np.int64)
    with contextlib.suppress(ValueError):
        projection, regions = shared_view.regions_of(text)
        if projection == ground.kind:
            return rows_inside(ground.places.points, regions)
    return np.zeros(0, np.int64)


@st.cache_resource(max_entries=4, show_spinner="Comparing with all rows")
def _cosines(identity: str, source: str, _corpus: Corpus, _rows: np.ndarray) -> np.ndarray:
    cosines = cosines_to(_corpus.features, _rows)
    cosines.flags.writeable = False
    return cosines


def offer(view: Linked, ground: Ground) -> None:
    """The slider while the condition holds; else a button while a row is marked or a lasso is drawn."""
    condition, now = view.filters.of("like"), views.now()
    if isinstance(condition, Alike):
        st.session_state[LEAST] = condition.least
        source = condition.source
        st.slider(
            "Cosine at least",
            0.0,
            1.0,
            step=0.01,
            key=LEAST,
            help=ABOUT,
            width=180,
            label_visibility="collapsed",
            on_change=lambda: views.change(like=f"{st.session_state[LEAST]:.2f} {source}"),
        )
        return
    lasso, source = view.filters.of("region"), f"row {now.sample}" if now.sample else ""
    if now.region:  # one on another projection is no condition here
        source = f"region {now.region}" if lasso is not None and view.meeting(lasso).any() else ""
    if source:
        st.button(
            "More like these" if now.region else "More like this",
            key="more_like",
            icon=":material/join:",
            type="tertiary",
            on_click=begin,
            args=(view.corpus, ground, source),
        )


def begin(corpus: Corpus, ground: Ground, source: str) -> None:
    """Show the rows most similar to those of a source, in place of the lasso around them."""
    cosines = _cosines(corpus.identity, source, corpus, rows_of(corpus, ground, source))
    count = min(FIRST, len(cosines))
    last = float(np.partition(cosines, -count)[-count])
    least = min(max(math.floor(100 * last) / 100, 0.0), 1.0)
    views.change(like=f"{least:.2f} {source}", region="", sample="")
