"""Distributions to brush: a range or a class taken in one of them filters the map, the table and all the others."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import streamlit as st

from datamask.dashboard.drawing import palette
from datamask.dashboard.linked import brushing
from datamask.dashboard.linked.brushing import Linked
from datamask.dashboard.linked.columns import SELECTED, WITHOUT_UNIT
from datamask.dashboard.linked.facets import Facet
from datamask.dashboard.linked.tally import Tally
from datamask.dashboard.shell import session
from datamask.dashboard.shell.components import component

KEY = "explore_strips"
STRIPS = ("store", "elements", "amounts", "strips")
"""The scripts of the component; its bars hear what the map's slider counts."""

FEW = 3
"""Distributions beside the map; the others stand below it."""


def few(facets: Sequence[Facet], *, classes: bool) -> list[Facet]:
    """The first ones, for the narrow column beside the map.

    Args:
        classes: whether one of classes is among them; where there is a run, its groups stand there instead.
    """
    numbers = [facet for facet in facets if facet.edges is not None]
    named = [facet for facet in facets if facet.edges is None and facet.name != SELECTED]
    return [*numbers[:FEW], *(named[:1] if classes else ())]


def show(
    view: Linked, facets: Sequence[Facet], selected: np.ndarray | None, key: str = KEY, *, small: bool = False
) -> None:
    """Distributions side by side; small ones below each other.

    Args:
        selected: bool ``(N,)`` of the run in question, or None.
        key: of the component, one on a page.
    """
    tone = palette.shades(session.dark())
    component("strips", STRIPS)(
        key=key,
        on_brush_change=lambda: brushed(view, facets, st.session_state[key].get("brush")),
        data={
            "small": small,
            "facets": [_drawn(view, facet, selected, counted=small) for facet in facets],
            "colors": {
                "all": tone.grid if not session.dark() else tone.muted,
                "shown": tone.random if session.dark() else tone.muted,
                "chosen": tone.accent,
            },
        },
    )
    if small:
        return
    caption = "Pale: all rows. Gray: rows that pass the filter."
    if selected is not None:
        caption += " Blue: selected rows. Number: selected share of the group."
    st.caption(f"{caption} The bars of each color add up to 100 %. Drag over a range or press a group to filter by it.")


def brushed(view: Linked, facets: Sequence[Facet], answer: object) -> None:
    """Take what the browser says was brushed: ``{"name": ..., "bars": [...]}``; anything else is ignored."""
    if not isinstance(answer, dict) or not isinstance(answer.get("bars"), list):
        return
    facet = next((listed for listed in facets if listed.name == answer.get("name")), None)
    if facet is not None:
        brushing.take(facet.condition(answer["bars"]), facet.name)


def tallies(view: Linked, facets: Sequence[Facet]) -> list[Tally]:
    """The bars of small distributions, to be counted along lambda."""
    return [Tally(f"bars {facet.name}", facet.bins, facet.bars, _shown(view, facet)) for facet in facets]


def _shown(view: Linked, facet: Facet) -> np.ndarray | None:
    """The rows that all other conditions let through, bool ``(N,)``; None: all."""
    return view.mask(skip=(facet.name,)) if view.filters.without(facet.name) else None


def _drawn(view: Linked, facet: Facet, selected: np.ndarray | None, *, counted: bool) -> dict:
    shown = _shown(view, facet)
    chosen = selected if shown is None or selected is None else shown & selected
    drawn = {
        "name": facet.name,
        "title": facet.title,
        "all": facet.counts().tolist(),
        "shown": facet.counts(shown).tolist(),
        "brush": facet.brushed(view.filters.of(facet.name)),
        "chosen": None if chosen is None else facet.counts(chosen).tolist(),
        "rest": facet.rest,
        "tally": f"bars {facet.name}" if counted else "",
    }
    if facet.edges is None:
        return {**drawn, "labels": list(facet.labels)}
    if facet.name in WITHOUT_UNIT:
        places = facet.percentiles()
        spans = [f"percentile {a:.0f} to {b:.0f}" for a, b in pairwise(places)]
        return {**drawn, "ends": ["lowest", "highest"], "spans": spans}
    low, high = facet.ranges
    below, above = low < facet.edges[0], high > facet.edges[-1]
    ends = [f"{'≤ ' if below else ''}{facet.edges[0]:,.4g}", f"{'≥ ' if above else ''}{facet.edges[-1]:,.4g}"]
    spans = [f"{a:,.4g} to {b:,.4g}" for a, b in zip(facet.edges[:-1], facet.edges[1:], strict=True)]
    return {**drawn, "ends": [end.replace("-", "−") for end in ends], "spans": spans}
