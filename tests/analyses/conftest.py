"""Finished runs of a small corpus, with the values that a test gives them."""

from __future__ import annotations

import pytest

from datamask.corpus import open_corpus
from datamask.runs.store import RunStore
from tests.making.runs import finish_run, write_shard


@pytest.fixture
def world(tmp_path):
    """A store, a corpus of 240 rows, and its settings."""
    config = write_shard(tmp_path / "shard.parquet")
    return RunStore(tmp_path / "runs"), open_corpus(config), config


@pytest.fixture
def made(tmp_path):
    """Finishes runs of a small corpus: ``made(quality, diversity, lamb=..., ...)``."""
    config = write_shard(tmp_path / "shard.parquet", 60)
    corpus = open_corpus(config)
    store = RunStore(tmp_path / "runs")

    def make(quality, diversity, bound=None, name="", **options):
        run = finish_run(
            store,
            corpus,
            config,
            corpus.quality,
            name=name,
            shares={"quality": quality, "diversity": diversity},
            **{"objective": "pairwise", "estimator": "relaxed", **options},
        )
        if bound is not None:
            with run.writer() as writer:
                writer.set_status(
                    "done", summary={**run.status().to_dict()["summary"], "upper_bound": bound, "gap": 0.01}
                )
        return run

    make.store, make.fingerprint, make.config = store, corpus.fingerprint, config
    return make
