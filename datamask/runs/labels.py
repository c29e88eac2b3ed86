"""What people add to a run: name, notes, tags, whether it is put away, and results measured elsewhere.

These are decoration: they change nothing about what was computed, any process may write them, and a damaged one hides
no run.
"""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from datamask.errors import InputError

COLUMNS = ("task", "score", "seed")


@dataclass(frozen=True)
class Label:
    """Attributes:
    name, notes: None where they are still those the run was made with.
    tags: short words to find it by, each once, in order.
    archived: put away: kept, but left out of lists.
    """

    name: str | None = None
    notes: str | None = None
    tags: tuple[str, ...] = ()
    archived: bool = False

    def to_dict(self) -> dict[str, Any]:
        return {"name": self.name, "notes": self.notes, "tags": list(self.tags), "archived": self.archived}

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> Label:
        """Whatever of it makes sense; the rest is as if it had not been written."""
        texts = {key: record[key] for key in ("name", "notes") if isinstance(record.get(key), str)}
        tags = record.get("tags")
        return cls(
            **texts, tags=clean_tags(tags if isinstance(tags, list) else ()), archived=record.get("archived") is True
        )


@dataclass(frozen=True)
class Result:
    """One number measured elsewhere on a model trained on this selection: a task, its score, the training seed."""

    task: str
    score: float
    seed: str = ""


def clean_tags(tags: Sequence[Any]) -> tuple[str, ...]:
    """Tags without blanks at their ends, empty ones and repetitions, in order."""
    return tuple(dict.fromkeys(tag.strip() for tag in tags if isinstance(tag, str) and tag.strip()))


def read_results(text: str, source: str = "the file") -> list[Result]:
    """Results from CSV text with columns ``task``, ``score`` and, if there are several trainings, ``seed``.

    Args:
        source: what to call the text in errors.

    Raises:
        InputError: a column is missing, there is no row, or a score is no finite number; the sentence names the line.
    """
    rows = csv.DictReader(io.StringIO(text.removeprefix("\ufeff")))
    names = [name.strip().lower() for name in rows.fieldnames or ()]
    missing = [name for name in COLUMNS[:2] if name not in names]
    if missing:
        raise InputError(
            f"{source} needs the columns task and score (and seed, where there are several); it has "
            f"{', '.join(names) or 'none'}"
        )
    rows.fieldnames = names
    results = []
    for row in rows:
        task, score = (row.get("task") or "").strip(), (row.get("score") or "").strip()
        try:
            number = float(score)
        except ValueError:
            number = math.nan
        if not task or not math.isfinite(number):
            raise InputError(
                f"{source}, line {rows.line_num}: expected a task and a finite score, got {task!r} and {score!r}"
            )
        results.append(Result(task, number, (row.get("seed") or "").strip()))
    if not results:
        raise InputError(f"{source} has no rows")
    return results
