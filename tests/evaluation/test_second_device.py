"""Beside the CPU: every method selects on a second device what it selects on the CPU, and mixes no tensors of both."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from datamask import score_selection, select
from datamask.config import SelectionConfig
from datamask.evaluation.live import Live
from datamask.evaluation.pool import Pool
from datamask.objectives import facility
from datamask.options.quotas import Quota
from tests.making.pools import made_corpus
from tests.making.second_device import second_device

FEW_MASKS = {"n_epochs": 3, "n_rollout": 8}
METHODS = [
    ("facility", {}),
    ("facility", {"estimator": "counterfactual", **FEW_MASKS}),
    ("facility", {"estimator": "greedy"}),
    ("facility", {"estimator": "semdedup"}),
    ("pairwise", {}),
    ("pairwise", {"estimator": "reinforce", **FEW_MASKS}),
    ("pairwise", {"estimator": "cluster-balanced"}),
    ("disf_fixed", {}),
    ("disf_fixed", {"estimator": "counterfactual", **FEW_MASKS}),
    ("pairwise:0.7,facility:0.3", {"estimator": "counterfactual", **FEW_MASKS}),
]
RULES = {
    "named rows": {"pin": "pin.txt", "ban": "ban.txt", "given": "given.txt"},
    "quotas": {"quotas": tuple(map(Quota.parse, ("domain=d0:0.25:0.35", "domain=d1:0.05:0.2")))},
    "budget": {"budget": 1500, "select_ratio": None, "pin": "pin.txt", "given": "given.txt"},
}


@pytest.fixture(scope="module")
def corpus():
    return made_corpus(200)


@pytest.fixture
def lists(tmp_path, monkeypatch):
    """Files of ids to pin, ban and count as given, in the working folder."""
    monkeypatch.chdir(tmp_path)
    for name, ids in (("pin", (1, 2, 30)), ("ban", range(100, 130)), ("given", range(50, 58))):
        (tmp_path / f"{name}.txt").write_text("\n".join(map(str, ids)))


def selected(corpus, device, options):
    options = {"select_ratio": 0.15, "device": device} | options
    selection = select(corpus, **{name: value for name, value in options.items() if value is not None})
    return selection.ids.to_pylist(), selection.summary["joint"]


def check_both_devices_select_the_same(corpus, options):
    here = selected(corpus, "cpu", options)
    with second_device():
        there = selected(corpus, "cuda", options)
    assert there[0] == here[0] and there[1] == pytest.approx(here[1], abs=1e-6)


def test_it_refuses_what_a_gpu_refuses():
    here = torch.arange(4)
    with second_device() as device:
        there = torch.zeros(4, device=device)
        assert there.topk(2).values.device == (there + 1).device == device and there.cpu().device.type == "cpu"
        with pytest.raises(RuntimeError, match="same device"):
            there + here
        with pytest.raises(RuntimeError, match="indices should be"):
            here[there.long()]
        with pytest.raises(RuntimeError, match="same device"):
            there[here] = torch.ones(4)
        with pytest.raises(TypeError, match="numpy"):
            np.asarray(there)
        with pytest.raises(RuntimeError, match="generator"):
            torch.rand(4, device=device, generator=torch.Generator())
        assert (there[here] + 2).sum().item() == 8


@pytest.mark.parametrize(("objective", "options"), METHODS)
def test_every_method_runs_on_a_second_device(corpus, objective, options):
    check_both_devices_select_the_same(corpus, {"objective": objective, **options})


@pytest.mark.parametrize(
    ("rules", "objective"), [("named rows", "pairwise"), ("quotas", "facility"), ("budget", "facility")]
)
@pytest.mark.usefixtures("lists")
def test_rules_hold_on_a_second_device(corpus, objective, rules):
    check_both_devices_select_the_same(corpus, {"objective": objective, **RULES[rules]})


@pytest.mark.parametrize("objective", ["facility", "pairwise"])
def test_the_slider_and_the_measures_run_on_a_second_device(corpus, tmp_path, objective):
    def answers(device, folder):
        config = SelectionConfig.from_options(objective=objective, estimator="relaxed", select_ratio=0.15)
        live = Live(Pool(corpus, torch.device(device), folder), config)
        live.solve(0.5)
        if live.provable(0.5):
            live.prove(0.5)
        score = score_selection(corpus, np.arange(0, 200, 7), folder, device)["objectives"]
        return [live.answer(0.46).joint, live.refined(0.47).joint, score[objective]]

    here = answers("cpu", tmp_path / "here")
    with second_device() as device:
        there = answers(str(device), tmp_path / "there")
    assert there == pytest.approx(here, abs=1e-6)


def test_members_near_rows_that_list_none_are_found_on_a_second_device(corpus, monkeypatch):
    monkeypatch.setattr(facility, "FEW_SIMILARITIES", 0)

    def values(device):
        features = torch.from_numpy(corpus.features).to(device)
        lists = facility.exact_lists(features, 6)
        rough, mask = facility.Facility(features, *lists, exact_lists=False), torch.zeros(200, dtype=torch.bool)
        mask[::20] = True
        mask = mask.to(device)
        assert int((rough.coverage(mask).member_count == 0).sum()) > 50
        return [rough.value(mask), rough.sampled_value(mask), *rough.final_marginals(mask).cpu().tolist()]

    here = values("cpu")
    with second_device() as device:
        assert values(device) == pytest.approx(here, abs=1e-6)
