"""Run folders, recipes and kept results of another version are told as such, and never opened.

version_0_3 holds a run, its recipe and an anchor as version 0.3.0 (commit 741f81b1) wrote them.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from datamask.cli import main
from datamask.dashboard.runs import outcome, runs_table
from datamask.errors import InputError, StoreError
from datamask.recipes import read_recipe
from datamask.runs.store import RunStore
from datamask.work.result_file import Content, Entry
from tests.making.raw_cache import RawCache
from tests.making.run_folders import config

MADE = Path(__file__).parent / "version_0_3"
SENTENCE = "made by another version of datamask"


@pytest.fixture
def earlier(store):
    """A run of version 0.3.0 among others."""
    shutil.copytree(MADE / "earlier", store.root / "earlier")
    return store.get("earlier")


def test_a_run_is_listed_as_one_and_not_opened(store, earlier, capsys):
    assert earlier.status().state == "failed" and SENTENCE in earlier.status().error
    assert SENTENCE in outcome.story(earlier).text and runs_table.row_of(earlier)["state"] == SENTENCE
    for look in (lambda: earlier.config, earlier.facts, earlier.anchors):
        with pytest.raises(StoreError, match=f"config.json of run earlier cannot be read: it was {SENTENCE}"):
            look()
    root = ["--runs_dir", str(store.root)]
    assert main(["runs", "list", *root]) == 0 and SENTENCE in capsys.readouterr().out
    for command in (["runs", "show", "earlier"], ["resume", "earlier"], ["recipe", "earlier", "--output", "r.json"]):
        assert main([*command, *root]) != 0 and SENTENCE in capsys.readouterr().err


def test_so_is_a_run_with_an_option_that_there_is_not(store):
    run = store.create(config())
    record = json.loads((run.path / "config.json").read_text())
    record["config"]["selection"]["an_option_of_the_future"] = 1
    (run.path / "config.json").write_text(json.dumps(record))
    assert SENTENCE in run.status().error


def test_a_recipe_is_refused(capsys):
    with pytest.raises(InputError, match=SENTENCE):
        read_recipe(MADE / "recipe.json")
    assert main(["apply", str(MADE / "recipe.json"), "shard.parquet", "--output", "out"]) == 2
    assert SENTENCE in capsys.readouterr().err


def test_kept_results_are_not_looked_for_and_made_anew_where_they_lie(store, caplog):
    entry = Entry("8df3df92e3c0a7e6bf491cce62073dc0", "anchor", 7, "facility-4")
    kept = MADE / "anchor-v7-facility-4.cache"
    stored = RawCache(store.cache_dir).at(entry)
    assert RunStore(store.root).cache_dir.name != ".cache"
    stored.path.parent.mkdir(parents=True)
    shutil.copy(kept, stored.path)
    assert stored.find() is None and "its format is 1 instead of 'datamask 1.0'" in caplog.text
    assert stored.find_or_compute(lambda: Content({"random": 0.0})) == stored.find() == Content({"random": 0.0})
