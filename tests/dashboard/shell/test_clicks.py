"""A click on a link is not taken back by what the old page asks for; what a press calls runs to its end."""

from __future__ import annotations

import subprocess
import sys
from types import SimpleNamespace

import pytest
from streamlit.proto.WidgetStates_pb2 import WidgetStates
from streamlit.runtime.scriptrunner_utils.script_requests import RerunData, ScriptRequests
from streamlit.runtime.state import SafeSessionState, SessionState

from datamask.dashboard.shell import clicks

CLICK = RerunData(page_script_hash="runs", query_string="corpus=1")
TICK = RerunData(page_script_hash="data", fragment_id="copies", is_auto_rerun=True)


@pytest.fixture(autouse=True)
def kept(monkeypatch):
    monkeypatch.setattr(ScriptRequests, "_request_rerun_locked", ScriptRequests._request_rerun_locked)
    monkeypatch.setattr(SafeSessionState, "on_script_will_rerun", SafeSessionState.on_script_will_rerun)
    clicks.keep_clicks()


def asked(*requests: RerunData) -> RerunData:
    """What is drawn next where these come while a script runs."""
    waiting = ScriptRequests()
    for data in requests:
        assert waiting.request_rerun(data)
    return waiting.on_scriptrunner_ready().rerun_data


def drawing(monkeypatch, waiting: ScriptRequests, page: str) -> None:
    """This thread draws a page."""
    context = SimpleNamespace(script_requests=waiting, page_script_hash=page)
    monkeypatch.setattr(clicks, "get_script_run_ctx", lambda suppress_warning: context)


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


PRESS = """
from streamlit.proto.WidgetStates_pb2 import WidgetStates
from streamlit.runtime.state import SafeSessionState, SessionState

state, heard = SessionState(), []

def give_up():
    raise RuntimeError("something newer is asked for")

safe = SafeSessionState(state, give_up)
state["run"] = "a"
SessionState._call_callbacks = lambda self, **replayed: heard.append(safe["run"])
try:
    safe.on_script_will_rerun(WidgetStates())
except RuntimeError:
    pass
print(heard)
"""
"""A press arrives, and its callback looks into the session, while something newer is asked for."""


def said(program: str) -> str:
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_what_a_press_calls_runs_to_its_end():
    keep = "from datamask.dashboard.shell import clicks\nclicks.keep_clicks()\n"
    assert said(keep + PRESS) == "['a']"


def test_once_it_has_run_the_drawing_is_given_up_as_before():
    asked = []
    safe = SafeSessionState(SessionState(), lambda: asked.append("looked"))
    safe.on_script_will_rerun(WidgetStates())
    assert asked == []
    assert "run" not in safe and asked == ["looked"]


def test_streamlit_alone_still_loses_clicks():
    """Where one of these fails, Streamlit has mended it, and that part of `clicks` can go."""
    assert said(PRESS) == "[]"
    program = (
        "from streamlit.runtime.scriptrunner_utils.script_requests import RerunData, ScriptRequests\n"
        "waiting = ScriptRequests()\n"
        "waiting.request_rerun(RerunData(page_script_hash='runs'))\n"
        "waiting.request_rerun(RerunData(page_script_hash='data', fragment_id='copies'))\n"
        "print(waiting.on_scriptrunner_ready().rerun_data.page_script_hash)\n"
    )
    assert said(program) == "data"
