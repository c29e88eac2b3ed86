"""The contract of the run folder, clause by clause; `datamask.runs.store` states it."""

from __future__ import annotations

import fcntl
import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from datamask.config import CorpusConfig, RunConfig
from datamask.errors import InputError, RunStateError, StoreError
from datamask.runs import store as store_module
from datamask.runs import writer as writer_module
from datamask.runs.labels import Label, Result, read_results
from datamask.runs.store import RunStore
from tests.runs.helpers import config

ROOT = Path(writer_module.__file__).parents[2]




def names(folder: Path) -> list[str]:
    """What lies in a folder, hidden files included."""
    return sorted(path.name for path in folder.iterdir())


def in_another_process(code: str, *words: object) -> subprocess.Popen:
    """A Python process that says a line when it has come so far, and then waits to be killed."""
    process = subprocess.Popen([sys.executable, "-c", code, *map(str, words)], stdout=subprocess.PIPE, text=True,
                               cwd=ROOT)
    assert process.stdout.readline().strip() == "ready"
    return process


def kill(process: subprocess.Popen) -> None:
    process.send_signal(signal.SIGKILL)
    process.wait()
    process.stdout.close()


WORKER = """
import sys, time
from datamask.runs.labels import Label, Result, read_results
from datamask.runs.store import RunStore
run = RunStore(sys.argv[1]).get(sys.argv[2])
with run.writer() as writer:
    writer.set_status("running")
    writer.beat(7, 100, "learning")
    writer.append_metrics({"step": 7, "joint": 0.5})
    print("ready", flush=True)
    time.sleep(60)
"""


# -- creating and finding ---------------------------------------------------------------------------------------------


def test_a_new_run_is_queued_and_its_settings_read_back(store):
    run = store.create(config("my run", objective="pairwise", lamb=0.25), output="out.parquet")
    again = store.get(run.id)
    assert again.config == config("my run", objective="pairwise", lamb=0.25)
    assert again.status().state == "queued"
    assert again.facts()["output"] == "out.parquet"
    assert again.facts()["format_version"] == 1
    assert again.facts()["versions"]["numpy"] == np.__version__
    assert names(run.path) == ["config.json", "status.json"]


def test_a_file_name_that_is_no_utf8_and_other_letters_survive(store):
    strange = RunConfig(CorpusConfig(("caf\udce9.parquet", "日本語.parquet")), name="größer & <b>")
    assert RunStore(store.root).get(store.create(strange).id).config == strange


def test_ids_tell_time_and_objective_and_differ(store):
    ids = {store.create(config(objective="pairwise:1,disf:2")).id for _ in range(20)}
    assert len(ids) == 20
    for run_id in ids:
        date, clock, *objective, tail = run_id.split("-")
        assert len(date) == 8 and len(clock) == 6 and len(tail) == 4
        assert objective == ["pairwise", "disf"]


@pytest.mark.parametrize("bad", ["../x", "a/b", ".cache", "", "A", "a b", "a\n", "..", "a.b", "ä", None, "x!"])
def test_anything_but_a_run_id_is_refused_before_it_is_a_path(store, bad, tmp_path):
    (tmp_path / "x").mkdir()
    (tmp_path / "x" / "status.json").write_text("{}")
    with pytest.raises(InputError, match="run id"):
        store.get(bad)
    if bad is not None:
        with pytest.raises(InputError, match="run id"):
            store.create(config(), run_id=bad)


def test_a_run_that_is_not_there_is_named(store):
    with pytest.raises(InputError, match="no run 'abc'"):
        store.get("abc")


def test_two_creators_of_one_id_make_one_run(store):
    endings = []

    def create():
        try:
            endings.append(store.create(config(), run_id="same").id)
        except RunStateError:
            endings.append("refused")

    threads = [threading.Thread(target=create) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(endings) == ["refused"] * 7 + ["same"]
    assert names(store.root) == ["same"]


def test_list_is_newest_first_and_ignores_what_is_no_run(store):
    assert store.list() == []
    for name in ("b", "a", "c"):
        store.create(config(), run_id=name)
        time.sleep(0.01)
    (store.root / "tensorboard").mkdir()
    (store.root / "tensorboard" / "events.out").write_text("x")
    (store.root / "Upper").mkdir()
    (store.root / "Upper" / "status.json").write_text("{}")
    (store.root / "file.txt").write_text("x")
    store.cache_dir.mkdir()
    assert [run.id for run in store.list()] == ["c", "a", "b"]


@pytest.mark.parametrize("name, text", [("status.json", "{"), ("status.json", '{"state": "happy"}'),
                                        ("status.json", "[]"), ("status.json", ""), ("status.json", "\x00\x00"),
                                        ("config.json", "not json"), ("config.json", None), ("config.json", "3")])
def test_a_broken_run_is_listed_as_failed_with_a_sentence(store, name, text):
    store.create(config(), run_id="good")
    broken = store.create(config(), run_id="broken")
    if text is None:
        (broken.path / name).unlink()
    else:
        (broken.path / name).write_text(text)
    states = {run.id: run.status() for run in store.list()}
    assert states["good"].state == "queued"
    assert states["broken"].state == "failed"
    assert states["broken"].error.startswith("This run cannot be read: ")
    store.remove("broken")
    assert [run.id for run in store.list()] == ["good"]


def test_two_hundred_runs_are_listed_quickly(store, monkeypatch):
    monkeypatch.setattr(store_module, "QUEUE_GRACE", 3600.0)  # a slow disk must not turn them into interrupted ones
    first = store.create(config(), run_id="run-0")
    for k in range(1, 200):
        folder = store.root / f"run-{k}"
        folder.mkdir()
        for name in ("config.json", "status.json"):
            (folder / name).write_bytes((first.path / name).read_bytes())
        # large files must not be opened, let alone read
        (folder / "rows.parquet").write_bytes(b"no parquet at all")
        (folder / "metrics.jsonl").write_bytes(b"{}" * 100_000)
    start = time.perf_counter()
    states = [(run.config.selection.lamb, run.status().state) for run in store.list()]
    seconds = time.perf_counter() - start
    assert states == [(0.5, "queued")] * 200
    assert seconds < 5  # 0.05 s on an idle machine


# -- what a reader sees -----------------------------------------------------------------------------------------------


def test_status_is_never_seen_half_written(store):
    run = store.create(config())
    bad, done = [], threading.Event()

    def watch():
        while not done.is_set():
            state = run.status()
            if state.state != "running" and state.state != "queued":
                bad.append(state)

    watchers = [threading.Thread(target=watch) for _ in range(3)]
    for watcher in watchers:
        watcher.start()
    with run.writer() as writer:
        for k in range(200):
            writer.set_status("running", message="x" * (k % 50) * 100, step=k)
        done.set()
        for watcher in watchers:
            watcher.join()
    assert not bad


def test_fields_not_named_stay_and_a_new_attempt_forgets_the_last_ending(store):
    run = store.create(config())
    with run.writer() as writer:
        writer.set_status("running", step=3, total_steps=10)
        writer.finish("failed", error="No room.", traceback="Traceback", ending="failed")
    status = run.status()
    assert (status.state, status.step, status.total_steps, status.error) == ("failed", 3, 10, "No room.")
    assert status.created <= status.started <= status.ended
    with run.writer() as writer:
        writer.set_status("running")
        status = run.status()
        assert (status.state, status.step, status.error, status.traceback, status.ended) == ("running", 3, "", "", None)


def test_beats_are_throttled_but_the_first_is_not(store, monkeypatch):
    run = store.create(config())
    with run.writer() as writer:
        writer.set_status("running")
        writer.beat(1, 10, "one")
        writer.beat(2, 10, "two")
        assert (run.status().step, run.status().message) == (1, "one")
        monkeypatch.setattr(writer_module, "BEAT_SECONDS", 0.0)
        writer.beat(3, 10, "three")
        assert run.status().step == 3
        monkeypatch.undo()
        writer.beat(4, 10, "four")
        assert run.status().step == 3
        writer.finish("stopped", ending="stopped on request")
    assert (run.status().step, run.status().message) == (4, "stopped on request")


def test_done_needs_a_selection_and_comes_last(store, monkeypatch):
    run = store.create(config())
    with run.writer() as writer:
        writer.set_status("running")
        with pytest.raises(RunStateError, match="selection"):
            writer.finish("done", {})
        with pytest.raises(RunStateError, match=r"no selection\.parquet yet"):
            run.selection()
        writer.write_selection(pa.table({"id": ["a"]}), run.config.to_dict())
        assert run.status().state == "running"
        writer.finish("done", {"joint": np.float32(0.5), "gap": float("nan")}, "converged")
    assert run.status().state == "done"
    assert run.status().summary == {"joint": 0.5, "gap": None}
    stored = pq.read_schema(run.path / "selection.parquet").metadata[b"datamask"]
    assert RunConfig.from_dict(json.loads(stored)) == run.config


def test_names_and_notes_change_without_the_lock(store):
    run = store.create(config("before"))
    with run.writer() as writer:
        run.relabel("after", "why: <b>because</b>")
        writer.update_facts(n=5)
    assert (run.config.name, run.config.notes) == ("after", "why: <b>because</b>")
    run.relabel(notes="")
    assert (store.get(run.id).config.name, store.get(run.id).config.notes) == ("after", "")
    assert run.facts()["n"] == 5


def test_tags_archiving_and_results_are_decoration(store):
    run = store.create(config("before"))
    assert run.label() == Label() and run.results() == []
    run.relabel(tags=[" good ", "", "2b", "good"], archived=True)
    run.relabel(notes="n")
    assert run.label() == Label(None, "n", ("good", "2b"), True) and run.config.name == "before"
    run.relabel(archived=False)
    assert not store.get(run.id).label().archived
    found = read_results("\ufeffTask, Score,seed\nmmlu, 0.41,1\nmmlu,0.43,2\narc,1e-1,\n", "r.csv")
    run.attach(found)
    assert store.get(run.id).results() == found == [Result("mmlu", 0.41, "1"), Result("mmlu", 0.43, "2"),
                                                    Result("arc", 0.1, "")]
    for name in ("label.json", "results.json"):
        (run.path / name).write_text("{")
    assert run.label() == Label() and run.results() == [] and run.config.name == "before"
    run.attach([])
    assert run.results() == []


@pytest.mark.parametrize("text, says", [
    ("task,value\nx,1\n", "columns task and score"), ("", "it has none"), ("task,score\n", "has no rows"),
    ("task,score\nx,good\n", "line 2: expected a task and a finite score, got 'x' and 'good'"),
    ("task,score\nx,1\n,2\n", "line 3"), ("task,score\nx,nan\n", "line 2"),
])
def test_results_that_make_no_sense_name_their_line(text, says):
    with pytest.raises(InputError, match=says):
        read_results(text, "r.csv")


# -- metrics ----------------------------------------------------------------------------------------------------------


def test_metrics_read_back_by_column_with_gaps_as_nan(store):
    run = store.create(config())
    assert run.metrics() == {}
    with run.writer() as writer:
        writer.append_metrics({"step": 1, "joint": np.float64(0.5)})
        writer.append_metrics({"step": 2, "lr": 0.1, "joint": float("nan")})
        assert len(run.metrics()["step"]) == 2  # at once, not at the end
    metrics = run.metrics()
    np.testing.assert_array_equal(metrics["step"], [1, 2])
    np.testing.assert_array_equal(metrics["joint"], [0.5, np.nan])
    np.testing.assert_array_equal(metrics["lr"], [np.nan, 0.1])


@pytest.mark.parametrize("torn", [b'{"step": 3, "jo', b"{", b'{"step": 3}', b"\xff\xfe"])
def test_a_torn_last_line_is_ignored_and_cut_off_by_the_next_writer(store, torn):
    run = store.create(config())
    with run.writer() as writer:
        writer.append_metrics({"step": 1})
        writer.append_metrics({"step": 2})
    path = run.path / "metrics.jsonl"
    whole = path.read_bytes()
    path.write_bytes(whole + torn)
    assert run.metrics()["step"].tolist()[:2] == [1, 2]
    with run.writer() as writer:
        assert path.read_bytes() == whole
        writer.append_metrics({"step": 3})
    np.testing.assert_array_equal(run.metrics()["step"], [1, 2, 3])


def test_metrics_past_the_checkpoint_are_dropped(store):
    run = store.create(config())
    with run.writer() as writer:
        writer.truncate_metrics(5)
        for step in range(1, 8):
            writer.append_metrics({"step": step})
        writer.truncate_metrics(4)
        writer.append_metrics({"step": 5})
    np.testing.assert_array_equal(run.metrics()["step"], [1, 2, 3, 4, 5])


# -- checkpoint, history, tables --------------------------------------------------------------------------------------


@given(seed=st.integers(0, 2**32 - 1), n=st.integers(0, 50),
       meta=st.dictionaries(st.text(max_size=5), st.one_of(st.integers(-2**60, 2**60), st.text(max_size=5),
                                                           st.floats(allow_nan=False, allow_infinity=False))))
@settings(max_examples=25, deadline=None)
def test_checkpoints_read_back_exactly(tmp_path_factory, seed, n, meta):
    rng = np.random.default_rng(seed)
    arrays = {"logits": rng.normal(size=n).astype(np.float32), "rng": rng.integers(0, 256, 2 * n).astype(np.uint8),
              "mask": rng.random(n) < 0.5, "step": np.array(seed)}
    run = RunStore(tmp_path_factory.mktemp("runs")).create(config())
    with run.writer() as writer:
        assert writer.load_checkpoint() is None
        writer.save_checkpoint(arrays, meta)
        found, found_meta = writer.load_checkpoint()
    assert found_meta == meta
    assert found.keys() == arrays.keys()
    for name, array in arrays.items():
        assert found[name].dtype == array.dtype
        np.testing.assert_array_equal(found[name], array)


def test_a_checkpoint_executes_nothing(store, tmp_path):
    class Bomb:
        def __reduce__(self):
            return os.mkdir, (str(tmp_path / "exploded"),)

    run = store.create(config())
    with run.writer() as writer:
        with pytest.raises(ValueError, match="plain numbers"):
            writer.save_checkpoint({"x": np.array([Bomb()], dtype=object)}, {})
        np.savez(run.path / "checkpoint.npz", x=np.array([Bomb()], dtype=object), __meta__=np.zeros(1, np.uint8))
        with pytest.raises(StoreError, match="damaged"):
            writer.load_checkpoint()
    assert not (tmp_path / "exploded").exists()


def test_a_damaged_checkpoint_says_what_to_do(store):
    run = store.create(config())
    with run.writer() as writer:
        writer.save_checkpoint({"x": np.arange(1000)}, {})
        path = run.path / "checkpoint.npz"
        path.write_bytes(path.read_bytes()[:-500])
        with pytest.raises(StoreError, match="delete it to start"):
            writer.load_checkpoint()


def test_history_is_half_precision_without_new_infinities(store):
    run = store.create(config())
    assert run.history() == {}
    logits = np.array([[1e9, -1e9, -np.inf], [0.1, 1.0, 2.0]])
    with run.writer() as writer:
        writer.write_history(logits=logits, step=np.array([1, 70_000]))
    history = run.history()
    assert history["logits"].dtype == np.float16
    np.testing.assert_array_equal(np.isinf(history["logits"]), np.isinf(logits))
    np.testing.assert_allclose(history["logits"][1], logits[1], rtol=1e-3)
    np.testing.assert_array_equal(history["step"], [1, 70_000])


def test_rows_read_back_with_their_types(store):
    run = store.create(config())
    table = pa.table({"id": pa.array([1, 2], pa.uint16()), "logit": pa.array([None, 0.5], pa.float32()),
                      "source_file": pa.array(["a", "a"]).dictionary_encode()})
    with run.writer() as writer:
        writer.write_rows(table)
    assert run.rows().equals(table)


# -- the lock ---------------------------------------------------------------------------------------------------------


def test_a_second_writer_is_refused_in_this_process_and_in_another(store):
    run = store.create(config())
    code = ("import sys\nfrom datamask.runs.store import RunStore\nfrom datamask.errors import RunStateError\n"
            "try:\n    RunStore(sys.argv[1]).get(sys.argv[2]).writer().__enter__()\n"
            "except RunStateError as error:\n    print(error)")
    with run.writer():
        with pytest.raises(RunStateError, match="already running"):
            run.writer().__enter__()
        other = subprocess.run([sys.executable, "-c", code, store.root, run.id], capture_output=True, text=True,
                               cwd=ROOT)
        assert "already running" in other.stdout
    with run.writer() as writer:
        writer.set_status("running")


def test_a_watcher_at_the_wrong_moment_does_not_turn_a_worker_away(store):
    run = store.create(config())
    handle = os.open(run.path / "lock", os.O_RDWR | os.O_CREAT)
    fcntl.flock(handle, fcntl.LOCK_SH)  # what a watcher holds for an instant
    threading.Timer(0.1, os.close, [handle]).start()
    with run.writer() as writer:
        writer.set_status("running")


def test_kill_nine_leaves_interrupted_and_resume_takes_the_lock(store):
    run = store.create(config())
    worker = in_another_process(WORKER, store.root, run.id)
    assert run.status().state == "running"
    assert run.status().pid == worker.pid
    with pytest.raises(RunStateError):
        run.writer().__enter__()
    with pytest.raises(RunStateError, match="running"):
        store.remove(run.id)
    kill(worker)
    status = run.status()
    assert (status.state, status.step, status.resumable) == ("interrupted", 7, True)
    assert json.loads((run.path / "status.json").read_text())["state"] == "running"  # derived, never written
    with run.writer() as writer:
        writer.set_status("running")
        assert run.status().state == "running"


def test_finishing_is_never_mistaken_for_an_interruption(store, monkeypatch):
    """The worker ends between the watcher's look at the status and its look at the lock."""
    run = store.create(config())
    writer = run.writer()
    writer.__enter__()
    writer.set_status("running")
    real = store_module.is_held

    def ends_just_now(path):
        if path.name == "lock" and run._written_status().state == "running":
            writer.finish("stopped")
            writer.__exit__()
        return real(path)

    monkeypatch.setattr(store_module, "is_held", ends_just_now)
    assert run.status().state == "stopped"


def test_a_queued_run_of_a_dead_process_is_interrupted(store, monkeypatch):
    run = store.create(config())
    monkeypatch.setattr(store_module, "QUEUE_GRACE", 0.0)
    assert run.status().state == "interrupted"
    assert "before it began" in run.status().message
    code = ("import sys, time\nfrom datamask.runs.store import RunStore\nrun = RunStore(sys.argv[1]).get(sys.argv[2])\n"
            "with run.queued():\n    print('ready', flush=True)\n    time.sleep(60)")
    owner = in_another_process(code, store.root, run.id)
    assert run.status().state == "queued"
    with pytest.raises(RunStateError, match="another queue"), run.queued():
        pass
    kill(owner)
    assert run.status().state == "interrupted"
    with run.queued():
        assert run.status().state == "queued"
    monkeypatch.setattr(store_module, "QUEUE_GRACE", 3600.0)
    assert run.status().state == "queued"  # just created: its owner may still be on its way to the queue


# -- stopping and removing --------------------------------------------------------------------------------------------


def test_a_stop_request_reaches_the_worker_and_is_forgotten_once_obeyed(store):
    run = store.create(config())
    with run.writer() as writer:
        writer.set_status("running")
        assert not writer.stop_requested()
        store.get(run.id).request_stop()
        assert writer.stop_requested()
        writer.finish("stopped", ending="stopped")
    assert not run.stop_requested()


def test_a_stop_request_of_the_last_attempt_does_not_stop_the_next(store):
    run = store.create(config())
    run.request_stop()
    with run.writer() as writer:  # asked while it was queued: that counts
        assert writer.stop_requested()
        writer.set_status("running")
    assert run.status().state == "interrupted"
    with run.writer() as writer:
        assert not writer.stop_requested()
    run.request_stop()
    with run.writer() as writer:
        writer.set_status("queued")
    assert not run.stop_requested()


def test_a_removed_run_is_gone_and_says_so_to_whoever_still_looks(store):
    run = store.create(config())
    store.remove(run.id)
    assert names(store.root) == []
    assert "has been removed" in run.status().error
    for action in (lambda: run.writer().__enter__(), run.request_stop, lambda: run.relabel("x")):
        with pytest.raises(StoreError):
            action()
    assert not run.path.exists()


# -- a disk that refuses ----------------------------------------------------------------------------------------------


def test_a_file_where_the_runs_folder_should_be(tmp_path):
    (tmp_path / "runs").write_text("I was here first")
    for root in (tmp_path / "runs", tmp_path / "runs" / "deeper"):
        with pytest.raises(StoreError, match="is a file, not a folder"):
            RunStore(root).create(config())
        with pytest.raises(StoreError, match="cannot be listed"):
            RunStore(root).list()
    assert (tmp_path / "runs").read_text() == "I was here first"


def test_a_full_disk_under_the_metrics(store):
    run = store.create(config())
    (run.path / "metrics.jsonl").symlink_to("/dev/full")
    writer = writer_module.RunWriter(run.path)
    with writer, pytest.raises(StoreError, match="No space left"):
        writer.append_metrics({"step": 1})


LIMITED = """
import resource, sys
import numpy as np, pyarrow as pa
from datamask.runs.store import RunStore
from datamask.errors import StoreError
run = RunStore(sys.argv[1]).get(sys.argv[2])
random = np.random.default_rng(0).normal(size=20_000)
with run.writer() as writer:
    writer.append_metrics({"step": 1})
    writer.save_checkpoint({"x": np.arange(3)}, {"step": 1})
    writer.write_rows(pa.table({"x": [1]}))
    resource.setrlimit(resource.RLIMIT_FSIZE, (8192, 8192))
    refused = []
    for action in (lambda: writer.save_checkpoint({"x": random}, {"step": 2}),
                   lambda: writer.write_rows(pa.table({"x": random})),
                   lambda: writer.write_selection(pa.table({"x": random}), {}),
                   lambda: writer.write_history(x=random),
                   lambda: writer.update_facts(long="x" * 10_000),
                   lambda: [writer.append_metrics({"step": k}) for k in range(2, 2000)]):
        try:
            action()
        except StoreError as error:
            refused.append(str(error))
print(len(refused), all("too large" in text.lower() for text in refused), refused)
"""


def test_a_file_size_limit_leaves_the_old_files_whole(store):
    run = store.create(config())
    done = subprocess.run([sys.executable, "-c", LIMITED, store.root, run.id], capture_output=True, text=True,
                               cwd=ROOT)
    assert done.stdout.startswith("6 True"), done.stdout + done.stderr
    assert run.rows().to_pydict() == {"x": [1]}
    assert not run.has_selection and run.history() == {} and "long" not in run.facts()
    lines = (run.path / "metrics.jsonl").read_bytes()
    assert lines.endswith(b"}\n") and 8000 < len(lines) < 8192  # the line that did not fit is not there by half
    with run.writer() as writer:
        assert writer.load_checkpoint()[1] == {"step": 1}
    assert [name for name in names(run.path) if name.startswith(".")] == []


@pytest.mark.parametrize("function", ["replace", "chmod"])
def test_an_error_at_the_last_moment_keeps_the_old_status(store, monkeypatch, function):
    run = store.create(config())
    with run.writer() as writer:
        writer.set_status("running", step=1)

        def refuse(self, *args, **kwargs):
            raise OSError(28, "No space left on device")

        monkeypatch.setattr(f"pathlib.Path.{function}", refuse)
        with pytest.raises(StoreError, match="No space left"):
            writer.set_status("running", step=2)
        with pytest.raises(StoreError, match="No space left"):
            store.create(config())
        monkeypatch.undo()
        assert run.status().step == 1
    assert names(store.root) == [run.id]
