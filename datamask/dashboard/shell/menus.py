"""Menus of things that have an id: runs, curves, answers. A thing is its id; its words are only how it is drawn.

A browser knows an entry by the words it was drawn with, and sends these back. When they have changed meanwhile (a run
ends, is renamed, grows a minute older), Streamlit no longer finds them among the entries and hands them out in the
place of the id. So the words under which a menu drew each id are remembered for the session, and `settle` puts the id
back before the menu is drawn again.

A browser also sends what its menus stand at with all it asks for. Where the program moves a menu, as when the run of
the address ends, what was asked before the browser knew of that would be taken for a choice; `moved_to` is for those.
"""

from __future__ import annotations

from collections.abc import Mapping

import streamlit as st

REMEMBERED = 1000
"""Words a session remembers of one menu; the oldest go first."""


def settle(key: str, names: Mapping[str, str]) -> None:
    """Call it before the select box or multiselect of this key is drawn.

    Args:
        key: of the menu. Its value is an id of `names` afterwards, or a list of them; what is neither an id nor any
            words of one is gone.
        names: the words of each id that the menu offers, as it will draw them.
    """
    value = st.session_state.get(key)
    if isinstance(value, list):
        settled = [entry for entry in (id_of(key, entry, names) for entry in value) if entry in names]
        if settled != value:
            st.session_state[key] = settled
    elif value is not None and value not in names:
        entry = id_of(key, value, names)
        if entry in names:
            st.session_state[key] = entry
        else:
            del st.session_state[key]
    drawn = {text: entry for entry, text in names.items()}
    # what is drawn now stands last, however long ago it was drawn first, and so is forgotten last
    before = {text: entry for text, entry in _drawn(key).items() if text not in drawn}
    st.session_state[f"{key}_words"] = dict([*before.items(), *drawn.items()][-REMEMBERED:])


def moved_to(key: str, entry: str | None, names: Mapping[str, str]) -> str:
    """Have a menu stand at an entry whatever it stood at, and settle it; gives the key to draw it under.

    That is another key each time the program moves the menu. Ask `chosen_in` what a visitor chose.

    Args:
        key: of the menu until it is moved for the first time.
        entry: an id of `names`; None: it stands at nothing.
    """
    last = st.session_state.get(f"{key}_at")
    if standing(key, names) != entry and last not in (None, entry):
        moves = st.session_state.get(f"{key}_moves", 0) + 1
        # a browser may know of the key before, hardly of one before that
        for memory in ("words", "left"):
            st.session_state.pop(f"{_key_of(key, moves - 2)}_{memory}", None)
        st.session_state[f"{_key_of(key, moves - 1)}_left"] = last
        st.session_state[f"{key}_moves"] = moves
        settle(_drawn_under(key), names)
    drawn = _drawn_under(key)
    st.session_state[drawn] = st.session_state[f"{key}_at"] = entry
    return drawn


def standing(key: str, names: Mapping[str, str]) -> str | None:
    """Where the menu of `moved_to` stands: an id of `names`, or None: at nothing, at what is gone, or not drawn."""
    drawn = _drawn_under(key)
    settle(drawn, names)
    return st.session_state.get(drawn)


def chosen_in(key: str, drawn: str) -> str | None:
    """The id that a visitor chose in the menu of `moved_to`; for its callback.

    Args:
        drawn: the key that the menu was drawn under.

    Returns:
        None where nobody chose: it was never in the menu, or it is where the program has moved the menu from, which
        a browser goes on to send until it is told.
    """
    entry = id_of(drawn, st.session_state.get(drawn))
    if drawn != _drawn_under(key) and entry == st.session_state.get(f"{drawn}_left"):
        return None
    return entry


def _drawn_under(key: str) -> str:
    return _key_of(key, st.session_state.get(f"{key}_moves", 0))


def _key_of(key: str, moves: int) -> str:
    return f"{key}_{moves}" if moves else key


def id_of(key: str, value: str | None, names: Mapping[str, str] | None = None) -> str | None:
    """The id behind a menu's value: itself, or the id last drawn in these words; None: nobody has drawn them."""
    drawn = _drawn(key)
    if value is None or value in (drawn.values() if names is None else names):
        return value
    return drawn.get(value)


def _drawn(key: str) -> dict[str, str]:
    return st.session_state.get(f"{key}_words", {})
