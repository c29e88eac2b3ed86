"""An objective of one's own: the how-to's example works as printed, and nothing but a typed name ever loads one."""

from __future__ import annotations

import importlib
import json
import re
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from datamask import CorpusConfig, RunConfig, SelectionConfig, catalogue
from datamask.cli import main
from datamask.errors import OptionError
from datamask.objectives import cache_name, load, own
from datamask.runs.attempt import attempt
from datamask.runs.store import RunStore
from datamask.work.context import Work
from tests.commands import TINY

ROOT = Path(__file__).parents[1]
CODE = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "own-objective.md").read_text(encoding="utf-8"), re.DOTALL)
FAST = ["--n_epochs", "3", "--select_ratio", "0.1", "--json"]


@pytest.fixture
def place(tmp_path, monkeypatch):
    """A folder with the how-to's file in it, and a process that has not been told to trust it."""
    monkeypatch.setattr(sys, "dont_write_bytecode", True)  # the file changes within a second
    (tmp_path / "spread.py").write_text(CODE[0], encoding="utf-8")
    monkeypatch.setattr(own, "_permitted", set())
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.delitem(sys.modules, "spread", raising=False)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_examples_of_the_how_to_run(place):
    assert len(CODE) == 3
    (place / "sample_data").symlink_to(ROOT / "sample_data")
    done = subprocess.run(
        [sys.executable, "-c", CODE[1] + CODE[2]],
        cwd=place,
        capture_output=True,
        text=True,
        timeout=240,
        env={"PYTHONPATH": f"{ROOT}:{place}", "OMP_NUM_THREADS": "1"},
    )
    assert done.returncode == 0, done.stderr
    assert "all checks hold" in done.stdout and "'joint'" in done.stdout


def test_select_score_and_sweep_with_it_in_a_sum(place, capsys):
    mixed = "facility:0.7,spread:Spread:0.3"
    assert main(["select", TINY, "--output", "o.parquet", "--objective", mixed, *FAST]) == 0
    summary = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert set(summary["objectives"]) == {"facility", "spread:Spread"} and summary["upper_bound"] is None
    assert pq.read_table(place / "o.parquet").num_rows == summary["selected"] == 120
    run = RunStore(place / "runs").get(summary["run_id"])
    assert run.config.selection.terms == (("facility", 0.7), ("spread:Spread", 0.3))
    assert main(["score", TINY, "--selection", "o.parquet", "--objective", "spread:Spread", "--json"]) == 0
    scored = json.loads(capsys.readouterr().out.splitlines()[-1])["selections"][0]
    assert scored["objectives"]["spread:Spread"] == pytest.approx(summary["objectives"]["spread:Spread"], rel=1e-9)
    words = ["sweep", TINY, "--vary", "objective=pairwise,spread:Spread", "--estimator", "top-quality", "--json"]
    assert main(words) == 0
    rows = json.loads(capsys.readouterr().out.splitlines()[-1])["rows"]
    assert [row["objective"] for row in rows] == ["pairwise", "spread:Spread"]


def test_check_objective_prints_one_line_per_check(place, capsys, monkeypatch):
    assert main(["check-objective", "spread:Spread"]) == 0
    assert "all 14 checks hold" in capsys.readouterr().out
    for code, told in (
        (CODE[0].replace("-2.0 *", "2.0 *"), r"(?m)^FAILED swaps: .*expected a correlation of at least 0.98, got -"),
        ("import nowhere_to_be_found", "cannot be imported"),
    ):
        (place / "spread.py").write_text(code, encoding="utf-8")
        monkeypatch.delitem(sys.modules, "spread", raising=False)
        importlib.invalidate_caches()
        assert main(["check-objective", "spread:Spread"]) == 2
        said = capsys.readouterr()
        assert re.search(told, said.out + said.err)


def test_nothing_but_a_typed_name_loads_it(place):
    store = RunStore(place / "runs")
    run = store.create(
        RunConfig(
            CorpusConfig((TINY,)),
            SelectionConfig.from_options(objective="spread:Spread", estimator="random", select_ratio=0.1),
        )
    )
    assert re.fullmatch(r"[a-z0-9-]+", run.id)
    outcome = attempt(run)  # as the dashboard's worker does
    assert isinstance(outcome.error, OptionError) and "typed on the command line" in str(outcome.error)
    assert "spread" not in sys.modules
    assert run.config.selection.objective == "spread:Spread" and "typed" in run.status().error

    assert main(["resume", run.id]) == 2
    assert main(["resume", run.id, "--objective", "pairwise"]) == 2
    assert "spread" not in sys.modules
    assert main(["resume", run.id, "--objective", "spread:Spread"]) == 0
    assert "spread" in sys.modules and run.status().state == "done"
    assert main(["runs", "show", run.id]) == 0
    explain = ["explain", run.id, "--all", "--output", str(place / "why.parquet")]
    assert main(explain) == 2
    assert main([*explain, "--objective", "spread:Spread"]) == 0


def test_a_run_does_not_go_on_with_other_code(place):
    own.permit("spread:Spread")
    first = cache_name("spread:Spread")
    store = RunStore(place / "runs")
    run = store.create(
        RunConfig(
            CorpusConfig((TINY,)),
            SelectionConfig.from_options(objective="spread:Spread", estimator="random", select_ratio=0.1),
        )
    )
    stopped = attempt(run, Work.of(lambda: bool(run.facts().get("own_code"))))
    assert stopped.status.state == "stopped"
    (place / "spread.py").write_text(CODE[0] + "\n# another thought\n", encoding="utf-8")
    assert cache_name("spread:Spread") != first
    outcome = attempt(run)
    assert "has changed since the run began" in str(outcome.error)


@pytest.mark.parametrize(
    "name, told",
    [
        ("os:system", "must have a class system"),
        ("datamask.objectives.contract:SetFunction", "lacks batch"),
        ("facility", "module:Class"),
    ],
)
def test_what_is_no_objective_is_refused(place, name, told):
    with pytest.raises(OptionError, match=told):
        own.permit(name)
    with pytest.raises(OptionError):
        own.load(name)


def test_names_and_weights_are_told_apart():
    assert catalogue.objective_terms("a.b:C:0.5, DiSF ,pairwise:2") == {"a.b:C": 0.5, "disf": 1.0, "pairwise": 2.0}
    assert catalogue.objective_terms("a_b:C_1") == {"a_b:C_1": 1.0}
    for wrong in (
        "facility:x",
        "facility:nan",
        "facility:inf",
        "a:nan",
        "a.b:C:x",
        "a.b:C:0",
        "a/b:C",
        "a.b:C,a.b:C",
        "../x:C",
        "a b:C",
        "pairwise:",
        "x",
    ):
        with pytest.raises(OptionError):
            catalogue.objective_terms(wrong)
    assert load("pairwise").__name__ == "Pairwise"
