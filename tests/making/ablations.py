"""Results straight from losses, for tests of what follows from them."""

from __future__ import annotations

import numpy as np

from datamask.ablation.question import AblationQuestion
from datamask.ablation.result import AblationResult, Method, TargetFacts
from datamask.config.target import Target

METHODS = (
    Method("random", "Random", True),
    Method("top-quality", "Top quality", True),
    Method("facility-0", "Facility location λ 0", False, "facility", 0.0),
    Method("facility-0.7", "Facility location λ 0.7", False, "facility", 0.7),
)


def made_result(
    truth: np.ndarray, seeds: int = 10, judge: str = "bigram", noise: float = 0.01, circular: bool = False, **given
) -> AblationResult:
    """A result of `METHODS` on targets whose true losses are `truth`, ``(4, T)``; seeds share a common luck."""
    rng = np.random.default_rng([8, seeds])
    targets = truth.shape[1]
    losses = truth + rng.normal(size=(seeds, 1, targets)) + noise * rng.normal(size=(seeds, *truth.shape))
    question = AblationQuestion(
        target=Target("random") if targets == 1 else None, objectives=("facility",), lambdas=(0.0, 0.7), judge=judge
    )
    facts = tuple(TargetFacts(f"t{place}", f"target {place}", 400, circular) for place in range(targets))
    values = {"n": 5_000, "rows": 400, "selected": 120, "fingerprint": "f" * 16, "question": question, "judge": judge}
    return AblationResult(
        unit="nats per word",
        training=4_000,
        counts="words",
        methods=METHODS,
        targets=facts,
        losses=losses,
        of_texts=np.zeros((4, 2, targets)),
        created=1.0,
        **(values | given),
    )


ROBUST = np.array([[5.0, 5.0, 5.0], [4.7, 5.0, 5.4], [5.2, 5.1, 5.1], [4.8, 4.9, 5.0]])
"""Top quality is best on one target and fails on another; facility at 0.7 is never far behind."""
