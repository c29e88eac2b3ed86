"""Long work under way on a page: what the common drawing of a job shows, stops and ends."""

from __future__ import annotations

import threading

import pytest
from streamlit.testing.v1 import AppTest

from datamask.dashboard.frame import frame
from datamask.dashboard.shell import background
from datamask.work.worker import worker
from tests.pages.reading import captions

KEY = "drawn by the test of progress"


@pytest.fixture
def job():
    """A job at a quarter of its way, until it is stopped."""
    at_work = threading.Event()

    def work(job):
        job.report(0.25, "counting *stars*")
        at_work.set()
        while True:
            job.poll()
            at_work.wait(0.01)

    job = worker().start(KEY, work, about="stars")
    assert at_work.wait(120)
    yield job
    job.stop()
    assert job.wait(120)
    worker().forget(KEY)


def plain():
    """The job without a look of its own."""
    import streamlit as st

    from datamask.dashboard.shell import background

    if not background.under_way("drawn by the test of progress"):
        st.write("ended")


def card():
    """The job with everything that a panel may have of its own."""
    import streamlit as st

    from datamask.dashboard.shell import background
    from datamask.work.worker import worker

    key = "drawn by the test of progress"
    job, asked = worker().find(key), st.session_state.setdefault("asked", [])

    def stop(job):
        asked.append(job.about)
        job.stop()

    def over():
        st.session_state["over"] = st.session_state.get("enough", False)
        return st.session_state["over"]

    look = background.Look(
        "stop_stars",
        title="The sky",
        about="as of tonight",
        says=lambda job: f"Looking: {job.message}",
        beside=lambda job: f"{job.share:.0%} done",
        stop_label=lambda job: f"Stop {job.about}",
        stop=stop,
        over=over,
    )
    if st.session_state.get("over", False) or job.ended:
        st.write("drawn again")
    else:
        background.follow(job, look)


def test_a_job_has_a_bar_and_a_stop(job, explained):
    app = AppTest.from_function(plain, default_timeout=120).run()
    (bar,) = app.get("progress")
    assert bar.proto.value == 25 and bar.proto.text == r"counting \*stars\*"
    explained(app, 1)
    app.button(key=f"stop-{KEY}").click().run()
    assert job.wait(120)
    assert [text.value for text in app.run().markdown] == ["ended"]


def test_drawing_a_page_or_a_job_sets_aside_what_never_becomes_garbage(page, job, monkeypatch):
    drawn = []
    for place, module in (("frame", frame), ("background", background)):
        monkeypatch.setattr(module, "settled", lambda place=place: drawn.append(place))
    page()
    assert set(drawn) == {"frame"}
    AppTest.from_function(plain, default_timeout=120).run()
    assert set(drawn) == {"frame", "background"}


def test_a_panel_has_words_and_a_stop_of_its_own(job, explained):
    app = AppTest.from_function(card, default_timeout=120).run()
    (bar,) = app.get("progress")
    assert [heading.value for heading in app.subheader] == ["The sky"]
    assert bar.proto.text == "Looking: counting *stars*" and "as of tonight 25% done" in captions(app)
    assert app.button(key="stop_stars").label == "Stop stars"
    explained(app, 1)
    app.button(key="stop_stars").click().run()
    assert job.wait(120) and app.session_state["asked"] == ["stars"]
    assert [text.value for text in app.run().markdown] == ["drawn again"]


def test_the_page_is_drawn_again_where_a_panel_has_enough_of_a_job_that_goes_on(job):
    app = AppTest.from_function(card, default_timeout=120).run()
    assert app.get("progress")
    app.session_state["enough"] = True
    assert [text.value for text in app.run().markdown] == ["drawn again"] and not job.ended
