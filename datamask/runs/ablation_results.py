"""Results of ablations, kept next to the runs: one per question and corpus.

Light, so that a page can list them; `datamask.runs.ablations` computes and writes them.
"""

from __future__ import annotations

import re
from pathlib import Path

from datamask.ablation.result import VERSION, AblationResult
from datamask.runs.formats import to_plain
from datamask.work.cache import Cache
from datamask.work.memo import FileMemo
from datamask.work.result_file import Content, Entry, require

_LOADED: FileMemo[AblationResult | None] = FileMemo(64)

_KEY = re.compile(r"[0-9a-f]{12}")


def result_entry(fingerprint: str, key: str) -> Entry:
    """The name of a result in the cache."""
    return Entry(fingerprint, "ablation", VERSION, key)


def save(cache_dir: str | Path, result: AblationResult) -> bool:
    """Keep a result under its question's key, in the place of a provisional one; whether it could be written."""
    return Cache(cache_dir).keep(result_entry(result.fingerprint, result.question.key), to_plain(result.to_dict()))


def load(cache_dir: str | Path, fingerprint: str, key: str) -> AblationResult | None:
    """The result of that key; None where there is none, or only a damaged or outdated one."""
    if not _KEY.fullmatch(key):
        return None
    entry, cache = result_entry(fingerprint, key), Cache(cache_dir)
    # remembered with the comparisons that were worked out from it: pages ask at every drawing
    return _LOADED.get(cache.path(entry), lambda: cache.find(entry, lambda content: _checked_result(content, entry)))


def results(cache_dir: str | Path, fingerprint: str) -> list[AblationResult]:
    """All results on a corpus, newest first; provisional ones too.

    Example:
        ``track(results("runs/.cache", corpus.fingerprint), "facility", 0.3).state``
    """
    keys = Cache(cache_dir).keys(result_entry(fingerprint, "*"))
    loaded = (load(cache_dir, fingerprint, key) for key in keys)
    return sorted((result for result in loaded if result), key=lambda result: -result.created)


def _checked_result(content: Content, entry: Entry) -> AblationResult:
    """The result that a file holds. Raises ValueError, KeyError or TypeError where it is none to that question."""
    result = AblationResult.from_dict(content.value)
    require(result.question.key == entry.key and result.fingerprint == entry.subject, "it answers another question")
    require(0 < result.rows <= result.n, "it is of rows that are not there")
    return result
