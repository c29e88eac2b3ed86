"""Where old addresses of pages lead: to what they showed, with all that they ask for."""

from __future__ import annotations

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
        (
            ("frontier", {**ASKED, "view": "Live λ", "lambda": "0.4"}),
            "runs",
            {**ASKED, "view": "live", "lambda": "0.4"},
        ),
        (("frontier", {"view": "Ratio", "corpus": "a"}), "lab", {"corpus": "a", "view": "ratio"}),
        (("frontier", {"view": "Group size"}), "lab", {"view": "group"}),
        (("frontier", {"view": "Transfer"}), "lab", {"view": "transfer"}),
        (("frontier", {"view": "<b>"}), "runs", {"view": "frontier"}),
        (("which_lambda", {**ASKED, "answer": "x"}), "evidence", {**ASKED, "answer": "x"}),
        (("compare", {"runs": "a,b", "tab": "Scoreboard"}), "evidence", {"runs": "a,b", "view": "scoreboard"}),
        (("compare", {"tab": "Agreement", **ASKED}), "evidence", {**ASKED, "view": "agreement"}),
        (("compare", {"tab": "Downstream results"}), "evidence", {"view": "downstream"}),
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
        for view, tab in ((view, tab) for view in ("", *old_addresses.FRONTIERS) for tab in ("", *old_addresses.TABS)):
            asked = {name: word for name, word in (("view", view), ("tab", tab)) if word}
            moved = urlsplit(old_addresses.moved(path, urlencode(asked)))
            page = moved.path.removeprefix("./")
            assert not page or (ROOT / "pages" / f"{page}.py").is_file()
            asked = dict(parse_qsl(moved.query))
            assert path not in ("frontier", "compare") or asked.get("view", "") in words[page]
