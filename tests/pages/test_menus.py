"""Menus of runs: what a browser sends that is no entry chooses nothing."""

from __future__ import annotations

import pytest
from streamlit.testing.v1 import AppTest


class Seen:
    """What a browser sends back of a select box: the words it drew, which may have changed meanwhile.

    AppTest sends the words of a value, as a browser does; what is no value any more it sends as it stands.
    """

    def __init__(self, app: AppTest, key: str) -> None:
        self.words = list(app.selectbox(key=key).options)

    def send(self, app: AppTest, key: str, place: int) -> None:
        box = app.selectbox(key=key)
        box.options.append(self.words[place])
        box.set_value(self.words[place]).run()
        assert not app.exception


@pytest.mark.parametrize(("script", "key"), [("pages/export.py", "run_choice"), ("app.py", "explore_run")])
def test_a_name_that_a_run_no_longer_has_chooses_none(page, opened, finished, script, key):
    runs = [finished(name=f"run {k}") for k in range(2)]
    app = page(script, corpus=opened.key, run=runs[1].id)
    seen = Seen(app, key)
    runs[0].relabel("another name")
    app.run()
    seen.send(app, key, 1)
    assert app.query_params["run"] == runs[1].id


def test_words_that_were_never_in_the_menu_change_nothing(page, opened, finished):
    run = finished(name="mine")
    app = page("pages/export.py", corpus=opened.key, run=run.id)
    seen = Seen(app, "run_choice")
    seen.words[0] = "<b>anything</b>"
    seen.send(app, "run_choice", 0)
    assert app.query_params["run"] == run.id
