"""Opens what the server sends to a map, as the browser does, but written anew from the description of the format."""

from __future__ import annotations

import json
from typing import Any

import numpy as np


def opened_parcel(data: bytes) -> dict[str, Any]:
    """The parcel, its arrays beside the words of its header."""
    length = int.from_bytes(data[:4], "little")
    parcel = json.loads(data[4 : 4 + length])
    room = (4 + length + 7) // 8 * 8
    for name, (kind, place, size) in parcel["arrays"].items():
        assert place % 8 == 0
        parcel[name] = np.frombuffer(data, kind, size, room + place)
    return parcel
