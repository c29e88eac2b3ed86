"""What helps: an ablation that is started and stopped, a result with its sentence, picture and table."""

from __future__ import annotations

import io
import threading

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from datamask.ablation.offer import MODELS
from datamask.analyses.ablation import ablation_job, opening_panel
from datamask.config import CorpusConfig
from datamask.dashboard.data.openings import openings
from datamask.dashboard.workspace import keeping
from datamask.errors import InputError
from datamask.runs import ablation_results
from datamask.work.job import Job
from datamask.work.worker import worker
from tests.making.ablations import ROBUST, made_result
from tests.pages.reading import figure

PAGE = "pages/evidence.py"


@pytest.fixture
def ablation(monkeypatch):
    """Stands in for the computation: records its questions, reports half, and ends when it is told how."""
    import datamask.analyses.ablation.compute.kept_study as runs_ablations

    asked, go, ending = [], threading.Event(), []

    def compute(corpus, question, cache_dir, *, texts=(), examples=None, work, seeds, **options):
        asked.append((question, list(texts) if examples is None else examples))
        work.report(0.5, "selecting by Facility location λ 0")
        while not go.wait(0.02):
            work.poll()
        if ending:
            raise ending[0]
        truth = ROBUST if question.target is None else ROBUST[:, :1]
        result = made_result(
            truth, seeds=seeds, fingerprint=corpus.fingerprint, question=question, judge=question.judge
        )
        ablation_results.save(cache_dir, result)
        return result

    monkeypatch.setattr(runs_ablations, "compute", compute)
    yield asked, go, ending
    go.set()


def target(app, kind: str):
    return app.get_by_key("ablation_target").set_value(kind).run()


def other(app, kind: str):
    target(app, "other")
    return app.selectbox(key="ablation_other").set_value(kind).run()


def unfolded(app):
    """The page with all targets and numbers."""
    app.session_state["ablation_numbers"] = True
    return app.run()


def said(app) -> str:
    kinds = (app.markdown, app.caption, app.subheader, app.info, app.error)
    return " ".join(element.value for kind in kinds for element in kind).replace("\\", "")


def ended(opened) -> Job:
    job = worker().find(ablation_job.key_of(opened.corpus))
    job.wait(60)
    return job


def test_nothing_yet_then_an_ablation_and_its_result(page, opened, ablation, explained):
    asked, go, _ = ablation
    app = page(PAGE, corpus=opened.key, objective="pairwise", select_ratio="0.1")
    assert "No ablation of this corpus" in said(app) and not app.get("plotly_chart")
    explained(app, 4)
    app.button(key="ablation_start").click().run()
    assert not app.exception and app.get_by_key("ablation_stop")
    go.set()
    assert ended(opened).state == "done"
    app.run()
    ((question, texts),) = asked
    assert (question.target, question.ratio, question.seeds, texts) == (None, 0.1, 10, [])
    assert "For an unknown target, Facility location λ 0.7 is the safest" in said(app)
    assert figure(app, "ablation_intervals").data and not app.dataframe, "the grid is folded"
    drawn = figure(unfolded(app), "ablation_heat_map")
    assert np.size(drawn.data[0].z) == 12 and drawn.data[-1].text, "regrets stand in the last column"
    table = app.dataframe[0].value
    first = table.iloc[0]
    assert (first["method"], first["than random"]) == ("Facility location λ 0.7", "2 better, 0 worse")


def test_stopping_and_failing_are_said(page, opened, ablation):
    asked, go, ending = ablation
    worker().forget(ablation_job.key_of(opened.corpus))
    app = page(PAGE, corpus=opened.key)
    app.checkbox(key="ablation_masks").uncheck().run()
    app.button(key="ablation_start").click().run()
    # the menu has it too, on every page
    assert app.get_by_key(f"halt_{ablation_job.key_of(opened.corpus)}") and app.button(key="ablation_start").disabled
    app.button(key="ablation_stop").click().run()
    assert ended(opened).state == "stopped" and "masks" not in asked[0][0].methods
    app.run()
    assert "Stopped" in said(app) and "Stopped at 50" in said(app)
    ending.append(InputError("a selection has only 12 words"))
    go.set()
    app.button(key="ablation_again").click().run()
    assert ended(opened).state == "failed" and asked[0] == asked[1]
    assert "only 12 words" in said(app.run())
    app.button(key="ablation_forget").click().run()
    assert "only 12 words" not in said(app)


def test_own_texts_one_value_and_scores(page, opened, ablation):
    asked, go, _ = ablation
    go.set()
    worker().forget(ablation_job.key_of(opened.corpus))
    app = page(PAGE, corpus=opened.key)
    other(app, "texts")
    app.text_area(key="ablation_pasted_texts").set_value("one\ntwo").run()
    app.button(key="ablation_start").click().run()
    assert "at least 60" in said(app) and not asked
    # a page that is drawn again still says so; another form was not refused
    assert "at least 60" in said(app.run())
    assert "at least 60" not in said(app.number_input(key="ablation_seeds").set_value(8).run())
    app.text_area(key="ablation_pasted_texts").set_value("\n".join(f"text {i}" for i in range(80))).run()
    app.button(key="ablation_start").click().run()
    ended(opened)
    assert asked[0][0].target.kind == "texts" and len(asked[0][1]) == 80 and asked[0][0].seeds == 8
    app.run()
    assert "is better than the best simple baseline" in said(app) and figure(app, "ablation_intervals").data
    other(app, "column")
    app.selectbox(key="ablation_column").set_value("source").run()
    app.selectbox(key="ablation_value_source").set_value("books").run()
    app.button(key="ablation_start").click().run()
    ended(opened)
    assert (asked[1][0].target.column, asked[1][0].target.value) == ("source", "books")
    other(app, "score")
    assert "no second number column" in said(app) and app.button(key="ablation_start").disabled
    target(app, "several")
    app.selectbox(key="ablation_label").set_value("source").run()
    app.button(key="ablation_start").click().run()
    ended(opened)
    assert (asked[2][0].target, asked[2][0].label) == (None, "source")


def test_examples_that_score_rows(page, opened, ablation, explained):
    asked, go, _ = ablation
    go.set()
    worker().forget(ablation_job.key_of(opened.corpus))
    app = page(PAGE, corpus=opened.key)
    target(app, "examples")
    assert "One half scores the rows" in said(app)
    explained(app, 5)
    app.text_area(key="ablation_pasted_ids").set_value("no such id").run()
    app.button(key="ablation_start").click().run()
    assert "1 of its 1 ids are not in the corpus" in said(app) and "your list" in said(app) and not asked
    ids = opened.corpus.ids.to_pylist()
    app.text_area(key="ablation_pasted_ids").set_value("\n".join(map(str, ids[:120]))).run()
    app.button(key="ablation_start").click().run()
    assert ended(opened).state == "done"
    question, examples = asked[0]
    assert question.target.kind == "ids" and len(examples) + examples.repeated == 120
    app.get_by_key("ablation_source").set_value("features").run()
    table = pa.table({opened.corpus.provenance.columns["feature"]: opened.corpus.features[:130].tolist()})
    sink = io.BytesIO()
    pq.write_table(table, sink)
    app.file_uploader(key="ablation_files_features").upload("liked.parquet", sink.getvalue()).run()
    app.button(key="ablation_start").click().run()
    assert ended(opened).state == "done"
    question, examples = asked[1]
    assert (question.target.kind, question.target.name, examples.texts) == ("features", "liked.parquet", None)


def test_a_corpus_without_texts_is_judged_by_its_features(page, opened, runs_dir, tmp_path, ablation):
    asked, go, _ = ablation
    go.set()
    bare = tmp_path / "bare.parquet"
    # other rows too: what is remembered goes by the rows
    pq.write_table(pq.read_table(tmp_path / "shard.parquet").drop_columns(["text"]).slice(0, 200), bare)
    opening = openings(runs_dir).start(CorpusConfig((str(bare),)), "bare")
    opening.wait(60)
    # a session that comes from a corpus with texts remembers what only that one has
    app = page(PAGE, corpus=opened.key)
    other(app, "texts")
    app.query_params["corpus"] = opening.key
    app.run()
    assert not app.exception and "This corpus has no texts" in said(app)
    assert "My own texts" not in app.selectbox(key="ablation_other_without_texts").options
    target(app, "examples")
    source = app.get_by_key("ablation_source_without_texts")
    assert [option.content for option in source.proto.options] == ["ids of rows", "features"]
    app.text_area(key="ablation_pasted_ids").set_value("\n".join(f"doc-{row:04d}" for row in range(120))).run()
    app.button(key="ablation_start").click().run()
    assert not app.exception, app.exception[0].message
    assert ended(opening).state == "done"
    ((question, examples),) = asked
    assert question.target.kind == "ids" and len(examples) == 120


def test_start_waits_for_texts_that_are_not_there_yet(page, opened, ablation):
    asked, go, _ = ablation
    go.set()
    lines, waiting = "\n".join(f"text {i}" for i in range(80)), "Waiting for your texts"
    worker().forget(ablation_job.key_of(opened.corpus))  # other tests have worked on this corpus

    def pressed():
        other(app, "texts")
        app.button(key="ablation_start").click().run()
        assert waiting in said(app) and waiting in said(app.run()) and not asked

    app = page(PAGE, corpus=opened.key)
    pressed()
    app.button(key="ablation_not").click().run()
    assert waiting not in said(app)
    # what was pressed for other texts starts nothing
    pressed()
    target(app, "random")
    other(app, "texts")
    assert waiting not in said(app)
    app.text_area(key="ablation_pasted_texts").set_value(lines).run()
    assert worker().find(ablation_job.key_of(opened.corpus)) is None
    app.text_area(key="ablation_pasted_texts").set_value("").run()
    pressed()
    app.text_area(key="ablation_pasted_texts").set_value(lines).run()
    assert ended(opened).state == "done" and len(asked) == 1 and len(asked[0][1]) == 80
    # once: not again with every drawing
    worker().forget(ablation_job.key_of(opened.corpus))
    app.run()
    assert worker().find(ablation_job.key_of(opened.corpus)) is None


def test_a_provisional_result_recommends_nothing(page, opened, store):
    result = made_result(ROBUST, seeds=3, fingerprint=opened.corpus.fingerprint)
    ablation_results.save(store.cache_dir, result)
    app = page(PAGE, corpus=opened.key, answer=result.question.key)
    assert "Provisional: 3 of 10 seeds are done" in said(app) and "For an unknown target" not in said(app)
    assert not any(
        "better" in str(text) or "+" in str(text)
        for row in figure(unfolded(app), "ablation_heat_map").data[0].text
        for text in row
    )
    assert not [button for button in app.button if button.key == "ablation_confirm"]


def test_the_second_proxy_model_says_its_minutes_first_and_confirms(page, opened, store, ablation, monkeypatch):
    import datamask.analyses.ablation.compute.kept_study as runs_ablations

    asked, go, _ = ablation
    go.set()
    worker().forget(ablation_job.key_of(opened.corpus))
    result = made_result(ROBUST, fingerprint=opened.corpus.fingerprint)
    ablation_results.save(store.cache_dir, result)
    monkeypatch.setattr(runs_ablations, "plan_confirmation", lambda result: (result.question.by(MODELS[1]), 14.2))
    app = page(PAGE, corpus=opened.key, answer=result.question.key)
    assert "Only one proxy model has run" in said(app)
    app.button(key="ablation_confirm").click().run()
    assert "about 14 min" in said(app) and not asked
    app.button(key="ablation_confirm_start").click().run()
    assert ended(opened).state == "done" and asked[0][0].judge == MODELS[1]
    app.run()
    assert "ranks the methods alike: rank correlation" in said(app) and "For an unknown target" in said(app)
    assert app.query_params["answer"] == result.question.key


@pytest.fixture
def kept(opened, store):
    """A result on the open corpus."""
    result = made_result(ROBUST, fingerprint=opened.corpus.fingerprint, n=len(opened.corpus), rows=100)
    assert ablation_results.save(store.cache_dir, result)
    return result


@pytest.fixture
def switched(monkeypatch):
    """Where a page was left to: script and address. AppTest would draw the Map."""
    left = []

    def switch(script, *, query_params):
        left.append((script, dict(query_params)))
        opening_panel.st.stop()

    monkeypatch.setattr(opening_panel.st, "switch_page", switch)
    return left


def test_a_pressed_cell_opens_the_stored_run_of_its_method(page, opened, finished, kept, switched):
    finished(objective="pairwise", lamb=0.7)
    run = finished(objective="facility", lamb=0.7)
    app = page(PAGE, corpus=opened.key)
    app.session_state[opening_panel.ASKED] = ("facility-0.7", False)
    app.run()
    assert switched == [("app.py", {"corpus": opened.key, "run": run.id})]


def test_a_lambda_without_a_run_is_posed_and_solved_where_nothing_else_does(
    page, opened, store, kept, switched, begun, monkeypatch
):
    app = page(PAGE, corpus=opened.key)
    # by the menu, as without a pointer
    unfolded(app).selectbox(key=opening_panel.MENU).set_value("facility-0.7").run()
    ((script, link),) = switched
    assert script == "app.py" and link == {"corpus": opened.key, "objective": "facility", "lambda": "0.7"} and not begun
    monkeypatch.setattr(opening_panel.lambda_points, "refusal", lambda settings: "it takes a run")
    app.session_state[opening_panel.ASKED] = ("facility-0.7", False)
    app.run()
    assert [(asked.objective, asked.lamb, asked.select_ratio) for asked in begun] == [("facility", 0.7, 0.3)]


def test_after_a_result_comes_what_to_do(page, opened, store, kept, switched):
    app = page(PAGE, corpus=opened.key)
    assert "Bring more rows" in {link.proto.label for link in app.get("page_link")}
    app.button(key="ablation_show_examples").click().run()
    assert "One half scores the rows" in said(app)
    safest = kept.safest.method
    button = app.button(key="ablation_take")
    assert button.label.replace("\u00a0", " ").replace("\\", "") == f"Take {safest.label} at 30 %"
    assert f"at most {kept.safest.regret:.3f} nats per word behind" in said(app)
    button.click().run()
    ((script, link),) = switched
    assert script == "app.py" and link["lambda"] == f"{safest.lamb:g}"


def test_a_simple_baseline_is_offered_as_a_run(page, opened, store, kept, switched, begun):
    app = page(PAGE, corpus=opened.key)
    app.session_state[opening_panel.ASKED] = ("top-quality", False)
    app.run()
    assert not switched and not begun
    app.button(key="ablation_run_method").click().run()
    assert [(settings.estimator, settings.select_ratio) for settings in begun] == [("top-quality", 0.3)]


@pytest.fixture
def begun(monkeypatch, opened, finished):
    """The settings of the runs that were started."""
    settings_begun = []

    def begin(opened, settings, name="", continued=()):
        settings_begun.append(settings)
        return finished(estimator="soft-quality")

    monkeypatch.setattr(keeping, "begin", begin)
    return settings_begun
