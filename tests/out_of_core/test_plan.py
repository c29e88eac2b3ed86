"""What a run over all rows will take: the arithmetic and the probe."""

from __future__ import annotations

import tempfile
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from datamask.config import CorpusConfig, QualityColumn, SelectionConfig
from datamask.errors import InputError, Stopped
from datamask.out_of_core import probe
from datamask.out_of_core.plan import Part, plan_of, plan_run
from datamask.out_of_core.probe import Rates, measured
from datamask.polling import poll_of
from tests.making.shards import clustered

PAIRWISE = SelectionConfig.from_options(objective="pairwise", estimator="relaxed", select_ratio=0.25)


def learning(rows: int, dim: int) -> float:
    return rows * dim * 1e-3


def rates(**changed) -> Rates:
    given = {
        "rows": 100,
        "dim": 10,
        "read": 2e-3,
        "ids": 1e-3,
        "write": 3e-3,
        "passed": 0.0,
        "lengths": False,
    }
    return Rates(**{**given, **changed})


@pytest.fixture(scope="module")
def shards(tmp_path_factory):
    """Two shards of 1,500 rows together, with lengths."""
    place = tmp_path_factory.mktemp("shards")
    features, quality = clustered(1500, seed=5)
    for number, rows in enumerate(np.array_split(np.arange(1500), 2)):
        columns = {
            "id": pa.array([f"row-{row}" for row in rows]),
            "quality": quality[rows],
            "features": pa.FixedSizeListArray.from_arrays(pa.array(features[rows].ravel()), features.shape[1]),
            "n_tokens": pa.array(100 + rows % 7),
            "text": pa.array(["x" * 50] * len(rows)),
        }
        pq.write_table(pa.table(columns), place / f"{number}.parquet")
    return place


# -- arithmetic --------------------------------------------------------------------------------------------------------


def test_a_part_is_shared_among_as_many_cores_as_it_can_be():
    assert Part(120.0, 4).seconds(cores=2) == 60.0 and Part(120.0, 4).seconds(cores=8) == 30.0
    assert Part(120.0, 0.25).seconds(cores=2) == 120.0


def test_passes_cost_by_rows():
    plan = plan_of(1000, 5, PAIRWISE, rates(passed=1e-2), 60.0, cores=4)
    read, valued = 1000 * (2e-3 + 3e-3), 1000 * (2e-3 + 1e-2)
    assert plan.seconds == pytest.approx(1.0 + 60.0 + read / 4 + 8 * 10.0 / 4 + valued / 4 + 1.0)
    assert plan.selected == 250 and plan.scratch_bytes == 1000 * (2 * 10 + 3 * 8)
    assert plan.memory_bytes == 600_000_000 + 40 * 1000 + 10 * 1000 * 10, "a run announces that of 1,000,000 rows"
    moments = plan_of(1000, 5, replace(PAIRWISE, objective="disf_fixed"), rates(passed=1e-2), 60.0, cores=4)
    assert moments.seconds == pytest.approx(plan.seconds + valued / 4)


# -- the probe ---------------------------------------------------------------------------------------------------------


def test_the_probe_measures_all_and_leaves_nothing(shards, tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    found = measured(CorpusConfig((str(shards),)), PAIRWISE)
    assert not list(tmp_path.iterdir())
    assert (found.rows, found.dim, found.lengths) == (1500, 16, True)
    assert min(found.read, found.ids, found.passed) > 0 <= found.write


@pytest.mark.parametrize(
    "options", [{"objective": "pairwise"}, {"objective": "disf_fixed"}, {"objective": "pairwise", "lamb": 1.0}]
)
def test_a_pass_is_probed_for_every_kind_of_rule(shards, options):
    config = CorpusConfig((str(shards),), quality_columns=(QualityColumn("quality", 1.0, "rank"),))
    found = measured(config, SelectionConfig.from_options(estimator="relaxed", **options))
    assert found.passed > 0


def test_few_rows_are_all_looked_at_and_many_in_part(shards, monkeypatch):
    monkeypatch.setattr(probe, "PROBED_ROWS", 400)
    assert measured(CorpusConfig((str(shards),)), PAIRWISE).rows == 400
    monkeypatch.setattr(probe, "PROBED_ROWS", 1000)
    assert measured(CorpusConfig((str(shards),)), PAIRWISE).rows == 1000, "of both shards"


def test_the_plan_of_a_corpus(shards):
    plan = plan_run(CorpusConfig((str(shards),)), PAIRWISE, learning=learning)
    assert (plan.rows, plan.dim, plan.selected) == (1500, 16, 375)
    assert learning(1500, 16) in [part.core_seconds for part in plan.parts]


def test_what_cannot_be_planned_is_said(shards, tmp_path):
    corpus = CorpusConfig((str(shards),))
    with pytest.raises(InputError, match="does not exist"):
        plan_run(CorpusConfig((str(tmp_path / "nowhere"),)), PAIRWISE, learning=learning)
    with pytest.raises(Stopped):
        plan_run(corpus, PAIRWISE, learning=learning, poll=poll_of(lambda: True))


def test_a_row_that_cannot_be_used_is_named_by_its_shard(tmp_path):
    features, quality = clustered(600, seed=5)
    quality[450] = np.nan
    for number, rows in enumerate(np.array_split(np.arange(600), 2)):
        columns = {
            "id": pa.array([f"row-{row}" for row in rows]),
            "quality": quality[rows],
            "features": pa.FixedSizeListArray.from_arrays(pa.array(features[rows].ravel()), features.shape[1]),
        }
        pq.write_table(pa.table(columns), tmp_path / f"{number}.parquet")
    with pytest.raises(InputError) as refusal:
        plan_run(CorpusConfig((str(tmp_path),)), PAIRWISE, learning=learning)
    assert f"{tmp_path}/1.parquet row 150" in str(refusal.value)
    assert "datamask-plan" not in str(refusal.value)
