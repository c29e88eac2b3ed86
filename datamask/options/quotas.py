"""Quotas as people write them: source=python:0.1:0.3."""

from __future__ import annotations

from dataclasses import dataclass

from datamask.errors import OptionError
from datamask.options.checks import check, finite


@dataclass(frozen=True)
class Quota:
    """A share of the selection for one value of a metadata column: ``COLUMN=VALUE:LOW:HIGH``.

    At least ``ceil(low S)`` and at most ``floor(high S)`` of the S selected samples have that value, or one less or
    more where no whole number lies between. Under a budget of W tokens those with the value hold at most ``high W``
    tokens, and at least ``low W`` to within one sample.
    """

    column: str
    value: str
    low: float
    high: float

    def __post_init__(self) -> None:
        fits = finite(self.low) and finite(self.high) and 0 <= self.low <= self.high <= 1
        check(bool(self.column) and fits, "quota", "COLUMN=VALUE:LOW:HIGH with shares 0 <= LOW <= HIGH <= 1", str(self))

    @classmethod
    def parse(cls, text: str) -> Quota:
        """Read ``COLUMN=VALUE:LOW:HIGH``; the value may hold colons and equals signs."""
        try:
            named, low, high = text.rsplit(":", 2)
            column, value = named.split("=", 1)
            return cls(column, value, float(low), float(high))
        except ValueError as error:
            if isinstance(error, OptionError):
                raise
            raise OptionError(
                f"--quota must be COLUMN=VALUE:LOW:HIGH, such as source=python:0.1:0.3, got {text!r}"
            ) from None

    def __str__(self) -> str:
        return f"{self.column}={self.value}:{self.low!r}:{self.high!r}"
