"""The contract of the run folder, clause by clause; `datamask.runs.store` states it."""

from __future__ import annotations

import errno
import json
import threading
import time
import tracemalloc

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from datamask import memo
from datamask.config import CorpusConfig, RunConfig
from datamask.errors import InputError, RunStateError, StoreError
from datamask.files import read_bounded
from datamask.runs import store as store_module
from datamask.runs import writer as writer_module
from datamask.runs.store import RunStore
from tests.making.run_folders import config, names

# -- creating and finding ---------------------------------------------------------------------------------------------


def test_a_new_run_is_queued_and_its_settings_read_back(store):
    run = store.create(config("my run", objective="pairwise", lamb=0.25), output="out.parquet")
    again = store.get(run.id)
    assert again.config == config("my run", objective="pairwise", lamb=0.25)
    assert again.status().state == "queued"
    assert again.facts()["output"] == "out.parquet"
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
        assert len(date) == 8 and len(clock) == 6 and len(tail) == 8
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


@pytest.mark.parametrize(
    "name, text",
    [
        ("status.json", "{"),
        ("status.json", '{"state": "happy"}'),
        ("status.json", "[]"),
        ("status.json", ""),
        ("status.json", "\x00\x00"),
        ("config.json", "not json"),
        ("config.json", None),
        ("config.json", "3"),
    ],
)
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


def test_two_hundred_runs_are_listed_without_opening_a_table(store, monkeypatch):
    monkeypatch.setattr(store_module, "QUEUE_GRACE", 3600.0)  # a slow disk must not turn them into interrupted ones
    first = store.create(config(), run_id="run-0")
    for k in range(1, 200):
        folder = store.root / f"run-{k}"
        folder.mkdir()
        for name in ("config.json", "status.json"):
            (folder / name).write_bytes((first.path / name).read_bytes())
        for name in ("rows.parquet", "metrics.jsonl"):  # large files: whoever opened these would fail
            (folder / name).mkdir()
    states = [(run.config.selection.lamb, run.status().state) for run in store.list()]
    assert states == [(0.5, "queued")] * 200


def test_the_record_of_a_run_is_read_once_until_it_changes(store, monkeypatch):
    run = store.create(config())
    read, opened = store_module.read_json, []
    monkeypatch.setattr(store_module, "read_json", lambda path: opened.append(path.name) or read(path))
    monkeypatch.setattr(memo, "SETTLED_SECONDS", -60.0)

    def look():
        listed = store.list()[0]
        return listed.facts().get("n"), listed.status().state

    assert [look() for _ in range(2)] == [(None, "queued")] * 2
    assert sorted(opened) == ["config.json", "status.json"]
    with run.writer() as writer:
        writer.update_facts(n=7)
        writer.set_status("running")
        assert [look() for _ in range(2)] == [(7, "running")] * 2
    assert sorted(opened) == ["config.json", "config.json", "status.json", "status.json"]


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
            writer.finish("done", None, summary={})
        with pytest.raises(RunStateError, match=r"no selection\.parquet yet"):
            run.selection()
        writer.write_selection(pa.table({"id": ["a"]}), run.config.to_dict())
        assert run.status().state == "running"
        writer.finish("done", None, "converged", summary={"joint": np.float32(0.5), "gap": float("nan")})
    assert run.status().state == "done"
    assert (run.status().result.raw.joint, run.status().result.certificate.gap) == (0.5, None)
    stored = pq.read_schema(run.path / "selection.parquet").metadata[b"datamask"]
    assert RunConfig.from_dict(json.loads(stored)) == run.config


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


def test_metrics_of_many_steps_take_little_more_than_their_file(store):
    run = store.create(config())
    record = dict.fromkeys((*"abcdefghijkl", "lr"), 0.7621421217918396)
    lines = [json.dumps({"step": step, **record}) for step in range(5000)]
    content = "\n".join(lines).encode()
    (run.path / "metrics.jsonl").write_bytes(content)
    del lines
    tracemalloc.start()
    try:
        metrics = run.metrics()
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert len(metrics) == 14 and metrics["step"].tolist() == list(range(5000))
    assert peak < 3 * len(content), "no object for each number of each step"


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


def test_metrics_that_the_disk_does_not_give_are_a_sentence(store, monkeypatch):
    run = store.create(config())
    (run.path / "metrics.jsonl").write_text('{"step": 1}\n', encoding="utf-8")

    def broken(path, most):
        if path.name == "metrics.jsonl":
            raise OSError(errno.EIO, "Input/output error", str(path))
        return read_bounded(path, most)

    monkeypatch.setattr("datamask.runs.formats.read_bounded", broken)
    sentence = rf"metrics\.jsonl of run {run.id} cannot be read: Input/output error$"
    with pytest.raises(StoreError, match=sentence), run.writer():
        pass
    with pytest.raises(StoreError, match=sentence):
        run.metrics()


@pytest.mark.parametrize(
    "contents, reason",
    [(b"[]", "must hold a JSON object, got list"), (b"{", "Expecting"), (None, "No such file or directory$")],
)
def test_a_record_that_cannot_be_read_is_a_sentence_that_names_it_and_its_run(store, contents, reason):
    def spoil(name):
        (run.path / name).unlink()
        if contents is not None:
            (run.path / name).write_bytes(contents)
        return rf"^{name} of run {run.id} cannot be read: .*{reason}"

    run = store.create(config())
    with run.writer() as writer:
        sentence = spoil("config.json")
        for question in (run.facts, lambda: writer.update_facts(n=1)):
            with pytest.raises(StoreError, match=sentence):
                question()
    sentence = spoil("status.json")
    if contents is not None:
        with pytest.raises(StoreError, match=sentence), run.writer():
            pass


def test_metrics_past_the_checkpoint_are_dropped(store):
    run = store.create(config())
    with run.writer() as writer:
        writer.truncate_metrics(5)
        for step in range(1, 8):
            writer.append_metrics({"step": step})
        writer.truncate_metrics(4)
        writer.append_metrics({"step": 5})
    np.testing.assert_array_equal(run.metrics()["step"], [1, 2, 3, 4, 5])
