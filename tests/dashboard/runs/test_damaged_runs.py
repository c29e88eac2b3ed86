"""What the dashboard and the command line say of runs whose records were altered: a sentence, never a traceback."""

from __future__ import annotations

import copy
import json
import random
import shutil
import traceback
from pathlib import Path

import pytest

from datamask.analyses.comparison import tables as comparison
from datamask.analyses.curves import tables as curves
from datamask.analyses.frontier import tables as frontier
from datamask.analyses.report import page
from datamask.analyses.report.sentence import sentence
from datamask.cli import main
from datamask.config import RunConfig, SelectionConfig
from datamask.dashboard.runs import candidates, listing, outcome, provenance, runs_table
from datamask.dashboard.tradeoff import spots
from datamask.errors import DatamaskError
from datamask.runs.execute import execute
from datamask.runs.health import learning
from datamask.runs.run_queue import RunQueue
from datamask.runs.store import Run, RunStore
from datamask.work.context import Work
from tests.making.runs import write_shard

VALUES = (None, "", "x", "<b>", [], {}, -1, 2**70, 10**400, True, [1], {"a": 1}, 0.5, 1e300, float("nan"))
ROWS = 80
PER_ENTRY = 1


@pytest.fixture(scope="module")
def made(tmp_path_factory) -> Path:
    """A runs folder with a learned run and an unharmed copy of it."""
    folder = tmp_path_factory.mktemp("damaged")
    selection = SelectionConfig.from_options(
        objective="pairwise",
        estimator="counterfactual",
        n_epochs=12,
        select_ratio=0.2,
        device="cpu",
        collapse="exact",
        prune=0.1,
    )
    config = write_shard(folder / "shard.parquet", ROWS)
    run = RunStore(folder / "runs").create(RunConfig(config, selection), run_id="altered")
    execute(run, Work(threads=1))
    run.relabel(tags=["a"])
    shutil.copytree(run.path, folder / "runs" / "whole")
    return folder / "runs"


def of_one(run: Run) -> None:
    """What pages ask about a run that can be read."""
    for view in (
        listing.name_of,
        runs_table.row_of,
        curves.curve,
        curves.measures,
        curves.across,
        spots.label_of,
        spots.spot_of,
        outcome.certificate,
        outcome.rules,
        outcome.neighbors,
        outcome.story,
        outcome.headline,
        provenance.table,
        provenance.command,
        provenance.shards,
        provenance.source_files,
        learning,
        sentence,
    ):
        try:
            view(run)
        except DatamaskError:
            continue


def look(root: Path) -> None:
    """Every list of runs, and the page of each run in it."""
    store = RunStore(root)
    assert "whole" in {run.id for run in listing.readable(store)}
    listing.runs_on(store, None)
    listing.running(store, RunQueue(root))
    runs = listing.readable(store)
    fingerprint = store.get("whole").facts()["fingerprint"]
    listing.tags_of(runs), listing.matching(runs, "a")
    spots = frontier.survey(runs, fingerprint).spots
    for option in ("select_ratio", "n_rollout"):
        for one in frontier.series(spots, option):
            frontier.ends(one), frontier.curves(one, option)
    candidates.candidates(runs, fingerprint)
    if len(runs) > 1:
        comparison.load(runs, ROWS)
    for run in runs:
        if run.id != "whole":
            of_one(run)


def entries(record: object, above: tuple = ()) -> list[tuple]:
    """The path of every entry of a record."""
    if isinstance(record, dict):
        return [path for key, value in record.items() for path in [(*above, key), *entries(value, (*above, key))]]
    return []


def altered(record: dict, place: tuple, value: object) -> str:
    """The record with one entry changed; `...`: without it."""
    record = copy.deepcopy(record)
    holder = record
    for key in place[:-1]:
        holder = holder[key]
    if value is ...:
        del holder[place[-1]]
    else:
        holder[place[-1]] = value
    return json.dumps(record)


@pytest.mark.parametrize("name", ["status.json", "config.json", "label.json"])
def test_no_altered_record_takes_a_list_or_a_page_down(made, name):
    path = made / "altered" / name
    before = path.read_text()
    record, draw, faults = json.loads(before), random.Random(name), []
    try:
        for place in entries(record):
            for value in [..., *draw.sample(VALUES, PER_ENTRY)]:
                path.write_text(altered(record, place, value))
                try:
                    look(made)
                except Exception as error:
                    where = traceback.extract_tb(error.__traceback__)[-1]
                    faults.append(f"{'.'.join(place)} = {value!r}: {error!r} at {where.filename}:{where.lineno}")
    finally:
        path.write_text(before)
    assert faults == []


@pytest.mark.parametrize("name", ["status.json", "config.json"])
def test_the_command_line_and_the_report_say_what_is_wrong(made, name, capsys):
    path = made / "altered" / name
    before = path.read_text()
    record, draw = json.loads(before), random.Random(name)
    try:
        for place in draw.sample(entries(record), 12):
            path.write_text(altered(record, place, draw.choice(VALUES)))
            for words in (["list"], ["list", "--json"], ["show", "altered"], ["show", "altered", "--json"]):
                code = main(["runs", *words, "--runs_dir", str(made)])
                said = capsys.readouterr().err
                assert code in (0, 2) and "Traceback" not in said and "nternal error" not in said, place
            store = RunStore(made)
            for run in listing.readable(store):
                page.report(run, listing.readable(store))
    finally:
        path.write_text(before)
