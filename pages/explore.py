"""Explore: which samples are kept, and where do they lie? Three linked panels of the same map."""

import streamlit as st

from datamask.dashboard import comparison, grounds
from datamask.dashboard.layers import Blank, Layer, Selection, colourable, layer_of_column, number
from datamask.dashboard.places import HEXAGONS_FROM, MAX_POINTS
from datamask.dashboard.regions import rows_inside
from datamask.dashboard.ui import canvas_map, preparing, region_panel, scene, session
from datamask.dashboard.ui.frame import frame
from datamask.dashboard.views import listing

QUALITY, CROWDING, MARGINAL, SCORE = "quality", "similarity to neighbours", "marginal diversity in this run", "score"
ABOUT = ("Quality: the score you brought. Similarity to neighbours: mean cosine to the 15 nearest samples of "
         "the whole corpus, whatever is selected; measured on the features, so a tight island can score above a blob "
         "that looks dense. Marginal diversity in this run: what the sample adds to the run's diversity. Any other "
         "column of your shards can be a colour too.")

frame("Explore", "Which samples are kept, and where do they lie?")

corpus = session.open_corpus_or_stop()
cache_dir = session.store().cache_dir
runs, _ = comparison.candidates(session.store().list(), corpus.fingerprint)
by_id = {run.id: run for run in runs}
names = listing.unlike({run.id: listing.name_of(run) for run in runs})
current = session.current_run()
if current is not None and current.id in by_id:
    st.session_state["explore_run"] = current.id
elif st.session_state.get("explore_run") not in by_id:
    st.session_state["explore_run"] = next(iter(by_id), None)



def take_run(ids: dict[str, str]) -> None:
    """Make the chosen run the current one. A run renamed since its name was drawn comes back under the old name."""
    choice = st.session_state["explore_run"]
    session.choose_run(ids.get(choice, choice))


text = corpus.provenance.columns.get("text")
columns = colourable(corpus.metadata, skip=(text,) if text else ())
lengths = ["length"] if corpus.lengths is not None and "length" not in columns else []
choices = [QUALITY, CROWDING, *([MARGINAL, SCORE] if runs else []), *lengths, *columns]
for key in ("explore_left", "explore_middle"):
    # remembered from another corpus, which had other columns
    if st.session_state.get(key, QUALITY) not in choices:
        del st.session_state[key]

left, middle, right, layout, marks = st.columns([2.2, 2.2, 2.6, 1.5, 1.7], gap="small")
with left:
    first = st.selectbox("Left panel", choices, index=0, key="explore_left", help=ABOUT, persist_state="session")
with middle:
    second = st.selectbox("Middle panel", choices, index=1, key="explore_middle", help=ABOUT, persist_state="session")
with right:
    run_id = st.selectbox("Right panel: selected by", list(by_id), key="explore_run", placeholder="no finished run yet",
                          format_func=names.get, disabled=not by_id,
                          on_change=take_run, args=({name: found for found, name in names.items()},),
                          help="Finished runs on this corpus, newest first.")
with layout:
    wanted = st.segmented_control(
        "Layout", ("UMAP", "PCA"), default="UMAP", required=True, key="explore_layout", persist_state="session",
        help="UMAP keeps neighbours together and is computed once per corpus; until it is there, PCA stands in. PCA "
             "keeps directions of largest variance.")
with marks:
    many = len(corpus) > HEXAGONS_FROM
    shown = st.segmented_control(
        "Marks", ("points", "hexagons"), default="hexagons" if many else "points", required=True, key="explore_marks",
        persist_state="session", help=f"Points show single samples, a random {MAX_POINTS:,} of them where there are "
        "more. Hexagons show the mean or the selected share of all samples in a cell.")

preparing.prepare(corpus, cache_dir)
ground = scene.ground(corpus, cache_dir, wanted, shown == "hexagons")
run = scene.run_columns(by_id[run_id]) if run_id else None


def layer_of(name: str) -> Layer:
    """The layer behind a name in the panels' menus."""
    if name == QUALITY:
        return number("Quality", corpus.quality)
    if name == CROWDING:
        values = grounds.crowding(corpus, cache_dir)
        return Blank("Similarity to neighbours", "waits for the neighbours") if values is None else number(
            "Similarity to neighbours", values)
    if name == MARGINAL:
        return number("Marginal diversity in this run", run.marginal_diversity)
    if name == SCORE:
        return number("Score in this run", run.score)
    if name == "length" and lengths:
        return number("Length", corpus.lengths)
    return layer_of_column(name, corpus.metadata[name])


layers = [layer_of(first), layer_of(second)]
if run is not None:
    layers.append(Selection(f"Selected by {by_id[run_id].config.name or run_id}", run.selected))
else:
    layers.append(Blank("Selected", "no finished run on this corpus yet"))

answer = canvas_map.canvas_map(
    "explore_map", ground.scope, scene.ground_parcel(corpus, ground), ground.places, layers,
    alt=f"Map of {len(corpus):,} samples in three linked panels: {first}, {second}, selected", height=380)
notes = dict.fromkeys(layer.note for layer in layers if layer.note)
st.caption(" ".join([ground.caption, *(f"{note[0].upper()}{note[1:]}." for note in notes)]))
if run is None:
    st.page_link("pages/run.py", label="Start a run to see what it selects", icon=":material/arrow_forward:",
                 query_params=session.link_parameters())

if answer.regions:
    rows = rows_inside(ground.places.points, answer.regions)
    region_panel.show("explore_map", corpus, rows, run.selected if run is not None else None,
                      [name for name in dict.fromkeys((first, second)) if name in corpus.metadata.column_names])
else:
    region_panel.hint()
