"""The web server around the pages: who may ask, what happens at its start and end, what a visitor sees of a fault.

`streamlit run app.py` finds ``app = st.App(...)`` there and serves it; the same file is its first page. `serve` does so
for `datamask open`.
"""

from __future__ import annotations

import asyncio
import logging
import os
import secrets
import socket
import sys
import webbrowser
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import click
import streamlit as st
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.routing import Route

from datamask import endings, import_race, server_note
from datamask.config import CorpusConfig
from datamask.dashboard.data import kept_roots
from datamask.dashboard.data.allowed import allowed
from datamask.dashboard.server import parcels
from datamask.dashboard.server.codes import one_time_code, tell
from datamask.dashboard.server.hosts import Doorkeeper, Hosts, hosts_of
from datamask.dashboard.server.scripts import APP
from datamask.dashboard.shell import clicks, components, session
from datamask.dashboard.shell.loopback import ADDRESS, on_loopback
from datamask.errors import DatamaskError, OptionError
from datamask.runs.store import default_root

log = logging.getLogger(__name__)

FAULT = "fault"
"""Key of the box that says a page failed; browser tests look for it."""


REFUSED = 2
"""Exit code where the command line of the server is refused, with one sentence; as that of every command."""


def serve(config: CorpusConfig | None = None, port: int | None = None) -> int:
    """Serve the dashboard until it is told to end, as `streamlit run app.py` does, and obeying the same variables.

    Args:
        config: the corpus that visitors are shown first, whose folders may be read; None: no one.
        port: where to listen; None: STREAMLIT_SERVER_PORT, else the first free one from 8501 on.

    Returns:
        The exit code: 0 after Ctrl-C, else what the server ended with.

    Raises:
        OptionError: somebody else has that port.
    """
    from streamlit.web import cli

    variable = os.environ.get("STREAMLIT_SERVER_PORT", "")
    if port is not None or variable.isdigit():
        _check_free(int(variable) if port is None else port)
    allowed().asked = config
    # Streamlit's greeting does not name the corpus; _life prints an address that does
    words = ["run", str(APP), "--logger.hideWelcomeMessage", "true"]
    # as .streamlit/config.toml says; a flag outranks a variable left over in the environment
    words += ["--runner.fastReruns", "false"]
    words += ["--server.port", str(port)] if port is not None else []
    try:
        cli.main(words, prog_name="streamlit", standalone_mode=False)
    except (KeyboardInterrupt, click.Abort):
        pass
    except click.ClickException as error:
        raise OptionError(f"the server could not be started: {error.format_message()}") from error
    except SystemExit as ended:
        return ended.code if isinstance(ended.code, int) else int(ended.code is not None)
    return 0


def _check_free(port: int) -> None:
    """Refuse a port that somebody else has.

    Raises:
        OptionError: so it is, or there is no such port.
    """
    address = os.environ.get("STREAMLIT_SERVER_ADDRESS") or ADDRESS
    try:
        with socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # as the server: what has just ended is free
            probe.bind((address, port))
    except (OSError, OverflowError) as error:
        why = getattr(error, "strerror", None) or error
        raise OptionError(
            f"--port {port} is not available ({why}); name another one, or leave it out to take the first free one"
        ) from error


def around(script: str | None = None) -> dict[str, Any]:
    """What `st.App` is to be given besides its first page.

    From the first call on, several threads of this process may import at once (`import_race`).

    Args:
        script: the file that is served; then paths after its name on the command line are opened:
            ``streamlit run app.py -- PATH...``.

    Raises:
        SystemExit: they cannot be, for a reason that has been printed.
    """
    import_race.guard()
    clicks.keep_clicks()
    try:
        _open_first(script)
    except DatamaskError as error:
        print(f"datamask: {error}", file=sys.stderr, flush=True)
        raise SystemExit(REFUSED) from error
    return {
        "routes": [
            Route(server_note.TOKEN_PATH, _token),
            Route(f"/{_base()}{parcels.PATH}{{address}}", parcels.answer),
            Route(f"/{_base()}{components.PATH}{{name}}", components.answer),
        ],
        "middleware": [Middleware(Doorkeeper, hosts=_hosts)],
        "lifespan": _life,
        "on_script_error": _fault,
    }


async def _token(_: Request) -> PlainTextResponse:
    """Tells a notebook that this is the server whose note it read."""
    return PlainTextResponse(server_note.token())


def _open_first(script: str | None) -> None:
    """Allow and remember the corpus of the command line, where it names one.

    Raises:
        DatamaskError: it cannot be opened, or a word is no path.
    """
    config = allowed().asked
    # a server of another kind, such as `uvicorn app:app`, has words of its own
    if config is None and script is not None and Path(sys.argv[0]).absolute() == Path(script).absolute():
        words = sys.argv[1:]
        option = next((word for word in words if word.startswith("-")), None)
        if option is not None:
            raise OptionError(
                f"{option} is no option of app.py, which takes files, folders and globs after `--`; "
                "`datamask open --help` lists options"
            )
        config = CorpusConfig(tuple(words)) if words else None
    if config is not None:
        allowed().open_first(config, session.roots())


def _hosts() -> Hosts:
    return hosts_of(
        st.get_option("server.address") or None,
        st.get_option("server.allowedHosts") or (),
        st.get_option("browser.serverAddress"),
        st.get_option("server.corsAllowedOrigins") or (),
        any_origin=not st.get_option("server.enableCORS"),
    )


@asynccontextmanager
async def _life(_: st.App) -> AsyncIterator[None]:
    """Begin to open the first corpus, say where it is to be seen and by which code folders are added, and open a
    browser there, as Streamlit does for a plain script; at the end wait for all background work.

    That is done here because a server ended by a signal dies of it right after, without the interpreter's own end.
    """
    if on_loopback():
        allowed().allow(kept_roots.kept(Path(default_root()).absolute()))
    first = session.first_opening()
    page = _address() + ("" if first is None else f"?corpus={first.key}")
    if first or st.get_option("logger.hideWelcomeMessage"):
        tell(f"datamask: {page} (Ctrl-C ends the server)")
    if on_loopback():
        one_time_code()  # which prints it
    if not st.get_option("server.headless"):
        asyncio.get_running_loop().run_in_executor(None, webbrowser.open, page)
    try:
        with server_note.noted(default_root(), _address()):
            yield
    finally:
        await asyncio.to_thread(endings.goodbye)


def _address() -> str:
    """Where a browser on this machine finds the pages; ends in a slash, where no page is named."""
    address = st.get_option("server.address")
    name = "localhost" if address in (None, "", "0.0.0.0", "::") else f"[{address}]" if ":" in address else address
    scheme = "https" if st.get_option("server.sslCertFile") else "http"
    return f"{scheme}://{name}:{st.get_option('server.port')}/{_base()}"


def _base() -> str:
    """What stands before the path of every page: empty, or ends in a slash."""
    base = (st.get_option("server.baseUrlPath") or "").strip("/")
    return f"{base}/" if base else ""


def _fault(error: Exception) -> bool:
    """Say that a page failed, without its traceback: that names folders of the server. The log has it, by a number."""
    number = secrets.token_hex(4)
    log.error("fault %s on a page", number, exc_info=error)
    with st.container(key=FAULT):
        st.error(
            f"Internal error {number} ({type(error).__name__}). Reload the page, or see the server's log.",
            icon=":material/error:",
        )
    return True
