"""The pictures of a first look: where its rows lie, and a rough frontier of some of them."""

import numpy as np
import pytest

from datamask.corpus import FirstLook, open_corpus
from datamask.dashboard.data import first_looks
from tests.making.runs import write_shard


@pytest.fixture(scope="module")
def picture(tmp_path_factory):
    corpus = open_corpus(write_shard(tmp_path_factory.mktemp("corpus") / "shard.parquet", 300))
    made = first_looks.start(FirstLook(corpus, 1, 1, 300), "of a test")
    assert made.job.wait(240) and made.job.state == "done", made.job.error
    return made


def test_rows_lie_where_their_principal_components_say(picture):
    features = picture.look.sample.features.astype(np.float64)
    centered = features - features.mean(axis=0)
    axes = np.linalg.svd(centered, full_matrices=False)[2][:2].T
    expected = centered @ axes
    for mine, theirs in zip(picture.places.points.T, expected.T, strict=True):
        assert min(np.abs(mine - theirs).max(), np.abs(mine + theirs).max()) < 1e-4
    assert picture.parts == 3 and picture.parcel


def test_the_rough_frontier_goes_from_top_quality_to_diversity_alone(picture):
    table = picture.frontier
    assert table["lamb"].tolist() == list(first_looks.LAMBDAS)
    assert table["quality"].iloc[0] == pytest.approx(1.0, abs=1e-6)
    assert table["diversity"].iloc[-1] == pytest.approx(1.0, abs=0.02)
    assert (np.diff(table["quality"]) <= 1e-6).all() and (np.diff(table["diversity"]) >= -1e-6).all()
    # the diversity of top quality, by its definition in float64: its mean similarity less than a random subset's
    sample = picture.look.sample
    features = sample.features.astype(np.float64)
    n = len(features)
    size = round(first_looks.RATIO * n)
    best = np.argsort(-sample.quality, kind="stable")[:size]

    def crowding(rows):
        total = features[rows].sum(axis=0)
        return (total @ total - len(rows)) / (len(rows) * (len(rows) - 1))

    everything = crowding(np.arange(n))
    assert np.sign(table["diversity"].iloc[0]) == np.sign(everything - crowding(best))


def test_of_many_rows_the_frontier_is_of_a_uniform_sample(picture, monkeypatch):
    monkeypatch.setattr(first_looks, "FRONTIER_ROWS", 100)
    monkeypatch.setattr(first_looks, "AXES_ROWS", 150)
    made = first_looks.start(picture.look, "of a test, fewer")
    assert made.job.wait(240) and made.job.state == "done", made.job.error
    assert made.frontier_rows == 100 and len(made.places.points) == 300
    assert not made.frontier.equals(picture.frontier)
