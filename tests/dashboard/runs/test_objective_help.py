"""The picture in the help of the objective menu is what the objectives select, and what is said of it is true."""

from __future__ import annotations

import base64
import importlib.util
import re
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

from datamask.dashboard.runs import objective_help
from datamask.options import OPTIONS
from tests.reference import truth

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture(scope="module")
def script():
    """``docs/draw_objectives.py``, which is in no package."""
    spec = importlib.util.spec_from_file_location("draw_objectives", ROOT / "docs" / "draw_objectives.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def masks(script, tmp_path_factory):
    return script.solve(tmp_path_factory.mktemp("drawn"))


def told(svg: str) -> list[tuple[int, int]]:
    """Below each panel, the percent of crowd and duplicates that it selects."""
    return [tuple(map(int, pair)) for pair in re.findall(r"crowd (\d+)%, duplicates (\d+)%", svg)]


def test_the_committed_picture_is_what_the_script_draws(script, masks):
    committed, drawn = objective_help.PICTURE.read_text(encoding="utf-8"), script.drawing(masks)
    assert len(told(committed)) == len(masks) == 4
    assert np.abs(np.subtract(told(committed), told(drawn))).max() <= 1  # another processor may swap a row or two
    for svg in (committed, drawn):
        assert all(title in svg for title in ("Facility location", "Pair-wise similarity", "DiSF", "Vendi entropy"))
        panels = ElementTree.fromstring(svg).findall(".//*[@class='s']")
        assert [panel.get("d").count("M") for panel in panels] == [143] * 4  # 0.15 of 950, halves up
        assert "http" not in svg.replace("http://www.w3.org/2000/svg", "") and len(svg) < 20_000


def test_every_objective_selects_better_than_chance_by_its_own_measure(script, masks):
    features = script.planted()[3].astype(np.float64)
    features /= np.linalg.norm(features, axis=1, keepdims=True)
    random = np.random.default_rng(0)
    for name, mask in masks.items():
        value = truth.OBJECTIVES[name]
        chance = [value(features, random.choice(len(mask), mask.sum(), replace=False)) for _ in range(3)]
        assert value(features, mask.nonzero()[0]) > max(chance)


def test_facility_keeps_one_row_of_each_family_and_the_others_several(script, masks):
    group = script.planted()[1]
    family = (np.arange(len(group)) - script.SIZES[0]) // script.FAMILY
    kept = {name: np.bincount(family[mask & (group == 1)], minlength=script.FAMILIES) for name, mask in masks.items()}
    assert (kept["facility"] == 1).all()
    assert all(kept[name].mean() > 1.5 for name in ("pairwise", "disf", "vendi"))


def test_the_help_holds_the_picture():
    help_text = objective_help.text()
    assert help_text.startswith(OPTIONS["objective"].help)
    (source,) = re.findall(r"\(data:image/svg\+xml;base64,([^)]+)\)", help_text)
    assert base64.b64decode(source) == objective_help.PICTURE.read_bytes()
