"""Fixtures of the run tests."""

from __future__ import annotations

import sys

import numpy as np
import pyarrow.parquet as pq
import pytest

from datamask.runs.store import RunStore
from tests.commands import TINY
from tests.making import run_folders as helpers


@pytest.fixture
def store(tmp_path):
    """An empty runs folder."""
    return RunStore(tmp_path / "runs")


@pytest.fixture(scope="session")
def tiny_store(tmp_path_factory):
    """A runs folder for runs of sample_data/tiny: its graph and the ends of its scales are made once."""
    return RunStore(tmp_path_factory.mktemp("tiny") / "runs")


@pytest.fixture(scope="session")
def tiny_rows():
    """Row of each id, quality and unit features of sample_data/tiny, read with pyarrow and numpy alone."""
    table = pq.read_table(TINY)
    x = np.array(table["feature_arr"].to_pylist(), dtype=np.float64)
    return (
        {id_: row for row, id_ in enumerate(table["chunk_id"].to_pylist())},
        table["quality_score"].to_numpy().astype(np.float64),
        x / np.linalg.norm(x, axis=1, keepdims=True),
    )


@pytest.fixture
def fake_execute(monkeypatch):
    """Runs do what their name says, see `helpers.fake_execute`."""
    monkeypatch.setitem(sys.modules, "datamask.runs.execute", None)  # remembered, and put back afterwards
    helpers.install_fake_execute()
