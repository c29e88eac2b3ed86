"""Components alone in a page, called as Streamlit calls them: what goes takes along only what nobody else needs.

Streamlit gives a call up where new data comes while the component's module is imported. It still runs, in the element
that the next one gets too, and is cleaned up after before or after that has run. An element has left the page already
where its component is cleaned up after for that.
"""

from __future__ import annotations

import base64

import numpy as np
import pytest
from playwright.sync_api import Page

from datamask.analyses.lambda_slider.panel import EAR
from datamask.analyses.samples.sample_panel import KEYS
from datamask.dashboard.map.canvas_map import CARRIER, MAP
from datamask.dashboard.map.layers import Number
from datamask.dashboard.map.marks import marks_of
from datamask.dashboard.map.parcels import addressed, ground_parcel, layer_parcel, pack
from datamask.dashboard.map.places import place
from datamask.dashboard.shell.components import numbered, script_of
from tests.making.parcels import opened_parcel

LOAD = """async ([name, script]) => {
    const module = await import(URL.createObjectURL(new Blob([script], {type: "text/javascript"})));
    globalThis[name] = module.default;
}"""

HELPERS = """() => {
    globalThis.STORE = globalThis[Symbol.for("datamask.map")];
    globalThis.bytes = text => Uint8Array.from(atob(text), letter => letter.charCodeAt(0));
    globalThis.slots = () => [...STORE.slots.keys()];
    globalThis.element = () => document.body.appendChild(document.createElement("div"));
    globalThis.leave = (parentElement, cleanUp) => {
        parentElement.remove();
        cleanUp();
    };
}"""


@pytest.fixture
def page(browser_page: Page) -> Page:
    """Empty, with the components as functions."""
    browser_page.goto("about:blank")
    for name, parts in (("carry", CARRIER), ("drawMap", MAP), ("listen", EAR), ("readKeys", KEYS)):
        browser_page.evaluate(LOAD, [name, script_of(parts)])
    browser_page.evaluate(HELPERS)
    return browser_page


def encoded(slot: str, parcel: bytes, number: float = 0.0) -> str:
    return base64.b64encode(numbered(addressed(slot, parcel), number)).decode()


def test_a_carrier_that_goes_leaves_what_another_has_taken_over(page):
    # both carry the same parcel; the first goes after the second has come, as where a page is drawn anew meanwhile
    seen = page.evaluate(
        """([first, second]) => {
            const seen = [], places = [element(), element()];
            const gone = places.map(parentElement => carry({data: bytes(first), parentElement}));
            seen.push(slots());
            leave(places[0], gone[0]);
            seen.push(slots());
            leave(places[1], carry({data: bytes(second), parentElement: places[1]}));
            seen.push(slots());
            return seen;
        }""",
        [encoded("map/slider", pack({"id": name})) for name in ("one", "another")],
    )
    assert seen == [["map/slider"], ["map/slider"], []]


def test_a_carrier_keeps_its_parcel_where_a_call_is_given_up(page):
    seen = page.evaluate(
        """parcel => {
            const parentElement = element(), seen = [];
            const call = () => carry({data: bytes(parcel), parentElement});
            const [first, second] = [call(), call()];
            first();
            second();
            seen.push(slots());
            leave(parentElement, call());
            seen.push(slots());
            return seen;
        }""",
        encoded("map/slider", pack({"id": "one"})),
    )
    assert seen == [["map/slider"], []]


def test_a_call_that_runs_after_a_later_one_changes_nothing(page):
    seen = page.evaluate(
        """([earlier, later, last]) => {
            const parentElement = element(), seen = [], shown = () => seen.push(STORE.slots.get("map/slider")?.id);
            const mounted = carry({data: bytes(later), parentElement});
            const givenUp = carry({data: bytes(earlier), parentElement});
            givenUp?.();
            shown();
            // the same once more, then what comes after it
            for (const parcel of [later, last]) {
                carry({data: bytes(parcel), parentElement});
                shown();
            }
            // elsewhere what was earlier may be shown
            carry({data: bytes(earlier), parentElement: element()});
            shown();
            return seen;
        }""",
        [encoded("map/slider", pack({"id": str(number)}), number) for number in (7.0, 7.001, 1795437740.5)],
    )
    ids = [
        opened_parcel(addressed("map/slider", pack({"id": str(number)})))[1]["id"]
        for number in (7.001, 1795437740.5, 7.0)
    ]
    assert seen == [ids[0], *ids]


@pytest.mark.parametrize("number, followed", [(1001.9, "later"), (900, "earlier")])
def test_a_mapping_that_is_earlier_is_not_followed_unless_the_clock_is_another(page, number, followed):
    heard = page.evaluate(
        """number => {
            const parentElement = element(), heard = [];
            const call = (name, number) => listen({data: {name, number}, parentElement,
                setTriggerValue: () => heard.push(name)});
            const leave = call("later", 1002);
            if (number < 1000) leave();
            call("earlier", number);
            for (const name of ["earlier", "later"])
                STORE.bell.dispatchEvent(new CustomEvent("ask", {detail: {name, question: {}}}));
            return heard;
        }""",
        number,
    )
    assert heard == [followed]


def test_there_is_one_map_and_it_hears_where_a_call_is_given_up(page):
    points = np.random.default_rng(0).normal(size=(50, 2)).astype(np.float32)
    places = place(points, hexagons=False)
    layer = layer_parcel(marks_of(Number.of("width", points[:, 0]), places))
    drawn = page.evaluate(
        """async ([ground, layer]) => {
            const parentElement = element(), seen = [];
            const data = {name: "map", scope: "scope", panels: 1, alt: "Points", height: "300px", filled: false,
                cleared: 0, picking: false, names: [], opened: [], slider: false, sight: null, addressed: false,
                marked: [], regions: []};
            const call = () => drawMap({data: {...data}, parentElement, setStateValue() {}, setTriggerValue() {}});
            const count = () => seen.push(document.querySelectorAll(".map").length);
            const frame = () => new Promise(resolve => requestAnimationFrame(() => requestAnimationFrame(resolve)));
            const [first, second] = [call(), call()];
            const map = document.querySelector(".map");
            first();
            second();
            const last = call();
            for (const parcel of [ground, layer]) carry({data: bytes(parcel), parentElement: element()});
            await frame();
            count();
            seen.push(document.querySelector(".map") === map, map.dataset.drawn);
            leave(parentElement, last);
            count();
            return seen;
        }""",
        [encoded("map/ground", ground_parcel(places, ["x"] * 50)), encoded("map/0", layer)],
    )
    assert drawn == [1, True, "1", 0]


def test_a_question_is_heard_once_where_calls_are_given_up(page):
    heard = page.evaluate(
        """() => {
            const parentElement = element(), heard = [];
            const call = () => listen({data: {name: "map"}, parentElement,
                setTriggerValue: (_, questions) => heard.push(questions.length)});
            const ask = () => STORE.bell.dispatchEvent(new CustomEvent("ask", {detail: {name: "map", question: {}}}));
            const [first, second] = [call(), call()];
            first();
            second();
            ask();
            const last = call();
            ask();
            leave(parentElement, last);
            ask();
            return heard;
        }"""
    )
    assert heard == [1, 2]


def test_a_key_turns_once_where_calls_are_given_up(page):
    turned = page.evaluate(
        """() => {
            document.body.innerHTML = `<div class="st-key-reader" tabindex="0"><div id="keys"></div></div>
                <div class="st-key-sample_next"><button></button></div>`;
            let turned = 0;
            document.querySelector("button").onclick = () => turned += 1;
            const call = () => readKeys({data: {around: "reader"}, parentElement: document.querySelector("#keys")});
            const seen = [], press = () => {
                document.querySelector(".st-key-reader").dispatchEvent(new KeyboardEvent("keydown",
                    {key: "ArrowRight"}));
                seen.push(turned);
            };
            const [first, second] = [call(), call()];
            first();
            second();
            press();
            const last = call();
            press();
            leave(document.querySelector("#keys"), last);
            press();
            return seen;
        }"""
    )
    assert turned == [1, 2, 2]
