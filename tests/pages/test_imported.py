"""An imported list of ids on the pages: shown and compared like a learned selection, no estimator of its own."""

from __future__ import annotations

import os

import numpy as np
import pytest

from datamask import catalogue
from datamask.config import RunConfig, SelectionConfig
from datamask.runs.imports import import_ids
from tests.making.runs import execute_run
from tests.pages.reading import compared_runs, runs_table


@pytest.fixture
def imported(opened, store, tmp_path, monkeypatch):
    """A third of the open corpus, by every third id."""
    monkeypatch.setattr(os, "cpu_count", lambda: 1)
    path = tmp_path / "theirs.txt"
    path.write_text("\n".join(map(str, opened.corpus.ids.to_pylist()[::3])))
    selection = SelectionConfig(objective="pairwise", lamb=0.25, device="cpu", estimator="imported")
    return import_ids(store, RunConfig(opened.config, selection, ids=str(path)))


def test_it_is_shown_like_any_run(page, opened, imported):
    app = page("pages/runs.py", corpus=opened.key, run=imported.id)
    assert runs_table(app)[["quality", "diversity"]].notna().all(axis=None)
    text = " ".join(element.value for element in (*app.markdown, *app.caption, *app.subheader, *app.code))
    assert catalogue.IMPORTED.label in text


def test_its_settings_leave_the_forms_estimator_alone(page, opened, imported):
    app = page("pages/runs.py", corpus=opened.key, run=imported.id)
    app.button(key="use_settings").click().run()
    assert not app.exception
    values = {element.key: element.value for element in (*app.selectbox, *app.slider)}
    assert values["form_estimator"] == catalogue.AUTO
    assert (values["form_objective"], values["form_lamb"]) == ("pairwise", 0.25)


def test_it_compares_with_a_selected_run(page, opened, store, imported):
    options = {"objective": "pairwise", "lamb": 0.25, "select_ratio": imported.config.selection.select_ratio}
    other = execute_run(store, opened.config, "greedy", estimator="greedy", **options)
    app = page("pages/compare.py", corpus=opened.key, run=other.id)
    table = compared_runs(app)
    assert table[""].tolist() == ["A · theirs", "B · greedy"]
    a, b = (set(np.flatnonzero(run.rows()["selected"])) for run in (imported, other))
    assert table["Overlap"][1].startswith(f"{100 * len(a & b) / len(a | b):.0f} % (")
    assert table["What differs"].tolist() == ["Method imported", "Method greedy"]
    app = page("pages/evidence.py", evidence_tab="Stability", corpus=opened.key, runs=f"{imported.id},{other.id}")
    assert any("imported ids" in caption.value for caption in app.caption)
    assert not [button for button in app.button if button.key == "measure_agreement"]
