"""Fixtures of the page tests: a runs folder and shards of their own, an open corpus, and pages drawn on them."""

from __future__ import annotations

import functools
import io
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from streamlit import config
from streamlit.components.v2 import manifest_scanner
from streamlit.testing.v1 import AppTest

from datamask.dashboard.data.openings import Opening, openings
from datamask.dashboard.map.named_regions import NamedRegions, stored_regions
from datamask.dashboard.tradeoff import lambda_points
from datamask.dashboard.workspace import files
from datamask.runs.run_queue import run_queue
from datamask.runs.store import Run, RunStore
from tests.making.maps import lay_out
from tests.making.runs import finish_run, write_shard

REGIONS = ("cats, dogs", "birds, fish", "trees, grass")
"""Names of the regions of `mapped`."""

ROOT = Path(__file__).resolve().parents[2]

# a visitor is told no details of a fault; a failing test is
config.set_option("client.showErrorDetails", "full")
# a server looks once through all installed packages for components, and AppTest anew for each app that is drawn
manifest_scanner.scan_component_manifests = functools.cache(manifest_scanner.scan_component_manifests)


@pytest.fixture
def runs_dir(tmp_path, monkeypatch) -> Path:
    """An empty runs folder that the pages use; files may be read under `tmp_path` and the repository only."""
    monkeypatch.setenv("DATAMASK_RUNS_DIR", str(tmp_path / "runs"))
    monkeypatch.setenv("DATAMASK_ROOTS", f"{tmp_path}:{ROOT}")
    monkeypatch.setenv("DATAMASK_SAMPLE", "off")
    return tmp_path / "runs"


@pytest.fixture
def store(runs_dir) -> RunStore:
    """The store the pages use."""
    return RunStore(runs_dir)


@pytest.fixture
def shard(tmp_path) -> Path:
    """One shard of 240 rows, 8 dimensions, with text, source and token counts; the first text is nasty."""
    path = tmp_path / "shard.parquet"
    write_shard(path)
    return path


@pytest.fixture
def idle_queue(runs_dir):
    """No job outlives its test."""
    yield
    run_queue(runs_dir).close(10)


@pytest.fixture
def opened(runs_dir, tmp_path) -> Opening:
    """A corpus that is open in this process, copies counted."""
    opening = openings(runs_dir).start(write_shard(tmp_path / "shard.parquet"), "shard.parquet")
    opening.wait(240)
    assert opening.ready, opening.job.error
    return opening


@pytest.fixture
def finished(opened, store):
    """Makes a finished run on the open corpus: ``finished(lamb=0.3)``. Its rows are ranked by quality, or by scores."""

    def make(scores: np.ndarray | None = None, **about: object) -> Run:
        scores = opened.corpus.quality if scores is None else scores
        return finish_run(store, opened.corpus, opened.config, scores, **about)

    return make


@pytest.fixture
def mapped(opened, store) -> np.ndarray:
    """Crowding and a layout on disk, the three clumps as three far regions; gives the clump of each row."""
    corpus = opened.corpus
    clump = corpus.features[:, :3].argmax(axis=1)
    rng = np.random.default_rng(0)
    corners = np.array([[0, 0], [10, 0], [0, 10]], np.float32)
    lay_out(corpus, store.cache_dir, corners[clump] + rng.normal(0, 0.3, (len(corpus), 2)))
    regions = NamedRegions(clump.astype(np.int32), REGIONS, corners)
    stored_regions(corpus, store.cache_dir, "UMAP").keep(regions)
    return clump


@pytest.fixture
def downloads(monkeypatch) -> dict[str, pa.Table]:
    """The file behind the download of the current selection, in the last drawing."""
    made = {}
    content = files.content

    def noted(corpus, selection):
        given = content(corpus, selection)
        made["file"] = pq.read_table(io.BytesIO(given() if callable(given) else given))
        return given

    monkeypatch.setattr(files, "content", noted)
    return made


@pytest.fixture
def page(runs_dir, monkeypatch):
    """Draws a page: ``page("pages/runs.py", corpus=..., run=...)``. Nothing is solved that nobody asked for."""
    monkeypatch.setattr(lambda_points, "AT_ONCE", -1.0)
    monkeypatch.setattr(lambda_points, "NEEDED", -1.0)

    def draw(script: str = "app.py", **parameters: str) -> AppTest:
        app = AppTest.from_file(str(ROOT / "app.py"), default_timeout=280)
        for name, value in parameters.items():
            app.query_params[name] = value
        if script != "app.py":
            app.switch_page(script)
        app.run()
        assert not app.exception, app.exception[0].message + app.exception[0].stack_trace[-1]
        return app

    return draw


@pytest.fixture
def explained():
    """Fails where a control of a page has no label. It needs no help where its label says what it does."""
    kinds = (
        "slider",
        "number_input",
        "selectbox",
        "multiselect",
        "text_input",
        "text_area",
        "checkbox",
        "toggle",
        "radio",
        "button",
        "segmented_control",
        "file_uploader",
        "download_button",
    )

    def check(app: AppTest, at_least: int = 1) -> None:
        seen = 0
        for kind in kinds:
            for control in app.get(kind):
                seen += 1
                assert getattr(control.proto, "label", ""), f"a {kind} without a label"
        assert seen >= at_least

    return check
