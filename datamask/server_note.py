"""Where the dashboard of a runs folder answers: a note that its server leaves there, and takes away when it ends.

The note of a server that was killed stays, and another program may listen at its port by then. So a note is believed
only if somebody answers there as a dashboard does, with this server's own token.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import logging
import secrets
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

from datamask.errors import StoreError
from datamask.files import open_regular, write_text
from datamask.process import held

log = logging.getLogger(__name__)

NOTE = ".server.json"
TOKEN_PATH = "/datamask/server"
"""Asked at the server's address, this answers with its token."""

ANSWER_SECONDS = 2.0
LONGEST = 4096
"""Bytes of a note, and of an answer, that are looked at."""


def token() -> str:
    """What tells this server from every other, as long as its process lives. No secret: it opens nothing."""
    return held("server token", lambda: secrets.token_hex(16))


@contextlib.contextmanager
def noted(runs_dir: str | Path, address: str) -> Iterator[None]:
    """Inside the block a note in the runs folder says that this process serves it at `address`, which ends in a slash.

    Of several servers of one folder the last one is noted. Where the note cannot be written there is none.
    """
    path = Path(runs_dir) / NOTE
    try:
        write_text(path, json.dumps({"address": address, "token": token()}))
    except StoreError as error:
        log.warning("no note of this server is left: %s", error)
    try:
        yield
    finally:
        with contextlib.suppress(OSError):
            if (_read(path) or {}).get("token") == token():
                path.unlink()


def address_of(runs_dir: str | Path) -> str | None:
    """Where a dashboard of that folder answers now, ending in a slash; None: there is none."""
    note = _read(Path(runs_dir) / NOTE)
    if note is None:
        return None
    try:
        parts = urlsplit(note["address"])
        if parts.scheme not in ("http", "https"):
            return None
        # no proxy: it is this machine that is asked
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with opener.open(f"{parts.scheme}://{parts.netloc}{TOKEN_PATH}", timeout=ANSWER_SECONDS) as answer:
            same = answer.read(LONGEST).decode() == note["token"]
    except (OSError, ValueError, http.client.HTTPException):  # nobody, or somebody else
        return None
    return note["address"] if same else None


def _read(path: Path) -> dict[str, str] | None:
    """The note, where it is one."""
    try:
        with open_regular(path) as file:
            note = json.loads(file.read(LONGEST))
        return {name: str(note[name]) for name in ("address", "token")}
    except (OSError, ValueError, KeyError, TypeError, StoreError):
        return None
