"""Who solves what over all rows, by the settings alone."""

from __future__ import annotations

import pytest

from datamask.config import CorpusConfig, SelectionConfig
from datamask.errors import OptionError
from datamask.out_of_core.solvers import BY_PASSES, solver_for


def test_scratch_lies_on_this_machine():
    with pytest.raises(OptionError, match=r"--scratch_dir must be a folder of this machine, .*got 's3://bucket/x'"):
        SelectionConfig.from_options(objective="facility", scratch_dir="s3://bucket/x")


def test_quality_alone_is_solved_by_passes_where_these_obey_its_rules_and_a_sample_of_all_rows_is_refused():
    def solver(corpus=None, **options):
        return solver_for(SelectionConfig.from_options(lamb=1.0, scratch_dir="scratch", **options), corpus)

    assert solver(objective="vendi") is solver(objective="pairwise") is BY_PASSES
    assert solver(objective="pairwise", budget=1000) is None and solver(objective="facility") is None
    sample = CorpusConfig(("shards",), rows=300)
    assert solver(sample, objective="pairwise", all_rows=True) is not None
    with pytest.raises(OptionError, match="leave one of them out"):
        solver(sample, objective="pairwise", all_rows=True, budget=1000)
