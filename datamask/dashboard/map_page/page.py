"""The Map: which samples are kept, and where do they lie? A map, what filters it, and what one reads beside it.

It stands in a module of its own, because app.py, whose page it is, is also what the web server imports.
"""

from __future__ import annotations

import streamlit as st

from datamask.corpus import Corpus
from datamask.dashboard.analyses.agreement import settled_panel as settled_colours
from datamask.dashboard.analyses.agreement import settled_rows
from datamask.dashboard.analyses.borderline import panel as borderline_panel
from datamask.dashboard.analyses.classes import panel as classes_panel
from datamask.dashboard.analyses.comparison import candidates
from datamask.dashboard.analyses.comparison.candidates import Refused
from datamask.dashboard.analyses.explanation import panel as why_panel
from datamask.dashboard.analyses.lambda_slider import panel as lambda_slider
from datamask.dashboard.analyses.samples import sample_panel, texts_panel
from datamask.dashboard.data import first_look_panel
from datamask.dashboard.data.openings import OpenCorpus
from datamask.dashboard.drawing import words
from datamask.dashboard.frame import address
from datamask.dashboard.frame.frame import frame
from datamask.dashboard.linked import brushing, columns, distribution_panel, filter_panel, groups_panel, names_panel
from datamask.dashboard.map import canvas_map, preparing_panel, scene
from datamask.dashboard.map.filters import Inside, Rows
from datamask.dashboard.map.layers import Layer, Selection
from datamask.dashboard.map.marks import Seen
from datamask.dashboard.map.places import HEXAGONS_FROM, MAX_POINTS
from datamask.dashboard.map_page import instrument, next_run, welcome_panel
from datamask.dashboard.runs import listing, steering_panel
from datamask.dashboard.shell import chosen, menus, session, tabs
from datamask.runs.store import Run

MAP, TAB, RUN = "explore_map", "explore_tab", "explore_run"
DISTRIBUTIONS, GROUPS, CLASSES, BORDERLINE = (
    "Distributions",
    "Starved and over-fed",
    "Three classes",
    "Borderline reader",
)
# what each map is coloured by: the menu's label and key
MENUS = (("Colour by", "explore_colour"), ("Second map", "explore_second"), ("Third map", "explore_third"))

ABOUT = (
    "Selected: what the run keeps. Quality: the score you brought. Similarity to neighbours: mean cosine to the 15 "
    "nearest samples of the whole corpus, whatever is selected; measured on the features, so a tight island can score "
    "above a blob that looks dense. Marginal diversity in this run: what the sample adds to the run's diversity. Any "
    "other column of your shards can be a colour too. "
    + " ".join(settled_rows.about(name) for name in (settled_rows.BY_PROOF, settled_rows.BY_PARTS))
)


def show() -> None:
    """Draw the page: the map of the open corpus; before there is one, the way to it."""
    next_run.arrive()  # before the menu, whose links name the run that is shown
    frame("Map", "Which samples are kept, and where do they lie?", texts_panel.ABOUT, seen=False)
    opening = session.current_opening()
    if opening is None and not session.outside():
        welcome_panel.show()
    elif opening is not None and opening.under_way:
        session.draw_opening(opening, follow=True)
        first_look_panel.show(opening)
    else:
        _draw(session.opened_or_stop())


def _offered(corpus: Corpus) -> tuple[dict[str, Run], str, list[Refused]]:
    """The finished runs on the corpus by id; the id of the one shown, "" where there is none; and why the one asked for
    is not."""
    runs, _ = candidates.candidates(session.store().list(), corpus.fingerprint)
    current = session.current_run()
    # the run of the address also where it was put away; or why it cannot be shown
    asked, refused = candidates.candidates([current] if current is not None else [], corpus.fingerprint, archived=True)
    runs += [run for run in asked if run.id not in {other.id for other in runs}]
    by_id = {run.id: run for run in runs}
    shown = current if current is not None and current.id in by_id else session.run_to_open(runs)
    return by_id, "" if shown is None else shown.id, refused


def _names(by_id: dict[str, Run]) -> dict[str, str]:
    return listing.unlike({run_id: listing.name_of(run) for run_id, run in by_id.items()})


def _take_run(key: str) -> None:
    """Make the run chosen in the menu of that key the current one."""
    chosen_id = menus.chosen_in(RUN, key)
    if chosen_id is not None:
        session.choose_run(chosen_id)


def _unfiltered(view: brushing.Linked) -> None:
    """Said over a view that does not follow the others."""
    if view.filters:
        st.caption("**Of all samples; the filter does not apply here.**")


def _download(listed: texts_panel.Listing) -> None:
    with st.container(key="explore_listed", horizontal=True, width="content"):
        texts_panel.download(listed)


def _draw(opened: OpenCorpus) -> None:
    corpus = opened.corpus
    cache_dir = session.store().cache_dir
    by_id, run_id, refused = _offered(corpus)
    runs, names = list(by_id.values()), _names(by_id)
    run = scene.run_columns(by_id[run_id]) if run_id else None
    selected = run.selected if run is not None else None
    unplaced = columns.rows(corpus, cache_dir, run_id, run)
    choices = columns.choices(unplaced, run is not None)
    shown = columns.shown_names(corpus.metadata.column_names)
    for key, known in (*((key, choices) for _, key in MENUS), ("explore_group_by", unplaced.classes)):
        # remembered from another corpus, which had other columns; or an address calls a column as its shards do
        if st.session_state.get(key) not in known:
            remembered = st.session_state.pop(key, None)
            if shown.get(remembered) in known:
                st.session_state[key] = shown[remembered]
    if run is not None and st.session_state.pop("explore_colour_waits", False):
        # it was coloured by quality for want of a run
        st.session_state["explore_colour"] = columns.SELECTED

    page = instrument.lay_out()

    with page.rail:
        with st.container(horizontal=True, vertical_alignment="bottom", horizontal_alignment="distribute", wrap=False):
            count = int(
                st.segmented_control(
                    "Maps",
                    address.MAPS,
                    default=address.MAPS[0],
                    required=True,
                    key="explore_maps",
                    persist_state="session",
                    help="How many maps lie side by side. They share zoom, position and what is drawn on them.",
                )
            )
            instrument.fold_button()
        key = menus.moved_to(RUN, run_id or None, names)
        st.selectbox(
            "Selected by",
            list(by_id),
            key=key,
            placeholder="no finished run yet",
            format_func=names.__getitem__,
            disabled=not by_id,
            on_change=_take_run,
            args=(key,),
            help="Whose selection is shown: finished runs on this corpus, newest first.",
        )
        if run is None:
            st.page_link(
                "pages/runs.py",
                label="Start a run to see what it selects",
                icon=":material/arrow_forward:",
                query_params=session.link_parameters(),
            )
        for refusal in refused:
            instead = f" Shown instead: **{words.plain(names[run_id], 60)}**." if run_id else ""
            st.caption(
                f"**{words.plain(refusal.name, 60)}** is not shown: {words.plain(refusal.reason, 300)}.{instead}"
            )
        colours = [
            st.selectbox(
                label, choices, index=min(place, len(choices) - 1), key=key, help=ABOUT, persist_state="session"
            )
            for place, (label, key) in enumerate(MENUS[:count])
        ]
        st.session_state["explore_colour_waits"] = run is None and colours[0] == choices[0]
        search = st.container()
        with st.popover("Layout and marks", icon=":material/tune:", width="stretch", key="explore_look"):
            wanted = preparing_panel.layout_control("explore_layout")
            shown_as = st.segmented_control(
                "Marks",
                ("points", "hexagons"),
                default="hexagons" if len(corpus) > HEXAGONS_FROM else "points",
                required=True,
                key="explore_marks",
                persist_state="session",
                help=f"Points show single samples, a random {MAX_POINTS:,} of them where there are more. Hexagons show "
                "the mean or the selected share of all samples in a cell.",
            )
            named_by = names_panel.control(corpus, unplaced)
        strips = st.container(key="explore_figures")

    with page.map:
        progress = st.container()
        drawing = st.container(gap=None)
        about = st.container()
    with progress:
        preparing_panel.prepare(corpus, cache_dir, wanted)
        names_panel.prepare(corpus, cache_dir, named_by)
    ground = scene.ground(corpus, cache_dir, wanted, shown_as == "hexagons")
    rows = Rows(unplaced.n, unplaced.numbers, unplaced.classes, unplaced.texts, ground.places.points)
    view = brushing.Linked(corpus, rows, brushing.kept_on(corpus, rows, shown), f"{run_id} {ground.kind}")

    def layer_of(name: str) -> Layer:
        if run is not None and name == columns.SELECTED:
            return Selection(f"Selected by {by_id[run_id].config.name or run_id}", run.selected)
        if run is not None and name in settled_colours.NAMES:
            return settled_colours.layer(name, by_id[run_id], run, corpus, cache_dir, ground.places.cells)
        return columns.layer(corpus, name, unplaced, run_id)

    layers = [layer_of(name) for name in colours]
    sample = chosen.chosen(corpus)
    let_through = view.mask() if view.filters else None
    with drawing:
        regions = canvas_map.canvas_map(
            MAP,
            ground.scope,
            scene.ground_parcel(corpus, ground),
            ground.places,
            layers,
            height=instrument.MAP_HEIGHT,
            filled=True,
            shown=let_through,
            inside=lambda regions: view.meeting(Inside(regions)),
            marked=() if sample is None else (sample,),
            on_pick=lambda row: chosen.choose(corpus, row),
            names=names_panel.names(view, ground, named_by, selected),
            opened=names_panel.opened(view, named_by),
            on_name=lambda code: names_panel.press(view, named_by, code),
            alt=f"Map of {len(corpus):,} samples, coloured by {', '.join(colours)}",
            slider=True,
            addressed=True,
        )
    with about:
        notes = dict.fromkeys(layer.note for layer in layers if layer.note)
        st.caption(
            ground.short_caption,
            help=" ".join([ground.caption, *(f"{note[0].upper()}{note[1:]}." for note in notes)]),
        )

    address.follow("Map")  # once more, for what was drawn on the map just now
    if regions:
        view = brushing.Linked(corpus, rows, view.filters.taking(Inside(regions)), view.key)
    passing = view.mask()
    panel = colours.index(columns.SELECTED) if columns.SELECTED in colours else 0
    with page.drawn:
        lambda_slider.show(
            MAP,
            lambda_slider.Beside(
                opened,
                by_id[run_id] if run_id else None,
                selected,
                ground.places,
                Seen(let_through, passing if view.filters else None),
                panel,
                tuple(place for place, name in enumerate(colours) if name in columns.OF_RUN and place != panel),
                sample,
                f"{run_id} {ground.scope} {shown_as}",
                runs,
            ),
        )
    listed = texts_panel.listing(MAP, corpus, passing, selected)
    distributions = columns.distributions(corpus, run_id, unplaced)

    with search:
        filter_panel.search(view)
    with strips:
        distribution_panel.show(
            view, distribution_panel.few(distributions, classes=run is None), selected, "explore_few", small=True
        )
        if selected is not None:
            groups_panel.show_few(view, selected)

    with page.reader:
        if sample is None:
            texts_panel.show(listed, columns.columns_shown(corpus, colours))
        else:
            sample_panel.show(corpus, sample, listed)
            reasons, nearest, behind = st.container(), st.container(), st.container()
            with nearest:
                sample_panel.neighbours(corpus, sample, selected)
            if run is not None:
                with reasons:
                    why_panel.show(by_id[run_id], runs, corpus, sample, behind)

    with page.summary:
        st.container(key="explore_headline", width="content").markdown(
            texts_panel.headline(corpus, passing, selected), width="content"
        )
        next_run.offer(opened, by_id[run_id] if run_id else None, runs, MAP)
    with page.conditions:
        filter_panel.conditions(view, MAP)
    with page.foot:
        steering_panel.offer(view, passing, lambda: _download(listed))

    for name, tab in zip(
        (DISTRIBUTIONS, GROUPS, CLASSES, BORDERLINE),
        tabs.tabs([DISTRIBUTIONS, *([GROUPS, CLASSES, BORDERLINE] if run is not None else [])], TAB),
        strict=False,  # without a run there is the first alone
    ):
        with tab:
            if not tab.open:
                continue
            if name == DISTRIBUTIONS or run is None:
                distribution_panel.show(view, distributions, selected)
            elif name == GROUPS:
                _unfiltered(view)
                groups_panel.show(view, run.selected, cache_dir)
            elif name == CLASSES:
                _unfiltered(view)
                classes_panel.show(corpus, ground, by_id[run_id], runs, run.selected, cache_dir)
            else:
                borderline_panel.show(by_id[run_id], corpus, run.selected, passing if view.filters else None)
