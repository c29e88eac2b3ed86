"""Which rows make the corpus: shards, columns, and how several quality columns become one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

from datamask.errors import OptionError
from datamask.options.checks import check, finite, number_text

TRANSFORMS = ("raw", "z", "rank")
"""What a quality column may go through before it is weighted."""


@dataclass(frozen=True)
class QualityColumn:
    """One quality column: its name, weight in the sum, and transform (``raw``, ``z`` or ``rank``) before the sum."""

    name: str
    weight: float = 1.0
    transform: str = "raw"

    def __post_init__(self) -> None:
        check(bool(self.name), "quality_column", "NAME[:WEIGHT[:raw|z|rank]]", self.name)
        check(finite(self.weight), "quality_column", "NAME:WEIGHT with a finite weight", self.weight)
        check(self.transform in TRANSFORMS, "quality_column", "NAME:WEIGHT:raw, :z or :rank", self.transform)

    @classmethod
    def parse(cls, text: str) -> QualityColumn:
        """Read ``NAME[:WEIGHT[:raw|z|rank]]``; a name may itself hold colons, as long as its tail is no weight."""
        parts = text.split(":")
        transform = "raw"
        if len(parts) > 2 and parts[-1] in TRANSFORMS:
            transform = parts.pop()
        if len(parts) > 1:
            try:
                weight = float(parts[-1])
            except ValueError:
                if transform != "raw":
                    raise OptionError(
                        f"--quality_column must be NAME[:WEIGHT[:raw|z|rank]], got {text!r}: no number before "
                        f":{transform}"
                    ) from None
            else:
                return cls(":".join(parts[:-1]), weight, transform)
        return cls(":".join(parts), 1.0, transform)

    def __str__(self) -> str:
        """A short text that `parse` reads back as this column."""
        weighted = f"{self.name}:{number_text(self.weight)}"
        if self.transform != "raw":
            return f"{weighted}:{self.transform}"
        # a colon in the name could be taken for the start of a weight
        return self.name if self.weight == 1.0 and ":" not in self.name else weighted


@dataclass(frozen=True)
class CorpusConfig:
    """Which rows make the corpus.

    Attributes:
        inputs: files, folders or globs.
        id_column, feature_column, length_column: column names; None: found by the paper's names, then by type.
        quality_columns: summed with their weights; empty: found by name, then by type.
        features, scores: side shards holding the feature or quality column, joined by id, else by row position.
        rows: size of a uniform sample by hash of (id, seed); None: all rows.
        drop_invalid: drop rows with NaN, infinite, null or all-zero features or quality instead of refusing them.
        seed: of the row sample (`--row_seed`; on the command line it follows `--seed` unless given).
    """

    inputs: tuple[str, ...]
    id_column: str | None = None
    quality_columns: tuple[QualityColumn, ...] = ()
    feature_column: str | None = None
    length_column: str | None = None
    features: tuple[str, ...] = ()
    scores: tuple[str, ...] = ()
    rows: int | None = None
    drop_invalid: bool = False
    seed: int = 0

    def __post_init__(self) -> None:
        for name in ("inputs", "features", "scores", "quality_columns"):
            value = getattr(self, name)
            object.__setattr__(self, name, tuple(value) if not isinstance(value, str) else (value,))
        check(len(self.inputs) > 0, "input", "at least one file, folder or glob", self.inputs)
        check(
            self.rows is None or (isinstance(self.rows, int) and self.rows >= 2),
            "rows",
            "a whole number of at least 2",
            self.rows,
        )
        check(
            isinstance(self.seed, int) and 0 <= self.seed < 2**63,
            "seed",
            "a whole number from 0 to 2^63 - 1",
            self.seed,
        )

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> CorpusConfig:
        known = {f.name for f in fields(cls)}
        values = {k: v for k, v in data.items() if k in known}
        values["quality_columns"] = tuple(QualityColumn(**q) for q in values.get("quality_columns", ()))
        return cls(**values)
