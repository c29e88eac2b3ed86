"""However many workers do the tasks, the same rows are selected; what an engine needs is said before."""

from __future__ import annotations

import numpy as np
import pytest

from datamask.config import CorpusConfig, SelectionConfig
from datamask.errors import OptionError
from datamask.out_of_core.engines import open_engine
from datamask.out_of_core.facility import solve_facility
from datamask.out_of_core.solvers import solver_for
from datamask.polling import no_poll
from tests.commands import run
from tests.making.shards import SerialEngine, clustered, scratch_of

ROWS, SIZE = 500, 50


def solved(folder, engine) -> np.ndarray:
    features, quality = clustered(ROWS, seed=3)
    config = SelectionConfig.from_options(objective="facility", lamb=0.4)
    scratch = scratch_of(folder, features, quality)
    return solve_facility(scratch, config, SIZE, engine, listed_rows=250).selected


def test_three_workers_select_what_one_process_does_and_load_no_torch(tmp_path):
    """The rows of a cluster of Ray are compared in test_engines, while it loses nodes."""
    with open_engine("local", workers=3) as engine:
        selected = solved(tmp_path / "workers", engine)
        (loaded,) = engine.run("tests.making.shards:loaded", [{}], poll=no_poll)
    assert "numba" in loaded["modules"] and "torch" not in loaded["modules"]
    assert selected.sum() == SIZE and np.array_equal(selected, solved(tmp_path / "serial", SerialEngine()))


def refused(**options) -> str:
    given = {"objective": "facility", "scratch_dir": "scratch"} | options
    with pytest.raises(OptionError) as refusal:
        solver_for(SelectionConfig.from_options(**given))
    return str(refusal.value)


def test_options_that_do_not_go_together_are_refused_before_anything_is_read():
    assert "--address is of --engine ray" in refused(address="head:6379")
    assert "--engine must be 'local' or 'ray', got 'slurm'" in refused(engine="slurm")
    assert "leave --engine out" in refused(objective="vendi", engine="ray")
    assert "--workers must be a whole number of at least 1, got 0" in refused(workers=0)


def test_scratch_lies_on_this_machine():
    with pytest.raises(OptionError, match=r"--scratch_dir must be a folder of this machine, .*got 's3://bucket/x'"):
        SelectionConfig.from_options(objective="facility", scratch_dir="s3://bucket/x")


def test_an_engine_without_work_is_said(here, capsys):
    words = ["--objective", "facility", "--engine", "ray"]
    words = ["select", "in.parquet", "--output", "out.parquet", "--device", "cpu", *words]
    assert run(*words) == 0
    assert "is solved there, without --engine ray" in capsys.readouterr().err


def test_quality_alone_is_solved_by_passes_where_these_obey_its_rules_and_a_sample_of_all_rows_is_refused():
    def solver(corpus=None, **options):
        return solver_for(SelectionConfig.from_options(lamb=1.0, scratch_dir="scratch", **options), corpus)

    assert solver(objective="vendi").solve is solver(objective="pairwise").solve
    assert solver(objective="pairwise", budget=1000) is None and solver(objective="facility") is None
    sample = CorpusConfig(("shards",), rows=300)
    assert solver(sample, objective="pairwise", all_rows=True) is not None
    with pytest.raises(OptionError, match="leave one of them out"):
        solver(sample, objective="pairwise", all_rows=True, budget=1000)
