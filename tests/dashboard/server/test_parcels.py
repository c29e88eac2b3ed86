"""What maps fetch: who gets a parcel, how much is kept, and how long."""

from __future__ import annotations

import gc
from uuid import uuid4

import pytest
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.routing import Route
from starlette.testclient import TestClient

from datamask.dashboard.server import parcels
from datamask.dashboard.server.hosts import Doorkeeper, Hosts
from datamask.dashboard.shell import components


class Corpus:
    """Its name is all that is asked of it."""

    def __init__(self) -> None:
        self.identity = uuid4().hex


@pytest.fixture
def client(monkeypatch):
    """A browser before the route, behind the same middleware as the pages; what the server keeps is its own."""
    kept = parcels.Parcels(most=1000)
    monkeypatch.setattr(parcels, "parcels", lambda: kept)
    app = Starlette(
        routes=[
            Route(f"/{parcels.PATH}{{address}}", parcels.answer),
            Route(f"/{components.PATH}{{name}}", components.answer),
        ],
        middleware=[Middleware(Doorkeeper, hosts=lambda: Hosts())],
    )
    return TestClient(app, base_url="http://localhost")


def asked(client, address, **headers):
    return client.get(f"/{parcels.PATH}{address}", headers=headers)


def test_a_parcel_is_given_to_whoever_knows_its_address_and_kept_by_the_browser(client):
    corpus = Corpus()
    address = parcels.parcels().keep(corpus, b"marks")
    answer = asked(client, address)
    assert (answer.status_code, answer.content) == (200, b"marks")
    assert answer.headers["cache-control"] == "private, max-age=31536000, immutable"
    # drawn again it has the same address, so that no browser asks for it again
    assert parcels.parcels().keep(corpus, bytes(bytearray(b"marks"))) == address
    assert parcels.parcels().keep(corpus, b"other") != address and parcels.parcels().size == 10
    # of a foreign name or page it is refused as all else is
    assert asked(client, address, host="evil.example").status_code == 403
    assert asked(client, address, origin="http://evil.example").status_code == 403


def test_the_script_of_a_component_is_given_once_with_its_style(client):
    script = components.script_of(("loader",), components.FILES / "map.css")
    path = components.serve_script(script)
    answer = client.get(f"/{path}")
    assert answer.text == script and ".map" in script and "function fetchParcel" in script
    assert (
        answer.headers["content-type"].startswith("text/javascript") and "immutable" in answer.headers["cache-control"]
    )
    assert client.get(f"/{path}0").status_code == 404


def test_no_visitor_finds_the_parcels_of_another_corpus_or_server(client):
    mine, theirs = Corpus(), Corpus()
    addresses = {parcels.parcels().keep(corpus, b"marks") for corpus in (mine, theirs)}
    other = parcels.Parcels().keep(mine, b"marks")
    assert len({*addresses, other}) == 3 and all(len(address) == 64 for address in addresses)
    for unknown in (other, "", "0" * 64, next(iter(addresses))[:-1], "../" + other):
        assert asked(client, unknown).status_code == 404


def test_the_least_used_make_room_and_are_there_once_kept_again(client):
    corpus = Corpus()
    first, second = (parcels.parcels().keep(corpus, letter * 400) for letter in (b"a", b"b"))
    assert asked(client, first).status_code == 200
    third = parcels.parcels().keep(corpus, b"c" * 400)
    assert [asked(client, address).status_code for address in (first, second, third)] == [200, 404, 200]
    assert parcels.parcels().size == 800
    assert parcels.parcels().keep(corpus, b"b" * 400) == second and asked(client, second).status_code == 200


def test_parcels_go_with_their_corpus(client):
    mine, theirs = Corpus(), Corpus()
    gone, stays = (parcels.parcels().keep(corpus, b"marks") for corpus in (mine, theirs))
    del mine
    gc.collect()
    assert parcels.parcels().size == 5
    assert [asked(client, address).status_code for address in (gone, stays)] == [404, 200]


def test_a_promised_parcel_is_made_once_it_is_asked_for_and_goes_with_its_corpus(client):
    kept, corpus, made = parcels.parcels(), Corpus(), []
    can = []

    def make(at: str) -> bytes | None:
        made.append(len(can))
        return b"marks" + at.encode() if can else None

    address = kept.promise(corpus, b"of the rows", make)
    assert address == kept.promise(corpus, b"of the rows", make) and (made, kept.size) == ([], 0)
    assert asked(client, address).status_code == 204 and kept.size == 0
    can.append(True)
    assert [asked(client, address).content for _ in range(2)] == [b"marks", b"marks"]
    # what cannot be made is asked for again, what was made is kept
    assert made == [0, 1] and kept.size == 5
    # where it is asked for something, nothing is kept
    other = kept.promise(corpus, b"of all rows", make)
    assert asked(client, f"{other}?at=0.3").content == b"marks0.3" and kept.size == 5
    del corpus
    gc.collect()
    assert {asked(client, gone).status_code for gone in (address, other)} == {404} and made == [0, 1, 1]


def test_a_corpus_that_goes_in_the_midst_of_keeping_is_forgotten_after(client):
    kept, mine, theirs = parcels.parcels(), Corpus(), Corpus()
    gone = kept.keep(mine, b"marks")
    with kept._lock:  # as where the collector runs while another parcel is put away
        del mine
        gc.collect()
        assert kept.size == 5
    assert kept.keep(theirs, b"other") and kept.size == 5 and kept.body(gone) is None
