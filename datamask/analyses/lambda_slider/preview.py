"""The rows of the current selection with other amounts, as the map draws them while *Keep* is dragged. No torch."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from datamask.config import SelectionConfig
from datamask.dashboard.drawing import words
from datamask.dashboard.map.layers import Selection
from datamask.dashboard.map.marks import Seen, marks_of
from datamask.dashboard.map.parcels import look_of, pack, shapes_of
from datamask.dashboard.map.places import Places
from datamask.dashboard.tradeoff import amounts, live
from datamask.errors import OptionError

WITHIN, NEAR = 1 / 3, 0.12
"""Of the amount that is solved: farther away rows by marginal value share less than 85 % with what is then solved. The
first is for facility location from `LARGE` percent on; else 0.67 to 0.9 of the rows are shared at a third."""

LARGE = 20.0

SECONDS = 20.0
"""That a browser waits for a preview; it asks again when a hand comes near the slider."""


@dataclass(frozen=True)
class Preview:
    """What a preview is made of. It holds no corpus.

    Attributes:
        problem: of `kept_points.key_of`. settings: the same, at the selection's λ. mask: bool ``(N,)``, the selection.
        lengths: tokens of each row, or None. total: of all rows, in rows or tokens as the amount is.
        places, dark, seen: how the map draws it.
    """

    problem: str
    settings: SelectionConfig
    mask: np.ndarray
    lengths: np.ndarray | None
    total: float
    places: Places
    dark: bool
    seen: Seen

    @property
    def shares(self) -> list[int]:
        """Percent of all, where the slider stops near enough to the solved amount."""
        budget, ratio = self.settings.budget, self.settings.select_ratio
        solved = 100 * (ratio if budget is None else budget / self.total)
        within = WITHIN if self.settings.objective == "facility" and solved >= LARGE else NEAR
        return [share for share in range(1, 100) if abs(share - solved) <= within * solved + 1e-9]

    def parcel(self) -> bytes | None:
        """Codes of each mark for each of these shares, and how many rows and tokens they have; None: not known yet."""
        behind = live.of_key(self.problem)
        if behind is None or not behind.alive or behind.preparing or not self.shares:
            return None
        others = [self._settings_at(share) for share in self.shares]
        known = [(share, other) for share, other in zip(self.shares, others, strict=True) if other is not None]
        masks = behind.resized(self.mask, self.settings.lamb, [other for _, other in known], SECONDS)
        drawn = [(share, mask) for (share, _), mask in zip(known, masks or (), strict=False) if mask is not None]
        return self._packed(drawn) if drawn else None

    def _settings_at(self, share: int) -> SelectionConfig | None:
        by_tokens = self.settings.budget is not None
        amount = f"{float(f'{share / 100 * self.total:.3g}')}" if by_tokens else str(share)
        try:
            unit = amounts.TOKENS if by_tokens else amounts.PERCENT
            return amounts.keeping(self.settings, len(self.mask), amount, unit)
        except OptionError:
            return None

    def _packed(self, drawn: list[tuple[int, np.ndarray]]) -> bytes:
        looks = [
            marks_of(Selection(f"Preview of {share} %", mask), self.places, self.dark, self.seen)
            for share, mask in drawn
        ]
        entries = [
            {
                "share": share,
                "rows": int(mask.sum()),
                "tokens": "" if self.lengths is None else words.short(float(self.lengths[mask].sum())),
                **look_of(look),
            }
            for (share, mask), look in zip(drawn, looks, strict=True)
        ]
        codes = np.array([look.codes for look in looks], np.uint8)
        header = {"amounts": entries, "marks": codes.shape[1], **shapes_of(looks[0])}
        return pack(header, codes=codes, colors=looks[0].colors)
