"""The web server around the pages: who may ask, what happens at its start and end, what a visitor sees of a fault.

`streamlit run app.py` finds ``app = st.App(...)`` there and serves it; the same file is its first page.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
import webbrowser
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import streamlit as st
from starlette.middleware import Middleware

from datamask import endings
from datamask.dashboard.hosts import Doorkeeper, Hosts, hosts_of

log = logging.getLogger(__name__)

FAULT = "fault"
"""Key of the box that says a page failed; browser tests look for it."""


def around() -> dict[str, Any]:
    """What `st.App` is to be given besides its first page."""
    return {"middleware": [Middleware(Doorkeeper, hosts=_hosts)], "lifespan": _life, "on_script_error": _fault}


def _hosts() -> Hosts:
    browser = st.get_option("browser.serverAddress")
    return hosts_of(st.get_option("server.address") or None, st.get_option("server.allowedHosts") or (), browser)


@asynccontextmanager
async def _life(_: st.App) -> AsyncIterator[None]:
    """Open a browser, as Streamlit does for a plain script; at the end wait for all background work.

    That is done here because a server ended by a signal dies of it right after, without the interpreter's own end.
    """
    if not st.get_option("server.headless"):
        asyncio.get_running_loop().run_in_executor(None, webbrowser.open, _address())
    try:
        yield
    finally:
        await asyncio.to_thread(endings.goodbye)


def _address() -> str:
    """Where a browser on this machine finds the pages."""
    address = st.get_option("server.address")
    name = "localhost" if address in (None, "", "0.0.0.0", "::") else f"[{address}]" if ":" in address else address
    scheme = "https" if st.get_option("server.sslCertFile") else "http"
    base = (st.get_option("server.baseUrlPath") or "").strip("/")
    return f"{scheme}://{name}:{st.get_option('server.port')}/{base}"


def _fault(error: Exception) -> bool:
    """Say that a page failed, without its traceback: that names folders of the server. The log has it, by a number."""
    number = secrets.token_hex(4)
    log.error("fault %s on a page", number, exc_info=error)
    with st.container(key=FAULT):
        st.error(
            f"This page failed, which is a fault of the program: {type(error).__name__}. Reload it, or go on with "
            f"another page. The server's log tells more under the number {number}.",
            icon=":material/error:",
        )
    return True
