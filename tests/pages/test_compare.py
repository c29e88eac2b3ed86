"""Compare: one run is not enough, two show what changes, more hold each against the first, strangers get a reason."""

from __future__ import annotations

import shutil

import numpy as np
import pytest

from datamask.runs.store import Run
from datamask.runs.stored_measures import stored_agreement, stored_board
from tests.pages.conftest import REGIONS
from tests.pages.reading import compared_runs, map_data, parcels, titles


@pytest.fixture
def runs(opened, finished, mapped):
    """Three runs, oldest first: two of one kind, and one of another size and objective."""
    noise = np.random.default_rng(1).normal(size=(2, len(opened.corpus)))
    return [
        finished(noise[0], name="first", lamb=0.5),
        finished(noise[0] + noise[1], name="second", lamb=0.2),
        finished(noise[1], name="third", select_ratio=0.1, objective="pairwise"),
    ]


def write_fake_board(runs, corpus, cache_dir, left=()) -> None:
    """A scoreboard of two measures, as the measuring leaves it: the first made A, the second made nobody.

    Args:
        left: labels of the measures that are not there yet.
    """
    keys = (*(run.id for run in runs), "random", "top-quality")

    def measure(name: str, label: str, values: tuple[float, ...], hatched: tuple[int, ...]) -> dict:
        cells = {}
        for place, (key, value) in enumerate(zip(keys, values, strict=True)):
            verdict = "hatched" if place in hatched else "best" if place == 1 else ""
            about = {"value": value, "low": value - 0.1, "high": value + 0.1, "note": "", "against_random": None}
            cells[key] = {**about, "verdict": verdict}
        about = {"better": "higher", "optimisable": True, "interval": "", "tied": [], "says": "Number."}
        return {**about, "measure": name, "label": label, "best": keys[1], "selections": cells}

    board = {
        "n": len(corpus),
        "selected": dict.fromkeys(keys, 72),
        "notes": [],
        "measures": [
            measure("quality", "Mean quality", (2.0, 1.0, 0.0, 3.0), (0, 3)),
            measure("vendi", "Vendi <b>", (2.0, 5.0, 4.0, 1.0), ()),
        ],
        "optimised": {},
        "left": [{"measure": label.lower(), "label": label} for label in left],
    }
    stored_board(runs, corpus.fingerprint, cache_dir).keep(board)


def text_of(app) -> str:
    return " ".join(element.value for kind in (app.caption, app.markdown, app.info) for element in kind)


def test_stability_takes_one_run(page, opened, finished):
    """And where there is none it says so, not that two are needed."""
    none = page("pages/evidence.py", evidence_tab="Stability", corpus=opened.key)
    assert "needs a finished run" in none.subheader[0].value
    run = finished(name="alone")
    agreement = page("pages/evidence.py", evidence_tab="Stability", corpus=opened.key)
    assert not agreement.subheader and "stable across subsets" in text_of(agreement)
    metrics = page("pages/evidence.py", evidence_tab="Independent metrics", corpus=opened.key)
    assert "one more finished run" in metrics.subheader[0].value
    # once there is a second one, two are compared again
    other = finished(-opened.corpus.quality, name="other")
    assert set(agreement.run().session_state["compare"]) == {run.id, other.id}


def test_two_runs_of_one_kind(page, opened, runs, explained):
    app = page("pages/compare.py", corpus=opened.key, run=runs[1].id)
    assert titles(app) == ["A · first", "B · second", "B · second against A"]
    a, b = (set(np.flatnonzero(run.rows()["selected"])) for run in runs[:2])
    assert compared_runs(app)["What differs"].tolist() == ["Balance λ 0\\.5", "Balance λ 0\\.2"]
    change = parcels(app)["2"]
    assert [said for _, _, said in change["key"]][:2] == [f"added {len(b - a):,}", f"left out {len(a - b):,}"]
    explained(app, 6)


def test_the_maps_name_their_regions(page, opened, store, mapped, runs):
    app = page("pages/compare.py", corpus=opened.key, run=runs[1].id)
    corners, counts = dict(zip(REGIONS, ((0, 0), (10, 0), (0, 10)), strict=True)), np.bincount(mapped)
    named = map_data(app)["names"]
    assert {label for _, label, *_ in named} == set(corners)
    for code, label, x, y, sentence in named:
        assert (x, y) == pytest.approx(corners[label], abs=0.9)
        # they are read here, and not pressed
        assert sentence == f"{label}: {counts[code]} rows."


def tab(app, name):
    app.session_state["compare_tab"] = name
    app.run()
    assert not app.exception, app.exception[0].message
    return app


def test_one_table_comes_before_any_map(page, opened, runs):
    app = page("pages/compare.py", corpus=opened.key)
    placed = [
        element.proto.component_name if element.type == "bidi_component" else element.type for element in app.main
    ]
    before = placed[: placed.index("datamask_map")]
    assert before.count("arrow_table") + before.count("table") == 1 and "arrow_data_frame" not in before
    assert "Tokens" in compared_runs(app)


def test_curves_have_a_tab(page, opened, runs, explained):
    app = tab(page("pages/compare.py", corpus=opened.key, run=runs[1].id), "Curves")
    (chart,) = app.get("vega_lite_chart")
    assert '"first"' in chart.proto.spec and '"second"' in chart.proto.spec
    explained(app, 6)


def test_long_names_in_the_table_are_shortened_in_the_middle(page, opened, finished):
    """Generated names of runs differ at their ends."""
    ends = ("seed one", "seed two")
    for end in ends:
        name = f"facility, λ 0.5, 30 %, counterfactual, {end}"
        finished(name=name)
    app = page("pages/compare.py", corpus=opened.key)
    assert {name[-len(ends[0]) :] for name in compared_runs(app)[""]} == set(ends)


def test_rows_of_both_added_and_left_out_are_those_of_two_id_lists(page, opened, runs):
    app = page("pages/compare.py", corpus=opened.key, run=runs[1].id)
    a, b = (set(np.flatnonzero(run.rows()["selected"])) for run in runs[:2])
    for kind, rows in (("both", a & b), ("added", b - a), ("left out", a - b)):
        app.get_by_key("compare_kind").set_value(kind).run()
        assert set(app.dataframe[-1].value["chunk_id"]) == {f"doc-{row:04d}" for row in rows}
        assert any(f"{len(rows):,} rows" in caption.value for caption in app.caption)
    left, corpus = sorted(a - b), opened.corpus
    assert f"{int(corpus.lengths[left].sum()):,} tokens" in text_of(app)
    assert f"score {corpus.quality[left].mean():.4g}, all rows {corpus.quality.mean():.4g}" in text_of(app)
    app.text_input(key="compare_search").set_value("LONG 23").run()
    texts = opened.corpus.metadata["text"].to_pylist()
    held = {row for row in a - b if "23" in texts[row] and "long" in texts[row]}
    assert held and set(app.dataframe[-1].value["chunk_id"]) == {f"doc-{row:04d}" for row in held}
    app.text_input(key="compare_search").set_value("no such words").run()
    assert "No text contains these words." in text_of(app)


def test_changes_by_group_are_counted(page, opened, runs, explained):
    app = tab(page("pages/compare.py", corpus=opened.key, run=runs[1].id), "Groups")
    a, b = (set(np.flatnonzero(run.rows()["selected"])) for run in runs[:2])
    sources, lengths = opened.corpus.metadata["source"].to_pylist(), opened.corpus.lengths
    table = app.dataframe[-1].value.set_index("group")
    assert set(table.index) == set(sources)
    for source, row in table.iterrows():
        here = {k for k, of in enumerate(sources) if of == source}
        assert (row.n, row["both"], row["added"], row["left out"]) == (
            len(here),
            len(here & a & b),
            len(here & (b - a)),
            len(here & (a - b)),
        )
    app.get_by_key("compare_counted").set_value("tokens").run()
    for source, row in app.dataframe[-1].value.set_index("group").iterrows():
        here = {k for k, of in enumerate(sources) if of == source}
        assert (row.n, row["tokens_added"], row["tokens_left out"]) == (
            len(here),
            sum(lengths[k] for k in here & (b - a)),
            sum(lengths[k] for k in here & (a - b)),
        )
    app.get_by_key("compare_group_by").set_value("length band").run()
    assert app.dataframe[-1].value["n"].sum() == 240
    explained(app, 6)


def test_labels_find_and_archive(page, opened, store, runs):
    app = page("pages/compare.py", corpus=opened.key, run=runs[1].id)
    app.get_by_key("compare_edit").set_value(runs[0].id).run()
    app.text_input(key=f"name_{runs[0].id}").set_value("renamed <script>")
    app.multiselect(key=f"tags_{runs[0].id}").set_value(["good"])
    app.get_by_key(f"archived_{runs[0].id}").set_value(True)
    app.button(key=f"save_{runs[0].id}").click().run()
    assert not app.exception
    label = store.get(runs[0].id).label()
    assert (label.name, label.tags, label.archived) == ("renamed <script>", ("good",), True)
    fresh = page("pages/compare.py", corpus=opened.key)
    options = fresh.multiselect(key="compare").options
    assert len(options) == 2 and "renamed <script>" not in options
    fresh.get_by_key("compare_archived").set_value(True).run()
    assert "renamed <script>" in fresh.multiselect(key="compare").options
    fresh.multiselect(key="compare").set_value([runs[1].id, runs[2].id]).run()
    fresh.text_input(key="compare_find").set_value("GOOD").run()
    assert set(fresh.multiselect(key="compare").options) == {"renamed <script>", "second", "third"}


def test_two_hundred_runs_cost_no_table_of_those_not_compared(page, opened, store, runs, monkeypatch):
    """Counted, not timed: whatever 200 runs weigh, the page reads the rows of those it compares and of no other."""
    for number in range(200):
        shutil.copytree(runs[0].path, store.root / f"copy-{number:03d}")
    app = page("pages/compare.py", corpus=opened.key, run=runs[1].id)
    app.multiselect(key="compare").set_value([runs[0].id, runs[1].id])
    read = []
    table = Run._table
    monkeypatch.setattr(
        Run, "_table", lambda run, name, *columns: (read.append((run.id, name)), table(run, name, *columns))[1]
    )
    app.run()
    assert len(app.multiselect(key="compare").options) == 203
    assert set(read) == {(runs[0].id, "rows.parquet"), (runs[1].id, "rows.parquet")}


def test_a_scoreboard_is_shown_at_once_where_it_is_stored_and_a_part_with_the_way_to_the_rest(
    page, opened, store, runs
):
    app = page("pages/evidence.py", evidence_tab="Independent metrics", corpus=opened.key, run=runs[1].id)
    assert app.button(key="measure_board").label == "Measure these runs"
    write_fake_board(runs[:2], opened.corpus, store.cache_dir, left=("Coverage", "Drift"))
    app.run()
    assert app.button(key="measure_board").label == "Measure the remaining 2"
    assert any("2 of 4 measures are ready" in element.value for element in app.markdown)
    table = app.dataframe[0].value
    assert table["measure"].tolist() == ["Mean quality", "Vendi <b>", "Coverage", "Drift"]
    assert table["verdict"].tolist()[:2] == ["optimized by A, so no run is called best", "B is best"]
    assert any("B is best on 1" in element.value for element in app.markdown)


def test_agreement_is_shown_where_it_is_stored(page, opened, store, runs, explained):
    app = page("pages/evidence.py", evidence_tab="Stability", corpus=opened.key, run=runs[1].id)
    assert app.button(key="measure_agreement").label == "Repeat on 20 subsets"
    appeared = np.full(240, 16, np.int32)
    selected = np.where(np.arange(240) < 60, 16, np.where(np.arange(240) < 70, 8, 0)).astype(np.int32)
    stored_agreement(runs[0], opened.corpus.fingerprint, store.cache_dir).keep((appeared, selected))
    app.run()
    shown = {metric.label: metric.value for metric in app.metric}
    assert (shown["Stable rows"], shown["Unstable rows"]) == ("60", "10")
    assert set(app.dataframe[-1].value["chunk_id"]) == {f"doc-{row:04d}" for row in range(60, 70)}
    explained(app, 4)
    (link,) = (link.proto for link in app.get("page_link") if link.proto.label == "Show on the map")
    assert f"run={runs[0].id}" in link.query_string and "colour=stability+across+subsets" in link.query_string


def test_three_runs_of_different_kinds(page, opened, runs):
    app = page("pages/compare.py", corpus=opened.key)
    app.multiselect(key="compare").set_value([run.id for run in runs]).run()
    assert not app.exception
    assert titles(app) == ["A · first", "B · second", "B · second against A"]
    assert compared_runs(app)[""].tolist() == ["A · first", "B · second", "C · third"]
    assert "different numbers of rows" in text_of(app)
    app.get_by_key("compare_other").set_value(1).run()
    a, c = (set(np.flatnonzero(run.rows()["selected"])) for run in (runs[0], runs[2]))
    assert set(app.dataframe[-1].value["chunk_id"]) == {f"doc-{row:04d}" for row in a - c}
    assert titles(app) == ["A · first", "C · third", "C · third against A"]
    app.get_by_key("marks").set_value("hexagons").run()
    assert not app.exception
    bars = [parcels(app)[str(place)]["bar"] for place in range(2)]
    assert bars[0] and bars[0] == bars[1], "a colour means the same on each"


def test_the_pair_that_the_page_chose_is_said_and_follows_the_run_that_is_opened(page, opened, runs):
    app = page("pages/compare.py", corpus=opened.key, run=runs[0].id)
    assert app.multiselect(key="compare").value == [runs[1].id, runs[0].id]
    assert "Comparing the run that you opened last (B) with the next newest" in text_of(app)
    app.query_params["run"] = runs[2].id
    app.run()
    assert app.multiselect(key="compare").value == [runs[0].id, runs[2].id]
    assert "Comparing your last two runs" in text_of(app)
    app.multiselect(key="compare").set_value([runs[1].id, runs[2].id]).run()
    app.query_params["run"] = runs[0].id
    app.run()
    assert app.multiselect(key="compare").value == [runs[1].id, runs[2].id], "what a person chose stays"
    assert "Comparing" not in text_of(app)


def test_fewer_than_two_is_said(page, opened, runs):
    app = page("pages/compare.py", corpus=opened.key)
    app.multiselect(key="compare").set_value([runs[0].id]).run()
    assert app.info[0].value == "Choose at least two runs." and map_data(app) is None


def test_strangers_are_listed_with_their_reason(page, opened, store, runs):
    with runs[2].writer() as writer:
        writer.update_facts(fingerprint="f" * 64)
    app = page("pages/compare.py", corpus=opened.key)
    assert runs[2].id not in app.multiselect(key="compare").options
    assert app.expander[0].label == "1 other run not offered here, and why"
    said = text_of(app).replace("\\", "")
    assert "**third**: the files have changed since this run" in said and "ffffffff" not in said
