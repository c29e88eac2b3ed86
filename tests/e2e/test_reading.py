"""Where a map was moved to stands in the address, and arrow keys turn the pages of the reader."""

from __future__ import annotations

import contextlib
import json
import re

import pytest
from playwright.sync_api import Error as PlaywrightError
from playwright.sync_api import Page, expect

from tests.e2e.serving import STILL
from tests.e2e.test_lambda_slider import ready  # noqa: F401 - a fixture


def sight(page) -> dict[str, float]:
    return json.loads(page.locator(".map").get_attribute("data-view"))


@pytest.mark.timeout(600)
def test_the_address_keeps_where_the_map_was_moved_and_costs_no_step_of_back(ready, browser_page: Page):  # noqa: F811
    page = browser_page
    sent = []
    page.on("websocket", lambda socket: socket.on("framesent", lambda data: sent.append(len(data))))
    page.goto(ready)
    expect(page.locator(".map[data-drawn='1']")).to_be_visible()
    # what is prepared in the background has the page drawn anew: it is over before anything is counted
    prepare = page.get_by_role("button", name="Prepare λ")
    expect(prepare.or_(page.locator(".signs .solved").nth(21)).first).to_be_visible()
    with contextlib.suppress(PlaywrightError):
        prepare.click(timeout=6_000)
    expect(page.locator(".signs .solved")).to_have_count(22)
    expect(page.get_by_role("button", name="Stop", exact=True)).to_have_count(0)
    page.wait_for_function(STILL)
    whole, steps, before = sight(page), page.evaluate("history.length"), page.url
    assert "at=" not in before
    stage = page.locator(".stage")
    box = stage.bounding_box()
    page.mouse.move(box["x"] + box["width"] / 3, box["y"] + box["height"] / 3)
    sent.clear()
    for _ in range(12):
        page.mouse.wheel(0, -60)
    page.wait_for_function("location.search.includes('at=')")
    page.wait_for_function(STILL)
    near = sight(page)
    assert near["scale"] > 3 * whole["scale"] and near["x"] != whole["x"]
    # one word to the server once the hand rests, and no step of Back
    assert len(sent) == 1 and page.evaluate("history.length") == steps
    kind, numbers = re.search(r"at=(\w+)\.([^&]*)", page.url).groups()
    x, y, zoom = (float(number) for number in numbers.replace("%2C", ",").split(","))
    assert kind == "UMAP" and zoom == pytest.approx(near["scale"] / whole["scale"], rel=1e-5)
    assert x == pytest.approx(near["x"], abs=1e-5) and abs(y) < 10
    assert page.url.startswith(before)

    # what else is said to the server leaves it there
    page.locator(".st-key-explore_map_which").get_by_role("radio", name="not selected").or_(
        page.locator(".st-key-explore_map_which").get_by_role("button", name="not selected")
    ).first.click()
    page.wait_for_function("location.search.includes('show=')")
    page.wait_for_function(STILL)
    assert f"at={kind}.{numbers}" in page.url and sight(page) == near

    # loaded anew, in another tab and in another window's size, the same is in the middle
    page.reload()
    expect(page.locator(".map[data-drawn='1']")).to_be_visible()
    page.wait_for_function(STILL)
    again = sight(page)
    assert [again[part] for part in ("x", "y", "scale")] == pytest.approx(
        [near[part] for part in ("x", "y", "scale")], rel=1e-5
    )
    assert f"at={kind}.{numbers}" in page.url
    # all of the map: nothing to say
    stage.focus()
    page.keyboard.press("0")
    page.wait_for_function("!location.search.includes('at=')")
    page.wait_for_function(STILL)
    assert "at=" not in page.url
    # a region drawn around what is shown is there again, in another session, and Back takes it along
    page.keyboard.press("Enter")
    page.wait_for_function("location.search.includes('region=')")
    page.wait_for_function(STILL)
    shown = page.get_by_role("button", name="region on the map")
    expect(shown).to_be_visible()
    page.reload()
    expect(shown).to_be_visible()
    # nonsense is not followed
    page.goto(f"{ready}&at=UMAP.1,2,1e9")
    expect(page.locator(".map[data-drawn='1']")).to_be_visible()
    page.wait_for_function(STILL)
    assert sight(page)["scale"] == pytest.approx(whole["scale"])


@pytest.mark.timeout(600)
def test_arrow_keys_turn_to_the_sample_before_and_after(ready, browser_page: Page):  # noqa: F811
    page = browser_page
    page.goto(ready)
    expect(page.locator(".map[data-drawn='1']")).to_be_visible()
    page.wait_for_function(STILL)
    stage, reader = page.locator(".stage"), page.locator(".st-key-explore_reader")
    stage.focus()
    page.keyboard.press("m")
    place = reader.get_by_text(re.compile(r"^[\d,]+ of 600$"))
    expect(place).to_be_visible()
    page.wait_for_function(STILL)

    def number() -> int:
        return int(place.inner_text().partition(" ")[0].replace(",", ""))

    def at(wanted: int) -> None:
        expect(place).to_have_text(f"{wanted} of 600")
        page.wait_for_function(STILL)

    first = number()
    turn, back = (1, -1) if first < 598 else (-1, 1)
    key = {1: "ArrowRight", -1: "ArrowLeft"}
    # on the map arrows move it; comma and full stop turn
    root = page.locator(".map")
    view = root.get_attribute("data-view")
    page.keyboard.press("ArrowLeft")
    expect(root).not_to_have_attribute("data-view", view)
    assert number() == first
    # the server takes note of the move: a press that meets a fragment's own drawing may be lost in Streamlit 1.67
    page.wait_for_function("() => new URLSearchParams(location.search).has('at')")
    page.wait_for_timeout(500)
    page.wait_for_function(STILL)
    page.keyboard.press({1: ".", -1: ","}[turn])
    at(first + turn)
    page.keyboard.press({1: ".", -1: ","}[back])
    at(first)
    # a press on the text, and from then on arrows turn, again and again
    reader.locator("code").first.click()
    for step in (1, 2):
        page.keyboard.press(key[turn])
        at(first + step * turn)
    page.keyboard.press(key[back])
    at(first + turn)
    # from a control of the reader as well, also from one that goes
    reader.get_by_role("button", name="Next", exact=True).focus()
    page.keyboard.press(key[back])
    at(first)
    # not where arrows have a use of their own: in an input, on the slider
    page.get_by_role("textbox", name=re.compile("Search", re.I)).first.focus()
    page.keyboard.press("ArrowRight")
    if page.locator(".signs .solved").count() == 22:
        page.get_by_role("slider", name=re.compile("^Balance λ")).focus()
        page.keyboard.press("ArrowRight")
    page.wait_for_timeout(500)
    page.wait_for_function(STILL)
    assert number() == first
    # the map has its width from the first, not only once the reader shows something: a lasso is drawn where it lies
    before = stage.bounding_box()
    page.locator("div:has(> .st-key-explore_reader)").evaluate("place => place.remove()")
    assert stage.bounding_box() == before
