"""A whole run on real shards: the values it reports, the files it leaves, stopping, kill -9 and resuming."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from datamask.config import CorpusConfig, Quota, RunConfig, SelectionConfig, selection
from datamask.corpus import open_corpus
from datamask.errors import InputError, OptionError, RunStateError
from datamask.runs.execute import execute
from datamask.work.context import Work
from tests.commands import TINY

ROOT = Path(__file__).parents[2]


def start(store, **options):
    corpus_options = {k: options.pop(k) for k in ("quality_columns", "drop_invalid") if k in options}
    options = {"objective": "pairwise", "n_epochs": 8, "n_rollout": 4, "device": "cpu", **options}
    if options.get("estimator") in ("random", "top-quality"):
        options.pop("n_epochs"), options.pop("n_rollout")
    return store.create(RunConfig(CorpusConfig((TINY,), **corpus_options), SelectionConfig.from_options(**options)))


@pytest.fixture
def store(tiny_store):
    return tiny_store


def test_the_tables_agree_with_each_other(store, tiny_rows):
    run = start(store, objective="facility", lamb=0.3, prune=0.2)
    execute(run)
    rows, selection = run.rows(), run.selection()
    assert rows["chunk_id"].to_pylist() == list(tiny_rows[0])
    chosen = np.array(rows["selected"].to_pylist())
    assert set(selection["chunk_id"].to_pylist()) == {i for i, s in zip(tiny_rows[0], chosen) if s}
    assert selection["rank"].to_pylist() == list(range(1, chosen.sum() + 1))
    logits = selection["logit"].to_numpy()
    assert (np.diff(logits) <= 0).all()
    score = np.array(rows["score"])
    assert score == pytest.approx(0.3 * np.array(rows["marginal_quality"]) + 0.7 * np.array(rows["marginal_diversity"]))
    # pruned rows carry no logit and are never selected
    eligible = np.array(rows["eligible"].to_pylist())
    assert (~eligible).sum() == round(0.2 * len(eligible)) and not chosen[~eligible].any()
    assert rows["logit"].null_count == (~eligible).sum()
    stored = json.loads(pq.read_schema(run.path / "selection.parquet").metadata[b"datamask"])
    assert RunConfig.from_dict(stored["config"]) == run.config
    assert stored["fingerprint"] == run.facts()["fingerprint"]


def test_facts_and_metrics(store):
    run = start(store, n_epochs=12)
    summary = execute(run).to_dict()
    facts, metrics = run.facts(), run.metrics()
    assert facts["n"] == summary["n"] == 1200 and facts["selected"] == 360
    # twelve steps, then the polish's swaps and the steps of the bound
    assert metrics["step"].tolist() == list(range(1, len(metrics["step"]) + 1)) and len(metrics["step"]) > 12
    assert np.isfinite(metrics["joint"]).all() and np.isfinite(metrics["batch_joint_mean"][:12]).all()
    assert not np.isfinite(metrics["batch_joint_mean"][12:]).any()
    assert facts["references"]["random"]["joint"] == pytest.approx(0.0, abs=1e-9)
    assert run.status().state == "done"
    with pytest.raises(RunStateError, match="is done"):
        execute(run)


def test_baselines_run_like_any_other(store, tiny_rows):
    run = start(store, estimator="top-quality")
    summary = execute(run).to_dict()
    best = np.sort(tiny_rows[1])[-summary["selected"] :]
    assert summary["quality"] == pytest.approx(best.mean())
    assert summary["calibrated"]["quality"] == pytest.approx(1.0)
    assert run.selection()["logit"].null_count == summary["selected"]
    low = execute(start(store, estimator="random")).to_dict()
    assert abs(low["calibrated"]["quality"]) < 0.2


def test_a_run_stopped_before_its_first_evaluation_resumes(store):
    run = start(store, n_epochs=400)

    def stop():
        return len(run.metrics().get("step", ())) >= 2

    assert execute(run, Work.of(stop)) is None
    assert run.metrics()["step"].max() == 2
    assert execute(run).to_dict()["steps"] == 400


def test_a_stop_is_heard_while_files_are_listed(store, monkeypatch):
    def listing(inputs, option="input", *, poll, split=None):
        stop.append(True)
        poll()
        pytest.fail("listing went on")

    stop = []
    monkeypatch.setattr("datamask.runs.mapping.list_files", listing)
    assert execute(start(store), Work.of(lambda: bool(stop))) is None and stop


def test_raw_scale_reports_both(store):
    summary = execute(start(store, scale="raw", lamb=0.5)).to_dict()
    assert summary["joint"] == pytest.approx(0.5 * summary["quality"] + 0.5 * summary["diversity"])
    assert set(summary["calibrated"]) == {"quality", "diversity", "joint"}


def test_lambda_one_is_top_quality(store, tiny_rows):
    summary = execute(start(store, lamb=1.0, estimator="counterfactual")).to_dict()
    assert summary["quality"] == pytest.approx(np.sort(tiny_rows[1])[-summary["selected"] :].mean(), abs=1e-6)


def test_too_much_pruning_is_refused(store):
    with pytest.raises(OptionError, match=r"prune 0\.8"):
        execute(start(store, prune=0.8))


def test_collapse_keeps_copies_out(store, tmp_path, tiny_rows):
    run = start(store, collapse="exact", objective="facility")
    execute(run)
    corpus = open_corpus(run.config.corpus)
    chosen = np.array(run.rows()["selected"].to_pylist())
    kept = corpus.features[chosen]
    assert len(np.unique(kept, axis=0)) == len(kept)


@pytest.mark.parametrize("estimator", ["counterfactual", "reinforce"])
def test_stopped_and_resumed_equals_unbroken(store, estimator):
    whole, broken = (start(store, estimator=estimator, n_epochs=40, n_rollout=16) for _ in range(2))
    execute(whole, Work(threads=1))

    def stop():
        return len(broken.metrics().get("step", ())) >= 9

    assert execute(broken, Work.of(stop, threads=1)) is None
    assert broken.status().state == "stopped"
    assert broken.metrics()["step"].max() == 9
    execute(broken, Work(threads=1))
    assert broken.metrics()["step"].tolist() == whole.metrics()["step"].tolist()
    assert broken.selection().equals(whole.selection())


def test_killed_and_resumed_equals_unbroken(store):
    """kill -9 in the middle: interrupted, then resumed from its last checkpoint to the same end."""
    options = {"estimator": "counterfactual", "objective": "disf", "n_epochs": 36, "n_rollout": 16, "partial": 0.3}
    whole, broken = start(store, **options), start(store, **options)
    execute(whole, Work(threads=1))
    # it is killed anywhere from step 12 on, and waits at step 24 for a test that comes late
    code = (
        "import sys, time; from datamask.runs import execute as e, recording; "
        "from datamask.runs.store import RunStore; from datamask.work.context import Work; "
        "recording.CHECKPOINT_SECONDS = 0.0; "
        "run = RunStore(sys.argv[1]).get(sys.argv[2]); e.execute(run, "
        "work=Work.of(lambda: len(run.metrics().get('step', ())) >= 24 and time.sleep(600), threads=1))"
    )
    worker = subprocess.Popen(
        [sys.executable, "-c", code, str(store.root), broken.id], cwd=ROOT, env={**os.environ, "OMP_NUM_THREADS": "1"}
    )
    deadline = time.monotonic() + 240
    while time.monotonic() < deadline and len(broken.metrics().get("step", ())) < 12:
        time.sleep(0.02)
    worker.send_signal(signal.SIGKILL)
    worker.wait()
    assert broken.status().state == "interrupted"
    assert 12 <= broken.metrics()["step"].max() < 36
    with broken.writer() as writer:
        assert 0 < writer.load_checkpoint()[1]["state"]["step"] < 36
    execute(broken, Work(threads=1))
    assert broken.metrics()["step"].tolist() == whole.metrics()["step"].tolist()
    assert broken.selection().equals(whole.selection())


def test_planned_steps_are_taken_and_a_resumed_run_goes_on_as_it_began(store, monkeypatch):
    """One that was stopped under another plan ends where it would have ended unbroken: after all its steps."""
    options = {"estimator": "counterfactual", "objective": "pairwise", "n_epochs": 60}
    unbroken = start(store, **options)
    whole = execute(unbroken, Work(threads=1)).to_dict()
    broken = start(store, **options)
    stopped = execute(broken, Work.of(lambda: len(broken.metrics().get("step", ())) >= 9, threads=1))
    assert stopped is None and broken.status().step == 9
    monkeypatch.setattr(selection, "PLANNED_FROM", 10)
    monkeypatch.setattr(selection, "MASK_ROWS", 0)
    planned = start(store, **options)
    assert (
        execute(planned, Work(threads=1)).to_dict()["steps"] == selection.FEWEST_STEPS == planned.status().total_steps
    )
    assert execute(broken, Work(threads=1)).to_dict()["steps"] == whole["steps"] > selection.FEWEST_STEPS
    assert broken.rows().equals(unbroken.rows())


def test_pins_bans_and_quotas_are_met_exactly(store, tiny_rows, tmp_path):
    place, quality, _ = tiny_rows
    ids = list(place)
    worst, best = (np.argsort(quality)[:5], np.argsort(quality)[-5:])
    for name, rows in (("in", worst), ("out", best)):
        (tmp_path / f"{name}.txt").write_text("".join(f"{ids[i]}\n" for i in rows))
    sources = open_corpus(CorpusConfig((TINY,))).metadata["source"].cast(pa.string()).to_pylist()
    quotas = (Quota("source", "torch", 0.5, 0.5), Quota("source", "plotly", 0.0, 0.02))
    run = start(store, lamb=0.6, prune=0.1, pin=str(tmp_path / "in.txt"), ban=str(tmp_path / "out.txt"), quotas=quotas)
    summary = execute(run).to_dict()
    chosen = set(run.selection()["chunk_id"].to_pylist())
    count = {s: sum(sources[i] == s for i, id_ in enumerate(ids) if id_ in chosen) for s in ("torch", "plotly")}
    assert {ids[i] for i in worst} <= chosen and not {ids[i] for i in best} & chosen
    assert count["torch"] == 180 and count["plotly"] <= 7 and len(chosen) == 360
    assert summary["gap"] >= 0 and summary["upper_bound"] < execute(start(store, lamb=0.6)).to_dict()["upper_bound"]


@pytest.mark.parametrize(
    ("content", "options", "says"),
    [
        ("nobody\nplotly.express", {"pin": "ids.txt"}, "ids.txt"),
        (None, {"pin": "ids.txt"}, "ids.txt"),
        (None, {"quotas": (Quota("colour", "red", 0.1, 0.2),)}, "no column 'colour'"),
        (None, {"quotas": (Quota("source", "torch", 0.99, 1.0),)}, "source=torch must have at least"),
    ],
)
def test_impossible_rules_are_refused(store, tmp_path, content, options, says):
    if content:
        (tmp_path / "ids.txt").write_text(content)
    options = {k: str(tmp_path / v) if k == "pin" else v for k, v in options.items()}
    with pytest.raises(InputError, match=says):
        execute(start(store, **options))
