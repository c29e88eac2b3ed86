"""The command line of a run reads back as exactly that run, whatever its names and numbers are."""

from __future__ import annotations

import dataclasses

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from datamask import catalogue
from datamask.cli.parser import corpus_config, parse, run_config
from datamask.config import LEARNER_OPTIONS, CorpusConfig, QualityColumn, RunConfig, SelectionConfig
from datamask.errors import OptionError
from datamask.options import OPTIONS

NAMES = (
    st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=12)
    | st.sampled_from(
        ["-", "--lamb", "-x", "a b", "q:1", "q:z", "a:b:z", "a=b", "--a_b=c-d", "2023-*/part.parquet", "nan", "é"]
    )
).filter(lambda name: name != "--")  # argparse of Python 3.11 loses a value that is exactly this
SHARES = st.floats(0, 1)
INSIDE = st.floats(0, 1, exclude_min=True, exclude_max=True)
SEEDS = st.integers(0, 2**63 - 1)


@st.composite
def qualities(draw) -> QualityColumn:
    weight = draw(st.just(1.0) | st.floats(-1e9, 1e9))
    return QualityColumn(draw(NAMES), weight, draw(st.sampled_from(["raw", "z", "rank"])))


@st.composite
def corpora(draw) -> CorpusConfig:
    maybe = st.none() | NAMES
    return CorpusConfig(
        inputs=draw(st.lists(NAMES, min_size=1, max_size=3)),
        id_column=draw(maybe),
        feature_column=draw(maybe),
        length_column=draw(maybe),
        quality_columns=tuple(draw(st.lists(qualities(), max_size=3))),
        features=draw(st.lists(NAMES, max_size=2)),
        scores=draw(st.lists(NAMES, max_size=2)),
        rows=draw(st.none() | st.integers(2, 10**12)),
        drop_invalid=draw(st.booleans()),
        seed=draw(SEEDS),
    )


@st.composite
def selections(draw) -> SelectionConfig:
    names = draw(st.lists(st.sampled_from([e.name for e in catalogue.OBJECTIVES]), min_size=1, unique=True))
    weights = [draw(st.floats(1e-3, 1e3)) for _ in names]
    options = {
        "objective": ",".join(f"{n}:{w!r}" for n, w in zip(names, weights)),
        "lamb": draw(SHARES),
        "select_ratio": draw(INSIDE),
        "prune": draw(st.floats(0, 1, exclude_max=True)),
        "collapse": draw(st.sampled_from(["none", "exact", "0.95", "1", "column:Group Id"])),
        "seed": draw(SEEDS),
        "device": draw(st.sampled_from(["auto", "cpu", "cuda", "cuda:3"])),
        "center": draw(st.booleans()),
        "neighbors": draw(st.sampled_from(["auto", "exact", "approximate"])),
    }
    if draw(st.booleans()):
        return SelectionConfig.from_options(**options, preset="paper")
    entry = draw(st.sampled_from([e for e in catalogue.ESTIMATORS if e.selects_by(options["objective"])]))
    options |= {"estimator": entry.name, "scale": draw(st.sampled_from(["calibrated", "raw"]))}
    if entry.defaults:
        high = draw(st.floats(1e-6, 1e6))
        own = {
            "n_rollout": draw(st.integers(2, 10**6)),
            "n_epochs": draw(st.integers(1, 10**9)),
            "partial": draw(st.floats(1e-6, 1)),
            "max_lr": high,
            "min_lr": draw(st.floats(0, high)),
            "init": draw(st.sampled_from(["same", "quality"])),
            "polish": draw(st.sampled_from(["swaps", "none"])),
        }
        options |= {k: v for k, v in own.items() if k in entry.defaults and draw(st.booleans())}
    try:
        return SelectionConfig.from_options(**options)
    except OptionError:  # a default lr on the wrong side of a drawn one
        return SelectionConfig.from_options(**{k: v for k, v in options.items() if k not in ("max_lr", "min_lr")})


@given(corpora(), selections(), st.just("") | NAMES, st.just("") | NAMES, NAMES)
@example(
    CorpusConfig(("-x.parquet", "y.parquet"), quality_columns=(QualityColumn("a:2"),), seed=3),
    SelectionConfig.from_options(objective="facility:154,pairwise:138139,disf:138139"),
    "--name",
    "a\nb",
    "-o",
)
@settings(max_examples=300, deadline=None)
def test_a_runs_command_line_reads_back_as_the_run(corpus, selection, name, notes, output):
    run = RunConfig(corpus, selection, name, notes)
    options = parse(run.arguments(output))
    assert options.command == "select" and options.output == output
    assert run_config(options) == run
    assert RunConfig.from_dict(run.to_dict()) == run


@given(selections())
@settings(max_examples=60, deadline=None)
def test_hyphens_and_underscores_are_the_same(selection):
    words = RunConfig(CorpusConfig(("in_put.parquet",)), selection).arguments("out_put.parquet")
    hyphens = [word.replace("_", "-") if word.startswith("--") and "=" not in word else word for word in words]
    assert parse(hyphens) == parse(words)


def test_every_setting_has_its_option():
    assert list(OPTIONS) == [field.name for field in dataclasses.fields(SelectionConfig)]
    assert {option for entry in catalogue.ESTIMATORS for option in entry.defaults} == set(LEARNER_OPTIONS)


def test_only_what_differs_from_the_defaults_is_written():
    assert RunConfig(CorpusConfig(("a.parquet",))).arguments("o.parquet") == [
        "select",
        "a.parquet",
        "--output",
        "o.parquet",
        "--objective",
        "facility",
        "--lamb",
        "0.5",
        "--select_ratio",
        "0.3",
        "--estimator",
        "relaxed",
    ]


@pytest.mark.parametrize("hint", ["--partial 0.1", "--max_lr 10", "--min_lr 0.01"])
def test_the_papers_own_options_mean_the_papers_method(hint):
    options = parse(["select", "a.parquet", "--output", "o.parquet", *hint.split()])
    assert run_config(options).selection.estimator == "reinforce"


def test_the_preset_is_the_paper():
    found = run_config(parse(["select", "a.parquet", "--output", "o.parquet", "--preset", "paper"])).selection
    assert (found.estimator, found.scale, found.n_rollout, found.n_epochs) == ("reinforce", "raw", 128, 5000)
    assert (found.partial, found.max_lr, found.min_lr, found.init) == (0.1, 10, 1, "quality")


def test_the_row_sample_follows_the_seed_unless_it_has_its_own():
    words = ["score", "a.parquet", "--selection", "s.parquet", "--rows", "9"]
    assert corpus_config(parse(words)).seed == 0
    assert corpus_config(parse([*words, "--row-seed", "4"])).seed == 4
    words = ["select", "a.parquet", "--output", "o.parquet", "--seed", "7"]
    assert run_config(parse(words)).corpus.seed == 7
    assert run_config(parse([*words, "--row_seed", "4"])).corpus.seed == 4


@pytest.mark.parametrize("option", ["given", "pin", "ban"])
def test_a_second_file_of_ids_does_not_replace_the_first(option):
    words = ["select", "in.parquet", f"--{option}", "first.parquet"]
    assert getattr(run_config(parse(words)).selection, option).endswith("first.parquet")
    with pytest.raises(OptionError, match=f"--{option} takes one file, got first.parquet and second.parquet; put"):
        parse([*words, f"--{option}=second.parquet"])
