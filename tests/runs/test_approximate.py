"""A run on an approximate neighbour graph: it says so everywhere, and what it reports at the end is exact."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from datamask.analyses.curves import tables as curves
from datamask.cli.output import summary_text
from datamask.config import CorpusConfig, RunConfig, SelectionConfig
from datamask.corpus import neighbors, partition_search
from datamask.dashboard.runs import outcome, provenance
from datamask.runs import phases
from datamask.runs.execute import execute
from datamask.work.context import Work
from tests.commands import TINY
from tests.reference import truth


@pytest.fixture
def rough(monkeypatch):
    """A search that looks into two cells and no further, so that what it misses can be seen."""
    monkeypatch.setattr(neighbors, "LEAST_APPROXIMATE", 100)
    monkeypatch.setattr(partition_search, "cells_needed", lambda *args: 2)


def start(store, **options):
    options = {"objective": "facility", "select_ratio": 0.1, "lamb": 0.2, "n_epochs": 6, "device": "cpu", **options}
    return store.create(RunConfig(CorpusConfig((TINY,)), SelectionConfig.from_options(**options)))


def test_a_run_on_an_approximate_graph_reports_exact_values_and_says_what_its_graph_is(store, rough):
    run = start(store, neighbors="approximate")
    summary = execute(run).to_dict()
    graph = summary["neighbors"]
    assert graph == run.facts()["neighbors"]
    assert graph["kind"] == "approximate" and 0.3 < graph["recall"] < 0.995 and graph["recall_rows"] == 400
    # the value, from the shards and the written ids alone
    table = pa.concat_tables(pq.read_table(path) for path in sorted(Path(TINY).glob("*.parquet")))
    x = np.array(table["feature_arr"].to_pylist(), dtype=np.float64)
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    place = {id_: row for row, id_ in enumerate(table["chunk_id"].to_pylist())}
    members = [place[id_] for id_ in run.selection()["chunk_id"].to_pylist()]
    assert summary["diversity"] == pytest.approx(truth.facility(x, members), rel=1e-6)
    # what is said of it
    assert "Approximate: finds" in outcome.neighbors(run) and "400 random rows" in outcome.neighbors(run)
    said = dict(provenance.table(run).itertuples(index=False))
    assert said["neighbor graph"] == outcome.neighbors(run)
    assert "The neighbor graph is approximate" in summary_text(run, run.status().result, None)
    assert summary["bound_holds_for"] == "listed" and summary["gap"] >= 0
    assert outcome.certificate(run).partition(":")[0].endswith("on listed neighbors")
    assert "bound of listed neighbors" in curves.references(run, "joint")["note"].tolist()
    assert "--neighbors approximate" in provenance.command(run)


def test_a_run_on_an_exact_graph_says_so_and_one_without_says_nothing(store):
    run = start(store)
    assert execute(run).to_dict()["neighbors"] == {
        "kind": "exact",
        "k": run.facts()["neighbors"]["k"],
        "recall": 1.0,
        "recall_rows": 0,
    }
    assert outcome.neighbors(run).startswith("Exact: each row with its ")
    assert "approximate" not in summary_text(run, run.status().result, None)
    none = start(store, objective="pairwise")
    assert execute(none).to_dict()["neighbors"] is None and outcome.neighbors(none) is None
    assert "neighbor graph" not in set(provenance.table(none)["what"])


def test_progress_rises_through_cells_graph_and_learning_and_gives_a_graph_its_share(store, rough, monkeypatch):
    costs = phases.expected_seconds

    def slow_graph(*given, graph, **named):
        return costs(*given, graph=graph, **named) | ({phases.Phase.GRAPH: 100.0} if graph else {})

    monkeypatch.setattr(phases, "expected_seconds", slow_graph)
    told = []
    execute(start(store, neighbors="approximate"), Work(report=lambda *at: told.append(at)))
    shares = [share for share, _ in told]
    assert shares == sorted(shares) and shares[-1] == 1.0
    graph = [share for share, what in told if what == "Neighbor graph"]
    steps = [share for share, what in told if what.startswith("step ")]
    assert max(share for share, what in told if what == "Neighbor graph: cells") < 0.15
    assert 0.7 < max(graph) <= min(steps)
    # the graph is there now, and learning has its time; how much, says how quick the phases before it were
    told.clear()
    execute(
        start(store, neighbors="approximate", lamb=0.3),
        Work(report=lambda *at: told.append(at)),
    )
    assert min(share for share, what in told if what.startswith("step ")) < 0.7
