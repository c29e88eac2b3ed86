"""The lambda slider on the map: what it is told, what it answers, and that one lambda has one answer everywhere."""

from __future__ import annotations

import json
import os
import threading
from types import SimpleNamespace

import numpy as np
import pytest

from datamask.analyses.explanation import explanations
from datamask.analyses.explanation.compute import Flip
from datamask.analyses.frontier import tables as frontier
from datamask.analyses.lambda_slider import panel as lambda_slider
from datamask.config import SelectionConfig
from datamask.dashboard.drawing import words
from datamask.dashboard.shell import view as views
from datamask.dashboard.tradeoff import answers, kept_points, lambda_points, live, spots
from datamask.dashboard.workspace import current as currently
from datamask.evaluation import live as solver
from datamask.pages.map import rail_panel
from datamask.work.worker import worker
from tests.making.runs import execute_run
from tests.pages.reading import answer, map_data, parcels, view

LONG = 240.0


pytestmark = pytest.mark.usefixtures("live_of_its_own")


def prepared(opened, run=None):
    """The session behind the slider beside a run, with everything solved."""
    settings = lambda_points.settings_of(None if run is None else run.config.selection)
    behind = live.session(opened.corpus, settings, opened_cache(opened))
    behind.wait(LONG)
    assert behind.ready, behind.error
    return behind


def opened_cache(opened):
    from datamask.runs.store import RunStore

    return RunStore(os.environ["DATAMASK_RUNS_DIR"]).cache_dir


def of_rows(parcel, places_rows) -> list[np.ndarray]:
    """The masks at each point by row, as the map's ground says which sample is which; those of baselines lie behind."""
    found = []
    for bits in parcel["bits"].reshape(-1, -(-parcel["marks"] // 8))[: len(parcel["points"])]:
        by_row = np.zeros(parcel["marks"], bool)
        by_row[places_rows] = np.unpackbits(bits, count=parcel["marks"])
        found.append(by_row)
    return found


def problem_of(opened, run=None) -> str:
    """The name of the problem behind the slider beside a run."""
    return kept_points.key_of(opened.corpus, lambda_points.settings_of(None if run is None else run.config.selection))


def at(app, lamb):
    """The page once the slider was let go there, and what it asks for is solved."""
    app = view(app, lamb=lamb)
    while parcels(app)["slider"]["words"].startswith("solving"):
        app.run()
    return app


def test_before_anything_is_solved_it_stands_at_the_run_and_offers_to(page, opened, finished, mapped):
    # without a run nothing but a person chooses: the middle
    state = parcels(page(corpus=opened.key))["slider"]
    assert (state["at"], state["touched"], state["run"]) == (0.5, False, "")
    run = finished(name="m*i*ne", lamb=0.3)
    app = page(corpus=opened.key, run=run.id)
    sent = parcels(app)
    assert map_data(app)["slider"] and live._holder().sessions == {}
    state = sent["slider"]
    assert (state["at"], state["home"], state["touched"]) == (0.3, 0.3, False)
    assert state["press"] == "prepare" and "once it is solved" in state["words"] and state["back"] == "As in m*i*ne"
    (only,) = sent["lambdas"]["points"]
    assert only["run"] and only["meters"][0]["finer"] == words.percent(0.8, 1) and only == {**only, **state["current"]}
    # that is facility: letting go begins it; a sum with it is selected by runs only, and DiSF waits for the button
    assert state["answers"]
    for objective in ("pairwise:1,facility:1", "disf"):
        run = finished(objective=objective)
        assert not parcels(page(corpus=opened.key, run=run.id))["slider"]["answers"]


@pytest.mark.parametrize("moments", [True, False])
def test_what_is_prepared_in_moments_for_somebody_is_waited_for(page, opened, mapped, monkeypatch, moments):
    monkeypatch.setattr(lambda_points, "AT_ONCE", 60.0 if moments else -1.0)
    pose, ask, asked = solver.open_live, lambda_points.selected_at, threading.Event()
    monkeypatch.setattr(solver, "open_live", lambda *given: asked.wait(LONG) and pose(*given))
    monkeypatch.setattr(lambda_points, "selected_at", lambda *given: asked.set() or ask(*given))
    behind = live.session(opened.corpus, lambda_points.settings_of(None), opened_cache(opened))
    current = parcels(page(corpus=opened.key))["slider"].get("current")
    assert moments == (current is not None and current["lamb"] == 0.5)
    behind.wait(LONG)


def offered(app) -> list[str]:
    """What the buttons say that download selections."""
    buttons = [button for button in app.get("download_button") if button.key.startswith("answer_")]
    return [f"{button.proto.label} ({answer(app)['answer']['name']})" for button in buttons]


def test_each_download_names_its_selection_and_holds_what_it_names(page, opened, store, mapped, downloads, monkeypatch):
    run = execute_run(store, opened.config, "R", objective="pairwise", estimator="relaxed", lamb=0.5, select_ratio=0.25)
    app = page(corpus=opened.key, run=run.id)
    own = ["Download 60 ids (λ 0.5)"]
    assert offered(app) == own
    assert downloads["file"]["chunk_id"].to_pylist() == run.selection()["chunk_id"].to_pylist()
    behind = prepared(opened, run)
    ids = np.array(opened.corpus.ids.to_pylist())

    def holds(mask, lamb):
        about = json.loads(downloads["file"].schema.metadata[b"datamask"])
        assert (about["lambda"], about["preview"]) == (lamb, False) and about["selection"]["lamb"] == lamb
        assert about["fingerprint"] == opened.corpus.fingerprint
        return np.array_equal(downloads["file"]["chunk_id"].to_pylist(), ids[mask])

    # a solved lambda, one that is solved where the slider is let go, and one that no time is taken for
    app = at(app, 0.9)
    assert offered(app) == ["Download 60 ids (λ 0.9)"] and holds(behind.answer(0.9, LONG).mask, 0.9)
    assert not np.array_equal(behind.answer(0.9, LONG).mask, run.rows(["selected"])["selected"].to_numpy())
    app = at(app, 0.12)
    assert offered(app) == ["Download 60 ids (λ 0.12)"] and holds(behind.refined(0.12, LONG).mask, 0.12)
    monkeypatch.setattr(lambda_points, "REFINED_WITHIN", -1.0)
    app = at(app, 0.87)
    # a preview is no answer yet: a run solves it
    assert offered(app) == [] and answer(app)["answer"]["note"] == "preview"
    assert app.button(key="answer_solve").label == "Solve exactly"
    # the run's own lambda is the run's own selection
    assert offered(at(app, 0.5)) == own and offered(at(app, None)) == own


def test_what_is_learned_anew_at_each_lambda_snaps_to_what_is_solved_and_says_so(page, opened, finished, mapped):
    run = finished(objective="disf_fixed", estimator="relaxed")
    behind = prepared(opened, run)
    app = at(page(corpus=opened.key, run=run.id), 0.33)
    sent = parcels(app)
    assert sent["slider"]["at"] == sent["slider"]["current"]["lamb"] == 0.3
    assert "not solved" in sent["slider"]["words"] and app.button(key="answer_solve").label == "Solve λ 0.33"
    assert [point["lamb"] for point in sent["lambdas"]["points"]] == [point.answer.lamb for point in behind.solved[1]]


def test_stored_runs_of_the_same_problem_are_dragged_over_before_anything_is_solved(page, opened, store, mapped):
    along = {lamb: execute_run(store, opened.config, "R", objective="pairwise", lamb=lamb) for lamb in (0.2, 0.5, 0.8)}
    for unlike in ({"objective": "facility"}, {"select_ratio": 0.2}, {"estimator": "random"}):
        execute_run(store, opened.config, "R", **{"objective": "pairwise", "lamb": 0.6, **unlike})
    sent = parcels(page(corpus=opened.key, run=along[0.5].id))
    points = sent["lambdas"]["points"]
    assert [(point["lamb"], point["run"]) for point in points] == [(0.2, False), (0.5, True), (0.8, False)]
    for point, mask in zip(points, of_rows(sent["lambdas"], sent["ground"]["rows"]), strict=True):
        run = along[point["lamb"]]
        spot = spots.spot_of(run)
        assert np.array_equal(mask, run.rows(["selected"])["selected"].to_numpy())
        assert [meter["share"] for meter in point["meters"]] == pytest.approx([spot.quality, spot.diversity])
        assert point["gap"] == answers.proof_words(spot.gap, True)[1]
        assert point["note"] == ("" if point["run"] else "stored: R")
    assert sent["slider"]["press"] == "prepare" and "stored" in sent["slider"]["words"]
    assert live._holder().sessions == {}
    # what is solved goes between them and takes their place, but not that of the shown one
    prepared(opened, along[0.5])
    after = parcels(page(corpus=opened.key, run=along[0.5].id))["lambdas"]["points"]
    # which knows random rows and the best scores too
    own = next(point for point in after if point["run"])
    assert len(after) == 22 and {**own, "sentence": ""} == {**points[1], "sentence": ""}
    assert not any(point["note"].startswith("stored") for point in after)


def test_runs_under_one_budget_of_tokens_are_points_whatever_their_number_of_rows(page, opened, store, mapped):
    options = {"objective": "pairwise", "estimator": "relaxed"}
    along = {
        lamb: execute_run(store, opened.config, "R", lamb=lamb, budget=2000, **options) for lamb in (0.1, 0.5, 0.9)
    }
    assert len({run.status().to_dict()["summary"]["selected"] for run in along.values()}) > 1
    execute_run(store, opened.config, "R", lamb=0.7, budget=1500, **options)
    points = parcels(page(corpus=opened.key, run=along[0.5].id))["lambdas"]["points"]
    assert [(point["lamb"], point["run"]) for point in points] == [(0.1, False), (0.5, True), (0.9, False)]
    (line, other) = frontier.survey(store.list(), opened.corpus.fingerprint).lines
    assert [*line.levels] == [0.1, 0.5, 0.9] and [*other.levels] == [0.7]


def test_runs_on_all_rows_are_no_points_and_nothing_is_dragged_beside_one(page, opened, store, mapped):
    run = execute_run(store, opened.config, "R", objective="pairwise", lamb=0.5)
    every = [execute_run(store, opened.config, "R", objective="pairwise", lamb=lamb) for lamb in (0.2, 0.8)]
    for other in every:
        path = other.path / "config.json"
        record = json.loads(path.read_text())
        record["facts"]["whole"] = {"sample_rows": len(opened.corpus), "rows": 10 * len(opened.corpus)}
        path.write_text(json.dumps(record))
    sent = parcels(page(corpus=opened.key, run=run.id))
    assert [point["lamb"] for point in sent["lambdas"]["points"]] == [0.5]
    beside = parcels(page(corpus=opened.key, run=every[0].id))
    assert beside["slider"]["press"] == "" and "all rows" in beside["slider"]["words"]
    assert [(point["lamb"], point["run"]) for point in beside["lambdas"]["points"]] == [(0.2, True)]
    assert live._holder().sessions == {}


def test_it_is_prepared_unasked_where_that_takes_moments_once(page, opened, store, finished, mapped, monkeypatch):
    monkeypatch.setattr(lambda_points, "AT_ONCE", 3.0)
    run = finished(objective="pairwise")
    app = page(corpus=opened.key, run=run.id)
    (behind,) = live._holder().sessions.values()
    behind.wait(LONG)
    assert len(parcels(app.run())["lambdas"]["points"]) == len(behind.solved[1])
    # another problem took its room: what it solved stays
    behind.stop()
    live._holder().sessions.clear()
    sent = parcels(app.run())
    assert len(sent["lambdas"]["points"]) == len(behind.solved[1]) and sent["slider"]["press"] == ""
    # where that was removed, it is offered, not begun again
    kept_points.stored_points(
        opened.corpus.fingerprint, problem_of(opened, run), len(opened.corpus), store.cache_dir
    ).drop()
    assert parcels(app.run())["slider"]["press"] == "prepare" and live._holder().sessions == {}


def test_what_answers_between_kept_points_is_begun_after_the_page_is_drawn_once(
    page, opened, finished, mapped, monkeypatch
):
    run = finished(objective="pairwise")
    begin, later = lambda_slider._begin, []
    monkeypatch.setattr(lambda_slider, "_begin", lambda *given: later.append(given))
    page(corpus=opened.key, run=run.id)
    assert later == []  # nothing is kept, and looking at runs prepares nothing
    solved = prepared(opened, run).solved[1]
    live._holder().sessions.clear()
    page(corpus=opened.key, run=run.id)
    assert later == []  # it takes too long for what nobody asked for
    monkeypatch.setattr(lambda_points, "AT_ONCE", 3.0)
    app = page(corpus=opened.key, run=run.id)
    assert live._holder().sessions == {} and len(parcels(app)["lambdas"]["points"]) == len(solved)
    ((workspace, drawn),) = later
    state, again = {}, []
    with monkeypatch.context() as patch:
        patch.setattr(lambda_slider.st, "session_state", state)
        patch.setattr(lambda_slider.st, "rerun", lambda: again.append(len(live._holder().sessions)))
        begin(workspace, drawn)
        assert live._holder().sessions == {} and again == []  # this is the drawing of the page
        begin(workspace, drawn)
        (behind,) = live._holder().sessions.values()
        behind.wait(60)
        assert again == []
        begin(workspace, drawn)  # it can say what each row adds
        assert again == [1]
    assert not behind.asked and behind.alive
    # another problem took its room: it is not begun again in this session
    behind.stop()
    live._holder().sessions.clear()
    app.session_state[currently.BEGUN] = state[currently.BEGUN]
    app.run()
    assert len(later) == 1 and live._holder().sessions == {}


def test_marks_of_the_sample_and_of_its_flip(page, opened, store, mapped, monkeypatch):
    run = execute_run(store, opened.config, "R", objective="facility", estimator="relaxed", lamb=0.5)
    behind = prepared(opened, run)
    inside = np.array([point.mask for point in behind.solved[1]])
    row = int(np.flatnonzero(inside.any(axis=0) & ~inside.all(axis=0))[0])
    name = opened.corpus.ids[row].as_py()
    app = page(corpus=opened.key, run=run.id, sample=name)
    marks = parcels(app)["slider"]["marks"]
    kept = [mark for mark in marks if mark["kind"] == "sample"]
    for point in behind.solved[1]:
        reached = any(mark["low"] <= point.answer.lamb <= mark["high"] for mark in kept)
        assert reached == point.mask[row] or point.answer.lamb == 0.5
    assert not [mark for mark in marks if mark["kind"] == "flip"]
    worker().start(explanations.flip_key(run, row), lambda job: Flip((0.411, 0.4115), False, (0.4, 0.45), 3)).wait(LONG)
    marks = parcels(app.run())["slider"]["marks"]
    (flip,) = [mark for mark in marks if mark["kind"] == "flip"]
    assert flip["low"] == pytest.approx(0.41125) and name in flip["words"]


def moved(lamb, turn) -> dict:
    """What the session holds once the browser said that the slider was let go there."""
    return {"m": {"moved": {"lamb": lamb, "turn": turn}}}


def test_what_a_browser_says_is_checked(monkeypatch, opened):
    for nonsense in (7, -0.1, True, "<b>", [0.5], float("nan"), {}):
        monkeypatch.setattr(lambda_slider.st, "session_state", moved(nonsense, 1))
        lambda_slider.take("m", None)
        assert views.now().lamb is None, nonsense
    for nothing in ({}, {"m": {}}, {"m": {"moved": 0.3}}):
        monkeypatch.setattr(lambda_slider.st, "session_state", nothing)
        lambda_slider.take("m", None)
        assert views.now().lamb is None


def test_a_browser_that_has_not_heard_of_another_amount_does_not_bring_the_run_back(monkeypatch):
    monkeypatch.setattr(rail_panel.st, "session_state", {rail_panel.RUN: "a"})
    views.pose(SelectionConfig.from_options(select_ratio=0.4), "", 0.5)
    rail_panel._take_run(rail_panel.RUN, {"a", "b"}, "a")
    assert views.now().run == ""
    rail_panel._take_run(rail_panel.RUN, {"a", "b"}, "b")
    assert views.now().run == "a"


def test_a_move_is_taken_note_of_once_whether_its_callback_or_a_button_comes_first(monkeypatch, opened):
    monkeypatch.setattr(lambda_slider.st, "session_state", state := moved(0.9, 3))
    begun, workspace = [], SimpleNamespace(corpus=opened.corpus, settings="problem")
    monkeypatch.setattr(lambda_slider, "answers", lambda workspace: True)
    monkeypatch.setattr(lambda_slider.live, "session", lambda corpus, settings, cache_dir: begun.append(settings))
    lambda_slider.take("m", workspace)
    assert views.now().lamb == 0.9 and begun == ["problem"]
    views.change(lamb=None)  # another run was chosen since
    lambda_slider.take("m", workspace)
    assert views.now().lamb is None and len(begun) == 1
    state |= moved(0.25, 4)
    lambda_slider.take("m", workspace)
    state |= moved(None, 5)
    assert views.now().lamb == 0.25 and len(begun) == 2
    lambda_slider.take("m", workspace)
    assert views.now().lamb is None and len(begun) == 2
