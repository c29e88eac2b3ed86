"""Compare: what changes between these runs? Maps, overlap, values, curves, settings and samples of two to four runs."""

import streamlit as st

from datamask.dashboard import comparison, words
from datamask.dashboard.layers import Change, Selection
from datamask.dashboard.places import HEXAGONS_FROM
from datamask.dashboard.ui import canvas_map, comparison_panel, preparing, scene, session
from datamask.dashboard.ui.frame import frame
from datamask.dashboard.views import listing

frame("Compare", "What changes between these runs?")

corpus = session.open_corpus_or_stop()
cache_dir = session.store().cache_dir
runs, refused = comparison.candidates(session.store().list(), corpus.fingerprint)
by_id = {run.id: run for run in runs}
names = listing.unlike({run.id: listing.name_of(run) for run in runs})


def draw_refused() -> None:
    """The runs that cannot be compared here, each with its reason."""
    if refused:
        with st.expander(f"{len(refused):,} run{'s' if len(refused) > 1 else ''} cannot be compared here"):
            for entry in refused[:50]:
                name = words.plain(entry.run.id, 80)
                st.caption(f"**{name}** {words.plain(entry.reason, 300)}")


if len(runs) < 2:
    with st.container(border=True):
        st.subheader("Two finished runs on this corpus are needed" if not runs else "One more finished run is needed",
                     anchor=False)
        st.write("Start another one with a different balance λ, objective or ratio; a random subset or top quality "
                 "makes a good baseline. Then this page shows what one keeps and the other does not.")
        st.page_link("pages/run.py", label="Start a run", icon=":material/arrow_forward:",
                     query_params=session.link_parameters())
    draw_refused()
    st.stop()

current = session.current_run()
st.session_state.setdefault("compare", [run.id for run in comparison.default_pair(runs, current)])
st.session_state["compare"] = [run_id for run_id in st.session_state["compare"] if run_id in by_id]
which, panels_of, layout, marks_of = st.columns([4.4, 2.1, 1.5, 1.9], gap="small")
with which:
    chosen = st.multiselect("Runs", list(by_id), key="compare", max_selections=comparison.MOST, persist_state="session",
                            format_func=names.get,
                            placeholder="Choose two to four",
                            help="Finished runs on the open corpus, newest first. The first one chosen is A, which the "
                                 "others are held against.")
with panels_of:
    panels = st.segmented_control("Draw the others as", ("changes", "selected"), default="changes", required=True,
                                  key="compare_panels", persist_state="session",
                                  help="Changes: what each other run gained and lost against A, the first one. "
                                       "Selected: simply what it selected.")
with layout:
    wanted = st.segmented_control("Layout", ("UMAP", "PCA"), default="UMAP", required=True, key="compare_layout",
                                  persist_state="session",
                                  help="The same map as on the Explore page. PCA stands in until UMAP is computed.")
with marks_of:
    many = len(corpus) > HEXAGONS_FROM
    marks = st.segmented_control("Marks", ("points", "hexagons"), default="hexagons" if many else "points",
                                 required=True, key="compare_marks", persist_state="session",
                                 help="Hexagons count all samples: selected share, or gained less lost, in each cell.")
chosen = [run_id for run_id in chosen if run_id in by_id]
if len(chosen) < 2:
    st.info("Choose at least two runs.")
    draw_refused()
    st.stop()

entries = comparison.load([by_id[run_id] for run_id in chosen], len(corpus))
first = entries[0]
layers = [Selection(first.label, first.selected)]
for entry in entries[1:]:
    if panels == "changes":
        if len(entries) == 2:
            layers.append(Selection(entry.label, entry.selected))
        layers.append(Change.between(f"{entry.label} against {first.letter}", first.selected, entry.selected))
    else:
        layers.append(Selection(entry.label, entry.selected))

preparing.prepare(corpus, cache_dir)
ground = scene.ground(corpus, cache_dir, wanted, marks == "hexagons")
canvas_map.canvas_map("compare_map", ground.scope, scene.ground_parcel(corpus, ground), ground.places, layers,
                      alt="Maps of the compared runs with matched axes", height=340)
st.caption(ground.caption)

comparison_panel.overlaps(entries)
left, right = st.columns([1.15, 1], gap="large")
with left:
    comparison_panel.values(entries)
    comparison_panel.settings(entries)
with right:
    st.fragment(comparison_panel.curves)(entries)
    st.fragment(comparison_panel.categories)(entries, corpus)
st.fragment(comparison_panel.only_one)(entries, corpus)
draw_refused()
