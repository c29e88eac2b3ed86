"""The server around the pages, as `streamlit run app.py` starts it: who is let in, and what is told of a fault."""

from __future__ import annotations

import http.client
import signal
from urllib.parse import urlsplit

import pytest
from websockets.exceptions import ConnectionClosed, InvalidStatus

from datamask.dashboard.frame.frame import PAGES
from tests.e2e.serving import served, serving
from tests.e2e.websocket_client import Visitor

ROUTES = (
    "/",
    "/runs",
    "/export?run=x",
    "/no/such/page",
    "/_stcore/health",
    "/_stcore/host-config",
    "/_stcore/metrics",
    "/_stcore/script-health-check",
    "/media/x",
    "/static/x.js",
    "/component/x/y",
    "/app/static/x",
    "/favicon.png",
    "/datamask/server",
    "/datamask/parcel/x",
    "/_stcore/bidi-components/x/y",
    "/_stcore/upload_file/a/b",
    "/oauth2callback",
    "/../etc/passwd",
    "/runs/",
    "/auth/login",
    "/media/..%2f..%2fetc/passwd",
)

FAILING = """
import streamlit as st
if __name__ == "__main__":
    raise RuntimeError("see /a/folder/of/the/server")
else:
    from datamask.dashboard.server import server
    app = st.App(__file__, **server.around())
"""


def ask(
    address: str, path: str, host: str | None = None, method: str = "GET", **headers: str
) -> tuple[int, dict[str, str], bytes]:
    """Status, headers and body of one request, its path sent as it stands here."""
    connection = http.client.HTTPConnection(urlsplit(address).netloc, timeout=60)
    try:
        connection.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
        connection.putheader("Host", host or urlsplit(address).netloc)
        for name, value in headers.items():
            connection.putheader(name.replace("_", "-"), value)
        connection.endheaders()
        answer = connection.getresponse()
        return answer.status, {name.lower(): value for name, value in answer.getheaders()}, answer.read()
    finally:
        connection.close()


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    with served(tmp_path_factory.mktemp("server")) as where:
        yield where


@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE", "OPTIONS"])
def test_a_foreign_name_is_refused_on_every_route_and_every_answer_forbids_frames(address, method):
    for path in ROUTES:
        status, headers, body = ask(address, path, "evil.example", method)
        assert status == 403 and b"--server.allowedHosts" in body, path
        _, own, body = ask(address, path, method=method)
        assert b"--server.allowedHosts" not in body, path
        for sent in (headers, own):
            assert "frame-ancestors 'self'" in sent["content-security-policy"], path
            assert sent["x-frame-options"] == "SAMEORIGIN", path


def test_a_websocket_under_a_foreign_name_or_from_a_foreign_page_is_refused(address):
    port = urlsplit(address).port
    upgrade = {
        "Connection": "Upgrade",
        "Upgrade": "websocket",
        "Sec_WebSocket_Version": "13",
        "Sec_WebSocket_Key": "AAAAAAAAAAAAAAAAAAAAAA==",
    }
    for host, origin in (
        ("evil.example", "http://evil.example"),
        (f"evil.example:{port}", f"http://evil.example:{port}"),
        ("evil.example", address),
        (f"127.0.0.1:{port}", "http://evil.example"),
        (f"127.0.0.1:{port}", f"http://127.0.0.1:{port + 1}"),  # a page of another program of this machine
        (f"localhost:{port}", f"http://localhost:{port + 1}"),
    ):
        assert ask(address, "/_stcore/stream", host, Origin=origin, **upgrade)[0] == 403
    for origin in ("null", "http://localhost", "http://127.0.0.1:8888"):
        with pytest.raises(InvalidStatus), Visitor(address, origin=origin):
            pass
    with Visitor(address) as visitor:
        visitor.draw()
        assert visitor.elements


@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE", "OPTIONS", "POST"])
def test_a_page_of_another_program_of_this_machine_is_refused_on_every_route(address, method):
    for path in ROUTES:
        status, headers, body = ask(address, path, method=method, Origin="http://127.0.0.1:8888")
        assert status == 403 and b"corsAllowedOrigins" in body, path
        assert "access-control-allow-origin" not in headers, path
        assert b"corsAllowedOrigins" not in ask(address, path, method=method, Origin=address)[2], path


def test_every_page_is_found_by_its_address_inside_the_frame(address):
    for script, label, _ in PAGES:
        name = "" if script == "app.py" else script.removeprefix("pages/").removesuffix(".py")
        assert ask(address, f"/{name}")[0] == 200
        with Visitor(address) as visitor:
            visitor.draw(name)
            links = [element.page_link for element in visitor.elements if element.WhichOneof("type") == "page_link"]
            assert [link.label for link in links][: len(PAGES)] == [other for _, other, _ in PAGES], label
            titles = [element.heading.body for element in visitor.elements if element.WhichOneof("type") == "heading"]
            assert titles[0] == label and not visitor.faults()


def test_a_fault_is_a_number_for_the_visitor_and_a_traceback_in_the_log(tmp_path):
    script = tmp_path / "failing.py"
    script.write_text(FAILING)
    with served(tmp_path, script=script) as where, Visitor(where) as visitor:
        visitor.draw()
        (said,) = visitor.faults()
        number = said.split("nternal error ")[1].split()[0]
        assert "RuntimeError" in said and "/a/folder" not in visitor.text() and str(tmp_path) not in visitor.text()
    log = (tmp_path / "server.log").read_text()
    assert f"fault {number}" in log and "/a/folder/of/the/server" in log


def test_names_and_pages_that_the_operator_lists_pass_and_it_ends_when_told_although_somebody_is_there(tmp_path):
    """By a polite kill; test_open interrupts one."""
    listed = {
        "STREAMLIT_SERVER_ALLOWED_HOSTS": "127.0.0.1 select.example.com",
        "STREAMLIT_SERVER_CORS_ALLOWED_ORIGINS": "http://localhost:8888",
    }
    with serving(tmp_path, **listed) as (where, process), Visitor(where, origin="http://localhost:8888") as visitor:
        visitor.draw()
        assert visitor.elements
        with pytest.raises(InvalidStatus), Visitor(where, origin="http://localhost:8889"):
            pass
        assert ask(where, "/", "select.example.com")[0] == ask(where, "/")[0] == 200
        assert ask(where, "/", "localhost")[0] == 403
        process.send_signal(signal.SIGTERM)
        with pytest.raises(ConnectionClosed):
            while True:
                visitor.socket.recv(timeout=60)
        process.wait(60)
    assert "Traceback" not in (tmp_path / "server.log").read_text()
