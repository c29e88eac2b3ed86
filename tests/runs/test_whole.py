"""Runs on all rows in mapped files: ordinary run folders, of which pages draw a sample."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from datamask.api import select
from datamask.cli import main
from datamask.config import CorpusConfig, RunConfig, SelectionConfig
from datamask.corpus import open_corpus
from datamask.errors import InputError, OptionError
from datamask.runs.attempt import attempt
from datamask.runs.callbacks import Callbacks
from datamask.runs.execute import execute
from datamask.runs.exports import filtered_rows, write_masks
from datamask.runs.mapping import place_sentence, sample_rows
from datamask.runs.recipe import recipe_of
from datamask.runs.store import Run, RunStore
from datamask.work.context import Work
from tests.making.derivable_runs import shard
from tests.making.shards import clustered
from tests.making.whole_runs import done_run, written_shards
from tests.reference import truth

ROWS = (2500, 1, 0, 3000, 1999)
N, S, SAMPLE = sum(ROWS), 1500, 2000


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("corpus")
    for number, rows in enumerate(ROWS):
        pq.write_table(shard(rows, seed=number, d=8), place / f"{number}.parquet")
    return place


def _config(folder, scratch, *, rows=SAMPLE, corpus=None, **selection) -> RunConfig:
    options = {"objective": "pairwise", "select_ratio": S / N, "device": "cpu", "scratch_dir": str(scratch)} | selection
    return RunConfig(CorpusConfig((str(folder),), rows=rows, **(corpus or {})), SelectionConfig.from_options(**options))


def _created(root, folder, **options) -> Run:
    return RunStore(root / "runs").create(_config(folder, root / "scratch", **options))


@pytest.fixture(scope="module")
def done(folder, tmp_path_factory):
    root = tmp_path_factory.mktemp("done")
    run, notes = _created(root, folder), []
    execute(run, callbacks=Callbacks(note=notes.append))
    return run, notes


def test_it_selects_from_all_rows_and_says_so(done, folder):
    run, notes = done
    summary, facts = run.status().to_dict()["summary"], run.facts()
    assert (summary["n"], summary["selected"], facts["n"], facts["total_rows"]) == (N, S, SAMPLE, N)
    assert 0 <= summary["gap"] <= 1e-5 and summary["upper_bound"] >= summary["calibrated"]["joint"]
    fingerprint = open_corpus(CorpusConfig((str(folder),))).fingerprint
    assert run.whole == {
        "sample_rows": SAMPLE,
        "rows": N,
        "selected": S,
        "shards": len(ROWS),
        "fingerprint": fingerprint,
    }
    scratch = run.path.parents[1] / "scratch"
    assert notes[0].startswith(f"features and neighbor lists lie in files in {scratch}") and not list(scratch.iterdir())
    assert json.loads((run.path / "config.json").read_text())["config"]["corpus"]["rows"] == SAMPLE


def test_the_selection_has_every_selected_row_once_and_values_are_those_of_the_definition(done, folder):
    run, _ = done
    selection, table = run.selection(), pq.read_table(folder)
    starts = dict(zip((str(folder / f"{number}.parquet") for number in range(len(ROWS))), np.cumsum([0, *ROWS])))
    first = np.array([starts[file] for file in selection["source_file"].to_pylist()])
    rows = first + selection["source_row"].to_numpy()
    assert len(np.unique(rows)) == S and selection["id"].equals(table["id"].take(pa.array(rows)))
    assert np.array_equal(selection["quality"].to_numpy(), table["quality_score"].to_numpy()[rows])
    assert selection["rank"].to_pylist() == list(range(1, S + 1))
    assert (np.diff(selection["score"].to_numpy()) <= 0).all()
    assert json.loads(pq.read_schema(run.path / "selection.parquet").metadata[b"datamask"])["run_id"] == run.id
    x = np.stack(table["feature_arr"].to_numpy()).astype(np.float64)
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    summary = run.status().to_dict()["summary"]
    assert summary["quality"] == pytest.approx(table["quality_score"].to_numpy()[rows].mean(), abs=1e-12)
    assert summary["objectives"]["pairwise"] == pytest.approx(truth.pairwise(x, rows), abs=1e-7)
    assert summary["tokens"] == table["n_tokens"].to_numpy()[rows].sum()


def test_what_is_opened_of_it_is_the_sample_with_what_its_rows_are_among_all(done, folder):
    run, _ = done
    corpus = open_corpus(run.config.corpus)
    assert corpus.fingerprint == run.facts()["fingerprint"] and len(corpus) == SAMPLE
    rows, selection = run.rows(), run.selection()
    chosen = set(selection["id"].to_pylist())
    assert rows["id"].equals(pa.chunked_array([corpus.ids])) or rows["id"].to_pylist() == corpus.ids.to_pylist()
    expected = [name in chosen for name in corpus.ids.to_pylist()]
    assert rows["selected"].to_pylist() == expected and sum(expected) == run.facts()["selected"]
    scores = dict(zip(selection["id"].to_pylist(), selection["score"].to_pylist()))
    drawn = zip(rows["id"].to_pylist(), rows["score"].to_pylist(), strict=True)
    assert [score for name, score in drawn if name in chosen] == [
        scores[name] for name in rows["id"].to_pylist() if name in chosen
    ]


def test_its_rows_masks_and_recipe_are_of_all_rows(done, folder, tmp_path):
    run, _ = done
    table, ids = pq.read_table(folder), set(run.selection()["id"].to_pylist())
    assert filtered_rows(run, tmp_path / "rows.parquet") == S
    assert set(pq.read_table(tmp_path / "rows.parquet")["id"].to_pylist()) == ids
    masks = [pq.read_table(path) for path in write_masks(run, tmp_path / "masks")]
    assert [len(mask) for mask in masks] == list(ROWS)
    mask = pa.concat_tables(masks)
    assert set(table["id"].filter(pa.compute.equal(mask["selected"], 1)).to_pylist()) == ids
    assert pa.compute.all(mask["considered"]).as_py()
    recipe = recipe_of(run)
    assert recipe.learned["rows"] == N and recipe.share == S / N and recipe.learned["run"] == run.id
    x = np.stack(table["feature_arr"].to_numpy()).astype(np.float64)
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    rule = recipe.rule
    score = rule.quality_weight * table["quality_score"].to_numpy() - rule.crowding_weight * x @ rule.direction
    kept, selected = score >= recipe.thresholds.tau, mask["selected"].to_numpy() == 1
    assert (kept != selected).sum() <= 2 * 8


def test_one_that_has_no_rule_says_why(folder, tmp_path):
    run = _created(tmp_path, folder, corpus={"quality_within": "source"})
    execute(run)
    with pytest.raises(OptionError, match=f"run {run.id} has no recipe: with --quality_within"):
        recipe_of(run)


def test_the_command_line_does_it_and_its_words_repeat_it(folder, tmp_path, capsys):
    out, runs = tmp_path / "out.parquet", tmp_path / "runs"
    words = ["select", str(folder), "--output", str(out), "--objective", "pairwise", "--runs-dir", str(runs)]
    words += ["--scratch-dir", str(tmp_path / "scratch"), "--rows", str(SAMPLE), "--json"]
    assert main(words) == 0
    told = capsys.readouterr()
    answer = json.loads(told.out.splitlines()[-1])
    assert answer["n"] == N and answer["selected"] == round(0.3 * N) == len(pq.read_table(out))
    assert f"lie in files in {tmp_path / 'scratch'}" in told.err
    assert main(["runs", "show", answer["run_id"], "--runs-dir", str(runs)]) == 0
    shown = capsys.readouterr().out
    assert f"Selected {answer['selected']:,} of {N:,} rows" in shown and "--scratch_dir" in shown
    ids = tmp_path / "ids.csv"
    assert main(["runs", "export", answer["run_id"], "--runs-dir", str(runs), "--ids", str(ids)]) == 0
    assert len(ids.read_text().splitlines()) == answer["selected"] + 1


def test_without_a_folder_the_run_is_of_what_memory_holds(folder, tmp_path, monkeypatch):
    monkeypatch.setattr("datamask.corpus.opening.default_row_limit", lambda *options, **more: N - 1)
    for rows, held in ((SAMPLE, SAMPLE), (None, N - 1)):
        config = _config(folder, tmp_path, rows=rows)
        config = replace(config, selection=replace(config.selection, scratch_dir=None))
        run = RunStore(tmp_path / "runs").create(config)
        assert execute(run).to_dict()["n"] == held and run.whole is None


LEARNED = {"estimator": "reinforce", "n_epochs": 6, "n_rollout": 8}


@pytest.mark.parametrize(
    "options",
    [
        {"objective": "pairwise", "lamb": 0.0},
        {"objective": "facility", "lamb": 1.0},
        {"objective": "pairwise:1,disf_fixed:1", "center": True},
        {"objective": "vendi", "collapse": "0.99"},
        {"objective": "disf", "prune": 0.1},
        {"objective": "facility", **LEARNED},
    ],
    ids=str,
)
def test_it_is_the_run_of_memory(tmp_path, options):
    """Where the sample is a third of the rows, too."""
    features, quality = clustered(600, seed=1)
    (memory, of_memory), (mapped, of_mapped) = (
        done_run(written_shards(tmp_path / name / "shards", features, quality), select_ratio=0.1, **options, **where)
        for name, where in (("memory", {"scratch": False}), ("maps", {"rows": 200}))
    )
    np.testing.assert_array_equal(of_mapped, of_memory)
    for name in ("joint", "calibrated", "anchors", "upper_bound", "values", "estimator"):
        assert mapped[name] == memory[name], name


def test_transforms_are_of_all_rows_and_those_that_cannot_be_used_are_left_out(folder, tmp_path):
    place = tmp_path / "shards"
    place.mkdir()
    bad = shard(900, seed=11, d=8)
    values = bad["quality_score"].to_numpy().copy()
    values[::100] = np.nan
    pq.write_table(bad.set_column(1, "quality_score", pa.array(values)), place / "bad.parquet")
    for path in folder.iterdir():
        pq.write_table(pq.read_table(path), place / path.name)
    corpus = {"drop_invalid": True, "quality_columns": ("quality_score:1:z", "edu:0.5:rank")}
    run = _created(tmp_path, place, corpus=corpus)
    summary = execute(run).to_dict()
    opened = open_corpus(replace(run.config.corpus, rows=None))
    assert summary["n"] == len(opened) == N + 900 - 9 and sum(run.facts()["dropped"].values()) == 9
    by_id = dict(zip(opened.ids.to_pylist(), opened.quality.tolist()))
    selection = run.selection()
    assert [by_id[name] for name in selection["id"].to_pylist()] == selection["quality"].to_pylist()
    assert run.left_out()["source_row"].to_pylist() == list(range(0, 900, 100))
    masks = {path.name: pq.read_table(path) for path in write_masks(run, tmp_path / "masks")}
    considered = {name: mask["considered"].to_numpy() for name, mask in masks.items()}
    assert np.flatnonzero(~considered["bad.mask.parquet"]).tolist() == list(range(0, 900, 100))
    assert all(mask.all() for name, mask in considered.items() if name != "bad.mask.parquet")


@pytest.mark.parametrize("options", [{"objective": "facility"}, {"objective": "pairwise", **LEARNED}], ids=str)
def test_a_stopped_run_goes_on_and_ends_as_one_that_was_not_stopped(folder, tmp_path, options):
    whole, broken = (_created(tmp_path, folder, lamb=0.3, **options) for _ in range(2))
    execute(whole)
    outcome = attempt(broken, Work.of(lambda: "eligible" in broken.facts()))
    assert outcome.status.state == "stopped" and not list((tmp_path / "scratch").iterdir())
    assert attempt(broken).status.state == "done"
    assert broken.selection().equals(whole.selection()) and broken.rows().equals(whole.rows())


def test_shards_that_change_meanwhile_are_refused(tmp_path):
    features, quality = clustered(300, seed=1)
    place = written_shards(tmp_path / "shards", features, quality)
    run, changed = (_created(tmp_path, place, rows=100, select_ratio=0.1) for _ in range(2))
    assert attempt(run, Work.of(lambda: "eligible" in run.facts())).status.state == "stopped"

    def poll() -> None:
        if (tmp_path / "other").exists() or not (changed.path / "metrics.jsonl").exists():
            return
        written_shards(tmp_path / "other", features[::-1], quality[::-1])
        for path in (tmp_path / "other").iterdir():
            path.rename(place / path.name)

    execute(changed, Work(poll))
    with pytest.raises(InputError, match="has changed since"):
        filtered_rows(changed, tmp_path / "rows.parquet")
    assert "has changed since it started" in str(attempt(run).error)


def test_the_sample_has_members_however_few_rows_are_to_be_selected():
    rows = [
        sample_rows(SelectionConfig.from_options(objective="pairwise", select_ratio=ratio))
        for ratio in (0.3, 0.005, 0.001, 1e-6)
    ]
    assert rows == [20_000, 20_000, 100_000, 200_000]


def test_in_python_all_rows_are_asked_for_as_a_run(folder, tmp_path):
    corpus = open_corpus(CorpusConfig((str(folder),), rows=SAMPLE))
    options = {
        "objective": "pairwise",
        "select_ratio": S / N,
        "scratch_dir": str(tmp_path / "scratch"),
        "device": "cpu",
    }
    with pytest.raises(OptionError, match="scratch_dir says where the arrays of a run lie"):
        select(corpus, **options)
    selection = select(corpus, **options, runs_dir=tmp_path / "runs")
    assert selection.summary["n"] == len(selection.mask) == N
    assert Run(selection.run).status().to_dict()["summary"]["selected"] == S


@pytest.mark.parametrize(
    ("kind", "said"), [("ext4", ""), ("tmpfs", "in memory (tmpfs)"), ("nfs4", "network file system")]
)
def test_a_folder_on_the_wrong_file_system_is_named_in_a_sentence(tmp_path, monkeypatch, kind, said):
    monkeypatch.setattr("datamask.runs.mapping.file_system", lambda *place: kind)
    sentence = place_sentence(tmp_path)
    assert said in sentence and ("--scratch_dir" in sentence) == bool(said)
