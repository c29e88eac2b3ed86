"""The browser of these tests reaches this machine alone, and whoever asks for more is caught."""

from __future__ import annotations

import http.server
import threading
import urllib.request
from collections.abc import Iterator

import pytest
from playwright.sync_api import expect

from tests.e2e.conftest import RUNNING

ASKING = """<!doctype html><title>asking</title><p id="own">waiting</p>
<script>
  const kinds = {
    name: () => fetch("http://example.com/script.js"),
    number: () => fetch("http://127.0.0.2:PORT/there"),
    own: () => fetch("/there"),
  };
  const ended = Object.entries(kinds).map(async ([kind, ask]) =>
    [kind, await ask().then((answer) => answer.status, (error) => "blocked")]);
  const socket = new Promise((answer) => {
    const asked = new WebSocket("ws://example.org/stream");
    asked.onopen = () => answer(["socket", "open"]);
    asked.onerror = () => answer(["socket", "blocked"]);
  });
  Promise.all([...ended, socket]).then((all) => {
    document.getElementById("own").textContent = all.map((pair) => pair.join(" ")).join(", ");
  });
</script>
<img src="https://example.net/picture.png" alt="">
"""


class Asking(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        page = ASKING.replace("PORT", str(self.server.server_address[1]))
        content = page.encode() if self.path == "/" else b"there"
        self.send_response(200)
        self.send_header("Access-Control-Allow-Origin", "*")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *words: object) -> None:
        pass


@pytest.fixture
def address() -> Iterator[str]:
    """Of a server of this machine, whose page asks for what lies elsewhere.

    It answers at 127.0.0.2 too, which counts as elsewhere: nothing but the block keeps the browser from it.
    """
    with http.server.ThreadingHTTPServer(("0.0.0.0", 0), Asking) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}/"
        server.shutdown()


@pytest.mark.parametrize("made", ["visitor", "context", "page"])
def test_addresses_elsewhere_are_blocked_and_noted(browser, address, made):
    elsewhere = address.replace("127.0.0.1", "127.0.0.2") + "there"
    with urllib.request.urlopen(elsewhere, timeout=60) as answer:
        assert answer.read() == b"there"
    context = browser.new_context() if made == "context" else None
    if context is not None:
        page = context.new_page()
    else:
        page = RUNNING.visitor() if made == "visitor" else browser.new_page()
    try:
        page.goto(address)
        expect(page.locator("#own")).to_have_text("name blocked, number blocked, own 200, socket blocked")
    finally:
        (context or page).close()
    asked = {"http://example.com/script.js", elsewhere, "ws://example.org/stream"}
    assert set(RUNNING.outside) == asked | {"https://example.net/picture.png"}
    with pytest.raises(AssertionError, match=r"asked for 4 addresses outside of this machine: .*example"):
        RUNNING.check()
    assert RUNNING.outside == []


def test_nothing_but_files_is_left_of_a_visitor(address):
    kept = "[document.cookie, localStorage.length, sessionStorage.length, navigator.onLine]"
    page = RUNNING.visitor()
    page.goto(f"{address}there")
    page.evaluate("document.cookie = 'seen=1; max-age=1000'; localStorage.seen = 1; sessionStorage.seen = 1")
    page.context.set_offline(True)
    assert page.evaluate(kept) == ["seen=1", 1, 1, False]
    page = RUNNING.visitor()
    page.goto(f"{address}there")
    assert page.evaluate(kept) == ["", 0, 0, True]
    RUNNING.leave()
