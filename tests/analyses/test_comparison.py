"""Comparisons against plain set arithmetic and simulated chance."""

from dataclasses import replace
from itertools import combinations

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from datamask.analyses.comparison import tables as comparison
from datamask.dashboard.drawing import words
from datamask.errors import InputError
from datamask.options import CORPUS_OPTIONS, QualityColumn
from tests.making.runs import finish_run


@pytest.fixture
def three(world):
    store, corpus, config = world
    rng = np.random.default_rng(3)
    scores = rng.normal(size=(3, len(corpus)))
    runs = [
        finish_run(store, corpus, config, scores[0], name="first", lamb=0.5),
        finish_run(
            store,
            corpus,
            config,
            scores[0] + 0.5 * scores[1],
            name="second",
            lamb=0.2,
            shares={"quality": 0.4, "diversity": 0.9},
        ),
        finish_run(store, corpus, config, scores[2], name="third", select_ratio=0.1, objective="pairwise"),
    ]
    return comparison.load(runs, len(corpus)), runs, corpus


@pytest.mark.parametrize(("first", "second"), [(0.3, 0.3), (0.1, 0.4)])
def test_chance_is_what_random_subsets_share(first, second):
    rng = np.random.default_rng(0)
    n = 20_000
    pruned, copies, pinned = rng.random(n) < 0.5, rng.random(n) < 0.2, np.arange(n) < 300
    may, sizes = (~pruned | pinned, ~copies), (int(first * n), int(second * n))
    pins = (pinned, np.zeros(n, bool))
    found = []
    for _ in range(20):
        drawn = []
        for rows, always, size in zip(may, pins, sizes):
            kept = set(np.flatnonzero(always).tolist())
            more = rng.choice(np.flatnonzero(rows & ~always), size - len(kept), replace=False)
            drawn.append(kept | set(more.tolist()))
        found.append(len(drawn[0] & drawn[1]) / len(drawn[0] | drawn[1]))
    chances = [comparison.draw_chances(*given) for given in zip(sizes, may, pins)]
    assert [one.sum() for one in chances] == pytest.approx(sizes)
    assert comparison.chance_overlap(*chances) == pytest.approx(np.mean(found), abs=0.003)


def test_chance_by_all_draws_of_a_small_corpus():
    rows, may, pinned = np.arange(7), np.array([1, 1, 1, 1, 1, 0, 0], bool), np.array([1, 0, 0, 0, 0, 0, 0], bool)
    first = [{0, *others} for others in combinations(rows[1:5], 2)]
    second = [set(others) for others in combinations(rows, 4)]
    shared = np.mean([len(a & b) for a in first for b in second])
    every = np.ones(7, bool)
    found = comparison.chance_overlap(
        comparison.draw_chances(3, may, pinned), comparison.draw_chances(4, every, ~every)
    )
    assert found == pytest.approx(shared / (3 + 4 - shared))


def test_chance_looks_at_what_a_run_could_take(world, tmp_path):
    store, corpus, config = world
    pin = tmp_path / "pin.txt"
    pin.write_text("doc-0003\ndoc-0004\n")
    scores = np.arange(len(corpus), dtype=float)
    scores[[3, 4]] = 1e6
    run = finish_run(store, corpus, config, scores, select_ratio=0.25, pin=str(pin))
    table = run.rows()
    half = pa.array(np.isin(np.arange(240), [3, 4]) | (np.arange(240) >= 120))
    pq.write_table(table.set_column(table.column_names.index("eligible"), "eligible", half), run.path / "rows.parquet")
    free = finish_run(store, corpus, config, scores, select_ratio=0.25)
    first, second = comparison.load([run, free], len(corpus))
    assert first.drawn[[3, 4]].tolist() == [1, 1] and not first.drawn[:3].any()
    assert first.drawn[120:] == pytest.approx(58 / 120) and second.drawn == pytest.approx(0.25)
    # 60 of each: 2 certain ones and 58 of 120, a quarter of which the other would take
    assert comparison.chance_overlap(first.drawn, second.drawn) == pytest.approx(15 / 105)
    pin.unlink()
    again, _ = comparison.load([run, free], len(corpus))
    assert again.drawn[3] == pytest.approx(60 / 122), "a list that is gone: its rows are drawn like others"


def test_the_summary_is_set_arithmetic(three):
    entries, _, corpus = three
    table = comparison.summary(entries, corpus.lengths).replace(words.GAP, " ", regex=True)
    assert table["run"].tolist() == ["A · first", "B · second", "C · third"]
    assert table["Quality"].tolist() == ["80 %", "40 %", "80 %"] and table["Rows"].tolist() == ["72", "72", "24"]
    tokens = [words.short(corpus.lengths[entry.selected].sum()).replace(words.GAP, " ") for entry in entries]
    assert table["Tokens"].tolist() == tokens
    first, *others = (set(np.flatnonzero(entry.selected)) for entry in entries)
    assert table["Overlap"][0] == "–"
    for entry, rows, shown in zip(entries[1:], others, table["Overlap"][1:]):
        overlap = len(first & rows) / len(first | rows)
        chance = comparison.chance_overlap(entries[0].drawn, entry.drawn)
        most = "" if len(rows) == len(first) else ", at most 33 %"
        assert shown == f"{100 * overlap:.0f} % ({100 * chance:.0f} %{most})"
    assert table["What differs"][1] == "Diversity objective facility · Balance λ 0.2 · Select ratio 0.3"
    assert "Tokens" not in comparison.summary(entries)
    assert comparison.summary(entries[:1] * 2)["What differs"].tolist() == ["nothing", "nothing"]


OTHERWISE = {
    "inputs": ("elsewhere.parquet", "more.parquet"),
    "quality_columns": (QualityColumn("edu", 0.5, "z"), QualityColumn("dirt", -2.0)),
    "features": ("features",),
    "scores": ("scores",),
    "rows": 500,
    "seed": 7,
    "feature_bits": True,
    "drop_invalid": True,
    "make_ids": True,
}


@pytest.mark.parametrize("name", CORPUS_OPTIONS)
def test_options_by_which_the_same_rows_were_opened_are_compared(world, name):
    store, corpus, config = world
    other = replace(config, **{name: OTHERWISE.get(name, "another")})
    runs = [
        finish_run(store, corpus, opened, corpus.quality, name=opened_by)
        for opened_by, opened in (("first", config), ("second", other), ("third", config))
    ]
    differing = comparison.settings(comparison.load(runs, len(corpus)))
    assert list(differing) == [CORPUS_OPTIONS[name].title]
    first, second, third = differing[CORPUS_OPTIONS[name].title]
    assert first == third != second and first not in ("", "None")
    assert not comparison.settings(comparison.load(runs[::2], len(corpus)))


def test_corpus_options_are_written_as_on_the_command_line(world):
    store, corpus, config = world
    other = replace(config, quality_columns=OTHERWISE["quality_columns"], rows=1234)
    runs = [finish_run(store, corpus, opened, corpus.quality) for opened in (config, other)]
    differing = comparison.settings(comparison.load(runs, len(corpus)))
    assert differing["Quality columns"] == ["found by name, then by type", "edu:0.5:z, dirt:-2"]
    assert differing["Rows at most"] == ["all that fit", "1234"]


def test_a_row_seed_that_follows_the_seed_is_no_difference_of_its_own(world):
    store, corpus, config = world
    runs = [finish_run(store, corpus, replace(config, seed=seed), corpus.quality, seed=seed) for seed in (0, 3)]
    assert list(comparison.settings(comparison.load(runs, len(corpus)))) == ["Seed"]


def test_every_setting_has_a_name():
    from dataclasses import fields

    from datamask.config import SelectionConfig

    assert set(comparison.SETTINGS) == {field.name for field in fields(SelectionConfig)}


def test_what_does_not_compare_is_said(three):
    entries, _, _ = three
    said = " ".join(comparison.caveats(entries))
    assert "A 72, B 72, C 24" in said and "C pairwise" in said and "joint" in said
    assert comparison.caveats([entries[0], entries[0]]) == []


def test_a_constant_term_has_no_share(world):
    store, corpus, config = world
    run = finish_run(store, corpus, config, np.arange(len(corpus)), shares={"quality": None})
    entries = comparison.load([run, run], len(corpus))
    assert comparison.summary(entries)["Quality"].tolist() == ["–", "–"]


def test_load_refuses_what_does_not_fit(three):
    _, runs, corpus = three
    for several in ([], [*runs, *runs]):
        with pytest.raises(InputError, match=f"1 to 4 selections, got {len(several)}"):
            comparison.load(several, len(corpus))
    with pytest.raises(InputError, match="240 rows, the open corpus has 7"):
        comparison.load(runs[:2], 7)


def test_runs_whose_ends_two_versions_found_do_not_compare_in_diversity(world):
    store, corpus, config = world
    scores = np.arange(len(corpus))
    end = {"random": 0.0, "best": 1.0, "best_kind": "proved"}

    def made(best, **options):
        objective = options.get("objective", "facility")
        anchors = {"quality": end, "diversity": {objective: {**end, "best": best}}}
        return finish_run(store, corpus, config, scores, anchors=anchors, **options)

    first, same, later = made(1.0), made(1.0 + 1e-9), made(1.0001)
    assert comparison.other_ends(comparison.load([first, same], len(corpus))) is None
    entries = comparison.load([first, same, later], len(corpus))
    assert "another version of datamask" in comparison.other_ends(entries)
    assert comparison.other_ends(entries) in comparison.caveats(entries)
    # of another objective, size or centering the ends are others in any version
    for options in ({"objective": "pairwise"}, {"select_ratio": 0.1}, {"center": True}):
        assert comparison.other_ends(comparison.load([first, made(2.0, **options)], len(corpus))) is None
