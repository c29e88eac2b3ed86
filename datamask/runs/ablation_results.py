"""Results of ablations, kept next to the runs: one per question and corpus.

Light, so that a page can list them; `datamask.analyses.ablation.compute.kept_study` computes and writes them.
"""

from __future__ import annotations

import re
from pathlib import Path

from datamask.ablation.result import VERSION, AblationResult
from datamask.runs.formats import to_plain
from datamask.work.kept import Kept
from datamask.work.result_file import Content, Entry, require

_KEY = re.compile(r"[0-9a-f]{12}")


def stored_result(cache_dir: str | Path | None, fingerprint: str, key: str) -> Kept[AblationResult]:
    """Describe the result of that key in the cache."""
    entry = Entry(fingerprint, "ablation", VERSION, key)
    return Kept(
        cache_dir,
        entry,
        read=lambda content: _checked_result(content, entry),
        write=lambda result: Content(to_plain(result.to_dict())),
    )


def save(cache_dir: str | Path, result: AblationResult) -> bool:
    """Keep a result under its question's key, in the place of a provisional one; whether it could be written."""
    return stored_result(cache_dir, result.fingerprint, result.question.key).keep(result)


def load(cache_dir: str | Path, fingerprint: str, key: str) -> AblationResult | None:
    """The result of that key; None where there is none, or only a damaged or outdated one."""
    if not _KEY.fullmatch(key):
        return None
    # with the comparisons that were worked out from it: pages ask at every drawing
    return stored_result(cache_dir, fingerprint, key).find_again()


def results(cache_dir: str | Path, fingerprint: str) -> list[AblationResult]:
    """All results on a corpus, newest first; provisional ones too.

    Example:
        ``track(results("runs/.kept", corpus.fingerprint), "facility", 0.3).state``
    """
    keys = stored_result(cache_dir, fingerprint, "*").keys()
    loaded = (load(cache_dir, fingerprint, key) for key in keys)
    return sorted((result for result in loaded if result), key=lambda result: -result.created)


def _checked_result(content: Content, entry: Entry) -> AblationResult:
    """The result that a file holds. Raises ValueError, KeyError or TypeError where it is none to that question."""
    result = AblationResult.from_dict(content.value)
    require(result.question.key == entry.key and result.fingerprint == entry.subject, "it answers another question")
    require(0 < result.rows <= result.n, "it is of rows that are not there")
    return result
