"""The note of a server's address: believed while that server answers, and no longer."""

from __future__ import annotations

import http.server
import json
import os
import threading

import pytest

from datamask import server_note
from datamask.server_note import NOTE, TOKEN_PATH, address_of, noted


@pytest.fixture
def listening():
    """An address where a server answers with the text that `answers` holds, and what was asked of it."""
    answers, asked = {"text": server_note.token(), "status": 200}, []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            asked.append(self.path)
            self.send_response(answers["status"])
            self.end_headers()
            self.wfile.write(answers["text"].encode())

        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/", answers, asked
    server.shutdown()
    server.server_close()
    thread.join()


def test_it_is_there_while_the_server_is_and_gone_after(tmp_path, listening):
    address, _, asked = listening
    runs = tmp_path / "runs"
    assert address_of(runs) is None
    with noted(runs, f"{address}below/"):
        assert address_of(runs) == f"{address}below/" and asked == [TOKEN_PATH]
    assert address_of(runs) is None and list(runs.iterdir()) == []


@pytest.mark.parametrize("wrong", [{"text": "another"}, {"text": "\udcff"}, {"text": "x" * 10_000}, {"status": 403}])
def test_another_program_at_that_port_is_not_believed(tmp_path, listening, wrong):
    address, answers, asked = listening
    if "\udcff" in wrong.get("text", ""):
        wrong = {"text": "é"}
    answers.update(wrong)
    with noted(tmp_path, address):
        assert address_of(tmp_path) is None and asked == [TOKEN_PATH]


def test_the_note_of_a_killed_server_is_not_believed(tmp_path, listening):
    (tmp_path / NOTE).write_text(json.dumps({"address": "http://127.0.0.1:1/", "token": server_note.token()}))
    assert address_of(tmp_path) is None
    (tmp_path / NOTE).write_text(json.dumps({"address": listening[0], "token": "0" * 32}))
    assert address_of(tmp_path) is None


@pytest.mark.parametrize(
    "text", ["", "{", "[]", "3", '{"address": "http://127.0.0.1/"}', '{"address": "file:///etc/passwd", "token": "x"}',
             '{"address": "http://[", "token": "x"}', '{"address": "http://a b/", "token": "x"}']
)  # fmt: skip
def test_whatever_else_lies_there_is_no_note(tmp_path, text):
    (tmp_path / NOTE).write_text(text)
    assert address_of(tmp_path) is None


def test_a_pipe_in_its_place_makes_nobody_wait(tmp_path):
    os.mkfifo(tmp_path / NOTE)
    assert address_of(tmp_path) is None


def test_of_two_servers_the_last_one_is_noted_and_the_first_leaves_its_note_alone(tmp_path, listening):
    with noted(tmp_path, listening[0]):
        (tmp_path / NOTE).write_text(json.dumps({"address": "http://127.0.0.1:1/", "token": "other"}))
    assert json.loads((tmp_path / NOTE).read_text())["token"] == "other"


def test_a_folder_that_cannot_be_written_has_no_note_and_serves_all_the_same(tmp_path):
    (tmp_path / "runs").write_text("a file")
    with noted(tmp_path / "runs", "http://127.0.0.1:1/"):
        assert address_of(tmp_path / "runs") is None
