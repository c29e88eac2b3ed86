"""From an empty Data page to a finished run by the keyboard alone, and the focus is seen wherever it stands."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from datamask.runs.store import RunStore
from tests.e2e.serving import served

TINY = Path(__file__).resolve().parents[2] / "sample_data" / "tiny"
MOST_TABS = 80

# colours fade, on a busy machine late: until no transition is left around the focus. One elsewhere may never end, as of
# what is not drawn; so may one of these
FADED = """const around = animation => animation.effect?.target?.contains(document.activeElement);
    const faded = () => Promise.race([
        new Promise(done => setTimeout(done, 5000)),
        Promise.all(document.getAnimations().filter(each => each instanceof CSSTransition && around(each))
            .map(each => each.finished.catch(() => null))),
    ]);"""
# what has the focus: its words, and how it and what is around it look
FOCUS = (
    """async () => {
    """
    + FADED
    + """
    const at = document.activeElement;
    // what scrolls takes the focus while nothing inside can, as when a page is being drawn
    if (!at || at === document.body || at.querySelector("a, button")) return null;
    const look = element => {
        const s = getComputedStyle(element);
        return [s.outlineStyle, s.outlineWidth, s.boxShadow, s.borderColor, s.backgroundColor].join("|");
    };
    const looks = [];
    await faded();
    for (let element = at, k = 0; element && k < 5; element = element.parentElement, k++) looks.push(look(element));
    const name = at.getAttribute("aria-label") || at.innerText || at.labels?.[0]?.innerText || "";
    return {name: name.trim().replace(/\\s+/g, " "), tag: at.tagName, looks};
}"""
)
# the same element without the focus; it gets it back
WITHOUT = (
    """async () => {
    """
    + FADED
    + """
    const at = document.activeElement, look = element => {
        const s = getComputedStyle(element);
        return [s.outlineStyle, s.outlineWidth, s.boxShadow, s.borderColor, s.backgroundColor].join("|");
    };
    at.blur();
    await faded();
    const looks = [];
    for (let element = at, k = 0; element && k < 5; element = element.parentElement, k++) looks.push(look(element));
    at.focus({focusVisible: true});
    return looks;
}"""
)


def tab_to(page: Page, name: str) -> None:
    """Press Tab until what has that name has the focus, which must be seen there."""
    pattern = re.compile(name)
    passed = []
    for _ in range(MOST_TABS):
        page.keyboard.press("Tab")
        focus = page.evaluate(FOCUS)
        if focus is None:
            continue
        passed.append(focus["name"][:40])
        if pattern.search(focus["name"]):
            seen = page.evaluate(FOCUS)["looks"]
            without = page.evaluate(WITHOUT)
            assert seen != without, f"the focus cannot be seen on {focus['name']!r}"
            return
    raise AssertionError(f"{name!r} cannot be reached by Tab; passed {passed}")


def still(page: Page) -> None:
    """Until the page has been drawn."""
    expect(page.get_by_test_id("stApp")).to_have_attribute("data-test-script-state", "notRunning")
    expect(page.get_by_test_id("stSkeleton")).to_have_count(0)


@pytest.mark.timeout(900)
def test_a_run_is_started_without_a_mouse(tmp_path, monkeypatch, browser_page: Page):
    monkeypatch.setenv("DATAMASK_ROOTS", str(TINY.parent))
    page = browser_page
    with served(tmp_path) as address:
        page.goto(f"{address}/data")
        main = page.get_by_test_id("stMain")
        expect(main.get_by_text("No corpus is open")).to_be_visible()
        still(page)
        # the choices beside each other are one stop; arrows go along them
        tab_to(page, "^Demo$")
        page.keyboard.press("ArrowRight")
        if page.evaluate(FOCUS)["name"] == "Path" and not main.get_by_role("textbox").count():
            page.keyboard.press("Space")
        expect(main.get_by_role("textbox", name="Files, folders or globs")).to_be_visible()
        still(page)
        tab_to(page, "^Files, folders or globs")
        page.keyboard.type(str(TINY))
        page.keyboard.press("Control+Enter")
        expect(main.get_by_test_id("stButton").get_by_role("button", name="Open", exact=True)).to_be_enabled()
        still(page)
        tab_to(page, "Open$")
        page.keyboard.press("Enter")
        # the page before it may be there for a moment
        expect(main.get_by_text("Quality scores", exact=True).last).to_be_visible()
        still(page)
        tab_to(page, "Select from this corpus")
        page.keyboard.press("Enter")
        expect(page.get_by_role("heading", level=1, name="Runs", exact=True)).to_be_visible()
        expect(main.get_by_role("button", name="Solve", exact=True)).to_be_visible()
        still(page)
        tab_to(page, "^Balance λ$")
        page.keyboard.press("ArrowRight")
        expect(page.get_by_test_id("stSliderThumbValue").first).to_contain_text("0.55")
        still(page)
        tab_to(page, "Solve$")
        page.keyboard.press("Enter")
        expect(main.get_by_text("final selection").first).to_be_visible()
        still(page)
        tab_to(page, "Copy settings to the form$")
    (run,) = RunStore(tmp_path / "runs").list()
    assert run.status().state == "done" and run.config.selection.lamb == 0.55
