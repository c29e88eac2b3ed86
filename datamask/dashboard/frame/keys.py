"""The sheet of keys: what every key does that a page knows, opened from the menu or by its own key."""

from __future__ import annotations

import streamlit as st

OPENS = "K"
"""Opens the sheet. Streamlit takes letters, digits and named keys, so it cannot be a question mark."""

_ASKED = "keys_asked"

STYLE = """<style>
.st-key-keys_sheet table {width: 100%; table-layout: fixed; border: none}
.st-key-keys_sheet thead {position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%)}
.st-key-keys_sheet :is(th, td) {border-width: 1px 0 0; padding: 4px 8px 4px 0}
.st-key-keys_sheet code {white-space: nowrap}
</style>"""
"""All tables have the same two columns; their headers are for screen readers. The sheet works without it."""

MAP: tuple[tuple[tuple[str, ...], str], ...] = (
    (("ArrowLeft", "ArrowRight", "ArrowUp", "ArrowDown"), "move the map"),
    (("+", "=", "-"), "zoom in, zoom in, zoom out"),
    (("0",), "show the whole map"),
    (("l", "b", "p"), "lasso, box, move by dragging"),
    (("Enter",), "make a region of the view"),
    (("Escape",), "remove the region"),
    (("m",), "mark the row nearest to the center and read it"),
    ((",", "."), "previous row, next row of the list"),
    (("f",), "fill the window with the map; Escape leaves"),
)
"""Keys of a map that has the focus, as a browser calls them, and what they do; `browser/hands.js` does it."""

OTHERS: tuple[tuple[str, tuple[tuple[tuple[str, ...], str], ...]], ...] = (
    (
        "In the reader next to the map",
        ((("ArrowLeft", "ArrowRight"), "previous row, next row of the list"),),
    ),
    (
        "On a histogram",
        (
            (("ArrowLeft", "ArrowRight"), "filter by a range, then move it"),
            (("Shift+ArrowLeft", "Shift+ArrowRight"), "move its upper end"),
            (("Escape",), "clear the range"),
        ),
    ),
    ("On the λ slider of the map", ((("ArrowLeft", "ArrowRight", "Home", "End"), "decrease λ, increase λ, 0, 1"),)),
    ("On tabs", ((("ArrowLeft", "ArrowRight", "Home", "End"), "previous tab, next, first, last"),)),
    ("In the borderline reader", ((("1", "2", "0"), "keep, drop, skip"),)),
    (
        "Everywhere",
        (
            (("Tab", "Shift+Tab"), "next control, previous control"),
            (("Enter", "Space"), "press the control"),
            ((OPENS,), "open this list"),
            (("R",), "redraw the page"),
        ),
    ),
)
"""Keys elsewhere, by where they work."""

_SIGNS = {"ArrowLeft": "←", "ArrowRight": "→", "ArrowUp": "↑", "ArrowDown": "↓", "-": "−"}


def draw() -> None:
    """The button of the sheet, and the sheet where it was asked for."""
    st.button(
        "Keys",
        icon=":material/keyboard:",
        type="tertiary",
        key="keys",
        shortcut=OPENS,
        on_click=_ask,
    )
    if st.session_state.pop(_ASKED, False):
        st.dialog("Keys", width="large")(_sheet)()


def _ask() -> None:
    st.session_state[_ASKED] = True


def _sheet() -> None:
    with st.container(key="keys_sheet"):
        st.html(STYLE)
        map_keys, others = st.columns(2, gap="large")
        with map_keys:
            _table("On a map with the focus", MAP)
        with others:
            for place, keys in OTHERS:
                _table(place, keys)


def _table(place: str, keys: tuple[tuple[tuple[str, ...], str], ...]) -> None:
    rows = "\n".join(f"| {_named(names)} | {does} |" for names, does in keys)
    st.markdown(f"**{place}**\n\n| Keys | Action |\n|---|---|\n{rows}")


def _named(names: tuple[str, ...]) -> str:
    """The keys as they stand on a keyboard."""
    parts = ("+".join(_SIGNS.get(key, key) for key in name.split("+")) if len(name) > 1 else name for name in names)
    return " ".join(f"`{_SIGNS.get(part, part.upper() if len(part) == 1 else part)}`" for part in parts)
