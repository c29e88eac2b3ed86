"""The lambda slider in a real browser: dragging asks nobody, letting go asks once, by keyboard too."""

from __future__ import annotations

import contextlib
import json
import re

import pyarrow.parquet as pq
import pytest
from playwright.sync_api import Error as PlaywrightError
from playwright.sync_api import Page, Route, expect

from datamask.corpus import open_corpus
from datamask.runs.store import RunStore
from tests.e2e.serving import STILL, served
from tests.e2e.test_canvas import colours
from tests.making.maps import lay_out
from tests.making.runs import execute_run, write_shard

N = 600
SHOWN = ".lambda[data-shown='{}']"


@pytest.fixture
def ready(tmp_path):
    """A run at lambda 0.5 on a corpus whose layout is there, so that nothing but the slider is under way."""
    config = write_shard(tmp_path / "shard.parquet", N)
    corpus, store = open_corpus(config), RunStore(tmp_path / "runs")
    run = execute_run(store, config, "first", objective="pairwise", estimator="relaxed")
    lay_out(corpus, store.cache_dir)
    with served(tmp_path) as address:
        yield f"{address}/?run={run.id}"


@pytest.mark.timeout(600)
def test_dragging_asks_nobody_and_letting_go_asks_once(ready, browser_page: Page, tmp_path):
    page = browser_page
    sent, received, requests = [], [], []

    def listen(socket):
        socket.on("framesent", lambda data: sent.append(len(data)))
        socket.on("framereceived", lambda data: received.append(len(data)))

    page.on("websocket", listen)
    page.on("request", lambda request: requests.append(request.url))
    page.goto(ready)
    expect(page.locator(".map[data-drawn='1']")).to_be_visible()
    slider = page.get_by_role("slider", name=re.compile("^Balance λ"))
    title, answer = page.locator(".panel .title"), page.locator(".answer")
    expect(title).to_have_text("Selected by first")
    prepare = page.get_by_role("button", name="Prepare λ")
    expect(prepare.or_(page.locator(".signs .solved").nth(21)).first).to_be_visible()
    with contextlib.suppress(PlaywrightError):
        # where the naming of regions has loaded what it takes, it prepares itself
        prepare.click(timeout=6_000)
    expect(prepare).to_have_count(0)
    # neither of the slider nor of anything else that is prepared
    expect(page.get_by_role("button", name="Stop", exact=True)).to_have_count(0)
    expect(page.locator(".signs .solved")).to_have_count(22)
    page.wait_for_function(STILL)
    # until somebody moves it, the run is what is coloured, and the slider stands at its lambda
    expect(title).to_have_text("Selected by first")
    expect(slider).to_have_value("0.5")
    expect(page.locator(SHOWN.format(""))).to_be_visible()

    # what cannot follow a drag at once: the buttons of the answer bar and the reader
    following = [page.locator(f".st-key-{key}") for key in ("answer_buttons", "explore_reader")]
    for place in following:
        expect(place).to_have_css("opacity", "1")
    box = slider.bounding_box()

    def along(share):
        # the middle of the thumb moves along the track less its own width
        return box["x"] + 8 + (box["width"] - 16) * share, box["y"] + box["height"] / 2

    def picture():
        return page.locator(".stage canvas").first.evaluate("canvas => canvas.toDataURL()")

    page.mouse.move(*along(0.5))
    page.mouse.down()
    for kept in (sent, received, requests):
        kept.clear()
    pictures, said = {picture()}, set()
    for percent in range(49, 11, -1):
        page.mouse.move(*along(percent / 100))
        if percent % 5 == 0:
            expect(page.locator(SHOWN.format(f"{percent / 100:g}"))).to_be_visible()
            expect(title).to_have_text(f"Selected at λ {percent / 100:g}")
            page.evaluate("() => new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(drawn)))")
            pictures.add(picture())
            said.add(answer.inner_text())
            expect(answer.locator(".head b")).to_have_text(f"λ {percent / 100:g}")
    for place in following:
        expect(place).to_have_css("opacity", "0.4")
    # map and answer bar followed, and nothing went over any wire
    assert len(pictures) == 8 and len(said) == 7
    assert (sent, received, requests) == ([], [], [])

    held: list[Route] = []
    page.route(re.compile("/parcel/[0-9a-f]+$"), lambda route: held.append(route))
    page.mouse.up()
    # the selection and its numbers come by themselves, however long the page takes
    expect(page.locator(SHOWN.format("0.12"))).to_be_visible()
    expect(page.locator(".answer.moved .head b")).to_have_text("λ 0.12")
    expect(title).to_have_text("Selected at λ 0.12")
    page.wait_for_function(STILL)
    for route in held:
        route.continue_()
    page.unroute_all()
    page.wait_for_function(STILL)
    # one value goes to the server, and the map fetches the selection and the page's new colors; where the address
    # changes, the browser may fetch the picture in the menu once more
    fetched = [url for url in requests if "/media/" not in url]
    # besides, once the page has moved under the pointer, it may have come near Keep, whose preview is fetched then
    assert len(sent) == 1 and len(fetched) == 2 and all("/datamask/parcel/" in url for url in fetched)
    # the answer is one for all of the page: it follows, and says so
    for place in following:
        expect(place).to_have_css("opacity", "1")
    expect(page.locator(".answer:not(.moved)")).to_contain_text(
        re.compile(r"λ 0\.12\s*pairwise, keep 30\s%\s*180 of 600 rows")
    )
    with page.expect_download() as drawn:
        page.get_by_role("button", name="Download 180 ids", exact=True).click()
    drawn.value.save_as(tmp_path / "drawn.parquet")
    table = pq.read_table(tmp_path / "drawn.parquet")
    assert table.num_rows == 180 and json.loads(table.schema.metadata[b"datamask"])["lambda"] == 0.12
    assert "lambda=0.12" in page.url
    steps = page.evaluate("history.length")

    # by keyboard: arrows move it and ask once they rest; the way back to the run is the next stop
    slider.focus()
    sent.clear()
    for _ in range(3):
        page.keyboard.press("ArrowRight")
    expect(page.locator(SHOWN.format("0.15"))).to_be_visible()
    expect(page.locator(".answer:not(.moved) .head b")).to_have_text("λ 0.15")
    page.wait_for_function(STILL)
    assert "lambda=0.15" in page.url and page.evaluate("history.length") == steps, "λ is no step of Back"
    expect(slider).to_have_attribute("aria-valuetext", re.compile(r"^λ 0\.15: Quality"))
    page.keyboard.press("Tab")
    expect(page.get_by_role("button", name="As in first")).to_be_focused()
    page.keyboard.press("Enter")
    expect(title).to_have_text("Selected by first")
    expect(slider).to_have_value("0.5")
    page.wait_for_function(STILL)
    for place in following:
        expect(place).to_have_css("opacity", "1")
    expect(page.get_by_role("button", name="Download 180 ids", exact=True)).to_be_visible()
    assert "lambda" not in page.url

    # the dot of the trade-off and a typed number are the slider in other places
    figure, typed = page.locator("svg.tradeoff"), page.get_by_role("spinbutton", name="λ")
    dot = figure.locator(".dot").bounding_box()
    page.mouse.move(dot["x"] + dot["width"] / 2, dot["y"] + dot["height"] / 2)
    page.mouse.down()
    for kept in (sent, received, requests):
        kept.clear()
    solved = figure.locator(".solved").last.bounding_box()
    page.mouse.move(solved["x"] + solved["width"] / 2, solved["y"] + solved["height"] / 2, steps=20)
    expect(page.locator(SHOWN.format("1"))).to_be_visible()
    expect(page.locator(".answer.moved .head b")).to_have_text("λ 1")
    expect(typed).to_have_value("1.00")
    assert (sent, received, requests) == ([], [], [])
    page.mouse.up()
    expect(page.locator(".answer:not(.moved) .head b")).to_have_text("λ 1")
    page.wait_for_function(STILL)
    assert len(sent) == 1 and "lambda=1" in page.url
    typed.fill("0.5")
    typed.press("Enter")
    expect(page.locator(".answer:not(.moved) .head b")).to_have_text("λ 0.5")
    expect(slider).to_have_value("0.5")
    expect(figure).to_have_attribute("data-shown", "0.5")
    page.wait_for_function(STILL)

    # a baseline stands in the place of the selection, without a request, until it is pressed again
    for kept in (sent, received, requests):
        kept.clear()
    figure.get_by_role("button", name="Show best scores on the map").click()
    expect(title).to_have_text("Best scores")
    expect(answer).to_contain_text("Quality 100 %")
    page.keyboard.press("Enter")
    expect(page.locator(".answer:not(.moved) .head b")).to_have_text("λ 0.5")
    assert (sent, received, requests) == ([], [], [])

    # all of the window, the slider in it; Escape leads back
    before = page.locator(".stage").bounding_box()
    page.get_by_role("button", name="Full screen (F)").click()
    expect(page.locator(".map.full")).to_be_visible()
    full = page.locator(".stage").bounding_box()
    assert full["width"] * full["height"] >= 0.75 * 1440 * 900
    slider.focus()
    page.keyboard.press("Home")
    expect(page.locator(SHOWN.format("0"))).to_be_visible()
    assert len(colours(page, 0)) > 2
    page.keyboard.press("Escape")
    expect(page.locator(".map.full")).to_have_count(0)
    assert page.locator(".stage").bounding_box() == before
    expect(page.locator(SHOWN.format("0"))).to_be_visible()
