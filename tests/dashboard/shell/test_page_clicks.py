"""A click on a link is not taken back by what the page that is being left asks for."""

from __future__ import annotations

import subprocess
import sys
from types import SimpleNamespace

import pytest
from streamlit.runtime.scriptrunner_utils.script_requests import RerunData, ScriptRequests

from datamask.dashboard.shell import page_clicks

CLICK = RerunData(page_script_hash="runs", query_string="corpus=1")
TICK = RerunData(page_script_hash="data", fragment_id="copies", is_auto_rerun=True)


@pytest.fixture(autouse=True)
def kept(monkeypatch):
    monkeypatch.setattr(ScriptRequests, "_request_rerun_locked", ScriptRequests._request_rerun_locked)
    page_clicks.keep_clicks()


def asked(*requests: RerunData) -> RerunData:
    """What is drawn next where these come while a script runs."""
    waiting = ScriptRequests()
    for data in requests:
        assert waiting.request_rerun(data)
    return waiting.on_scriptrunner_ready().rerun_data


def drawing(monkeypatch, waiting: ScriptRequests, page: str) -> None:
    """This thread draws a page."""
    context = SimpleNamespace(script_requests=waiting, page_script_hash=page)
    monkeypatch.setattr(page_clicks, "get_script_run_ctx", lambda suppress_warning: context)


def test_a_timer_of_the_page_that_is_left_keeps_the_clicked_page():
    done = asked(CLICK, TICK)
    assert (done.page_script_hash, done.query_string, done.fragment_id_queue) == ("runs", "corpus=1", [])
    assert asked(TICK, CLICK).page_script_hash == "runs"


def test_a_rerun_of_the_page_that_is_left_keeps_the_clicked_page(monkeypatch):
    waiting = ScriptRequests()
    waiting.request_rerun(CLICK)
    drawing(monkeypatch, waiting, "data")
    waiting.request_rerun(RerunData(page_script_hash="data"))
    assert waiting.on_scriptrunner_ready().rerun_data.page_script_hash == "runs"


def test_the_last_click_wins_and_a_page_may_lead_elsewhere(monkeypatch):
    assert asked(CLICK, RerunData(page_script_hash="data")).page_script_hash == "data"
    waiting = ScriptRequests()
    waiting.request_rerun(RerunData(page_script_hash="data"))  # a slider was moved
    drawing(monkeypatch, waiting, "data")
    waiting.request_rerun(CLICK)  # st.switch_page
    assert waiting.on_scriptrunner_ready().rerun_data.page_script_hash == "runs"


def test_fragments_alone_stay_fragments():
    done = asked(TICK, RerunData(page_script_hash="data", fragment_id="probe"))
    assert (done.page_script_hash, done.fragment_id_queue) == ("data", ["copies", "probe"])


def test_streamlit_alone_still_loses_the_click():
    """Where this fails, Streamlit has mended it, and `page_clicks` can go."""
    program = (
        "from streamlit.runtime.scriptrunner_utils.script_requests import RerunData, ScriptRequests\n"
        "waiting = ScriptRequests()\n"
        "waiting.request_rerun(RerunData(page_script_hash='runs'))\n"
        "waiting.request_rerun(RerunData(page_script_hash='data', fragment_id='copies'))\n"
        "print(waiting.on_scriptrunner_ready().rerun_data.page_script_hash)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=240)
    assert done.stdout.strip() == "data", done.stderr
