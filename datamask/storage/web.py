"""Requests to web servers, whose answers are taken only as they were asked for.

- **Redirects.** The address that a redirect names was chosen by a server, not by a person. So a redirect is followed
  from https:// to https:// alone, and never into a private network: each connection that follows a redirect is made to
  an IP address that was checked, so that a name which resolves differently a second time (DNS rebinding) gains nothing.
- **Encodings.** An encoded answer is refused, because a megabyte of gzip may hold a gigabyte. Nothing here decodes.
- **Size.** No more is read than the caller's limit, however much the server sends.

Connections are kept and used again. They obey HTTP_PROXY, HTTPS_PROXY and NO_PROXY; behind a proxy, which resolves
names itself, a redirect's target is checked as far as this machine can resolve it.
"""

from __future__ import annotations

import base64
import contextlib
import functools
import http
import http.client
import io
import ipaddress
import netrc
import os
import re
import socket
import ssl
import threading
import time
import urllib.parse
import urllib.request
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

from datamask.storage.patience import Patience

REDIRECTS = (301, 302, 303, 307, 308)
MOST_REDIRECTS = 10
LONGEST_CONNECT = 10.0
"""Seconds until one IP address of a server must have taken a connection."""

MOST_IDLE = 16
"""Connections that are kept while nothing is read, to all servers together: redirects may name many."""

SMALL_BODY = 64 << 10
"""Bytes of an answer that are read to keep its connection although the content is not needed."""

NONE: Mapping[str, str] = MappingProxyType({})
_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")


class StatusError(OSError):
    """A server answered with a status that is no success. status: its number."""

    def __init__(self, status: int) -> None:
        # in the standard's words: the server's own may say anything
        with_phrase = f"{status} {http.HTTPStatus(status).phrase}" if status in set(http.HTTPStatus) else str(status)
        super().__init__(with_phrase)
        self.status = status


@dataclass(frozen=True)
class Answer:
    """What a server sent.

    Attributes:
        status: 200, 206 or 416. headers: by name, in any case.
        content: the body, as far as it was asked for.
    """

    status: int
    headers: http.client.HTTPMessage
    content: bytes

    @property
    def size(self) -> int | None:
        """Bytes of the whole file; None: the server does not say."""
        span = self.headers.get("Content-Range", "")
        text = span.rpartition("/")[2] if span or self.status != 200 else self.headers.get("Content-Length", "")
        return int(text) if re.fullmatch(r"[0-9]{1,18}", text.strip()) else None


@dataclass(frozen=True)
class _Target:
    """Where one request goes. authority: host and port as the address writes them; path: with its query."""

    scheme: str
    host: str
    port: int
    authority: str
    path: str

    @classmethod
    def parse(cls, url: str) -> _Target:
        """Take the address of a request apart.

        Raises:
            ValueError: it has no server, or a port that is no number.
        """
        parts = urllib.parse.urlsplit(url)
        if not parts.hostname:
            raise ValueError("its address names no server")
        host = parts.hostname if parts.hostname.isascii() else parts.hostname.encode("idna").decode()
        port = parts.port or (443 if parts.scheme == "https" else 80)
        shown = f"[{host}]" if ":" in host else host
        path = _quoted(parts.path or "/", "/") + (f"?{_quoted(parts.query, '/?')}" if parts.query else "")
        return cls(parts.scheme, host, port, f"{shown}:{parts.port}" if parts.port else shown, path)

    @property
    def origin(self) -> tuple[str, str, int]:
        return self.scheme, self.host, self.port


def _quoted(text: str, more: str) -> str:
    """A path or query with what may not stand there as it is encoded; what is encoded stays."""
    return urllib.parse.quote(re.sub(r"%(?![0-9A-Fa-f]{2})", "%25", text), safe=f"%!$&'()*+,;=:@~{more}")


class Web:
    """Asks web servers. Thread-safe.

    Args:
        patience: how long a server may be silent, and one answer may take.
    """

    def __init__(self, patience: Patience) -> None:
        self._patience = patience
        self._idle: list[tuple[Sequence[object], http.client.HTTPConnection]] = []
        self._lock = threading.Lock()

    def get(
        self,
        url: str,
        most: int,
        headers: Mapping[str, str] = NONE,
        authorization: str | None = None,
        method: str = "GET",
    ) -> Answer:
        """Ask for a file, and follow redirects where that is safe.

        Args:
            url: ``http://`` or ``https://``.
            most: bytes of the answer that are read.
            headers: besides those that every request has.
            authorization: goes to the server of `url` alone.
            method: ``HEAD`` where no content is needed.

        Raises:
            StatusError: any status but 200, 206 and 416. ValueError: the answer is encoded, or leads where no redirect
                is followed. OSError, HTTPException: the server cannot be reached, or breaks off.
        """
        target = _Target.parse(url)
        first = target.origin
        for redirects in range(MOST_REDIRECTS + 1):
            given = {"Authorization": authorization} if authorization and target.origin == first else {}
            answer = self._ask(target, {**headers, **given}, method, most, redirected=redirects > 0)
            if answer.status not in REDIRECTS:
                break
            # headers are bytes to the library; an address that is not quoted is mostly UTF-8
            leads = answer.headers.get("Location", "").encode("latin-1", "replace").decode(errors="replace")
            url = urllib.parse.urljoin(url, leads)
            target = _followed(target, url)
            if target.origin != first:
                authorization = None  # not even where a later redirect leads back
        else:
            raise ValueError(f"its server redirects more than {MOST_REDIRECTS} times")
        if answer.status not in (200, 206, 416):
            raise StatusError(answer.status)
        return answer

    def part(self, url: str, offset: int, count: int, authorization: str | None = None) -> bytes:
        """So many bytes of a file from there: fewer at its end, one more where the server sends too much.

        Raises:
            ValueError: the server sends another part, or only whole files. Others: as `get`.
        """
        answer = self.get(url, count + 1, {"Range": f"bytes={offset}-{offset + count - 1}"}, authorization)
        if answer.status == 206:
            start = re.match(r"bytes (\d+)-", answer.headers.get("Content-Range", ""))
            if start is not None and int(start[1]) != offset:
                raise ValueError("its server sends another part than it was asked for; download it first")
            return answer.content
        if offset or answer.status != 200:
            raise ValueError("its server does not answer range requests; download it first")
        return answer.content[:count]

    def _ask(self, target: _Target, headers: Mapping[str, str], method: str, most: int, redirected: bool) -> Answer:
        """One request, without a look at where its answer leads."""
        proxy = _proxy_of(target)
        # a forked process must not speak on its parent's connections; one that was not checked is not for redirects
        kept: Sequence[object] = (os.getpid(), *target.origin, proxy, redirected)
        place = target.path if proxy is None or target.scheme == "https" else f"http://{target.authority}{target.path}"
        sent = {"Host": target.authority, "Accept-Encoding": "identity", "User-Agent": "datamask", **headers}
        if proxy is not None and target.scheme == "http":
            sent.update(_proxy_authorization(proxy))
        connection = self._take(kept)
        if connection is not None:
            try:
                return self._exchange(connection, kept, method, place, sent, most)
            except ConnectionError:  # the server ended it while it was idle
                connection.close()
        connection = _new_connection(target, proxy, redirected, self._patience.seconds)
        return self._exchange(connection, kept, method, place, sent, most)

    def _exchange(
        self,
        connection: http.client.HTTPConnection,
        kept: Sequence[object],
        method: str,
        place: str,
        headers: Mapping[str, str],
        most: int,
    ) -> Answer:
        deadline = time.monotonic() + self._patience.longest
        connection.response_class = functools.partial(_Response, deadline)  # type: ignore[assignment]
        try:
            connection.putrequest(method, place, skip_host=True, skip_accept_encoding=True)
            for name, value in headers.items():
                connection.putheader(name, value)
            connection.endheaders()
            response = connection.getresponse()
            success = response.status in (200, 206, 416)
            if success:
                _refuse_encoding(response.headers)
            content = _read(response, most if success else SMALL_BODY)
            whole = response.isclosed()
        except BaseException:
            connection.close()
            raise
        if whole and not response.will_close:
            self._give(kept, connection)
        else:
            connection.close()
        return Answer(response.status, response.headers, content)

    def _take(self, kept: Sequence[object]) -> http.client.HTTPConnection | None:
        """The connection of that kind that was used last."""
        with self._lock:
            places = [place for place, (kind, _) in enumerate(self._idle) if kind == kept]
            return self._idle.pop(places[-1])[1] if places else None

    def _give(self, kept: Sequence[object], connection: http.client.HTTPConnection) -> None:
        with self._lock:
            self._idle.append((kept, connection))
            surplus, self._idle = self._idle[:-MOST_IDLE], self._idle[-MOST_IDLE:]
        for _, other in surplus:
            other.close()


class _Response(http.client.HTTPResponse):
    """An answer that comes before a deadline: each of endless headers may be quick, and so each byte of a body.

    Raises:
        TimeoutError: from any read, after the deadline.
    """

    def __init__(self, deadline: float, sock: socket.socket, *args: Any, **more: Any) -> None:
        super().__init__(sock, *args, **more)
        self.fp = io.BufferedReader(_Timed(self.fp.detach(), deadline))


class _Timed(io.RawIOBase):
    """The bytes of a socket until a deadline."""

    def __init__(self, raw: io.RawIOBase, deadline: float) -> None:
        self._raw, self._deadline = raw, deadline

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int | None:  # type: ignore[override]
        if time.monotonic() > self._deadline:
            raise TimeoutError("no answer in time: it comes too slowly")
        return self._raw.readinto(buffer)

    def close(self) -> None:
        self._raw.close()
        super().close()


def _read(response: http.client.HTTPResponse, most: int) -> bytes:
    """The body, at most so many bytes of it; fewer where the server breaks off."""
    pieces = []
    with contextlib.suppress(http.client.IncompleteRead):
        while most and (piece := response.read1(min(most, 1 << 20))):
            pieces.append(piece)
            most -= len(piece)
        if response.length == 0:
            response.close()  # at its end; the library notices that in the next read alone
    return b"".join(pieces)


def _refuse_encoding(headers: http.client.HTTPMessage) -> None:
    encodings = ",".join(headers.get_all("Content-Encoding", ())).lower().split(",")
    if any(encoding.strip() not in ("", "identity") for encoding in encodings):
        raise ValueError("its server sends it encoded, which it was asked not to do; download it first")


# -- redirects ---------------------------------------------------------------------------------------------------------


def _followed(target: _Target, url: str) -> _Target:
    """Where a redirect leads.

    Raises:
        ValueError: it is not followed.
    """
    parts = urllib.parse.urlsplit(url)
    if (target.scheme, parts.scheme) != ("https", "https") or parts.username is not None:
        raise ValueError(
            "its server redirects, which is followed from https:// to https:// alone; name the address where it leads"
        )
    return _Target.parse(url)


def is_public(address: str) -> bool:
    """Whether an IP address is one of the internet: not private, of the loopback, link-local, or reserved."""
    ip = ipaddress.ip_address(address.partition("%")[0])
    if isinstance(ip, ipaddress.IPv6Address):
        inner = ip.ipv4_mapped or ip.sixtofour
        if inner is None and ip in _NAT64:
            inner = ipaddress.IPv4Address(int(ip) & 0xFFFFFFFF)
        if inner is not None:
            ip = inner
    return ip.is_global and not ip.is_multicast


def _refuse_inner(address: str) -> None:
    """Refuse to follow a redirect there.

    Raises:
        ValueError: it is no address of the internet. The sentence does not tell it: it may be the name of a machine of
            an inner network that a visitor is not to learn.
    """
    if not is_public(address):
        raise ValueError("its server redirects into a private network, which is never followed; name the file itself")


# -- connections -------------------------------------------------------------------------------------------------------


def _new_connection(target: _Target, proxy: str | None, redirected: bool, seconds: float) -> http.client.HTTPConnection:
    """A connection to a server, not made yet.

    Raises:
        ValueError: a redirect leads there through a proxy, and into a private network.
    """
    if proxy is None:
        host, port = target.host, target.port
    else:
        parts = urllib.parse.urlsplit(proxy)
        host, port = parts.hostname or "", parts.port or 80
        if redirected:
            with contextlib.suppress(socket.gaierror):  # a name that only the proxy's network knows
                for *_, place in socket.getaddrinfo(target.host, target.port, type=socket.SOCK_STREAM):
                    _refuse_inner(str(place[0]))
    connection: http.client.HTTPConnection
    if target.scheme == "https":
        connection = http.client.HTTPSConnection(host, port, timeout=seconds, context=_context())
        if proxy is not None:
            connection.set_tunnel(target.host, target.port, _proxy_authorization(proxy))
    else:
        connection = http.client.HTTPConnection(host, port, timeout=seconds)
    # the place where http.client asks for its socket, below TLS
    connection._create_connection = functools.partial(  # type: ignore[attr-defined]
        _dial, checked=redirected and proxy is None
    )
    return connection


def _dial(place: tuple[str, int], timeout: float, source: None = None, *, checked: bool) -> socket.socket:
    """A socket that is connected to the first IP address of a server that takes it.

    Raises:
        ValueError: `checked`, and one of them is of a private network. OSError: none takes it.
    """
    problem: OSError = OSError("Name or service not known")
    for family, kind, protocol, _, found in socket.getaddrinfo(*place, type=socket.SOCK_STREAM):
        if checked:
            _refuse_inner(str(found[0]))
        connected = socket.socket(family, kind, protocol)
        try:
            connected.settimeout(min(timeout, LONGEST_CONNECT))
            connected.connect(found)
            connected.settimeout(timeout)
            return connected
        except OSError as error:
            connected.close()
            problem = error
    raise problem


@functools.cache
def _context() -> ssl.SSLContext:
    return ssl.create_default_context()


def _proxy_of(target: _Target) -> str | None:
    """The proxy that the environment names for a server."""
    proxy = urllib.request.getproxies().get(target.scheme)
    if not proxy or urllib.request.proxy_bypass(target.host):
        return None
    return proxy if "://" in proxy else f"http://{proxy}"


def _proxy_authorization(proxy: str) -> dict[str, str]:
    parts = urllib.parse.urlsplit(proxy)
    if parts.username is None:
        return {}
    user, password = (urllib.parse.unquote(text or "") for text in (parts.username, parts.password))
    return {"Proxy-Authorization": _basic(user, password)}


def login_of(url: str) -> str | None:
    """The Authorization header for the user whom ``~/.netrc``, or the file that NETRC names, has for a server."""
    host = _Target.parse(url).host
    path = Path(os.environ.get("NETRC") or "~/.netrc").expanduser()
    try:
        found = netrc.netrc(str(path)).authenticators(host)
    except (OSError, netrc.NetrcParseError):
        return None
    return _basic(found[0] or "", found[2] or "") if found else None


def _basic(user: str, password: str) -> str:
    return "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()
