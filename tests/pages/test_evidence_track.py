"""Evidence on the Map: marks on the slider, the link, and what is below random."""

from __future__ import annotations

from datamask.ablation.offer import offer
from datamask.runs import ablation_results
from tests.making.ablations import ROBUST, made_result
from tests.making.runs import finish_run
from tests.pages.reading import answer, parcels


def keep(opened, store):
    """Store a result on the corpus."""
    result = made_result(ROBUST, fingerprint=opened.corpus.fingerprint, n=len(opened.corpus), rows=100)
    assert ablation_results.save(store.cache_dir, result)
    return result


def shown_run(opened, store, **settings):
    """A finished run of facility location at ratio 0.3."""
    return finish_run(store, opened.corpus, opened.config, opened.corpus.quality, objective="facility", **settings)


def link_to(app):
    """The link to Evidence that says what was found."""
    (link,) = [link.proto for link in app.get("page_link") if said(link.proto).startswith("Evidence: ")]
    return link


def said(link) -> str:
    return link.label.replace("\\", "")


def test_the_map_has_marks_where_something_is_better_or_worse_and_a_link(page, opened, store, mapped):
    result, run = keep(opened, store), shown_run(opened, store)
    app = page(corpus=opened.key, run=run.id)
    expected = offer(ablation_results.results(store.cache_dir, opened.corpus.fingerprint), run.config.selection)
    sent = parcels(app)["slider"]["tried"]
    assert [(mark["lamb"], mark["verdict"]) for mark in sent] == [(0.0, "worse"), (0.7, "better")]
    assert [mark["words"] for mark in sent] == [f"λ {point.lamb:g}: {point.words}" for point in expected.apart]
    link = link_to(app)
    assert said(link) == expected.sentence and f"answer={result.question.key}" in link.query_string


def test_of_another_ratio_there_is_no_mark(page, opened, store, mapped):
    keep(opened, store)
    run = shown_run(opened, store, select_ratio=0.1)
    app = page(corpus=opened.key, run=run.id)
    assert parcels(app)["slider"]["tried"] == []
    assert "select ratio 0.3, and the current one is 0.1" in said(link_to(app))


def test_a_lambda_below_random_is_said_in_the_bar_in_the_table_and_next_to_solve(page, opened, store, mapped):
    low = shown_run(opened, store, lamb=0.9, shares={"diversity": -0.125}, name="low")
    shown_run(opened, store, lamb=0.2, name="high")
    app = page(corpus=opened.key, run=low.id)
    assert answer(app)["answer"]["meters"][1]["share"] == -0.125
    said = "At λ 0.9, diversity is below a random selection"
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
