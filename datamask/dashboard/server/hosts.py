"""Which names this server answers to, whose pages may ask it, and what it sends with every answer.

A page of a foreign site can point its own name at this machine (DNS rebinding); the browser then takes the dashboard
for a part of that site and lets it read everything. Only the Host header tells: it still carries the foreign name. So
every request, of a page, a file or a websocket, is refused unless its Host is one this server goes by.

A page can also open a websocket to any address. The browser then names the page's origin, and Streamlit lets every
port of the loopback pass. Another program of this machine may serve such a page, so a request from a page of another
origin is refused here.
"""

from __future__ import annotations

import contextlib
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
    "This server does not answer to that host name. If the name is yours, start the server with "
    "--server.allowedHosts NAME, or list it under [server] allowedHosts in .streamlit/config.toml.\n"
)
REFUSED_ORIGIN = (
    "This server does not answer pages of another origin. If the page is yours, list its origin, such as "
    "http://localhost:8888, under [server] corsAllowedOrigins in .streamlit/config.toml. A proxy must pass on "
    "the Host header.\n"
)
FAILED = "The server failed on this request. See its log.\n"

LOGGED = 20
"""Refused names and origins that are written to the log; a scanner tries thousands."""

WEB_PORTS = {"http": 80, "https": 443}
"""Scheme -> the port of an address without one."""

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
        published: the name at which a proxy serves these pages, at any port, also where it sends on another Host.
        origins: what `server.corsAllowedOrigins` lists: pages of these origins may ask, too.
        any_origin: pages of any origin may ask.
    """

    listed: tuple[str, ...] = ()
    own: tuple[str, ...] = ()
    addresses: bool = False
    published: str | None = None
    origins: tuple[str, ...] = ()
    any_origin: bool = False

    def allow(self, host: str) -> bool:
        """Whether a request with this Host header is meant for this server."""
        name = host_name(host)
        if name is None:
            return False
        if self.listed:
            return any(_matches(name, pattern) for pattern in self.listed)
        return _is_local(name) or name in self.own or (self.addresses and _is_address(name))

    def allow_origin(self, origin: str, host: str) -> bool:
        """Whether a page of that origin may ask this server.

        Args:
            origin: the Origin header. host: the Host header of the same request.
        """
        if self.any_origin or origin in self.origins:
            return True
        scheme, _, place = origin.partition("://")
        name, port = host_name(place), WEB_PORTS.get(scheme)
        if name is None or port is None:
            return False
        if (name, urlsplit(f"//{place}").port or port) == (host_name(host), urlsplit(f"//{host}").port or port):
            return True
        # the port tells programs of this machine apart
        return name == self.published and not _is_local(name)


def _is_local(name: str) -> bool:
    """Whether a name or address is one of the loopback's."""
    if _is_address(name):
        return ipaddress.ip_address(name).is_loopback
    return name in LOCAL_NAMES or name.endswith(".localhost")


def _is_address(name: str) -> bool:
    with contextlib.suppress(ValueError):
        return bool(ipaddress.ip_address(name))
    return False


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


def hosts_of(
    address: str | None,
    listed: Iterable[str],
    browser_address: str | None = None,
    origins: Iterable[str] = (),
    any_origin: bool = False,
) -> Hosts:
    """The names of a server.

    Args:
        address: what it listens on; None: on everything.
        listed: `server.allowedHosts`.
        browser_address: `browser.serverAddress` where it is set: what people type.
        origins, any_origin: as `Hosts` has them.
    """
    named = [name.lower().rstrip(".") for name in (address, browser_address) if name]
    loopback = address is not None and Hosts().allow(f"[{address}]" if ":" in address else address)
    if not loopback:
        machine = socket.gethostname().lower().split(".")[0]
        named += [socket.gethostname().lower(), machine, f"{machine}.local"]
    return Hosts(
        tuple(listed),
        tuple(named),
        addresses=not loopback,
        published=browser_address.lower().rstrip(".") if browser_address else None,
        origins=tuple(origin.strip() for origin in origins),
        any_origin=any_origin,
    )


def _matches(name: str, pattern: str) -> bool:
    pattern = pattern.strip().lower().rstrip(".")
    if pattern.startswith("*."):
        return name.endswith(pattern[1:])
    return pattern in ("*", name)


class Doorkeeper:
    """ASGI middleware: refuses a foreign Host or Origin with 403 and adds `HEADERS` to every answer.

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

        refusal = self._refusal(scope)
        if refusal is not None:
            await _refuse(scope, stamped, refusal)
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

    def _refusal(self, scope: Scope) -> str | None:
        """Why a request is refused, in a sentence; None: it is let through."""
        if self._known is None:
            self._known = self._hosts()
        hosts, origins = _values(scope, b"host"), _values(scope, b"origin")
        if len(hosts) != 1 or not self._known.allow(hosts[0]):
            self._log("the host", hosts, REFUSED)
            return REFUSED
        # only browsers send an origin, and they send one
        if len(origins) > 1 or (origins and not self._known.allow_origin(origins[0], hosts[0])):
            self._log("pages of", origins, REFUSED_ORIGIN)
            return REFUSED_ORIGIN
        return None

    def _log(self, kind: str, values: list[str], refusal: str) -> None:
        what = f"{kind} {', '.join(values)[:100]!r}"
        if len(self._logged) < LOGGED and what not in self._logged:
            self._logged.add(what)
            log.warning("refused a request for %s: %s", what, refusal.strip())


def _values(scope: Scope, wanted: bytes) -> list[str]:
    """What the headers of one name say."""
    return [value.decode("latin-1") for name, value in scope["headers"] if name.lower() == wanted]


async def _refuse(scope: Scope, send: Send, refusal: str) -> None:
    if scope["type"] == "http":
        await _answer(send, "http", 403, refusal)
    elif "websocket.http.response" in scope.get("extensions", {}):
        await _answer(send, "websocket.http", 403, refusal)
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
