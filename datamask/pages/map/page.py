"""The Map: which samples are kept, and where do they lie? A map, what filters it, and what one reads beside it.

It stands in a module of its own, because app.py, whose page it is, is also what the web server imports.
"""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import dataclass, replace

import numpy as np
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from datamask.analyses.ablation import link_panel
from datamask.analyses.explanation import panel as why_panel
from datamask.analyses.lambda_slider import panel as lambda_slider
from datamask.analyses.overview import first_look_panel
from datamask.analyses.samples import extremes_panel, sample_panel, texts_panel
from datamask.analyses.steering import panel as steering_panel
from datamask.corpus import Corpus
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
from datamask.dashboard.linked.facets import Facet
from datamask.dashboard.map import canvas_map, scene
from datamask.dashboard.map import preparing_panel as layout_panel
from datamask.dashboard.map.filters import Inside, Rows
from datamask.dashboard.map.layers import constant
from datamask.dashboard.map.marks import Seen
from datamask.dashboard.map.places import MAX_POINTS
from datamask.dashboard.runs import listing
from datamask.dashboard.shell import chosen, ordering, session
from datamask.dashboard.shell import view as views
from datamask.dashboard.shell.option_control import KEPT, one_of
from datamask.dashboard.workspace import preparing_panel
from datamask.dashboard.workspace.current import Current
from datamask.pages.map import colors, compared_panel, instrument, tradeoff_panel
from datamask.pages.map.compared_panel import Compared
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


LIST_HEIGHT = 420
"""Pixels of the list below rows that are worth a look, which leave it no room of its own."""

MARKS = (
    f"A point is a row (at most {MAX_POINTS:,}, at random). A hexagon shows the selected share or the mean value of "
    "its rows."
)

WELCOME = (
    "Choose which rows of a training corpus to keep. Drag the dot: right for better scores, up for more variety. "
    "Click a mark to see why it is selected."
)


def show() -> None:
    """Draw the page: the map of the open corpus; before there is one, the way to it."""
    current = frame("Map", "Which rows are selected, and where are they on the map?", texts_panel.ABOUT, WELCOME)
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


@dataclass(frozen=True)
class Shown:
    """What one drawing of the page shows.

    Attributes:
        current: the current selection. against: what it is held against; None: nothing.
        scored: the run whose scores there are; None: there is none. scores: these. rows: what conditions look at.
    """

    current: Current
    against: Compared | None
    scored: Run | None
    scores: scene.RunColumns | None
    rows: Rows

    @classmethod
    def of(cls, current: Current) -> Shown:
        """What there is to show of a selection."""
        scored = colors.scored(current)
        scores = None if scored is None else scene.run_columns(scored)
        shown = cls(current, compared_panel.compared(current), scored, scores, Rows(0))
        cache_dir = session.store().cache_dir
        return replace(shown, rows=columns.rows(shown.corpus, cache_dir, shown.scores_of, scores, shown.selected))

    @property
    def corpus(self) -> Corpus:
        """The open corpus."""
        return self.current.workspace.corpus

    @property
    def selected(self) -> np.ndarray | None:
        """The current selection, bool ``(N,)``; None: nothing is selected."""
        return None if self.current.selection is None else self.current.selection.mask

    @property
    def own(self) -> bool:
        """Whether the current selection is a stored run."""
        return self.current.selection is not None and self.current.selection.run is not None

    @property
    def scores_of(self) -> str:
        """The id of the run whose scores there are, or nothing."""
        return "" if self.scored is None else self.scored.id


@dataclass(frozen=True)
class Look:
    """What the rail was asked for.

    Attributes:
        colours: what each map is colored by. projection, hexagons: how rows are drawn.
        search, strips: places of the rail that are drawn after the map.
    """

    colours: Sequence[str]
    projection: str
    hexagons: bool
    search: DeltaGenerator
    strips: DeltaGenerator


@dataclass(frozen=True)
class Linked:
    """What the map and all beside it have in common.

    Attributes:
        ground: where rows lie. view: the rows and the conditions on them. passing: bool ``(N,)``, those that are shown.
        few, others: the distributions in the rail, and below the map.
    """

    ground: scene.Ground
    view: brushing.Linked
    passing: np.ndarray
    few: Sequence[Facet]
    others: Sequence[Facet]


def _draw(current: Current) -> None:
    shown = Shown.of(current)
    page = instrument.lay_out()
    with page.rail:
        look = _rail(shown)
    with page.map:
        linked = _map(shown, look)
    with page.drawn:
        lambda_slider.follow(current)
    with look.search:
        filter_panel.search(linked.view)
    with look.strips:
        _strips(shown, linked)
    listed = _listing(shown, linked)
    with page.reader:
        _reader(shown, look, linked, listed)
    with page.summary:
        _summary(shown, linked)
    with page.conditions:
        filter_panel.conditions(linked.view)
    with page.foot:
        steering_panel.offer(current.workspace, linked.view, linked.passing, lambda: _download(listed))
    _below(shown, linked)


def _rail(shown: Shown) -> Look:
    """Maps, run, colors and look; its search and strips are drawn once the map is."""
    choices = columns.choices(shown.rows)
    for key, known in (*((key, choices) for _, key in MENUS), ("group", shown.rows.classes)):
        if st.session_state.get(key) not in known:  # remembered from another corpus, which had other columns
            st.session_state.pop(key, None)
    tradeoff_panel.show(shown.current)
    with st.container(horizontal=True, vertical_alignment="bottom", horizontal_alignment="distribute", wrap=False):
        count = one_of("Maps", MAPS, "maps", help="Up to three maps, with the same zoom and position.", **KEPT)
        instrument.fold_button()
    _selected_by(shown)
    # a place of its own: a control that moves is drawn anew, and loses the focus and what is being typed
    with st.container():
        _without_selection(shown)
    with st.container(key="explore_switch"):
        _switch(choices)
    others = st.container()
    search = st.container()
    with st.popover("More colors, layout", icon=":material/tune:", width="stretch", key="explore_look"):
        more = st.container()
        colours = [
            (others if place else more).selectbox(
                label,
                choices,
                index=min(place, len(choices) - 1),
                key=key,
                help=None if place else ABOUT,
                format_func=columns.spoken_of,
                **KEPT,
            )
            for place, (label, key) in enumerate(MENUS[: int(count)])
        ]
        projection, hexagons = layout_panel.layout_control(), layout_panel.marks_control(shown.corpus, MARKS)
    return Look(colours, projection, hexagons, search, st.container(key="explore_figures"))


def _switch(choices: Sequence[str]) -> None:
    """What the first map is mostly colored by, at one press; its menu has these and all others."""
    key, (_, colour) = "explore_colour", MENUS[0]
    diversity = columns.MARGINAL if columns.MARGINAL in choices else columns.CROWDING
    names = {columns.SELECTED: "Selection", columns.QUALITY: "Quality", diversity: "Diversity"}
    shown = st.session_state.get(colour, choices[0])
    st.session_state[key] = shown if shown in names else None
    st.segmented_control(
        "Color of the map",
        list(names),
        key=key,
        format_func=names.__getitem__,
        # pressed again, what is on stays on
        on_change=lambda: st.session_state.update({colour: st.session_state[key] or shown}),
        label_visibility="collapsed",
    )


def _selected_by(shown: Shown) -> None:
    """The menu of runs. A selection along λ that is no run was selected by none of them."""
    workspace, selection = shown.current.workspace, shown.current.selection
    names = workspace.names
    standing = workspace.run.id if workspace.run is not None and (shown.own or selection is None) else ""
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


def _without_selection(shown: Shown) -> None:
    """The way to a run where nothing is selected, and why the run of the address is not shown."""
    current, workspace = shown.current, shown.current.workspace
    if shown.selected is None and not (current.waits or current.under_way):
        views.page_link("pages/runs.py", "Start a run to see its selection")
    for refusal in workspace.refused:
        instead = workspace.run and f" Shown instead: **{words.named(workspace.names[workspace.run.id], 60)}**."
        st.caption(
            f"**{words.named(refusal.name, 60)}** is not shown: {words.plain(refusal.reason, 300)}.{instead or ''}"
        )


def _map(shown: Shown, look: Look) -> Linked:
    """The maps with their slider, and the line below them."""
    drawing = st.container(gap=None)
    about = st.container(key="explore_about", horizontal=True, vertical_alignment="center", gap="small")
    corpus, cache_dir = shown.corpus, session.store().cache_dir
    preparing_panel.begin_map(shown.current, look.projection)
    ground = scene.ground(corpus, cache_dir, look.projection, look.hexagons)
    linked, shown_rows = _linked(shown, ground)
    change = None if shown.against is None else shown.against.layer
    layers = [colors.layer(name, shown.current, shown.rows, ground, look.colours, change) for name in look.colours]
    beside = _beside(shown, look, linked, shown_rows)
    names = names_panel.names(linked.view, ground, cache_dir, shown.selected)
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
            shown=shown_rows,
            counted=beside.seen.counted,
            marked=() if beside.sample is None else (beside.sample,),
            on_pick=lambda row: chosen.choose(corpus, row),
            names=names,
            opened=names_panel.opened(linked.view, ground),
            on_name=lambda code: names_panel.press(linked.view, ground, code),
            alt=f"Map of {len(corpus):,} rows, colored by {', '.join(look.colours)}",
            slider=lambda_slider.slider(MAP, beside),
        )
    with about:
        for sentence in dict.fromkeys(filter(None, map(constant, layers))):
            st.caption(words.plain(sentence), width="content")
        notes = dict.fromkeys(layer.note for layer in layers if layer.note)
        said = [ground.places.caption, *(f"{note[0].upper()}{note[1:]}." for note in notes)]
        if names:
            said.append("Zoom in to see more names. Press a name to filter by its region.")
        st.caption(ground.caption, help=" ".join(said), width="content")
        layout_panel.offer(corpus, cache_dir, look.projection)
    return linked


def _linked(shown: Shown, ground: scene.Ground) -> tuple[Linked, np.ndarray | None]:
    """What passes on this ground, and what would without the regions drawn on it; None: everything."""
    rows, selection = replace(shown.rows, points=ground.places.points), shown.current.selection
    view = brushing.Linked(
        shown.corpus,
        rows,
        shown.current.workspace.filters.known(rows),
        f"{shown.scores_of} {ground.kind}",
        "" if selection is None else selection.key,
    )
    without_regions = view.mask() if view.filters else None
    if regions := canvas_map.regions(ground.scope):
        view = replace(view, filters=view.filters.taking(Inside(regions)))
    facets = columns.distributions(shown.corpus, shown.scores_of, shown.rows, of_run=shown.own)
    few = distribution_panel.few(facets, classes=shown.selected is None)
    drawn = {facet.name for facet in few}  # none is drawn twice
    others = [facet for facet in facets if facet.name not in drawn]
    return Linked(ground, view, view.mask(), few, others), without_regions


def _beside(shown: Shown, look: Look, linked: Linked, shown_rows: np.ndarray | None) -> lambda_slider.Beside:
    """What the slider stands beside."""
    current, view = shown.current, linked.view
    workspace = current.workspace
    tallies = [names_panel.tally(view, linked.ground), groups_panel.few_tally(view)]
    tallies += distribution_panel.tallies(view, linked.few)
    return lambda_slider.Beside(
        current,
        linked.ground.places,
        Seen(shown_rows, linked.passing if view.filters else None),
        look.colours.index(columns.SELECTED) if columns.SELECTED in look.colours else 0,
        tuple(tally for tally in tallies if tally is not None),
        chosen.chosen(shown.corpus),
        link_panel.found(workspace).apart,
        f"{'' if workspace.run is None else workspace.run.id} {linked.ground.scope} {look.hexagons}",
    )


def _strips(shown: Shown, linked: Linked) -> None:
    distribution_panel.show(linked.view, linked.few, shown.selected, "explore_few", small=True)
    if shown.selected is not None:
        groups_panel.show_few(linked.view, shown.selected)


def _listing(shown: Shown, linked: Linked) -> texts_panel.Listing:
    """The rows that are listed beside the map."""
    closest, run, scored = None, shown.scores, shown.scored
    if run is not None and scored is not None and shown.own:
        settings = scored.config.selection
        # pins, quotas and tokens decide besides the score, so that there is no one cut
        if not settings.ruled and settings.budget is None:
            closest = ordering.closest_to_cut(scored.id, run.score, run.selected, run.eligible)
    return texts_panel.listing(MAP, shown.corpus, linked.passing, shown.selected, closest)


def _download(listed: texts_panel.Listing) -> None:
    with st.container(key="explore_listed", horizontal=True, width="content"):
        texts_panel.download(listed)


def _reader(shown: Shown, look: Look, linked: Linked, listed: texts_panel.Listing) -> None:
    """The marked row with the reasons for it; else the list, below what is compared or what is worth a look."""
    corpus, sample = shown.corpus, chosen.chosen(shown.corpus)
    if sample is None:
        if shown.against is not None:
            compared_panel.show(shown.against)
        before = shown.against is None and not linked.view.filters and extremes_panel.show(shown.current)
        texts_panel.show(listed, columns.columns_shown(corpus, look.colours), LIST_HEIGHT if before else "stretch")
        return
    sample_panel.show(corpus, sample, listed)
    reasons, nearest, behind = st.container(), st.container(), st.container()
    with nearest:
        sample_panel.neighbours(corpus, sample, shown.selected)
    if (scored := shown.scored) is not None:
        with reasons:
            if not shown.own:
                st.caption(
                    f"Scores of run **{words.named(listing.name_of(scored), 60)}** "
                    f"(λ {scored.config.selection.lamb:g}). "
                    "The current selection has no scores. Press *Keep as run* to get them."
                )
            why_panel.show(scored, shown.current.workspace.runs, corpus, sample, behind)


def _summary(shown: Shown, linked: Linked) -> None:
    if not linked.passing.all():
        st.container(key="explore_headline", width="content").markdown(
            texts_panel.headline(shown.corpus, linked.passing, shown.selected), width="content"
        )
    compared_panel.offer(shown.current, shown.against)
    link_panel.show(shown.current.workspace)


def _below(shown: Shown, linked: Linked) -> None:
    """The other distributions, or the groups."""
    tabs = [*([DISTRIBUTIONS] if linked.others else []), *([GROUPS] if shown.selected is not None else [])]
    if not tabs:
        return
    tab = one_of("Below the map", tabs, TAB, label_visibility="collapsed", **KEPT)
    with st.container(key="explore_tab_panel"):
        if tab == GROUPS and shown.selected is not None:
            groups_panel.show(linked.view, shown.selected, session.store().cache_dir)
        else:
            distribution_panel.show(linked.view, linked.others, shown.selected)
