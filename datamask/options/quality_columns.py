"""Quality columns as people write them: edu:0.5:z."""

from __future__ import annotations

from dataclasses import dataclass

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
