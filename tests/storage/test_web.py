"""Single files of the web, and repositories of the Hugging Face Hub, both by extra packages."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from urllib.parse import parse_qs

import pyarrow.parquet as pq
import pytest

from datamask.config import CorpusConfig
from datamask.corpus import open_corpus
from datamask.corpus.remote_listing import file_stamps
from datamask.corpus.shards import list_files
from datamask.errors import InputError, RemoteError
from datamask.storage import patience, stores
from tests.commands import ROOT, table
from tests.storage.elsewhere import Server, part_of


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

    def start(answer) -> Server:
        start.servers.append(Server(answer))
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
    endless = serve(lambda path, query, headers: (200, {"Content-Encoding": "gzip"}, content))
    with pytest.raises(InputError, match="its server does not tell its size; download it first"):
        open_corpus(CorpusConfig((f"{endless.url}/shard.parquet",)))


def test_refusals_and_faults_are_told_apart(serve):
    for status, error, words in ((403, RemoteError, "access is refused"), (500, RemoteError, "tried 2 times")):
        server = serve(lambda path, query, headers, status=status: (status, {}, b""))
        with pytest.raises(error, match=words):
            open_corpus(CorpusConfig((f"{server.url}/shard.parquet",)))
        assert len(server.requests) == (2 if status == 403 else 4)  # each try asks by HEAD, then by GET


def test_where_it_was_sent_on_to_is_not_told(serve):
    signed = serve(lambda path, query, headers: (503, {}, b""))
    target = f"{signed.url}/shard.parquet?X-Amz-Signature=hunter2"
    server = serve(lambda path, query, headers: (302, {"Location": target}, b""))
    with pytest.raises(RemoteError, match="it is asked too often") as caught:
        open_corpus(CorpusConfig((f"{server.url}/shard.parquet",)))
    assert "hunter2" not in str(caught.value) and signed.requests


def test_a_repository_of_the_hub_is_listed_and_read(serve, content, tmp_path, monkeypatch):
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
            asked = parse_qs(serve.servers[0].bodies[-1].decode()).get("paths", [])
            there = [entry(name) for name in asked if any(file.startswith(name) for file in files)]
            return 200, json_type, json.dumps(there).encode()
        if path.startswith("/datasets/user/name/resolve/main/"):
            return part_of(files[path.removeprefix("/datasets/user/name/resolve/main/")], headers)
        if path == repository:
            return 200, json_type, json.dumps({"id": "user/name", "sha": "a" * 40}).encode()
        return 404, {"X-Error-Code": "RepoNotFound"}, b"{}"

    monkeypatch.setenv("HF_ENDPOINT", serve(answer).url)
    root = "hf://datasets/user/name"
    assert list_files([root]) == (f"{root}/data/more/other.parquet", f"{root}/data/shard.parquet")
    assert list_files([f"{root}/*/*.parquet"]) == (f"{root}/data/shard.parquet",)
    here, elsewhere = (open_corpus(CorpusConfig((path,))) for path in (str(tmp_path), f"{root}/data/shard.parquet"))
    assert here.fingerprint == elsewhere.fingerprint
    with pytest.raises(InputError, match="does not exist"):
        list_files([f"{root}/no.parquet"])


@pytest.mark.parametrize("scheme, package", [("https", "aiohttp"), ("hf", "huggingface_hub")])
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
