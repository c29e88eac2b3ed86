"""What is said of a row over lambda follows the stored runs."""

from __future__ import annotations

from datamask.analyses.explanation.explanations import Along
from datamask.analyses.explanation.tables import along_sentence


def test_stored_runs_that_say_nothing_of_lambda_are_counted_not_denied():
    alone = Along((0.5,), (True,), ("a",), ((0.5, 0.5),))
    assert along_sentence(alone).startswith("No other run is stored")
    beside = Along((0.5,), (True,), ("a",), ((0.5, 0.5),), others=19)
    assert "None of the 19 other stored runs" in along_sentence(beside)
    curve = Along((0.2, 0.5), (False, True), ("b", "a"), ((0.5, 0.5),), others=1)
    assert along_sentence(curve).startswith("Selected at λ 0.5")
