"""Compare: what changes between these runs? Kept, gained and lost; who is better at what; what would come out again."""

import streamlit as st

from datamask.dashboard import candidates, comparison, words
from datamask.dashboard.ends import common_ends
from datamask.dashboard.layers import Change, Layer, Selection
from datamask.dashboard.places import HEXAGONS_FROM
from datamask.dashboard.ui import (
    agreement_panel,
    canvas_map,
    changes_panel,
    comparison_panel,
    downstream_panel,
    label_panel,
    menus,
    preparing,
    scene,
    scoreboard_panel,
    session,
    tabs,
)
from datamask.dashboard.ui.frame import frame
from datamask.dashboard.views import listing

CHANGES, SELECTED, AGREEMENT = "changes", "selected", "agreement"
TABS = ("Texts", "Where", "Values", "Scoreboard", "Agreement", "Downstream results")

frame("Compare", "What changes between these runs?")

opened = session.opened_or_stop()
corpus = opened.corpus
cache_dir = session.store().cache_dir
everyone, refused = candidates.candidates(
    session.store().list(), corpus.fingerprint, archived=True, config=opened.config
)
archived = st.session_state.get("compare_archived", False)
runs = [run for run in everyone if archived or not run.label().archived]
by_id = {run.id: run for run in everyone}
names = listing.unlike({run.id: listing.name_of(run) for run in everyone})

if len(runs) < 2 and not archived:
    with st.container(border=True):
        st.subheader(
            "Two finished runs on this corpus are needed" if not runs else "One more finished run is needed",
            anchor=False,
        )
        begun = f"There is one: **{words.plain(names[runs[0].id], 80)}**. Start another" if runs else "Start two"
        st.write(
            f"{begun} with a different balance λ, objective or ratio; a random subset or top quality makes a good "
            "baseline. Then this page shows what one keeps and the other does not."
        )
        st.page_link(
            "pages/run.py", label="Start a run", icon=":material/arrow_forward:", query_params=session.link_parameters()
        )
    if len(everyone) > len(runs):
        st.caption(f"{len(everyone) - len(runs):,} more are archived.")
        st.toggle(
            "Show archived runs",
            key="compare_archived",
            persist_state="session",
            help="Runs that were put away are left out of every menu, unless this is on.",
        )
    comparison_panel.draw_refused(refused)
    st.stop()

session.current_run()
menus.settle("compare", names)
comparison_panel.begin(runs)
st.session_state["compare"] = list(st.session_state.get("compare", ()))
with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
    # those chosen before stay in the menu, or a search would take them off the page
    matching = {run.id for run in listing.found(runs, st.session_state.get("compare_find", ""))}
    matching.update(st.session_state["compare"])
    offered = [run.id for run in everyone if run.id in matching]
    chosen = st.multiselect(
        "Runs",
        offered,
        key="compare",
        max_selections=comparison.MOST,
        persist_state="session",
        format_func=names.__getitem__,
        width="stretch",
        placeholder="Choose two to four",
        help="Finished runs on the open corpus, newest first. The first one chosen is A, which the "
        "others are held against.",
    )
    label_panel.find("compare")
    if chosen:
        label_panel.edit_any([by_id[run_id] for run_id in chosen], names, listing.tags_of(everyone), "compare")
chosen = [run_id for run_id in chosen if run_id in by_id]
comparison_panel.say_begun(chosen)
if len(chosen) < 2:
    st.info("Choose at least two runs.")
    comparison_panel.draw_refused(refused)
    st.stop()

compared = [by_id[run_id] for run_id in chosen]
entries = comparison.load(compared, len(corpus))
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
        "again, once that is computed below.",
    )
    wanted = preparing.layout_control("compare_layout", "The same maps as on the Map page. ")
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
    preparing.prepare(corpus, cache_dir, wanted)
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
    comparison_panel.overlaps(entries)
with differing:
    comparison_panel.settings(entries)

for name, tab in zip(TABS, tabs.tabs(TABS, "compare_tab"), strict=True):
    with tab:
        if not tab.open:
            continue
        if name == "Texts":
            changes_panel.texts(entries, corpus)
        elif name == "Where":
            changes_panel.groups(entries, corpus, cache_dir)
        elif name == "Values":
            left, right = st.columns([1.15, 1], gap="large")
            with left:
                comparison_panel.values(entries)
                st.fragment(comparison_panel.categories)(entries, corpus)
            with right:
                st.fragment(comparison_panel.curves)(entries)
        elif name == "Scoreboard":
            scoreboard_panel.show(entries, compared, corpus, cache_dir)
        elif name == "Agreement":
            agreement_panel.show(entries, compared, corpus, cache_dir)
        else:
            downstream_panel.show(everyone, chosen, names)
comparison_panel.draw_refused(refused)
