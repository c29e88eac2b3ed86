"""Our own components: plain JavaScript and CSS from `browser/` beside this file; nothing comes from a network."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import streamlit as st

FILES = Path(__file__).with_name("browser")

CALLS = "calls"
"""The script that ends every component: of two calls it keeps to the later one."""


@cache
def component(name: str, parts: tuple[str, ...]) -> Callable[..., Any]:
    """A component whose module is these files, one after the other, with the style sheet of its name, if there is one.

    Args:
        name: unique among all components.
        parts: names of scripts without their ending; the last one defines `mount`, which is called with the data.
    """
    style = (FILES / f"{name}.css").read_text(encoding="utf-8") if (FILES / f"{name}.css").is_file() else None
    return st.components.v2.component(f"datamask_{name}", js=script_of(parts), css=style)


def script_of(parts: tuple[str, ...]) -> str:
    """The module that scripts make, one after the other."""
    return "\n".join((FILES / f"{part}.js").read_text(encoding="utf-8") for part in (*parts, CALLS))


def nothing() -> None:
    """A callback that does nothing: an answer of the browser is kept only under names that have a callback."""
