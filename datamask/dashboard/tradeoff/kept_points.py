"""The selections that were solved along lambda, kept on disk: a new server draws them at once. No torch.

Points are kept of a problem: a corpus, every setting but lambda, and the files of ids as they are. Their name in the
cache holds the versions of what their values stand on, so points of an older version are not found.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from datamask.config import SelectionConfig
from datamask.corpus import Corpus
from datamask.corpus.neighbors import GRAPH_VERSION
from datamask.dashboard.tradeoff.lambda_point import LambdaPoint
from datamask.measured import ANCHOR_VERSION
from datamask.work.kept import Kept
from datamask.work.result_file import Content, Entry, require

VERSION = 1
"""Of the points: raise it when a solver of the slider finds other selections."""

NUMBERS = ("lamb", "quality", "diversity", "joint")
MAYBE = ("gap", "solved_at")
"""Numbers of a point, and those that may be None."""

SAME = 1e-6
"""Of a joint value: what its terms add up to, as they are rounded."""


def key_of(corpus: Corpus, config: SelectionConfig) -> str:
    """Return the name of a problem: the corpus, every setting but lambda, and the files of ids as they are now."""
    lists = [_written(path) for path in (config.pin, config.ban, config.given)]
    return json.dumps([corpus.fingerprint, {**config.to_dict(), "lamb": None}, lists], sort_keys=True, default=str)


def entry_of(fingerprint: str, kind: str, version: int, problem: str) -> Entry:
    """Return where a result of a problem stands in the cache, under the versions of what its values rest on.

    Args:
        problem: of `key_of`.
    """
    made_of = json.dumps([problem, ANCHOR_VERSION, GRAPH_VERSION])
    return Entry(fingerprint, kind, version, hashlib.sha256(made_of.encode()).hexdigest()[:12])


def stored_points(
    fingerprint: str, problem: str, rows: int, cache_dir: str | Path | None
) -> Kept[tuple[LambdaPoint, ...]]:
    """Describe a problem's points in the cache: at least one, by rising lambda, each solved, none of a run.

    Args:
        problem: of `key_of`. rows: of the corpus.
    """
    return Kept(
        cache_dir,
        entry_of(fingerprint, "lambda-points", VERSION, problem),
        read=lambda content: _checked(content, rows),
        write=_written_points,
    )


def _written_points(points: tuple[LambdaPoint, ...]) -> Content:
    values = [{name: getattr(point, name) for name in (*NUMBERS, *MAYBE, "exact")} for point in points]
    return Content({"points": values}, {"bits": np.array([point.bits for point in points])})


def keep(points: Sequence[LambdaPoint], fingerprint: str, problem: str, cache_dir: str | Path) -> None:
    """Keep all points of a problem, unless some are kept: what was once shown does not change."""
    stored_points(fingerprint, problem, points[0].rows, cache_dir).find_or_compute(lambda: tuple(points))


def find(fingerprint: str, problem: str, rows: int, cache_dir: str | Path) -> tuple[LambdaPoint, ...]:
    """Return the kept points of a problem by rising lambda; empty where none are kept that can be believed."""
    return stored_points(fingerprint, problem, rows, cache_dir).find_again() or ()


def of_problem(corpus: Corpus, config: SelectionConfig, cache_dir: str | Path) -> tuple[LambdaPoint, ...]:
    """Return the kept points of a corpus and settings, as `find`."""
    return find(corpus.fingerprint, key_of(corpus, config), len(corpus), cache_dir)


def _checked(content: Content, rows: int) -> tuple[LambdaPoint, ...]:
    """The points that a file holds. Raises ValueError, KeyError or TypeError where they are none of so many rows."""
    values, bits = content.value["points"], content.arrays["bits"]
    require(values and bits.dtype == np.uint8 and bits.shape == (len(values), -(-rows // 8)), "it is of other rows")
    require(not np.unpackbits(bits, axis=1)[:, rows:].any(), "it selects rows that are not there")
    bits.flags.writeable = False
    points = tuple(LambdaPoint(bits=mask, rows=rows, **value) for mask, value in zip(bits, values, strict=True))
    for point in points:
        known = [getattr(point, name) for name in MAYBE]
        numbers = [getattr(point, name) for name in NUMBERS] + [number for number in known if number is not None]
        require(isinstance(point.exact, bool) and all(map(math.isfinite, numbers)), "its values are no numbers")
        joint = point.lamb * point.quality + (1 - point.lamb) * point.diversity
        require(abs(joint - point.joint) <= SAME and (point.gap or 0.0) >= 0.0, "its values contradict each other")
    lambdas = [point.lamb for point in points]
    require(lambdas == sorted(set(lambdas)) and lambdas[0] >= 0.0 and lambdas[-1] <= 1.0, "its lambdas do not rise")
    return points


def _written(path: str | None) -> tuple[int, int] | None:
    """Time and size of a file of ids, which change when other ids are written to it; None where there is none."""
    if path is None:
        return None
    try:
        stat = Path(path).stat()
    except (OSError, ValueError):  # the session says what is wrong with it
        return None
    return stat.st_mtime_ns, stat.st_size
