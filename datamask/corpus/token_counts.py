"""How many tokens texts have: estimated for a vocabulary like o200k_base, or counted with a tokenizer of the user's.

The estimate goes by script. A word of Latin letters is one token, and long words, accented letters, digits, punctuation
marks and indentation add theirs; text of other scripts, some of which are written without spaces, counts by its
characters. The constants are least-squares fits to what o200k_base gives for GNOME's manuals (Latin letters), Python's
standard library (code), and Debian's translated package descriptions, programs' messages and the Universal Declaration
of Human Rights (other scripts). On other texts of seven languages the sums are within 20 %, as
`tests/corpus/test_token_counts.py` holds.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from datamask.errors import InputError

TokenCounter = Callable[[Sequence[str]], np.ndarray]
"""Takes n texts and gives the tokens of each, int32 ``(n,)``."""

VOCABULARY = "o200k_base"

BY_CHARACTER: dict[str, tuple[float, tuple[tuple[int, int], ...]]] = {
    "Greek": (0.38, ((0x370, 0x3FF), (0x1F00, 0x1FFF))),
    "Cyrillic": (0.25, ((0x400, 0x52F),)),
    "Hebrew": (0.40, ((0x590, 0x5FF),)),
    "Arabic": (0.35, ((0x600, 0x6FF), (0x750, 0x77F))),
    "Indic": (0.33, ((0x900, 0xDFF),)),
    "Thai": (0.40, ((0xE00, 0xE7F),)),
    "Lao": (1.88, ((0xE80, 0xEFF),)),
    "Myanmar": (0.56, ((0x1000, 0x109F),)),
    "Khmer": (0.64, ((0x1780, 0x17FF), (0x19E0, 0x19FF))),
    "Japanese": (0.74, ((0x3040, 0x30FF), (0x31F0, 0x31FF), (0xFF66, 0xFF9F))),
    "Korean": (0.69, ((0x1100, 0x11FF), (0x3130, 0x318F), (0xAC00, 0xD7AF))),
    "Chinese": (
        0.78,
        ((0x2E80, 0x2FDF), (0x3005, 0x3007), (0x3400, 0x4DBF), (0x4E00, 0x9FFF), (0xF900, 0xFAFF), (0x20000, 0x3FFFF)),
    ),
}
"""Tokens per character of a script, and the code points of its characters, first and last. Kana stand for Japanese; its
other characters are the Chinese ones."""

PER_WORD, PER_LATE_LETTER, PER_ACCENT, PER_THREE_DIGITS, PER_MARKS, PER_INDENT = 1.0, 0.25, 1.25, 1.7, 0.9, 1.0
"""Tokens of: a word of Latin letters; each of its letters behind the eighth; each letter with an accent, more; up to
three digits, with the space before them; a run of punctuation marks; a line break or a run of spaces."""

_WORD = re.compile(r"[^\W\d_]+")
_LATE_LETTER = re.compile(r"(?<=[^\W\d_]{8})[^\W\d_]")
_ACCENT = re.compile("[\u00c0-\u024f\u1e00-\u1eff]")
_DIGITS = re.compile(r"\d{1,3}")
_MARKS = re.compile(r"_+|[^\w\s]+")
_INDENT = re.compile(r"\n\s*|[ \t]{2,}")
_RANGES = [(first, last) for _, ranges in BY_CHARACTER.values() for first, last in ranges]
_OTHER_SCRIPTS = re.compile("[" + "".join(f"{chr(first)}-{chr(last)}" for first, last in _RANGES) + "]+")

_NAMES = ("Latin", *BY_CHARACTER)
_SCRIPTS = np.full(0x40001, len(_NAMES), np.uint8)
"""Place of a code point's script in `_NAMES`, or behind them; the last stands for all code points behind it."""
for _first, _last in ((0x41, 0x5A), (0x61, 0x7A), (0xC0, 0x24F), (0x1E00, 0x1EFF)):
    _SCRIPTS[_first : _last + 1] = 0
for _number, (_, _ranges) in enumerate(BY_CHARACTER.values(), 1):
    for _first, _last in _ranges:
        _SCRIPTS[_first : _last + 1] = _number
_RATES = np.array([0.0, *(rate for rate, _ in BY_CHARACTER.values()), 0.0])

JAPANESE = 0.1
"""Share of kana among kana and Chinese characters, from which on a text is Japanese."""


def script_of(text: str) -> str:
    """Name the script of most letters of a text, as in `BY_CHARACTER`; ``Latin`` also where there are none.

    Example:
        >>> script_of("Rows that differ"), script_of("違う行を選ぶ")
        ('Latin', 'Japanese')
    """
    if text.isascii():
        return "Latin"
    counts = dict(zip(_NAMES, _characters(text)))
    if counts["Japanese"] > JAPANESE * (counts["Japanese"] + counts["Chinese"]):
        counts["Japanese"] += counts["Chinese"]
    return max(counts, key=counts.__getitem__)


def _characters(text: str) -> np.ndarray:
    """Characters of each script, and of none, int64 ``(scripts + 1,)``."""
    codes = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), np.uint32)
    return np.bincount(_SCRIPTS[np.minimum(codes, len(_SCRIPTS) - 1)], minlength=len(_NAMES) + 1)


def estimate_tokens(text: str) -> int:
    """Estimate the tokens of a text for a vocabulary like o200k_base.

    Example:
        >>> estimate_tokens("Internationalization is a long word."), estimate_tokens("")
        (9, 0)
    """
    tokens = 0.0
    if not text.isascii():
        tokens = float(_characters(text) @ _RATES) + PER_ACCENT * len(_ACCENT.findall(text))
        text = _OTHER_SCRIPTS.sub("", text)
    for pattern, each in (
        (_WORD, PER_WORD),
        (_LATE_LETTER, PER_LATE_LETTER),
        (_DIGITS, PER_THREE_DIGITS),
        (_MARKS, PER_MARKS),
        (_INDENT, PER_INDENT),
    ):
        tokens += each * len(pattern.findall(text))
    return round(tokens)


def estimated(texts: Sequence[str]) -> np.ndarray:
    """Estimate the tokens of each text, int32 ``(n,)``."""
    return np.array([estimate_tokens(text) for text in texts], np.int32)


def token_counter(tokenizer: str | Path | None) -> TokenCounter:
    """What counts tokens: a tokenizer, without its special tokens, or the estimate where none is given.

    Args:
        tokenizer: path of a ``tokenizer.json``, or of the folder that holds it.

    Raises:
        InputError: the file cannot be read, or the library that reads it is not installed.
    """
    if tokenizer is None:
        return estimated
    try:
        from tokenizers import Tokenizer
    except ImportError as error:
        raise InputError("--tokenizer needs the package tokenizers: pip install 'datamask[tokenizer]'") from error
    path = Path(tokenizer)
    path = path / "tokenizer.json" if path.is_dir() else path
    try:
        loaded = Tokenizer.from_file(str(path))
    except Exception as error:  # the library raises nothing narrower
        raise InputError(f"--tokenizer {path} is not a tokenizer.json that can be read: {error}") from error
    loaded.no_truncation()
    loaded.no_padding()

    def counted(texts: Sequence[str]) -> np.ndarray:
        encoded = loaded.encode_batch(list(texts), add_special_tokens=False)
        return np.array([len(each.ids) for each in encoded], np.int32)

    return counted
