"""The maps with their slider, and the line below them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import streamlit as st

from datamask.analyses.ablation import link_panel
from datamask.analyses.lambda_slider import panel as lambda_slider
from datamask.analyses.samples import more_like_panel
from datamask.dashboard.drawing import words
from datamask.dashboard.linked import brushing, columns, distribution_panel, groups_panel, names_panel
from datamask.dashboard.map import canvas_map, scene
from datamask.dashboard.map import preparing_panel as layout_panel
from datamask.dashboard.map.filters import Inside
from datamask.dashboard.map.layers import constant
from datamask.dashboard.map.marks import Seen
from datamask.dashboard.shell import chosen, session
from datamask.dashboard.workspace import preparing_panel
from datamask.pages.map import colors, instrument
from datamask.pages.map.rail_panel import Look
from datamask.pages.map.shown import Linked, Shown


def show(shown: Shown, look: Look) -> Linked:
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
            brushing.MAP,
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
            slider=lambda_slider.slider(brushing.MAP, beside),
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
    view = more_like_panel.taking(view, ground)
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
