"""A first start: the sample opens by itself, is made ready beside the server, and is not begun again at the next."""

from __future__ import annotations

import json
import shutil
import signal
import time
from pathlib import Path

import pytest

from datamask.dashboard.ready_sample import SWITCH
from datamask.dashboard.sample_work import NOTE, SOLVED, Note
from tests.e2e.serving import ROOT, serving
from tests.e2e.websocket_client import Visitor

SECONDS = 300
"""Until something has come: tenfold what it takes."""


@pytest.fixture
def small_sample(tmp_path) -> Path:
    folder = tmp_path / "built"
    shutil.copytree(ROOT / "sample_data" / "tiny", folder)
    return folder


def page_until(visitor: Visitor, wanted: str, page: str = "") -> None:
    """Draw a page again until it says that."""
    deadline = time.monotonic() + SECONDS
    while True:
        visitor.draw(page)
        if wanted in visitor.text():
            return
        assert not visitor.faults() and time.monotonic() < deadline, visitor.text()
        time.sleep(0.2)


def test_a_first_visitor_sees_the_sample_and_what_is_made_of_it_goes_on_at_the_next_start(tmp_path, small_sample):
    runs, log = tmp_path / "runs", tmp_path / "server.log"
    with serving(tmp_path, small_sample, **{SWITCH: ""}) as (address, process), Visitor(address) as visitor:
        assert "/explore?corpus=" in log.read_text()
        page_until(visitor, "Preparing the sample")
        page_until(visitor, "1,200")
        page_until(visitor, "sample: solved", "explore")
        process.send_signal(signal.SIGTERM)
        process.wait(SECONDS)
    assert "sample: solved is there" in log.read_text() and "Traceback" not in log.read_text()
    note = Note.read(runs)
    assert SOLVED in note.ended and not note.stopped
    # all the rest was made and removed meanwhile: nothing comes back
    (runs / NOTE).write_text(json.dumps({**vars(note), "done": True}))
    with serving(tmp_path, small_sample, **{SWITCH: ""}) as (address, process), Visitor(address) as visitor:
        page_until(visitor, "sample: solved", "explore")
        assert "Preparing the sample" not in visitor.text()
    assert "sample, " not in log.read_text() and Note.read(runs).ended == note.ended
