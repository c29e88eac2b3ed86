"""A minute of the torture suite: another seeded part of it every day. TORTURE_SEED repeats that of another day."""

from __future__ import annotations

import datetime
import itertools
import os

from tests.torture.isolation import FINDING
from tests.torture.parts import PARTS
from tests.torture.runner import orders, run, verdicts


def test_a_seeded_part_finds_nothing():
    day = datetime.datetime.now(datetime.UTC).date().toordinal()
    seed = int(os.environ.get("TORTURE_SEED", day))
    cases = {name: itertools.islice(numbers, PARTS[name].tested) for name, numbers in orders(PARTS, seed).items()}
    outcomes = run(cases)
    assert len(outcomes) == sum(min(entry.tested, entry.part.size) for entry in PARTS.values())
    findings = [
        f"{outcome.part}:{outcome.number} ({PARTS[outcome.part].part.describe(outcome.number)}): "
        f"{outcome.finding[:600]}"
        for outcome in outcomes
        if outcome.word == FINDING
    ]
    findings += [f"{name} as a whole: {text}" for name, text in verdicts(outcomes).items()]
    assert not findings, "\n".join([f"TORTURE_SEED={seed}; `make torture CASE=PART:NUMBER` does one again", *findings])
