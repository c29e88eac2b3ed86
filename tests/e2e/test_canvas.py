"""The map in a real browser: what travels, what survives other colours, what the keyboard reaches."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest
from playwright.sync_api import Page, expect

from datamask.dashboard.shell import components
from tests.e2e.serving import served


@pytest.fixture
def address(tmp_path):
    """Of a server of its own."""
    with served(tmp_path, script=Path(__file__).with_name("canvas_page.py")) as where:
        yield where


def colours(page, panel: int) -> set[str]:
    """The colours on a panel, paper included."""
    return set(
        page.locator(".stage canvas")
        .nth(2 * panel)
        .evaluate("""canvas => {
        const seen = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data, found = [];
        for (let k = 0; k < seen.length; k += 4) found.push([seen[k], seen[k + 1], seen[k + 2]].join(","));
        return [...new Set(found)];
    }""")
    )


@pytest.mark.timeout(600)
def test_the_map_keeps_its_place_while_its_colours_change(address, browser_page: Page):
    page = browser_page
    fetched = []
    page.on("requestfinished", lambda request: "/parcel/" in request.url and fetched.append(request.url))
    page.goto(address)
    expect(page.locator(".map[data-drawn='3']")).to_be_visible()
    said = page.get_by_text(re.compile("^regions"))
    assert len(fetched) == len(set(fetched)) == 4  # the ground and three layers
    root, stage = page.locator(".map"), page.locator(".stage").first
    assert root.get_attribute("aria-label") == "Points" and len(colours(page, 0)) > 50
    assert page.get_by_role("toolbar", name="Tools of the map").get_by_role("button").count() == 7

    # names stand where there is room, the first ones first, as text; the same on every panel, heard once
    assert root.get_attribute("data-names") == "2"
    names = page.get_by_role("group", name="Named regions").get_by_role("button")
    expect(names).to_have_text(["<b>right</b>", "left"])
    opened = page.get_by_text(re.compile("^opened"))
    names.first.focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    expect(opened).to_have_text("opened [3]")
    expect(names.nth(1)).to_have_attribute("aria-pressed", "true")
    spot = names.first.bounding_box()
    x, y = spot["x"] + spot["width"] / 2, spot["y"] + spot["height"] / 2
    page.mouse.click(x, y)
    expect(opened).to_have_text("opened [7]")
    # who begins a lasso on a name draws one, and opens nothing
    page.mouse.move(x, y)
    page.mouse.down()
    for across, down in ((30, 0), (30, 30), (0, 30)):
        page.mouse.move(x - across, y + down, steps=3)
    page.mouse.up()
    expect(said).to_have_text("regions 1, picked None")
    expect(opened).to_have_text("opened [7]")
    stage.focus()
    page.keyboard.press("Escape")
    expect(said).to_have_text("regions 0, picked None")

    # by keyboard alone: closer, to the side, and what is in view as region
    stage.focus()
    first = root.get_attribute("data-view")
    home = json.loads(first)
    for key in ("+", "+", "ArrowRight", "Enter"):
        page.keyboard.press(key)
    expect(said).to_have_text("regions 1, picked None")
    view = root.get_attribute("data-view")
    assert json.loads(view)["scale"] == pytest.approx(1.3**2 * home["scale"]) and json.loads(view)["x"] > home["x"]

    # other colours move nothing, and only they travel
    page.wait_for_load_state("networkidle")
    fetched.clear()
    page.get_by_text("Other colours").click()
    expect(page.locator(".panel .title").first).to_have_text("By height")
    before = colours(page, 2)
    for step in (1, 2):
        page.get_by_role("button", name="Next").click()
        expect(page.locator(".panel .title").nth(2)).to_have_text(f"Step {step}")
    expect(said).to_have_text("regions 1, picked None")
    assert root.get_attribute("data-view") == view and len(fetched) == 3
    assert before & colours(page, 2)

    # what the server let go of before it was fetched is there again by itself
    with page.expect_response(lambda answer: "/parcel/" in answer.url and answer.status == 404):
        page.get_by_role("button", name="Lose").click()
    expect(page.locator(".panel .title").nth(2)).to_have_text("Step 3")

    # a click picks the sample under the pointer, and its label is text, not markup
    stage.focus()
    page.keyboard.press("Escape")
    expect(said).to_have_text("regions 0, picked None")
    page.keyboard.press("0")
    expect(root).to_have_attribute("data-view", first)  # drawn anew a frame later
    view = home
    points = np.random.default_rng(0).normal(size=(5000, 2)).astype(np.float32)
    row = int(np.argmax(points[:, 0] * (np.abs(points) < 2.2).all(axis=1)))
    box = stage.bounding_box()
    x = box["x"] + 1 + stage.evaluate("s => s.clientWidth") / 2 + (points[row, 0] - view["x"]) * view["scale"]
    y = box["y"] + 1 + stage.evaluate("s => s.clientHeight") / 2 - (points[row, 1] - view["y"]) * view["scale"]
    page.mouse.move(float(x), float(y))
    expect(page.locator(".tip")).to_contain_text(f"<b>text</b> of {row}")
    page.mouse.click(float(x), float(y))
    expect(said).to_have_text(f"regions 0, picked {row}")


def test_no_name_lies_over_the_ring_of_a_marked_sample(browser_page: Page):
    names = (components.FILES / "names.js").read_text()
    placed = """marked => {
        const element = () => ({ style: {}, dataset: {} }), buttons = [element(), element()];
        const map = { regionNames: [{ x: 100, y: 100, width: 60 }, { x: 300, y: 100, width: 60 }], root: element(),
            data: { marked, filled: false }, view: { zoom: 1 }, width: 400, height: 200, strip: 0, toX: (x) => x,
            toY: (y) => y, panels: [{ nameButtons: buttons }] };
        placeNames(map);
        return [map.root.dataset.names, ...buttons.map((button) => button.hidden)];
    }"""
    page = browser_page
    page.add_script_tag(content=names)
    assert page.evaluate(placed, []) == ["2", False, False]
    assert page.evaluate(placed, [[200, 100]]) == ["2", False, False]
    # on the name, and so near to its edge that the ring would be cut
    for marked in ([100, 100], [137, 100], [100, 118]):
        assert page.evaluate(placed, [marked]) == ["1", True, False]
