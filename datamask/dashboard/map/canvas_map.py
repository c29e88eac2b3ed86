"""A map of linked panels on a canvas, as a Streamlit component: plain JavaScript and CSS, nothing from elsewhere.

    found = canvas_map.regions(ground.scope)
    canvas_map.canvas_map("explore_map", corpus, ground.scope, parcel, ground.places, [layer, layer], alt="...")
    rows = rows_inside(ground.places.points, found)        # of all samples, not only of the drawn ones

The component's data are a small JSON that names parcels by their address; the browser fetches those that it does not
have. Coordinates and labels travel once per corpus and projection; each panel is one byte per mark. Where the map is
moved to and the regions drawn on it are parts of the view.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import streamlit as st

from datamask.corpus import Corpus
from datamask.dashboard.map import shared_view
from datamask.dashboard.map.ends import Ends
from datamask.dashboard.map.layers import Layer
from datamask.dashboard.map.marks import Seen, marks_of
from datamask.dashboard.map.parcels import dimming_parcel, layer_parcel
from datamask.dashboard.map.places import Places
from datamask.dashboard.map.regions import Region, drawn_regions, rows_inside
from datamask.dashboard.server.parcels import parcels as kept_parcels
from datamask.dashboard.shell import session
from datamask.dashboard.shell import view as views
from datamask.dashboard.shell.components import component, nothing

MAP = (
    "store",
    "loader",
    "elements",
    "amounts",
    "raster",
    "contours",
    "tools",
    "tip",
    "names",
    "sight",
    "turn",
    "hands",
    "counts",
    "held",
    "keep",
    "slider",
    "front",
    "map",
)
"""The scripts of the component."""


@dataclass(frozen=True)
class Named:
    """A name on the map.

    Attributes:
        code: what the map calls back with. label: what stands there.
        x, y: its place in the map's coordinates. sentence: what it says under the pointer.
    """

    code: int
    label: str
    x: float
    y: float
    sentence: str


@dataclass(frozen=True)
class Slider:
    """The lambda slider on a map's lower edge.

    Attributes:
        state: what stands on it, as JSON. parcels: of the selections that it is dragged over, by part.
        ends: the common colour scales of these selections and of the map's panels, by kind of layer.
        on_moved: called where it was let go, before the page is drawn again: the answer is the map's ``moved``.
        on_pressed: likewise where its button was pressed.
    """

    state: Mapping[str, Any]
    parcels: Mapping[str, bytes] = field(default_factory=dict)
    ends: Mapping[type, Ends] = field(default_factory=dict)
    on_moved: Callable[[], None] = nothing
    on_pressed: Callable[[], None] = nothing


def regions(scope: str) -> tuple[Region, ...]:
    """The regions of the view on a map, in data coordinates.

    Args:
        scope: as `canvas_map` is given it; regions on another projection mean nothing there.
    """
    with contextlib.suppress(ValueError):
        kind, found = shared_view.regions_of(views.now().region)
        if kind == scope.rpartition(" ")[2]:
            return found
    return ()


def canvas_map(
    name: str,
    corpus: Corpus,
    scope: str,
    ground: bytes,
    places: Places,
    layers: Sequence[Layer],
    *,
    alt: str,
    height: int | str = 340,
    filled: bool = False,
    shown: np.ndarray | None = None,
    counted: np.ndarray | None = None,
    marked: Sequence[int] = (),
    on_pick: Callable[[int], None] | None = None,
    ends: Mapping[type, Ends] | None = None,
    names: Sequence[Named] = (),
    opened: Sequence[int] = (),
    on_name: Callable[[int], None] | None = None,
    slider: Slider | None = None,
    of_view: bool = True,
) -> None:
    """Show a map.

    Args:
        name: of the map, one per page.
        corpus: whose rows are drawn.
        scope: names corpus and projection, ``fingerprint kind``.
        ground: `parcels.ground_parcel` of these places; ask `scene.ground_parcel`, which keeps it.
        places: where the samples lie.
        layers: one per panel.
        alt: the map's subject in a sentence, for screen readers.
        height: of the panels in CSS pixels, or as a length in CSS (``calc(100vh - 10rem)``); without title and key.
        filled: title, key and tools lie on the map, which so fills the room there is.
        shown: bool ``(N,)``, samples that stay bright; None: all. Regions dim by themselves.
        counted: bool ``(N,)``, those that the keys count; None: those inside the regions.
        marked: rows that get a ring.
        on_pick: called with the row of a sample that was clicked, before the page is drawn again.
        ends: common colour scales of panels that are compared, by kind of layer (`ends.common_ends`).
        names: of regions, those first that must have room.
        opened: codes of those whose samples are shown alone.
        on_name: called with the code of a name that was pressed, before the page is drawn again.
        slider: what lies on its lower edge.
        of_view: whether its region and its place are those of the view; else it has its own, and they go with it.
    """

    def answered(part: str) -> Any:
        return st.session_state.get(name, {}).get(part)

    drawn = answered("drawn")
    found = regions(scope) if of_view else _regions_of(scope, drawn)
    if counted is None and found:
        counted = np.zeros(len(places.points), bool)
        counted[rows_inside(places.points, found)] = True
    seen = Seen(shown, counted, ends or (slider.ends if slider else {}))
    bodies = {"ground": ground, **(slider.parcels if slider else {})}
    bodies |= {str(i): layer_parcel(marks_of(layer, places, session.dark(), seen)) for i, layer in enumerate(layers)}
    if shown is not None:
        bodies["dimming"] = dimming_parcel(places, shown)

    component("map", MAP)(
        key=name,
        on_drawn_change=(lambda: _draw(scope, answered("drawn"))) if of_view else nothing,
        on_picked_change=lambda: _picked(answered("picked"), len(places.points), on_pick),
        on_named_change=lambda: _named(answered("named"), {named.code for named in names}, on_name),
        on_sight_change=(lambda: views.change(at=str(answered("sight")))) if of_view else nothing,
        on_moved_change=slider.on_moved if slider else nothing,
        on_pressed_change=slider.on_pressed if slider else nothing,
        on_missing_change=nothing,  # the page is drawn again, and so the parcel is kept again
        data={
            "parcels": {part: kept_parcels().keep(corpus, body) for part, body in bodies.items()},
            "scope": scope,
            "panels": len(layers),
            "alt": alt,
            "height": f"{height}px" if isinstance(height, int) else height,
            "filled": filled,
            "heard": drawn.get("number", 0) if isinstance(drawn, Mapping) else 0,
            "picking": on_pick is not None,
            "names": [[n.code, n.label, n.x, n.y, n.sentence] for n in names],
            "opened": list(opened),
            "slider": slider.state if slider else None,
            "at": views.now().at if of_view else "",
            "told": answered("sight"),
            "marked": [list(map(float, places.points[row])) for row in marked],
            "regions": [[region.kind, *region.corners.T.tolist()] for region in found],
        },
    )


def _regions_of(scope: str, drawn: object) -> tuple[Region, ...]:
    """What the browser says that was drawn on a map of this scope."""
    if not isinstance(drawn, Mapping) or drawn.get("scope") != scope:
        return ()
    return tuple(drawn_regions(drawn.get("regions")))


def _draw(scope: str, drawn: object) -> None:
    if isinstance(drawn, Mapping) and drawn.get("scope") == scope:
        views.change(region=shared_view.region_text(scope.rpartition(" ")[2], _regions_of(scope, drawn)))


def _picked(row: object, rows: int, on_pick: Callable[[int], None] | None) -> None:
    if on_pick is not None and isinstance(row, int) and 0 <= row < rows:
        on_pick(row)


def _named(code: object, known: set[int], on_name: Callable[[int], None] | None) -> None:
    if on_name is not None and isinstance(code, int) and code in known:
        on_name(code)
