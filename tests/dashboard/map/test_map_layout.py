"""Preparing a map: the order of its stages, what is kept on disk, its stop and its failure."""

import threading

import numpy as np
import pytest

from datamask.corpus import open_corpus
from datamask.corpus.projections import layouts
from datamask.corpus.projections.layouts import Layout, stored_layout
from datamask.dashboard.map import map_layout
from datamask.errors import DatamaskError, Stopped
from datamask.work.context import Work
from datamask.work.lanes import Priority
from datamask.work.worker import worker
from tests.making.runs import write_shard


def layout(*answers: tuple[float, str], failing: str = ""):
    """In the place of `compute_layout`: one that reports as told, polls, and fails with a sentence."""

    def compute_layout(corpus, cache_dir, projection, *, work):
        for answer in answers:
            work.report(*answer)
            work.poll()
        if failing:
            raise DatamaskError(failing)

    return compute_layout


@pytest.fixture
def corpus(tmp_path):
    return open_corpus(write_shard(tmp_path / "shard.parquet"))


def prepare(corpus, cache_dir, should_stop=lambda: False):
    said = []
    map_layout.prepare(corpus, cache_dir, Work.of(should_stop, lambda *at: said.append(at)))
    return said


def test_crowding_is_the_mean_of_the_nearest_fifteen(corpus, tmp_path, monkeypatch):
    monkeypatch.setattr(map_layout, "compute_layout", layout())
    assert map_layout.crowding(corpus, tmp_path) is None
    prepare(corpus, tmp_path)
    similar = corpus.features @ corpus.features.T
    np.fill_diagonal(similar, -np.inf)
    expected = np.sort(similar, axis=1)[:, -15:].mean(axis=1)
    assert np.allclose(map_layout.crowding(corpus, tmp_path), expected, atol=1e-5)


def test_progress_rises_over_both_stages(corpus, tmp_path, monkeypatch):
    monkeypatch.setattr(map_layout, "compute_layout", layout((0.0, "fitting"), (0.5, "fitting")))
    said = prepare(corpus, tmp_path)
    shares = [share for share, _ in said]
    assert shares == sorted(shares) and said[-1] == (pytest.approx(0.7), "fitting")
    assert map_layout.GRAPH_SHARE * 0.99 <= shares[-2] <= shares[-1] <= 1


def test_a_stop_reaches_the_child(corpus, tmp_path, monkeypatch):
    monkeypatch.setattr(map_layout, "compute_layout", layout((0.1, "fitting"), failing="it was not heard"))
    # the graph is cut off by its own tests; here the stop comes while UMAP fits
    map_layout.stored_crowding(corpus, tmp_path).keep(np.zeros(len(corpus), np.float32))
    with pytest.raises(Stopped):
        prepare(corpus, tmp_path, should_stop=lambda: True)


def test_a_failure_is_a_sentence_and_keeps_crowding(corpus, tmp_path, monkeypatch):
    monkeypatch.setattr(map_layout, "compute_layout", layout(failing="The map failed: no memory"))
    with pytest.raises(DatamaskError, match="no memory"):
        prepare(corpus, tmp_path)
    assert map_layout.crowding(corpus, tmp_path) is not None


def test_nothing_is_computed_twice(corpus, tmp_path, monkeypatch):
    stored_layout(corpus, tmp_path).keep(Layout(np.zeros((len(corpus), 2), np.float32), 0.4, len(corpus)))
    map_layout.stored_crowding(corpus, tmp_path).keep(np.zeros(len(corpus), np.float32))
    monkeypatch.setattr(layouts._Computation, "layout", lambda *_: pytest.fail("the layout is there"))
    assert prepare(corpus, tmp_path) == [] and map_layout.layout(corpus, tmp_path).kept == 0.4
    job = map_layout.start(corpus, tmp_path)
    assert worker().find(map_layout.key_of(corpus)) is job


def test_a_caption_says_how_much_is_kept_and_on_how_many_it_was_fitted():
    points = np.zeros((63_666, 2), np.float32)
    assert map_layout.reading("UMAP", Layout(points, 0.5, 60_000)) == (
        "UMAP keeps 7.5 of 15 nearest neighbors; sizes and distances mean nothing"
    )
    sampled = map_layout.reading("t-SNE", Layout(points, 0.2, 10_000))
    assert "fitted on 10,000 rows, with the others placed by their nearest fitted rows, keeps 3.0 of 15" in sampled
    assert "mean nothing" in sampled
    assert map_layout.reading("PCA", None).startswith("PCA: it shows") and "keeps 1.5 of" in map_layout.reading(
        "PCA", Layout(points, 0.1, 60_000)
    )


def test_each_projection_is_prepared_by_its_name(corpus, tmp_path, monkeypatch):
    map_layout.stored_crowding(corpus, tmp_path).keep(np.zeros(len(corpus), np.float32))
    laid_out, asked = Layout(np.zeros((len(corpus), 2), np.float32), 0.4, len(corpus)), []
    stored_layout(corpus, tmp_path).keep(laid_out)

    def computed(self, folder):
        asked.append(self._projection.name)
        return laid_out

    monkeypatch.setattr(layouts._Computation, "layout", computed)
    for name in ("UMAP", "t-SNE", "PCA"):
        map_layout.prepare(corpus, tmp_path, projection=name)
    assert asked == ["t-SNE", "PCA"]


def test_a_layout_waits_for_what_goes_first_and_can_be_stopped_meanwhile(corpus, tmp_path, monkeypatch):
    """UMAP took half of a small machine from the first λ that somebody asked for."""
    done, begun = threading.Event(), threading.Event()
    monkeypatch.setattr(map_layout, "compute_layout", lambda *_, **__: begun.set())
    first = worker().start("goes first", lambda job: done.wait(240))
    waiting = map_layout.start(corpus, tmp_path, first=first)
    # the lane is free meanwhile: what goes first may need it
    other = worker().start("beside it", lambda job: "did", device="cpu", priority=Priority.UNASKED)
    assert other.wait(240) and not begun.is_set()
    waiting.stop()
    assert waiting.wait(240) and waiting.state == "stopped"
    waiting = map_layout.start(corpus, tmp_path, first=first)
    done.set()
    assert waiting.wait(240) and waiting.state == "done" and begun.is_set()
