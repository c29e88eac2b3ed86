"""Single files of the web, and repositories of the Hugging Face Hub, both by extra packages."""

from __future__ import annotations

import contextlib
import gzip
import hashlib
import itertools
import json
import socket
import socketserver
import subprocess
import sys
import threading
from urllib.parse import parse_qs

import huggingface_hub
import pyarrow.parquet as pq
import pytest

from datamask.config import CorpusConfig
from datamask.corpus import open_corpus
from datamask.corpus.remote_listing import file_stamps
from datamask.corpus.shards import list_files
from datamask.errors import InputError, RemoteError
from datamask.storage import patience, stores, web
from datamask.storage.patience import Patience
from tests.commands import ROOT, table
from tests.storage.elsewhere import Server, certificate, part_of


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    monkeypatch.setattr(patience, "FIRST_PAUSE", 0.01)
    monkeypatch.setenv("DATAMASK_REMOTE_TRIES", "2")
    stores._made.cache_clear()


@pytest.fixture
def content(tmp_path) -> bytes:
    pq.write_table(table(), tmp_path / "shard.parquet", row_group_size=100)
    return (tmp_path / "shard.parquet").read_bytes()


@pytest.fixture
def serve():
    """Starts servers, and ends them."""

    def start(answer, tls=None) -> Server:
        start.servers.append(Server(answer, tls))
        return start.servers[-1]

    start.servers = []
    yield start
    for server in start.servers:
        server.close()


def test_a_file_of_the_web_is_read_in_parts(serve, content, tmp_path):
    def answer(path, query, headers):
        if path != "/data/shard.parquet":
            return 404, {}, b""
        status, more, part = part_of(content, headers)
        return status, {**more, "ETag": f'"{query.get("version", "1")}"'}, part

    server = serve(answer)
    address = f"{server.url}/data/shard.parquet"
    here, elsewhere = (open_corpus(CorpusConfig((path,))) for path in (str(tmp_path), f"{address}?download=true"))
    assert here.fingerprint == elsewhere.fingerprint
    assert elsewhere.provenance.files == (f"{address}?download=true",)
    assert file_stamps([address]) == file_stamps([address]) != file_stamps([f"{address}?version=2"])
    with pytest.raises(InputError, match=r"no.parquet cannot be read as .*there is no such file"):
        open_corpus(CorpusConfig((f"{server.url}/data/no.parquet",)))


def test_a_pattern_of_the_web_is_a_name(serve):
    server = serve(lambda path, query, headers: (404, {}, b""))
    assert list_files([f"{server.url}/*.parquet"]) == (f"{server.url}/*.parquet",) and not server.requests


def test_servers_that_cannot_be_read_in_parts_are_refused(serve, content):
    whole = serve(lambda path, query, headers: (200, {}, content))
    with pytest.raises(InputError, match=r"shard.parquet cannot be read: .*range requests"):
        open_corpus(CorpusConfig((f"{whole.url}/shard.parquet",)))
    endless = serve(lambda path, query, headers: (200, {"Content-Length": "-5"}, content))
    with pytest.raises(InputError, match="its server does not tell its size; download it first"):
        open_corpus(CorpusConfig((f"{endless.url}/shard.parquet",)))


def test_refusals_and_faults_are_told_apart(serve):
    for status, error, words in ((403, RemoteError, "access is refused"), (500, RemoteError, "tried 2 times")):
        server = serve(lambda path, query, headers, status=status: (status, {}, b""))
        with pytest.raises(error, match=words):
            open_corpus(CorpusConfig((f"{server.url}/shard.parquet",)))
        assert len(server.requests) == (2 if status == 403 else 4)  # each try asks by HEAD, then by GET


@pytest.fixture
def secure(serve, tmp_path, monkeypatch):
    """Starts servers that speak TLS, which this process believes."""
    shown, believed = certificate(tmp_path)
    monkeypatch.setattr(web, "_context", lambda: believed)
    return lambda answer: serve(answer, shown)


def sent_on_to(*targets: str):
    """Answers that redirect to these addresses in turn, the last one for ever."""
    left = list(targets)
    return lambda path, query, headers: (302, {"Location": left.pop(0) if len(left) > 1 else left[0]}, b"moved")


def test_where_it_was_sent_on_to_is_not_told(secure, content, monkeypatch, tmp_path):
    monkeypatch.setattr(web, "is_public", lambda address: True)  # there is no other machine than this one
    (tmp_path / ".netrc").write_text("machine 127.0.0.1 login user password hunter3\n")
    monkeypatch.setenv("NETRC", str(tmp_path / ".netrc"))
    signed = secure(lambda path, query, headers: part_of(content, headers))
    server = secure(sent_on_to(f"{signed.url}/shard.parquet?X-Amz-Signature=hunter2"))
    corpus = open_corpus(CorpusConfig((f"{server.url}/shard.parquet",)))
    assert len(corpus) == len(table()) and signed.requests
    assert {headers["Authorization"] for _, headers in server.requests} == {web._basic("user", "hunter3")}
    assert not any("Authorization" in headers for _, headers in signed.requests)
    assert server.connections == signed.connections == 1  # however many requests there were

    failing = secure(lambda path, query, headers: (503, {}, b""))
    server = secure(sent_on_to(f"{failing.url}/shard.parquet?X-Amz-Signature=hunter2"))
    with pytest.raises(RemoteError, match="it is asked too often") as caught:
        open_corpus(CorpusConfig((f"{server.url}/shard.parquet",)))
    assert "hunter2" not in str(caught.value) and failing.requests


@pytest.mark.parametrize("target", ["{url}/x.parquet", "file:///etc/passwd", "//u:hunter2@{place}/x.parquet"])
def test_no_redirect_is_followed_from_http_nor_away_from_https(serve, secure, target):
    inner = serve(lambda path, query, headers: (200, {}, b"secret"))
    leads = target.format(url=inner.url, place=inner.url.partition("//")[2])
    for start in (serve, secure):
        server = start(sent_on_to(leads))
        with pytest.raises(InputError, match="redirects, which is followed from https:// to https:// alone") as caught:
            open_corpus(CorpusConfig((f"{server.url}/shard.parquet",)))
        assert not inner.requests and "hunter2" not in str(caught.value)


def test_no_redirect_reaches_a_private_network(secure, monkeypatch):
    inner = secure(lambda path, query, headers: (200, {}, b"secret"))
    resolve = socket.getaddrinfo

    def rebinding(host, port, *args, **more):
        return resolve("127.0.0.1" if host == "cdn.example" else host, port, *args, **more)

    monkeypatch.setattr(socket, "getaddrinfo", rebinding)
    for host in ("127.0.0.1", "localhost", "cdn.example", "127.1", "2130706433", "[::1]", "[::ffff:127.0.0.1]"):
        server = secure(sent_on_to(f"https://{host}:{inner.port}/x.parquet"))
        with pytest.raises(InputError, match="its server redirects into a private network"):
            open_corpus(CorpusConfig((f"{server.url}/shard.parquet",)))
        assert not inner.connections, host


def test_a_redirect_through_a_proxy_does_not_reach_a_private_network(secure, serve, monkeypatch):
    inner = secure(lambda path, query, headers: (200, {}, b"secret"))
    proxy = serve(lambda path, query, headers: (200, {}, b""))
    patient = Patience(1, 5.0)
    target = web._Target.parse(f"{inner.url}/x.parquet")
    with pytest.raises(ValueError, match="its server redirects into a private network"):
        web._new_connection(target, proxy.url, True, patient.seconds)
    monkeypatch.setenv("no_proxy", "")
    monkeypatch.setenv("http_proxy", proxy.url.replace("//", "//user:word@"))
    answer = web.Web(patient).get("http://data.example/a b/é.parquet?x=1", 10)
    assert answer.status == 200 and proxy.requests[0][0] == "/a b/é.parquet"
    sent = proxy.requests[0][1]
    assert (sent["Host"], sent["Proxy-Authorization"]) == ("data.example", web._basic("user", "word"))


def test_redirects_end(secure, monkeypatch):
    monkeypatch.setattr(web, "is_public", lambda address: True)
    server = secure(sent_on_to("/shard.parquet"))
    with pytest.raises(InputError, match="its server redirects more than 10 times"):
        open_corpus(CorpusConfig((f"{server.url}/shard.parquet",)))


@pytest.mark.parametrize(
    "address, public",
    [
        ("93.184.216.34", True),
        ("2606:2800:220:1::1", True),
        ("64:ff9b::5db8:d822", True),
        *((inner, False) for inner in ("127.0.0.1", "10.1.2.3", "172.16.0.1", "192.168.1.1", "169.254.169.254")),
        *((inner, False) for inner in ("0.0.0.0", "100.64.0.1", "224.0.0.1", "255.255.255.255", "::", "::1")),
        *((inner, False) for inner in ("fe80::1%eth0", "fd00::1", "ff02::1", "::ffff:10.0.0.1", "2002:7f00:1::1")),
        *((inner, False) for inner in ("64:ff9b::7f00:1", "64:ff9b::a9fe:a9fe")),
    ],
)
def test_addresses_of_the_internet_are_told_from_others(address, public):
    assert web.is_public(address) is public


@pytest.mark.parametrize("encoding", ["gzip", "GZIP", "identity, br", "zstd", "x-y"])
def test_an_encoded_answer_is_refused(serve, content, encoding):
    def answer(path, query, headers):
        status, more, part = part_of(content, headers)
        # only of parts: a server may say another thing to HEAD
        return status, {**more, "Content-Encoding": encoding} if status == 206 else more, gzip.compress(part)

    server = serve(answer)
    with pytest.raises(InputError, match="its server sends it encoded, which it was asked not to do"):
        open_corpus(CorpusConfig((f"{server.url}/shard.parquet",)))
    assert all(headers["Accept-Encoding"] == "identity" for _, headers in server.requests)


def test_one_byte_more_than_was_asked_for_is_read_at_most(serve, content):
    server = serve(lambda path, query, headers: (206, {"Content-Range": "bytes 5-9/1000"}, b"x" * 100_000))
    assert web.Web(Patience()).part(f"{server.url}/x", 5, 5) == b"x" * 6
    server = serve(lambda path, query, headers: (*part_of(content, headers)[:2], content * 2))
    with pytest.raises(InputError, match="its server sends more than was asked for"):
        open_corpus(CorpusConfig((f"{server.url}/shard.parquet",)))


def test_another_part_than_was_asked_for_is_refused(serve, content):
    def answer(path, query, headers):
        status, more, part = part_of(content, headers)
        return status, more | ({"Content-Range": f"bytes 0-{len(part) - 1}/{len(content)}"} if part else {}), part

    with pytest.raises(InputError, match="its server sends another part"):
        open_corpus(CorpusConfig((f"{serve(answer).url}/shard.parquet",)))


def test_a_connection_that_the_server_ended_meanwhile_is_made_anew(serve, content):
    server = serve(lambda path, query, headers: part_of(content, headers))
    asks = web.Web(Patience())
    assert asks.part(f"{server.url}/x", 0, 5) == asks.part(f"{server.url}/x", 0, 5) and server.connections == 1
    for _, idle in asks._idle:
        idle.sock.shutdown(socket.SHUT_RDWR)
    assert asks.part(f"{server.url}/x", 0, 5) == content[:5] and server.connections == 2


def test_of_many_servers_few_connections_are_kept(serve, monkeypatch):
    monkeypatch.setattr(web, "MOST_IDLE", 2)
    asks = web.Web(Patience())
    for server in [serve(lambda path, query, headers: part_of(bytes(10), headers)) for _ in range(3)] * 2:
        assert asks.part(f"{server.url}/x", 0, 5) == bytes(5) and len(asks._idle) <= 2


@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.1 100 Continue\r\n\r\n" * 1000,
        b"HTTP/1.1 206 Partial Content\r\n" + b"X-Slow: " + b"y" * 60_000,
        b"HTTP/1.1 206 Partial Content\r\nContent-Length: 1000000\r\n\r\n" + b"x" * 1000,
    ],
)
def test_an_answer_that_never_ends_is_given_up(monkeypatch, answer):
    """Also where each byte of it comes in time."""
    monkeypatch.setattr(patience, "FIRM", 2.0)
    over = threading.Event()

    class Slow(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            with contextlib.suppress(OSError):
                for place in itertools.cycle(range(0, len(answer), 100)):
                    self.request.sendall(answer[place : place + 100])
                    if over.wait(0.02):
                        return

    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Slow) as server:
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
        with pytest.raises(TimeoutError, match="it comes too slowly"):
            web.Web(Patience(1, 0.2)).part(f"http://127.0.0.1:{server.server_address[1]}/x", 0, 999_999)
        over.set()
        server.shutdown()


@pytest.mark.parametrize("moved", [False, True])
def test_a_repository_of_the_hub_is_listed_and_read(serve, secure, content, tmp_path, monkeypatch, moved):
    """Its files come from itself, or as those of huggingface.co do: from another server, over https."""
    files = {"data/shard.parquet": content, "data/more/other.parquet": content, "notes.txt": b"x"}
    repository = "/api/datasets/user/name"

    def entry(path: str) -> dict[str, object]:
        known = files.get(path)
        kind = {"type": "directory", "size": 0} if known is None else {"type": "file", "size": len(known)}
        return {**kind, "path": path, "oid": hashlib.sha1(path.encode()).hexdigest()}

    def answer(path, query, headers):
        json_type = {"Content-Type": "application/json"}
        if path.startswith(f"{repository}/tree/main"):
            folder = path.removeprefix(f"{repository}/tree/main").strip("/")
            start = len(folder) + 1 if folder else 0
            below = [file for file in files if file.startswith(folder)]
            names = dict.fromkeys(file[:start] + file[start:].partition("/")[0] for file in below)
            return (200, json_type, json.dumps([entry(name) for name in names]).encode()) if names else (404, {}, b"{}")
        if path == f"{repository}/paths-info/main":
            asked = parse_qs(hub.bodies[-1].decode()).get("paths", [])
            there = [entry(name) for name in asked if any(file.startswith(name) for file in files)]
            return 200, json_type, json.dumps(there).encode()
        if path.startswith("/datasets/user/name/resolve/main/"):
            assert headers["Authorization"] == "Bearer hf_hunter2"
            if moved:
                return 302, {"Location": f"{delivering.url}{path}?X-Amz-Signature=hunter3"}, b""
            return part_of(files[path.removeprefix("/datasets/user/name/resolve/main/")], headers)
        if path == repository:
            return 200, json_type, json.dumps({"id": "user/name", "sha": "a" * 40}).encode()
        return 404, {"X-Error-Code": "RepoNotFound"}, b"{}"

    start = secure if moved else serve
    hub = start(answer)
    delivering = start(lambda path, query, headers: part_of(files["data/shard.parquet"], headers))
    monkeypatch.setattr(web, "is_public", lambda address: True)  # there is no other machine than this one
    monkeypatch.setenv("HF_ENDPOINT", hub.url)
    monkeypatch.setenv("HF_TOKEN", "hf_hunter2")
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "certificate.pem"))
    huggingface_hub.close_session()
    root = "hf://datasets/user/name"
    assert list_files([root]) == (f"{root}/data/more/other.parquet", f"{root}/data/shard.parquet")
    assert list_files([f"{root}/*/*.parquet"]) == (f"{root}/data/shard.parquet",)
    here, elsewhere = (open_corpus(CorpusConfig((path,))) for path in (str(tmp_path), f"{root}/data/shard.parquet"))
    assert here.fingerprint == elsewhere.fingerprint
    with pytest.raises(InputError, match="does not exist"):
        list_files([f"{root}/no.parquet"])
    assert not any("Authorization" in headers for _, headers in delivering.requests)
    assert bool(delivering.requests) == moved
    huggingface_hub.close_session()


@pytest.mark.parametrize("scheme, package", [("hf", "huggingface_hub")])
def test_what_is_not_installed_is_named(monkeypatch, scheme, package):
    monkeypatch.setitem(sys.modules, package, None)
    words = rf'addresses of {scheme}:// need the package {package}, .*pip install "datamask\[{scheme}\]"'
    with pytest.raises(InputError, match=words):
        open_corpus(CorpusConfig((f"{scheme}://datasets/user/name/shard.parquet",)))


def test_reading_from_the_disk_imports_none_of_it(tmp_path, content):
    code = (
        "import sys; from datamask.config import CorpusConfig; from datamask.corpus import open_corpus; "
        f"open_corpus(CorpusConfig(({str(tmp_path)!r},))); "
        "print([name for name in ('aiohttp', 'fsspec', 'huggingface_hub', 'google.auth') if name in sys.modules])"
    )
    ended = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert ended.stdout.strip() == "[]"
