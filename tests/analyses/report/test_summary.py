"""The summary for a data lead: every sentence next to what is stored, and nothing where nothing was measured."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from datamask.ablation.offer import offer
from datamask.analyses.report import report
from datamask.analyses.report.summary import NOT_MEASURED, Kept, kept_by, summary
from datamask.config import SelectionConfig
from datamask.runs.ablation_results import save
from tests.making.ablations import ROBUST, made_result
from tests.making.runs import execute_run, finish_run


def ran(world, **settings):
    store, corpus, config = world
    options = {"objective": "facility", "lamb": 0.7, **settings}
    return finish_run(store, corpus, config, corpus.quality, **options)


def said(run, results) -> str:
    return " ".join(summary(kept_by(run), results)).replace("\u00a0", " ")


def test_without_an_ablation_it_says_that_nothing_was_measured(world):
    run = ran(world)
    text = said(run, [])
    assert "The run selects 72 of 240 rows (30.0 %" in text
    assert NOT_MEASURED in text and "baseline for" not in text
    assert "No duplicates were removed" in text and f"datamask runs export {run.id}" in text
    assert said(run, [made_result(ROBUST, seeds=3)]) == text, "a provisional result measures nothing"


def test_each_target_stands_with_its_baseline_under_its_verdict(world):
    result = made_result(ROBUST)
    text = said(ran(world), [result])
    place = [method.name for method in result.methods].index("facility-0.7")
    verdicts = [result.to_random(place, at).verdict for at in range(3)]
    assert f"is better than random on {verdicts.count('better')} of 3 targets" in text
    for at, target in enumerate(result.targets):
        best = result.methods[result.comparisons.best_simple[at]].label
        verdict = {"better": "better than", "worse": "worse than", "level": "level with"}[
            result.to_simple(place, at).verdict
        ]
        sentence = next(part for part in text.split(". ") if f"It is {verdict}" in part)
        assert f"{target.label} ({best})" in sentence
    assert "Only one proxy" in text and "parts of the corpus of 400 rows" in text


def test_a_baseline_is_the_best_one_itself_where_it_is(world):
    result = made_result(ROBUST)
    text = said(ran(world, estimator="top-quality"), [result])
    own = [
        target.label
        for at, target in enumerate(result.targets)
        if result.methods[result.comparisons.best_simple[at]].name == "top-quality"
    ]
    assert own and f"It is itself the best simple baseline for {'; '.join(own)}" in text


@pytest.mark.parametrize(
    "settings", [{"lamb": 0.5}, {"select_ratio": 0.1}, {"objective": "pairwise"}, {"collapse": "exact"}]
)
def test_a_run_that_the_ablation_did_not_try_is_not_compared(world, settings):
    text = said(ran(world, **settings), [made_result(ROBUST)])
    assert "Not measured for this selection" in text and "better than" not in text
    assert f"compared {len(made_result(ROBUST).methods)} other methods at select ratio" in text


def test_of_learned_masks_it_says_what_the_ablation_measured_in_their_place(world):
    result = made_result(ROBUST)
    text = said(ran(world, estimator="counterfactual"), [result])
    point = offer([result], SelectionConfig.from_options(objective="facility")).at(0.7)
    # the words of the Map's mark
    compared = f"At λ 0.7, a selection by Solve is {point.words}."
    assert f"The ablation did not test this run's method, learned masks. {compared}" in text
    assert "Not measured" not in text and "Only one proxy" in text
    between = said(ran(world, estimator="counterfactual", lamb=0.5), [result])
    assert "did not test this run's method, learned masks" in between and "selection by Solve" not in between
    assert "Not measured for this" in said(ran(world, estimator="counterfactual", select_ratio=0.1), [result])


def test_a_circular_target_says_nothing_of_a_run(world):
    text = said(ran(world), [made_result(ROBUST, circular=True)])
    assert "circular" in text and "better than" not in text


def test_removed_duplicates_are_counted(world, tmp_path):
    store, corpus, config = world
    options = {"objective": "pairwise", "estimator": "relaxed", "collapse": "0.9", "select_ratio": 0.1}
    run = execute_run(store, config, **options)
    x = corpus.features.astype(np.float64)
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    # families of rows linked by a cosine of at least 0.9, of which one row each could be selected
    linked, family = x @ x.T >= 0.9, np.arange(len(x))
    for _ in range(len(x)):
        joined = np.array([family[row].min() for row in linked])
        if np.array_equal(joined, family):
            break
        family = joined
    removed = len(x) - len(np.unique(family))
    assert f"Before the selection, {removed:,} semantic duplicates (cosine 0.9 or more) were removed" in said(run, [])
    without = ran(world, collapse="exact")
    assert "removed rows was not counted" in said(without, [])
    along = Kept(SelectionConfig.from_options(collapse="exact"), 30, 100)
    assert any("A run counts the removed rows." in sentence for sentence in summary(along, []))


def test_report_and_summary_say_the_same(world):
    store, corpus, _ = world
    run, result = ran(world), replace(made_result(ROBUST), fingerprint=corpus.fingerprint)
    save(store.cache_dir, result)
    page = report(run, [run], corpus, store.cache_dir)
    end = page[page.index("<h2>Summary</h2>") :]
    assert "is better than random on 2 of 3 targets" in end
    assert f"<code>datamask runs export {run.id} --rows" in end


def test_a_selection_in_no_run_is_summed_up_too():
    settings = SelectionConfig.from_options(objective="facility", lamb=0.7)
    first, *others, last = summary(Kept(settings, 30, 100), [made_result(ROBUST)])
    assert first.replace("\u00a0", " ") == "The selection has 30 of 100 rows (30.0 %)."
    assert "in no run folder" in last and any("better than random on 2 of 3" in sentence for sentence in others)
