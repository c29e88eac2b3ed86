"""The planted toy: what the help says of each objective is what was computed."""

from __future__ import annotations

import numpy as np
import pytest

from datamask.dashboard.analyses.toy import solving as toy
from datamask.dashboard.analyses.toy.chart import toy as picture
from datamask.errors import Stopped
from datamask.evaluation import toy as solver
from datamask.runs.toy import write
from datamask.work.cache import Cache
from datamask.work.worker import worker
from tests.reference import truth


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("toy")
    job = toy.start(folder)
    job.wait(280)
    assert job.state == "done", job.error
    return folder


def test_every_objective_selected_by_itself(folder):
    found = toy.load(folder)
    points, group, quality, features = solver.planted()
    assert (found.points == points).all() and (found.group == group).all() and (found.quality == quality).all()
    assert set(found.masks) == set(toy.TITLES) == set(solver.OBJECTIVES)
    x = features.astype(np.float64) / np.linalg.norm(features, axis=1, keepdims=True)
    random = np.random.default_rng(0)
    for name, mask in found.masks.items():
        assert mask.sum() == 143  # 0.15 of 950, halves up
        if name == "graphcut":
            continue  # its truth in tests is for lists of the whole pool
        chance = [truth.OBJECTIVES[name](x, random.choice(len(x), mask.sum(), replace=False)) for _ in range(3)]
        assert truth.OBJECTIVES[name](x, mask.nonzero()[0]) > max(chance)


def test_the_sentences_beside_the_panels_are_true(folder):
    found = toy.load(folder)
    shares = {name: found.masks[name][found.group == 1].mean() for name in toy.TITLES}
    stored = solver.Toy(found.points, found.group, found.quality, found.masks)
    assert stored.families("facility") == solver.FAMILIES
    assert found.masks["facility"][found.group == 1].sum() == solver.FAMILIES  # one of each family
    assert shares["pairwise"] > 2 * shares["facility"] and shares["disf"] > 1.5 * shares["facility"]
    assert shares["graphcut"] < shares["pairwise"]
    assert 1.5 < found.masks["graphcut"][found.group == 1].sum() / solver.FAMILIES < 2.5  # "about two of each family"
    for name in ("facility", "graphcut"):
        assert found.masks[name][found.group == 0].mean() < found.ratio
    table = toy.table(found)
    assert toy.FAMILY == solver.FAMILY
    assert table["n"].tolist() == list(solver.SIZES)
    assert table["Facility location"].tolist() == pytest.approx(list(stored.shares()["facility"].values()))


def test_the_picture_shows_every_sample_in_every_panel(folder):
    found = toy.load(folder)
    figure = picture(found, dark=True)
    assert sum(len(trace.x) for trace in figure.data) == 4 * len(found.group)
    assert [trace.name for trace in figure.data if trace.showlegend] == list(toy.GROUPS)


def test_nothing_is_left_of_a_stopped_solving(tmp_path):
    with pytest.raises(Stopped):
        write(tmp_path, toy.ENTRY, should_stop=lambda: True)
    assert toy.load(tmp_path) is None and worker().find("no such") is None


def test_a_damaged_file_is_none_at_all(folder, tmp_path):
    path = Cache(tmp_path).path(toy.ENTRY)
    path.parent.mkdir()
    whole = Cache(folder).path(toy.ENTRY).read_bytes()
    for damaged in (whole[: len(whole) // 2], b"no archive", b""):
        path.write_bytes(damaged)
        assert toy.load(tmp_path) is None
