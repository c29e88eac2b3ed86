"""The sheet of keys: what every key does that a page knows, opened from the menu or by its own key."""

from __future__ import annotations

import streamlit as st

OPENS = "K"
"""Opens the sheet. Streamlit takes letters, digits and named keys, so it cannot be a question mark."""

_ASKED = "keys_asked"

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
        st.dialog("Keys")(_sheet)()


def _ask() -> None:
    st.session_state[_ASKED] = True


def _sheet() -> None:
    for place, keys in (("On a map with the focus", MAP), *OTHERS):
        st.markdown(
            "\n".join((f"| {place} | |", "|---|---|", *(f"| {_named(names)} | {does} |" for names, does in keys)))
        )


def _named(names: tuple[str, ...]) -> str:
    """The keys as they stand on a keyboard."""
    parts = ("+".join(_SIGNS.get(key, key) for key in name.split("+")) if len(name) > 1 else name for name in names)
    return " ".join(f"`{_SIGNS.get(part, part.upper() if len(part) == 1 else part)}`" for part in parts)
