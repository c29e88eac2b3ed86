"""How often a training reads what is kept: tokens to train on, tokens owned, and the select ratio between them. Pure.

| symbol | meaning |
|---|---|
| T | tokens that the model is trained on |
| W | tokens owned, before any is left out |
| r | select ratio: r W tokens are kept, if kept samples are as long as the others |
| T / (r W) | epochs over what is kept |

What a ratio costs by repetition has been measured by others: up to four epochs of repeated text are worth nearly as
much as new text (arXiv 2305.16264). How much to filter depends on it: filters that are right for a short training are
wrong for a long one (2404.07177), with enough compute over little text no filter beats all of it (2605.19407), and
larger models want to be filtered less (2507.12466).
"""

from __future__ import annotations

from dataclasses import dataclass

FREE = 4.0
"""Epochs of repeated text that are worth nearly as much as new text (arXiv 2305.16264)."""

OPTIMAL = 20.0
"""Tokens per parameter at which a training of given compute is spent best (arXiv 2203.15556)."""

LEAST, MOST = 1e-4, 0.9999
"""Select ratios that the forms take."""

RATIOS = (0.05, 0.1, 0.2, 0.3, 0.5, 1.0)
"""Of the table, beside the one that is read once."""

UNREAD, FRESH, WORN = (
    "some kept rows are never read",
    "each row is read one to four times",
    "each row is read more than four times",
)


@dataclass(frozen=True)
class Training:
    """A training and the corpus for it.

    Attributes:
        trained: T. owned: W. Both above 0.
        parameters: of the model; None: unknown.
    """

    trained: float
    owned: float
    parameters: float | None = None

    def epochs(self, ratio: float) -> float:
        """How often each kept token is read at a select ratio."""
        return self.trained / (ratio * self.owned)

    @property
    def once(self) -> float | None:
        """The ratio whose tokens are read just once; None where all that is owned is read more than once."""
        ratio = self.trained / self.owned
        return ratio if ratio < 1 else None

    @property
    def strictest(self) -> float | None:
        """The least ratio that repetition hardly costs anything; None where even all of it is read more often."""
        ratio = self.trained / (FREE * self.owned)
        return ratio if ratio < 1 else None

    @property
    def ratio(self) -> float | None:
        """What is read just once, as a form takes it; None: all of it is needed."""
        return None if self.once is None else min(max(self.once, LEAST), MOST)

    def reading(self, ratio: float) -> str:
        """What the epochs at a ratio mean, in words."""
        epochs = self.epochs(ratio)
        # the ratio that is read once is one part in many off by rounding
        return UNREAD if epochs < 1 - 1e-9 else FRESH if epochs <= FREE else WORN

    def table(self) -> list[tuple[float, float, float, str]]:
        """Ratio, tokens kept, epochs and what they mean, by rising ratio."""
        ratios = sorted({*RATIOS, *([] if self.ratio is None else [self.ratio])})
        return [(ratio, ratio * self.owned, self.epochs(ratio), self.reading(ratio)) for ratio in ratios]
