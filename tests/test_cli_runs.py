"""The commands on runs that are there, stopped or done: resume, runs, score; and texts prepared for one."""

from __future__ import annotations

import json
import os
import re
import signal
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from datamask import catalogue
from datamask.runs.store import RunStore
from tests.commands import FAST, N, last_json, run
from tests.making.run_folders import config, install_fake_execute, wait_for

# -- stopping and resuming --------------------------------------------------------------------------------------------


def interrupt_at_step(step: int) -> threading.Thread:
    """Press Ctrl-C once the run in `runs/` has come so far."""

    def press():
        wait_for(lambda: any(len(each.metrics().get("step", ())) >= step for each in RunStore("runs").list()))
        os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=press)
    thread.start()
    return thread


@pytest.mark.parametrize(
    "options",
    [
        ["--estimator", "reinforce", "--n_epochs", "150", "--n_rollout", "8"],
        ["--estimator", "counterfactual", "--n_epochs", "150"],
    ],
)
def test_ctrl_c_is_resumable_and_ends_in_the_unbroken_selection(here, capsys, options):
    words = ["in.parquet", *options, "--objective", "pairwise", "--device", "cpu", "--json"]
    thread = interrupt_at_step(15)
    assert run("select", *words, "--output", "broken.parquet", "--weights", "broken_weights.parquet") == 130
    thread.join()
    captured = capsys.readouterr()
    stopped = json.loads(captured.out.splitlines()[-1])
    assert stopped["status"] == "stopped" and not Path("broken.parquet").exists()
    command = re.search(r"go on with: python -m datamask (resume \S+)$", captured.err, re.M)[1]
    step = RunStore("runs").get(stopped["run_id"]).status().step
    assert 15 <= step < 150
    assert run(*command.split(), "--json") == 0
    assert last_json(capsys)["run_id"] == stopped["run_id"]
    weights = re.search(r"then: python -m datamask (runs export \S+ --weights \S+)$", captured.err, re.M)[1]
    assert not Path("broken_weights.parquet").exists() and run(*weights.split()) == 0
    assert run("select", *words, "--output", "unbroken.parquet", "--weights", "weights.parquet") == 0
    assert pq.read_table("broken_weights.parquet").equals(pq.read_table("weights.parquet"))
    broken, unbroken = pq.read_table("broken.parquet"), pq.read_table("unbroken.parquet")
    assert broken["chunk_id"].equals(unbroken["chunk_id"]) and broken["logit"].equals(unbroken["logit"])
    steps = RunStore("runs").get(stopped["run_id"]).metrics()["step"]
    np.testing.assert_array_equal(steps, np.arange(1, len(steps) + 1))


def test_a_second_ctrl_c_leaves_at_once(here, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "datamask.runs.execute", None)
    install_fake_execute()

    def deaf(run, work, **kwargs):
        with run.writer() as writer:
            writer.set_status("running")
            os.kill(os.getpid(), signal.SIGINT)
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(10)

    sys.modules["datamask.runs.execute"].execute = deaf
    before = signal.getsignal(signal.SIGINT)
    assert run("select", "in.parquet", "--output", "o.parquet") == 130
    assert "once more to leave at once" in capsys.readouterr().err
    assert signal.getsignal(signal.SIGINT) is before
    assert RunStore("runs").list()[0].status().state == "interrupted"


def test_resume_of_a_done_run_writes_its_selection_again_and_of_a_running_one_is_refused(here, capsys):
    assert run("select", "in.parquet", "--output", "one.parquet", "--json", *FAST) == 0
    run_id = last_json(capsys)["run_id"]
    assert run("resume", run_id, "--output", "two.parquet", "--json") == 0
    assert last_json(capsys)["output"] == str(here / "two.parquet")
    assert Path("one.parquet").read_bytes() == Path("two.parquet").read_bytes()
    busy = RunStore("runs").create(config())
    with busy.writer() as writer:
        writer.set_status("running")
        assert run("resume", busy.id) == 2
    assert "is running" in capsys.readouterr().err


def test_resume_without_its_device_leaves_the_reason_in_the_folder(here, capsys):
    away = config()
    away = RunStore("runs").create(replace(away, selection=replace(away.selection, device="cuda:99")))
    with away.writer() as writer:
        writer.set_status("running")
    assert away.status().state == "interrupted" and run("resume", away.id) == 2
    assert "--device cuda:99 is not on this machine" in capsys.readouterr().err
    status = away.status()
    assert status.state == "failed" and status.resumable and "--device cuda:99 is not on" in status.error


# -- looking, exporting, scoring, preparing ---------------------------------------------------------------------------


def test_runs_are_listed_shown_and_exported(here, capsys):
    assert run("runs", "list") == 0
    assert "there are no runs in runs yet" in capsys.readouterr().err
    assert run("select", "in.parquet", "more.parquet", "--output", "o.parquet", "--name", "mine", "--json", *FAST) == 0
    summary = last_json(capsys)
    run_id = summary["run_id"]
    RunStore("runs").create(config(), run_id="broken").path.joinpath("config.json").write_text("{")
    assert run("runs", "list") == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["RUN", "STATE", "OBJECTIVE", "LAMBDA", "RATIO", "QUALITY", "DIVERSITY", "NAME"]
    assert any(line.startswith(run_id) and line.endswith("mine") for line in lines)
    assert any(line.startswith("broken") and "failed" in line for line in lines)
    assert run("runs", "list", "--json") == 0
    assert {row["run"]: row["state"] for row in last_json(capsys)["runs"]} == {run_id: "done", "broken": "failed"}
    assert run("runs", "show", run_id) == 0
    assert "python -m datamask select" in capsys.readouterr().out
    assert run("runs", "show", run_id, "--json") == 0
    assert last_json(capsys)["status"]["summary"]["joint"] == summary["joint"]
    assert run("runs", "show", "broken") == 2
    assert run("runs", "export", run_id) == 2
    assert "at least one of --card FOLDER, --ids" in capsys.readouterr().err
    assert run("runs", "export", run_id, "--ids", "ids.csv", "--rows", "rows.parquet", "--mask", "masks") == 0
    chosen = sorted(pq.read_table("o.parquet")["chunk_id"].to_pylist())
    rows = pq.read_table("rows.parquet")
    assert sorted(rows["chunk_id"].to_pylist()) == chosen
    assert rows.schema.equals(pq.read_schema("in.parquet"))
    masks = [pq.read_table(f"masks/{name}.mask.parquet")["selected"].to_pylist() for name in ("in", "more")]
    assert [len(mask) for mask in masks] == [N, 60] and sum(map(sum, masks)) == len(chosen)
    assert len(Path("ids.csv").read_text().splitlines()) == len(chosen) + 1


def test_score_gives_values_and_overlap_beside_chance(here, capsys):
    for name, estimator in (("a", "random"), ("b", "top-quality")):
        assert (
            run(
                "select",
                "in.parquet",
                "--output",
                f"{name}.parquet",
                "--estimator",
                estimator,
                "--device",
                "cpu",
                "--json",
            )
            == 0
        )
        summary = last_json(capsys)
    assert run("score", "in.parquet", "--selection", "a.parquet", "--selection", "b.parquet", "--json") == 0
    result = last_json(capsys)
    first, second = result["selections"]
    assert [entry["selection"] for entry in (first, second)] == ["a.parquet", "b.parquet"]
    assert second["quality"] == pytest.approx(summary["quality"])
    assert second["objectives"]["facility"] == pytest.approx(summary["diversity"])
    assert set(second["objectives"]) == {entry.name for entry in catalogue.OBJECTIVES}
    a, b = (set(pq.read_table(f"{name}.parquet")["chunk_id"].to_pylist()) for name in "ab")
    (pair,) = result["overlaps"]
    assert pair["shared"] == len(a & b) and pair["overlap"] == pytest.approx(len(a & b) / len(a | b))
    assert pair["chance"] == pytest.approx(0.3 / 1.7)
    assert run("score", "in.parquet", "--selection", "a.parquet", "--selection", "b.parquet") == 0
    assert "by chance 0.176" in capsys.readouterr().out
    # of a sample it does not say that ids beyond it lie outside the corpus
    assert run("score", "in.parquet", "--selection", "b.parquet", "--rows", "100") == 0
    counts = re.search(r"(\d+) of 100 rows \((\d+) more ids are not among the rows opened\)", capsys.readouterr().out)
    assert counts is not None and sum(map(int, counts.groups())) == len(b)


def test_texts_alone_can_be_prepared_and_selected(here, capsys):
    words = ("select", "corpora", "carefully", "because", "models", "learn", "from", "every", "text", "they", "see")
    rng = np.random.default_rng(0)
    texts = [" ".join(rng.choice(words, 40)) + "." for _ in range(80)]
    pq.write_table(pa.table({"body": texts}), "texts.parquet")
    assert run("prepare", "--text-column", "body", "texts.parquet", "--output", "prepared", "--dim", "6", "--json") == 0
    assert isinstance(last_json(capsys), dict)
    assert run("select", "prepared", "--output", "o.parquet", "--json", *FAST) == 0
    assert last_json(capsys)["selected"] == 24


def test_features_by_a_function_of_ones_own(here, capsys, monkeypatch):
    monkeypatch.setattr(sys, "path", [*sys.path, str(here)])
    Path("letters.py").write_text("def embed(texts):\n    return [[t.count(x) for x in 'abcdefgh'] for t in texts]\n")
    rng = np.random.default_rng(0)
    texts = ["".join(rng.choice(list("abcdefgh "), 60)) for _ in range(80)]
    pq.write_table(pa.table({"text": texts}), "texts.parquet")
    assert run("prepare", "texts.parquet", "--output", "made", "--embedder", "letters:embed", "--json") == 0
    made = last_json(capsys)
    assert (made["embedder"], made["dim"], len(made["digest"])) == ("letters:embed", 8, 64)
    assert run("select", "made", "--output", "o.parquet", "--json", *FAST) == 0
    facts = RunStore("runs").get(last_json(capsys)["run_id"]).facts()
    assert "Features by letters:embed (function)." in str(facts)
    assert run("prepare", "texts.parquet", "--output", "more", "--embedder", "letters") == 2
    assert "--embedder must be tfidf, model2vec:PATH, st:NAME_OR_PATH or MODULE:FUNCTION" in capsys.readouterr().err


def test_the_runs_folder_of_the_environment_is_the_command_lines_and_the_dashboards(here, capsys, monkeypatch):
    from datamask.dashboard.shell import session

    monkeypatch.setenv("DATAMASK_RUNS_DIR", "elsewhere")
    assert run("select", "in.parquet", "--output", "out.parquet", "--json", *FAST) == 0
    made = last_json(capsys)["run_id"]
    assert [one.name for one in Path("elsewhere").iterdir() if one.name == made] == [made]
    assert not Path("runs").exists() and session.runs_dir() == Path("elsewhere").absolute()


@pytest.mark.parametrize(
    "options, said",
    [
        ([], None),
        (["--prune", "0.5"], "the worst 50 % by quality skipped"),
        (["--collapse", "exact"], "of exact duplicates (same features) only the best kept ("),
        (["--collapse", "0.99"], "of semantic duplicates (cosine 0.99 or more) only the best kept ("),
    ],
)
def test_a_bound_says_among_which_selections_it_holds(here, capsys, options, said):
    from datamask.dashboard.runs import outcome

    assert run("select", "in.parquet", "--output", "o.parquet", "--objective", "pairwise", *FAST, *options) == 0
    text = capsys.readouterr().out
    (joint,) = re.findall(r"joint +([\d.]+) %", text)
    ((ruled, bound),) = re.findall(
        r"No selection of this size( under these rules)? has a joint value above ([\d.]+) % \(gap [\d.]+ %\)\.", text
    )
    assert float(bound) >= float(joint) - 0.05 and bool(ruled) is (said is not None)
    (made,) = RunStore("runs").list()
    proof = outcome.certificate(made)
    assert ("under the same rules" in proof) is (said is not None)
    if said:
        assert f"Rules: {said}" in text and said in proof


def test_a_budget_without_its_tokens_is_shown_all_the_same(here, capsys):
    assert (
        run(
            "select",
            "in.parquet",
            "--output",
            "out.parquet",
            "--objective",
            "pairwise",
            "--estimator",
            "relaxed",
            "--runs_dir",
            "r",
            *FAST[2:],
        )
        == 0
    )
    (folder,) = Path("r").glob("2*")
    status = json.loads((folder / "status.json").read_text(encoding="utf-8"))
    status["summary"].update(budget=100.0, tokens=None)
    (folder / "status.json").write_text(json.dumps(status), encoding="utf-8")
    capsys.readouterr()
    assert run("runs", "show", folder.name, "--runs_dir", "r") == 0
    assert "Selected" in capsys.readouterr().out
