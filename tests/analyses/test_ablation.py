"""Results of ablations on the page: tables, sentences, pictures, the job behind them."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from datamask.ablation import wording
from datamask.ablation.offer import MODELS
from datamask.ablation.question import AblationQuestion
from datamask.analyses.ablation import ablation_job, chart, tables
from datamask.config.target import Target
from tests.making.ablations import ROBUST, made_result


def test_methods_stand_by_their_largest_regret_with_their_counts():
    result = made_result(ROBUST)
    table = tables.methods(result)
    assert table["method"].tolist()[0] == result.recommendation.method.label == "Facility location λ 0.7"
    assert table["largest regret"].is_monotonic_increasing
    assert table["largest regret"].tolist() == sorted(summary.regret for summary in result.summaries)
    assert table.set_index("method").loc["Top quality", "than random"] == "1 better, 1 worse"
    early = tables.methods(made_result(ROBUST, seeds=3))
    assert list(early) == ["method", "largest regret", "on", "worst target"]


def test_cells_and_the_heat_map_show_what_the_result_says():
    result = made_result(ROBUST)
    cells = tables.cells(result)
    means = result.losses.mean(axis=0)
    for cell in cells.itertuples():
        place = [method.label for method in result.methods].index(cell.method)
        at = [target.label for target in result.targets].index(cell.target)
        assert cell.difference == pytest.approx(means[place, at] - means[0, at])
        assert (cell.verdict == "better") == (cell.high < 0) and (cell.verdict == "worse") == (cell.low > 0)
    drawn = chart.heat_map(cells, result.unit, tables.regrets(result))
    heat, presses, regrets = drawn.data
    level = ~cells["verdict"].isin(["better", "worse"]).to_numpy()
    assert level.any() and not level.all()
    # a strong color is only of a difference that is told apart from random
    assert not np.ravel(heat.z)[level].any()
    assert np.allclose(-np.ravel(heat.z)[~level], cells["difference"][~level])
    # a mark that is not seen lies on each cell, for a press: the right one
    names = [method.name for method in result.methods]
    for x, y, (name,) in zip(presses.x, presses.y, presses.customdata, strict=True):
        place = names.index(name)
        if heat.z[y][x]:
            assert -heat.z[y][x] == pytest.approx(means[place, x] - means[0, x])
    written = [text != "" for text in np.ravel(heat.text)]
    assert written == cells["verdict"].isin(["better", "worse"]).tolist()
    assert set(regrets.text) == {f"{regret:.3f}" for regret in tables.regrets(result).values()}
    provisional = made_result(ROBUST, seeds=3)
    drawn = chart.heat_map(tables.cells(provisional), provisional.unit, tables.regrets(provisional))
    assert not any(np.ravel(drawn.data[0].text)) and np.count_nonzero(drawn.data[0].z) > len(drawn.data[0].z)


def test_one_target_is_dots_with_intervals_and_the_best_simple_baseline():
    result = made_result(ROBUST[:, :1])
    cells = tables.cells(result)
    drawn = chart.interval_rows(cells, result.unit, "Top quality")
    assert sum(len(part.x) for part in drawn.data if part.x[0] is not None) == 3, "all but random"
    (line,) = drawn.layout.shapes
    assert line.x0 == pytest.approx(float(cells.set_index("method").loc["Top quality", "difference"]))
    table = tables.losses(result)
    best = table[table["than best simple"] == "the best"]
    assert best["method"].tolist() == [result.methods[result.comparisons.best_simple[0]].label]
    assert best["to best simple"].tolist() == [""]
    order = result.means[:, 0].argsort(kind="stable")
    assert table["method"].tolist() == [result.methods[place].label for place in order]
    assert table["loss"].tolist() == pytest.approx(result.means[order, 0].tolist())
    for row, place in zip(table.to_dict("records"), order, strict=True):
        difference = result.to_random(place, 0)
        told = "" if difference is None else wording.amount(difference)
        assert row["to random"] == told and (row["than random"] or "level") == (
            "level" if difference is None else difference.verdict
        )
    early = made_result(ROBUST[:, :1], seeds=3)
    names = [part.name for part in chart.interval_rows(tables.cells(early), early.unit, "").data]
    assert names == ["no interval yet"]


def test_a_menu_says_what_tells_results_apart():
    lines = tables.titles([made_result(ROBUST), made_result(ROBUST[:, :1], seeds=3)])
    ends = [line.partition(": ")[2].replace("\u00a0", " ") for line in lines.values()]
    assert ends == [
        "several targets, select ratio 30 %, 10 seeds",
        "held-out text of the corpus, select ratio 30 %, 10 seeds, 3 done",
    ]
    assert tables.asked(AblationQuestion(label="regions")).startswith("regions of the features")
    assert tables.asked(AblationQuestion(label="genre", judge="transformer")).endswith(", small transformer")


def test_a_second_proxy_model_is_said_to_agree_or_not():
    result = made_result(ROBUST)
    assert tables.confirmation(result, [result]) == ""
    second = made_result(ROBUST, seeds=3, judge="transformer")
    assert tables.confirmation(result, [result, second]).startswith("The small transformer ranks the methods alike")
    other = made_result(ROBUST[::-1], seeds=3, judge="transformer")
    assert "differently" in tables.confirmation(result, [result, other])


@pytest.mark.parametrize("judge", MODELS)
def test_a_result_that_cannot_be_kept_is_said_and_a_kept_one_is_not_computed_again(tmp_path, monkeypatch, judge):
    (tmp_path / "file").write_text("in the way")
    question = AblationQuestion(target=Target(), objectives=("facility",), lambdas=(0.0, 0.7), judge=judge)
    computed = []

    def ablate(corpus, question, cache_dir, *, seeds, **options):
        computed.append(seeds)
        return made_result(ROBUST[:, :1], seeds=seeds, fingerprint="abc", question=question, judge=judge)

    monkeypatch.setattr("datamask.analyses.ablation.compute.kept_study.ablate", ablate)
    corpus = SimpleNamespace(fingerprint="abc")
    for folder, state in ((tmp_path / "file", "failed"), (tmp_path / "kept", "done"), (tmp_path / "kept", "done")):
        job = ablation_job.start(corpus, question, folder)
        job.wait(120)
        assert job.state == state and ("cannot be stored" in job.error) is (state == "failed")
    # the second proxy model confirms by the first seeds
    assert computed == ([3, 3] if judge == MODELS[1] else [10, 10])
