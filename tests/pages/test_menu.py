"""The menu of every page while something runs: a sweep and the run it computes are one block with one Stop."""

from __future__ import annotations

import threading

import pytest

from datamask.config import RunConfig
from datamask.dashboard.data.openings import Opening
from datamask.dashboard.drawing.signs import Sign
from datamask.dashboard.frame import frame
from datamask.work.worker import worker


@pytest.mark.parametrize(("script", "title"), [entry[:2] for entry in frame.PAGES])
def test_each_page_has_its_heading_before_a_corpus_is_open_and_after(page, opened, mapped, script, title, explained):
    for link in ({}, {"corpus": opened.key}):
        app = page(script, **link)
        assert app.title[0].value == title and not app.error
        assert ("No corpus is open" in [heading.value for heading in app.subheader]) == (not link)
        assert ("choose_corpus" in [button.key for button in app.button]) == (not link and title != "Data")
        explained(app)


def test_a_sweep_shows_its_run_as_a_line_without_buttons(page, opened, store):
    child, alone = (store.create(RunConfig(opened.config, name=name)) for name in ("child of it", "on its own"))
    told, go = threading.Event(), threading.Event()

    def work(job):
        job.report(0.4, "3 of 8: step 5 of 100")
        told.set()
        go.wait(240)

    sign = Sign("Sweep of 8 runs", "pages/frontier.py", {}, ("sweep-a",))
    job = worker().start("menu-sweep", work, sign=sign)
    try:
        assert told.wait(240)
        job.left = 100.0
        with child.writer() as one, alone.writer() as other:
            one.set_status("running")
            one.update_facts(sweep="sweep-a")
            other.set_status("running")
            app = page("pages/export.py", corpus=opened.key)
            keys = {button.key for button in app.button}
            lines = [bar.proto.text for bar in app.get("progress")]
    finally:
        go.set()
        job.wait(240)
    assert {f"halt_{job.key}", f"halt_{alone.id}"} <= keys and f"halt_{child.id}" not in keys
    assert any(
        line.startswith("**Sweep of 8 runs** 40") and line.endswith(":gray[, 2\u00a0min left]") for line in lines
    )
    assert any(line.startswith("**on its own**") for line in lines)
    assert not any(line.startswith("**child of it**") for line in lines)


def test_what_is_made_of_the_sample_is_one_block_and_the_page_is_drawn_again_as_it_comes(
    page, opened, store, monkeypatch
):
    mine = store.create(RunConfig(opened.config, name="sample: solved"), run_id="sample-solved")
    told, go, arrived, drawn_again = threading.Event(), threading.Event(), [0], []

    def work(job):
        job.report(0.4, "sample: solved: step 5 of 100")
        told.set()
        go.wait(240)

    sign = Sign(
        "Preparing the sample",
        "app.py",
        {"corpus": opened.key},
        ("sweep-b",),
        ("sample-solved",),
        lambda: arrived[0],
    )
    job = worker().start("menu-sample", work, sign=sign)
    try:
        assert told.wait(240)
        with mine.writer() as writer:
            writer.set_status("running")
            app = page("pages/export.py", corpus=opened.key)
            keys = {button.key for button in app.button}
            said = " ".join(bar.proto.text for bar in app.get("progress"))
        monkeypatch.setattr(frame.st, "rerun", lambda: drawn_again.append(arrived[0]))
        frame._signed_live(((job.key, 0),))
        arrived[0] = 1
        with pytest.raises(KeyError):  # the script would have ended at its rerun
            frame._signed_live(((job.key, 0),))
    finally:
        go.set()
        job.wait(240)
    assert f"halt_{job.key}" in keys and f"halt_{mine.id}" not in keys
    assert "**Preparing the sample**" in said
    assert drawn_again == [1]


def test_a_corpus_that_is_open_in_the_moment_of_a_drawing_is_shown(page, opened, mapped, monkeypatch):
    reads, now = [], Opening.opened.fget
    # when the page asked first it was still being read; when the menu was drawn it was there
    monkeypatch.setattr(Opening, "opened", property(lambda opening: now(opening) if reads else reads.append(opening)))
    app = page(corpus=opened.key)
    assert not app.exception and "Selected by" in [box.label for box in app.selectbox]
