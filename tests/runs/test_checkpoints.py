"""Checkpoints that were altered: none is believed, and none is called a fault of the program."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from datamask.config import CorpusConfig, Quota, RunConfig, SelectionConfig
from datamask.errors import StoreError
from datamask.learning import greedy
from datamask.runs import stages
from datamask.runs.attempt import attempt
from datamask.runs.formats import SEAL, load_arrays, save_arrays, save_sealed
from datamask.runs.store import Run, RunStore
from datamask.work.context import Work

ROWS, DIM = 160, 8
QUOTA = (Quota("source", "web", 0.5, 0.6),)

PLANS = {
    "counterfactual": {"objective": "pairwise", "n_epochs": 40},
    "counterfactual with quotas": {"objective": "facility", "n_epochs": 40, "quotas": QUOTA},
    "counterfactual with a budget": {"objective": "pairwise", "n_epochs": 40, "budget": 4000, "select_ratio": None},
    "reinforce": {"objective": "disf_fixed", "n_epochs": 40, "n_rollout": 8, "partial": 0.5},
    "relaxed": {"objective": "pairwise", "n_epochs": 40},
    "relaxed with quotas": {"objective": "pairwise", "n_epochs": 40, "quotas": QUOTA},
    "relaxed with a budget": {"objective": "pairwise", "n_epochs": 40, "budget": 4000, "select_ratio": None},
    "relaxed of a sum": {"objective": "pairwise:0.5,disf_fixed:0.5", "n_epochs": 40},
    "relaxed of facility": {"objective": "facility"},
    "greedy": {"objective": "pairwise"},
    "greedy of facility": {"objective": "facility"},
    "semdedup": {"objective": "pairwise"},
    "cluster-balanced": {"objective": "pairwise", "clusters": 9, "inside": "best"},
    "cluster-balanced with quotas": {"objective": "pairwise", "quotas": QUOTA},
    "cluster-balanced with a budget": {"objective": "pairwise", "budget": 4000, "select_ratio": None, "clip": 0.6},
}

ALTERATIONS = {
    "one short": lambda v: v[:-1],
    "empty": lambda v: v[:0],
    "in two dimensions": lambda v: v[None],
    "not a number": lambda v: np.full(v.shape, np.nan),
    "infinite": lambda v: np.full(v.shape, np.inf),
    "text": lambda v: np.full(v.shape, "x"),
    "complex": lambda v: v.astype(np.complex64),
    "gone": None,
}


@pytest.fixture(scope="module")
def shard(tmp_path_factory) -> str:
    """A small corpus with tokens and sources."""
    rng = np.random.default_rng(0)
    path = tmp_path_factory.mktemp("corpus") / "shard.parquet"
    features = pa.FixedSizeListArray.from_arrays(pa.array((rng.normal(size=ROWS * DIM) + 0.5).astype(np.float32)), DIM)
    pq.write_table(
        pa.table(
            {
                "chunk_id": [f"id-{k}" for k in range(ROWS)],
                "quality_score": rng.normal(size=ROWS),
                "feature_arr": features,
                "n_tokens": rng.integers(50, 150, ROWS),
                "source": rng.choice(["web", "books"], ROWS),
            }
        ),
        path,
    )
    return str(path)


def made(store: RunStore, shard: str, plan: str) -> Run:
    options = {"estimator": plan.split()[0], "select_ratio": 0.25, "device": "cpu", **PLANS[plan]}
    return store.create(RunConfig(CorpusConfig((shard,)), SelectionConfig.from_options(**options)))


def ended(run: Run, stop_after: int | None = None) -> str:
    """The state in which one attempt left the run; never a fault of the program."""

    def should_stop() -> bool:
        return stop_after is not None and len(run.metrics().get("step", ())) >= stop_after

    outcome = attempt(run, Work.of(should_stop, threads=1))
    assert not outcome.faulty, outcome.error
    return outcome.status.state


@pytest.mark.parametrize("plan", PLANS)
def test_every_state_that_a_learner_reaches_is_one_it_takes_up(store, shard, plan, monkeypatch):
    learn, steps = stages.learn, []

    def checked(learner, state, **given):
        step = learner.step

        def step_and_check(state, poll, trace):
            after, record = step(state, poll, trace)
            learner.check(type(after).from_arrays(*after.arrays(), learner.device))
            steps.append(after.step)
            return after, record

        learner.check(learner.init())
        monkeypatch.setattr(learner, "step", step_and_check)
        return learn(learner, state, **given)

    monkeypatch.setattr(stages, "learn", checked)
    assert ended(made(store, shard, plan)) == "done"
    assert steps


@pytest.fixture
def half(store, shard, request, monkeypatch) -> tuple[Run, Run]:
    """An unbroken run, and one that was stopped after some steps."""
    monkeypatch.setattr(greedy, "STEP_SECONDS", 0.0)
    whole, broken = made(store, shard, request.param), made(store, shard, request.param)
    assert ended(whole) == "done" and ended(broken, 3) == "stopped"
    return whole, broken


def cases(arrays: dict[str, np.ndarray], meta: dict) -> list[tuple[str, dict, dict]]:
    """What can be wrong with a checkpoint that can still be read."""
    listed = []
    for name, array in arrays.items():
        for what, alter in ALTERATIONS.items() if array.size else ():
            altered = {key: value for key, value in arrays.items() if key != name}
            listed.append((f"{name} {what}", altered if alter is None else {**altered, name: alter(array)}, meta))
    listed += [(f"traced {value}", arrays, {**meta, "traced": value}) for value in (None, "x", -1, [], {})]
    for key in ("seconds", "seconds_total", "seconds_graph", "state"):
        listed += [(f"{key} {value}", arrays, {**meta, key: value}) for value in (None, "x", -1, [], {})]
    for key, bad in (("step", (None, "x", -1, 10**9, [])), ("quiet", (None, "x", -1)), ("best_joint", ("x", [], {}))):
        listed += [(f"{key} {value}", arrays, {**meta, "state": {**meta["state"], key: value}}) for value in bad]
    if arrays["rng"].size:
        # of the right length and kind, though no generator was ever there
        listed.append(("rng of another kind", {**arrays, "rng": np.full_like(arrays["rng"], 255)}, meta))
    return [*listed, ("a stranger", {**arrays, "more": np.zeros(3)}, meta)]


@pytest.mark.parametrize("half", ["counterfactual", "reinforce", "relaxed", "greedy"], indirect=True)
def test_an_altered_checkpoint_is_refused_with_the_way_out(half, monkeypatch):
    _, broken = half
    path = broken.path / "checkpoint.npz"
    arrays, meta = load_arrays(path)
    meta.pop(SEAL)
    resumed_state, believed = stages.resumed_state, []

    def each(execution, learner, *_):
        for label, altered, described in cases(arrays, meta):
            save_sealed(path, altered, described)
            try:
                resumed_state(execution, learner, *execution.writer.load_checkpoint())
                believed.append(label)
            except StoreError as error:
                assert "checkpoint.npz is damaged: " in str(error)
                assert str(error).endswith("; delete it to start this run from its beginning")
        return resumed_state(execution, learner, *execution.writer.load_checkpoint())

    monkeypatch.setattr(stages, "resumed_state", each)
    assert ended(broken) == "failed"  # by the last of them
    assert believed == []
    path.unlink()
    monkeypatch.undo()
    assert ended(broken) == "done"


@pytest.mark.parametrize("half", ["counterfactual"], indirect=True)
def test_a_checkpoint_with_other_numbers_of_the_right_kind_is_refused(half):
    _, broken = half
    path = broken.path / "checkpoint.npz"
    arrays, meta = load_arrays(path)
    for altered, described in (
        ({**arrays, "logits": np.zeros_like(arrays["logits"])}, meta),
        (arrays, {name: value for name, value in meta.items() if name != SEAL}),
        ({**arrays, "best": arrays["best"][::-1].copy()}, meta),
        (arrays, {**meta, "state": {**meta["state"], "best_joint": 1e308}}),
    ):
        save_arrays(path, altered, described)
        assert ended(broken) == "failed"
        assert "was altered after it was written; delete it" in broken.status().error


@pytest.mark.parametrize("half", ["greedy"], indirect=True)
def test_picks_of_greedy_that_have_no_order_are_refused(half):
    _, broken = half
    arrays, meta = load_arrays(broken.path / "checkpoint.npz")
    meta.pop(SEAL)
    save_sealed(broken.path / "checkpoint.npz", {**arrays, "logits": 2 * arrays["logits"]}, meta)
    assert ended(broken) == "failed"
    assert "logits must number the picks from 0 downwards" in broken.status().error


@pytest.mark.parametrize("half", ["relaxed", "counterfactual"], indirect=True)
def test_a_resumed_run_keeps_the_ends_of_the_scales_that_it_was_begun_with(half):
    """Another version of datamask may have found others; by these it would go on at another lambda."""
    run = half[1]
    ends = run.facts()["anchors"]
    ends["diversity"]["pairwise"]["best"] += 0.01 * abs(ends["diversity"]["pairwise"]["best"])
    with run.writer() as writer:
        writer.update_facts(anchors=ends)
    assert ended(run) == "done"
    assert run.facts()["anchors"] == run.status().to_dict()["summary"]["anchors"] == ends


def test_a_run_that_did_not_get_to_a_step_takes_the_ends_of_this_version(store, shard):
    run, other = made(store, shard, "relaxed"), made(store, shard, "relaxed")
    with run.writer() as writer:
        end = {"random": 0.0, "best": 1.0, "best_kind": "proved"}
        writer.update_facts(anchors={"quality": end, "diversity": {"pairwise": end}})
    assert ended(run) == ended(other) == "done"
    assert run.facts()["anchors"] == other.facts()["anchors"] == run.status().to_dict()["summary"]["anchors"]
