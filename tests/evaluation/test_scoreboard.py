"""The scoreboard as a whole: its parts, its rules, its refusals, and the ways in."""

from __future__ import annotations

import json

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

import datamask
from datamask import catalogue, cli
from datamask.config import SelectionConfig
from datamask.errors import InputError, OptionError, Stopped
from datamask.evaluation import optimised_by, panel_rows, score_selection, scoreboard
from datamask.evaluation.measures import PANEL
from datamask.evaluation.references import comparable, reference_rows
from tests.making.pools import corpus_of, made_corpus

OPTIONS = {"objective": "facility", "lamb": 0.0, "select_ratio": 0.25, "n_epochs": 10, "device": "cpu"}


@pytest.fixture(scope="module")
def cache(tmp_path_factory):
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(scope="module")
def corpus():
    return made_corpus()


@pytest.fixture(scope="module")
def selections(corpus, cache):
    facility = datamask.select(corpus, SelectionConfig.from_options(**OPTIONS), cache_dir=cache).rows
    return {"facility": facility, "every fourth": np.arange(0, 1200, 4)}


@pytest.fixture(scope="module")
def board(corpus, selections, cache):
    optimised = {"facility": optimised_by(SelectionConfig.from_options(**OPTIONS))}
    return scoreboard(corpus, selections, cache, optimised=optimised, device="cpu")


def test_every_measure_and_every_selection_is_there(board):
    names = [row["measure"] for row in board["measures"]]
    assert len(set(names)) == len(names)
    assert {name.split(":")[0] for name in names} == {entry.name for entry in PANEL}
    assert set(board["selected"]) == {"facility", "every fourth", "random", "top-quality"}
    assert set(board["selected"].values()) == {300} and board["notes"] == []
    for row in board["measures"]:
        assert set(row["selections"]) == set(board["selected"])
        assert row["says"] and row["label"] and row["better"] in ("higher", "lower", "neither")
        for cell in row["selections"].values():
            assert cell["low"] <= cell["value"] <= cell["high"]


def test_it_is_json(board):
    assert json.loads(json.dumps(board, allow_nan=False)) == board


def test_nobody_is_best_on_its_own_ground_or_by_chance(board):
    rows = {row["measure"]: row for row in board["measures"]}
    assert rows["facility"]["selections"]["facility"]["verdict"] == "hatched"
    assert rows["facility"]["selections"]["facility"]["calibrated"] > 0.9
    for name in ("quality", "column:q_a", "cross_entropy:quality"):
        assert rows[name]["selections"]["top-quality"]["verdict"] == "hatched"
    # every fourth row is as good as random, so neither can be best of all there
    for name in ("quality", "pairwise", "clusters", "cross_entropy"):
        assert rows[name]["best"] not in ("every fourth", "random")
    assert rows["near_copies"]["better"] == "lower"
    for row in rows.values():
        marks = [cell["verdict"] for cell in row["selections"].values()]
        assert marks.count("best") == (row["best"] is not None) and marks.count("tied") == len(row["tied"])
        assert not (row["best"] and row["tied"]) and len(row["tied"]) != 1
        assert row["better"] != "neither" or not row["best"]


def test_differences_to_random_are_paired(board):
    row = next(row for row in board["measures"] if row["measure"] == "tfidf")
    for name, cell in row["selections"].items():
        if name == "random":
            assert cell["against_random"] is None
            continue
        apart = cell["against_random"]
        assert apart["difference"] == pytest.approx(cell["value"] - row["selections"]["random"]["value"])
        # the same texts are covered by both, so what makes them easy or hard cancels
        assert apart["high"] - apart["low"] < cell["high"] - cell["low"]


def test_the_same_call_gives_the_same_board(board, corpus, selections, cache):
    again = scoreboard(corpus, selections, cache, optimised={"facility": ["facility"]}, device="cpu")
    assert again == board


def test_random_selections_cannot_be_told_apart(corpus, cache):
    """Eight random selections: at most a few of their 27 x 7 differences to one of them look real."""
    rng = np.random.default_rng(8)
    drawn = {f"r{k}": rng.choice(1200, 300, replace=False) for k in range(7)}
    board = scoreboard(corpus, drawn, cache, device="cpu")
    apart = [
        cell["against_random"]
        for row in board["measures"]
        for name, cell in row["selections"].items()
        if name.startswith("r") and cell["against_random"] is not None
    ]
    off = np.mean([not gap["low"] <= 0 <= gap["high"] for gap in apart])
    assert len(apart) > 100 and off < 0.1


def test_one_selection_scored_keeps_its_keys_and_gains_a_panel(corpus, selections, cache, board):
    rows = selections["facility"]
    plain = score_selection(corpus, rows, cache, "cpu")
    assert set(plain) == {"selected", "n", "tokens", "quality", "objectives", "calibrated", "anchors"}
    assert set(plain["objectives"]) == {entry.name for entry in catalogue.OBJECTIVES}
    assert set(plain["calibrated"]) == set(plain["anchors"]) == {"quality", *plain["objectives"]}
    assert plain["tokens"] == corpus.lengths[rows].sum()
    whole = score_selection(corpus, rows, cache, "cpu", panel=True)
    assert {key: value for key, value in whole.items() if key != "panel"} == plain
    mine = {row["measure"]: row for row in panel_rows(board, "facility")}
    # cross-entropy is at equal words, which depend on who else is there
    for row in whole["panel"]:
        assert {"measure", "value", "low", "high", "better", "optimisable", "note", "random", "top_quality"} <= set(row)
        if not row["measure"].startswith("cross_entropy"):
            assert row["value"] == mine[row["measure"]]["value"]
            assert row["random"] == mine[row["measure"]]["random"]


def test_a_corpus_without_texts_says_so(tmp_path, rng):
    corpus = made_corpus(300, texts=False)
    board = scoreboard(corpus, {"a": rng.choice(300, 90, replace=False)}, tmp_path, device="cpu")
    silent = {row["measure"] for row in board["measures"] if row["selections"]["a"]["value"] is None}
    assert silent == {"tfidf", "cross_entropy"}


@pytest.mark.parametrize("size", [1, 2, 299])
def test_the_smallest_and_the_largest_selections(tmp_path, size):
    board = scoreboard(made_corpus(300), {"a": np.arange(size)}, tmp_path, device="cpu")
    for row in board["measures"]:
        value = row["selections"]["a"]["value"]
        assert value is None or np.isfinite(value)


def test_selections_of_unequal_size(corpus):
    lists = {"a": np.arange(300), "b": np.arange(310), "c": np.arange(600)}
    kept, tokens, notes = comparable(corpus, {name: lists[name] for name in "ab"})
    assert {name: len(rows) for name, rows in kept.items()} == {"a": 300, "b": 300} and tokens is None
    assert set(kept["b"]) < set(range(310)) and "cut at random to 300 rows" in notes[0]
    with pytest.raises(InputError, match=r"their sizes differ \(a 300, c 600\)"):
        comparable(corpus, {name: lists[name] for name in "ac"})
    kept, tokens, notes = comparable(corpus, {name: lists[name] for name in "ac"}, cut=True)
    assert tokens == corpus.lengths[:300].sum() and "tokens" in notes[0]
    assert 0 <= tokens - corpus.lengths[kept["c"]].sum() < 60 and np.array_equal(kept["a"], lists["a"])
    bare = corpus_of(corpus.features)
    kept, tokens, _ = comparable(bare, {name: lists[name] for name in "ac"}, cut=True)
    assert len(kept["c"]) == 300 and tokens is None


def test_equal_tokens_compare_whatever_their_rows(corpus, cache):
    """A budget of tokens: many short texts against few long ones."""
    order = np.argsort(corpus.lengths, kind="stable")
    short = order[:350]
    sums = np.cumsum(corpus.lengths[order[::-1]])
    long = order[::-1][: int(np.searchsorted(sums, corpus.lengths[short].sum()))]
    assert len(short) > 1.5 * len(long)
    board = scoreboard(corpus, {"short": short, "long": long}, cache, device="cpu")
    assert max(board["tokens"].values()) - min(board["tokens"].values()) < 60
    quality = next(row for row in board["measures"] if row["measure"] == "quality")
    assert "calibrated" not in quality["selections"]["short"]


def test_references_are_what_they_say(corpus):
    found = reference_rows(corpus, 200)
    assert sorted(corpus.quality[found["top-quality"]]) == sorted(corpus.quality)[-200:]
    assert len(set(found["random"].tolist())) == 200
    assert abs(corpus.quality[found["random"]].mean() - corpus.quality.mean()) < 4 * corpus.quality.std() / 200**0.5
    mine = reference_rows(corpus, 0, tokens=1_000.0)
    for rows in mine.values():
        assert 1_000 - 60 < corpus.lengths[rows].sum() <= 1_000


def test_given_references_stand(corpus, selections, cache):
    board = scoreboard(corpus, {"random": selections["every fourth"]}, cache, references=False, device="cpu")
    assert list(board["selected"]) == ["random"]


@pytest.mark.parametrize("rows", [[], [0, 0], [-1, 3], [3, 1200], list(range(1200))])
def test_lists_that_are_no_selection_are_refused(corpus, cache, rows):
    with pytest.raises(InputError, match="must hold 1 to 1,199 distinct rows"):
        scoreboard(corpus, {"a": rows}, cache)
    with pytest.raises(InputError, match="must hold 1 to 1,199 distinct rows"):
        score_selection(corpus, rows, cache)


def test_nothing_to_compare_and_unknown_names_are_refused(corpus, cache):
    with pytest.raises(InputError, match="no selections"):
        scoreboard(corpus, {}, cache)
    with pytest.raises(OptionError, match="'b'"):
        scoreboard(corpus, {"a": np.arange(9)}, cache, optimised={"b": ["quality"]})


def test_it_can_be_stopped_anywhere(corpus, selections, cache):
    polls = 0

    def count() -> None:
        nonlocal polls
        polls += 1

    scoreboard(corpus, selections, cache, device="cpu")  # finds what is kept: graph and ends
    scoreboard(corpus, selections, cache, device="cpu", poll=count)
    assert polls > 50
    for at in np.linspace(1, polls // 2, 6).astype(int):
        left = int(at)

        def poll() -> None:
            nonlocal left
            left -= 1
            if left <= 0:
                raise Stopped("enough")

        with pytest.raises(Stopped):
            scoreboard(corpus, selections, cache, device="cpu", poll=poll)


def test_it_arrives_measure_by_measure_and_is_gone_on_with(corpus, selections, tmp_path):
    parts, heard = [], []
    scale = {"calibrate": False, "device": "cpu"}
    whole = scoreboard(
        corpus, selections, tmp_path, kept=parts.append, **scale, progress=lambda share, what: heard.append(share)
    )
    assert [len(part["left"]) for part in parts] == list(range(len(PANEL)))[::-1] and parts[-1] == whole
    assert heard == sorted(heard) and 0 <= heard[0] < 0.5 < heard[-1] < 1, "no work begins the bar anew"
    assert not list(tmp_path.rglob("anchor*")) and "calibrated" not in whole["measures"][0]["selections"]["random"]
    for before in (parts[0], parts[len(parts) // 2], whole):
        left, later = {one["measure"] for one in before["left"]}, []
        assert {row["measure"].split(":")[0] for row in before["measures"]}.isdisjoint(left)
        again = scoreboard(corpus, selections, tmp_path, before=before, kept=later.append, **scale)
        assert again == whole and len(later) == len(left), "only what was left is measured"


# -- the command line -------------------------------------------------------------------------------------------------


@pytest.fixture
def here(tmp_path, monkeypatch, corpus):
    monkeypatch.chdir(tmp_path)
    features = pa.FixedSizeListArray.from_arrays(pa.array(corpus.features.ravel()), corpus.dim)
    pq.write_table(
        pa.table(
            {
                "chunk_id": corpus.ids,
                "quality_score": corpus.quality,
                "feature_arr": features,
                "text": corpus.metadata["text"],
                "domain": corpus.metadata["domain"],
            }
        ),
        "in.parquet",
    )
    assert (
        cli.main(
            [
                "select",
                "in.parquet",
                "--output",
                "mine.parquet",
                "--objective",
                "pairwise",
                "--select_ratio",
                "0.25",
                "--n_epochs",
                "8",
                "--device",
                "cpu",
            ]
        )
        == 0
    )
    pa.csv.write_csv(pa.table({"chunk_id": corpus.ids[:300]}), "list.csv")
    return tmp_path


def test_score_panel_for_people_and_programs(here, capsys):
    words = [
        "score",
        "in.parquet",
        "--selection",
        "mine.parquet",
        "--selection",
        "list.csv",
        "--device",
        "cpu",
        "--panel",
    ]
    capsys.readouterr()
    assert cli.main([*words, "--json"]) == 0
    result = json.loads(capsys.readouterr().out.splitlines()[-1])
    board = result["scoreboard"]
    # how a selection was made is read from its file
    assert board["optimised"]["mine.parquet"] == ["pairwise", "quality"] and board["optimised"]["list.csv"] == []
    assert board["notes"] == ["How list.csv came about is not known, so no measure is taken as its own."]
    for entry in result["selections"]:
        assert {row["measure"] for row in entry["panel"]} == {row["measure"] for row in board["measures"]}
        values = {row["measure"]: row["value"] for row in entry["panel"]}
        assert values["facility"] == entry["objectives"]["facility"] and values["quality"] == entry["quality"]
    assert cli.main(words) == 0
    shown = capsys.readouterr().out
    assert "MEASURE" in shown and "Vendi score" in shown and "LIST" in shown and "±" in shown
    assert "out of competition" in shown and "is not known" in shown
    # without a panel there is none
    assert cli.main([*words[:-1], "--json"]) == 0
    result = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert "scoreboard" not in result and not any("panel" in entry for entry in result["selections"])
