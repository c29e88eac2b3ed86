"""Reading what a page drew."""

from __future__ import annotations

import json
from typing import Any

from streamlit.testing.v1 import AppTest

from tests.dashboard.opened_parcel import opened_parcel


def parcels(app: AppTest) -> dict[str, dict[str, Any]]:
    """What the page sent to its map, by place: ``ground``, ``dimming``, ``0``, ``1``, ``2``."""
    found = {}
    for component in app.get("bidi_component"):
        if component.proto.component_name == "datamask_carrier":
            slot, parcel = opened_parcel(component.proto.bytes)
            found[slot.partition("/")[2]] = parcel
    return found


def map_data(app: AppTest) -> dict[str, Any] | None:
    """What the map itself was told; None where the page has no map."""
    for component in app.get("bidi_component"):
        if component.proto.component_name == "datamask_map":
            return json.loads(component.proto.json)
    return None


def titles(app: AppTest) -> list[str]:
    """The titles of the map's panels."""
    sent = parcels(app)
    return [sent[str(i)]["title"] for i in range(map_data(app)["panels"])]


def captions(app: AppTest) -> str:
    """All captions of the page as one text, each with what opens on its question mark."""
    return " ".join(f"{caption.value} {caption.proto.help}" for caption in app.caption)
