"""Components alone in a page, called as Streamlit calls them.

Streamlit gives a call up where new data comes while the component's module is imported. It still runs, in the element
that the next one gets too, before or after that, and is cleaned up after at once. An element has left the page already
where its component is cleaned up after for that.
"""

from __future__ import annotations

import pytest
from playwright.sync_api import Page

from datamask.analyses.samples.sample_panel import KEYS
from datamask.dashboard.shell.components import script_of

LOAD = """async ([name, script]) => {
    const module = await import(URL.createObjectURL(new Blob([script], {type: "text/javascript"})));
    globalThis[name] = module.default;
}"""

TOLD = """
const mount = ({ data, parentElement }) => {
    parentElement.textContent = data.words;
    return () => { globalThis.left = data.words; };
};
"""

CALLED = """(order) => {
    const parentElement = document.body.appendChild(document.createElement("div")), ends = {};
    const call = (words) => { ends[words] = tell({ data: { words }, parentElement }); };
    call("first");
    for (const words of order) {
        call(words);
        if (words.startsWith("given up")) ends[words]();
    }
    const shown = parentElement.textContent;
    parentElement.remove();
    ends.last();
    return [shown, globalThis.left];
}"""


@pytest.fixture
def page(browser_page: Page) -> Page:
    """Empty, with the components as functions."""
    browser_page.goto("about:blank")
    browser_page.evaluate(LOAD, ["readKeys", script_of(KEYS)])
    browser_page.evaluate(LOAD, ["tell", TOLD + script_of(())])
    return browser_page


@pytest.mark.parametrize("order", [["given up", "last"], ["last", "given up"], ["last", "given up"] * 9])
def test_a_call_that_was_given_up_changes_nothing(page, order):
    assert page.evaluate(CALLED, order) == ["last", "last"]


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
            const [last, givenUp] = [call(), call()];
            givenUp();
            press();
            document.querySelector("#keys").remove();
            last();
            press();
            return seen;
        }"""
    )
    assert turned == [1, 1]
