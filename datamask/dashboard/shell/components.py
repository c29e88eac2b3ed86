"""Our own components: plain JavaScript and CSS from `browser/` beside this file; nothing comes from a network."""

from __future__ import annotations

import json
import struct
import time
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from typing import Any

import streamlit as st

FILES = Path(__file__).with_name("browser")

NEWEST = "newest"
"""The script that ends every component: of two calls it keeps to the data that were sent last."""

NUMBERS = "component_numbers"
"""Of the session: by key of a component the digest and the number of the data that it was sent last."""


@cache
def component(name: str, parts: tuple[str, ...]) -> Callable[..., Any]:
    """A component whose module is these files, one after the other, with the style sheet of its name, if there is one.

    What comes back is called as Streamlit's own are, with a key and with data that are a mapping or bytes.

    Args:
        name: unique among all components.
        parts: names of scripts without their ending; the last one defines `mount`, which is called with the data.
    """
    style = (FILES / f"{name}.css").read_text(encoding="utf-8") if (FILES / f"{name}.css").is_file() else None
    return partial(_mount, st.components.v2.component(f"datamask_{name}", js=script_of(parts), css=style))


def script_of(parts: tuple[str, ...]) -> str:
    """The module that scripts make, one after the other."""
    return "\n".join((FILES / f"{part}.js").read_text(encoding="utf-8") for part in (*parts, NEWEST))


def nothing() -> None:
    """A callback that does nothing: an answer of the browser is kept only under names that have a callback."""


def numbered(data: dict[str, Any] | bytes, number: float) -> dict[str, Any] | bytes:
    """Data as they travel: with the number that says which of two were sent later."""
    return struct.pack("<d", number) + data if isinstance(data, bytes) else {**data, "number": number}


def _mount(streamlits: Callable[..., Any], key: str, data: dict[str, Any] | bytes | None = None, **answers: Any) -> Any:
    return streamlits(key=key, data=None if data is None else numbered(data, _number(key, data)), **answers)


def _number(key: str, data: dict[str, Any] | bytes) -> float:
    """The number of a component's data: that of the last ones where they are the same, else a higher one.

    It is the time in seconds, so that it also rises where a browser goes on in another session.
    """
    numbers = st.session_state.setdefault(NUMBERS, {})
    digest = hash(data if isinstance(data, bytes) else json.dumps(data, sort_keys=True))
    before, number = numbers.get(key, (None, 0.0))
    if digest != before:
        number = max(time.time(), number + 1e-3)
        numbers[key] = digest, number
    return float(number)
