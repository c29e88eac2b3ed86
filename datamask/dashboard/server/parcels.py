"""What maps fetch: parcels that pages keep here, each under an address that nobody can guess.

A parcel is of one corpus and goes with it. The address follows from the content and a secret of this server, so that a
page that is drawn again gives the same one, and a browser that has it does not ask.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
import threading
import weakref
from collections import OrderedDict, deque
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
        self._gone: deque[str] = deque()
        self._lock = threading.Lock()

    def keep(self, corpus: Corpus, body: bytes) -> str:
        """Keep a parcel for as long as its corpus is there and others leave it room; gives its address."""
        name = corpus.identity
        mac = hmac.new(self._secret, name.encode(), hashlib.sha256)
        mac.update(body)
        address = mac.hexdigest()
        with self._lock:
            self._forget()
            if name not in self._corpora:
                self._corpora[name] = weakref.ref(corpus, lambda _: self._leave(name))
            if address not in self._bodies:
                self._bodies[address] = name, body
                self._size += len(body)
            self._bodies.move_to_end(address)
            while self._size > self._most:
                self._size -= len(self._bodies.popitem(last=False)[1][1])
        return address

    def body(self, address: str) -> bytes | None:
        """The parcel at an address; None where there is none."""
        with self._lock:
            self._forget()
            if address not in self._bodies:
                return None
            self._bodies.move_to_end(address)
            return self._bodies[address][1]

    @property
    def size(self) -> int:
        """Bytes that are kept."""
        return self._size

    def _leave(self, name: str) -> None:
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


def parcels() -> Parcels:
    """Those of this server."""
    return held("parcels", Parcels)


def answer(request: Request) -> Response:
    """Gives a parcel to whoever knows its address. No coroutine: a large one must not hold up the others' pages."""
    body = parcels().body(request.path_params["address"])
    return Response(status_code=404) if body is None else Response(body, headers=HEADERS)
