"""Warm starts: which run is taken, that its end is read back, and that a warm run obeys, is no worse, and is sooner."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
import torch

from datamask.config import CorpusConfig, Quota, RunConfig, SelectionConfig
from datamask.corpus import open_corpus
from datamask.dashboard.runs import provenance
from datamask.errors import StoreError
from datamask.evaluation.pool import Pool
from datamask.evaluation.problems import pose
from datamask.learning.newton import IDLE_STEPS
from datamask.learning.warm_start import WarmStart
from datamask.runs.execute import execute
from datamask.runs.store import RunStore
from datamask.runs.warm import stored_end, warm_start
from datamask.work.context import Work
from tests.making.runs import finish_run, write_shard

TINY = CorpusConfig((str(Path(__file__).parents[2] / "sample_data" / "tiny"),))
CASES = [
    ("relaxed", "pairwise", ("rules", "lambda", "size")),
    ("relaxed", "facility", ("rules",)),
    ("relaxed", "disf_fixed", ("size",)),
    ("counterfactual", "facility", ("size",)),
    ("counterfactual", "disf_fixed", ("rules",)),
    ("counterfactual", "pairwise:0.5,facility:0.5", ("lambda", "size")),
]
AS_GOOD = 0.006
"""Joint values of two seeds differ by about so much on this small a corpus."""


@pytest.fixture(scope="module")
def pool(tmp_path_factory):
    return Pool(open_corpus(TINY), torch.device("cpu"), tmp_path_factory.mktemp("warm") / ".cache")


def queued(pool, config, start_from=None):
    run = RunStore(pool.cache_dir.parent).create(RunConfig(TINY, config))
    with run.writer() as writer:
        writer.update_facts(start_from=start_from)
    return run


def ran(pool, config, start_from=None):
    run = queued(pool, config, start_from)
    execute(run, Work(threads=1), pool=pool)
    return run


@pytest.mark.parametrize("estimator, objective, changes", CASES)
def test_a_warm_run_obeys_the_new_rules_is_no_worse_and_takes_fewer_steps(
    pool, tmp_path, estimator, objective, changes
):
    config = SelectionConfig.from_options(estimator=estimator, objective=objective, select_ratio=0.2, device="cpu")
    parent = ran(pool, config)
    assert parent.facts()["warm_from"] is None and "warm" not in dict(provenance.table(parent).values).get("start", "")
    inside = parent.rows()["selected"].to_numpy().astype(bool)
    rng = np.random.default_rng(0)
    banned = rng.choice(np.flatnonzero(inside), 12, replace=False)
    pinned = rng.choice(np.flatnonzero(~inside), 12, replace=False)
    ids = pool.corpus.ids.to_pylist()
    for name, rows in (("pin", pinned), ("ban", banned)):
        (tmp_path / f"{name}.txt").write_text("\n".join(str(ids[row]) for row in rows))
    source = pool.corpus.metadata["source"].cast(pa.string()).to_pylist()
    largest = max(sorted(set(source)), key=source.count)
    share = float(np.mean([source[row] == largest for row in np.flatnonzero(inside)]))
    quota = Quota("source", largest, round(share + 0.02, 2), round(share + 0.05, 2))
    ruled = {"pin": str(tmp_path / "pin.txt"), "ban": str(tmp_path / "ban.txt"), "quotas": (quota,)}
    options = {"rules": ruled, "lambda": {"lamb": 0.6}, "size": {"select_ratio": 0.22, "ban": ruled["ban"]}}
    for change in changes:
        now = replace(config, **options[change])
        warm, cold = ran(pool, now, parent.id), ran(pool, now)
        assert warm.facts()["warm_from"] == warm.status().to_dict()["summary"]["warm_from"] == parent.id
        assert parent.id in dict(provenance.table(warm).values)["start"] and cold.facts()["warm_from"] is None
        mask = warm.rows()["selected"].to_numpy().astype(bool)
        assert mask.sum() == now.size(len(pool)) and not (now.ban and mask[banned].any())
        if now.quotas:
            assert mask[pinned].all()
            held = sum(source[row] == largest for row in np.flatnonzero(mask))
            assert quota.low * mask.sum() <= held <= np.ceil(quota.high * mask.sum())
        after, before = (run.status().to_dict()["summary"] for run in (warm, cold))
        assert after["calibrated"]["joint"] >= before["calibrated"]["joint"] - AS_GOOD
        if before["steps"] == 60:
            assert after["steps"] <= 20 and warm.metrics()["step"][0] == 41
        else:
            assert after["steps"] <= before["steps"] + IDLE_STEPS  # Newton's, which end where so many lead nowhere


def test_what_it_starts_from_is_where_that_run_ended(pool):
    config = SelectionConfig.from_options(estimator="relaxed", objective="disf_fixed", select_ratio=0.2, device="cpu")
    run = ran(pool, config)
    end = stored_end(run, len(pool))
    assert (end["mask"] == run.rows()["selected"].to_numpy()).all()
    assert end["weights"].sum() == pytest.approx(240) and ((end["weights"] >= 0) & (end["weights"] <= 1)).all()
    start = WarmStart.from_arrays(pool.device, end)
    problem = pose(pool, replace(config, select_ratio=0.25)).problem
    more = start.inclusion(problem)
    assert float(more.sum()) == pytest.approx(300) and float(more.min()) >= 0 and float(more.max()) <= 1 + 1e-12
    assert bool((start.subset(problem) | ~start.mask).all())  # who was in may stay
    assert float(start.inclusion(pose(pool, replace(config, select_ratio=0.15)).problem).sum()) == pytest.approx(180)
    with pytest.raises(StoreError, match="rows"):
        stored_end(run, len(pool) + 1)
    dual = ran(pool, SelectionConfig.from_options(estimator="relaxed", objective="pairwise", device="cpu"))
    assert stored_end(dual, len(pool))["y"].shape == (pool.corpus.dim,)


def test_where_too_much_has_to_leave_learned_logits_start_cold(pool, tmp_path):
    config = SelectionConfig.from_options(
        estimator="counterfactual", objective="facility", select_ratio=0.2, device="cpu", n_epochs=12
    )
    parent = ran(pool, config)
    members = np.flatnonzero(parent.rows()["selected"].to_numpy().astype(bool))
    (tmp_path / "ban.txt").write_text("\n".join(str(pool.corpus.ids[int(row)]) for row in members[::2]))
    child = ran(pool, replace(config, ban=str(tmp_path / "ban.txt")), parent.id)
    assert child.facts()["warm_from"] is None and child.status().to_dict()["summary"]["steps"] == 12


def test_a_warm_run_that_was_stopped_ends_where_an_unbroken_one_does(pool):
    config = SelectionConfig.from_options(
        estimator="counterfactual", objective="pairwise", select_ratio=0.2, device="cpu", n_epochs=30
    )
    parent = ran(pool, config)
    now = replace(config, lamb=0.6)
    whole = ran(pool, now, parent.id)
    run = queued(pool, now, parent.id)

    def should_stop():
        return len(run.metrics().get("step", ())) >= 4

    assert execute(run, Work.of(should_stop, threads=1), pool=pool) is None
    RunStore(pool.cache_dir.parent).remove(parent.id)
    summary = execute(run, Work(threads=1), pool=pool).to_dict()
    assert summary["steps"] == 10 and summary["warm_from"] == parent.id
    assert run.rows()["selected"].equals(whole.rows()["selected"])


@pytest.mark.parametrize("estimator, objective", [case[:2] for case in CASES[:3]])
def test_stopped_before_its_first_step_it_still_knows_its_start(pool, estimator, objective):
    """The run that it starts from may be put away in the meantime."""
    config = SelectionConfig.from_options(estimator=estimator, objective=objective, select_ratio=0.2, device="cpu")
    parent = ran(pool, config)
    now = replace(config, lamb=0.6)
    whole = ran(pool, now, parent.id)
    run = queued(pool, now, parent.id)

    def should_stop():
        return "warm_from" in run.facts()  # a learner has begun

    assert execute(run, Work.of(should_stop, threads=1), pool=pool) is None
    RunStore(pool.cache_dir.parent).remove(parent.id)
    assert execute(run, Work(threads=1), pool=pool).to_dict()["warm_from"] == parent.id
    assert run.rows()["selected"].equals(whole.rows()["selected"])


def test_which_run_is_taken(tmp_path):
    files = write_shard(tmp_path / "again.parquet")
    corpus, store = open_corpus(files), RunStore(tmp_path / "runs")

    def settings(**options):
        return SelectionConfig.from_options(**{"objective": "pairwise", "estimator": "relaxed", **options})

    def made(**options):
        return finish_run(
            store, corpus, files, corpus.quality, **{"objective": "pairwise", "estimator": "relaxed", **options}
        )

    far, older, newer = made(lamb=0.2), made(lamb=0.5, select_ratio=0.2), made(lamb=0.4, pin="some.parquet")
    seeded = made(estimator="counterfactual", seed=3, lamb=0.5)
    runs = [seeded, newer, older, far]

    def start(**options):
        return warm_start(settings(**options), runs, corpus.fingerprint)

    assert start(lamb=0.38) == start(lamb=0.38, ban="b.parquet") == newer.id
    assert start(lamb=0.5, select_ratio=0.25) == older.id and start(lamb=0.1) == far.id
    assert start(lamb=0.5, select_ratio=0.6) is None and start(lamb=0.9) is None  # too many more rows, too far
    assert start(lamb=0.45, objective="facility") is None and start(lamb=0.45, center=True) is None
    assert start(lamb=0.45, budget=100) is None
    assert start(lamb=0.4, pin="some.parquet") is None  # was run before, from nothing
    assert start(estimator="counterfactual", seed=3) is None and start(estimator="counterfactual", seed=4) is None
    assert start(estimator="counterfactual", seed=3, lamb=0.6) == seeded.id
    assert start(estimator="greedy") is None
    for cold in ("vendi", "disf", "facility:0.5,disf:0.5"):
        again = settings(estimator="counterfactual", objective=cold, lamb=0.55)
        assert warm_start(again, [made(estimator="counterfactual", objective=cold)], corpus.fingerprint) is None
    assert warm_start(settings(lamb=0.38), runs, "another corpus") is None
