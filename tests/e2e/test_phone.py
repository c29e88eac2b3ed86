"""A window of 400 pixels, and the height of the menu while work is under way."""

from __future__ import annotations

import contextlib
from pathlib import Path

from playwright.sync_api import Page, expect

from datamask.config import RunConfig
from datamask.runs.store import RunStore
from tests.e2e.overflow import OFFENDERS
from tests.e2e.serving import STILL, served
from tests.e2e.test_map import opening  # noqa: F401 (a fixture)
from tests.making.runs import finish_run

STYLED = "() => getComputedStyle(document.querySelector('.st-key-unseen_title')).position === 'absolute'"
"""The style of the frame is there: it comes a moment later than what it styles."""

HEIGHT = "() => document.querySelector('.st-key-menu').getBoundingClientRect().height"


def test_the_menu_keeps_its_height_while_work_starts(tmp_path: Path, opening, browser_page: Page):  # noqa: F811
    store = RunStore(tmp_path / "runs")
    heights: dict[int, set[float]] = {1440: set(), 1000: set(), 400: set()}
    with served(tmp_path) as address, contextlib.ExitStack() as writers:
        for count in range(3):
            if count:
                name = f"a run with a rather long name {count}"
                run = store.create(RunConfig(opening.config, name=name), run_id=f"busy-{count}")
                writers.enter_context(run.writer()).set_status("running")
            browser_page.goto(f"{address}/export?corpus={opening.key}")
            expect(browser_page.get_by_test_id("stPopoverButton").filter(has_text="Help")).to_be_visible()
            expect(browser_page.locator(".st-key-live [data-testid=stProgress]")).to_have_count(count)
            expect(browser_page.locator(".st-key-menu_corpus")).to_contain_text("240 rows")
            for width, seen in heights.items():
                browser_page.set_viewport_size({"width": width, "height": 800})
                browser_page.wait_for_function(STILL)
                browser_page.wait_for_function(STYLED)
                seen.add(browser_page.evaluate(HEIGHT))
        assert all(len(seen) == 1 for seen in heights.values()), heights
        # both can be stopped, also with the keyboard
        menu = browser_page.locator(".st-key-menu")
        for width in heights:
            browser_page.set_viewport_size({"width": width, "height": 800})
            browser_page.get_by_role("button", name="Stop", exact=True).last.focus()
            expect(browser_page.get_by_role("button", name="Stop", exact=True).last).to_be_in_viewport()
            more = browser_page.locator(".st-key-menu_more button")
            expect(more).to_be_visible(visible=width <= 1000)
            expect(menu.get_by_role("link", name="Data")).to_be_visible(visible=width > 1000)
        more.click()
        browser_page.get_by_test_id("stPopoverBody").get_by_role("link", name="Data").click()
        expect(browser_page.get_by_role("heading", level=1, name="Data", exact=True)).to_be_visible()


def test_on_a_phone_the_menu_is_as_high_with_a_longer_name_and_in_another_font(tmp_path, opening, browser_page):  # noqa: F811
    browser_page.set_viewport_size({"width": 400, "height": 800})
    heights = []
    with served(tmp_path) as address:
        for _ in range(2):
            browser_page.goto(f"{address}/export?corpus={opening.key}")
            expect(browser_page.get_by_test_id("stPopoverButton").filter(has_text="Help")).to_be_visible()
            expect(browser_page.locator(".st-key-menu_corpus")).to_contain_text("240 rows")
            browser_page.wait_for_function(STILL)
            browser_page.wait_for_function(STYLED)
            heights.append(browser_page.evaluate(HEIGHT))
            name = browser_page.locator(".st-key-menu_corpus p").first
            name.evaluate("(text) => text.append(' and more'.repeat(20))")
            heights.append(browser_page.evaluate(HEIGHT))
            # once more in the system's fonts, which are wider, as before those of the page are there
            browser_page.route("**/*.woff2", lambda route: route.abort())
        browser_page.unroute("**/*.woff2")
        expect(browser_page.get_by_test_id("stPopoverButton").filter(has_text="Help")).to_be_in_viewport(ratio=1)
    assert len(set(heights)) == 1, heights


def test_on_a_phone_the_result_comes_first_and_one_map_is_shown_at_a_time(tmp_path, opening, browser_page):  # noqa: F811
    corpus, store = opening.corpus, RunStore(tmp_path / "runs")
    runs = [
        finish_run(store, corpus, opening.config, sign * corpus.quality, name=name)
        for sign, name in ((1, "one"), (-1, "two"))
    ]
    browser_page.set_viewport_size({"width": 400, "height": 800})
    with served(tmp_path) as address:
        browser_page.goto(f"{address}/runs?corpus={opening.key}")
        browser_page.wait_for_function(STILL)
        table, form = (browser_page.locator(f".st-key-runs_{part}").bounding_box() for part in ("picture", "controls"))
        assert table["y"] < 800 and form["y"] >= table["y"] + table["height"] and table["width"] > 350
        browser_page.goto(f"{address}/compare?corpus={opening.key}&compare={runs[0].id},{runs[1].id}")
        stages = browser_page.locator(".map .stage")
        expect(stages).to_have_count(3)
        for place in (0, 1, 2):
            seen = [stages.nth(k).is_visible() for k in range(3)]
            assert seen == [k == place for k in range(3)]
            assert stages.nth(place).bounding_box()["width"] > 300
            browser_page.get_by_role("button", name="Next map").click()
        expect(stages.first).to_be_visible()


def test_on_a_phone_results_stand_above_their_forms_and_can_be_read(tmp_path, browser_page):
    browser_page.set_viewport_size({"width": 400, "height": 800})
    with served(tmp_path, DATAMASK_SAMPLE="") as address:
        browser_page.goto(address)
        for page, part, result in (
            ("frontier", "frontier", ".st-key-live_frontier"),
            ("frontier?vary=Select ratio", "frontier", "[data-testid=stColumn] [data-testid=stHeading]"),
            ("evidence", "evidence", ".js-plotly-plot"),
        ):
            browser_page.goto(f"{address}/{page}")
            expect(browser_page.locator(result).first).to_be_visible()
            form = browser_page.locator(f".st-key-below_{part}")
            expect(form).to_be_visible()
            browser_page.wait_for_function(STILL)
            box = browser_page.locator(result).first.bounding_box()
            assert box["y"] < 800 and form.bounding_box()["y"] >= box["y"] + box["height"], page
        # the heat map keeps its size and is moved sideways; the page is not
        browser_page.get_by_text("All targets and numbers").click()
        heat_map = browser_page.locator(".st-key-ablation_targets .js-plotly-plot")
        expect(heat_map).to_be_visible()
        browser_page.wait_for_function(STILL)
        assert heat_map.bounding_box()["width"] >= 600
        assert not [line for line in browser_page.evaluate(OFFENDERS) if "sideways" in line]
