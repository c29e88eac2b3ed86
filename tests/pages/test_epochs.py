"""Tokens before lambda on the Data page: what it asks, what follows, and that the forms begin with it."""

from __future__ import annotations

import numpy as np

from datamask.dashboard.drawing import words
from tests.pages.reading import captions


def ask(app, **fields: str):
    for name, text in fields.items():
        app.text_input(key=f"epochs_{name}").set_value(text)
    return app.run()


def read(app) -> str:
    return " ".join(str(line.value) for line in app.markdown)


def test_epochs_follow_from_two_fields_and_the_forms_begin_with_the_ratio_that_is_read_once(page, opened):
    app = page("pages/data.py", corpus=opened.key)
    assert "Enter the tokens to train on" in captions(app)
    ask(app, trained="10B", owned="40B")
    assert f"**{words.percent(0.25)}** of the rows once" in read(app)
    app.button(key="epochs_take").click().run()
    assert app.session_state["form_values"]["select_ratio"] == 0.25
    ask(app, trained="800B", parameters="1.5B")
    assert "or find more text" in read(app) and "533 tokens per parameter" in read(app)
    assert not [button for button in app.button if button.key == "epochs_take"]
    ask(app, trained="lots")
    assert "Tokens to train on must be a number above 0" in captions(app)
    ask(app, trained="10B", owned="lots")
    assert "Available tokens must be a number above 0" in captions(app) and "of the rows once" not in read(app)
    app.switch_page("pages/runs.py").run()
    assert app.number_input(key="form_select_ratio").value == 0.25


def test_what_is_owned_is_read_off_the_lengths_unless_it_is_said(page, opened):
    app = page("pages/data.py", corpus=opened.key)
    ask(app, trained="1000")
    ratio = 1000 / float(np.sum(opened.corpus.lengths))
    assert f"**{words.percent(ratio)}** of the rows once" in read(app)
    ask(app, owned="10K")
    assert f"**{words.percent(0.1)}** of the rows once" in read(app)
