"""A map of linked panels on a canvas, as a Streamlit component: plain JavaScript and CSS, no network.

    ground = scene.ground(corpus, cache_dir, wanted, hexagons=None)
    parcel = scene.ground_parcel(corpus, ground)
    regions = canvas_map("explore_map", ground.scope, parcel, ground.places, [layer, layer, layer], alt="...")
    rows = rows_inside(ground.places.points, regions)        # of all samples, not only of the drawn ones

Coordinates and labels travel once per corpus and projection; each panel is one byte per mark. A panel whose layer
changes is sent alone, and zoom, position, tool and lasso stay where they are. For something that changes while the
page stands still (a slider, a run under way), give None in the panel's place and call `canvas_layer` in a fragment:

    canvas_map("map", scope, parcel, places, [quality, crowding, None], alt="...")
    @st.fragment(run_every=0.5)
    def live():
        canvas_layer("map", 2, Selection("Selected", selected_now()), places)
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import streamlit as st

from datamask.dashboard.map import shared_view
from datamask.dashboard.map.ends import Ends
from datamask.dashboard.map.layers import Layer
from datamask.dashboard.map.marks import EVERYTHING, Seen, marks_of
from datamask.dashboard.map.parcels import addressed, dimming_parcel, layer_parcel
from datamask.dashboard.map.places import Places
from datamask.dashboard.map.regions import Region, drawn_regions, rows_inside
from datamask.dashboard.map.shared_view import rounded
from datamask.dashboard.shell import session
from datamask.dashboard.shell.components import component

CARRIER = ("parcel", "lasting", "carrier")
MAP = (
    "parcel",
    "elements",
    "amounts",
    "lasting",
    "raster",
    "tools",
    "tip",
    "names",
    "sight",
    "turn",
    "hands",
    "evidence",
    "counts",
    "slider",
    "front",
    "map",
)
"""The scripts of both components."""

_ANY = "*"
"""Stands for the corpus in the scope of regions that an address brought."""


@dataclass(frozen=True)
class Named:
    """A name on the map.

    Attributes:
        code: what the map calls back with. label: what stands there. share: a few signs behind it, or nothing.
        x, y: its place in the map's coordinates. sentence: what it says under the pointer.
    """

    code: int
    label: str
    share: str
    x: float
    y: float
    sentence: str


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

    @property
    def kind(self) -> str:
        """The projection's, the last word of the scope."""
        return self.scope.rpartition(" ")[2]


def canvas_map(
    name: str,
    scope: str,
    ground: bytes,
    places: Places,
    layers: Sequence[Layer | None],
    *,
    alt: str,
    height: int | str = 340,
    filled: bool = False,
    shown: np.ndarray | None = None,
    inside: Callable[[tuple[Region, ...]], np.ndarray] | None = None,
    marked: Sequence[int] = (),
    on_pick: Callable[[int], None] | None = None,
    ends: Mapping[type, Ends] | None = None,
    names: Sequence[Named] = (),
    opened: Sequence[int] = (),
    on_name: Callable[[int], None] | None = None,
    slider: bool = False,
    addressed: bool = False,
) -> tuple[Region, ...]:
    """Show a map and answer what was drawn on it.

    Args:
        name: of the map, one per page.
        scope: names corpus and projection, ``fingerprint kind``: regions are forgotten and the view starts anew when
            it changes.
        ground: `parcels.ground_parcel` of these places; ask `scene.ground_parcel`, which keeps it.
        places: where the samples lie.
        layers: one per panel; None: `canvas_layer` sends that one.
        alt: the map's subject in a sentence, for screen readers.
        height: of the panels in CSS pixels, or as a length in CSS (``calc(100vh - 10rem)``); without title and key.
        filled: title, key and tools lie on the map, which so fills the room there is.
        shown: bool ``(N,)``, samples that stay bright; None: all. Regions dim by themselves.
        inside: answers which samples lie in regions, bool ``(N,)``, where the page keeps such answers; None: each
            drawing tests them all.
        marked: rows that get a ring.
        on_pick: called with the row of a sample that was clicked, before the page is drawn again.
        ends: common colour scales of panels that are compared, by kind of layer (`ends.common_ends`).
        names: of regions, those first that must have room.
        opened: codes of those whose samples are shown alone.
        on_name: called with the code of a name that was pressed, before the page is drawn again.
        slider: whether a lambda slider lies on its lower edge; `lambda_slider.show` sends what stands there.
        addressed: whether the address says where the map was moved to. Once a hand rests, the browser writes it there,
            and asks the ear that stands beside the map to take note (`take_sight`).

    Returns:
        The regions drawn on the map, in data coordinates, on whichever panel.
    """
    memory = _memory(name)
    if memory.scope == f"{_ANY} {scope.rpartition(' ')[2]}":
        memory.scope = scope
    elif memory.scope != scope:
        memory.scope, memory.regions = scope, ()
    counted = shown
    if memory.regions:
        if inside is not None:
            counted = inside(memory.regions)
        else:
            counted = np.zeros(len(places.points), bool)
            counted[rows_inside(places.points, memory.regions)] = True
        if shown is not None:
            counted = counted & shown
    with st.container(gap=None):
        carry(name, "ground", ground)
        carry(name, "dimming", dimming_parcel(places, shown))
        for i, layer in enumerate(layers):
            if layer is not None:
                canvas_layer(name, i, layer, places, Seen(shown, counted, ends or {}))
        result = component("map", MAP)(
            key=name,
            on_drawn_change=lambda: _drawn(name),
            on_picked_change=lambda: _picked(name, len(places.points), on_pick),
            on_named_change=lambda: _named(name, {named.code for named in names}, on_name),
            data={
                "name": name,
                "scope": scope,
                "panels": len(layers),
                "alt": alt,
                "height": f"{height}px" if isinstance(height, int) else height,
                "filled": filled,
                "cleared": memory.cleared,
                "picking": on_pick is not None,
                "names": [[n.code, n.label, n.share, n.x, n.y, n.sentence] for n in names],
                "opened": list(opened),
                "slider": slider,
                "sight": _sight(name, scope) if addressed else None,
                "addressed": addressed,
                "marked": [list(map(float, places.points[row])) for row in marked],
                "regions": [[region.kind, *region.corners.T.tolist()] for region in memory.regions],
            },
        )
    _hear(memory, result.get("drawn"))
    return memory.regions


def canvas_layer(name: str, panel: int, layer: Layer, places: Places, seen: Seen = EVERYTHING) -> None:
    """Send one panel of a map, from wherever it is computed; the map itself may stand elsewhere on the page.

    Args:
        name: of the map. panel: its place from the left, from 0.
        layer: of the places' N rows. places: those the map was given.
        seen: what a filter lets through.
    """
    carry(name, str(panel), layer_parcel(marks_of(layer, places, session.dark(), seen)))


def awaiting(kind: str, regions: tuple[Region, ...]) -> _Memory:
    """What a map remembers that finds these regions drawn on it, whatever the corpus, on a projection of that kind."""
    return _Memory(f"{_ANY} {kind}", regions)


def take_sight(name: str, corpus: str, text: object) -> None:
    """Note where the browser says that a map was moved to, or, empty, that all of it is shown.

    Args:
        corpus: its fingerprint, as the map's scope has it.
    """
    if text == "":
        st.session_state.pop(f"{name}_sight", None)
    elif isinstance(text, str):
        with contextlib.suppress(ValueError):
            shared_view.sight_of(text)
            st.session_state[f"{name}_sight"], st.session_state[f"{name}_sight_of"] = text, corpus


def _sight(name: str, scope: str) -> list[float] | None:
    """Where a map begins that was moved in another session or tab: x, y, zoom; None: with all of it.

    That of another corpus is forgotten; what an address brought is for the one it brought too. That of another
    projection waits until this one is shown, which may not be there yet.
    """
    text, corpus = st.session_state.get(f"{name}_sight"), scope.rpartition(" ")[0]
    if text is None:
        return None
    if st.session_state.setdefault(f"{name}_sight_of", corpus) != corpus:
        del st.session_state[f"{name}_sight"], st.session_state[f"{name}_sight_of"]
        return None
    sight = shared_view.sight_of(text)
    return [sight.x, sight.y, sight.zoom] if sight.kind == scope.rpartition(" ")[2] else None


def clear(name: str) -> None:
    """Forget the regions of a map. For a button's `on_click`."""
    memory = _memory(name)
    memory.regions = ()
    memory.cleared += 1


def carry(name: str, part: str, parcel: bytes) -> None:
    """Send one part of a map, from wherever it is computed; the browser takes it again only where it changed."""
    component("carrier", CARRIER)(key=f"{name}_{part}", data=addressed(f"{name}/{part}", parcel))


def _drawn(name: str) -> None:
    # a callback runs before the page is drawn again, so that the keys count what is inside at once
    _hear(_memory(name), st.session_state[name].get("drawn"))


def _hear(memory: _Memory, drawn: object) -> None:
    if isinstance(drawn, Mapping) and drawn.get("scope") == memory.scope and drawn.get("cleared") == memory.cleared:
        memory.regions = tuple(map(rounded, drawn_regions(drawn.get("regions"))))


def _picked(name: str, rows: int, on_pick: Callable[[int], None] | None) -> None:
    row = st.session_state[name].get("picked")
    if on_pick is not None and isinstance(row, int) and 0 <= row < rows:
        on_pick(row)


def _named(name: str, known: set[int], on_name: Callable[[int], None] | None) -> None:
    code = st.session_state[name].get("named")
    if on_name is not None and isinstance(code, int) and code in known:
        on_name(code)


def _memory(name: str) -> _Memory:
    return st.session_state.setdefault(f"{name}_memory", _Memory())
