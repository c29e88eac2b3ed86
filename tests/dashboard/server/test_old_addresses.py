"""Where old addresses of pages lead: to what they showed, with all that they ask for."""

from __future__ import annotations

import itertools
from pathlib import Path
from urllib.parse import parse_qsl, urlencode, urlsplit

import pytest

from datamask.dashboard.frame.sections import SECTIONS
from datamask.dashboard.server import old_addresses

ROOT = Path(__file__).resolve().parents[3]

ASKED = {"corpus": "c0ffee", "run": "a-run", "search": "größer & kleiner", "where": '[["source",["web","code"]]]'}


@pytest.mark.parametrize(
    ("old", "page", "asked"),
    [
        (("explore", ASKED), "", ASKED),
        (("explore", {}), "", {}),
        (("explore", {"search": ""}), "", {"search": ""}),
        (("run", ASKED), "runs", ASKED),
        (("frontier", ASKED), "runs", {**ASKED, "view": "frontier"}),
        (("frontier", {"ratio": "0.2", "view": "Frontier"}), "runs", {"ratio": "0.2", "view": "frontier"}),
        (("frontier", {**ASKED, "view": "Live λ", "lambda": "0.4"}), "", {**ASKED, "lambda": "0.4"}),
        (("frontier", {"view": "Ratio", "corpus": "a"}), "runs", {"corpus": "a", "view": "sweep"}),
        (("frontier", {"view": "Group size"}), "runs", {"view": "sweep", "vary": "n_rollout"}),
        (("frontier", {"view": "Transfer"}), "runs", {"view": "sweep", "vary": "parts"}),
        (("frontier", {"view": "<b>"}), "runs", {"view": "frontier"}),
        (("lab", ASKED), "runs", ASKED),
        (("lab", {"view": "objectives", "run": "a"}), "runs", {"run": "a"}),
        (("lab", {"view": "ratio", "corpus": "a"}), "runs", {"corpus": "a", "view": "sweep"}),
        (("lab", {"view": "group", "ratio": "0.2"}), "runs", {"ratio": "0.2", "view": "sweep", "vary": "n_rollout"}),
        (("lab", {"view": "transfer"}), "runs", {"view": "sweep", "vary": "parts"}),
        (("which_lambda", {**ASKED, "answer": "x"}), "evidence", {**ASKED, "answer": "x"}),
        (("compare", {"runs": "a,b", "tab": "Scoreboard"}), "evidence", {"runs": "a,b", "view": "scoreboard"}),
        (("compare", {"tab": "Agreement", **ASKED}), "evidence", {**ASKED, "view": "agreement"}),
        (("compare", {"runs": "a,b", "tab": "Where"}), "runs", {"runs": "a,b", "tab": "Where", "view": "compare"}),
    ],
)
def test_what_was_asked_for_is_asked_for_at_the_new_address(old, page, asked):
    path, query = old
    moved = urlsplit(old_addresses.moved(path, urlencode(query)))
    assert moved.path == f"./{page}" and not moved.netloc
    assert dict(parse_qsl(moved.query, keep_blank_values=True)) == asked


def test_they_lead_to_sections_that_there_are():
    words = {page.lower(): {section.word for section in sections} for page, sections in SECTIONS.items()}
    for path in old_addresses.OLD:
        views = ("", *old_addresses.FRONTIERS, *old_addresses.LAB)
        for view, tab in itertools.product(views, ("", *old_addresses.TABS)):
            asked = {name: word for name, word in (("view", view), ("tab", tab)) if word}
            moved = urlsplit(old_addresses.moved(path, urlencode(asked)))
            page = moved.path.removeprefix("./")
            assert not page or (ROOT / "pages" / f"{page}.py").is_file()
            asked = dict(parse_qsl(moved.query))
            assert path not in ("frontier", "compare", "lab") or not page or asked.get("view", "") in words[page]
