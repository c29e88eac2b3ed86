"""Compare: what changes between these runs? Rows of both, added and left out, as maps, texts and groups."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import streamlit as st

from datamask.analyses.comparison import choice_panel, panel
from datamask.analyses.comparison.choice_panel import Compared
from datamask.analyses.comparison.tables import Entry
from datamask.analyses.curves import panel as lines_panel
from datamask.corpus import Corpus
from datamask.dashboard.linked import brushing, columns, names_panel
from datamask.dashboard.map import canvas_map, scene
from datamask.dashboard.map import preparing_panel as layout_panel
from datamask.dashboard.map.canvas_map import Named
from datamask.dashboard.map.ends import common_ends
from datamask.dashboard.map.filters import Filters
from datamask.dashboard.map.layers import Change, Layer, Selection
from datamask.dashboard.shell import session
from datamask.dashboard.shell import view as views
from datamask.dashboard.shell.option_control import KEPT, one_of
from datamask.dashboard.workspace import preparing_panel
from datamask.dashboard.workspace.current import Current
from datamask.pages.evidence import page as evidence

TABS = ("Rows", "Groups", "Curves")


def _names(corpus: Corpus, cache_dir: Path, ground: scene.Ground) -> list[Named]:
    """Names of the regions; here they are read, and not pressed."""
    rows = columns.rows(corpus, cache_dir, "", None)
    view = brushing.Linked(corpus, rows, Filters(), ground.kind)
    named = names_panel.names(view, ground, cache_dir, None)
    return [replace(name, sentence=name.sentence.removesuffix(names_panel.PRESS)) for name in named]


def show(current: Current | None) -> None:
    """Draw one row per run; below it the maps of two of them, then rows, groups and curves.

    Args:
        current: what the page shows; it is compared with the runs where it is none itself.
    """
    chosen = choice_panel.choose(current)
    panel.summary(chosen.entries, chosen.corpus.lengths)
    first, other = panel.pair(chosen.entries)
    _maps(first, other, chosen.corpus, current)
    _below(first, other, chosen)
    panel.draw_refused(chosen.refused)


def _maps(first: Entry, other: Entry, corpus: Corpus, current: Current | None) -> None:
    """What each of the two selects and what changes between them, and below the maps how they are drawn."""
    cache_dir = session.store().cache_dir
    drawing = st.container()
    with st.container(horizontal=True, gap="medium"):
        wanted = layout_panel.layout_control()
        hexagons = layout_panel.marks_control(
            corpus, "A hexagon shows the selected share of its rows, or the share added minus the share left out."
        )
        about = st.container()
    if current is not None:
        preparing_panel.begin_map(current, wanted)
    ground = scene.ground(corpus, cache_dir, wanted, hexagons)
    layers: list[Layer] = [Selection(each.label, each.selected) for each in (first, other)]
    layers.append(Change.between(f"{other.label} against {first.letter}", first.selected, other.selected))
    with drawing:
        canvas_map.canvas_map(
            "compare_map",
            corpus,
            ground.scope,
            scene.ground_parcel(corpus, ground),
            ground.places,
            layers,
            alt="Maps of the compared runs with matched axes and colors",
            height=340,
            names=_names(corpus, cache_dir, ground),
            ends=common_ends(layers, ground.places.cells),
        )
    with about:
        st.caption(ground.caption, help=ground.places.caption)
        layout_panel.offer(corpus, cache_dir, wanted)


def _below(first: Entry, other: Entry, chosen: Compared) -> None:
    """Rows, groups or curves, and the links to what else is said of runs."""
    with st.container(horizontal=True, gap="small", vertical_alignment="center"):
        tab = one_of("Below the maps", TABS, "compare_tab", label_visibility="collapsed", **KEPT)
        for of_runs in evidence.OF_RUNS:
            link = {**views.now().address, evidence.TAB: of_runs}
            views.page_link("pages/evidence.py", of_runs, address=link, width="content")
    with st.container(key="compare_tab_panel"):
        if tab == "Rows":
            panel.texts(first, other, chosen.corpus)
        elif tab == "Groups":
            panel.groups(first, other, chosen.corpus, session.store().cache_dir)
        else:
            st.fragment(lines_panel.show)(chosen.runs)
