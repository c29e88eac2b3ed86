"""A few of the attacks on the web server, drawn anew each time."""

from __future__ import annotations

import random

import pytest

from tests.torture import web

DRAWN = {"host": 40, "climb": 40, "origin": 40, "socket": 10, "query": 6, "liar": 10}
"""By kind, how many are tried here; `make torture` tries the rest."""

ANSWERS = ("refused", "the page", "drawn")


@pytest.mark.timeout(600)
@pytest.mark.parametrize("kind", DRAWN)
def test_attacks_of_this_kind_are_refused_or_harmless(kind, tmp_path, record_property):
    seed = random.SystemRandom().randrange(1 << 30)
    record_property("seed", seed)
    # a handshake whose host cannot be read is dropped without an answer, which takes minutes to tell: not here
    numbers = [number for number, attack in enumerate(web.ATTACKS) if attack[0] == kind and attack[2].isprintable()]
    for number in random.Random(seed).sample(numbers, DRAWN[kind]):
        assert web.PART.run(number, tmp_path) in ANSWERS, web.PART.describe(number)
