"""The borderline reader: texts nearest the threshold, judged by a person who does not see which side they are on. Pure.

Where the person and the selection agree about as often as chance would have it, the threshold is as good as any other
nearby; where they agree clearly more or less often, it is not.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from datamask.analyses.explanation.explanations import Deck
from datamask.corpus import Corpus
from datamask.dashboard.drawing import words
from datamask.dashboard.linked.groups import wilson

KEEP, DROP, SKIP = "keep", "drop", "skip"


@dataclass(frozen=True)
class Tally:
    """How often a reader and the selection agree.

    Attributes:
        agreed, judged: of so many judged; skipped ones aside.
        low, high: 95 % interval of the share (Wilson); 0 and 1 before anything is judged.
        kept, kept_agreed: how many of the judged are in the selection, and how many of these the reader would keep.
    """

    agreed: int
    judged: int
    low: float
    high: float
    kept: int
    kept_agreed: int

    @property
    def sentence(self) -> str:
        """The tally in words, Markdown."""
        if not self.judged:
            return "No answers yet."
        dropped, dropped_agreed = self.judged - self.kept, self.agreed - self.kept_agreed
        verdict = (
            "more often than by chance"
            if self.low > 0.5
            else "less often than by chance"
            if self.high < 0.5
            else "no different from chance"
        )
        return (
            f"You and the selection agree on **{self.agreed:,} of {self.judged:,}** texts, "
            f"{words.percent(self.agreed / self.judged)} (95 % interval {words.percent(self.low)} to "
            f"{words.percent(self.high)}): {verdict}. You keep {self.kept_agreed:,} of {self.kept:,} selected "
            f"texts and drop {dropped_agreed:,} of {dropped:,} others."
        )


def within(shown: np.ndarray, selected: np.ndarray, count: int) -> tuple[np.ndarray | None, str]:
    """The rows that the texts are taken from under a filter, None for all of them, and what to say of it.

    Args:
        shown: bool ``(N,)``, what the filter lets through. selected: bool ``(N,)``.
        count: texts wanted of either side.
    """
    kept, dropped = int((shown & selected).sum()), int((shown & ~selected).sum())
    if min(kept, dropped) >= count:
        return shown, f"From the {kept + dropped:,} rows that the filter shows."
    return None, (
        f"From all rows: the filter shows {kept:,} selected and {dropped:,} other rows, and {count:,} of each are "
        "needed."
    )


def agrees(answer: str, selected: bool) -> bool:
    """Whether a judgement is the selection's own."""
    return (answer == KEEP) == selected


def tally(deck: Deck, answers: Sequence[str]) -> Tally:
    """Count the answers to the first samples of a deck."""
    judged = [(answer, bool(selected)) for answer, selected in zip(answers, deck.selected) if answer != SKIP]
    agreed = sum(agrees(answer, selected) for answer, selected in judged)
    kept = sum(selected for _, selected in judged)
    kept_agreed = sum(selected and answer == KEEP for answer, selected in judged)
    low, high = wilson(np.array([agreed]), np.array([len(judged)])) if judged else ([0.0], [1.0])
    return Tally(agreed, len(judged), float(low[0]), float(high[0]), kept, kept_agreed)


def revealed(deck: Deck, place: int, answer: str, facts: Mapping[str, str]) -> str:
    """What is said of a sample once it has been answered, Markdown.

    Args:
        facts: more to say of it, such as its quality.
    """
    side = "kept" if deck.selected[place] else "dropped"
    mark = "skipped" if answer == SKIP else "you agree" if agrees(answer, bool(deck.selected[place])) else "you differ"
    margin = float(deck.margin[place])
    distance = f"{abs(margin):.2f}" if abs(margin) >= 0.005 else "less than 0.01"
    listed_facts = "".join(f", {name} {value}" for name, value in facts.items())
    return (
        f"The last text is **{side}** ({mark}). Its score is {distance} standard deviations "
        f"{('above' if margin >= 0 else 'below')} the threshold{listed_facts}."
    )


def answers_table(corpus: Corpus, deck: Deck, answers: Sequence[str], run_id: str) -> pa.Table:
    """What was answered, in the order of reading: ids, answers, and what the selection did."""
    count = len(answers)
    rows, selected = deck.rows[:count], deck.selected[:count]
    return pa.table(
        {
            str(corpus.provenance.columns.get("id", "id")): corpus.ids.take(pa.array(rows)),
            "answer": pa.array(list(answers), pa.string()),
            "selected": selected,
            "agrees": pa.array(
                [None if answer == SKIP else agrees(answer, bool(kept)) for answer, kept in zip(answers, selected)],
                pa.bool_(),
            ),
            "margin": deck.margin[:count],
            "quality": corpus.quality[rows],
            "run": pa.array([run_id] * count, pa.string()),
        }
    )
