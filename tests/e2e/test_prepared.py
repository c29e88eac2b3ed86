"""A dashboard that begins with its libraries imported is what it would be without; a test that fails shows its log."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from tests.e2e import serving
from tests.e2e.prepared import ROOT, Prepared
from tests.e2e.serving import PREPARED, ends_of_logs, served

SURROUNDINGS = """
import json, os, signal, sys, threading
facts = {
    "arguments": sys.argv,
    "environment": dict(os.environ),
    "folder": os.getcwd(),
    "path": sys.path,
    "signals": [str(signal.getsignal(number)) for number in sorted(signal.valid_signals())],
    "main": [__name__, __spec__, sys.modules["__main__"].__dict__ is globals()],
    "threads": threading.active_count(),
    "input": sys.stdin.read(),
    "own": [name for name in sys.modules if name.partition(".")[0] == "datamask"],
}
print(json.dumps(facts))
"""
"""A program that says what it was started in."""

pytestmark = pytest.mark.skipif(not Prepared.possible(), reason="needs Linux, which names processes by handles")


def test_it_is_started_in_what_any_process_is_started_in_and_has_nothing_of_ours(tmp_path):
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "MADE_UP": "a\n'b'"}
    log, words = tmp_path / "log", ["one word", "--and", "another"]
    assert PREPARED.start(SURROUNDINGS, words, environment, log).wait(120) == 0
    fresh = subprocess.run(
        [sys.executable, "-c", SURROUNDINGS, *words],
        cwd=ROOT,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=True,
    )
    facts = json.loads(log.read_text())
    assert facts == json.loads(fresh.stdout) and facts["own"] == [] and facts["input"] == ""


def test_streamlit_has_read_no_settings_yet(tmp_path):
    program = "from streamlit import config; print(config._config_options)"
    PREPARED.start(program, [], dict(os.environ), tmp_path / "log").wait(120)
    assert (tmp_path / "log").read_text() == "None\n"


def test_a_test_that_fails_beside_a_dashboard_shows_its_log_and_threads_although_it_has_ended(tmp_path):
    with pytest.raises(ZeroDivisionError), served(tmp_path) as address:
        raise ZeroDivisionError
    (log,) = ends_of_logs()
    assert address in log and "most recent call first" in log
    assert ends_of_logs() == []


def test_who_answers_at_a_port_that_was_taken_in_between_is_not_taken_for_the_dashboard(tmp_path, monkeypatch):
    class Healthy(BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(200)
            self.end_headers()

        def log_message(self, *words):
            pass

    free = serving._free_port
    with ThreadingHTTPServer(("127.0.0.1", 0), Healthy) as other:
        monkeypatch.setattr(serving, "_ports", [other.server_port])
        # nobody has it when it is chosen
        monkeypatch.setattr(serving, "_free_port", lambda: serving._ports[0] if serving._ports else free())
        threading.Thread(target=other.serve_forever, daemon=True).start()
        try:
            with served(tmp_path) as address:
                assert address != f"http://127.0.0.1:{other.server_port}"
        finally:
            other.shutdown()
