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
from datamask.config import PAPER_PRESET, CorpusConfig, QualityColumn, RunConfig, SelectionConfig
from datamask.errors import OptionError
from datamask.options import CORPUS_OPTIONS, OPTIONS, ROWS, TOPICS, Choice, Number, Whole
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

CORPUS_ENTRY = """
    longest: int | None = option(
        Whole(1), "Longest sample", "leave out rows of more tokens", "N", ROWS, unset="any",
        control=Control({"min_value": 1, "max_value": 10_000, "step": 10}), help="In tokens.")
    languages: tuple[str, ...] = option(
        InputPaths(), "Language lists", "files that say which", "INPUT", ROWS, default=())
"""

LOOK = """
import json

from streamlit.testing.v1 import AppTest

from datamask.cli.parser import parse, run_config
from datamask.config import CorpusConfig, RunConfig, SelectionConfig
from datamask.analyses.comparison import tables
from datamask.dashboard.data.inputs import check_roots
from datamask.errors import InputError, OptionError
from datamask.options import OPTIONS
from datamask.runs import records
from datamask.runs.varying import parse_vary, points

def refusal(**options):
    try:
        SelectionConfig.from_options(**options)
    except OptionError as error:
        return str(error)

def form():
    from datamask.config import SelectionConfig
    from datamask.dashboard.runs import form_panel
    form_panel.run_form(SelectionConfig.from_options(), print)

app = AppTest.from_function(form, default_timeout=60).run()
order = app.selectbox(key="form_order")
patience = app.number_input(key="counterfactual_patience")
patience.set_value(9).run()
app.selectbox(key="form_order").set_value("shuffled").run()
drawn = {control.key for kind in ("selectbox", "number_input", "checkbox") for control in app.get(kind)}
assert not app.exception and not app.error

def corpus_form():
    import streamlit as st

    from datamask.dashboard.data.form_panel import other_options
    st.session_state["others"] = other_options()

corpus_app = AppTest.from_function(corpus_form, default_timeout=60).run()
longest = corpus_app.number_input(key="corpus_longest")
longest.set_value(70).run()
assert not corpus_app.exception and not corpus_app.error

def corpus_refusal(**options):
    try:
        CorpusConfig(("a.parquet",), **options)
    except OptionError as error:
        return str(error)

corpus = CorpusConfig(("a.parquet",), longest=80, languages="de.csv")
corpus_run = RunConfig(corpus, name="x")
def outside(**options):
    # the input lies below the root, what the option names does not
    try:
        check_roots(CorpusConfig((__file__,), **options), ["."])
    except InputError as error:
        return type(error).__name__

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
                  and option.control.more and (not option.owners or "counterfactual" in option.owners)
                  and f"{'counterfactual' if option.owners else 'form'}_{name}" not in drawn],
    "form": [order.label, order.options, patience.label, patience.help, patience.value],
    "compared": {name: tables.SETTINGS[name] for name in ("patience", "order")},
    "corpus refused": [corpus_refusal(longest=0), corpus_refusal(longest="ten")],
    "corpus command line": corpus_run.arguments("o.parquet")[:8],
    "corpus read back": run_config(parse(corpus_run.arguments("o.parquet"))) == corpus_run,
    "corpus record": RunConfig.from_dict(corpus_run.to_dict()) == corpus_run,
    "old corpus record": CorpusConfig.from_dict({"inputs": ["a"]}) == CorpusConfig(("a",)),
    "corpus paths": corpus.paths,
    "corpus form": [longest.label, longest.help, corpus_app.session_state["others"]],
    "confined": [outside(), outside(languages=("/etc/passwd",))],
    "record schema": sorted(set(records.CONFIG["corpus"]) & {"longest", "languages"}),
    "swept": [point.words for point in points({}, [parse_vary("patience=3:5:2"), parse_vary("order=given,shuffled")])],
}))
"""


@pytest.fixture(scope="module")
def longer(tmp_path_factory):
    """A copy of the program whose tables have two entries more each, and what its doors make of them."""
    tree = tmp_path_factory.mktemp("longer")
    shutil.copytree(ROOT / "datamask", tree / "datamask", ignore=shutil.ignore_patterns("__pycache__"))
    table = tree / "datamask/options/table.py"
    place = "    center: bool = option("
    before, after = table.read_text(encoding="utf-8").split(place)
    table.write_text(f"{before.rstrip()}{NUMBER_ENTRY}{CHOICE_ENTRY.lstrip(chr(10))}{place}{after}", encoding="utf-8")
    corpus_table = tree / "datamask/options/corpus_table.py"
    before, after = corpus_table.read_text(encoding="utf-8").split("\n\n\nCORPUS_OPTIONS = ")
    corpus_table.write_text(f"{before}{CORPUS_ENTRY}\n\nCORPUS_OPTIONS = {after}", encoding="utf-8")
    environment = {**os.environ, "PYTHONPATH": str(tree)}
    (tree / "look.py").write_text(LOOK, encoding="utf-8")
    seen = subprocess.run(
        [sys.executable, "look.py"], cwd=tree, env=environment, capture_output=True, text=True, timeout=240
    )
    assert seen.returncode == 0, seen.stderr
    help_text = subprocess.run(
        [sys.executable, "-m", "datamask", "select", "--help-all"],
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


def test_one_entry_more_of_a_corpus_goes_through_every_door(longer):
    assert longer["corpus refused"] == [
        "--longest must be a whole number of at least 1, got 0",
        "--longest must be a whole number of at least 1, got 'ten'",
    ]
    words = ["select", "a.parquet", "--output", "o.parquet", "--longest", "80", "--languages", "de.csv"]
    assert longer["corpus command line"] == words
    assert longer["corpus read back"] and longer["corpus record"] and longer["old corpus record"]
    assert "--longest N leave out rows of more tokens (any)" in longer["help"]
    assert "--languages INPUT files that say which" in longer["help"]
    assert longer["corpus paths"] == {
        "input": ["a.parquet"],
        "features": [],
        "scores": [],
        "languages": ["de.csv"],
    }
    others = {"drop_invalid": False, "make_ids": False, "longest": 70}
    assert longer["corpus form"] == ["Longest sample", "In tokens.", others]
    assert longer["confined"] == [None, "Outside"]
    assert longer["record schema"] == ["languages", "longest"]


@pytest.mark.parametrize("name", CORPUS_OPTIONS)
def test_an_entry_of_a_corpus_agrees_with_itself(name):
    option = CORPUS_OPTIONS[name]
    assert option.name == name and option.label and option.group == ROWS and (option.line or option.unset)
    assert option.word not in {other.word for other in OPTIONS.values()}, "one command line has both"
    if option.default is not None:
        assert option.checked(option.default, CorpusConfig(("a",))) == option.default


def test_the_corpus_of_a_command_line_is_as_it_was():
    """Sweeps have their ids from these words."""
    corpus = CorpusConfig(
        ("a.parquet", "b"),
        id_column="key",
        quality_columns=(QualityColumn("edu", 0.5, "z"), "perplexity:-1:rank"),
        feature_column="vector",
        length_column="tokens",
        features=("f",),
        scores=["-s", "t"],
        rows=1000,
        drop_invalid=True,
        seed=5,
    )
    assert " ".join(RunConfig(corpus, name="run").arguments("o")) == (
        "select a.parquet b --output o --id_column key --feature_column vector --length_column tokens "
        "--quality_column edu:0.5:z --quality_column perplexity:-1:rank --features f --scores=-s --scores t "
        "--rows 1000 --row_seed 5 --drop_invalid --objective facility --lamb 0.5 --select_ratio 0.3 "
        "--estimator relaxed --name run"
    )


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"inputs": ()}, "--input must be at least one file, folder or glob, got ()"),
        ({"rows": 1}, "--rows must be a whole number of at least 2, got 1"),
        ({"rows": "10"}, "--rows must be a whole number of at least 2, got '10'"),
        ({"seed": -1}, "--row_seed must be a whole number from 0 to 2^63 - 1, got -1"),
        ({"drop_invalid": "yes"}, "--drop_invalid must be true or false, got 'yes'"),
        ({"quality_columns": ("q:inf",)}, "--quality_column must be NAME:WEIGHT with a finite weight, got inf"),
    ],
)
def test_options_of_a_corpus_are_refused_by_name(options, sentence):
    with pytest.raises(OptionError) as caught:
        CorpusConfig(**{"inputs": ("a",), **options})
    assert str(caught.value) == sentence


@pytest.mark.parametrize("name", OPTIONS)
def test_an_entry_agrees_with_itself(name):
    option = OPTIONS[name]
    assert option.name == name and option.label and option.line and option.group in TOPICS
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
        "temperature",
        "clip",
        "prune",
        "n_rollout",
        "n_epochs",
        "clusters",
        "seed",
        "objective",
        "estimator",
        "scale",
        "init",
        "polish",
        "inside",
        "collapse",
    )


def test_the_record_has_the_options_and_nothing_else():
    assert [field.name for field in dataclasses.fields(SelectionConfig)] == list(OPTIONS)
    assert [field.name for field in dataclasses.fields(CorpusConfig)] == list(CORPUS_OPTIONS)


def test_a_sweep_has_the_id_it_had():
    """Its id follows from its command lines: repeating a command goes on with the runs on disk."""
    corpus = CorpusConfig(("tests/golden/corpus/part-1.parquet",))
    plan = Plan(corpus, points({"objective": "pairwise", "estimator": "relaxed"}, [parse_vary("lamb=0:1:3")]))
    assert plan.id == "sweep-00b6ce04c5"


def test_the_command_line_of_a_run_is_as_it_was():
    options = {
        "estimator": "reinforce",
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
        "--estimator reinforce --n_rollout 16 --center --prune 0.125 --collapse 0.95 --neighbors exact "
        "--seed 3 --device cuda:1"
    )
