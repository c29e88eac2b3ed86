"""What was computed of the demo beforehand is found by those who look for it, believed, and true."""

from __future__ import annotations

import numpy as np
import pyarrow.parquet as pq
import pytest
import torch

from datamask.analyses.ablation.compute.kept import NOTHING_KEPT
from datamask.analyses.ablation.compute.targets import plan
from datamask.corpus import open_corpus
from datamask.corpus.density import local_density
from datamask.corpus.neighbors import build_neighbors
from datamask.dashboard.data import demo
from datamask.dashboard.map import map_layout, named_regions
from datamask.dashboard.tradeoff import kept_points, lambda_points, live
from datamask.evaluation.live import GRID
from datamask.evaluation.measures.ground import GRAPH_NEIGHBORS
from datamask.evaluation.pool import Pool
from datamask.polling import no_poll
from datamask.runs.ablation_results import results
from datamask.runs.store import RunStore
from datamask.work.context import no_report
from sample_data import build
from tests.commands import run


@pytest.fixture(scope="module")
def table():
    return pq.read_table(build.DEMO / build.SHARD)


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """The demo's results in a folder of runs, and the open corpus."""
    runs_dir = tmp_path_factory.mktemp("demo") / "runs"
    demo.install(runs_dir)
    return RunStore(runs_dir), open_corpus(demo.config())


def test_its_folder_is_a_corpus(installed, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert run("select", build.DEMO, "--output", "x.csv", "--objective", "pairwise", "--device", "cpu") == 0
    (made,) = RunStore("runs").list()
    assert made.facts()["fingerprint"] == installed[1].fingerprint
    assert (tmp_path / "x.csv").is_file()


def test_its_map_and_names_are_found_and_believed(installed):
    store, corpus = installed
    layout = map_layout.layout(corpus, store.cache_dir)
    assert layout.points.shape == (len(corpus), 2) and layout.fitted > 5_000 and layout.kept > 0.2
    assert len(named_regions.load(corpus, store.cache_dir, "UMAP").codes) == len(corpus)
    graph = build_neighbors(corpus.features, map_layout.CROWD + 1)
    np.testing.assert_allclose(
        map_layout.crowding(corpus, store.cache_dir), local_density(graph, map_layout.CROWD), atol=1e-3
    )


def test_its_run_is_done_on_this_corpus_and_its_quality_is_that_of_its_rows(installed, table):
    store, corpus = installed
    (made,) = store.list()
    summary = made.status().to_dict()["summary"]
    assert made.id == demo.RUN_ID == build.RUN_ID and made.status().state == "done"
    assert made.config.corpus == demo.config() and made.facts()["fingerprint"] == corpus.fingerprint
    assert made.config.selection.estimator == "counterfactual" and made.config.selection.lamb == 0.5
    chosen = made.rows(["selected"])["selected"].to_numpy(zero_copy_only=False).astype(bool)
    assert chosen.sum() == summary["selected"] == round(0.3 * len(corpus))
    best = np.sort(table["quality_score"].to_numpy().astype(float))[::-1][: chosen.sum()].mean()
    mean, kept = (table["quality_score"].to_numpy().astype(float)[rows].mean() for rows in (slice(None), chosen))
    # 0 is a random selection, 1 the best possible
    assert summary["calibrated"]["quality"] == pytest.approx((kept - mean) / (best - mean), abs=0.03)


def test_its_selections_along_lambda_are_those_of_its_run_s_problem_and_worth_what_they_say(installed, table):
    store, corpus = installed
    (made,) = store.list()
    points = kept_points.of_problem(corpus, lambda_points.settings_of(made.config.selection), store.cache_dir)
    assert [point.lamb for point in points] == sorted(GRID) and all(point.exact for point in points)
    assert all(point.mask.sum() == made.status().to_dict()["summary"]["selected"] for point in points)
    assert all(0 <= point.gap < 0.01 for point in points)
    # quality by hand: 0 is a random selection, 1 the best possible
    quality = table["quality_score"].to_numpy().astype(float)
    best = np.sort(quality)[::-1][: points[0].mask.sum()].mean()
    for point in points:
        share = (quality[point.mask].mean() - quality.mean()) / (best - quality.mean())
        assert point.quality == pytest.approx(share, abs=1e-5)
    # diversity by hand: how near each row's nearest selected one is, between the ends that its run has too
    ends = made.status().to_dict()["summary"]["anchors"]["diversity"]["facility"]
    features = corpus.features.astype(float)
    for point in (points[0], points[10], points[-1]):
        nearest = np.maximum((features @ features[point.mask].T).max(axis=1), 0.0).mean()
        share = (nearest - ends["random"]) / (ends["best"] - ends["random"])
        assert point.diversity == pytest.approx(share, abs=1e-4)


@pytest.mark.usefixtures("live_of_its_own")
def test_a_session_solves_the_same_selections_along_lambda(installed, tmp_path):
    store, corpus = installed
    problem = lambda_points.settings_of(None)
    session = live.session(corpus, problem, tmp_path)
    session.wait(240)
    kept = kept_points.of_problem(corpus, problem, store.cache_dir)
    for point, solved in zip(kept, session.solved[1], strict=True):
        # bit for bit on the processor that built it; where another one rounds otherwise, swaps end as near the best
        assert abs(point.joint - solved.answer.joint) <= max(point.gap, solved.answer.gap)
        assert (point.mask & solved.mask).sum() >= 0.9 * solved.mask.sum()


def test_its_ablation_is_found_and_is_of_this_corpus(installed):
    store, corpus = installed
    (result,) = results(store.cache_dir, corpus.fingerprint)
    assert not result.provisional and result.question == build.QUESTION and result.n == len(corpus)
    assert len(result.methods) > 8
    # where a definition of duplicates or held-out texts changed, raise `question.MEANING` and run build.py --results
    pool = Pool(corpus, torch.device("cpu"), store.cache_dir)
    planned = plan(pool, pool.graph(GRAPH_NEIGHBORS), build.QUESTION, (), None, NOTHING_KEPT, no_report, no_poll)
    assert planned.targets == result.targets
    assert round(np.mean([len(rows) for rows in planned.remaining])) == result.rows


def test_nothing_in_it_names_a_place_of_the_machine_that_built_it():
    for path in build.RESULTS.rglob("*"):
        if path.is_file() and path.suffix in (".json", ".jsonl", ".cache"):
            content = path.read_bytes()
            assert b"/tmp/" not in content and b"/root/" not in content and b"/home/" not in content, path
