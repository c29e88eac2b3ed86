"""Old addresses of pages lead on: people keep links in notes, papers and mails. Pure.

The server answers each with a redirect, so that the old address is no step of the browser's way back.
"""

from __future__ import annotations

from urllib.parse import parse_qsl, urlencode

OLD = ("explore", "run", "frontier", "compare", "which_lambda", "lab")
"""Paths that were pages once."""

VIEW, TAB = "view", "tab"
PAGES = {"explore": "", "run": "runs", "which_lambda": "evidence"}

Now = tuple[str, dict[str, str]]
"""A page's own path, empty for the Map, and what is asked of it."""

RATIO: Now = ("runs", {VIEW: "sweep"})
GROUP: Now = ("runs", {VIEW: "sweep", "vary": "n_rollout"})
TRANSFER: Now = ("runs", {VIEW: "sweep", "vary": "parts"})

FRONTIERS: dict[str, Now] = {
    "": ("runs", {VIEW: "frontier"}),
    "Live λ": ("", {}),
    "Ratio": RATIO,
    "Group size": GROUP,
    "Transfer": TRANSFER,
}
"""What the views of the frontier's page were called, and where each is now."""

LAB: dict[str, Now] = {"": ("runs", {}), "ratio": RATIO, "group": GROUP, "transfer": TRANSFER}
"""The sections of the Lab by their words. What each objective sees stands in the help of the Runs form."""

TABS = {"Scoreboard": "scoreboard", "Agreement": "agreement"}
"""Tabs of the comparison that are sections of the Evidence page now."""


def moved(path: str, query: str) -> str:
    """Where the page of an old address is now, relative to it, with all that the address asks for.

    Args:
        path: one of `OLD`.
        query: what followed the question mark.
    """
    asked = parse_qsl(query, keep_blank_values=True)
    page, asked = _now(path, asked)
    return f"./{page}{'?' if asked else ''}{urlencode(asked)}"


def _now(path: str, asked: list[tuple[str, str]]) -> tuple[str, list[tuple[str, str]]]:
    """The page's own path, empty for the Map, and what is asked of it."""
    if path in ("frontier", "lab"):
        views = FRONTIERS if path == "frontier" else LAB
        view = next((value for name, value in asked if name == VIEW), "")
        page, more = views.get(view, views[""])
        return page, [*(pair for pair in asked if pair[0] != VIEW), *more.items()]
    if path == "compare":
        word = next((TABS[value] for name, value in asked if name == TAB and value in TABS), "")
        if word:
            return "evidence", [*(pair for pair in asked if pair[0] != TAB), (VIEW, word)]
        return "runs", [*asked, (VIEW, "compare")]
    return PAGES[path], asked
