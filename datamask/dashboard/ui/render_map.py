"""The one place where a map is put on a page and its selection read back; another backend would change this file alone.

A plotly chart is mounted anew whenever its figure changes, and its lasso is lost with it. So the figure never follows
its own selection: what was drawn last is remembered per session, and only when the map changes for another reason
(other colours, another run) are the remembered regions drawn into the new figure, dotted, in every panel.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import streamlit as st
from plotly import graph_objects as go

from datamask.dashboard.regions import Region, regions_of

CONFIG = {"displaylogo": False, "displayModeBar": True, "scrollZoom": True, "doubleClickDelay": 400,
          "modeBarButtonsToRemove": ["autoScale2d", "zoom2d"],
          "toImageButtonOptions": {"format": "png", "scale": 2, "filename": "datamask-map"}}


@dataclass
class _Memory:
    """What a session remembers of one map.

    Attributes:
        scope: corpus and projection; regions of another scope mean nothing here.
        version: what the figure was drawn from.
        outlines: the regions drawn into the figure when it was made.
        regions: the regions that count now.
        answered: whether this figure has sent a region; until then an empty selection is only its birth.
        cleared: how often the user cleared the regions; a new number mounts the chart without its lasso.
    """

    scope: str = ""
    version: str = ""
    outlines: tuple[Region, ...] = ()
    regions: tuple[Region, ...] = ()
    answered: bool = False
    cleared: int = 0


def render_map(name: str, scope: str, version: str, draw: Callable[[Sequence[Region]], go.Figure], *,
               alt: str) -> tuple[Region, ...]:
    """Show a map and return the regions drawn on it, in data coordinates.

    Args:
        name: of the map, one per page.
        scope: names corpus and projection: regions are forgotten when it changes.
        version: names everything else the figure is drawn from: regions are carried over when it changes.
        draw: makes the figure, given the regions to outline in it; called on every run of the page, so it should answer
            from a cache.
        alt: the map's subject in a sentence, for screen readers.
    """
    memory = _memory(name)
    if memory.scope != scope:
        st.session_state[_key(name)] = memory = _Memory(scope, version, cleared=memory.cleared)
    elif memory.version != version:
        memory.version, memory.outlines, memory.answered = version, memory.regions, False
    outlined = "".join(region.kind + region.corners.tobytes().hex() for region in memory.outlines)
    mark = hashlib.sha256(f"{scope}|{version}|{outlined}|{memory.cleared}".encode()).hexdigest()[:12]
    event = st.plotly_chart(draw(memory.outlines), key=f"{name}_{mark}", on_select="rerun", theme=None, config=CONFIG,
                            selection_mode=("lasso", "box"), width="stretch", alt=alt)
    found = tuple(regions_of(event.selection if event else None))
    if found:
        memory.regions, memory.answered = found, True
    elif memory.answered:
        memory.regions = ()
    return memory.regions


def clear(name: str) -> None:
    """Forget the regions of a map. For a button's `on_click`."""
    memory = _memory(name)
    memory.regions = memory.outlines = ()
    memory.answered = False
    memory.cleared += 1


def _memory(name: str) -> _Memory:
    return st.session_state.setdefault(_key(name), _Memory())


def _key(name: str) -> str:
    return f"{name}_regions"
