"""How numbers, durations and foreign texts read on a page. Pure functions of their arguments.

A number and its unit are held together by a no-break space.
"""

from __future__ import annotations

import math
import re
import time

from datamask.evaluation.result import percent_up
from datamask.options import CORPUS_OPTIONS, OPTIONS

_OPTION = re.compile(r"--([a-z][a-z_-]*)")
_PATH = re.compile(r"(?<![\w:/.~])/(?:[^\s/:;,'\"]+/)+(?=[^\s/:;,'\"]+/[^\s/:;,'\"]+)")
_LABELS = {option.word.replace("-", "_"): option.title for option in (*CORPUS_OPTIONS.values(), *OPTIONS.values())}
_DIGEST_FOLDER, _DIGEST = re.compile(r"\b[0-9a-f]{32,64}/"), re.compile(r"\b([0-9a-f]{8})[0-9a-f]{24,56}\b")
_CODE = re.compile(r"(`[^`]+`)")
GAP = "\u00a0"
_MARKDOWN = re.compile(r"([\\`*_{}\[\]()#+\-.!|<>$~:^&])")


def plain(text: object, limit: int = 200) -> str:
    """Text of unknown origin for a markdown element: every mark escaped, on one line, cut at `limit` characters."""
    return _MARKDOWN.sub(r"\\\1", _on_one_line(text, limit))


def coded(text: object, limit: int = 200) -> str:
    """`plain`, but what stands between two backticks is code: it stays as it is.

    Example:
        >>> coded("Run `datamask runs export a_b` (once).")
        'Run `datamask runs export a_b` \\\\(once\\\\)\\\\.'
    """
    pieces = _CODE.split(_on_one_line(text, limit))
    return "".join(piece if _CODE.fullmatch(piece) else _MARKDOWN.sub(r"\\\1", piece) for piece in pieces)


def _on_one_line(text: object, limit: int) -> str:
    line = " ".join(str(text).split())
    return line if len(line) <= limit else line[: limit - 1] + "…"


def middle(text: object, limit: int) -> str:
    """A name on one line, shortened in its middle to `limit` characters: names of runs differ at their ends.

    Example:
        >>> middle("facility, λ 0.5, 30 %, counterfactual", 21)
        'facility,…terfactual'
    """
    line = " ".join(str(text).split())
    if len(line) <= limit:
        return line
    end = (limit - 1) // 2
    return line[: limit - 1 - end].rstrip() + "…" + line[len(line) - end :].lstrip()


def named(name: object, limit: int) -> str:
    """A name for a markdown element: `middle`, escaped."""
    return plain(middle(name, limit), limit)


def sentence(error: object, limit: int = 600) -> str:
    """An error's sentence for a markdown element: `unmarked` and `coded`, cut at `limit` characters."""
    return coded(unmarked(error), limit)


def unmarked(error: object) -> str:
    """An error's sentence for a page where it is shown as text: options called as the forms call them except in a
    command between backticks, of a path its end, of a digest its first eight digits.

    Where a file lies on the server is nothing that a page tells; a folder and the name in it are enough to find it by.
    """
    text = str(error)
    short = _DIGEST.sub(r"\1…", _DIGEST_FOLDER.sub("", _PATH.sub("…/", text)))
    # a command is there to be copied
    called = "".join(
        piece if _CODE.fullmatch(piece) else _OPTION.sub(lambda match: _label(match[1]), piece)
        for piece in _CODE.split(short)
    )
    # a file's name keeps its spelling, an option at the beginning is a sentence's first word
    return called[:1].upper() + called[1:] if _OPTION.match(text) else called


def _label(option: str) -> str:
    """What a form calls an option of the command line, as a word within a sentence: `masks per step (G)`."""
    label = _LABELS.get(option.replace("-", "_"))
    if label is None:
        return re.sub(r"[_-]", " ", option)
    return label[0].lower() + label[1:] if label[1:2].islower() else label


def count(number: float) -> str:
    """A count with thousands separators: ``19,017``."""
    return f"{round(number):,}"


def short(number: float) -> str:
    """A large count in few digits: ``1.2 M``."""
    for unit, factor in (("T", 1e12), ("B", 1e9), ("M", 1e6), ("k", 1e3)):
        if abs(number) >= factor:
            scaled = number / factor
            return f"{scaled:.3g}{GAP}{unit}" if abs(scaled) < 999.5 else f"{scaled:,.0f}{GAP}{unit}"
    return count(number)


def percent(share: float | None, digits: int = 0) -> str:
    """A share as ``94 %``; ``–`` where there is none. Of a negative one as many digits as say so: ``−0.5 %``."""
    if share is None or not math.isfinite(share):
        return "–"
    finer = [f"{100 * share:.{places}f}" for places in range(digits, max(digits, 2) + 1)]
    rounded = next((text for text in finer if share < 0 and float(text)), finer[0])
    return f"{rounded.replace('-', '−') if float(rounded) else rounded.lstrip('-')}{GAP}%"


def gap_percent(gap: float) -> float:
    """A gap in percent of the attainable gain: two decimals, rounded up, because it is proved as it is written.

    Never less than one hundredth, which is what float32 sums leave.
    """
    return max(percent_up(gap), 0.01)


def value(number: float | None, digits: int = 4) -> str:
    """A raw value with few significant digits; ``–`` where there is none."""
    if number is None or not math.isfinite(number):
        return "–"
    text = f"{number:,.{digits}g}" if abs(number) < 1e4 else f"{number:,.0f}"
    return text.replace("-", "−")


def signed(number: float, digits: int = 1) -> str:
    """A difference with its sign: ``+3.1``, ``−2.0``; ``0.0`` without one."""
    text = f"{number:+.{digits}f}"
    return text.replace("-", "−") if float(text) else text.lstrip("+-")


def size(bytes_: float) -> str:
    """Bytes as ``18 MB``: powers of 1000, as disks and most file managers say."""
    for unit in ("B", "kB", "MB", "GB"):
        if abs(bytes_) < 999.5:
            return f"{bytes_:.0f}{GAP}{unit}" if bytes_ >= 10 or unit == "B" else f"{bytes_:.1f}{GAP}{unit}"
        bytes_ /= 1000
    return f"{bytes_:,.1f}{GAP}TB"


def duration(seconds: float | None) -> str:
    """Seconds as ``3.2 s``, ``45 s``, ``2 min 5 s`` or ``1 h 20 min``; ``–`` where unknown."""
    if seconds is None or not math.isfinite(seconds):
        return "–"
    if seconds < 9.95:
        return f"{seconds:.1f}{GAP}s"
    whole = round(seconds)
    if whole < 60:
        return f"{whole}{GAP}s"
    minutes, rest = divmod(whole, 60)
    if minutes < 60:
        return f"{minutes}{GAP}min" + (f" {rest}{GAP}s" if rest and minutes < 10 else "")
    return f"{minutes // 60}{GAP}h" + (f" {minutes % 60}{GAP}min" if minutes % 60 else "")


def roughly(seconds: float | None) -> str:
    """An estimate in seconds, in the digits it deserves: ``8 s``, ``40 s``, ``3 min``, ``1.5 h``; ``–`` if unknown."""
    if seconds is None or not math.isfinite(seconds):
        return "–"
    if seconds < 10:
        return f"{max(1, round(seconds))}{GAP}s"
    if seconds < 55:
        return f"{5 * round(seconds / 5)}{GAP}s"
    if seconds < 5400:
        return f"{max(1, round(seconds / 60))}{GAP}min"
    hours = round(seconds / 1800) / 2
    return f"{hours:g}{GAP}h"


def soon(seconds: float | None) -> str:
    """``about 3 min left``; empty where nothing is known, or hardly anything is left."""
    return "" if seconds is None or not seconds >= 1 else f"about {roughly(seconds)} left"


def ago(timestamp: float | None, now: float | None = None) -> str:
    """A moment (seconds since 1970) as ``just now``, ``5 min ago``, ``3 h ago`` or ``2 days ago``."""
    if timestamp is None:
        return "–"
    passed = max(0.0, (time.time() if now is None else now) - timestamp)
    for unit, seconds in (("day", 86400), ("h", 3600), ("min", 60)):
        if passed >= seconds:
            n = int(passed // seconds)
            return f"{n} {unit}{'s' if unit == 'day' and n > 1 else ''} ago"
    return "just now"


def of_total(rows: int, total: int) -> str:
    """``19,017 rows``, or ``19,017 of 812,344 rows`` where the corpus is a sample."""
    return f"{rows:,} rows" if rows >= total else f"{rows:,} of {total:,} rows"


def printable(text: str) -> str:
    """`text` with what no UTF-8 can hold escaped: the name of a file may be any bytes, which Python gives as such."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def ends(measure: str) -> str:
    """Return what the ends of a calibrated measure's axis are; the joint value is 100 % only if both terms are."""
    return f"0 % random, 100 % best {'of both' if measure.startswith('joint') else 'found'}"
