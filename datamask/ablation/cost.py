"""The ablation that one press of a button starts, and about how long an ablation takes before any of it is done."""

from __future__ import annotations

from dataclasses import replace

from datamask import catalogue
from datamask.ablation.question import MASKS, AblationQuestion, objectives_known

SECONDS_PER_ROW = 1.6e-4
"""Of one core, for each method and each row of a seed: to select, to train the bigram model and to predict."""

SECONDS_PER_SELECTION = 0.18
"""Of one core, for each method of a seed, however few rows it has."""

MASKS_SECONDS, MASKS_SECONDS_PER_ROW = 3.0, 1.6e-3
"""The same of the paper's preset, whose number of steps does not depend on the rows."""


def first_question(objective: str, ratio: float | None) -> AblationQuestion:
    """The default ablation for a selection: its objective and ratio, several targets, all methods.

    Args:
        ratio: None: the selection fills a token budget, and the default ratio is asked.

    Example:
        >>> first_question("facility", 0.1).ratio
        0.1
    """
    objectives, terms = objectives_known(), tuple(catalogue.objective_terms(objective))
    if objective not in objectives and len(terms) == 1 and not catalogue.is_own(objective):
        objectives = (*objectives, objective)
    question = AblationQuestion(objectives=objectives)
    return question if ratio is None else replace(question, ratio=ratio)


def expected_seconds(question: AblationQuestion, rows: int) -> float:
    """About how many seconds an ablation takes on one idle core, with the bigram model.

    Args:
        rows: of the corpus.
    """
    each = min(rows / question.seeds, question.rows)
    methods = len(question.methods) + len(question.objectives) * len(question.lambdas)
    seconds = methods * (SECONDS_PER_SELECTION + SECONDS_PER_ROW * each)
    if MASKS in question.methods:
        seconds += MASKS_SECONDS + MASKS_SECONDS_PER_ROW * each
    return question.seeds * seconds
