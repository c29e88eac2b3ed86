"""A corpus seen from its own mean, against float64 numpy."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch

from datamask import CorpusConfig, RunConfig, SelectionConfig, catalogue, open_corpus, score_selection, select
from datamask.corpus.centered import centered
from datamask.errors import InputError, OptionError, Stopped
from datamask.evaluation.anchors import diversity_anchor
from datamask.evaluation.pool import Pool
from datamask.polling import poll_of
from datamask.runs.execute import execute
from datamask.runs.store import RunStore
from tests.reference import truth

N, D = 60, 6


@pytest.fixture
def raw(rng) -> np.ndarray:
    """Rows of unequal length around a common component, as E5's are."""
    return ((rng.normal(size=(N, D)) + 3.0) * rng.uniform(0.5, 4.0, size=(N, 1))).astype(np.float32)


@pytest.fixture
def corpus(raw, rng, tmp_path):
    values = pa.FixedSizeListArray.from_arrays(pa.array(raw.ravel()), D)
    pq.write_table(
        pa.table({"chunk_id": np.arange(N), "quality_score": rng.normal(size=N), "feature_arr": values}),
        tmp_path / "raw.parquet",
    )
    return open_corpus(CorpusConfig((str(tmp_path / "raw.parquet"),)))


def expected(raw: np.ndarray) -> np.ndarray:
    rows = raw.astype(np.float64)
    rows = rows - rows.mean(axis=0)
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def test_the_mean_of_the_features_as_read_is_subtracted(corpus, raw):
    seen = centered(corpus)
    assert seen.features.dtype == np.float32 and not seen.features.flags.writeable
    assert seen.features == pytest.approx(expected(raw), abs=1e-6)
    assert seen.fingerprint != corpus.fingerprint and seen.ids.equals(corpus.ids)


def test_values_are_those_of_the_centered_features(corpus, raw, tmp_path):
    rows = np.arange(0, N, 3)
    found = score_selection(corpus, rows, tmp_path, "cpu", center=True)["objectives"]
    plain = score_selection(corpus, rows, tmp_path, "cpu")["objectives"]
    assert set(found) == {entry.name for entry in catalogue.OBJECTIVES}
    for name, value in found.items():
        assert value == pytest.approx(truth.OBJECTIVES[name](expected(raw), rows), rel=1e-5, abs=1e-7)
        if not name.startswith("disf"):  # correlations know no mean, but unit lengths change them a little
            assert abs(plain[name] - value) > 0.05


def test_nothing_cached_is_shared_with_the_features_as_they_are(corpus, tmp_path):
    plain, seen = (Pool(corpus, torch.device("cpu"), tmp_path, center=center) for center in (False, True))
    for name in ("facility", "pairwise"):
        first = [diversity_anchor(pool, name, 20) for pool in (plain, seen)]
        again = [
            diversity_anchor(Pool(corpus, torch.device("cpu"), tmp_path, center=center), name, 20)
            for center in (False, True)
        ]
        assert first == again and abs(first[0].random - first[1].random) > 0.05
    lists = [pool.graph(20) for pool in (plain, seen)]
    assert not np.allclose(lists[0].similarities, lists[1].similarities, atol=0.05)


def test_a_selection_by_centered_features(corpus, raw):
    chosen = select(corpus, objective="pairwise", estimator="relaxed", lamb=0.0, select_ratio=0.25, center=True)
    assert chosen.summary["diversity"] == pytest.approx(truth.pairwise(expected(raw), chosen.rows), rel=1e-5)
    assert chosen.summary["gap"] >= -1e-9
    other = select(corpus, objective="pairwise", estimator="relaxed", lamb=0.0, select_ratio=0.25)
    assert truth.pairwise(expected(raw), chosen.rows) > truth.pairwise(expected(raw), other.rows)


def test_a_centered_run_belongs_to_the_corpus_it_was_made_on(corpus, raw, tmp_path):
    config = RunConfig(
        CorpusConfig(tuple(corpus.provenance.files)),
        SelectionConfig.from_options(objective="facility", estimator="greedy", lamb=0.0, center=True),
    )
    run = RunStore(tmp_path / "runs").create(config)
    summary = execute(run).to_dict()
    assert run.facts()["fingerprint"] == corpus.fingerprint
    rows = np.flatnonzero(run.rows()["selected"].to_numpy())
    assert summary["diversity"] == pytest.approx(truth.facility(expected(raw), rows), rel=1e-5)
    assert run.config.selection.center and "--center" in run.config.arguments()


def test_rows_at_the_mean_are_refused(tmp_path):
    values = pa.array([[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0], [0.0, 1.0]])
    pq.write_table(
        pa.table({"chunk_id": range(4), "quality_score": np.arange(4.0), "feature_arr": values}),
        tmp_path / "raw.parquet",
    )
    corpus = open_corpus(CorpusConfig((str(tmp_path / "raw.parquet"),)))
    assert np.isfinite(centered(corpus).features).all()
    values = pa.array([[1.0, 0.5], [3.0, 0.5], [2.0, 0.5], [2.0, 0.5]])
    pq.write_table(
        pa.table({"chunk_id": range(4), "quality_score": np.arange(4.0), "feature_arr": values}),
        tmp_path / "raw.parquet",
    )
    with pytest.raises(InputError, match="--center leaves 2 of 4 rows"):
        centered(open_corpus(CorpusConfig((str(tmp_path / "raw.parquet"),))))


def test_centering_stops(corpus):
    with pytest.raises(Stopped):
        centered(corpus, poll_of(lambda: True))


def test_the_panel_has_no_centered_twin(corpus, tmp_path):
    with pytest.raises(OptionError, match="--panel"):
        score_selection(corpus, np.arange(9), tmp_path, "cpu", center=True, panel=True)


@pytest.mark.parametrize("factor", [1e300, 1e-300])
def test_norms_that_cannot_be_squared_center_as_others_do(corpus, factor):
    rescaled = centered(replace(corpus, norms=corpus.norms * factor))
    np.testing.assert_allclose(rescaled.features, centered(corpus).features, atol=1e-6)
