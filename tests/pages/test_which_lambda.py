"""Which lambda: what is needed, a search that is started and stopped, an answer with its sentence and charts."""

from __future__ import annotations

import io
import threading

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from datamask.config import CorpusConfig
from datamask.dashboard.analyses.which_lambda import lambda_search as lambdas
from datamask.dashboard.data.openings import openings
from datamask.errors import InputError, Stopped
from datamask.runs import lambda_answers
from datamask.work.job import Job
from datamask.work.worker import worker
from tests.dashboard.made_answers import curve, made_answer
from tests.pages.reading import figure

PAGE = "pages/evidence.py"


@pytest.fixture
def search(monkeypatch):
    """Stands in for the search: records its questions, reports half, and ends when it is told how."""
    import datamask.runs.lambdas as runs_lambdas

    asked, go, ending = [], threading.Event(), []

    def answer(corpus, question, cache_dir, *, texts=(), examples=None, progress, should_stop, **options):
        asked.append((question, list(texts) if examples is None else examples))
        progress(0.5, "selecting by facility at lambda 0")
        while not go.wait(0.02):
            if should_stop():
                raise Stopped("stopped")
        if ending:
            raise ending[0]
        found = {**made_answer(corpus.fingerprint), "key": question.key}
        lambda_answers.save(cache_dir, found)
        return found

    monkeypatch.setattr(runs_lambdas, "answer", answer)
    yield asked, go, ending
    go.set()


def said(app) -> str:
    return " ".join(
        element.value for kind in (app.markdown, app.caption, app.subheader, app.info, app.error) for element in kind
    )


def ended(opened) -> Job:
    job = worker().find(lambdas.key_of(opened.corpus))
    job.wait(60)
    return job


def test_a_corpus_without_texts_is_judged_by_samples_that_one_cares_about(page, opened, runs_dir, tmp_path, search):
    asked, go, _ = search
    go.set()
    bare = tmp_path / "bare.parquet"
    # other rows too: what is remembered goes by the rows
    pq.write_table(pq.read_table(tmp_path / "shard.parquet").drop_columns(["text"]).slice(0, 200), bare)
    opening = openings(runs_dir).start(CorpusConfig((str(bare),)), "bare")
    opening.wait(60)
    # whoever comes from a corpus with texts brings what only that one has
    app = page(PAGE, corpus=opened.key)
    app.selectbox(key="lambda_target").set_value("examples").run()
    app.get_by_key("lambda_source").set_value("examples").run()
    app.query_params["corpus"] = opening.key
    app.run()
    assert not app.exception and "This corpus has no texts" in said(app)
    assert not [menu for menu in app.selectbox if menu.key == "lambda_target"]
    source = app.get_by_key("lambda_source_without_texts")
    assert [option.content for option in source.proto.options] == ["ids of samples", "features"]
    assert "the other half tells which selection comes nearest" in said(app)
    names = [f"doc-{row:04d}" for row in range(120)]
    app.text_area(key="lambda_pasted_ids").set_value("\n".join(names)).run()
    app.button(key="lambda_start").click().run()
    assert not app.exception, app.exception[0].message
    assert ended(opening).state == "done"
    ((question, examples),) = asked
    assert question.target.kind == "ids" and len(examples) == 120
    assert "Facility location helps" in said(app.run())


def test_nothing_yet_then_a_search_and_its_answer(page, opened, search, explained):
    asked, go, _ = search
    app = page(PAGE, corpus=opened.key)
    assert "No lambda has been tried" in said(app) and not app.get("plotly_chart")
    explained(app, 5)
    app.button(key="lambda_start").click().run()
    assert not app.exception and app.get_by_key("lambda_stop")
    go.set()
    assert ended(opened).state == "done"
    app.run()
    ((question, texts),) = asked
    assert question.objectives == ("facility", "pairwise") and question.ratios == (0.1,) and texts == []
    assert "Facility location helps" in said(app) and len(app.get("plotly_chart")) == 2
    assert app.dataframe[0].value["selection"].tolist()[0] == "Facility location, λ 0"


def test_stopping_and_failing_are_said(page, opened, search):
    asked, go, ending = search
    app = page(PAGE, corpus=opened.key)
    app.button(key="lambda_start").click().run()
    # the menu has it too, on every page
    assert app.get_by_key(f"halt_{lambdas.key_of(opened.corpus)}") and app.button(key="lambda_start").disabled
    app.button(key="lambda_stop").click().run()
    assert ended(opened).state == "stopped"
    app.run()
    assert "Stopped" in said(app) and "At 50" in said(app) and "No lambda has been tried" not in said(app)
    ending.append(InputError("a selection has only 12 words"))
    go.set()
    app.button(key="lambda_again").click().run()
    assert ended(opened).state == "failed" and asked[0] == asked[1]
    assert "only 12 words" in said(app.run())
    app.button(key="lambda_forget").click().run()
    assert "only 12 words" not in said(app) and "No lambda has been tried" in said(app)


def test_own_texts_and_one_kind(page, opened, search):
    asked, go, _ = search
    go.set()
    app = page(PAGE, corpus=opened.key)
    app.selectbox(key="lambda_target").set_value("texts").run()
    app.text_area(key="lambda_pasted").set_value("one\ntwo").run()
    app.button(key="lambda_start").click().run()
    assert "at least 60" in said(app) and not asked
    # a page that is drawn anew, for whatever reason, still says so; another form was not refused
    assert "at least 60" in said(app.run()) and "at least 60" not in said(
        app.pills(key="lambda_ratios").set_value([0.3]).run()
    )
    assert "at least 60" in said(app.pills(key="lambda_ratios").set_value([0.1]).run())
    app.text_area(key="lambda_pasted").set_value("\n".join(f"text {i}" for i in range(80))).run()
    app.button(key="lambda_start").click().run()
    ended(opened)
    assert asked[0][0].target.kind == "texts" and len(asked[0][1]) == 80
    app.selectbox(key="lambda_target").set_value("column").run()
    app.selectbox(key="lambda_column").set_value("source").run()
    app.selectbox(key="lambda_value_source").set_value("books").run()
    app.button(key="lambda_start").click().run()
    ended(opened)
    assert (asked[1][0].target.column, asked[1][0].target.value) == ("source", "books")


def test_examples_that_steer(page, opened, search, explained):
    asked, go, _ = search
    go.set()
    worker().forget(lambdas.key_of(opened.corpus))
    app = page(PAGE, corpus=opened.key)
    app.selectbox(key="lambda_target").set_value("examples").run()
    assert "Half give the quality to select by" in said(app)
    explained(app, 5)
    app.text_area(key="lambda_pasted_ids").set_value("no such id").run()
    app.button(key="lambda_start").click().run()
    assert "1 of its 1 ids are not in the corpus" in said(app) and "your list" in said(app) and not asked
    ids = opened.corpus.ids.to_pylist()
    app.text_area(key="lambda_pasted_ids").set_value("\n".join(map(str, ids[:120]))).run()
    app.button(key="lambda_start").click().run()
    assert ended(opened).state == "done"
    question, examples = asked[0]
    assert question.target.kind == "ids" and len(examples) + examples.repeated == 120
    app.get_by_key("lambda_source").set_value("features").run()
    table = pa.table({opened.corpus.provenance.columns["feature"]: opened.corpus.features[:130].tolist()})
    sink = io.BytesIO()
    pq.write_table(table, sink)
    app.file_uploader(key="lambda_examples_features").upload("liked.parquet", sink.getvalue()).run()
    app.button(key="lambda_start").click().run()
    assert ended(opened).state == "done"
    question, examples = asked[1]
    assert (question.target.kind, question.target.name, examples.texts) == ("features", "liked.parquet", None)


def test_the_learner_is_chosen(page, opened, search):
    asked, go, _ = search
    go.set()
    worker().forget(lambdas.key_of(opened.corpus))
    app = page(PAGE, corpus=opened.key)
    app.get_by_key("lambda_judge").set_value("transformer").run()
    app.button(key="lambda_start").click().run()
    assert ended(opened).state == "done" and asked[0][0].judge == "transformer"


def test_start_waits_for_texts_that_are_not_there_yet(page, opened, search):
    asked, go, _ = search
    go.set()
    lines, waiting = "\n".join(f"text {i}" for i in range(80)), "not here yet"
    worker().forget(lambdas.key_of(opened.corpus))  # other tests have searched on this corpus

    def pressed():
        app.selectbox(key="lambda_target").set_value("texts").run()
        app.button(key="lambda_start").click().run()
        assert waiting in said(app) and waiting in said(app.run()) and not asked

    app = page(PAGE, corpus=opened.key)
    pressed()
    app.button(key="lambda_not").click().run()
    assert waiting not in said(app)
    # what was pressed for other texts starts nothing
    pressed()
    app.selectbox(key="lambda_target").set_value("random").run()
    app.selectbox(key="lambda_target").set_value("texts").run()
    assert waiting not in said(app)
    app.text_area(key="lambda_pasted").set_value(lines).run()
    assert worker().find(lambdas.key_of(opened.corpus)) is None
    app.text_area(key="lambda_pasted").set_value("").run()
    pressed()
    app.text_area(key="lambda_pasted").set_value(lines).run()
    assert ended(opened).state == "done" and len(asked) == 1 and len(asked[0][1]) == 80
    # once: not again with every drawing
    worker().forget(lambdas.key_of(opened.corpus))
    app.run()
    assert worker().find(lambdas.key_of(opened.corpus)) is None


def words_in(app) -> str:
    """What is written in the picture of the main measure."""
    return " ".join(label.text for label in figure(app, "lambda_band").layout.annotations)


def test_a_stored_answer_is_there_after_a_reload(page, opened, store):
    print_ = opened.corpus.fingerprint
    first = made_answer(print_, created=1.0)
    second = made_answer(print_, curve("pairwise", (0.5, 0.5, 0.4, 0.2), best=3), created=2.0)
    for answer in (first, second):
        lambda_answers.save(store.cache_dir, answer)
    assert "Nothing tried here helps" in said(page(PAGE, corpus=opened.key))
    app = page(PAGE, corpus=opened.key, answer=first["key"])
    assert "Facility location helps" in said(app) and "equally many" in said(app)
    assert "recommended" in words_in(app) and "Pair-wise similarity: +0.40 to +0.50" in words_in(app)
    app.get_by_key("lambda_near").set_value("everything").run()
    assert not app.exception and "+0.40 to" not in words_in(app)
