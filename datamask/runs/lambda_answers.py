"""Answers to "which lambda?" that versions before 0.4 kept beside the runs: one per question and corpus.

Light, so that a page can list them; `ablate` answers such questions now.
"""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import Any

from datamask.runs.formats import to_plain
from datamask.work.result_file import Content, Entry, require
from datamask.work.stored import StoredResult

VERSION = 1
"""Of the record. A change of the method raises it, and answers of another version are not shown."""

_KEY = re.compile(r"[0-9a-f]{12}")


def stored_answer(cache_dir: str | Path | None, fingerprint: str, key: str) -> StoredResult[dict[str, Any]]:
    """Describe the answer of that key in the cache."""
    entry = Entry(fingerprint, "lambda-answer", VERSION, key)
    return StoredResult(
        cache_dir,
        entry,
        read=lambda content: _checked_answer(content, entry),
        write=lambda answer: Content(to_plain(answer)),
    )


def load(cache_dir: str | Path, fingerprint: str, key: str) -> dict[str, Any] | None:
    """The answer of that key; None where there is none, or only a damaged or outdated one."""
    return stored_answer(cache_dir, fingerprint, key).find() if _KEY.fullmatch(key) else None


def answers(cache_dir: str | Path, fingerprint: str) -> list[dict[str, Any]]:
    """All answers on a corpus, newest first."""
    keys = stored_answer(cache_dir, fingerprint, "*").keys()
    loaded = (load(cache_dir, fingerprint, key) for key in keys)
    return sorted((answer for answer in loaded if answer), key=lambda answer: -answer["created"])


def _checked_answer(content: Content, entry: Entry) -> dict[str, Any]:
    """The answer that a file holds. Raises Implausible where it is none to that question on that corpus."""
    answer = content.value
    require(answer["version"] == VERSION, f"its version is {answer['version']!r}, not {VERSION}")
    require(answer["key"] == entry.key and answer["fingerprint"] == entry.subject, "it answers another question")
    require(0 < answer["rows"] <= answer["n"] and math.isfinite(answer["created"]), "it is of rows that are not there")
    require(
        isinstance(answer["headline"], str) and all(isinstance(note, str) for note in answer["notes"]),
        "it has no sentences",
    )
    require(
        tuple(measure["name"] for measure in answer["measures"]) in (("cross_entropy", "coverage"), ("nearness",)),
        "a measure is missing",
    )
    for measure in answer["measures"]:
        for curve in measure["curves"]:
            for point in curve["points"]:
                require(0 <= point["lamb"] <= 1, "a lambda is not between 0 and 1")
                low, value, high = point["low"], point["difference"], point["high"]
                require(
                    None in (low, value, high) or (low <= high and all(map(math.isfinite, (low, value, high)))),
                    "a difference is none",
                )
    return answer
