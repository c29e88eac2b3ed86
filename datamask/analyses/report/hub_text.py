"""Text for the card of a dataset hub: front matter, Markdown that shows foreign text as it is, and a shell command."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Mapping
from typing import Any

import yaml

_MARKS = re.compile(r"[\\`*_\[\]<>|#~&$@]|:(?=//)|(?<=www)\.", re.IGNORECASE)
"""What Markdown or HTML takes for a mark, and what makes a link of a bare address."""

_FIRST = re.compile(r"^(?:[-+=]|\d+(?=[.)]))")
"""What makes a list or a heading of a line that it begins."""

_UNSEEN = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")

_NUMBERED = re.compile(rf"{_UNSEEN.pattern}|[<`]")
"""What is written by its number in a command: it would end the line, or begin HTML or other code."""


def front_matter(fields: Mapping[str, Any]) -> str:
    """Return the header of a card in YAML, between its two lines."""
    written: str = yaml.safe_dump(dict(fields), allow_unicode=True, sort_keys=False, width=10**6)
    return f"---\n{written}---"


def plain(text: object) -> str:
    """Return text of unknown origin, on one line, as Markdown that shows it as it is: no mark, link or HTML of its own.

    Example:
        >>> plain("1 <b>best</b> of_all")
        '1 \\\\<b\\\\>best\\\\</b\\\\> of\\\\_all'
    """
    line = " ".join(_UNSEEN.sub(" ", str(text)).split())
    line = _MARKS.sub(lambda mark: f"\\{mark[0]}", line)
    return _FIRST.sub(lambda first: f"{first[0]}\\" if first[0].isdigit() else f"\\{first[0]}", line)


def command_line(words: Iterable[str]) -> str:
    """Return a command as a shell reads it, on one line whatever its words hold."""
    return " ".join(_quoted(word) if _NUMBERED.search(word) else shlex.quote(word) for word in words)


def _quoted(word: str) -> str:
    """In bash's quotes, in which such letters are written by their numbers."""
    escaped = re.sub(r"[\\']", r"\\\g<0>", word)
    numbered = _NUMBERED.sub(lambda letter: f"\\u{ord(letter[0]):04x}", escaped)
    return f"$'{numbered}'"
