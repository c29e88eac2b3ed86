"""Our own components: plain JavaScript and CSS from `browser/` beside this file; nothing comes from a network.

Streamlit sends a component's script with every drawing, so it is one that imports the other from this server, once.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import streamlit as st
from starlette.requests import Request
from starlette.responses import Response

from datamask.dashboard.server.parcels import HEADERS

FILES = Path(__file__).with_name("browser")

CALLS = "calls"
"""The script that ends every component: of two calls it keeps to the later one."""

PATH = "datamask/script/"
"""What stands before the name of a script, below the path of the pages."""

IMPORT = """const { default: call } = await import(new URL("%s", document.baseURI));
export default call;"""

_SCRIPTS: dict[str, str] = {}


@cache
def component(name: str, parts: tuple[str, ...]) -> Callable[..., Any]:
    """A component whose module is these files, one after the other, with the style sheet of its name, if there is one.

    Args:
        name: unique among all components.
        parts: names of scripts without their ending; the last one defines `mount`, which is called with the data.
    """
    script = script_of(parts, FILES / f"{name}.css")
    return st.components.v2.component(f"datamask_{name}", js=IMPORT % serve_script(script))


def script_of(parts: tuple[str, ...], style: Path | None = None) -> str:
    """The module that scripts make, one after the other, with the style sheet of a file, if there is one."""
    rules = style.read_text(encoding="utf-8") if style is not None and style.is_file() else ""
    scripts = [(FILES / f"{part}.js").read_text(encoding="utf-8") for part in (*parts, CALLS)]
    return "\n".join([f"const STYLE = {json.dumps(rules)};", *scripts])


def serve_script(script: str) -> str:
    """Keep a script where `answer` finds it; gives its path."""
    digest = hashlib.sha256(script.encode()).hexdigest()[:32]
    _SCRIPTS[digest] = script
    return PATH + digest


def answer(request: Request) -> Response:
    """Gives a script of a component by its name, which changes with it."""
    script = _SCRIPTS.get(request.path_params["name"])
    if script is None:
        return Response(status_code=404)
    return Response(script, headers=HEADERS, media_type="text/javascript")


def nothing() -> None:
    """A callback that does nothing: an answer of the browser is kept only under names that have a callback."""
