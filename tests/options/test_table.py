"""The table of options: what each entry says of itself, and that one entry is all that an option needs."""

from __future__ import annotations

import dataclasses
import json
import os
import shutil
import subprocess
import sys

import pytest

from datamask import catalogue
from datamask.config import PAPER_PRESET, CorpusConfig, RunConfig, SelectionConfig
from datamask.options import FIND, OPTIONS, WHAT, Choice, Number, Whole
from datamask.runs.store import RunStore
from datamask.runs.varying import Plan, parse_vary, points, variable
from tests.commands import ROOT

NUMBER_ENTRY = """
    patience: int | None = option(
        Whole(1), "Patience", "steps without a better selection before it stops", "STEPS", FIND,
        owners={"counterfactual": 5}, varied="patience",
        control=Control({"min_value": 1, "max_value": 100, "step": 1}), help="How long the learner waits.")
"""
CHOICE_ENTRY = """
    order: str = option(
        Choice({"given": "as they came", "shuffled": "shuffled"}), "Order of the rows", "given or shuffled", "HOW",
        WHAT, default="given", varied="order", control=Control(), help="In which order rows are looked at.")
"""

LOOK = """
import json

from streamlit.testing.v1 import AppTest

from datamask.cli.parser import parse, run_config
from datamask.config import CorpusConfig, RunConfig, SelectionConfig
from datamask.dashboard import comparison
from datamask.errors import OptionError
from datamask.options import OPTIONS
from datamask.runs.varying import parse_vary, points

def refusal(**options):
    try:
        SelectionConfig.from_options(**options)
    except OptionError as error:
        return str(error)

def form():
    from datamask.dashboard.ui import forms
    forms.run_form()

app = AppTest.from_function(form, default_timeout=60).run()
order = app.selectbox(key="form_order")
app.selectbox(key="form_estimator").set_value("counterfactual").run()
patience = app.number_input(key="form_patience")
patience.set_value(9).run()
app.selectbox(key="form_order").set_value("shuffled").run()
drawn = {control.key for kind in ("selectbox", "number_input", "checkbox") for control in app.get(kind)}
assert not app.exception and not app.error

config = SelectionConfig.from_options(patience=7, order="shuffled")
run = RunConfig(CorpusConfig(("a.parquet",)), config)
print(json.dumps({
    "refused": [refusal(patience=0), refusal(order="backwards"), refusal(estimator="relaxed", patience=3)],
    "defaults": [SelectionConfig.from_options(estimator=name).patience for name in ("counterfactual", "relaxed")],
    "automatic": config.estimator,
    "command line": run.arguments("o.parquet"),
    "read back": run_config(parse(run.arguments("o.parquet"))) == run,
    "record": RunConfig.from_dict(run.to_dict()) == run,
    "old record": SelectionConfig.from_dict({"objective": "disf", "estimator": "counterfactual"}).patience,
    "not drawn": [name for name, option in OPTIONS.items() if option.control is not None
                  and (not option.owners or "counterfactual" in option.owners) and f"form_{name}" not in drawn],
    "form": [order.label, order.options, patience.label, patience.help, patience.value],
    "compared": {name: comparison.SETTINGS[name] for name in ("patience", "order")},
    "swept": [point.words for point in points({}, [parse_vary("patience=3:5:2"), parse_vary("order=given,shuffled")])],
}))
"""


@pytest.fixture(scope="module")
def longer(tmp_path_factory):
    """A copy of the program whose table has two entries more, and what its doors make of them."""
    tree = tmp_path_factory.mktemp("longer")
    shutil.copytree(ROOT / "datamask", tree / "datamask", ignore=shutil.ignore_patterns("__pycache__"))
    table = tree / "datamask/options/table.py"
    place = "    center: bool = option("
    before, after = table.read_text(encoding="utf-8").split(place)
    table.write_text(f"{before.rstrip()}{NUMBER_ENTRY}{CHOICE_ENTRY.lstrip(chr(10))}{place}{after}", encoding="utf-8")
    environment = {**os.environ, "PYTHONPATH": str(tree)}
    (tree / "look.py").write_text(LOOK, encoding="utf-8")
    seen = subprocess.run(
        [sys.executable, "look.py"], cwd=tree, env=environment, capture_output=True, text=True, timeout=240
    )
    assert seen.returncode == 0, seen.stderr
    help_text = subprocess.run(
        [sys.executable, "-m", "datamask", "select", "--help"],
        cwd=tree,
        env=environment,
        capture_output=True,
        text=True,
        timeout=240,
        check=True,
    ).stdout
    return {**json.loads(seen.stdout.splitlines()[-1]), "help": " ".join(help_text.split())}


def test_one_entry_more_is_checked(longer):
    assert longer["refused"] == [
        "--patience must be a whole number of at least 1, got 0",
        "--order must be 'given' or 'shuffled', got 'backwards'",
        "--patience is not an option of --estimator relaxed; estimators that have it: counterfactual",
    ]
    assert longer["defaults"] == [5, None] and longer["automatic"] == "counterfactual"
    assert longer["record"] and longer["old record"] == 5


def test_one_entry_more_is_on_the_command_line(longer):
    assert ("--patience STEPS steps without a better selection before it stops (counterfactual 5)") in longer["help"]
    assert "--order HOW given or shuffled (given)" in longer["help"]
    assert longer["command line"][-6:] == ["--estimator", "counterfactual", "--patience", "7", "--order", "shuffled"]
    assert longer["read back"]


def test_one_entry_more_is_in_the_form_and_in_compare(longer):
    assert longer["form"] == [
        "Order of the rows",
        ["as they came", "shuffled"],
        "Patience",
        "How long the learner waits.",
        9,
    ]
    assert longer["not drawn"] == []
    assert longer["compared"] == {"patience": "Patience", "order": "Order of the rows"}


def test_one_entry_more_is_varied(longer):
    assert longer["swept"] == [
        "patience 3, order given",
        "patience 3, order shuffled",
        "patience 5, order given",
        "patience 5, order shuffled",
    ]


@pytest.mark.parametrize("name", OPTIONS)
def test_an_entry_agrees_with_itself(name):
    option = OPTIONS[name]
    assert option.name == name and option.label and option.line and option.group in (WHAT, FIND)
    assert set(option.owners) <= {entry.name for entry in catalogue.ESTIMATORS}
    assert not (option.owners and option.default is not None)
    for estimator, default in option.owners.items():
        assert option.checked(default, SelectionConfig.from_options(estimator=estimator)) == default
    if option.default is not None:
        assert option.checked(option.default, SelectionConfig.from_options()) == option.default
    if option.control is not None and isinstance(option.kind, (Number, Whole)):
        assert {"min_value", "max_value", "step"} <= set(option.control.limits)
    if isinstance(option.kind, Choice):
        assert all(word in option.line for word in option.kind.meanings)


def test_the_presets_settings_are_options_of_its_estimator():
    assert {"estimator", "scale", *catalogue.estimator("reinforce").defaults} == set(PAPER_PRESET)


def test_what_can_be_varied_is_first_numbers_then_whole_numbers_then_words():
    assert variable() == (
        "lamb",
        "select_ratio",
        "partial",
        "max_lr",
        "min_lr",
        "prune",
        "n_rollout",
        "n_epochs",
        "seed",
        "objective",
        "estimator",
        "scale",
        "init",
        "score",
        "readout",
        "polish",
        "collapse",
    )


def test_the_record_has_the_options_and_nothing_else():
    assert [field.name for field in dataclasses.fields(SelectionConfig)] == list(OPTIONS)


def test_a_sweep_of_the_first_release_has_its_id_still():
    """Its id follows from its command lines: repeating a command goes on with the runs on disk."""
    corpus = CorpusConfig(("tests/golden/corpus/part-1.parquet",))
    plan = Plan(corpus, points({"objective": "pairwise", "estimator": "relaxed"}, [parse_vary("lamb=0:1:3")]))
    swept = {run.facts()["sweep"] for run in RunStore(ROOT / "tests/golden/runs").list() if run.facts().get("sweep")}
    assert swept == {plan.id}


def test_the_command_line_of_a_run_is_as_it_was():
    options = {
        "estimator": "reinforce",
        "score": "exact",
        "n_rollout": 16,
        "center": True,
        "collapse": "0.950",
        "neighbors": "exact",
        "prune": 0.125,
        "seed": 3,
        "objective": "Pair_simi:3,facility:1",
        "device": "cuda:1",
    }
    config = RunConfig(CorpusConfig(("a.parquet",), seed=3), SelectionConfig.from_options(**options))
    assert " ".join(config.arguments("o.parquet")) == (
        "select a.parquet --output o.parquet --objective pairwise:3,facility:1 --lamb 0.5 --select_ratio 0.3 "
        "--estimator reinforce --n_rollout 16 --score exact --center --prune 0.125 --collapse 0.95 --neighbors exact "
        "--seed 3 --device cuda:1"
    )
