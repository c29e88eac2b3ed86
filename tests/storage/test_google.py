"""Shards in buckets of Google, by a small server that speaks as much of their interface as is read here."""

from __future__ import annotations

import json
import sys
import types

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from datamask.config import CorpusConfig
from datamask.corpus import open_corpus
from datamask.corpus.remote_listing import file_stamps
from datamask.corpus.shards import list_files
from datamask.errors import InputError, RemoteError
from datamask.storage import patience, stores
from datamask.storage.address import Address
from tests.commands import table
from tests.storage.elsewhere import Server, part_of

PAGE = 2
"""Entries of a page of a listing."""


class Google:
    """Objects by name, each with its generation; `token`, where requests must show one."""

    def __init__(self) -> None:
        self.objects: dict[str, tuple[int, bytes]] = {}
        self.token: str | None = None
        self.server = Server(self.answer)

    def put(self, name: str, content: pa.Table | bytes) -> str:
        if isinstance(content, pa.Table):
            sink = pa.BufferOutputStream()
            pq.write_table(content, sink, row_group_size=100)
            content = sink.getvalue().to_pybytes()
        self.objects[name] = (self.objects.get(name, (0, b""))[0] + 1, content)
        return f"gs://bucket/{name}"

    def answer(self, path, query, headers):
        if self.token is not None and headers.get("Authorization") != f"Bearer {self.token}":
            return 403, {}, b"{}"
        bucket, _, name = path.removeprefix("/storage/v1/b/").partition("/o")
        if bucket != "bucket":
            return 404, {}, b"{}"
        if not name:
            return 200, {}, json.dumps(self.page(query)).encode()
        generation, content = self.objects.get(name[1:], (0, b""))
        if not generation or query.get("generation", str(generation)) != str(generation):
            return 404, {}, b"{}"
        if query.get("alt") == "media":
            return part_of(content, headers)
        return 200, {}, json.dumps({"size": str(len(content)), "generation": str(generation)}).encode()

    def page(self, query):
        prefix = query.get("prefix", "")
        below = [name for name in sorted(self.objects) if name.startswith(prefix)]
        folders = {f"{prefix}{name[len(prefix) :].partition('/')[0]}/" for name in below if "/" in name[len(prefix) :]}
        entries = [(name, "items") for name in below if "/" not in name[len(prefix) :]]
        entries += [(name, "prefixes") for name in sorted(folders)]
        start = int(query.get("pageToken", 0))
        page: dict = {"items": [], "prefixes": []}
        for name, kind in entries[start : start + PAGE]:
            page[kind].append({"name": name} if kind == "items" else name)
        return page | ({"nextPageToken": str(start + PAGE)} if start + PAGE < len(entries) else {})


@pytest.fixture
def google(monkeypatch):
    made = Google()
    monkeypatch.setenv("STORAGE_EMULATOR_HOST", made.server.url)
    monkeypatch.setattr(patience, "FIRST_PAUSE", 0.01)
    yield made
    made.server.close()


def test_files_folders_and_patterns_are_listed(google):
    for name in (
        "c/a.parquet",
        "c/b.parquet",
        "c/",
        "c/d e/ä+%.parquet",
        "c/d e/f/g.parquet",
        "c/x.txt",
        "other.parquet",
    ):
        google.put(name, b"x")
    everything = ["c/a.parquet", "c/b.parquet", "c/d e/f/g.parquet", "c/d e/ä+%.parquet"]
    for pattern, names in (
        ("c", everything),
        ("", [*everything, "other.parquet"]),
        ("**/[ab].parquet", everything[:2]),
        ("c/*/*.parquet", ["c/d e/ä+%.parquet"]),
        ("c/d e/ä+%.parquet", ["c/d e/ä+%.parquet"]),
    ):
        assert list_files([f"gs://bucket/{pattern}"]) == tuple(f"gs://bucket/{name}" for name in names), pattern
    for missing in ("gs://bucket/no.parquet", "gs://elsewhere/a.parquet", "gs://elsewhere"):
        with pytest.raises(InputError, match=f"--input {missing} does not exist"):
            list_files([missing])


def test_a_listing_without_end_is_given_up(google, monkeypatch):
    google.put("c/a.parquet", b"x")
    monkeypatch.setattr(google, "page", lambda query: {"items": [{"name": "c/a"}], "nextPageToken": "again"})
    monkeypatch.setattr(patience, "FIRM", 2.0)
    store = stores.CloudStore({}, "bucket", patience.Patience(1, 0.2))
    with pytest.raises(TimeoutError, match="entries, and more follow"):
        store.entries(Address.parse("gs://bucket/c"))


def test_a_corpus_is_the_one_of_the_disk(google, tmp_path):
    address = google.put("c/shard.parquet", table())
    (tmp_path / "shard.parquet").write_bytes(google.objects["c/shard.parquet"][1])
    here, elsewhere = (open_corpus(CorpusConfig((path,))) for path in (str(tmp_path), address))
    assert here.fingerprint == elsewhere.fingerprint and here.metadata.equals(elsewhere.metadata)
    before = file_stamps([address])
    assert before == file_stamps([address])
    google.put("c/shard.parquet", table())
    assert file_stamps([address]) != before


def test_a_server_that_breaks_is_asked_again_and_named(google, monkeypatch):
    address = google.put("shard.parquet", table())
    answer, broken = google.server, []
    monkeypatch.setenv("DATAMASK_REMOTE_TRIES", "2")

    def failing(path, query, headers):
        broken.append(path)
        return (503, {}, b"{}") if len(broken) % 2 else Google.answer(google, path, query, headers)

    google.answer = failing
    google.server = Server(lambda *asked: google.answer(*asked))
    monkeypatch.setenv("STORAGE_EMULATOR_HOST", google.server.url)
    assert len(open_corpus(CorpusConfig((address,)))) == 240 and len(broken) > 4
    google.answer = lambda *asked: (503, {}, b"{}")
    with pytest.raises(RemoteError, match=rf"^{address} cannot be read: it is asked too often .*, tried 4 times"):
        open_corpus(CorpusConfig((address,)))
    answer.close()


def test_the_account_of_the_environment_is_shown_to_the_store_alone(google, monkeypatch):
    address = google.put("shard.parquet", table())
    google.token = "the-token"
    with pytest.raises(RemoteError, match=r"access is refused .*GOOGLE_APPLICATION_CREDENTIALS"):
        open_corpus(CorpusConfig((address,)))

    class Credentials:
        valid, token = False, None

        def refresh(self, request):
            self.valid, self.token = True, google.token

    class DefaultCredentialsError(Exception):
        pass

    credentials = Credentials()
    auth, requests = types.ModuleType("auth"), types.ModuleType("requests")
    auth.exceptions = types.SimpleNamespace(DefaultCredentialsError=DefaultCredentialsError)
    auth.default = lambda scopes: (credentials, "project")
    requests.Request = object
    for name, module in {"google.auth": auth, "google.auth.transport.requests": requests}.items():
        monkeypatch.setitem(sys.modules, name, module)
    signed = f"{address}?anonymous=false"
    assert len(open_corpus(CorpusConfig((signed,)))) == 240 and credentials.valid
    monkeypatch.setitem(sys.modules, "google.auth", None)
    stores._made.cache_clear()
    with pytest.raises(InputError, match=r"package google-auth.*pip install \"datamask\[gs\]\""):
        open_corpus(CorpusConfig((signed,)))
