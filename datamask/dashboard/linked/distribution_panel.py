"""Distributions to brush: a range or a class taken in one of them filters the map, the table and all the others."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import streamlit as st

from datamask.dashboard.drawing import palette
from datamask.dashboard.linked import brushing
from datamask.dashboard.linked.brushing import Linked
from datamask.dashboard.linked.columns import SELECTED
from datamask.dashboard.linked.facets import Facet
from datamask.dashboard.shell import session
from datamask.dashboard.shell.components import component

KEY = "explore_strips"

FEW = 3
"""Distributions beside the map; all of them stand below it."""


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
    component("strips", ("elements", "strips"))(
        key=key,
        on_brush_change=lambda: brushed(view, facets, st.session_state[key].get("brush")),
        data={
            "small": small,
            "facets": [_drawn(view, facet, selected) for facet in facets],
            "colors": {
                "all": tone.grid if not session.dark() else tone.muted,
                "shown": tone.batch,
                "chosen": tone.accent if not session.dark() else tone.text,
            },
        },
    )
    if small:
        return
    caption = "Grey: all samples. Blue: those shown now; each of the two shapes adds up to its own total."
    if selected is not None:
        caption += (
            " Dark: those of them that the run selected; beside a class, their share."
            if not session.dark()
            else " White: those of them that the run selected; beside a class, their share."
        )
    st.caption(f"{caption} Drag over a histogram to take a range, or press a bar; everything else on the page follows.")


def brushed(view: Linked, facets: Sequence[Facet], answer: object) -> None:
    """Take what the browser says was brushed: ``{"name": ..., "bars": [...]}``; anything else is ignored."""
    if not isinstance(answer, dict) or not isinstance(answer.get("bars"), list):
        return
    facet = next((listed for listed in facets if listed.name == answer.get("name")), None)
    if facet is not None:
        brushing.take(view.corpus, facet.condition(answer["bars"]), facet.name)


def _drawn(view: Linked, facet: Facet, selected: np.ndarray | None) -> dict:
    others = view.filters.without(facet.name)
    shown = view.mask(skip=(facet.name,)) if others else None
    chosen = selected if shown is None or selected is None else shown & selected
    drawn = {
        "name": facet.name,
        "title": facet.title,
        "all": facet.counts().tolist(),
        "shown": facet.counts(shown).tolist(),
        "brush": facet.brushed(view.filters.of(facet.name)),
        "chosen": None if chosen is None else facet.counts(chosen).tolist(),
        "rest": facet.rest,
    }
    if facet.edges is None:
        return {**drawn, "labels": list(facet.labels)}
    low, high = facet.ranges
    below, above = low < facet.edges[0], high > facet.edges[-1]
    ends = [f"{'≤ ' if below else ''}{facet.edges[0]:,.4g}", f"{'≥ ' if above else ''}{facet.edges[-1]:,.4g}"]
    spans = [f"{a:,.4g} to {b:,.4g}" for a, b in zip(facet.edges[:-1], facet.edges[1:], strict=True)]
    return {**drawn, "ends": [end.replace("-", "−") for end in ends], "spans": spans}
