"""The layout: its input against brute force, the child process and its ends, the cache; UMAP itself once."""

import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from datamask.corpus import exact_search
from datamask.corpus.equal_rows import equal_features
from datamask.corpus.neighbors import build_neighbors, neighbors_for
from datamask.corpus.projections import fitting, layouts
from datamask.corpus.projections.layouts import stored_layout
from datamask.work.context import Work
from tests.corpus.projections.jobs import start_layout, waited

ROOT = Path(__file__).parents[3]

QUICK = """
import sys, numpy as np
from pathlib import Path
folder = Path(sys.argv[-1])
print("a stray line of some library", flush=True)
print("0.500 halfway", flush=True)
with np.load(folder / "input.npz") as given:
    np.save(folder / "output.npy", given["points"][:, :2].copy())
(folder.parent / "runs").open("a").write("x")
"""
SLEEPY = "import time; print('0.100 asleep', flush=True); time.sleep(600)"
BROKEN = "import sys; print('many words', file=sys.stderr); sys.exit('numba went away')"


@pytest.fixture
def child(tmp_path, monkeypatch):
    """Run a script of ours in the place of UMAP."""

    def use(code):
        script = tmp_path / "child.py"
        script.write_text(code)
        monkeypatch.setattr(layouts, "COMMAND", (sys.executable, str(script)))

    return use


@pytest.fixture
def clustered(make_corpus):
    """180 rows in three far clusters, with copies among them."""
    rng = np.random.default_rng(0)
    features = np.repeat(np.eye(3, 8), 60, axis=0) + 0.2 * rng.normal(size=(180, 8))
    features[10] = features[150]
    features[20:24] = features[24]
    return make_corpus(features, fingerprint="c" * 32)


def wait_for(condition, seconds=120):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "waited too long"
        time.sleep(0.02)


@pytest.mark.parametrize("k", [None, 8, 100])
def test_the_input_lists_the_nearest_distinct_rows_from_any_graph(clustered, k):
    graph = None if k is None else build_neighbors(clustered.features, k)
    fitted = fitting.fitted_rows(clustered)
    rows, twin = fitted.rows, fitted.twin
    assert len(rows) == 175 and twin[10] == twin[150] and len(set(twin[20:25])) == 1
    np.testing.assert_array_equal(clustered.features[rows[twin]], clustered.features)
    given = fitting.fit_input(clustered, fitted, graph)
    kept = clustered.features[rows].astype(float)
    products = kept @ kept.T
    np.fill_diagonal(products, 2)
    expected = -np.sort(-products, axis=1)[:, :30]
    expected[:, 0] = 1
    # lists are in the order of rounded rows
    np.testing.assert_allclose(given.similarities, expected, atol=1e-3)
    np.testing.assert_array_equal(given.indices[:, 0], np.arange(175))
    pairs = np.einsum("nd,nkd->nk", kept, kept[given.indices])
    np.testing.assert_allclose(pairs, given.similarities, atol=1e-3)
    assert all(len(set(row)) == 30 for row in given.indices.tolist())


def test_rows_left_out_of_the_fit_lie_amid_their_nearest_fitted_rows(clustered):
    fitted = fitting.fitted_rows(clustered, fit_all=100, fit_sample=60)
    rows, twin = fitted.rows, fitted.twin
    assert len(rows) == 60 and (twin < 0).any() and len(fitted.distinct) == 175 and not fitted.all_fitted
    places = np.random.default_rng(1).normal(size=(60, 2)).astype(np.float32)
    told = []
    points = fitting.place_all(clustered, fitted, places, Work(report=lambda share, what: told.append((share, what))))
    assert told == [(0.0, f"Placing {(twin < 0).sum()} more rows beside those")]
    np.testing.assert_array_equal(points[rows], places)
    for row in np.flatnonzero(twin < 0):
        nearest = places[np.argsort(-(clustered.features[rows] @ clustered.features[row]))[:5]]
        assert (points[row] >= nearest.min(0) - 1e-6).all() and (points[row] <= nearest.max(0) + 1e-6).all()


def kept_by_brute_force(corpus, distinct, points, k=15):
    """All pairs in float64: the share of each row's k nearest that are among its k nearest on the map."""
    features, drawn = corpus.features[distinct].astype(float), points[distinct].astype(float)
    near = -(features @ features.T)
    far = ((drawn[:, None] - drawn) ** 2).sum(axis=2)
    for distances in (near, far):
        np.fill_diagonal(distances, np.inf)
    pairs = zip(np.argsort(near, axis=1)[:, :k], np.argsort(far, axis=1)[:, :k], strict=True)
    return np.mean([len(set(a) & set(b)) / k for a, b in pairs])


@pytest.mark.parametrize("sample", [None, 60])
def test_neighbors_kept_is_what_brute_force_counts_over_all_rows(clustered, sample):
    fitted = fitting.fitted_rows(clustered, fit_all=sample, fit_sample=sample)
    given = fitting.fit_input(clustered, fitted, None)
    points = clustered.features[:, :2] + 0.05 * np.random.default_rng(2).normal(size=(180, 2)).astype(np.float32)
    points = points[equal_features(clustered.features)]
    expected = kept_by_brute_force(clustered, fitted.distinct, points)
    assert 0.2 < expected < 0.9
    assert fitting.neighbors_kept(clustered, fitted, given, points) == pytest.approx(expected, abs=1e-9)
    assert fitting.neighbors_kept(clustered, fitted, None, points) == pytest.approx(expected, abs=1e-9)
    assert fitting.neighbors_kept(clustered, fitted, given, points, judged=90) == pytest.approx(expected, abs=0.1)


def test_neighbors_kept_is_one_for_a_faithful_map_and_chance_for_noise(make_corpus):
    angles = np.sort(np.random.default_rng(0).uniform(0, 6.28, 300))
    corpus = make_corpus(np.c_[np.cos(angles), np.sin(angles)])
    fitted = fitting.fitted_rows(corpus)
    given = fitting.fit_input(corpus, fitted, None)
    assert fitting.neighbors_kept(corpus, fitted, given, corpus.features) > 0.97
    noise = np.random.default_rng(1).normal(size=(300, 2))
    assert fitting.neighbors_kept(corpus, fitted, given, noise) < 0.15


def test_a_layout_is_computed_once_and_kept(clustered, tmp_path, child):
    child(QUICK)
    assert stored_layout(clustered, tmp_path).find() is None
    seen = []
    job = start_layout(clustered, tmp_path)
    wait_for(lambda: seen.append(job.share) or job.ended)
    assert job.state == "done" and seen == sorted(seen) and job.share == 1.0
    layout = stored_layout(clustered, tmp_path).find()
    assert layout.points.shape == (180, 2) and layout.fitted == 175 and 0 < layout.kept <= 1
    np.testing.assert_array_equal(layout.points[10], layout.points[150])
    assert waited(start_layout(clustered, tmp_path)) == ("done", "")
    folder = tmp_path / clustered.fingerprint
    assert (folder / "runs").read_text() == "x", "the second start found the first one's layout"
    assert not list(folder.glob("umap-fit-*"))


def test_a_layout_removes_what_killed_processes_left(clustered, tmp_path, child):
    child(QUICK)
    folder = tmp_path / clustered.fingerprint
    folder.mkdir()
    abandoned = folder / ".umap-v1.cache.abcd1234.part"
    abandoned.write_bytes(b"half")
    assert waited(start_layout(clustered, tmp_path)) == ("done", "")
    assert not abandoned.exists()


def test_of_two_at_once_one_computes(clustered, tmp_path, child):
    child(QUICK)
    jobs = [start_layout(clustered, tmp_path) for _ in range(3)]
    assert {waited(job) for job in jobs} == {("done", "")}
    assert (tmp_path / clustered.fingerprint / "runs").read_text() == "x"


def test_a_damaged_layout_is_computed_anew(clustered, tmp_path, child):
    child(QUICK)
    waited(start_layout(clustered, tmp_path))
    path = stored_layout(clustered, tmp_path).path
    for damaged in (b"", b"nothing", path.read_bytes()[:-200]):
        path.write_bytes(damaged)
        assert stored_layout(clustered, tmp_path).find() is None
    assert waited(start_layout(clustered, tmp_path)) == ("done", "")
    assert stored_layout(clustered, tmp_path).find().points.shape == (180, 2)


def test_stopping_kills_the_child_and_frees_the_lock(clustered, tmp_path, child, monkeypatch):
    child(SLEEPY)
    started, popen = [], subprocess.Popen
    monkeypatch.setattr(subprocess, "Popen", lambda *args, **how: started.append(popen(*args, **how)) or started[-1])
    job = start_layout(clustered, tmp_path)
    wait_for(lambda: job.message == "asleep")
    (process,) = started
    job.stop()
    assert waited(job) == ("stopped", "")  # the child itself sleeps for longer
    assert process.returncode == -9
    assert not list((tmp_path / clustered.fingerprint).glob("umap-fit-*"))
    child(QUICK)
    assert waited(start_layout(clustered, tmp_path)) == ("done", "")


def test_a_failing_child_is_told_in_its_last_words(clustered, tmp_path, child):
    child(BROKEN)
    state, message = waited(start_layout(clustered, tmp_path))
    assert state == "failed" and message == "The map failed: UMAP ended with exit code 1: numba went away"


def test_an_unwritable_cache_fails_with_a_sentence(clustered, tmp_path, child):
    child(QUICK)
    (tmp_path / "file").write_text("in the way")
    state, message = waited(start_layout(clustered, tmp_path / "file"))
    assert state == "failed" and "cannot be written" in message


def test_a_handful_of_rows_is_laid_out_by_pca(make_corpus, tmp_path, child):
    child(BROKEN)
    for features in (np.eye(4), [[1.0], [1.0]], [[1.0, 0], [1.0, 0]]):
        corpus = make_corpus(features, fingerprint=f"{len(features)}{np.shape(features)[1]}" * 16)
        assert waited(start_layout(corpus, tmp_path)) == ("done", "")
        assert stored_layout(corpus, tmp_path).find().points.shape == (len(features), 2)


def test_the_child_ends_when_its_parent_is_gone_and_imports_nothing_from_where_it_stands(clustered, tmp_path):
    (tmp_path / "numpy.py").write_text("raise SystemExit('a file of the working directory')")
    given = fitting.fit_input(clustered, fitting.fitted_rows(clustered), None)
    np.savez(tmp_path / "input.npz", points=given.points, indices=given.indices, similarities=given.similarities)
    ended = subprocess.run(
        [*layouts.COMMAND, "datamask.corpus.projections.umap:fit", str(tmp_path)],
        stdin=subprocess.DEVNULL,
        timeout=240,
        capture_output=True,
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
    )
    assert ended.returncode == 1 and ended.stderr == b""
    assert not (tmp_path / "output.npy").exists()


NO_SEARCH = """
import sys
from datamask.compiling import keeping_compiled
with keeping_compiled():
    import pynndescent, sklearn.neighbors, umap, umap.umap_

def searched(*args, **kwargs):
    raise SystemExit("UMAP looked for neighbours of its own")

umap.umap_.nearest_neighbors = umap.umap_.pairwise_distances = umap.umap_.fast_knn_indices = searched
umap.umap_.NNDescent.__init__ = pynndescent.NNDescent.__init__ = searched
from datamask.corpus.projections.child import main
sys.exit(main(*sys.argv[1:]))
"""


def test_umap_itself_keeps_clusters_apart_on_the_one_graph_alone(clustered, tmp_path, child, monkeypatch):
    """The graph that facility location left behind serves the map, copies collapsed; nobody searches again."""
    neighbors_for(clustered, 64, tmp_path)
    for name in ("all_pairs", "on_device"):
        monkeypatch.setattr(exact_search, name, lambda *args, **kwargs: pytest.fail("a second graph"))
    monkeypatch.setattr(fitting, "nearest", lambda *args, **kwargs: pytest.fail("64 neighbours are enough for 30"))
    child(NO_SEARCH)
    job = start_layout(clustered, tmp_path)
    assert waited(job, 900) == ("done", "")
    layout = stored_layout(clustered, tmp_path).find()
    assert layout.points.shape == (180, 2) and np.isfinite(layout.points).all()
    # row 10 is a copy of a row of the third cluster
    cluster = np.repeat(np.arange(3), 60)
    cluster[10] = 2
    centres = np.array([layout.points[cluster == c].mean(0) for c in range(3)])
    nearest = ((layout.points[:, None] - centres) ** 2).sum(2).argmin(1)
    assert (nearest == cluster).mean() > 0.95
    assert layout.kept > 0.3
