"""The browser that the tests of this folder share."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.e2e.browsing import Running
from tests.e2e.serving import PREPARED, ends_of_logs

RUNNING = Running()

FAILS = pytest.StashKey[bool]()
"""Of a test: whether it has failed."""


@pytest.fixture
def browser() -> Browser:
    """A real browser, shared with other tests, for contexts of your own, which start with no file kept; close them."""
    return RUNNING.started()


@pytest.fixture
def browser_page(request, tmp_path) -> Iterator[Page]:
    """A page of a real browser, 1440 x 900, without cookies, storage or history; the dashboard's files may be cached.

    How it looked when a test had failed is in ``tmp_path / "last.png"``.
    """
    page = RUNNING.visitor()
    page.set_default_timeout(240_000)
    expect.set_options(timeout=240_000)
    try:
        yield page
    finally:
        if request.node.stash.get(FAILS, False):
            page.screenshot(path=str(tmp_path / "last.png"))
        RUNNING.leave()


@pytest.fixture(autouse=True)
def nothing_from_outside() -> Iterator[None]:
    """Every address outside of this machine is blocked; a test whose pages ask for one fails."""
    RUNNING.outside.clear()
    yield
    RUNNING.check()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item, nextitem):
    """End the browser before a test elsewhere: while its driver runs, this thread can run no other event loop."""
    try:
        return (yield)
    finally:
        if nextitem is None or Path(__file__).parent not in nextitem.path.parents:
            RUNNING.end()
            PREPARED.end()


def pytest_sessionfinish():
    """End it also where the tests were broken off."""
    RUNNING.end()
    PREPARED.end()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    """Show, of a test that failed, what its dashboards logged and where their threads are."""
    report = yield
    if report.failed:
        item.stash[FAILS] = True
        report.sections += [("log of a dashboard", text) for text in ends_of_logs()]
    return report
