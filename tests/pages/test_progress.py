"""Long work under way on a page: what the common drawing of a job shows, stops and ends."""

from __future__ import annotations

import threading

import pytest
from streamlit.testing.v1 import AppTest

from datamask.dashboard.frame import frame
from datamask.dashboard.shell import background
from datamask.errors import InputError
from datamask.work.lanes import Priority
from datamask.work.worker import worker
from tests.pages.reading import captions

KEY = "drawn by the test of progress"


def endless(job):
    job.report(0.25, "counting *stars*")
    while True:
        job.poll()
        threading.Event().wait(0.01)


@pytest.fixture
def job():
    """A job at a quarter of its way, until it is stopped."""
    job = worker().start(KEY, endless, about="stars")
    while not job.share:
        job.wait(0.01)
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
        stop=stop,
        over=over,
    )
    if st.session_state.get("over", False) or job.ended:
        st.write("drawn again")
    else:
        background.follow(job, look)


def offered():
    """The widget on a page: the result, or the way to it."""
    import streamlit as st

    from datamask.dashboard.shell import background

    found = background.offer(
        "drawn by the test of progress",
        "Count stars",
        st.session_state["start"],
        name="stars",
        icon=":material/star:",
        find=st.session_state.get("find"),
        cost="Takes a clear night.",
        stopped="Stopped. Counted stars are kept.",
        row=st.session_state.get("row", ""),
        type="primary",
    )
    if found is not None:
        st.write(f"found {found}")


@pytest.fixture
def offer():
    """A page that offers work, and what the work does; nothing is under way at the end."""

    def made(work, **state):
        app = AppTest.from_function(offered, default_timeout=120)
        app.session_state["start"] = lambda: worker().start(KEY, work, device="test of progress")
        for name, value in state.items():
            app.session_state[name] = value
        return app.run()

    yield made
    if (job := worker().find(KEY)) is not None:
        job.stop()
        assert job.wait(120)
        worker().forget(KEY)


def text_of(app) -> str:
    return " ".join(text.value for text in app.markdown)


def drawn(app) -> tuple[list[str], bool]:
    """The labels of the buttons, and whether there is a bar."""
    assert not app.exception
    return [button.label for button in app.button], bool(app.get("progress"))


def pressed(app):
    """The page once the job that a press on its button starts has ended."""
    app.button(key="stars").click().run()
    assert worker().find(KEY).wait(120)
    return app.run()


def test_what_takes_long_is_offered_and_its_result_returned(offer):
    app = offer(lambda job: "all stars")
    assert drawn(app) == (["Count stars"], False) and captions(app) == "Takes a clear night."
    assert app.button(key="stars").proto.type == "primary" and app.button(key="stars").icon == ":material/star:"
    assert drawn(pressed(app)) == ([], False) and text_of(app) == "found all stars"


def test_what_was_stopped_is_offered_again(offer):
    app = offer(endless)
    app.button(key="stars").click().run()
    assert drawn(app) == (["Stop"], True)
    app.button(key="stop_stars").click().run()
    assert worker().find(KEY).wait(120)
    assert drawn(app.run()) == (["Count stars"], False)
    assert captions(app) == "Stopped. Counted stars are kept. Takes a clear night."


def test_what_failed_says_its_sentence_and_can_be_tried_again(offer):
    outcomes = iter((InputError("clouds over the *site*"), None))

    def work(job):
        if (error := next(outcomes)) is not None:
            raise error
        return 7

    app = pressed(offer(work))
    assert drawn(app) == (["Try again"], False)
    assert [error.value for error in app.error] == [r"clouds over the \*site\*"]
    assert text_of(pressed(app)) == "found 7" and not app.error


def test_a_row_says_in_its_line_what_failed(offer):
    def work(job):
        raise InputError("clouds over the *site*.")

    app = pressed(offer(work, row="Counting failed"))
    assert drawn(app) == (["Try again"], False) and not app.error
    assert captions(app) == r"Counting failed: clouds over the \*site\*\. Takes a clear night."


def test_what_waits_says_for_how_many(offer):
    begun, may_end = threading.Event(), threading.Event()
    first = worker().start(
        "first in the test of progress",
        lambda job: (begun.set(), may_end.wait(120)),
        device="test of progress",
        priority=Priority.LIVE,
    )
    assert begun.wait(120)
    try:
        app = offer(endless)
        app.button(key="stars").click().run()
        while not worker().find(KEY).ahead:
            threading.Event().wait(0.01)
        (bar,) = app.run().get("progress")
        assert bar.proto.text == "waiting for 1 other job" and drawn(app) == (["Stop"], True)
    finally:
        may_end.set()
        assert first.wait(120)


def test_a_result_on_disk_is_found_and_one_that_is_gone_is_offered_again(offer):
    kept = []
    app = offer(kept.append, find=lambda: kept[0] and "stars" if kept else None)
    assert drawn(app) == (["Count stars"], False)
    assert text_of(pressed(app)) == "found stars"
    kept.clear()
    assert drawn(app.run()) == (["Count stars"], False)


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
    assert app.button(key="stop_stars").label == "Stop"
    explained(app, 1)
    app.button(key="stop_stars").click().run()
    assert job.wait(120) and app.session_state["asked"] == ["stars"]
    assert [text.value for text in app.run().markdown] == ["drawn again"]


def test_the_page_is_drawn_again_where_a_panel_has_enough_of_a_job_that_goes_on(job):
    app = AppTest.from_function(card, default_timeout=120).run()
    assert app.get("progress")
    app.session_state["enough"] = True
    assert [text.value for text in app.run().markdown] == ["drawn again"] and not job.ended
