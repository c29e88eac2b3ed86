"""Where old addresses of pages lead: to what they showed, with all that they ask for."""

from __future__ import annotations

from urllib.parse import parse_qsl, urlencode, urlsplit

import pytest

from datamask.dashboard import old_addresses

ASKED = {"corpus": "c0ffee", "run": "a-run", "search": "größer & kleiner", "where": '[["source",["web","code"]]]'}


@pytest.mark.parametrize(
    ("old", "page", "asked"),
    [
        (("explore", ASKED), "", ASKED),
        (("explore", {}), "", {}),
        (("explore", {"search": ""}), "", {"search": ""}),
    ],
)
def test_what_was_asked_for_is_asked_for_at_the_new_address(old, page, asked):
    path, query = old
    moved = urlsplit(old_addresses.moved(path, urlencode(query)))
    assert moved.path == f"./{page}" and not moved.netloc
    assert dict(parse_qsl(moved.query, keep_blank_values=True)) == asked
