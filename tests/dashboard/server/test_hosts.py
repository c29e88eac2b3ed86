"""Which Host headers a server answers to, and what every answer carries."""

from __future__ import annotations

import asyncio
import socket

import pytest

from datamask.dashboard.server.hosts import HEADERS, LOGGED, Doorkeeper, Hosts, host_name, hosts_of

MACHINE = socket.gethostname().lower()


@pytest.mark.parametrize(
    "host",
    [
        "localhost",
        "localhost:8501",
        "LOCALHOST:1",
        "127.0.0.1:8501",
        "127.0.0.2",
        "[::1]",
        "[::1]:8501",
        "localhost.",
        "a.localhost:80",
    ],
)
def test_a_server_on_the_loopback_answers_to_the_loopback(host):
    assert hosts_of("127.0.0.1", ()).allow(host)


@pytest.mark.parametrize(
    "host",
    [
        "",
        "evil.example",
        "evil.example:8501",
        "localhost.evil.example",
        "127.0.0.1.nip.io",
        "192.168.0.7",
        "10.0.0.1:8501",
        "[2001:db8::1]",
        "localhost@evil.example",
        "evil.example@localhost",
        "localhost/evil",
        "localhost#",
        "localhost?",
        "local host",
        "localhost:port",
        "localhost:99999",
        "[::1",
        ":8501",
        ".",
        "notlocalhost",
        MACHINE,
    ],
)
def test_and_to_nothing_else(host):
    assert not hosts_of("127.0.0.1", ()).allow(host)


@pytest.mark.parametrize("address", ["0.0.0.0", "::", None, "192.168.0.7"])
def test_a_server_for_others_answers_to_this_machine_and_to_addresses(address):
    hosts = hosts_of(address, ())
    assert all(map(hosts.allow, ("localhost", MACHINE, f"{MACHINE}:8501", "192.168.0.7:8501", "[2001:db8::1]:8501")))
    assert not any(map(hosts.allow, ("evil.example", f"{MACHINE}.evil.example")))


def test_what_it_listens_on_by_name_and_what_people_are_told_to_type_pass():
    hosts = hosts_of("gpu7.example.com", (), "select.example.com")
    assert hosts.allow("gpu7.example.com:8501") and hosts.allow("Select.Example.com") and not hosts.allow("example.com")


def test_a_list_is_the_whole_list():
    hosts = hosts_of("127.0.0.1", ("select.example.com", "*.example.org"))
    assert hosts.allow("select.example.com:443") and hosts.allow("a.example.org")
    assert not any(map(hosts.allow, ("localhost", "127.0.0.1", "example.org", "evilexample.org", "a.example.com")))
    assert hosts_of("127.0.0.1", ("*",)).allow("anything.example") and not hosts_of("127.0.0.1", ("*",)).allow("a b@c")


@pytest.mark.parametrize(("host", "name"), [("A.example:80", "a.example"), ("[::1]:80", "::1"), ("a:b@c", None)])
def test_the_name_in_a_header(host, name):
    assert host_name(host) == name


@pytest.mark.parametrize(
    ("origin", "host"),
    [
        ("http://localhost:8501", "localhost:8501"),
        ("http://LOCALHOST:8501", "localhost:8501"),
        ("http://[::1]:8501", "[::1]:8501"),
        ("http://localhost", "localhost"),
        ("http://localhost", "localhost:80"),
        ("https://select.example.com", "select.example.com"),  # TLS ends at a proxy
        ("https://select.example.com", "select.example.com:443"),
    ],
)
def test_pages_of_the_server_itself_may_ask_it(origin, host):
    assert hosts_of("127.0.0.1", ()).allow_origin(origin, host)


@pytest.mark.parametrize(
    "origin",
    [
        "http://localhost:8888",
        "http://localhost",
        "https://localhost:8502",
        "http://127.0.0.1:8501",
        "http://a.localhost:8501",
        "http://evil.example:8501",
        "http://localhost:8501@evil.example",
        "http://localhost:8501/x",
        "http://localhost:port",
        "ftp://localhost:8501",
        "localhost:8501",
        "null",
        "",
    ],
)
def test_and_no_others(origin):
    for hosts in (hosts_of("127.0.0.1", ()), hosts_of("127.0.0.1", ("*",)), hosts_of("0.0.0.0", (), "localhost")):
        assert not hosts.allow_origin(origin, "localhost:8501")


def test_a_proxy_with_another_host_is_named_and_so_is_a_page_of_another_origin():
    hosts = hosts_of("127.0.0.1", (), "Select.example.com", (" http://localhost:8888",))
    assert hosts.allow_origin("https://select.example.com:8443", "127.0.0.1:8501")
    assert hosts.allow_origin("http://localhost:8888", "localhost:8501")
    assert not hosts.allow_origin("http://localhost:8889", "localhost:8501")
    assert hosts_of("127.0.0.1", (), any_origin=True).allow_origin("http://localhost:8889", "localhost:8501")


def answer(
    hosts: list[str],
    kind: str = "http",
    extensions: tuple[str, ...] = (),
    fails: bool = False,
    origins: tuple[str, ...] = (),
) -> list[dict]:
    """What one request is answered by a doorkeeper before an application that answers 200."""
    sent = []

    async def application(scope, receive, send):
        if fails:
            raise RuntimeError("a fault")
        await send({"type": "http.response.start", "status": 200, "headers": [(b"X-Frame-Options", b"ALLOWALL")]})
        await send({"type": "http.response.body", "body": b"inside"})

    async def send(message):
        sent.append(message)

    scope = {
        "type": kind,
        "method": "GET",
        "path": "/",
        "extensions": {name: {} for name in extensions},
        "headers": [
            *((b"host", host.encode("latin-1")) for host in hosts),
            *((b"origin", origin.encode("latin-1")) for origin in origins),
        ],
    }
    asyncio.run(Doorkeeper(application, lambda: Hosts())(scope, None, send))
    return sent


@pytest.mark.parametrize(
    ("hosts", "status"),
    [
        (["localhost:1"], 200),
        (["evil.example"], 403),
        ([], 403),
        (["localhost", "evil.example"], 403),
        (["localhost", "localhost"], 403),
        (["\xff\xfe"], 403),
    ],
)
def test_one_host_header_and_the_right_one(hosts, status):
    start, body = answer(hosts)
    assert start["status"] == status and set(HEADERS) <= set(start["headers"])
    assert (b"inside" in body["body"]) == (status == 200)
    assert [value for name, value in start["headers"] if name.lower() == b"x-frame-options"] == [b"SAMEORIGIN"]


@pytest.mark.parametrize(
    ("origins", "status"),
    [
        (("http://localhost:1",), 200),
        ((), 200),
        (("http://localhost:2",), 403),
        (("http://localhost:1", "http://localhost:1"), 403),
        (("\xff\xfe",), 403),
    ],
)
def test_one_origin_header_and_the_right_one(origins, status):
    start, body = answer(["localhost:1"], origins=origins)
    assert start["status"] == status and set(HEADERS) <= set(start["headers"])
    assert (b"corsAllowedOrigins" in body["body"]) == (status == 403)


@pytest.mark.parametrize(
    ("host", "origin"), [("evil.example", "http://evil.example"), ("localhost:1", "http://localhost")]
)
def test_a_websocket_is_refused_before_its_handshake(host, origin):
    assert answer([host], "websocket", origins=(origin,))[0]["type"] == "websocket.close"
    start = answer([host], "websocket", ("websocket.http.response",), origins=(origin,))[0]
    assert start["type"] == "websocket.http.response.start" and start["status"] == 403


@pytest.mark.parametrize("ending", ["websocket.disconnect", "websocket.close", ""])
def test_what_is_written_to_a_websocket_that_is_closed_is_no_fault(ending):
    """Streamlit does so when a visitor leaves at the wrong moment, and the terminal had a traceback of it."""

    async def application(scope, receive, send):
        if ending == "websocket.disconnect":
            await receive()
        elif ending:
            await send({"type": ending})
        raise RuntimeError('Cannot call "send" once a close message has been sent.')

    async def receive():
        return {"type": "websocket.disconnect"}

    async def send(message):
        assert message["type"] == ending

    scope = {"type": "websocket", "path": "/", "headers": [(b"host", b"localhost")]}
    keeper = Doorkeeper(application, lambda: Hosts())(scope, receive, send)
    if ending:
        asyncio.run(keeper)
    else:
        with pytest.raises(RuntimeError, match="Cannot call"):
            asyncio.run(keeper)


def test_a_fault_below_is_an_answer_with_the_headers_and_no_details(caplog):
    start, body = answer(["localhost"], fails=True)
    assert start["status"] == 500 and set(HEADERS) <= set(start["headers"]) and b"a fault" not in body["body"]
    assert "a fault" in caplog.text


def test_refused_names_are_logged_once_and_not_without_end(caplog):
    async def nothing(*_):
        pass

    async def scan():
        keeper = Doorkeeper(nothing, lambda: Hosts())
        for number in range(3 * LOGGED):
            host = f"evil{number // 2}.example".encode()
            await keeper({"type": "http", "headers": [(b"host", host)]}, None, nothing)

    asyncio.run(scan())
    assert len(caplog.records) == LOGGED and "evil0.example" in caplog.text and "--server.allowedHosts" in caplog.text
