"""The sections of a page: tabs of which each has a question and an address of its own, ``/runs?view=frontier``.

What the address says counts where it changed since the page was drawn last: at a link, at a reload, at a step back.
Else the tab does that was pressed, and the address follows it.
"""

from __future__ import annotations

from dataclasses import dataclass

import streamlit as st

from datamask.dashboard.shell import session, tabs

VIEW = "view"
"""What names the open section in the address."""


@dataclass(frozen=True)
class Section:
    """One of them.

    Attributes:
        name: on its tab. question: what it answers. word: in the address; the first of a page has none.
    """

    name: str
    question: str
    word: str = ""

    @property
    def link(self) -> dict[str, str]:
        """What leads to it in an address."""
        return {VIEW: self.word} if self.word else {}


SECTIONS: dict[str, tuple[Section, ...]] = {
    "Runs": (
        Section("All runs", "Which runs exist, and how good are they?"),
        Section("Frontier", "How much diversity does quality cost?", "frontier"),
        Section("Sweep", "How does a result change with a setting?", "sweep"),
        Section("Compare", "How do runs differ?", "compare"),
    ),
    "Evidence": (
        Section("What helps", "Which method is better than random, and on which target?"),
        Section("Independent metrics", "How do runs score on metrics that they do not optimize?", "scoreboard"),
        Section("Stability", "Is the selection stable across subsets of the corpus?", "agreement"),
    ),
}
"""By the page's title, in the order of its tabs."""


def current(page: str) -> Section:
    """The open section of a page. Call it before the frame is drawn, which has its question.

    Args:
        page: the page's title.
    """
    state, key = st.session_state, _key(page)
    asked = st.query_params.get(VIEW, "")
    sections = SECTIONS[page]
    if state.get(f"{key}_asked") != asked:
        state[key] = next((section.name for section in sections if section.word == asked), sections[0].name)
    section = _named(page, state.get(key))
    if section.word != asked:
        # what else stood there belonged to the section before
        st.query_params.from_dict({**session.link_parameters(), **section.link})
    state[key], state[f"{key}_asked"] = section.name, section.word
    return section


def panel(page: str) -> tabs.Tab:
    """Draw the tabs of a page and give the open one, to draw its section into."""
    row = tabs.tabs([section.name for section in SECTIONS[page]], _key(page))
    return next(tab for tab in row if tab.open)


def turn_to(page: str, name: str) -> None:
    """Open a section of the page that is drawn next. For a button's `on_click`, on the same page."""
    st.session_state[_key(page)] = name


def is_open(page: str, name: str) -> bool:
    """Whether that section is open; not any more, once a press in a fragment has turned to another."""
    return _named(page, st.session_state.get(_key(page))).name == name


def heading(page: str, name: str = "") -> str:
    """The heading of a page with that section open: a noun. The first section has the page's own.

    Args:
        page: its title. name: of the section; empty where the page has none.
    """
    return name if page in SECTIONS and name != SECTIONS[page][0].name else page


def remembered(page: str) -> dict[str, str]:
    """What a link to a page must hold to come back to the section that was open there."""
    return _named(page, st.session_state.get(_key(page))).link if page in SECTIONS else {}


def _named(page: str, name: str | None) -> Section:
    return next((section for section in SECTIONS[page] if section.name == name), SECTIONS[page][0])


def _key(page: str) -> str:
    return f"{page.lower()}_section"
