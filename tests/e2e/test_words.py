"""Every page says little: at most 150 words in its window at rest, with the demo corpus open, and no digest."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from playwright.sync_api import Page

from benchmarks.words import MOST, PAGES, count, visible
from tests.e2e.serving import served


@pytest.mark.timeout(900)
def test_a_page_at_rest_has_at_most_150_words(tmp_path: Path, browser_page: Page):
    with served(tmp_path, DATAMASK_SAMPLE="on") as address:
        texts = {name: visible(browser_page, address, path) for name, path in PAGES.items()}
    words = {name: count(pieces) for name, pieces in texts.items()}
    assert all(number > 40 for number in words.values()), words
    assert all(number <= MOST for number in words.values()), (words, texts)
    digests = {name: re.findall(r"\b[0-9a-f]{20,}\b", " ".join(pieces)) for name, pieces in texts.items()}
    assert not any(digests.values()), digests
