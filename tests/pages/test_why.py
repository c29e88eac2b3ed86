"""Why (not) this sample: the page's bars are the package's own numbers, and a flip is where solving again flips."""

from __future__ import annotations

import time

import numpy as np
import pandas as pd
import pytest

from datamask.analyses.explanation import explanations, tables
from datamask.analyses.explanation.compute.explained_run import explainer_of
from datamask.config import Quota
from datamask.dashboard.shell import ordering
from datamask.work.worker import worker
from tests.making.runs import execute_run
from tests.pages.reading import strip, waterfall

PATIENCE = 240


def waited(app, prefix):
    """The page once the job whose key begins like that has ended."""
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        found = [job for key, job in worker()._jobs.items() if key.startswith(prefix)]
        if found and all(job.ended for job in found):
            app.run()
            assert not app.exception, app.exception[0].message
            return app, found[-1]
        time.sleep(0.05)
    raise AssertionError(f"no job {prefix} ended")


@pytest.fixture
def pairwise(store, opened):
    return [
        execute_run(store, opened.config, objective="pairwise", estimator="relaxed", lamb=lamb)
        for lamb in (0.1, 0.5, 0.9)
    ]


def test_the_waterfall_is_the_explainers_and_its_flip_is_found_by_solving_again(page, opened, store, mapped, pairwise):
    run = pairwise[1]
    told = explainer_of(run)
    flipping = np.flatnonzero(pairwise[0].rows()["selected"].to_numpy() != pairwise[2].rows()["selected"].to_numpy())
    row = int(flipping[0])
    one = told.explain([row])[0]
    app = page(corpus=opened.key, run=run.id, sample=one.id)
    app, job = waited(app, f"why {run.path} {row} ")
    bars = tables.waterfall(job.result)
    assert list(bars["amount"].iloc[:-1] * told.sd) == pytest.approx([part.value for part in one.parts], abs=1e-9)
    assert bars["end"].iloc[-1] * told.sd == pytest.approx(one.score - one.threshold, abs=1e-9)
    assert bars["end"].iloc[-2] == pytest.approx(bars["end"].iloc[-1], abs=1e-9)
    drawn = waterfall(app)
    assert list(drawn["part"]) == list(bars["part"])
    assert drawn[["amount", "end"]].to_numpy() == pytest.approx(bars[["amount", "end"]].to_numpy(), abs=5.1e-4)
    assert any(one.sentence.split(":")[0] in text.value for text in app.markdown)
    inside = [bool(other.rows()["selected"][row].as_py()) for other in pairwise]
    assert strip(app) == ([0.1, 0.5, 0.9], inside, [0.5])

    app.button(key="flip").click().run()
    app, job = waited(app, f"flip {run.path} {row}")
    assert job.state == "done", job.error
    found = job.result
    assert found.between in ((0.1, 0.5), (0.5, 0.9))
    again = [
        execute_run(store, opened.config, objective="pairwise", estimator="relaxed", lamb=lamb) for lamb in found.around
    ]
    assert found.around[1] - found.around[0] <= 1e-3
    assert [other.rows()["selected"][row].as_py() for other in again] == [found.below, not found.below]
    assert any(f"λ **{found.lamb:.3f}**" in text.value for text in app.markdown)


def test_facility_names_the_samples_behind_its_part(page, opened, store, mapped):
    run = execute_run(store, opened.config, objective="facility", n_epochs=10, collapse="exact")
    told = explainer_of(run)
    row = int(np.flatnonzero(told.mask)[0])
    one = told.explain([row])[0]
    app = page(corpus=opened.key, run=run.id, sample=one.id)
    app, _ = waited(app, f"why {run.path} {row} ")
    witnesses = [element.value for element in app.dataframe if "adds" in element.value]
    assert len(witnesses) == bool(one.witnesses["facility"])
    for table in witnesses:
        assert list(table["cosine"]) == pytest.approx([w.similarity for w in one.witnesses["facility"]])
        assert [name.split(":")[0] for name in table["row"]] == [
            opened.corpus.ids[w.row].as_py() for w in one.witnesses["facility"]
        ]
    assert any("No other run is stored" in caption.value for caption in app.caption)


def test_a_baseline_says_that_it_did_not_look_at_these_scores(page, opened, store, mapped):
    run = execute_run(store, opened.config, objective="pairwise", estimator="top-quality")
    app = page(corpus=opened.key, run=run.id, sample="doc-0003")
    app, job = waited(app, f"why {run.path} 3 ")
    assert job.state == "done" and any("did not select by" in one.value for one in app.caption)
    assert not [button for button in app.button if button.key == "flip"]


def test_a_run_on_rows_that_changed_says_why_it_cannot_be_explained(page, opened, store, mapped):
    run = execute_run(store, opened.config, objective="pairwise", estimator="top-quality")
    with run.writer() as writer:
        writer.update_facts(fingerprint="0" * 64)
    job = explanations.ask(run, 3, [run])
    job.wait(PATIENCE)
    assert job.state == "failed" and "has changed since" in job.error


def test_the_rows_closest_to_the_cut_can_be_listed_first(page, opened, finished, mapped, pairwise):
    run = pairwise[1]
    told = explainer_of(run)
    far = pd.Series(np.abs(told.score - told.threshold), opened.corpus.ids.to_pylist())
    app = page(corpus=opened.key, run=run.id)
    app.selectbox(key="explore_map_order").set_value(ordering.CLOSEST).run()
    listed = app.dataframe[0].value["chunk_id"]
    assert listed.is_unique and far[listed].to_numpy() == pytest.approx(far.nsmallest(100).to_numpy(), rel=1e-4)
    # with a quota there are several cuts, and the list goes back to its first order
    ruled = finished(quotas=(Quota.parse("source=web:0:0.5"),))
    app.query_params["run"] = ruled.id
    order = app.run().selectbox(key="explore_map_order")
    assert not app.exception and ordering.CLOSEST not in order.options and order.value == ordering.BEST
    assert app.dataframe[0].value["quality"].is_monotonic_decreasing
