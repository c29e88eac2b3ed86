"""A first start: the sample opens by itself, is made ready beside the server, and is not begun again at the next."""

from __future__ import annotations

import json
import shutil
import signal
from pathlib import Path

import pytest

from datamask.dashboard.data.ready_sample import SWITCH
from datamask.dashboard.data.sample_work import NOTE, SOLVED, Note
from tests.e2e.serving import ROOT, serving
from tests.e2e.websocket_client import Visitor

SECONDS = 300
"""Until something has come: tenfold what it takes."""


@pytest.fixture
def small_sample(tmp_path) -> Path:
    folder = tmp_path / "built"
    shutil.copytree(ROOT / "sample_data" / "tiny", folder)
    return folder


def test_a_first_visitor_sees_the_sample_and_what_is_made_of_it_goes_on_at_the_next_start(tmp_path, small_sample):
    runs, log = tmp_path / "runs", tmp_path / "server.log"
    with serving(tmp_path, small_sample, **{SWITCH: ""}) as (address, process), Visitor(address) as visitor:
        assert "/?corpus=" in log.read_text()
        visitor.draw_until("Preparing the sample", seconds=SECONDS)
        visitor.draw_until("1,200", seconds=SECONDS)
        visitor.draw_until("sample: solved", seconds=SECONDS)
        process.send_signal(signal.SIGTERM)
        process.wait(SECONDS)
    assert "sample: solved is there" in log.read_text() and "Traceback" not in log.read_text()
    note = Note.read(runs)
    assert SOLVED in note.ended and not note.stopped
    # all the rest was made and removed meanwhile: nothing comes back
    (runs / NOTE).write_text(json.dumps({**vars(note), "done": True}))
    with serving(tmp_path, small_sample, **{SWITCH: ""}) as (address, process), Visitor(address) as visitor:
        visitor.draw_until("sample: solved", seconds=SECONDS)
        assert "Preparing the sample" not in visitor.text()
    assert "sample, " not in log.read_text() and Note.read(runs).ended == note.ended
