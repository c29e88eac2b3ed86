"""Compare: what changes between these runs? Kept, gained and lost, as maps, texts and groups."""

from __future__ import annotations

import streamlit as st

from datamask.dashboard.analyses.agreement import panel as agreement_panel
from datamask.dashboard.analyses.changes import panel as changes_panel
from datamask.dashboard.analyses.comparison import choice_panel, panel
from datamask.dashboard.frame import sections
from datamask.dashboard.map import canvas_map, preparing_panel, scene
from datamask.dashboard.map.ends import common_ends
from datamask.dashboard.map.layers import Change, Layer, Selection
from datamask.dashboard.map.places import HEXAGONS_FROM
from datamask.dashboard.shell import session, tabs

CHANGES, SELECTED, AGREEMENT = "changes", "selected", "agreement"
TABS = ("Texts", "Where", "Values")
EVIDENCE = ("Scoreboard", "Agreement", "Downstream results")
"""What else there is to know of the same runs, on the Evidence page."""


def show() -> None:
    """Draw the maps, the overlap and the settings that differ; below them the tabs."""
    chosen = choice_panel.choose()
    corpus, compared, entries = chosen.corpus, chosen.runs, chosen.entries
    cache_dir = session.store().cache_dir
    first = entries[0]
    progress = st.container()
    drawing = st.container()
    with st.container(horizontal=True, gap="medium"):
        panels = st.segmented_control(
            "Draw as",
            (CHANGES, SELECTED, AGREEMENT),
            default=CHANGES,
            required=True,
            key="compare_panels",
            persist_state="session",
            help="Changes: what each other run gained and lost against A, the first one. "
            "Selected: what each selected. Agreement: how surely each would select a sample "
            "again, once that is computed, on the Evidence page.",
        )
        wanted = preparing_panel.layout_control("compare_layout", "The same as on the Map. ")
        marks = st.segmented_control(
            "Marks",
            ("points", "hexagons"),
            required=True,
            key="compare_marks",
            default="hexagons" if len(corpus) > HEXAGONS_FROM else "points",
            persist_state="session",
            help="Hexagons count all samples: selected share, or gained less lost, in each cell.",
        )
        about = st.container()
    layers: list[Layer] = [] if panels == AGREEMENT else [Selection(first.label, first.selected)]
    for entry, run in zip(entries, compared):
        if panels == AGREEMENT:
            layers.append(agreement_panel.layer(entry, run, corpus, cache_dir))
        elif entry is not first:
            if panels == SELECTED or len(entries) == 2:
                layers.append(Selection(entry.label, entry.selected))
            if panels == CHANGES:
                layers.append(Change.between(f"{entry.label} against {first.letter}", first.selected, entry.selected))

    with progress:
        preparing_panel.prepare(corpus, cache_dir, wanted)
    ground = scene.ground(corpus, cache_dir, wanted, marks == "hexagons")
    with drawing:
        canvas_map.canvas_map(
            "compare_map",
            ground.scope,
            scene.ground_parcel(corpus, ground),
            ground.places,
            layers,
            alt="Maps of the compared runs with matched axes and colours",
            height=340,
            ends=common_ends(layers, ground.places.cells),
        )
    about.caption(ground.caption)

    # of two runs a few numbers; of more a table, and settings with more columns than fit beside it
    numbers, differing = st.columns([1.3, 1], gap="medium") if len(entries) == 2 else (st.container(), st.container())
    with numbers:
        panel.overlaps(entries)
        with st.container(horizontal=True, gap="small"):
            for section in sections.SECTIONS["Evidence"]:
                if section.name in EVIDENCE:
                    st.page_link(
                        "pages/evidence.py",
                        label=section.name,
                        icon=":material/arrow_forward:",
                        width="content",
                        query_params={**session.link_parameters(), **section.link},
                    )
    with differing:
        panel.settings(entries)

    for name, tab in zip(TABS, tabs.tabs(TABS, "compare_tab"), strict=True):
        with tab:
            if not tab.open:
                continue
            if name == "Texts":
                changes_panel.texts(entries, corpus)
            elif name == "Where":
                changes_panel.groups(entries, corpus, cache_dir)
            else:
                left, right = st.columns([1.15, 1], gap="large")
                with left:
                    panel.values(entries)
                    st.fragment(panel.categories)(entries, corpus)
                with right:
                    st.fragment(panel.curves)(entries)
    panel.draw_refused(chosen.refused)
