"""What maps fetch: parcels that pages keep here, each under an address that nobody can guess.

A parcel is of one corpus and goes with it. The address follows from the content and a secret of this server, so that a
page that is drawn again gives the same one, and a browser that has it does not ask.
"""

from __future__ import annotations

import functools
import hashlib
import hmac
import secrets
import threading
import weakref
from collections import OrderedDict, deque
from collections.abc import Callable
from typing import TYPE_CHECKING

from starlette.requests import Request
from starlette.responses import Response

from datamask.process import held

if TYPE_CHECKING:
    from datamask.corpus import Corpus

PATH = "datamask/parcel/"
"""What stands before an address, below the path of the pages; `browser/loader.js` asks there."""

MOST = 256 * 2**20
"""Bytes that a server keeps; those unused for longest go first."""

PROMISED = 64
"""Parcels that are made once somebody fetches them; the oldest go first."""

HEADERS = {
    "cache-control": "private, max-age=31536000, immutable",
    # as it is: gzip would take longer than a local network, and works anew at every request
    "content-encoding": "identity",
}


class Parcels:
    """Parcels by their address. All methods may be called from any thread."""

    def __init__(self, most: int = MOST) -> None:
        self._most, self._secret = most, secrets.token_bytes(32)
        self._bodies: OrderedDict[str, tuple[str, bytes]] = OrderedDict()
        self._size = 0
        self._corpora: dict[str, weakref.ref[Corpus]] = {}
        self._promised: OrderedDict[str, tuple[str, Callable[[str], bytes | None]]] = OrderedDict()
        self._gone: deque[str] = deque()
        self._lock = threading.Lock()

    def keep(self, corpus: Corpus, body: bytes) -> str:
        """Keep a parcel for as long as its corpus is there and others leave it room; gives its address."""
        address = self._address(corpus, body)
        with self._lock:
            self._know(corpus)
            self._put(address, corpus.identity, body)
        return address

    def promise(self, corpus: Corpus, content: bytes, make: Callable[[str], bytes | None]) -> str:
        """The address of a parcel that is made once it is fetched, and then kept as others are; goes with its corpus.

        Args:
            content: names what is in it. make: called in a thread of the server with what it was asked for, of which
                nothing is kept; None: it cannot be made now. It must not hold the corpus.
        """
        address = self._address(corpus, content)
        with self._lock:
            self._know(corpus)
            self._promised[address] = corpus.identity, make
            self._promised.move_to_end(address)
            while len(self._promised) > PROMISED:
                self._promised.popitem(last=False)
        return address

    def _know(self, corpus: Corpus) -> None:
        self._forget()
        if corpus.identity not in self._corpora:
            self._corpora[corpus.identity] = weakref.ref(corpus, functools.partial(self._leave, corpus.identity))

    def _address(self, corpus: Corpus, content: bytes) -> str:
        mac = hmac.new(self._secret, corpus.identity.encode(), hashlib.sha256)
        mac.update(content)
        return mac.hexdigest()

    def _put(self, address: str, name: str, body: bytes) -> None:
        if address not in self._bodies:
            self._bodies[address] = name, body
            self._size += len(body)
        self._bodies.move_to_end(address)
        while self._size > self._most:
            self._size -= len(self._bodies.popitem(last=False)[1][1])

    def body(self, address: str, at: str = "") -> bytes | None:
        """The parcel at an address; None where there is none, empty where it cannot be made now.

        Args:
            at: what a promised one is asked for.
        """
        with self._lock:
            self._forget()
            if address in self._bodies:
                self._bodies.move_to_end(address)
                return self._bodies[address][1]
            if address not in self._promised:
                return None
            name, make = self._promised[address]
        body = make(at)
        with self._lock:
            if body is not None and not at and name in self._corpora:
                self._put(address, name, body)
        return body or b""

    @property
    def size(self) -> int:
        """Bytes that are kept."""
        return self._size

    def _leave(self, name: str, _: object) -> None:
        # a corpus may be collected in the midst of what the lock protects: then whoever has it goes on to forget
        self._gone.append(name)
        if self._lock.acquire(blocking=False):
            try:
                self._forget()
            finally:
                self._lock.release()

    def _forget(self) -> None:
        """Let go of what corpora have left."""
        while self._gone:
            name = self._gone.popleft()
            self._corpora.pop(name, None)
            for address in [address for address, (of, _) in self._bodies.items() if of == name]:
                self._size -= len(self._bodies.pop(address)[1])
            for address in [address for address, (of, _) in self._promised.items() if of == name]:
                del self._promised[address]


def parcels() -> Parcels:
    """Those of this server."""
    return held("parcels", Parcels)


def answer(request: Request) -> Response:
    """Gives a parcel to whoever knows its address. No coroutine: a large one must not hold up the others' pages."""
    body = parcels().body(request.path_params["address"], request.query_params.get("at", ""))
    if body:
        return Response(body, headers=HEADERS)
    return Response(status_code=404 if body is None else 204, headers={"cache-control": "no-store"})
