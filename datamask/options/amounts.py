"""Amounts of tokens as people write them: 150M, 1.5B, 200k."""

from __future__ import annotations

import math
from typing import Any

from datamask.errors import OptionError

SUFFIXES = {"K": 1e3, "M": 1e6, "B": 1e9, "G": 1e9, "T": 1e12}


def parse_tokens(value: Any, option: str = "budget") -> float:
    """Read a number of tokens: a number, or one with K, M, B (or G, billions) or T behind it, in either case.

    Raises:
        OptionError: it is none, or not above 0.
    """
    text = str(value).strip().replace("_", "").replace(",", "").upper()
    scale = SUFFIXES.get(text[-1:], 1.0)
    try:
        tokens = float(text[:-1] if text[-1:] in SUFFIXES else text) * scale
    except ValueError:
        tokens = math.nan
    if isinstance(value, bool) or not (math.isfinite(tokens) and tokens > 0):
        raise OptionError(f"--{option} must be a number of tokens above 0, such as 150M or 1.5B, got {value!r}")
    return tokens


def tokens_text(tokens: float) -> str:
    """The shortest text that `parse_tokens` reads back as exactly this number: 150M, 1.5B, 1234567."""
    spellings = [f"{tokens:.0f}" if tokens == round(tokens) else repr(tokens)]
    spellings += [
        text
        for suffix, scale in SUFFIXES.items()
        if suffix != "G" and parse_tokens(text := f"{tokens / scale:.12g}{suffix}") == tokens
    ]
    return min(spellings, key=len)
