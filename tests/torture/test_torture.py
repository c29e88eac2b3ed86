"""A minute of the torture suite: another seeded part of it every day, and what is cheap of the cases made by hand.

TORTURE_SEED repeats the part of another day.
"""

from __future__ import annotations

import datetime
import itertools
import os
import re

from tests.torture.inputs import FAMILIES
from tests.torture.isolation import FINDING
from tests.torture.parts import PARTS
from tests.torture.runner import orders, run, verdicts

SECONDS_EACH = re.compile("bomb|000|MB|address|everything")
"""Cases made by hand that take seconds each: these are drawn like all others."""


def made_by_hand() -> list[int]:
    """Numbers of the input cases whose files are written out, each with what is expected of it.

    Where a rule changes all of them are asked at once, not one or another on some day.
    """
    begins = itertools.accumulate((family.size for family in FAMILIES), initial=0)
    return [
        begin + own
        for begin, family in zip(begins, FAMILIES)
        if family.name.startswith("crafted")
        for own in range(family.size)
        if not SECONDS_EACH.search(family.about(own))
    ]


def test_a_seeded_part_finds_nothing():
    day = datetime.datetime.now(datetime.UTC).date().toordinal()
    seed = int(os.environ.get("TORTURE_SEED", day))
    numbers = {name: set(itertools.islice(order, PARTS[name].tested)) for name, order in orders(PARTS, seed).items()}
    assert all(len(numbers[name]) == min(entry.tested, entry.part.size) for name, entry in PARTS.items())
    by_hand = made_by_hand()
    assert len(by_hand) > 120
    numbers["inputs"].update(by_hand)
    # another worker would take ten seconds of a core to get warm
    outcomes = run({name: iter(chosen) for name, chosen in numbers.items()}, workers=1)
    assert len(outcomes) == sum(map(len, numbers.values()))
    findings = [
        f"{outcome.part}:{outcome.number} ({PARTS[outcome.part].part.describe(outcome.number)}): "
        f"{outcome.finding[:600]}"
        for outcome in outcomes
        if outcome.word == FINDING
    ]
    findings += [f"{name} as a whole: {text}" for name, text in verdicts(outcomes).items()]
    assert not findings, "\n".join([f"TORTURE_SEED={seed}; `make torture CASE=PART:NUMBER` does one again", *findings])
