"""The scripts of the web server are found in a checkout, and setup.py puts every one of them into the wheel."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from datamask.dashboard.frame.frame import PAGES
from datamask.dashboard.server.scripts import APP, FOLDER, INSTALLED, IS_INSTALLED

ROOT = Path(__file__).resolve().parents[3]


def test_in_a_checkout_they_stand_beside_the_package():
    assert not IS_INSTALLED and APP == ROOT / "app.py"


@pytest.mark.parametrize("script", [*(script for script, *_ in PAGES), "sample_data/demo/demo.parquet"])
def test_each_is_there_and_goes_to_the_same_place_below_the_folder_of_the_wheel(script):
    tree = ast.parse((ROOT / "setup.py").read_text())
    (served,) = [
        ast.literal_eval(node.value)
        for node in tree.body
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "SERVED"
    ]
    assert (FOLDER / script).is_file()
    packages = {folder: package for package, folder in served.items()}
    package = packages[str(Path(script).parent)]
    place = ROOT.joinpath(*package.split(".")) / Path(script).name
    assert place.relative_to(INSTALLED) == Path(script)
