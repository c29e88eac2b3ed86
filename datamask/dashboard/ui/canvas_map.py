"""A map of linked panels on a canvas, as a Streamlit component: plain JavaScript and CSS beside this file, no network.

    ground = scene.ground(corpus, cache_dir, "UMAP", hexagons=None)
    parcel = scene.ground_parcel(corpus, ground)
    answer = canvas_map("explore_map", ground.scope, parcel, ground.places, [layer, layer, layer], alt="...")
    rows = rows_inside(ground.places.points, answer.regions)        # of all samples, not only of the drawn ones

Coordinates and labels travel once per corpus and projection; each panel is one byte per mark. A panel whose layer
changes is sent alone, and zoom, position, tool and lasso stay where they are. For something that changes while the
page stands still (a slider, a run under way), give None in the panel's place and call `canvas_layer` in a fragment:

    canvas_map("map", scope, parcel, places, [quality, crowding, None], alt="...")
    @st.fragment(run_every=0.5)
    def live():
        canvas_layer("map", 2, Selection("Selected", selected_now()), places)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
import streamlit as st

from datamask.dashboard.layers import Layer
from datamask.dashboard.marks import marks_of
from datamask.dashboard.parcels import addressed, dimming_parcel, layer_parcel
from datamask.dashboard.places import Places
from datamask.dashboard.regions import Region, drawn_regions
from datamask.dashboard.ui import session

FILES = Path(__file__).with_name("canvas")


@dataclass(frozen=True)
class Answer:
    """What the user did on a map.

    Attributes:
        regions: drawn on it, in data coordinates, on whichever panel.
        picked: the row of the sample that was clicked just now, or None.
    """

    regions: tuple[Region, ...] = ()
    picked: int | None = None


@dataclass
class _Memory:
    """What a session remembers of one map, also while another page is shown.

    Attributes:
        scope: corpus and projection; regions of another scope mean nothing here.
        cleared: how often the server forgot the regions; an older answer of the browser does not bring them back.
    """

    scope: str = ""
    regions: tuple[Region, ...] = ()
    cleared: int = 0


def canvas_map(name: str, scope: str, ground: bytes, places: Places, layers: Sequence[Layer | None], *, alt: str,
               height: int = 340, shown: np.ndarray | None = None, marked: Sequence[int] = (),
               picking: bool = False) -> Answer:
    """Show a map and answer what was drawn or clicked on it.

    Args:
        name: of the map, one per page.
        scope: names corpus and projection: regions are forgotten and the view starts anew when it changes.
        ground: `parcels.ground_parcel` of these places; ask `scene.ground_parcel`, which keeps it.
        places: where the samples lie.
        layers: one per panel; None: `canvas_layer` sends that one.
        alt: the map's subject in a sentence, for screen readers.
        height: of the panels in CSS pixels, without title and key.
        shown: bool ``(N,)``, samples that stay bright; None: all. Regions dim by themselves.
        marked: rows that get a ring.
        picking: whether clicking a sample is an answer.
    """
    memory = _memory(name)
    if memory.scope != scope:
        memory.scope, memory.regions = scope, ()
    with st.container(gap=None):
        _carry(name, "ground", ground)
        _carry(name, "dimming", dimming_parcel(places, shown))
        for i, layer in enumerate(layers):
            if layer is not None:
                canvas_layer(name, i, layer, places)
        result = _component("map", ("parcel", "raster", "tools", "tip", "hands", "map"))(
            key=name, on_drawn_change=_nothing, on_picked_change=_nothing,
            data={"name": name, "scope": scope, "panels": len(layers), "alt": alt, "height": height,
                  "cleared": memory.cleared, "picking": picking,
                  "marked": [list(map(float, places.points[row])) for row in marked],
                  "regions": [[region.kind, *region.corners.T.tolist()] for region in memory.regions]})
    drawn = result.get("drawn")
    if isinstance(drawn, Mapping) and drawn.get("scope") == scope and drawn.get("cleared") == memory.cleared:
        memory.regions = tuple(drawn_regions(drawn.get("regions")))
    picked = result.get("picked")
    valid = isinstance(picked, int) and 0 <= picked < len(places.points)
    return Answer(memory.regions, picked if valid else None)


def canvas_layer(name: str, panel: int, layer: Layer, places: Places) -> None:
    """Send one panel of a map, from wherever it is computed; the map itself may stand elsewhere on the page.

    Args:
        name: of the map. panel: its place from the left, from 0.
        layer: of the places' N rows. places: those the map was given.
    """
    _carry(name, str(panel), layer_parcel(marks_of(layer, places, session.dark())))


def regions_of(name: str, scope: str) -> tuple[Region, ...]:
    """The regions a map was left with, for what stands above it on the page."""
    memory = _memory(name)
    return memory.regions if memory.scope == scope else ()


def clear(name: str) -> None:
    """Forget the regions of a map. For a button's `on_click`."""
    memory = _memory(name)
    memory.regions = ()
    memory.cleared += 1


def _carry(name: str, part: str, parcel: bytes) -> None:
    _component("carrier", ("parcel", "carrier"))(key=f"{name}_{part}", data=addressed(f"{name}/{part}", parcel))


@cache
def _component(name: str, parts: tuple[str, ...]):
    """A component whose module is these files, one after the other."""
    script = "\n".join((FILES / f"{part}.js").read_text(encoding="utf-8") for part in parts)
    style = (FILES / f"{name}.css").read_text(encoding="utf-8") if (FILES / f"{name}.css").is_file() else None
    return st.components.v2.component(f"datamask_{name}", js=script, css=style)


def _memory(name: str) -> _Memory:
    return st.session_state.setdefault(f"{name}_memory", _Memory())


def _nothing() -> None:
    """A result exists only for what has a callback."""
