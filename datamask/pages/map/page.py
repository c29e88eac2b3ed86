"""The Map: which samples are kept, and where do they lie? A map, what filters it, and what one reads beside it.

It stands in a module of its own, because app.py, whose page it is, is also what the web server imports.
"""

from __future__ import annotations

from collections.abc import Container
from dataclasses import replace

import streamlit as st

from datamask.analyses.explanation import panel as why_panel
from datamask.analyses.lambda_slider import evidence_panel
from datamask.analyses.lambda_slider import panel as lambda_slider
from datamask.analyses.overview import first_look_panel
from datamask.analyses.samples import sample_panel, texts_panel
from datamask.analyses.steering import panel as steering_panel
from datamask.dashboard.drawing import words
from datamask.dashboard.frame.frame import frame
from datamask.dashboard.linked import (
    best_rows,
    brushing,
    columns,
    distribution_panel,
    filter_panel,
    groups_panel,
    names_panel,
    settled_rows,
)
from datamask.dashboard.map import canvas_map, scene
from datamask.dashboard.map import preparing_panel as layout_panel
from datamask.dashboard.map.filters import Inside, Rows
from datamask.dashboard.map.layers import constant
from datamask.dashboard.map.marks import Seen
from datamask.dashboard.map.places import HEXAGONS_FROM, MAX_POINTS
from datamask.dashboard.runs import listing
from datamask.dashboard.shell import chosen, ordering, session
from datamask.dashboard.shell import view as views
from datamask.dashboard.workspace import preparing_panel
from datamask.dashboard.workspace.current import Current
from datamask.pages.map import colors, compared_panel, instrument, next_run
from datamask.runs.store import Run

MAP, TAB, RUN = brushing.MAP, "tab", "explore_run"
MAPS = ("1", "2", "3")
DISTRIBUTIONS, GROUPS = "Distributions", "Under- and over-represented"
# what each map is coloured by: the menu's label and key
MENUS = (("Color by", "colour"), ("Second map", "second"), ("Third map", "third"))

ABOUT = (
    "*Similarity to neighbors*: mean cosine to the 15 nearest rows of the corpus. "
    f"{best_rows.ABOUT} "
    "*Score in this run*: what the row adds to the joint value of the run. "
    "*Marginal diversity*: what it adds to the diversity. "
    + " ".join(settled_rows.about(name) for name in (settled_rows.BY_PROOF, settled_rows.BY_PARTS))
)


def show() -> None:
    """Draw the page: the map of the open corpus; before there is one, the way to it."""
    current = frame("Map", "Which rows are selected, and where are they on the map?", texts_panel.ABOUT)
    opening = session.current_opening()
    if opening is not None and opening.under_way:
        session.draw_opening(opening, follow=True)
        first_look_panel.show(opening)
    elif current is None:
        session.opened_or_stop()
    else:
        _draw(current)


def _take_run(key: str, offered: Container[str]) -> None:
    """Make the run chosen in the menu the current one; a browser may still send the old name of one."""
    run_id = st.session_state.get(key, "")
    # the shown one stands there already: a browser that has not heard of a move of λ says so
    if run_id and run_id in offered and not (key == RUN and run_id == views.now().run):
        views.choose_run(run_id)


def _download(listed: texts_panel.Listing) -> None:
    with st.container(key="explore_listed", horizontal=True, width="content"):
        texts_panel.download(listed)


def _draw(current: Current) -> None:
    workspace, selection = current.workspace, current.selection
    corpus = workspace.corpus
    cache_dir = session.store().cache_dir
    runs, names = workspace.runs, workspace.names
    run_id = "" if workspace.run is None else workspace.run.id
    scored = colors.scored(current)
    own = selection is not None and selection.run is not None
    run = None if scored is None else scene.run_columns(scored)
    selected = None if selection is None else selection.mask
    scores_of = "" if scored is None else scored.id
    unplaced = columns.rows(corpus, cache_dir, scores_of, run, selected)
    against = compared_panel.compared(current)
    choices = columns.choices(unplaced)
    for key, known in (*((key, choices) for _, key in MENUS), ("group", unplaced.classes)):
        if st.session_state.get(key) not in known:  # remembered from another corpus, which had other columns
            st.session_state.pop(key, None)
    page = instrument.lay_out()

    with page.rail:
        with st.container(horizontal=True, vertical_alignment="bottom", horizontal_alignment="distribute", wrap=False):
            count = int(
                st.segmented_control(
                    "Maps",
                    MAPS,
                    default=MAPS[0],
                    required=True,
                    key="maps",
                    bind="query-params",
                    persist_state="session",
                    help="Up to three maps, with the same zoom and position.",
                )
            )
            instrument.fold_button()
        # a selection along λ that is no run was selected by none of the menu
        standing = run_id if own or selection is None else ""
        # of its own where none of them stands: the browser would still send the name that stood here before
        key = RUN if standing else f"{RUN}_none"
        if standing:
            st.session_state[key] = standing
        st.selectbox(
            "Selected by",
            list(names),
            list(names).index(standing) if standing else None,
            key=key,
            placeholder=f"{selection.name} (not a stored run)"
            if selection is not None and names
            else "no finished run yet",
            format_func=names.__getitem__,
            disabled=not names,
            on_change=_take_run,
            args=(key, names),
        )
        # a place of its own: a control that moves is drawn anew, and loses the focus and what is being typed
        with st.container():
            if selected is None and not (current.waits or current.under_way):
                st.page_link(
                    "pages/runs.py",
                    label="Start a run to see its selection",
                    icon=":material/arrow_forward:",
                    query_params=views.now().address,
                )
            for refusal in workspace.refused:
                instead = f" Shown instead: **{words.named(names[run_id], 60)}**." if run_id else ""
                st.caption(
                    f"**{words.named(refusal.name, 60)}** is not shown: {words.plain(refusal.reason, 300)}.{instead}"
                )
        colours = [
            st.selectbox(
                label,
                choices,
                index=min(place, len(choices) - 1),
                key=key,
                help=None if place else ABOUT,
                format_func=columns.spoken_of,
                bind="query-params",
                persist_state="session",
            )
            for place, (label, key) in enumerate(MENUS[:count])
        ]
        search = st.container()
        with st.popover("Layout and marks", icon=":material/tune:", width="stretch", key="explore_look"):
            wanted = layout_panel.layout_control()
            shown_as = st.segmented_control(
                "Marks",
                ("points", "hexagons"),
                default="hexagons" if len(corpus) > HEXAGONS_FROM else "points",
                required=True,
                key="marks",
                bind="query-params",
                persist_state="session",
                help=f"A point is a row (at most {MAX_POINTS:,}, at random). A hexagon shows the selected share "
                "or the mean value of its rows.",
            )
            named_by = names_panel.control(corpus, unplaced)
        strips = st.container(key="explore_figures")

    with page.map:
        drawing = st.container(gap=None)
        about = st.container(key="explore_about", horizontal=True, vertical_alignment="center", gap="small")
    preparing_panel.begin_map(current, wanted, named_by)
    ground = scene.ground(corpus, cache_dir, wanted, shown_as == "hexagons")
    rows = Rows(unplaced.n, unplaced.numbers, unplaced.classes, unplaced.texts, ground.places.points)
    view = brushing.Linked(
        corpus,
        rows,
        workspace.filters.known(rows),
        f"{scores_of} {ground.kind}",
        "" if selection is None else selection.key,
    )

    change = None if against is None else against.layer
    layers = [colors.layer(name, current, unplaced, ground, colours, change) for name in colours]
    sample = chosen.chosen(corpus)
    let_through = view.mask() if view.filters else None
    named = names_panel.names(view, ground, named_by, selected)
    if regions := canvas_map.regions(ground.scope):
        view = replace(view, filters=view.filters.taking(Inside(regions)))
    passing = view.mask()
    distributions = columns.distributions(corpus, scores_of, unplaced, of_run=own)
    few = distribution_panel.few(distributions, classes=selected is None)
    tallies = [names_panel.tally(view, named_by), groups_panel.few_tally(view), *distribution_panel.tallies(view, few)]
    beside = lambda_slider.Beside(
        current,
        ground.places,
        Seen(let_through, passing if view.filters else None),
        colours.index(columns.SELECTED) if columns.SELECTED in colours else 0,
        tuple(tally for tally in tallies if tally is not None),
        sample,
        evidence_panel.found(corpus, workspace.settings, None if selection is None else selection.settings),
        f"{run_id} {ground.scope} {shown_as}",
    )
    with drawing:
        canvas_map.canvas_map(
            MAP,
            corpus,
            ground.scope,
            scene.ground_parcel(corpus, ground),
            ground.places,
            layers,
            height=instrument.MAP_HEIGHT,
            filled=True,
            shown=let_through,
            counted=beside.seen.counted,
            marked=() if sample is None else (sample,),
            on_pick=lambda row: chosen.choose(corpus, row),
            names=named,
            opened=names_panel.opened(view, named_by),
            on_name=lambda code: names_panel.press(view, named_by, code),
            alt=f"Map of {len(corpus):,} rows, colored by {', '.join(colours)}",
            slider=lambda_slider.slider(MAP, beside),
        )
    with about:
        for sentence in dict.fromkeys(filter(None, map(constant, layers))):
            st.caption(words.plain(sentence), width="content")
        notes = dict.fromkeys(layer.note for layer in layers if layer.note)
        st.caption(
            ground.caption,
            help=" ".join([ground.places.caption, *(f"{note[0].upper()}{note[1:]}." for note in notes)]),
            width="content",
        )
        layout_panel.offer(corpus, cache_dir, wanted)

    with page.drawn:
        lambda_slider.follow(current)
    closest = None
    if run is not None and scored is not None and own and not _several_cuts(scored):
        closest = ordering.closest_to_cut(scored.id, run.score, run.selected, run.eligible)
    listed = texts_panel.listing(MAP, corpus, passing, selected, closest)
    drawn = {facet.name for facet in few}
    others = [facet for facet in distributions if facet.name not in drawn]  # none is drawn twice

    with search:
        filter_panel.search(view)
    with strips:
        distribution_panel.show(view, few, selected, "explore_few", small=True)
        if selected is not None:
            groups_panel.show_few(view, selected)

    with page.reader:
        if against is not None and sample is None:
            compared_panel.show(against)
        if sample is None:
            texts_panel.show(listed, columns.columns_shown(corpus, colours))
        else:
            sample_panel.show(corpus, sample, listed)
            reasons, nearest, behind = st.container(), st.container(), st.container()
            with nearest:
                sample_panel.neighbours(corpus, sample, selected)
            if scored is not None:
                with reasons:
                    _another(own, scored)
                    why_panel.show(scored, runs, corpus, sample, behind)

    with page.summary:
        st.container(key="explore_headline", width="content").markdown(
            texts_panel.headline(corpus, passing, selected), width="content"
        )
        next_run.offer(current, MAP)
        compared_panel.offer(current, against)
        evidence_panel.controls(current)
    with page.conditions:
        filter_panel.conditions(view)
    with page.foot:
        steering_panel.offer(workspace, view, passing, lambda: _download(listed))

    shown_tabs = [
        *([DISTRIBUTIONS] if others else []),
        *([GROUPS] if selected is not None else []),
    ]
    if not shown_tabs:
        return
    tab = st.segmented_control(
        "Below the map",
        shown_tabs,
        default=shown_tabs[0],
        required=True,
        key=TAB,
        bind="query-params",
        persist_state="session",
        label_visibility="collapsed",
    )
    with st.container(key="explore_tab_panel"):
        if tab == GROUPS and selected is not None:
            groups_panel.show(view, selected, cache_dir)
        else:
            distribution_panel.show(view, others, selected)


def _several_cuts(run: Run) -> bool:
    """Whether its rows were not all held against one score: pins, quotas and tokens decide besides."""
    return run.config.selection.ruled or run.config.selection.budget is not None


def _another(own: bool, scored: Run) -> None:
    """Said over what follows from a run's scores, where the current selection is no run."""
    if not own:
        st.caption(
            f"Scores of run **{words.named(listing.name_of(scored), 60)}** (λ {scored.config.selection.lamb:g}). "
            "The current selection has no scores. Press *Keep as run* to get them."
        )
