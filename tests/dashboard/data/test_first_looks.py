"""The pictures of a first look: where its rows lie."""

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
    assert picture.parts == 2 and picture.parcel


def test_of_many_rows_the_axes_are_of_a_uniform_sample(picture, monkeypatch):
    monkeypatch.setattr(first_looks, "AXES_ROWS", 150)
    made = first_looks.start(picture.look, "of a test, fewer")
    assert made.job.wait(240) and made.job.state == "done", made.job.error
    assert len(made.places.points) == 300
    assert not np.array_equal(made.places.points, picture.places.points)
