"""The web server attacked: foreign names, cross-site requests, paths that climb, addresses that lie. And the other way
round: web servers that lie about a file which is read from them.

Every attack starts nothing of its own: one server serves a process's cases, on the loopback, and ends with it. A server
that lies lives as long as its case.
"""

from __future__ import annotations

import atexit
import contextlib
import gzip
import os
import random
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from urllib.parse import parse_qsl

from websockets.exceptions import InvalidStatus

from datamask.config import CorpusConfig
from datamask.corpus import open_corpus
from datamask.errors import DatamaskError
from datamask.storage import patience
from tests.e2e.serving import serving
from tests.e2e.test_server import ROUTES, ask
from tests.e2e.websocket_client import Visitor
from tests.making.runs import finish_run, write_shard
from tests.storage.elsewhere import Server, part_of
from tests.torture import materials
from tests.torture.contract import Finding, Part

FOREIGN = (
    "evil.example",
    "evil.example:8501",
    "localhost.evil.example",
    "127.0.0.1.evil.example",
    "10.1.2.3",
    "",
    "a b",
    "evil.example@127.0.0.1",
    "[2001:db8::1]",
    "\x7f",
    "127.0.0.1, evil.example",
)
FOREIGN_ORIGINS = ("http://evil.example", "null", "http://localhost", "http://127.0.0.1:8888", "https://127.0.0.2")
METHODS = ("GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH")
ROOTS = (
    "/media/",
    "/component/",
    "/_stcore/bidi-components/x/",
    "/_stcore/upload_file/",
    "/app/static/",
    "/static/",
    "/_stcore/",
    "/",
)
CLIMBS = (
    "../../../../etc/passwd",
    "..%2f..%2f..%2f..%2fetc%2fpasswd",
    "%2e%2e/%2e%2e/%2e%2e/etc/passwd",
    "..%5c..%5c..%5cetc%5cpasswd",
    "....//....//etc/passwd",
    "%252e%252e%252fetc%252fpasswd",
    "/etc/passwd",
    "//etc/passwd",
    "..;/..;/etc/passwd",
    "%00/etc/passwd",
    "./.streamlit/config.toml",
    "../requirements.txt",
    "..%c0%af..%c0%afetc/passwd",
    "~root/.bashrc",
    "file:///etc/passwd",
)
SECRETS = (b"root:", b"showEmailPrompt", b"torch==")
PAGES = {
    "": (
        "maps",
        "colour",
        "second",
        "third",
        "projection",
        "marks",
        "tab",
        "group",
        "lambda",
        "show",
        "search",
        "where",
        "region",
        "like",
        "corpus",
        "run",
        "rules",
        "sample",
        "x",
    ),
    "frontier": ("vary", "ratio", "run"),
    "runs": ("run", "watch", "corpus", "objective", "select_ratio", "rules"),
    "compare": ("runs", "projection", "marks", "compare_tab"),
    "evidence": ("evidence_tab", "runs", "run", "corpus"),
    "data": ("run", "corpus", "rules", "x"),
    "export": ("run",),
}
"""What stands in addresses, by page."""

ODD = (
    "",
    "x",
    "../../etc/passwd",
    "<script>alert(1)</script>",
    "%00",
    "\x00",
    "a" * 5000,
    "-1",
    "nan",
    "inf",
    "1e999",
    "9" * 400,
    "[]",
    "{}",
    "null",
    '[["quality",0,1]]',
    '[["quality",1e308,-1e308]]',
    '[["nope",0,1]]',
    '[["source",["x"]]]',
    "[" * 1700,
    "UMAP.lasso,0,0,1,1,000000999999000999",
    "UMAP.box,nan,0,1,1,0",
    "\u0663" * 3,
    "\u202e",
    ":red[x] $x$ `y`",
    "None",
    "0.5",
    ",".join("abcde"),
    "-",
    "é" * 300,
    "a\nb",
    "'; DROP TABLE runs",
    "~root",
)

LIES: dict[str, tuple[int | None, dict[str, str], Callable[[bytes], bytes]]] = {
    "none": (None, {"Content-Encoding": "identity"}, bytes),
    "gzip": (None, {"Content-Encoding": "gzip"}, gzip.compress),
    "an encoding that is none": (None, {"Content-Encoding": "gzip, br,,x"}, bytes),
    "more": (None, {}, lambda part: part + b"x" * (1 << 20)),
    "less": (None, {}, lambda part: part[:-1]),
    "a larger file": (None, {"Content-Range": f"bytes 0-0/{10**17}"}, bytes),
    "a smaller file": (None, {"Content-Range": "bytes 0-0/100"}, bytes),
    "another part": (None, {"Content-Range": "bytes 7-9/1000"}, bytes),
    "no number": (None, {"Content-Range": "bytes x-y/z"}, bytes),
    "a huge number": (None, {"Content-Range": f"bytes 0-0/{'9' * 400}"}, bytes),
    "a redirect": (302, {"Location": "{inner}/x.parquet"}, bytes),
    "a redirect to a file": (307, {"Location": "file:///etc/passwd"}, bytes),
    "a redirect to nowhere": (301, {}, bytes),
    "many headers": (None, {f"X-{number}": "a" * 500 for number in range(200)}, bytes),
    "a long header": (None, {"X": "a" * 100_000}, bytes),
    "no content": (204, {}, lambda part: b""),
    "no such status": (999, {}, bytes),
    "not changed": (304, {}, lambda part: b""),
}
"""What a server does -> its status (None: as an honest one), headers, and what it makes of the part asked for."""

ATTACKS = [("host", route, host, method) for route in ROUTES for host in FOREIGN for method in METHODS]
ATTACKS += [
    ("climb", root + climb, "", method) for root in ROOTS for climb in CLIMBS for method in ("GET", "PUT", "DELETE")
]
ATTACKS += [("socket", "", host, origin) for host in FOREIGN for origin in ("same", *FOREIGN_ORIGINS)]
ATTACKS += [("origin", route, origin, method) for route in ROUTES for origin in FOREIGN_ORIGINS for method in METHODS]
ATTACKS += [("query", page, name, value) for page, names in PAGES.items() for name in names for value in ODD]
ATTACKS += [("liar", lie, when, "") for lie in LIES for when in ("size", "parts", "all")]
# drawn in any order, the kinds mixed
random.Random(8).shuffle(ATTACKS)

_served: dict[str, object] = {}


def warm() -> None:
    """Start the server that all cases of a process are tried on."""
    _server()


def _server() -> dict:
    if not _served:
        stack = contextlib.ExitStack()
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        config = write_shard(folder / "shard.parquet")
        from datamask.dashboard.data.openings import opening_key
        from datamask.runs.store import RunStore

        corpus = open_corpus(config)
        run = finish_run(RunStore(folder / "runs"), corpus, config, corpus.quality)
        address, process = stack.enter_context(serving(folder, DATAMASK_ROOTS=str(folder)))
        _served.update(address=address, process=process, run=run.id, corpus=opening_key(config), folder=folder)
        atexit.register(stack.close)
    return _served


def run(number: int, folder: Path) -> str:
    """One attack; says how it was answered."""
    kind, *rest = ATTACKS[number]
    server = _server()
    answer = KINDS[kind](server, *rest)
    if not _lives(server["process"].pid):
        raise Finding(f"{describe(number)}: the server ended")
    return answer


def _lives(pid: int) -> bool:
    """Whether a process is there and has not ended; it is no child of a forked case, which so cannot wait for it."""
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    return False


def _host(server: dict, route: str, host: str, method: str) -> str:
    status, headers, _ = ask(server["address"], route, host or " ", method)
    if status not in (400, 403):
        raise Finding(f"{method} {route} for the host {host!r} was answered {status}, promised is 403")
    if status == 403 and "frame-ancestors 'self'" not in headers.get("content-security-policy", ""):
        raise Finding(f"{method} {route}: an answer without frame-ancestors")
    return "refused"


def _origin(server: dict, route: str, origin: str, method: str) -> str:
    status, headers, _ = ask(server["address"], route, method=method, Origin=origin)
    if status != 403 or "access-control-allow-origin" in headers:
        raise Finding(f"{method} {route} from a page of {origin} was answered {status}, promised is 403")
    return "refused"


def _liar(_: dict, lie: str, when: str, __: str) -> str:
    """Open a file of a server that lies where its size is asked for, its parts are, or both."""
    content = materials.corpus_file().read_bytes()
    inner = Server(lambda path, query, headers: part_of(content, headers))
    status, told, change = LIES[lie]

    def answer(path: str, query: dict, headers: Mapping[str, str]) -> tuple[int, dict, bytes]:
        honest = part_of(content, headers)
        if when == ("parts" if headers.get("Range") in (None, "bytes=0-0") else "size"):
            return honest
        leads = {name: value.replace("{inner}", inner.url) for name, value in told.items()}
        return status or honest[0], {**honest[1], **leads}, change(honest[2])

    liar = Server(answer)
    before = os.environ.get(patience.TRIES)
    os.environ[patience.TRIES] = "1"
    try:
        opened = open_corpus(CorpusConfig((f"{liar.url}/part-0.parquet",)))
    except DatamaskError:
        return "refused"
    finally:
        os.environ.pop(patience.TRIES)
        os.environ.update({} if before is None else {patience.TRIES: before})
        liar.close()
        inner.close()
        if inner.requests:
            raise Finding(f"{lie}, {when}: a redirect was followed from http://")
    if opened.fingerprint != open_corpus(CorpusConfig((str(materials.corpus_file()),))).fingerprint:
        raise Finding(f"{lie}, {when}: another corpus was read")
    return "drawn"


def _climb(server: dict, path: str, _: str, method: str) -> str:
    status, _, body = ask(server["address"], path, method=method)
    if any(secret in body for secret in SECRETS) or status >= 500:
        raise Finding(f"{method} {path} was answered {status}: {body[:80]!r}")
    return "refused" if status >= 400 else "the page"


def _socket(server: dict, _: str, host: str, origin: str) -> str:
    port = server["address"].rsplit(":", 1)[1]
    sent = f"http://{host}" if origin == "same" else origin
    try:
        status, *_ = ask(
            server["address"],
            "/_stcore/stream",
            host or " ",
            Origin=sent,
            Connection="Upgrade",
            Upgrade="websocket",
            Sec_WebSocket_Version="13",
            Sec_WebSocket_Key="AAAAAAAAAAAAAAAAAAAAAA==",
        )
    except TimeoutError:
        if host.isprintable():
            raise
        # the library drops a handshake whose header it cannot read, without an answer
        return "unanswered"
    if status not in (400, 403):
        raise Finding(f"a websocket for the host {host!r} from {sent!r} on port {port} was answered {status}")
    if origin != "same":
        try:
            Visitor(server["address"], origin=origin).socket.close()
        except InvalidStatus:
            return "refused"
        raise Finding(f"a websocket from {origin!r} was let in")
    return "refused"


def _query(server: dict, page: str, name: str, value: str) -> str:
    path, _, section = page.partition("?")
    parameters = {**dict(parse_qsl(section)), "corpus": server["corpus"], "run": server["run"], name: value}
    with Visitor(server["address"]) as visitor:
        visitor.draw(path, parameters)
        if visitor.faults() or not visitor.elements:
            raise Finding(
                f"/{page} with {name}={value[:60]!r}: {visitor.faults()[:1]}, {len(visitor.elements)} elements"
            )
        if "Traceback" in visitor.text():
            raise Finding(f"/{page} with {name}={value[:60]!r}: a traceback on the page")
    return "drawn"


KINDS = {"host": _host, "climb": _climb, "origin": _origin, "liar": _liar, "socket": _socket, "query": _query}


def describe(number: int) -> str:
    """An attack in words."""
    kind, *rest = ATTACKS[number]
    return f"{kind}: {' '.join(str(part)[:60] for part in rest)!r}"


PART = Part(
    "web",
    "the web server: foreign hosts, cross-site requests, climbing paths, odd addresses; servers that lie about a file",
    len(ATTACKS),
    run,
    1.0,
    describe,
)
