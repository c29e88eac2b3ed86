"""What runs say: what is proved, the stories of unfinished ones, and how they are named."""

import numpy as np
import pyarrow as pa
import pytest

from datamask.config import CorpusConfig, RunConfig, SelectionConfig
from datamask.dashboard.runs import outcome
from datamask.runs.store import RunStore


def create(tmp_path, **options):
    return RunStore(tmp_path).create(RunConfig(CorpusConfig(("a.parquet",)), SelectionConfig.from_options(**options)))


def finish(run, **summary):
    with run.writer() as writer:
        writer.write_selection(pa.table({"id": [1]}), {})
        writer.finish(
            "done",
            None,
            "converged",
            summary={
                "n": 18_000,
                "selected": 5400,
                "steps": 100,
                "seconds": 12.3,
                "quality": 7.9,
                "diversity": 0.61,
                **summary,
            },
        )
    return run


def test_a_certificate_says_exactly_what_is_proved(tmp_path):
    run = finish(create(tmp_path / "a"), upper_bound=0.501, gap=0.01)
    assert outcome.certificate(run) == (
        "Gap 1.00\u00a0% for this objective: the joint value is 49.10\u00a0%. No selection of 5,400 rows has a joint "
        "value more than 1.00 percentage points higher."
    )
    assert outcome.certificate(finish(create(tmp_path / "b"), upper_bound=None, gap=None)) is None


@pytest.mark.parametrize(
    "counts, words",
    [
        (
            {"inside": 5_390, "outside": 12_599, "open": 11},
            " 5,390 rows are required, 12,599 are excluded and 11 are interchangeable.",
        ),
        ({"inside": 0, "outside": 0, "open": 18_000}, ""),
        (None, ""),
    ],
)
def test_a_certificate_says_how_far_it_determines_the_samples(tmp_path, counts, words):
    run = finish(create(tmp_path), upper_bound=0.501, gap=0.01, settled=counts)
    assert outcome.certificate(run).endswith("percentage points higher." + words)


def test_a_loose_bound_is_named_where_fewer_rows_than_second_moments_are_selected(tmp_path):
    def said(folder, dim, objective="pairwise:0.5,disf_fixed:0.5", **summary):
        run = create(tmp_path / folder, objective=objective)
        with run.writer() as writer:
            writer.update_facts(dim=dim)
        return outcome.certificate(finish(run, upper_bound=0.501, gap=0.01, **summary))

    assert "5,400 rows are fewer than the 5,460 second moments of 104 dimensions" in said("a", 104)
    assert "loose" not in said("b", 103) and "loose" not in said("c", 104, "pairwise")
    kept = {"kept": 103, "of": 1024, "share": 0.9, "on_all": {}}
    assert "loose" not in said("d", 1024, components=kept)


@pytest.mark.parametrize(
    "state, heading, actions",
    [("stopped", "Stopped", ("resume",)), ("failed", "Failed", ("resume",)), ("running", "Interrupted", ("resume",))],
)
def test_every_unfinished_state_has_a_story_and_a_way_out(tmp_path, state, heading, actions):
    run = create(tmp_path)
    with run.writer() as writer:
        writer.set_status("running", total_steps=100)
        writer.beat(40, 100, "learning")
        if state == "running":
            writer.set_status("running", step=40)
        else:
            writer.finish(
                state,
                step=40,
                total_steps=100,
                **({"error": "No space left on the disk."} if state == "failed" else {}),
            )
    story = outcome.story(run)
    assert story.heading == heading and story.actions == actions
    assert "step 40 of 100" in story.text or "No space left" in story.text


def test_an_interrupted_run_says_whether_it_left_a_checkpoint(tmp_path):
    """Checkpoints are written every ten seconds: the server may end before the first."""
    run = create(tmp_path)
    with run.writer() as writer:
        writer.set_status("running", step=11, total_steps=60)
    assert "has no checkpoint; resume to start" in outcome.story(run).text
    with run.writer() as writer:
        writer.save_checkpoint({"x": np.arange(3)}, {"step": 11})
        writer.set_status("running", step=12, total_steps=60)
    assert "Its last checkpoint is kept" in outcome.story(run).text


@pytest.mark.parametrize("state", ["stopped", "interrupted"])
def test_the_story_of_a_run_counts_the_steps_that_its_curve_shows(tmp_path, state):
    """A stop between two steps, or after the last one, leaves a status that names no step."""
    run = create(tmp_path)
    with run.writer() as writer:
        writer.set_status("running", total_steps=60)
        for step in range(1, 61):
            writer.append_metrics({"step": step, "seconds": 0.1 * step, "joint": 0.7})
        writer.save_checkpoint({"x": np.arange(3)}, {"step": 60})
        if state == "stopped":
            writer.finish("stopped", ending="stopped", message="stopped before learning began")
    story = outcome.story(run)
    assert story.heading.lower() == state and "at step 60 of 60" in story.text and "kept" in story.text
    assert "before its first step" not in story.text and "It has learned nothing" not in story.text


def test_queued_and_done(tmp_path):
    assert outcome.story(create(tmp_path / "a")).actions == ("stop",)
    assert outcome.story(finish(create(tmp_path / "b"))) is None


@pytest.mark.parametrize(
    "options, said",
    [
        ({}, "Facility location · λ 0.5 · 30"),
        ({"preset": "paper", "objective": "disf"}, "paper preset"),
        ({"estimator": "random", "select_ratio": 0.125}, "Random (baseline) · 12.50"),
        ({"objective": "pairwise:0.7,facility:0.3"}, "Pair-wise similarity 70"),
    ],
)
def test_a_headline_in_one_line(tmp_path, options, said):
    assert said in outcome.headline(create(tmp_path, **options))


def test_proposed_names_tell_runs_apart():
    name = outcome.proposed_name("facility", 0.5, 0.3, "relaxed")
    assert name.replace("\u00a0", " ") == "facility, λ 0.5, 30 %"
    for estimator in ("random", "top-quality", "semdedup", "imported"):  # lambda says nothing about these
        assert outcome.proposed_name("facility", 0.5, 0.3, estimator).replace("\u00a0", " ") == f"{estimator}, 30 %"
    assert outcome.proposed_name("facility", 0.5, 0.3, "greedy").endswith(", greedy")
    assert outcome.proposed_name("disf", 0.5, 0.3, "counterfactual").replace("\u00a0", " ") == "disf, λ 0.5, 30 %"
    assert outcome.proposed_name("facility", 0.5, 0.3, "counterfactual").endswith(", counterfactual")
    assert "reinforce" in outcome.proposed_name("disf", 0.5, 0.3, "reinforce")
