"""Home: a folder outside the roots is opened with the code that the server's terminal shows, and not without."""

from __future__ import annotations

import pytest
from streamlit import config

from datamask.config import CorpusConfig
from datamask.dashboard.data import kept_roots
from datamask.dashboard.data.allowed import Allowed
from datamask.dashboard.data.openings import Openings, openings
from datamask.dashboard.server.codes import OneTimeCode
from datamask.dashboard.shell import code_field, session
from tests.making.runs import write_shard
from tests.pages.test_data import button, choose_path, open_and_wait, said


@pytest.fixture
def elsewhere(tmp_path_factory):
    """Two folders outside the roots, a shard in each."""
    folder = tmp_path_factory.mktemp("elsewhere")
    for name in ("first", "second"):
        (folder / name).mkdir()
        write_shard(folder / name / "shard.parquet")
    return folder


@pytest.fixture
def clock() -> list[float]:
    """The seconds of the server's clock, which a test moves."""
    return [0.0]


@pytest.fixture
def told(monkeypatch, clock) -> list[str]:
    """What a terminal of its own shows, of a server that has allowed nothing yet."""
    told = []
    code, allowed = OneTimeCode(told.append, lambda: clock[0]), Allowed()
    monkeypatch.setattr(code_field, "one_time_code", lambda: code)
    for module in (code_field, session):
        monkeypatch.setattr(module, "allowed", lambda: allowed)
    return told


def type_code(app, code):
    app.text_input(key="allow_code").set_value(code)
    return app.button(key="allow").click().run()


def test_the_right_code_allows_that_folder_and_no_other(page, runs_dir, opened, elsewhere, told):
    app = choose_path(page("pages/data.py", corpus=opened.key), elsewhere / "first" / "*.parquet")
    assert "outside the folders" in app.error[0].value and app.error[0].value.endswith("the one-time code below.")
    # below the answer bar the only filled button is the field's: the corpus that is open made way
    assert [b.key for b in app.button if b.proto.type == "primary" and b.key != "answer_solve"] == ["allow"]
    assert str(elsewhere / "first") in button(app, app.button(key="allow").label).label.replace("\\", "")
    assert app.text_input(key="allow_code").proto.help
    app = type_code(app, told[0])
    assert not app.error and "240 rows" in said(app) and str(elsewhere / "first") in said(app).replace("\\", "")
    app, opening = open_and_wait(app, runs_dir)
    assert opening.ready, opening.job.error
    app = choose_path(page("pages/data.py"), elsewhere / "second")
    app = type_code(app, told[0])
    assert "outside the folders" in app.error[0].value and "Wrong code" in app.warning[0].value


def test_a_wrong_code_allows_nothing_and_the_right_one_does_after_a_pause(page, elsewhere, told, clock):
    app = choose_path(page("pages/data.py"), elsewhere / "first")
    for wrong in ("", "ABCD-EFGH"):
        app = type_code(app, wrong)
        assert "outside the folders" in app.error[0].value and app.warning[0].value == "Wrong code."
    assert type_code(app, told[0][:-1]).warning[0].value == "Wrong code. Try again in 1 s."
    clock[0] += 0.5
    said_now = type_code(app, told[0]).warning[0].value
    assert said_now == "Too many wrong codes. This one was not checked. Try again in 1 s."
    clock[0] += 0.5
    assert "240 rows" in said(type_code(app, told[0])) and len(told) == 2


def test_a_server_that_others_can_reach_has_no_field(page, runs_dir, elsewhere, told):
    before = config.get_option("server.address")
    config.set_option("server.address", "0.0.0.0")
    try:
        app = choose_path(page("pages/data.py"), elsewhere / "first")
        assert "outside the folders" in app.error[0].value and "below" not in app.error[0].value
        assert not app.text_input or all(field.key != "allow_code" for field in app.text_input)
        assert all(b.key != "allow" for b in app.button)
    finally:
        config.set_option("server.address", before)
    assert openings(runs_dir).all() == []


def test_what_the_code_allowed_is_kept_for_the_next_start(page, runs_dir, elsewhere, told):
    app = choose_path(page("pages/data.py"), elsewhere / "first" / "*.parquet")
    type_code(app, told[0])
    assert kept_roots.kept(runs_dir) == (elsewhere / "first",)
    # a wrong code keeps nothing
    type_code(choose_path(page("pages/data.py"), elsewhere / "second"), "ABCD-EFGH")
    assert kept_roots.kept(runs_dir) == (elsewhere / "first",)


def test_the_code_is_asked_for_where_a_corpus_is_refused(page, runs_dir, elsewhere, told):
    before = Openings(runs_dir)
    opening = before.start(CorpusConfig((str(elsewhere / "first" / "shard.parquet"),)), "before")
    opening.wait(240)
    app = page(corpus=opening.key)
    assert "outside the folders" in app.error[0].value and openings(runs_dir).all() == []
    app.text_input(key="allow_outside_code").set_value(told[0])
    app.button(key="allow_outside").click().run()
    found = openings(runs_dir).get(opening.key)
    assert found is not None and not app.error
    found.wait(240)
    assert found.ready


@pytest.mark.parametrize("key", ["nothing-of-that-name", "../../etc/passwd"])
def test_a_link_to_no_corpus_is_one_sentence(page, key):
    app = page(corpus=key)
    assert [warning.value for warning in app.warning] == [
        "This server has never opened the corpus of this link. Choose a corpus on the Data page."
    ]
    assert "corpus" not in app.query_params
    assert not app.run().warning
