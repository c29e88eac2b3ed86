"""Evidence next to the lambda slider: what the map is sent, the target, a baseline as a run, what is not measured."""

from __future__ import annotations

import threading
from dataclasses import replace

import numpy as np

from datamask.ablation.steering import track
from datamask.analyses.ablation import ablation_job
from datamask.analyses.lambda_slider import evidence_panel
from datamask.dashboard.workspace import keeping
from datamask.errors import Stopped
from datamask.runs import ablation_results
from datamask.work.worker import worker
from tests.making.ablations import ROBUST, made_result
from tests.making.runs import finish_run
from tests.pages.reading import parcels

SIMPLE_WINS = np.array([[5.0, 5.0, 5.0], [4.5, 4.5, 4.5], [5.2, 5.1, 5.1], [4.8, 4.9, 4.9]])


def keep(opened, store, truth=ROBUST, second: bool = True):
    """Store a result on the corpus, and the second proxy model's."""
    result = made_result(truth, fingerprint=opened.corpus.fingerprint, n=len(opened.corpus), rows=100)
    assert ablation_results.save(store.cache_dir, result)
    if second:
        model = replace(
            result, losses=result.losses[:3], judge="transformer", question=result.question.by("transformer")
        )
        assert ablation_results.save(store.cache_dir, model)
    return result


def shown_run(opened, store, **settings):
    """A finished run of facility location at ratio 0.3."""
    return finish_run(store, opened.corpus, opened.config, opened.corpus.quality, objective="facility", **settings)


def test_the_track_is_sent_as_the_stored_result_has_it(page, opened, store, mapped):
    result, run = keep(opened, store), shown_run(opened, store)
    app = page(corpus=opened.key, run=run.id)
    sent = parcels(app)["slider"]["evidence"]
    expected = track(ablation_results.results(store.cache_dir, opened.corpus.fingerprint), "facility", 0.3)
    assert sent["state"] == expected.state == "colored" and sent["reason"] == expected.reason
    assert [(mark["lamb"], mark["verdict"]) for mark in sent["points"]] == [
        (point.lamb, point.verdict) for point in expected.points
    ]
    assert sent["offer"] == result.recommendation.method.lamb
    # an offer, never the state
    assert parcels(app)["slider"]["at"] == run.config.selection.lamb != sent["offer"]
    app.selectbox(key=evidence_panel.TARGET).set_value("t2").run()
    about_one = parcels(app)["slider"]["evidence"]
    assert [mark["verdict"] for mark in about_one["points"]] == ["worse", "level"] and about_one["offer"] is None


def test_next_to_learned_masks_the_track_says_that_it_compares_solved_selections(page, opened, store, mapped):
    keep(opened, store)
    run = shown_run(opened, store, estimator="counterfactual", lamb=0.7)
    reason = parcels(page(corpus=opened.key, run=run.id))["slider"]["evidence"]["reason"]
    said = "The ablation did not test this run's method, learned masks. At λ 0.7, a selection by Solve is "
    assert reason.startswith(said)


def test_another_ratio_leaves_it_dashed_and_offers_to_find_out(page, opened, store, mapped):
    keep(opened, store)
    run = shown_run(opened, store, select_ratio=0.1)
    app = page(corpus=opened.key, run=run.id)
    sent = parcels(app)["slider"]["evidence"]
    assert sent["state"] == "dashed" and len(sent["points"]) == 2 and sent["offer"] is None
    assert app.button(key="evidence_find_out").label.startswith("Find out for this selection (about")


def test_the_best_simple_baseline_is_offered_as_a_run_of_equal_size(page, opened, store, mapped, monkeypatch):
    keep(opened, store, SIMPLE_WINS, second=False)
    run = shown_run(opened, store)
    app = page(corpus=opened.key, run=run.id)
    assert "No tried λ beats the best simple baseline" in parcels(app)["slider"]["evidence"]["sentences"][0]
    begun = []

    def begin(opened, settings, name="", continued=()):
        begun.append(settings)
        return shown_run(opened, store, estimator="top-quality", name="T")

    monkeypatch.setattr(keeping, "begin", begin)
    app.button(key="evidence_run_top-quality").click().run()
    assert not app.exception
    (settings,) = begun
    assert (settings.estimator, settings.select_ratio, settings.collapse) == ("top-quality", 0.3, "none")
    # the map goes to the run once it has ended; a second press finds it
    assert app.query_params["run"] != run.id
    app.query_params["run"] = run.id
    app.run()
    app.button(key="evidence_run_top-quality").click().run()
    assert len(begun) == 1 and app.query_params["run"] != run.id


def test_what_is_not_measured_is_found_out_by_one_button(page, opened, store, mapped, monkeypatch):
    import datamask.analyses.ablation.compute.kept_study as runs_ablations

    asked, go = [], threading.Event()

    def compute(corpus, question, cache_dir, *, work, **options):
        asked.append(question)
        while not go.wait(0.02):
            work.poll()
        raise Stopped("stopped")

    monkeypatch.setattr(runs_ablations, "compute", compute)
    worker().forget(ablation_job.key_of(opened.corpus))
    run = shown_run(opened, store, select_ratio=0.1)
    app = page(corpus=opened.key, run=run.id)
    assert parcels(app)["slider"]["evidence"]["points"] == []
    button = app.button(key="evidence_find_out")
    assert button.label.startswith("Find out what helps (about")
    button.click().run()
    job = worker().find(ablation_job.key_of(opened.corpus))
    try:
        assert not [button for button in app.button if button.key == "evidence_find_out"], "it is under way"
    finally:
        go.set()
        job.wait(60)
        worker().forget(job.key)
    (question,) = asked
    assert (question.ratio, question.target) == (0.1, None)
    assert "facility" in question.objectives


def test_a_lambda_below_random_is_said_on_the_track_in_the_table_and_next_to_solve(page, opened, store, mapped):
    low = shown_run(opened, store, lamb=0.9, shares={"diversity": -0.125}, name="low")
    shown_run(opened, store, lamb=0.2, name="high")
    app = page(corpus=opened.key, run=low.id)
    (below,) = [mark for mark in parcels(app)["slider"]["marks"] if mark["kind"] == "below"]
    assert (below["low"], below["high"]) == (0.9, 0.9) and "λ 0.9: diversity is −12.5" in below["words"]
    said = "At λ 0.9, diversity is below a random selection"
    assert any(said in caption.value for caption in app.caption)
    runs = page("pages/runs.py", corpus=opened.key, run=low.id)
    table = runs.dataframe[0].value
    assert table.set_index("name")["below"].dropna().to_dict() == {"low": "diversity"}
    # the form starts at this lambda: the next run would be so too
    assert any(said in caption.value for caption in runs.caption)
    runs.slider(key="form_lamb").set_value(0.5).run()
    assert not runs.exception and not any(said in caption.value for caption in runs.caption)
    # without such a run the column is not drawn
    store.discard(low.id)
    assert "below" not in page("pages/runs.py", corpus=opened.key).dataframe[0].value
