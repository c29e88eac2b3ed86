"""Which names this server answers to, and what it sends with every answer.

A page of a foreign site can point its own name at this machine (DNS rebinding); the browser then takes the dashboard
for a part of that site and lets it read everything. Only the Host header tells: it still carries the foreign name. So
every request, of a page, a file or a websocket, is refused unless its Host is one this server goes by.
"""

from __future__ import annotations

import ipaddress
import logging
import socket
from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

log = logging.getLogger(__name__)

LOCAL_NAMES = ("localhost",)
HEADERS = ((b"content-security-policy", b"frame-ancestors 'self'"), (b"x-frame-options", b"SAMEORIGIN"))
"""On every answer: no foreign site may put these pages into a frame and have them clicked."""

REFUSED = (
    "This server does not answer to that name. If the name is yours, start the server with "
    "--server.allowedHosts NAME, or list it under [server] allowedHosts in .streamlit/config.toml.\n"
)
FAILED = "The server failed on this request; its log says why.\n"

LOGGED = 20
"""Refused names that are written to the log; a scanner tries thousands."""

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]


@dataclass(frozen=True)
class Hosts:
    """The names a server answers to.

    Attributes:
        listed: what `server.allowedHosts` lists: names, ``*.example.com`` for all below one, ``*`` for any. Where it
            lists anything, nothing else passes, as on Streamlit's own websocket.
        own: without a list, names besides the loopback's, such as this machine's.
        addresses: without a list, whether any IP address passes. Nobody can point one elsewhere, so it is no risk; a
            server on the loopback alone is reached by none but the loopback's.
    """

    listed: tuple[str, ...] = ()
    own: tuple[str, ...] = ()
    addresses: bool = False

    def allow(self, host: str) -> bool:
        """Whether a request with this Host header is meant for this server."""
        name = host_name(host)
        if name is None:
            return False
        if self.listed:
            return any(_matches(name, pattern.strip().lower().rstrip(".")) for pattern in self.listed)
        try:
            address = ipaddress.ip_address(name)
        except ValueError:
            return name in LOCAL_NAMES or name.endswith(".localhost") or name in self.own
        return self.addresses or address.is_loopback


def host_name(host: str) -> str | None:
    """The name or address in a Host header, in lower case and without port; None: it is no such header."""
    try:
        parts = urlsplit(f"//{host}")
        _ = parts.port  # raises where it is no number
        name = parts.hostname
    except ValueError:
        return None
    if not name or parts.netloc != host or parts.username is not None or parts.password is not None:
        return None
    return name.lower().rstrip(".") or None


def hosts_of(address: str | None, listed: Iterable[str], browser_address: str | None = None) -> Hosts:
    """The names of a server.

    Args:
        address: what it listens on; None: on everything.
        listed: `server.allowedHosts`.
        browser_address: `browser.serverAddress` where somebody set it: what people are to type.
    """
    named = [name.lower().rstrip(".") for name in (address, browser_address) if name]
    loopback = address is not None and Hosts().allow(f"[{address}]" if ":" in address else address)
    if not loopback:
        machine = socket.gethostname().lower().split(".")[0]
        named += [socket.gethostname().lower(), machine, f"{machine}.local"]
    return Hosts(tuple(listed), tuple(named), addresses=not loopback)


def _matches(name: str, pattern: str) -> bool:
    if pattern.startswith("*."):
        return name.endswith(pattern[1:])
    return pattern in ("*", name)


class Doorkeeper:
    """ASGI middleware: refuses a foreign Host with 403 and adds `HEADERS` to every answer.

    A failure below is answered here, with the headers too, and logged.
    """

    def __init__(self, app: Callable[[Scope, Receive, Send], Awaitable[None]], hosts: Callable[[], Hosts]) -> None:
        self._app, self._hosts = app, hosts
        self._known: Hosts | None = None
        self._logged: set[str] = set()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let one request or websocket through, or refuse it."""
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
            return
        begun = over = False

        async def heard() -> Message:
            nonlocal over
            message = await receive()
            over = over or message["type"] == "websocket.disconnect"
            return message

        async def stamped(message: Message) -> None:
            nonlocal begun, over
            begun = True
            over = over or message["type"] == "websocket.close"
            if message["type"] in ("http.response.start", "websocket.http.response.start"):
                given = [pair for pair in message.get("headers", ()) if pair[0].lower() != b"x-frame-options"]
                message = {**message, "headers": [*given, *HEADERS]}
            await send(message)

        if not self._allowed(scope):
            await _refuse(scope, stamped)
            return
        try:
            await self._app(scope, heard, stamped)
        except Exception as error:
            if over and isinstance(error, RuntimeError):
                return  # Streamlit read from or wrote to a websocket that is closed; there is nobody to answer
            if begun or scope["type"] == "websocket":
                raise
            log.exception("%s %s failed", scope.get("method"), scope.get("path"))
            await _answer(stamped, "http", 500, FAILED)

    def _allowed(self, scope: Scope) -> bool:
        if self._known is None:
            self._known = self._hosts()
        values = [value.decode("latin-1") for name, value in scope["headers"] if name.lower() == b"host"]
        allowed = len(values) == 1 and self._known.allow(values[0])
        if not allowed and len(self._logged) < LOGGED and (what := ", ".join(values)[:100]) not in self._logged:
            self._logged.add(what)
            log.warning("refused a request for the host %r: %s", what, REFUSED.strip())
        return allowed


async def _refuse(scope: Scope, send: Send) -> None:
    if scope["type"] == "http":
        await _answer(send, "http", 403, REFUSED)
    elif "websocket.http.response" in scope.get("extensions", {}):
        await _answer(send, "websocket.http", 403, REFUSED)
    else:
        await send({"type": "websocket.close", "code": 1008})  # before the handshake: the server makes it a 403


async def _answer(send: Send, kind: str, status: int, text: str) -> None:
    body = text.encode()
    headers = [
        (b"content-type", b"text/plain; charset=utf-8"),
        (b"content-length", str(len(body)).encode()),
        (b"x-content-type-options", b"nosniff"),
    ]
    await send({"type": f"{kind}.response.start", "status": status, "headers": headers})
    await send({"type": f"{kind}.response.body", "body": body})
