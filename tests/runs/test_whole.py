"""Runs on all rows of a corpus out of core: ordinary run folders, in which a sample stands for what is drawn."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import textwrap
import threading
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from datamask.api import select
from datamask.cli import main
from datamask.config import CorpusConfig, RunConfig, SelectionConfig
from datamask.corpus import open_corpus
from datamask.errors import InputError, OptionError, StoreError
from datamask.out_of_core import scratch_writing, solvers
from datamask.out_of_core.scratch import KINDS
from datamask.out_of_core.whole_corpus import sample_rows
from datamask.recipes.weights import Weights
from datamask.runs import whole_writing
from datamask.runs.attempt import attempt
from datamask.runs.callbacks import Callbacks
from datamask.runs.execute import execute
from datamask.runs.exports import filtered_rows, write_masks
from datamask.runs.recipe import recipe_of
from datamask.runs.store import Run, RunStore
from datamask.work.context import Work
from tests.making.derivable_runs import shard
from tests.making.run_folders import ROOT, wait_for

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
    assert (
        summary["gap"] <= 1e-5 and summary["upper_bound"] >= summary["calibrated"]["joint"] and summary["passes"] >= 1
    )
    assert run.whole == {
        "sample_rows": SAMPLE,
        "rows": N,
        "selected": S,
        "shards": len(ROWS),
        "scratch": None,
        "scratch_bytes": N * (16 + 32),
        "memory_bytes": 600_000_000 + 40 * N + 10 * 1_000_000 * 8,
        "passes": summary["passes"],
    }
    assert len(notes) == 1 and f"all {N:,} rows of {len(ROWS)} shards" in notes[0] and "0.4 MB of scratch" in notes[0]
    assert not (run.path.parents[1] / "scratch").exists() or not list((run.path.parents[1] / "scratch").iterdir())
    assert json.loads((run.path / "config.json").read_text())["config"]["corpus"]["rows"] == SAMPLE


def test_the_selection_has_every_selected_row_once_with_its_id_and_rank(done, folder):
    run, _ = done
    selection = run.selection()
    table = pq.read_table(folder)
    files = [str(folder / f"{number}.parquet") for number in range(len(ROWS))]
    starts = dict(zip(files, np.cumsum([0, *ROWS])))
    rows = (
        np.array([starts[file] for file in selection["source_file"].to_pylist()]) + selection["source_row"].to_numpy()
    )
    assert len(rows) == S and (np.diff(rows) > 0).all()
    assert selection["id"].equals(table["id"].take(pa.array(rows)))
    assert np.array_equal(selection["quality"].to_numpy(), table["quality_score"].to_numpy()[rows])
    assert sorted(selection["rank"].to_pylist()) == list(range(1, S + 1))
    score = selection["score"].to_numpy()
    assert (np.diff(score[np.argsort(selection["rank"].to_numpy())]) <= 0).all()
    halves = selection["marginal_quality"].to_numpy() + selection["marginal_diversity"].to_numpy()
    assert np.allclose(score, 0.5 * halves)
    assert json.loads(pq.read_schema(run.path / "selection.parquet").metadata[b"datamask"])["run_id"] == run.id
    # what it says of the values is so, by the definitions
    x = np.stack(table["feature_arr"].to_numpy()).astype(np.float64)
    x = (x / np.linalg.norm(x, axis=1, keepdims=True))[rows]
    summary = run.status().to_dict()["summary"]
    assert summary["quality"] == pytest.approx(table["quality_score"].to_numpy()[rows].mean(), abs=1e-12)
    pairwise = -((x.sum(0) ** 2).sum() - S) / (S * (S - 1))
    assert summary["objectives"] == {"pairwise": pytest.approx(pairwise, abs=1e-5)}  # features as float16
    anchors = summary["anchors"]
    shares = {
        name: (raw - ends["random"]) / (ends["best"] - ends["random"])
        for name, raw, ends in (
            ("quality", summary["quality"], anchors["quality"]),
            ("diversity", summary["diversity"], anchors["diversity"]["pairwise"]),
        )
    }
    assert summary["calibrated"] == pytest.approx({**shares, "joint": (shares["quality"] + shares["diversity"]) / 2})
    assert summary["tokens"] == table["n_tokens"].to_numpy()[rows].sum()


def test_what_is_opened_of_it_is_the_sample_with_the_selection_on_it(done, folder):
    run, _ = done
    corpus = open_corpus(run.config.corpus)
    assert corpus.fingerprint == run.facts()["fingerprint"] and len(corpus) == SAMPLE
    rows = run.rows(("selected", "score", "source_file", "source_row"))
    chosen = set(run.selection()["id"].to_pylist())
    expected = [name in chosen for name in corpus.ids.to_pylist()]
    assert rows["selected"].to_pylist() == expected and sum(expected) == run.facts()["selected"]
    metrics = run.metrics()
    passes = run.status().to_dict()["summary"]["passes"]
    assert np.isfinite(metrics["pass"]).sum() == passes and (np.diff(metrics["step"]) > 0).all()
    assert metrics["gap"][-1] == pytest.approx(run.status().to_dict()["summary"]["gap"], abs=1e-7)  # rows were rounded


def test_its_rows_masks_and_recipe_are_of_all_rows(done, folder, tmp_path):
    run, _ = done
    table, ids = pq.read_table(folder), run.selection()["id"]
    assert filtered_rows(run, tmp_path / "rows.parquet") == S
    assert pq.read_table(tmp_path / "rows.parquet")["id"].equals(ids)
    masks = [pq.read_table(path) for path in write_masks(run, tmp_path / "masks")]
    whole_mask = pa.concat_tables(masks)
    assert [len(mask) for mask in masks] == list(ROWS)
    assert table["id"].filter(pa.compute.equal(whole_mask["selected"], 1)).equals(ids)
    assert pa.compute.all(whole_mask["considered"]).as_py()
    recipe = recipe_of(run)
    assert recipe.all_rows["rows"] == N and recipe.share == S / N and recipe.all_rows["gap"] <= 1e-5
    x = np.stack(table["feature_arr"].to_numpy()).astype(np.float64)
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    rule = recipe.rule
    score = rule.quality_weight * table["quality_score"].to_numpy() - rule.crowding_weight * x @ rule.direction
    kept, selected = score >= recipe.thresholds.tau, whole_mask["selected"].to_numpy() == 1
    assert (kept != selected).sum() <= 2 * 8 + 8  # about d rows, and what float16 moves


def test_the_command_says_that_its_recipe_is_of_all_rows(done, tmp_path, capsys):
    run, _ = done
    words = ["recipe", run.id, "--runs-dir", str(run.path.parent), "--output", str(tmp_path / "recipe.json")]
    assert main(words) == 0
    printed = capsys.readouterr().out
    assert (
        f"of all {N:,} rows" in printed
        and f"selected {S:,} (20.0 %)" in printed
        and f"a sample of {SAMPLE:,}" in printed
    )
    assert main([*words, "--json"]) == 0
    answer = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert answer["rows"] == SAMPLE and (answer["all_rows"]["rows"], answer["all_rows"]["kept"]) == (N, S)


def test_the_command_line_does_it_and_its_words_repeat_it(folder, tmp_path, capsys):
    out, runs = tmp_path / "out.parquet", tmp_path / "runs"
    words = ["select", str(folder), "--output", str(out), "--objective", "pairwise", "--runs-dir", str(runs)]
    words += ["--all", "--scratch-dir", str(tmp_path / "scratch"), "--rows", str(SAMPLE), "--json"]
    assert main(words) == 0
    told = capsys.readouterr()
    answer = json.loads(told.out.splitlines()[-1])
    assert answer["n"] == N and answer["selected"] == round(0.3 * N) == len(pq.read_table(out))
    assert f"all {N:,} rows of {len(ROWS)} shards, out of core" in told.err
    assert main(["runs", "show", answer["run_id"], "--runs-dir", str(runs)]) == 0
    shown = capsys.readouterr().out
    assert f"Selected {answer['selected']:,} of {N:,} rows" in shown and "--all --scratch_dir" in shown
    ids = tmp_path / "ids.csv"
    assert main(["runs", "export", answer["run_id"], "--runs-dir", str(runs), "--ids", str(ids)]) == 0
    assert len(ids.read_text().splitlines()) == answer["selected"] + 1


def test_without_scratch_a_corpus_that_fits_is_solved_in_memory(folder, tmp_path, monkeypatch):
    config = _config(folder, tmp_path)
    config = replace(config, selection=replace(config.selection, scratch_dir=None, all_rows=True))
    run = RunStore(tmp_path / "runs").create(config)
    assert execute(run).to_dict()["n"] == SAMPLE and run.whole is None
    # one that does not fit asks for all of its rows
    monkeypatch.setattr("datamask.corpus.opening.default_row_limit", lambda *options, **more: N - 1)
    monkeypatch.setattr("datamask.runs.mapping.lies_in_memory", lambda folder: False)
    run = RunStore(tmp_path / "runs").create(config)
    assert execute(run).to_dict()["n"] == N and run.whole is not None
    selection = replace(config.selection, all_rows=False)
    without = replace(config, selection=selection, corpus=replace(config.corpus, rows=None))
    run = RunStore(tmp_path / "runs").create(without)
    assert execute(run).to_dict()["n"] == N - 1 and run.whole is None


@pytest.mark.parametrize("lamb", [0.0, 1.0])
def test_at_both_ends_of_lambda(folder, tmp_path, lamb):
    run = _created(tmp_path, folder, lamb=lamb)
    summary = execute(run).to_dict()
    # 1500 whole rows of 7500 come no nearer to the bound, in memory neither
    assert summary["selected"] == S == len(run.selection()) and summary["gap"] <= 1e-5
    quality = pq.read_table(folder)["quality_score"].to_numpy()
    if lamb == 1.0:
        assert summary["quality"] == pytest.approx(np.sort(quality)[-S:].mean(), abs=1e-12)
        assert summary["calibrated"]["joint"] == pytest.approx(summary["calibrated"]["quality"])


@pytest.mark.parametrize("objective", ["disf_fixed", "pairwise:1,disf_fixed:1"])
def test_centered_features_z_scores_and_rows_that_cannot_be_used(folder, tmp_path, objective):
    place = tmp_path / "shards"
    place.mkdir()
    bad = shard(900, seed=11, d=8)
    values = bad["quality_score"].to_numpy().copy()
    values[::100] = np.nan
    pq.write_table(bad.set_column(1, "quality_score", pa.array(values)), place / "bad.parquet")
    for path in folder.iterdir():
        pq.write_table(pq.read_table(path), place / path.name)
    corpus = {"drop_invalid": True, "quality_columns": ("quality_score:1:z", "edu:0.5:rank")}
    run = _created(tmp_path, place, objective=objective, center=True, corpus=corpus)
    summary = execute(run).to_dict()
    # of so few rows there are too few near the threshold to say more of 28 moments
    assert summary["n"] == N + 900 - 9 and summary["gap"] <= 5e-5
    assert sum(run.facts()["dropped"].values()) == 9
    assert not set(run.selection()["id"].to_pylist()) & {f"11-{row}" for row in range(0, 900, 100)}
    masks = {path.name: pq.read_table(path) for path in write_masks(run, tmp_path / "masks")}
    considered = {name: mask["considered"].to_numpy() for name, mask in masks.items()}
    assert np.flatnonzero(~considered["bad.mask.parquet"]).tolist() == list(range(0, 900, 100))
    assert all(mask.all() for name, mask in considered.items() if name != "bad.mask.parquet")
    assert sum(mask["selected"].to_numpy().sum() for mask in masks.values()) == summary["selected"]


def counted_readings(monkeypatch) -> list[int]:
    """How many selections each reading of the shards values."""
    readings, read = [], solvers.exact_values

    def counted(corpus, scratch, candidates, **options):
        readings.append(len(candidates))
        return read(corpus, scratch, candidates, **options)

    monkeypatch.setattr(solvers, "exact_values", counted)
    return readings


def test_where_rounding_moves_a_scale_the_selection_is_made_anew_on_the_exact_one(tmp_path, monkeypatch):
    """Rows that nearly coincide are others as float16, and so are the ends."""
    rng = np.random.default_rng(5)
    (tmp_path / "corpus").mkdir()
    features = (rng.normal(size=(4_000, 4)) + 30.0).astype(np.float32)
    column = pa.FixedSizeListArray.from_arrays(pa.array(features.ravel()), 4)
    table = pa.table({"id": np.arange(4_000), "quality_score": rng.normal(size=4_000), "feature_arr": column})
    pq.write_table(table, tmp_path / "corpus" / "rows.parquet")
    readings = counted_readings(monkeypatch)
    summary = execute(_created(tmp_path, tmp_path / "corpus", select_ratio=0.1)).to_dict()
    assert readings == [2, 1] and 0 <= summary["gap"] <= 1e-3


def test_the_ends_and_the_selection_take_eight_passes_and_one_reading_of_the_shards(tmp_path, monkeypatch):
    rng = np.random.default_rng(3)
    features = (rng.normal(size=(40, 16)) + 0.3)[rng.integers(0, 40, 30_000)] + rng.normal(size=(30_000, 16))
    column = pa.FixedSizeListArray.from_arrays(pa.array(features.astype(np.float32).ravel()), 16)
    quality = rng.normal(size=30_000) + features[:, 0]
    (tmp_path / "corpus").mkdir()
    table = pa.table({"id": np.arange(30_000), "quality_score": quality, "feature_arr": column})
    pq.write_table(table, tmp_path / "corpus" / "rows.parquet")
    made, make = [], solvers.streamed_dual.Passes.__call__
    monkeypatch.setattr(
        solvers.streamed_dual.Passes, "__call__", lambda *given: (made.append(given[4]), make(*given))[1]
    )
    readings = counted_readings(monkeypatch)
    summary = execute(_created(tmp_path, tmp_path / "corpus", select_ratio=0.1)).to_dict()
    assert 2 <= len(made) <= 8 and readings == [2] and summary["gap"] <= 1e-5
    assert summary["anchors"]["diversity"]["pairwise"]["best_kind"] == "proved"


# -- stopped, killed, changed ------------------------------------------------------------------------------------------


def test_a_stopped_run_keeps_its_scratch_says_where_and_goes_on(folder, tmp_path, monkeypatch, capsys):
    run, stopping = _created(tmp_path, folder), []
    solve = solvers.streamed_dual.solve

    def stopped_after_a_pass(*given, on_pass=None, **options):
        def on(dual):
            on_pass(dual)
            stopping.append(True)

        return solve(*given, on_pass=on_pass and on, **options)

    monkeypatch.setattr(solvers.streamed_dual, "solve", stopped_after_a_pass)
    outcome = attempt(run, Work.of(lambda: bool(stopping)))
    assert outcome.status.state == "stopped" and f"stays in {tmp_path / 'scratch'}" in outcome.status.message
    kept = tmp_path / "scratch" / f"datamask-{run.id}"
    before = {path.name: path.stat().st_mtime_ns for path in kept.glob("0*")}
    assert len(before) == 6 * len(ROWS) and list((kept / "dual").glob("dual-v*"))
    monkeypatch.undo()
    assert main(["runs", "show", run.id, "--runs-dir", str(run.path.parent)]) == 0
    shown = capsys.readouterr().out
    assert f"{N:,} rows of {len(ROWS)} shards; scratch in {kept}" in shown
    assert "1 step over all rows; value so far 0." in shown and ", nothing above 0." in shown
    resumed = attempt(run)
    assert resumed.status.state == "done" and not kept.exists()
    other = _created(tmp_path / "other", folder)
    execute(other)
    assert other.selection()["id"].equals(run.selection()["id"])
    assert resumed.result.whole.passes == other.status().result.whole.passes > 0
    assert np.allclose(run.metrics()["joint"], other.metrics()["joint"], equal_nan=True)


@pytest.mark.parametrize(("state", "over"), [("dual", 2), ("dual-disf_fixed", 1)])
def test_a_killed_driver_repeats_no_pass_that_was_over(state, over, folder, tmp_path, monkeypatch):
    """Of the selection, or of what finds the end of a scale. There is memory for fewer rows than the corpus has."""
    monkeypatch.setattr(solvers, "BLOCK_ROWS", 500)
    run = _created(tmp_path, folder, objective="disf_fixed")
    script = textwrap.dedent(
        """
        import sys, time
        from datamask.out_of_core import solvers
        from datamask.runs.execute import execute
        from datamask.runs.store import RunStore
        from datamask.work.kept import Kept

        solvers.BLOCK_ROWS = 500
        keep = Kept.keep
        def slow(kept, dual):
            keep(kept, dual)
            if kept.entry.name == sys.argv[3] and len(dual.passes) == int(sys.argv[4]):
                time.sleep(600)
        Kept.keep = slow
        execute(RunStore(sys.argv[1]).get(sys.argv[2]))
        """
    )
    kept = tmp_path / "scratch" / f"datamask-{run.id}"

    def passes() -> int:
        for path in (kept / "dual").glob(f"{state}-v*"):
            with path.open("rb") as file:
                head = json.loads(file.readline())
                return len(json.loads(json.loads(file.read(head["value"]))["note"])["passes"])
        return 0

    child = subprocess.Popen([sys.executable, "-c", script, str(run.path.parent), run.id, state, str(over)], cwd=ROOT)
    try:
        wait_for(lambda: passes() == over, seconds=120)
    finally:
        child.send_signal(signal.SIGKILL)
        child.wait()
    assert run.status().state == "interrupted"
    scored = []
    real = solvers.streamed_dual.Passes.__call__

    def counted(*given):
        scored.append(given[4])
        return real(*given)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(solvers.streamed_dual.Passes, "__call__", counted)
        summary = execute(run).to_dict()
    assert scored[0] == f"Pass {over + 1} over"
    of_the_end = 0 if state == "dual" else scored.index("Pass 1 over")
    assert len(scored) - of_the_end == summary["passes"] - (over if state == "dual" else 0)
    assert summary["selected"] == S


def test_a_stop_from_another_process_is_heard_in_the_first_pass(folder, tmp_path, monkeypatch):
    """The first batch waits until it is."""
    run, heard = _created(tmp_path, folder), threading.Event()
    add, stop_requested = scratch_writing._add, Run.stop_requested

    def asked(*given):
        run.request_stop()
        assert heard.wait(60)
        return add(*given)

    def hears(self):
        if requested := stop_requested(self):
            heard.set()
        return requested

    with monkeypatch.context() as patched:
        patched.setattr(scratch_writing, "_add", asked)
        patched.setattr(Run, "stop_requested", hears)
        assert attempt(run).status.state == "stopped"
    kept = tmp_path / "scratch" / f"datamask-{run.id}"
    assert kept.is_dir() and not (kept / "scratch.json").exists()
    assert attempt(run).status.state == "done"


def test_a_run_that_is_removed_takes_its_scratch_along(folder, tmp_path, monkeypatch):
    run = _created(tmp_path, folder)
    monkeypatch.setattr(whole_writing, "_selected_of_sample", lambda execution: 1 / 0)
    assert attempt(run).status.state == "failed"
    kept = tmp_path / "scratch" / f"datamask-{run.id}"
    assert run.whole["scratch"] == str(kept) and kept.is_dir()
    RunStore(run.path.parent).remove(run.id)
    assert not kept.exists() and not run.path.exists()


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
    assert selection.summary["n"] == N and len(selection.mask) == SAMPLE
    assert Run(selection.run).status().to_dict()["summary"]["selected"] == S


def test_a_bound_that_cannot_be_is_none(folder, tmp_path, monkeypatch):
    beside = Weights.beside_scores
    monkeypatch.setattr(Weights, "beside_scores", lambda *given: beside(*given) - 0.01)
    summary = execute(_created(tmp_path, folder)).to_dict()
    assert summary["upper_bound"] is None and summary["gap"] is None and summary["bound_holds_for"] is None


def test_shards_that_change_meanwhile_are_refused(folder, tmp_path, monkeypatch):
    place = tmp_path / "shards"
    place.mkdir()
    for path in folder.iterdir():
        pq.write_table(pq.read_table(path), place / path.name)
    run, solve = _created(tmp_path, place), solvers.streamed_dual.solve

    def rewritten(*given, **options):
        dual = solve(*given, **options)
        pq.write_table(shard(ROWS[3], seed=77, d=8), place / "3.parquet")
        return dual

    monkeypatch.setattr(solvers.streamed_dual, "solve", rewritten)
    with pytest.raises(
        InputError, match=r"3.parquet (has changed since the run|is damaged or was changed|was rewritten)"
    ):
        execute(run)


ALTERED = {
    "features": lambda values: values.reshape(-1, 8)[::-1].ravel(),
    "quality": lambda values: values + 1.0,
    "id_hash": lambda values: values ^ 255,
    "source_row": lambda values: values + 1,  # of the sample's rows none is missing
}


@pytest.mark.parametrize("kind", ALTERED)
def test_scratch_that_is_altered_meanwhile_is_named_and_not_the_shard(kind, folder, tmp_path, monkeypatch):
    run, solve = _created(tmp_path, folder), solvers.streamed_dual.solve

    def altered(scratch, *given, **options):
        dual = solve(scratch, *given, **options)
        if "on_pass" not in options:  # an end of a scale
            return dual
        path = scratch.folder / f"000003.{kind}"
        ALTERED[kind](np.fromfile(path, KINDS[kind])).astype(KINDS[kind]).tofile(path)
        scratch.__dict__.pop("quality", None)
        return dual

    monkeypatch.setattr(solvers.streamed_dual, "solve", altered)
    with pytest.raises(StoreError, match=rf"has a 000003\.{kind} .*that no longer agrees with .*3\.parquet, which has"):
        execute(run)
