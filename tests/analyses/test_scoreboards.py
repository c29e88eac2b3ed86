"""What a scoreboard says of made boards: praise only on measures that no run optimised; and how shares are drawn."""

import numpy as np
import pytest

from datamask.analyses.scoreboard import chart as scoreboard
from datamask.analyses.scoreboard import tables as scoreboards
from datamask.dashboard.linked import settled_rows

LETTERS = {"run-a": ("A", "A · first"), "run-b": ("B", "B · <script>alert(1)</script>")}


def measure(name: str, values: dict, *, better="higher", best=None, tied=(), hatched=(), note="") -> dict:
    def cell(key: str, value: float | None) -> dict:
        low, high = (None, None) if value is None else (value - 1, value + 1)
        return {"value": value, "low": low, "high": high, "verdict": "hatched" if key in hatched else "", "note": note}

    cells = {key: cell(key, value) for key, value in values.items()}
    return {
        "measure": name,
        "label": name.title(),
        "says": f"{name} & more",
        "better": better,
        "best": best,
        "tied": list(tied),
        "selections": cells,
    }


@pytest.fixture
def board():
    four = {"run-a": 1.0, "run-b": 2.0, "random": 0.0, "top-quality": 3.0}
    return {
        "notes": [],
        "measures": [
            measure("quality", four, best="run-b", hatched=("run-a", "top-quality")),
            measure("vendi", four, best="run-b"),
            measure("copies", four, better="lower", best="random"),
            measure("entropy", four, tied=("run-a", "random")),
            measure("drift", four, better="neither"),
            measure("text", dict.fromkeys(four), note="the corpus has no text column"),
        ],
    }


def test_verdicts(board):
    said = {row.measure: row.verdict for row in scoreboards.rows(board, LETTERS)}
    assert said == {
        "quality": "optimized by A, so no run is called best",
        "vendi": "B is best",
        "copies": "a random subset is best",
        "entropy": "A and a random subset are level",
        "drift": "neither more nor less is better",
        "text": "the corpus has no text column",
    }


def test_the_summary_counts_fair_measures_only(board):
    rows = scoreboards.rows(board, LETTERS)
    assert scoreboards.summary(rows, LETTERS) == (
        "Of 3 measures that none of these runs optimizes, B is best on 1, a random subset is best on 1; "
        "on 1 the best are level."
    )
    made = [row for row in rows if row.measure == "quality"]
    assert scoreboards.summary(made, LETTERS).endswith("so none is called best.")
    level = [row for row in rows if row.measure == "entropy"]
    assert scoreboards.summary(level, LETTERS).startswith("On none of the 1 independent")


def test_the_table_has_every_number_and_a_star_where_made(board):
    board["left"] = [{"measure": "late", "label": "Late"}]
    table = scoreboards.table(scoreboards.rows(board, LETTERS)).set_index("measure")
    assert list(table.columns[:4]) == ["A · first", LETTERS["run-b"][1], "a random subset", "top quality"]
    assert table.loc["Vendi"].tolist()[:5] == ["1 (0 to 2)", "2 (1 to 3)", "0 (−1 to 1)", "3 (2 to 4)", "B is best"]
    assert [cell.partition(" ")[0] for cell in table.loc["Quality"].tolist()[:4]] == ["1*", "2", "0", "3*"]
    for name, verdict in (("Text", "the corpus has no text column"), ("Late", "not measured yet")):
        assert table.loc[name].tolist()[:5] == ["–", "–", "–", "–", verdict]


def test_every_undecided_row_is_in_one_bar():
    rng = np.random.default_rng(0)
    appeared = np.full(500, 20)
    selected, own = rng.integers(0, 21, 500), rng.random(500) < 0.3
    drawn = scoreboard.agreement(settled_rows.agreed(appeared, selected, own), own)
    assert drawn.layout.barmode == "stack" and [bars.name for bars in drawn.data] == [
        "selected by the run",
        "not selected",
    ]
    for bars, mask in zip(drawn.data, (own, ~own), strict=True):
        # a share of k of 20 lies at the lower end of its bar; none and 18 of 20 or more are left out
        assert list(bars.y) == [0 if k == 0 else int((selected[mask] == k).sum()) for k in range(18)]
        assert np.allclose(bars.x, 5 * np.arange(18))
