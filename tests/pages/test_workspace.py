"""One current selection: at any λ the bar, the map, its parts and the file say the same as pandas over the ids."""

from __future__ import annotations

import io
from types import SimpleNamespace

import pandas as pd
import pytest

from datamask.analyses.report.current import report_of
from datamask.config import SelectionConfig
from datamask.dashboard.frame.frame import PAGES
from datamask.dashboard.tradeoff import lambda_point, lambda_points, live
from datamask.dashboard.tradeoff.answers import Units
from datamask.dashboard.workspace import current as currently
from datamask.dashboard.workspace import selection, wording
from datamask.dashboard.workspace.current import Current
from datamask.pages.export import lines_panel, selection_panel
from tests.making.runs import execute_run
from tests.pages.reading import answered, compared_runs, downloads, menu, parcels, ticked, titles

LONG = 240.0

pytestmark = pytest.mark.usefixtures("live_of_its_own")


@pytest.fixture
def run(opened, store):
    """A run that was really made, at λ 0.5."""
    return execute_run(store, opened.config, "R", objective="pairwise", estimator="relaxed", select_ratio=0.25)


def ready(opened, store, settings):
    """The solver behind the slider, with everything solved."""
    behind = live.session(opened.corpus, lambda_points.settings_of(settings), store.cache_dir)
    behind.wait(LONG)
    assert behind.ready, behind.error
    return behind


def one(value):
    return value[0] if isinstance(value, list) else value


def test_lambda_goes_with_every_link_and_back(page, opened, store, mapped, run, downloads):
    behind = ready(opened, store, run.config.selection)
    for script, *_ in PAGES:
        app = page(script, corpus=opened.key, run=run.id, **{"lambda": "0.37"})
        assert "60 of 240 rows" in answered(app) and "λ 0.37 ·" in answered(app)
        assert all("lambda=0.37" in link for link in menu(app).values())
        assert one(app.query_params["lambda"]) == "0.37"
        kept = downloads["file"]["chunk_id"].to_pylist()
        assert kept == [
            i for i, inside in zip(opened.corpus.ids.to_pylist(), behind.refined(0.37, LONG).mask) if inside
        ]


def selected_by(app):
    """The menu of runs over the map."""
    return next(box for box in app.selectbox if box.label == "Selected by")


def test_a_selection_that_no_run_made_is_selected_by_no_run(page, opened, store, mapped, run):
    ready(opened, store, run.config.selection)
    app = page(corpus=opened.key, run=run.id)
    assert selected_by(app).value == run.id
    app = page(corpus=opened.key, run=run.id, **{"lambda": "0.37"})
    assert selected_by(app).value is None and selected_by(app).proto.placeholder == "λ 0.37 (not a stored run)"
    # so the run can be chosen, and comes with its own lambda
    selected_by(app).select(run.id).run()
    assert selected_by(app).value == run.id and "lambda" not in app.query_params
    assert f"λ {run.config.selection.lamb:g} ·" in answered(app)


def test_a_run_that_ends_meanwhile_does_not_take_the_place_of_the_one_that_is_shown(
    page, opened, store, finished, mapped
):
    finished(name="before", lamb=0.3)
    app = page(corpus=opened.key)
    finished(-opened.corpus.quality, name="after", lamb=0.3)
    assert titles(app.run()) == ["Selected by before"]
    assert ticked(app.switch_page("pages/runs.py").run()) == ["before"]
    (before,) = [run for run in store.list() if run.config.name == "before"]
    before.relabel(archived=True)
    assert titles(app.switch_page("app.py").run()) == ["Selected by before"]
    assert titles(page(corpus=opened.key)) == ["Selected by after"]


def test_beside_no_solver_the_nearest_stored_run_is_the_selection(page, opened, store, mapped, run):
    execute_run(store, opened.config, "S", lamb=0.8, objective="pairwise", estimator="relaxed", select_ratio=0.25)
    app = page("pages/export.py", corpus=opened.key, run=run.id, **{"lambda": "0.7"})
    assert "λ 0.8 ·" in answered(app) and app.button(key="answer_solve").label.startswith("Solve λ 0.7")
    assert not [button for button in app.get("download_button") if button.key.startswith("answer_")]


def test_a_fresh_corpus_opens_solved_in_the_middle(page, opened, store, mapped, monkeypatch, downloads):
    app = page(corpus=opened.key)
    assert any(button.key == "answer_solve" for button in app.button)
    assert titles(app) == ["Quality score"]
    monkeypatch.setattr(lambda_points, "NEEDED", 45.0)
    for script, *_ in PAGES:
        app = page(script, corpus=opened.key)
        behind = live.find(opened.corpus, lambda_points.settings_of(None))
        behind.wait(LONG)
        app.run()
        said = answered(app)
        assert "λ 0.5 ·" in said and "facility, keep 30\xa0%" in said and "72 of 240 rows" in said
    solved = behind.refined(0.5, LONG).mask
    assert downloads["file"]["chunk_id"].to_pylist() == opened.corpus.ids.filter(solved).to_pylist()
    assert titles(page(corpus=opened.key)) == ["Selected at λ 0.5"]


def test_a_new_server_opens_on_what_was_solved_before(page, opened, store, mapped, monkeypatch, downloads):
    behind = ready(opened, store, None)
    solved = {point.answer.lamb: point.mask for point in behind.solved[1]}
    live._holder().sessions.clear()
    monkeypatch.setattr(lambda_points, "NEEDED", 45.0)
    for script, *_ in PAGES:
        app = page(script, corpus=opened.key)
        assert (
            "λ 0.5 ·" in answered(app) and "72 of 240 rows" in answered(app) and "not proved yet" not in answered(app)
        )
        assert downloads["file"]["chunk_id"].to_pylist() == opened.corpus.ids.filter(solved[0.5]).to_pylist()
        assert live._holder().sessions == {}
    app = page(corpus=opened.key, **{"lambda": "0.2"})
    assert downloads["file"]["chunk_id"].to_pylist() == opened.corpus.ids.filter(solved[0.2]).to_pylist()
    assert len(parcels(app)["lambdas"]["points"]) == len(solved) and live._holder().sessions == {}
    assert (parcels(app)["slider"]["words"], parcels(app)["slider"]["press"]) == ("", "")
    # between them it is solved, and until then the nearest is shown
    app = page(corpus=opened.key, **{"lambda": "0.37"})
    (anew,) = live._holder().sessions.values()
    assert "λ 0.35 ·" in answered(app) or "λ 0.37 ·" in answered(app)
    anew.wait(LONG)
    app.run()
    assert (
        downloads["file"]["chunk_id"].to_pylist() == opened.corpus.ids.filter(anew.refined(0.37, LONG).mask).to_pylist()
    )


def test_kept_points_change_no_more_and_answers_between_them_until_all_is_solved(opened, store):
    behind = ready(opened, store, None)
    point = lambda_point.of_solved(behind.solved[1][7])
    for solver, of_point, between in ((None, True, False), ("begun", True, False), ("ready", True, True)):
        held = None if solver is None else SimpleNamespace(ready=solver == "ready")
        known = Current(None, held, True, None, (point,), ())
        assert (known.settled(point.lamb), known.settled(0.37)) == (of_point, between) and known.final
        assert Current(None, held, False, None, (point,), ()).settled(point.lamb) == (solver == "ready")


def test_a_gap_is_said_once_it_is_proved(opened, store):
    settings = SelectionConfig.from_options(objective="pairwise", device="cpu")
    (point,) = [point for point in ready(opened, store, settings).solved[1] if point.answer.lamb == 0.9]
    drawn = selection.of_point(settings, lambda_point.of_solved(point), None)
    assert wording.answer_of(opened.corpus, Units(), drawn, final=False)["proof"] == "not proved yet"
    assert wording.parts(opened.corpus, drawn)[-1].startswith("gap ")


def test_stored_runs_are_read_where_they_are_asked_for_alone(page, opened, finished, mapped, run, monkeypatch):
    read = []
    monkeypatch.setattr(currently, "_stored_point", lambda run_id, *rest: read.append(run_id))
    for lamb in (0.1, 0.3, 0.6):
        finished(
            objective="pairwise",
            estimator="relaxed",
            select_ratio=0.25,
            lamb=lamb,
            anchors=run.status().to_dict()["summary"]["anchors"],
            name=f"{lamb}",
        )
    page("pages/export.py", corpus=opened.key, run=run.id)
    assert not read
    page("pages/export.py", corpus=opened.key, run=run.id, **{"lambda": "0.2"})
    assert len(set(read)) <= 2


def test_export_downloads_and_reports_what_lambda_was_moved_to(page, opened, store, mapped, run, monkeypatch):
    behind, made, ids = ready(opened, store, run.config.selection), [], {}
    monkeypatch.setattr(selection_panel, "report_of", lambda *given: made.append(report_of(*given)) or made[-1])

    def noted(key, heading, about, rows, files):
        ids.update({file.format: file.content() if callable(file.content) else file.content for file in files})

    monkeypatch.setattr(lines_panel, "line", noted)
    page("pages/export.py", corpus=opened.key, run=run.id, **{"lambda": "0.9"})
    kept = pd.read_parquet(opened.config.inputs[0])[behind.refined(0.9, LONG).mask]
    for read, kind in ((pd.read_csv, "CSV"), (pd.read_parquet, "Parquet")):
        assert read(io.BytesIO(ids[kind]))["chunk_id"].tolist() == kept.chunk_id.tolist()
    assert f"<td class=number>{kept.n_tokens.sum():,}</td>" in made[0] and "--lamb 0.9" in made[0]


def test_export_gives_the_run_again_at_its_own_lambda(page, opened, store, mapped, run):
    ready(opened, store, run.config.selection)
    moved = page("pages/export.py", corpus=opened.key, run=run.id, **{"lambda": "0.9"})
    assert [button.label for button in downloads(moved)] == ["Download selected ids", "Download report"]
    summed_up = moved.markdown[-1].value.replace("\\", "")
    assert "60 of 240 rows" not in summed_up and "in no run folder yet" in summed_up
    own = page("pages/export.py", corpus=opened.key, run=run.id, **{"lambda": "0.5"})
    assert len(downloads(own)) > len(downloads(moved))


def test_compare_holds_what_lambda_was_moved_to_against_the_runs(page, opened, store, mapped, run):
    mask = ready(opened, store, run.config.selection).refined(0.9, LONG).mask
    table = compared_runs(page("pages/compare.py", corpus=opened.key, run=run.id, **{"lambda": "0.9"}))
    shared = int((run.mask() & mask).sum())
    assert table["Overlap"][1].startswith(f"{100 * shared / (120 - shared):.0f} % (")
    assert table[""].tolist() == ["A · R", "B · current, λ 0\\.9"]


def test_runs_shows_the_learned_run_of_that_lambda_and_says_which(page, opened, store, finished, mapped, run):
    ready(opened, store, run.config.selection)
    learned = finished(objective="pairwise", select_ratio=0.25, estimator="counterfactual", lamb=0.9, name="learned")
    app = page("pages/runs.py", corpus=opened.key, run=run.id, **{"lambda": "0.9"})
    assert any(
        "learned" in c.value and "is not the current selection" in c.value and "λ 0" in c.value for c in app.caption
    )
    own = page("pages/runs.py", corpus=opened.key, run=learned.id)
    assert not any("is not the current selection" in caption.value for caption in own.caption)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"objective": "facility", "estimator": "relaxed"}, "ranks, rows and masks"),
        (
            {"objective": "pairwise", "estimator": "relaxed"},
            "ranks, rows, masks, repeat weights and a recipe (per-row rule)",
        ),
        ({"objective": "vendi", "estimator": "relaxed"}, "ranks, rows, masks and repeat weights"),
    ],
)
def test_export_promises_what_a_kept_run_has(options, says):
    assert selection_panel._kept_only(SelectionConfig.from_options(**options)) == says
