"""What a scoreboard says of made boards: praise only on measures that no run optimised; and how shares are drawn."""

import base64
import re
from html.parser import HTMLParser

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


def test_numbers_are_the_boards(board):
    table = scoreboards.numbers(scoreboards.rows(board, LETTERS))
    assert len(table) == 20
    vendi = table[table.measure == "Vendi"].set_index("of")
    assert vendi.loc["A · first", ["value", "from", "to"]].tolist() == [1.0, 0.0, 2.0]
    assert table[table["optimized by the run"]]["measure"].unique().tolist() == ["Quality"]


class Reader(HTMLParser):
    """Tags and attributes of a drawing."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[tuple[str, dict]] = []

    def handle_starttag(self, tag, attrs) -> None:
        self.found.append((tag, dict(attrs)))


def test_the_drawing_is_hollow_where_made_and_escapes_names(board):
    rows = scoreboards.rows(board, LETTERS)
    drawn = scoreboard.scoreboard(rows)
    assert "<script" not in drawn and "&lt;script&gt;" in drawn
    reader = Reader()
    reader.feed(drawn)
    assert sum(tag == "svg" for tag, _ in reader.found) == 5, "what was not measured is not drawn"
    quality = Reader()
    quality.feed(scoreboard.drawing(rows[0]).markup())
    hollow = [a for tag, a in quality.found if tag in ("circle", "polygon") and a["fill"] == "var(--ground)"]
    assert len(hollow) == 2
    images = Reader()
    images.feed(scoreboard.scoreboard(rows, dark=True))
    sources = [a["src"] for tag, a in images.found if tag == "img"]
    assert len(sources) == 5 and all(source.startswith("data:image/svg+xml;base64,") for source in sources)
    assert b"--accent:#56B4E9" in base64.b64decode(sources[0].split(",")[1])
    assert scoreboard.missing(rows) == "Not measured: Text (the corpus has no text column)."


def test_places_on_the_axis_are_in_order_of_value(board):
    found = scoreboard.drawing(scoreboards.rows(board, LETTERS)[1]).markup()
    centers = [
        float(x)
        for x in re.findall(r'stroke-width="2"', found)
        and re.findall(
            r'<line x1="([\d.]+)" y1="[\d.]+" x2="[\d.]+" y2="[\d.]+" stroke="var\(--(?:series|random|best)', found
        )
    ]
    assert len(centers) == 4 and sorted(range(4), key=centers.__getitem__) == [2, 0, 1, 3]


def test_every_undecided_row_is_in_one_bar():
    rng = np.random.default_rng(0)
    appeared = np.full(500, 20)
    selected, own = rng.integers(0, 21, 500), rng.random(500) < 0.3
    drawn = scoreboard.agreement(settled_rows.agreed(appeared, selected, own), own, dark=True)
    assert drawn.layout.barmode == "stack" and [bars.name for bars in drawn.data] == [
        "selected by the run",
        "not selected",
    ]
    for bars, mask in zip(drawn.data, (own, ~own), strict=True):
        # a share of k of 20 lies at the lower end of its bar; none and 18 of 20 or more are left out
        assert list(bars.y) == [0 if k == 0 else int((selected[mask] == k).sum()) for k in range(18)]
        assert np.allclose(bars.x, np.arange(18) / 20)
