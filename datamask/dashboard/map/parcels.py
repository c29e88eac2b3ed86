"""What travels from the server to the map in the browser: numbers as bytes, never as text.

A parcel is one length, one JSON header and the arrays behind it, each starting at a multiple of eight bytes:

    uint32 little-endian: length of the header | header, UTF-8 | padding | array | padding | array ...

The header's ``arrays`` gives each one's kind, its place counted from the beginning of the parcel, and its length. Three
kinds of parcel make a map: one *ground* per corpus and projection (coordinates and labels: the megabytes), one *layer*
per panel (a byte per mark), one *dimming* for what a filter leaves out (a byte per mark; of hexagons
also how many of their samples are shown). A browser fetches each once, so that other colours never move the picture.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np

from datamask.dashboard.map.marks import Marks
from datamask.dashboard.map.places import Places

ALIGNED = 8
LEAST = 140
"""The byte of a hexagon of which hardly anything is shown: three quarters as wide as a whole one."""

KINDS = {"uint8": "u1", "uint32": "<u4", "float32": "<f4"}


def pack(header: dict[str, Any], **arrays: np.ndarray) -> bytes:
    """One parcel.

    Args:
        arrays: uint8, uint32 or float32, of any shape; they arrive flat.

    Raises:
        ValueError: an array of another kind.
    """
    bodies = {}
    for name, array in arrays.items():
        if array.dtype.name not in KINDS:
            raise ValueError(f"{name} must be uint8, uint32 or float32 to be sent to a map, got {array.dtype}")
        bodies[name] = np.ascontiguousarray(array).astype(KINDS[array.dtype.name], copy=False)
    # places depend on the header's length and the header on the places: they count from the end of the header's room
    places: dict[str, tuple[str, int, int]] = {}
    end = 0
    for name, body in bodies.items():
        places[name] = (body.dtype.name, end, body.size)
        end += -(-body.nbytes // ALIGNED) * ALIGNED
    head = json.dumps({**header, "arrays": places}, ensure_ascii=False, allow_nan=False).encode()
    room = -(-(4 + len(head)) // ALIGNED) * ALIGNED
    parcel = bytearray(room + end)
    parcel[:4] = len(head).to_bytes(4, "little")
    parcel[4 : 4 + len(head)] = head
    for name, body in bodies.items():
        first = room + places[name][1]
        parcel[first : first + body.nbytes] = body.tobytes()
    return bytes(parcel)


def ground_parcel(places: Places, labels: Sequence[str]) -> bytes:
    """Where the marks lie, and what each drawn sample says under the pointer.

    Args:
        labels: of the drawn samples, in drawing order; the first line is set in bold.

    Raises:
        ValueError: another number of labels than drawn samples.
    """
    if len(labels) != len(places.drawn):
        raise ValueError(f"labels must have {len(places.drawn):,} texts, one per drawn sample, got {len(labels):,}")
    letters = [label.encode() for label in labels]
    ends = np.concatenate([[0], np.cumsum([len(part) for part in letters], dtype=np.int64)]).astype(np.uint32)
    arrays = {
        "points": places.points[places.drawn],
        "rows": places.drawn.astype(np.uint32),
        "ends": ends,
        "letters": np.frombuffer(b"".join(letters), np.uint8),
    }
    if places.cells is not None:
        cells = places.cells
        arrays |= {
            "centers": cells.centers.astype(np.float32),
            "counts": cells.counts.astype(np.uint32),
            "reach": (cells.radius * 0.97 * cells.sizes()).astype(np.float32),
            "cell": cells.cell[places.drawn].astype(np.uint32),
        }
    return pack({"kind": "ground", "view": list(places.view), "size": mark_size(len(places.drawn))}, **arrays)


def look_of(marks: Marks) -> dict[str, Any]:
    """What a parcel says of some marks: title, key, bar, and what the pointer reads."""
    return {"title": marks.title, "key": [list(entry) for entry in marks.key], "bar": marks.bar, "hover": marks.hover}


def shapes_of(marks: Marks) -> dict[str, Any]:
    """The shapes and sizes of the codes of some marks, as a parcel says them."""
    return {"shapes": list(marks.shapes), "sizes": list(marks.sizes)}


def layer_parcel(marks: Marks) -> bytes:
    """One panel."""
    arrays = {"codes": marks.codes, "colors": marks.colors}
    if marks.values is not None:
        arrays["values"] = marks.values
    return pack({"kind": "layer", **look_of(marks), **shapes_of(marks), "text": marks.text}, **arrays)


def dimming_parcel(places: Places, shown: np.ndarray) -> bytes:
    """What stays bright: a byte per mark, 255 for all of it, 0 for none.

    Args:
        shown: bool ``(N,)``; a hexagon is drawn as large as the share of its samples that is shown.
    """
    passing = np.where(shown[places.drawn], 255, 0).astype(np.uint8)
    if places.cells is None:
        return pack({"kind": "dimming"}, bright=passing)
    cells = places.cells
    hits = np.bincount(cells.cell[shown], minlength=len(cells.counts))
    # one of many is little, but it must not vanish
    bright = np.where(hits > 0, np.clip(np.round(255 * hits / cells.counts), LEAST, 255), 0)
    return pack({"kind": "dimming"}, bright=bright.astype(np.uint8), hits=hits.astype(np.uint32), passing=passing)


def mark_size(drawn: int) -> float:
    """Diameter of a sample's mark in CSS pixels: smaller the more there are, so that crowded places stay readable."""
    return float(np.clip(7.0 - 1.15 * np.log10(max(drawn, 1)), 1.8, 6.0))
