"""How long a run will take, from what runs took: each part of it goes with what it goes with."""

import json
from pathlib import Path

import pyarrow as pa
import pytest

from datamask.config import CorpusConfig, RunConfig, SelectionConfig
from datamask.dashboard.data import demo
from datamask.dashboard.runs import cost, time_estimate
from datamask.runs.execute import execute
from datamask.runs.store import RunStore
from tests.making.runs import write_shard

N, DIM = 1000, 16


def made(store, stepping=1.0, after=0.5, graph=0.0, ends=0.0, rest=0.25, steps=50, run_id=None, **options):
    """A done run that took `stepping` for its steps, `after` for swaps and bound, `rest` for all else."""
    run = store.create(RunConfig(CorpusConfig(("a.parquet",)), SelectionConfig.from_options(**options)), run_id=run_id)
    with run.writer() as writer:
        writer.update_facts(fingerprint="f", n=N, dim=DIM)
        for line, seconds in ((1, stepping / steps), (steps, stepping), (steps + 1, stepping + after)):
            writer.append_metrics({"step": line, "seconds": seconds})
        writer.write_selection(pa.table({"id": [1]}), {})
        summary = {
            "n": N,
            "selected": round(N * options.get("select_ratio", 0.3)),
            "steps": steps,
            "seconds": stepping + after,
            "seconds_graph": graph,
            "seconds_ends": ends,
            "seconds_total": stepping + after + graph + ends + rest,
        }
        writer.finish("done", None, "converged", summary=summary)
    return run


def expected(store, **options):
    config = SelectionConfig.from_options(**options)
    return time_estimate.expected(config, N, DIM, config.size(N), "f", store.list())[0]


def test_graph_and_ends_are_kept_for_later_runs_of_their_size(tmp_path):
    store = RunStore(tmp_path)
    made(store, graph=60.0, ends=8.0, steps=1, estimator="relaxed")
    assert expected(store, estimator="relaxed") == pytest.approx(1.75)
    # lists of a smaller selection are longer, those of a larger one are kept; ends are those of a size
    assert expected(store, estimator="relaxed", select_ratio=0.1) == pytest.approx(69.75)
    assert expected(store, estimator="relaxed", select_ratio=0.5) == pytest.approx(9.75)
    made(store, graph=70.0, ends=8.0, steps=1, estimator="relaxed", select_ratio=0.1)
    assert expected(store, estimator="relaxed", select_ratio=0.1) == pytest.approx(1.75)


def test_another_method_finds_the_graph_kept(tmp_path):
    store = RunStore(tmp_path)
    made(store, estimator="counterfactual", n_epochs=50, select_ratio=0.1)
    made(store, graph=60.0, ends=8.0, steps=1, estimator="relaxed", select_ratio=0.2)
    assert expected(store, estimator="counterfactual", n_epochs=50, select_ratio=0.2) == pytest.approx(1.75)


def test_swaps_and_bound_take_as_long_for_any_number_of_masks(tmp_path):
    store = RunStore(tmp_path)
    made(store, stepping=2.0, after=10.0, rest=0.0, estimator="counterfactual", n_epochs=50, n_rollout=2)
    more = {"estimator": "counterfactual", "n_epochs": 100, "n_rollout": 4}
    # twice the steps take twice as long; twice the masks as long to twice as long
    assert expected(store, **more) == pytest.approx(2.0 * 2 * 2**0.5 + 10.0)
    assert expected(store, **{**more, "n_rollout": 16}) is None, "no measured step is like these"
    assert expected(store, **{**more, "partial": 0.5}) is None, "batches are cut in each step"


def test_an_estimate_is_within_a_factor_of_two_of_what_recorded_runs_took(tmp_path):
    """Runs on the demo and on 4,000 of its rows, in the order they were made in, in processor seconds of one thread.

    The ends of a scale take a time that depends on the data, so what is scaled from another corpus may be off by more.
    """
    store, known = RunStore(tmp_path), {"on this corpus": 0, "scaled": 0}
    for line in (Path(__file__).parent / "recorded_runs.jsonl").read_text().splitlines():
        record = json.loads(line)
        config, summary = SelectionConfig.from_options(**record["options"]), record["summary"]
        facts = {"fingerprint": record["corpus"], "n": summary["n"], "dim": record["dim"]}
        price = cost.estimate(config, facts["n"], facts["dim"], facts["fingerprint"], store.list())
        if price.seconds is not None:
            here = "of this corpus" in price.basis
            known["on this corpus" if here else "scaled"] += 1
            factor = max(price.seconds / summary["seconds_total"], summary["seconds_total"] / price.seconds)
            assert factor <= (2.0 if here else 3.5), (record["options"], price.seconds, summary["seconds_total"])
        run = store.create(RunConfig(CorpusConfig(("a.parquet",)), config))
        with run.writer() as writer:
            writer.update_facts(**facts)
            writer.append_metrics({"step": summary["steps"], "seconds": record["stepping"]})
            writer.write_selection(pa.table({"id": [1]}), {})
            writer.finish("done", None, "converged", summary=summary)
    assert known == {"on this corpus": 18, "scaled": 3}


def test_one_run_on_a_busy_machine_says_little(tmp_path):
    store = RunStore(tmp_path)
    for stepping in (1.0, 1.2, 30.0):
        made(store, stepping, rest=0.0, after=0.0, steps=1, estimator="relaxed")
    assert expected(store, estimator="relaxed") == pytest.approx(1.2)


def test_the_run_that_the_demo_brings_was_measured_elsewhere(tmp_path):
    store = RunStore(tmp_path)
    demo.install(store.root)
    (run,) = store.list()
    assert run.config.selection.estimator == "counterfactual"
    assert expected(store, estimator="counterfactual", n_epochs=50) is None
    config = SelectionConfig.from_options(estimator="counterfactual", n_epochs=50)
    _, why = time_estimate.expected(config, N, DIM, config.size(N), "f", store.list())
    assert why.endswith("finishes on this machine")
    made(store, stepping=3.0, estimator="counterfactual", n_epochs=50)
    assert expected(store, estimator="counterfactual", n_epochs=50) == pytest.approx(3.75)


def test_a_run_that_was_copied_from_another_platform_was_measured_elsewhere(tmp_path):
    store = RunStore(tmp_path)
    run = made(store, estimator="relaxed")
    assert expected(store, estimator="relaxed") is not None
    record = json.loads((run.path / "config.json").read_text())
    record["facts"]["versions"]["platform"] = "Linux-1.0-elsewhere"
    (run.path / "config.json").write_text(json.dumps(record))
    assert expected(RunStore(tmp_path), estimator="relaxed") is None


def test_a_run_records_what_its_ends_took(tmp_path):
    corpus, store = write_shard(tmp_path / "shard.parquet"), RunStore(tmp_path / "runs")
    efforts = []
    for lamb in (0.5, 0.2):
        run = store.create(RunConfig(corpus, SelectionConfig.from_options(objective="pairwise", lamb=lamb)))
        efforts.append(execute(run).effort)
    first, later = efforts
    assert 0 <= later.seconds_ends < first.seconds_ends < first.seconds_total
    for effort in efforts:
        assert effort.seconds + effort.seconds_graph + effort.seconds_ends <= effort.seconds_total
