"""What people add to a run: name, notes, tags, and whether it is put away.

These are decoration: they change nothing about what was computed, any process may write them, and a damaged one hides
no run.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any


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


def clean_tags(tags: Sequence[Any]) -> tuple[str, ...]:
    """Tags without blanks at their ends, empty ones and repetitions, in order."""
    return tuple(dict.fromkeys(tag.strip() for tag in tags if isinstance(tag, str) and tag.strip()))
