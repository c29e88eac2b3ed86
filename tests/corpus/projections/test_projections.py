"""The table of projections: what each line promises, one of somebody's own, t-SNE itself."""

import os
import re
import threading
from pathlib import Path

import numpy as np
import pytest

from datamask.corpus.projections import DEFAULT, PROJECTIONS, STAND_IN, layouts, pca, tsne
from datamask.corpus.projections.layouts import Layout, stored_layout
from tests.corpus.projections.jobs import start_layout, waited
from tests.corpus.projections.toy_projection import RING

ROOT = Path(__file__).parents[3]


@pytest.fixture
def clustered(make_corpus):
    """120 rows in three far clusters, the last a copy of the first."""
    rng = np.random.default_rng(0)
    features = np.repeat(np.eye(3, 8), 40, axis=0) + 0.2 * rng.normal(size=(120, 8))
    features[119] = features[0]
    return make_corpus(features, fingerprint="c" * 32)


@pytest.mark.parametrize("name", PROJECTIONS)
def test_every_line_of_the_table_is_whole(name):
    kind = PROJECTIONS[name]
    assert kind.name == name and re.fullmatch(r"[^\s.]+", name) and re.fullmatch(r"[a-z]+", kind.key)
    assert (kind.at_once is None) != (kind.fit is None), "it is there at once, or it is fitted"
    assert kind.about.endswith(".") and not kind.reading.endswith(".")
    assert (kind.fit_all is None) == (kind.fit_sample is None)


def test_keys_are_unlike_and_the_stand_in_needs_no_waiting():
    assert len({kind.key for kind in PROJECTIONS.values()}) == len(PROJECTIONS)
    assert PROJECTIONS[STAND_IN.name] is STAND_IN and STAND_IN.at_once is pca and DEFAULT == "UMAP"


@pytest.mark.parametrize("name", PROJECTIONS)
def test_each_keeps_its_own_layout(clustered, tmp_path, name):
    layout = Layout(np.full((120, 2), 3, np.float32), 0.25, 119)
    stored_layout(clustered, tmp_path, name).keep(layout)
    assert (stored_layout(clustered, tmp_path, name).find().points == 3).all()
    assert not any(stored_layout(clustered, tmp_path, other).find() for other in PROJECTIONS if other != name)


def test_a_layout_by_pca_is_what_is_drawn_at_once_and_how_much_it_keeps(clustered, tmp_path, monkeypatch):
    monkeypatch.setattr(layouts, "COMMAND", ("false",))
    assert waited(start_layout(clustered, tmp_path, "PCA")) == ("done", "")
    layout = stored_layout(clustered, tmp_path, "PCA").find()
    np.testing.assert_array_equal(layout.points, pca(clustered.features))
    assert 0.1 < layout.kept < 1 and layout.fitted == 119


def test_one_of_somebodys_own_is_a_file_and_a_line(clustered, tmp_path, monkeypatch):
    monkeypatch.setitem(PROJECTIONS, RING.name, RING)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")])))
    assert waited(start_layout(clustered, tmp_path, "Ring")) == ("done", "")
    layout = stored_layout(clustered, tmp_path, "Ring").find()
    np.testing.assert_allclose((layout.points**2).sum(axis=1), 1, atol=1e-5)
    np.testing.assert_array_equal(layout.points[119], layout.points[0])


def test_tsne_itself_keeps_neighbours_together_and_tells_its_steps(clustered):
    told = []
    rows = [
        tsne.fit(pca_points, None, None, 0, lambda share, what: told.append((share, what)))
        for pca_points in (clustered.features, clustered.features)
    ]
    np.testing.assert_array_equal(*rows)
    assert rows[0].dtype == np.float32 and rows[0].shape == (120, 2)
    centres = np.array([rows[0][40 * c : 40 * c + 39].mean(0) for c in range(3)])
    nearest = ((rows[0][:119, None] - centres) ** 2).sum(2).argmin(1)
    assert (nearest == np.repeat(np.arange(3), 40)[:119]).mean() > 0.95
    assert (1.0, "t-SNE: step 1000 of 1,000") in told and all(0 <= share <= 1 for share, _ in told)


def test_tsne_of_a_handful_of_rows_looks_at_fewer_neighbours(clustered):
    assert np.isfinite(tsne.fit(clustered.features[:12], None, None, 0, lambda share, what: None)).all()


def test_of_more_rows_than_tsne_takes_a_sample_is_fitted_and_the_rest_placed(clustered, tmp_path, monkeypatch):
    few = PROJECTIONS["t-SNE"].__class__(**PROJECTIONS["t-SNE"].__dict__ | {"fit_all": 60, "fit_sample": 50})
    monkeypatch.setitem(PROJECTIONS, "t-SNE", few)
    assert waited(start_layout(clustered, tmp_path, "t-SNE"), 600) == ("done", "")
    layout = stored_layout(clustered, tmp_path, "t-SNE").find()
    assert layout.fitted == 50 and np.isfinite(layout.points).all() and 0.1 < layout.kept <= 1


def test_tsne_is_stopped_by_killing_its_process(clustered, tmp_path):
    job = start_layout(clustered, tmp_path, "t-SNE")
    begun = threading.Event()
    while not job.message.startswith(("Starting t-SNE", "t-SNE")):
        assert not job.ended, job.error
        begun.wait(0.01)
    job.stop()
    assert waited(job) == ("stopped", "")
    assert stored_layout(clustered, tmp_path, "t-SNE").find() is None
    assert not list((tmp_path / clustered.fingerprint).glob("tsne-fit-*"))
