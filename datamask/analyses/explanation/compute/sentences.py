"""An explanation in one sentence that a newcomer understands."""

from __future__ import annotations

from dataclasses import replace

from datamask import catalogue
from datamask.analyses.explanation.compute import explanation as states
from datamask.analyses.explanation.compute.explanation import Explanation, Part

WORTH_SAYING = 0.1
"""A part counts in the sentence from this share of the largest part on."""


def sentence(explanation: Explanation, winner: object) -> Explanation:
    """The same explanation with its sentence. `winner`: id of the sample that was kept instead of a near-copy."""
    return replace(explanation, sentence=_sentence(explanation, winner))


def _sentence(explanation: Explanation, winner: object) -> str:
    if explanation.state == states.PINNED:
        return "In because you pinned it. Its score does not matter."
    if explanation.state == states.GIVEN:
        return "You have it already, so it counts as in and is not selected again."
    if explanation.state == states.BANNED:
        return "Out because you banned it. Its score does not matter."
    if explanation.state == states.PRUNED:
        return (
            f"Out before learning: its quality, below that of {_percent(explanation.facts['quality_below'])} of "
            "the corpus, was among the lowest, which were pruned."
        )
    if explanation.state == states.COPY:
        return f"Out before learning: it is a duplicate of {winner}, which was selected for its quality."
    reasons = explanation.parts[1:]
    pro = max(reasons, key=lambda part: part.value)
    con = min(reasons, key=lambda part: part.value)
    lead, other = (pro, con) if explanation.selected else (con, pro)
    against = -1 if explanation.selected else 1
    text = f"{'Selected' if explanation.selected else 'Left out'}: {_phrase(lead, explanation)}"
    largest = max(abs(part.value) for part in reasons)
    if other is not lead and other.value * against > WORTH_SAYING * largest:
        text += f", although {_phrase(other, explanation)}"
    text += "."
    if not explanation.expected:
        side = "below" if explanation.selected else "above"
        text += f" By its score alone it lies just {side} the threshold; the learner, its rounding or a swap decided."
    return text


def _phrase(part: Part, explanation: Explanation) -> str:
    above = explanation.facts.get(f"{part.name}_above", 0.0)
    if part.name == "quality":
        if part.value > 0:
            return f"its quality is above that of {_percent(explanation.facts['quality_above'])} of the corpus"
        return f"its quality is below that of {_percent(explanation.facts['quality_below'])} of the corpus"
    if part.name == "facility":
        count = explanation.witness_counts.get("facility", 0)
        rows = f"{count:,} row{'' if count == 1 else 's'}"
        if explanation.selected:
            if count:
                return f"it is the closest selected row for {rows}"
            cosine = f"{explanation.nearest_similarity:.2f}"
            return (
                f"it is a kind of its own (its nearest other selected row has cosine {cosine})"
                if part.value > 0
                else "no other row relies on it"
            )
        only = "only " if part.value < 0 else ""
        return (
            f"it would be closer than any selected row to {only}{rows}"
            if count
            else f"what it could stand for is covered already (its nearest selected row has cosine "
            f"{explanation.nearest_similarity:.2f})"
        )
    if comparison := catalogue.objective(part.name).comparison:
        return comparison.format("less" if part.value > 0 else "more", _percent(above if part.value > 0 else 1 - above))
    return f"its part in {part.name} is above that of {_percent(above)} of the corpus"


def _percent(share: float) -> str:
    if 0.995 <= share < 1:
        return "more than 99 %"  # rounded up it would read as all
    return f"{100 * share:.0f} %"
