"""Fixtures of the run tests."""

from __future__ import annotations

import sys

import pytest

from datamask.runs.store import RunStore
from tests.making import run_folders as helpers


@pytest.fixture
def store(tmp_path):
    """An empty runs folder."""
    return RunStore(tmp_path / "runs")


@pytest.fixture(scope="session")
def tiny_store(tmp_path_factory):
    """A runs folder for runs of sample_data/tiny: its graph and the ends of its scales are made once."""
    return RunStore(tmp_path_factory.mktemp("tiny") / "runs")


@pytest.fixture
def fake_execute(monkeypatch):
    """Runs do what their name says, see `helpers.fake_execute`."""
    monkeypatch.setitem(sys.modules, "datamask.runs.execute", None)  # remembered, and put back afterwards
    helpers.install_fake_execute()
