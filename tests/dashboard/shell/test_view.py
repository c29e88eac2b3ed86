"""The view: its address brings it back, and what a browser sends late is no step back."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from datamask.config import SelectionConfig
from datamask.dashboard.shell import view as views
from datamask.dashboard.shell.view import View, view_of

PROBLEMS = st.builds(
    SelectionConfig.from_options,
    objective=st.sampled_from(["facility", "pairwise", "disf", "pairwise:0.7,facility:0.3"]),
    select_ratio=st.floats(0.001, 0.999).map(lambda ratio: round(ratio, 4)),
    scale=st.sampled_from(["calibrated", "raw"]),
    center=st.booleans(),
    prune=st.sampled_from([0.0, 0.2]),
    collapse=st.sampled_from(["none", "exact", "0.95", "column:Group Id"]),
) | st.builds(SelectionConfig.from_options, budget=st.sampled_from([1500.0, 1.5e8]))
LAMBDAS = st.none() | st.floats(0, 1).map(lambda lamb: round(lamb, 2))


@given(PROBLEMS | st.none(), LAMBDAS, st.sampled_from(["", "0" * 20]))
def test_an_address_brings_the_view_back(problem, lamb, rules):
    texts = {name: f"{name} & more" for name in views.PLAIN} | {"compared": ("b", "a")}
    view = View("c0ffee", "", problem, rules, lamb, watched="a-run", **texts)
    assert view.fits and view_of(view.address) == view
    shown = View("c0ffee", "some-run", lamb=lamb)
    assert view_of(shown.address) == shown


@pytest.mark.parametrize(
    "address",
    [{"objective": "<b>"}, {"objective": "facility", "select_ratio": "2"}, {"objective": "facility", "budget": "x"}],
)
def test_a_problem_that_cannot_be_read_is_none(address):
    assert view_of(address).problem is None


def test_what_is_too_long_for_an_address_is_left_out():
    view = View("c0ffee", region="x" * (views.LONGEST + 1))
    assert not view.fits and view.address == {"corpus": "c0ffee"}


@pytest.fixture
def browser(monkeypatch):
    """A page and the browser that shows it: `drawn` draws with the address that the browser has by then."""
    state, address = {}, {}
    monkeypatch.setattr(views, "st", SimpleNamespace(session_state=state, query_params=address))

    def drawn(sent: dict[str, str], **parts) -> dict[str, str]:
        address.clear()
        address.update(sent)
        views.read()
        views.change(**parts)
        views.write()
        return dict(address)

    return drawn


def test_a_late_address_takes_nothing_back_and_a_step_back_does(browser):
    first = browser({"corpus": "c", "run": "a"}, lamb=0.3)
    second = browser(first, lamb=0.6)
    # asked for before the browser knew of the second address
    assert browser(first) == second and views.now().lamb == 0.6
    assert browser(second) == second
    assert browser(first) == first and views.now().lamb == 0.3
    # a page that is opened without an address shows the same view
    assert browser({}) == first
    # a link names all of it
    assert browser({"corpus": "c", "run": "b"}) == {"corpus": "c", "run": "b"} and views.now().lamb is None


def test_a_step_of_back_keeps_all_of_the_address_that_is_left(browser):
    first = browser({"corpus": "c", "run": "a"}, region="UMAP.lasso")
    browser(browser(first), corpus="d", run="", region="")
    sent = views.st.session_state["view_written"]
    assert sent[-1] == {"corpus": "d"} and all(one == first for one in sent if one.get("run") and one["corpus"] == "c")
