"""Explore: which samples are kept, and where do they lie? A map, and views that filter each other."""

import numpy as np
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from datamask.dashboard import candidates, words
from datamask.dashboard.filters import Inside, Rows
from datamask.dashboard.layers import Blank, Selection
from datamask.dashboard.places import HEXAGONS_FROM, MAX_POINTS
from datamask.dashboard.ui import (
    address,
    borderline_panel,
    canvas_map,
    chosen,
    classes_panel,
    columns,
    distribution_panel,
    filter_panel,
    groups_panel,
    linked,
    menus,
    preparing,
    scene,
    session,
    steering_panel,
    tabs,
    texts_panel,
    why_panel,
)
from datamask.dashboard.ui.frame import frame
from datamask.dashboard.views import listing

MAP, TAB = "explore_map", "explore_tab"
CONTROLS = 218  # pixels: the longest name in the menus is to be read whole, on every screen
TEXTS, DISTRIBUTIONS, GROUPS, CLASSES, BORDERLINE = (
    "Texts",
    "Distributions",
    "Starved and over-fed",
    "Three classes",
    "Borderline reader",
)
ABOUT = (
    "Quality: the score you brought. Similarity to neighbours: mean cosine to the 15 nearest samples of "
    "the whole corpus, whatever is selected; measured on the features, so a tight island can score above a blob "
    "that looks dense. Marginal diversity in this run: what the sample adds to the run's diversity. Any other "
    "column of your shards can be a colour too."
)

frame("Explore", "Which samples are kept, and where do they lie?")

corpus = session.open_corpus_or_stop()
cache_dir = session.store().cache_dir
runs, _ = candidates.candidates(session.store().list(), corpus.fingerprint)
current = session.current_run()
# the run of the address also where it was put away; or why it cannot be shown
asked, refused = candidates.candidates([current] if current is not None else [], corpus.fingerprint, archived=True)
runs += [run for run in asked if run.id not in {other.id for other in runs}]
by_id = {run.id: run for run in runs}
names = listing.unlike({run.id: listing.name_of(run) for run in runs})
menus.settle("explore_run", names)
if current is not None and current.id in by_id:
    st.session_state["explore_run"] = current.id
elif st.session_state.get("explore_run") not in by_id:
    # of a sweep the newest point is an end of the scale, which nobody wants to see first
    st.session_state["explore_run"] = next((run.id for run in (candidates.made_alone(runs) or runs)), None)


def take_run() -> None:
    """Make the chosen run the current one."""
    chosen_id = menus.id_of("explore_run", st.session_state["explore_run"])
    if chosen_id is not None:
        session.choose_run(chosen_id)


run_id = st.session_state["explore_run"]
run = scene.run_columns(by_id[run_id]) if run_id else None
selected = run.selected if run is not None else None
unplaced = columns.rows(corpus, cache_dir, run_id, run)
choices = columns.choices(unplaced, run is not None)
shown = columns.shown_names(corpus.metadata.column_names)
for key, known in (("explore_left", choices), ("explore_middle", choices), ("explore_group_by", unplaced.classes)):
    # remembered from another corpus, which had other columns; or an address calls a column as its shards do
    if st.session_state.get(key) not in known:
        remembered = st.session_state.pop(key, None)
        if shown.get(remembered) in known:
            st.session_state[key] = shown[remembered]

with st.container(horizontal=True, gap="medium"):
    controls, picture = st.container(width=CONTROLS), st.container(width="stretch")
with controls:
    st.selectbox(
        "Selected by",
        list(by_id),
        key="explore_run",
        placeholder="no finished run yet",
        format_func=names.__getitem__,
        disabled=not by_id,
        on_change=take_run,
        help="What the right panel shows: finished runs on this corpus, newest first.",
    )
    for refusal in refused:
        instead = f" Shown instead: **{words.plain(names[run_id], 60)}**." if run_id else ""
        st.caption(f"**{words.plain(refusal.name, 60)}** is not shown: {words.plain(refusal.reason, 300)}.{instead}")
    first = st.selectbox("Left panel", choices, index=0, key="explore_left", help=ABOUT, persist_state="session")
    second = st.selectbox("Middle panel", choices, index=1, key="explore_middle", help=ABOUT, persist_state="session")
    summary = st.container()

with picture:
    progress = st.container()
    drawing = st.container()
    with st.container(horizontal=True, gap="medium"):
        wanted = preparing.layout_control("explore_layout")
        shown_as = st.segmented_control(
            "Marks",
            ("points", "hexagons"),
            default="hexagons" if len(corpus) > HEXAGONS_FROM else "points",
            required=True,
            key="explore_marks",
            persist_state="session",
            help=f"Points show single samples, a random {MAX_POINTS:,} of them where there are more. Hexagons show the "
            "mean or the selected share of all samples in a cell.",
        )
        about = st.container()
    steering = st.container(gap="xsmall")
with progress:
    preparing.prepare(corpus, cache_dir, wanted)
ground = scene.ground(corpus, cache_dir, wanted, shown_as == "hexagons")
rows = Rows(unplaced.n, unplaced.numbers, unplaced.classes, unplaced.texts, ground.places.points)
view = linked.Linked(corpus, rows, linked.kept_on(corpus, rows, shown), f"{run_id} {ground.kind}")

layers = [columns.layer(corpus, name, unplaced, run_id) for name in (first, second)]
if run is not None:
    layers.append(Selection(f"Selected by {by_id[run_id].config.name or run_id}", run.selected))
else:
    layers.append(Blank("Selected", "no finished run on this corpus yet"))
sample = chosen.chosen(corpus)
with drawing:
    regions = canvas_map.canvas_map(
        MAP,
        ground.scope,
        scene.ground_parcel(corpus, ground),
        ground.places,
        layers,
        height=330,
        shown=view.mask() if view.filters else None,
        inside=lambda regions: view.meeting(Inside(regions)),
        marked=() if sample is None else (sample,),
        on_pick=lambda row: chosen.choose(corpus, row),
        alt=f"Map of {len(corpus):,} samples in three linked panels: {first}, {second}, selected",
    )
with about:
    notes = dict.fromkeys(layer.note for layer in layers if layer.note)
    st.caption(" ".join([ground.caption, *(f"{note[0].upper()}{note[1:]}." for note in notes)]))
    if run is None:
        st.page_link(
            "pages/run.py",
            label="Start a run to see what it selects",
            icon=":material/arrow_forward:",
            query_params=session.link_parameters(),
        )

address.follow("Explore")  # once more, for what was drawn on the map just now
if regions:
    view = linked.Linked(corpus, rows, view.filters.taking(Inside(regions)), view.key)
passing = view.mask()
with summary:
    filter_panel.search(view)
    filter_panel.show(view, MAP, int(passing.sum()))
with steering:
    steering_panel.offer(view, passing)


def explain(row: int, below: DeltaGenerator) -> None:
    """Why the chosen sample is in the chosen run, or not."""
    if run is not None:
        why_panel.show(by_id[run_id], runs, corpus, row, below)


def unfiltered() -> None:
    """Said over a view that does not follow the others."""
    if view.filters:
        st.caption("**Of all samples; the filter does not apply here.**")


drawn_tabs = tabs.tabs([TEXTS, DISTRIBUTIONS, *([GROUPS, CLASSES, BORDERLINE] if run is not None else [])], TAB)
with drawn_tabs[0]:
    if drawn_tabs[0].open:
        if not view.filters:
            st.caption(
                "Draw around samples with the lasso or the box (right of the map), search their texts, or "
                "take a range in a distribution: the map, the texts and the distributions follow. All samples "
                "count, not only the drawn ones. Mark a row, or click a sample on the map, to read it. With the "
                "keyboard: M on the map marks the sample in its middle, Shift and Space a row of the table."
            )
        texts_panel.show(
            MAP,
            corpus,
            np.flatnonzero(passing),
            selected,
            columns.columns_shown(corpus, (first, second)),
            why=explain,
        )
with drawn_tabs[1]:
    if drawn_tabs[1].open:
        distribution_panel.show(view, columns.distributions(corpus, run_id, unplaced), selected)
if run is not None:
    with drawn_tabs[2]:
        if drawn_tabs[2].open:
            unfiltered()
            groups_panel.show(view, run.selected, cache_dir, (TAB, TEXTS))
    with drawn_tabs[3]:
        if drawn_tabs[3].open:
            unfiltered()
            classes_panel.show(corpus, ground, by_id[run_id], runs, run.selected, cache_dir)
    with drawn_tabs[4]:
        if drawn_tabs[4].open:
            borderline_panel.show(by_id[run_id], corpus, run.selected, passing if view.filters else None)
