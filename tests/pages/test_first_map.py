"""The first map of the demo is drawn from what is stored: before torch is imported, and so within moments."""

from __future__ import annotations

import os
import subprocess
import sys

from tests.pages.conftest import ROOT

DRAWN = """
import os, sys
from pathlib import Path
from streamlit.testing.v1 import AppTest
from datamask.dashboard.data.openings import openings
from tests.pages.reading import answered, map_data, parcels

app = AppTest.from_file("app.py", default_timeout=240).run()
(opening,) = openings(Path(os.environ["DATAMASK_RUNS_DIR"])).all()
opening.wait(240)
app.run()
imported = {name for name in ("torch", "numba", "scipy.sparse") if name in sys.modules}
assert not app.exception, app.exception[0].message
assert "1,796 of 5,988 rows" in answered(app) and len(parcels(app)["lambdas"]["points"]) > 20 and map_data(app)["names"]
assert not imported, imported
"""


def test_the_first_map_of_the_demo_is_drawn_before_torch_is_imported(tmp_path):
    environment = {**os.environ, "DATAMASK_RUNS_DIR": str(tmp_path), "PYTHONPATH": str(ROOT)}
    environment.pop("DATAMASK_SAMPLE", None)
    done = subprocess.run(
        [sys.executable, "-c", DRAWN], cwd=ROOT, env=environment, capture_output=True, text=True, timeout=600
    )
    assert done.returncode == 0, done.stderr
