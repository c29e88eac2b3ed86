"""What a run over all rows will take: the arithmetic, the probe, and the command."""

from __future__ import annotations

import json
import tempfile
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from datamask import cli
from datamask.config import CorpusConfig, QualityColumn, SelectionConfig
from datamask.corpus.centres import cell_count
from datamask.errors import InputError, OptionError, Stopped
from datamask.out_of_core import plan as plans
from datamask.out_of_core import probe
from datamask.out_of_core.facility import solve_facility
from datamask.out_of_core.plan import Part, Shape, plan_of, plan_run
from datamask.out_of_core.probe import Rates, TaskRate, measured
from datamask.out_of_core.scratch_writing import write_scratch
from datamask.out_of_core.whole_corpus import WholeCorpus
from datamask.polling import poll_of
from tests.making.shards import SerialEngine, clustered

PAIRWISE = SelectionConfig.from_options(objective="pairwise", estimator="relaxed", select_ratio=0.25)
FACILITY = SelectionConfig.from_options(objective="facility", select_ratio=0.1, lamb=0.4)


def learning(rows: int, dim: int) -> float:
    return rows * dim * 1e-3


def rates(**changed) -> Rates:
    given = {
        "rows": 100,
        "blocks": 2,
        "dim": 10,
        "read": 2e-3,
        "ids": 1e-3,
        "write": 3e-3,
        "row_bytes": 50.0,
        "passed": 0.0,
        "tasks": {},
        "task_bytes": 0.0,
        "tokens": None,
    }
    return Rates(**{**given, **changed})


@pytest.fixture(scope="module")
def shards(tmp_path_factory):
    """Two shards of 1,500 rows together, with lengths."""
    place = tmp_path_factory.mktemp("shards")
    features, quality = clustered(1500, seed=5)
    for number, rows in enumerate(np.array_split(np.arange(1500), 2)):
        columns = {
            "id": pa.array([f"row-{row}" for row in rows]),
            "quality": quality[rows],
            "features": pa.FixedSizeListArray.from_arrays(pa.array(features[rows].ravel()), features.shape[1]),
            "n_tokens": pa.array(100 + rows % 7),
            "text": pa.array(["x" * 50] * len(rows)),
        }
        pq.write_table(pa.table(columns), place / f"{number}.parquet")
    return place


# -- arithmetic --------------------------------------------------------------------------------------------------------


def test_a_part_is_shared_among_as_many_cores_as_it_can_be():
    assert Part("x", 120.0, 4, machines=True).seconds(cores=2, machines=1) == 60.0
    assert Part("x", 120.0, 4, machines=True).seconds(cores=2, machines=8) == 30.0
    assert Part("x", 120.0, 4, machines=False).seconds(cores=2, machines=8) == 60.0
    assert Part("x", 120.0, 0.25, machines=True).seconds(cores=2, machines=8) == 120.0


def test_passes_cost_by_rows_and_are_shared_out_among_machines():
    plan = plan_of(Shape(1000, 5, 1e6), PAIRWISE, rates(passed=1e-2), 60.0, cores=4)
    seconds = {part.what: part.core_seconds for part in plan.parts}
    assert seconds == {
        "The ids of all rows, for a uniform sample": 1.0,
        "Learning on the sample": 60.0,
        "All shards into scratch": 5.0,
        "24 passes over scratch, at most": 240.0,
        "All shards again, to value exactly": 1000 * (2e-3 + 1e-2),
        "The ids of the selected rows": 1.0,
    }
    assert plan.seconds(1) == 1.0 + 60.0 + 5.0 / 4 + 240.0 / 4 + 12.0 / 4 + 1.0
    assert plan.seconds(8) == plan.seconds(1) - 240.0 / 4 + 240.0 / 32
    assert (plan.selected, plan.passes, plan.blocks) == (250, 24, 1)
    assert plan.scratch_bytes == 1000 * (2 * 10 + 3 * 8) and plan.decoded_bytes == 50_000
    assert plan.memory_bytes == 600_000_000 + 40 * 1000 + 10 * 1_000_000 * 10
    assert plan.read_bytes == 4e6 + 24 * 1000 * 20
    moments = plan_of(Shape(1000, 5, 1e6), replace(PAIRWISE, objective="disf_fixed"), rates(passed=1e-2), 60.0, cores=4)
    assert (plan.valued, moments.valued) == (1, 2)
    assert plan.recipe.core_seconds == 1000 * (2e-3 + 1e-2) and plan.recipe.seconds(4, 8) == 12.0 / 5


def test_blocks_grow_with_the_rows_and_are_shared_among_machines(monkeypatch):
    monkeypatch.setattr(plans, "LISTED_BLOCK_ROWS", 1000)
    tasks = {
        "datamask.out_of_core.partition:centres": TaskRate(1.0, 1),
        "datamask.out_of_core.partition:assign": TaskRate(2.0, 2),
        "datamask.out_of_core.neighbour_lists:lists": TaskRate(4.0, 2),
    }
    # two hundred times the probed rows, and so many times the cells
    cells = cell_count(20_000) / cell_count(100)
    plan = plan_of(Shape(20_000, 3, 0.0), FACILITY, rates(tasks=tasks, task_bytes=7.0), 0.0, cores=2)
    assert (plan.blocks, plan.passes, plan.recipe) == (20, 0, None)
    assert plan.scratch_bytes == 20_000 * (2 * 10 + 3 * 8 + 7)
    by_name = {(part.what, part.shared): part.core_seconds for part in plan.parts}
    assert by_name[f"{plans.PHASES['partition']}, in one place", 1.0] == 1.0 * cells**2
    assert by_name[plans.PHASES["partition"], 20.0] == 2.0 * 200 * cells
    assert by_name[plans.PHASES["neighbour_lists"], 20.0] == 4.0 * 200
    assert plan.seconds(8) < plan.seconds(4) < plan.seconds(1)
    # where all pairs are compared, time grows with their number
    searched = {"datamask.out_of_core.neighbour_lists:searched": TaskRate(4.0, 2)}
    for neighbors, times in (("exact", 200**2), ("approximate", 200)):
        plan = plan_of(Shape(20_000, 3, 0.0), replace(FACILITY, neighbors=neighbors), rates(tasks=searched), 0.0)
        found = {part.what: part.core_seconds for part in plan.parts}
        assert found[plans.PHASES["neighbour_lists"]] == 4.0 * times
    plan = plan_of(Shape(20_000, 3, 0.0), FACILITY, rates(tasks=tasks, task_bytes=7.0), 0.0, cores=2)
    assert plan.seconds(1000) == plan.seconds(10), "no more than 20 blocks are done at a time"


def test_what_goes_by_cells_grows_with_the_centres_that_a_row_is_compared_with():
    """Ten million rows; the probe has the fewest cells, 16."""
    growth, compared = plans.Growth(Shape(10**7, 1, 0.0), rates(rows=100, blocks=4), 100, pairs=False), 2048 + 141
    assert growth.of("datamask.out_of_core.partition:centres") == pytest.approx(20_000 / 16 * compared / 16)
    for task in plans.BY_ROWS_AND_CENTRES:
        assert growth.of(f"datamask.out_of_core.{task}") == pytest.approx(10**5 * compared / 16)
    assert growth.of("datamask.out_of_core.neighbour_lists:searched") == 10**5


def test_memory_goes_by_the_workers_that_were_asked_for():
    found = rates(tasks={"datamask.out_of_core.neighbour_lists:lists": TaskRate(1.0, 2)})
    few, many = (plan_of(Shape(20_000, 3, 0.0), replace(FACILITY, workers=count), found, 1.0) for count in (2, 8))
    assert (few.cores, many.cores) == (2, 8) and few.memory_bytes < many.memory_bytes


def test_a_larger_corpus_is_one_in_shards_like_these():
    assert Shape(1000, 4, 8e6).with_rows(2500) == Shape(2500, 10, 2e7)


# -- the probe ---------------------------------------------------------------------------------------------------------


def test_the_probe_does_all_that_a_run_does_and_leaves_nothing(shards, tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    (tmp_path / "temporary").mkdir()
    found = measured(CorpusConfig((str(shards),)), FACILITY)
    assert not list((tmp_path / "temporary").iterdir())
    assert (found.rows, found.blocks, found.dim, found.passed) == (1500, probe.PROBED_BLOCKS, 16, 0.0)
    assert found.tokens == pytest.approx(np.mean(100 + np.arange(1500) % 7), rel=0.01)
    assert min(found.read, found.ids, found.row_bytes, found.task_bytes) > 0 <= found.write
    engine = SerialEngine()
    scratch = write_scratch(WholeCorpus.open(CorpusConfig((str(shards),))), tmp_path / "scratch")
    solve_facility(scratch, FACILITY, 150, engine)
    assert found.tasks[probe.IN_ONE_PLACE].seconds > 0
    assert {task.rpartition(":")[2] for task in found.tasks if task != probe.IN_ONE_PLACE} == {
        name for name, _ in engine.calls
    }
    # names that the plan knows tasks by are names of tasks
    assert {task.rpartition(":")[0].rpartition(".")[2] for task in found.tasks} <= set(plans.PHASES)
    for name in (plans.BY_ROWS_AND_CENTRES[0], plans.BY_CENTRES, plans.BY_PAIRS):
        assert any(task.endswith(f".{name}") for task in found.tasks), name
    left = sum(path.stat().st_size for path in (tmp_path / "scratch" / "blocks").iterdir())
    assert found.task_bytes * 1500 >= left > 0


@pytest.mark.parametrize(
    "options", [{"objective": "pairwise"}, {"objective": "disf_fixed"}, {"objective": "pairwise", "lamb": 1.0}]
)
def test_a_pass_is_probed_for_every_kind_of_rule(shards, options):
    config = CorpusConfig((str(shards),), quality_columns=(QualityColumn("quality", 1.0, "rank"),))
    found = measured(config, SelectionConfig.from_options(estimator="relaxed", **options))
    assert found.passed > 0 and not found.tasks and found.task_bytes == 0


def test_few_rows_are_all_looked_at_and_many_in_part(shards, monkeypatch):
    monkeypatch.setattr(probe, "PROBED_ROWS", 400)
    assert measured(CorpusConfig((str(shards),)), PAIRWISE).rows == 400
    monkeypatch.setattr(probe, "PROBED_ROWS", 1000)
    assert measured(CorpusConfig((str(shards),)), PAIRWISE).rows == 1000, "of both shards"


def test_the_plan_of_a_corpus_and_of_a_larger_one(shards):
    planned = plan_run(CorpusConfig((str(shards),)), PAIRWISE, 1e9, learning=learning)
    assert (planned.local.rows, planned.local.shards, planned.fits) == (1500, 2, True)
    assert planned.local.input_bytes == sum(path.stat().st_size for path in shards.iterdir())
    seconds = {part.what: part.core_seconds for part in planned.local.parts}
    assert seconds["Learning on the sample"] == learning(1500, 16)
    assert planned.larger.rows == round(1e9 / planned.rates.tokens)
    assert len(planned.assumed) == 4 and all(plans.ASSUMED["tokens"] != sentence for sentence in planned.assumed)


def test_what_cannot_be_planned_is_said(shards, tmp_path):
    corpus = CorpusConfig((str(shards),))
    with pytest.raises(OptionError, match="is not solved over all rows"):
        plan_run(corpus, SelectionConfig.from_options(objective="disf"), 1e9, learning=learning)
    with pytest.raises(InputError, match="does not exist"):
        plan_run(CorpusConfig((str(tmp_path / "nowhere"),)), PAIRWISE, 1e9, learning=learning)
    with pytest.raises(Stopped):
        plan_run(corpus, PAIRWISE, 1e9, learning=learning, poll=poll_of(lambda: True))


def test_a_row_that_cannot_be_used_is_named_by_its_shard(tmp_path):
    features, quality = clustered(600, seed=5)
    quality[450] = np.nan
    for number, rows in enumerate(np.array_split(np.arange(600), 2)):
        columns = {
            "id": pa.array([f"row-{row}" for row in rows]),
            "quality": quality[rows],
            "features": pa.FixedSizeListArray.from_arrays(pa.array(features[rows].ravel()), features.shape[1]),
        }
        pq.write_table(pa.table(columns), tmp_path / f"{number}.parquet")
    with pytest.raises(InputError) as refusal:
        plan_run(CorpusConfig((str(tmp_path),)), PAIRWISE, 1e9, learning=learning)
    assert f"{tmp_path}/1.parquet row 150" in str(refusal.value)
    assert "datamask-plan" not in str(refusal.value)


# -- the command -------------------------------------------------------------------------------------------------------


def test_the_command_says_it_in_words_and_as_json(shards, capsys):
    words = ["plan", str(shards), "--objective", "pairwise", "--select_ratio", "0.2", "--machines", "3"]
    assert cli.main(words) == 0
    text = capsys.readouterr().out
    assert text.startswith("300 of 1,500 rows of 16 dimensions, in 2 shards")
    for part in (
        "passes over scratch",
        "3 MACHINES",
        "Measured on 1,500 rows",
        "Assumed:",
        "recipe",
    ):
        assert part in text, part
    assert "tokens:" not in text
    assert cli.main([*words, "--json"]) == 0
    assert "for_tokens" not in json.loads(capsys.readouterr().out.splitlines()[-1])
    assert cli.main([*words, "--tokens", "15T"]) == 0
    assert "For 15T tokens:" in capsys.readouterr().out
    assert cli.main([*words, "--tokens", "1G", "--json"]) == 0
    record = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert record["rows"] == 1500 and record["machines"] == 3 and record["fits_in_memory"]
    assert record["for_tokens"]["tokens"] == 1e9
    assert record["seconds"] == pytest.approx(sum(part["seconds"] for part in record["parts"]))


def test_the_command_plans_blocks_of_all_rows_by_default(shards, capsys, monkeypatch):
    monkeypatch.setattr(plans, "LISTED_BLOCK_ROWS", 500)
    assert cli.main(["plan", str(shards), "--json"]) == 0
    record = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert record["blocks"] == 3 and record["passes"] == 0 and record["recipe"] is None
    assert record["seconds_on_machines"] < record["seconds"]


def test_the_command_refuses_in_a_sentence(shards, capsys):
    for words, sentence in (
        (["--machines", "0"], "--machines must be at least 1, got 0"),
        (["--tokens", "many"], "--tokens must be a number of tokens"),
        (["--objective", "pairwise", "--quota", "source=web:0:0.5"], "facility alone obeys quotas"),
    ):
        assert cli.main(["plan", str(shards), *words]) == 2
        assert sentence in capsys.readouterr().err


@pytest.mark.parametrize(
    "seconds, text",
    [
        (1e-6, "less than 1 s"),
        (2.5, "2.5 s"),
        (75, "75 s"),
        (600, "10 min"),
        (9000, "2.5 h"),
        (3e6, "35 days"),
        (1e9, "32 years"),
    ],
)
def test_times_of_any_length_are_said(seconds, text):
    from datamask.out_of_core.plan_words import time_text

    assert time_text(seconds) == text
