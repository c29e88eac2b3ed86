"""Damaged, altered and hostile files in a run folder: every list of runs goes on, and says which run is not well."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from datamask.errors import DatamaskError, InputError, RunStateError, StoreError
from datamask.runs import exports
from datamask.runs.formats import parse_json
from datamask.runs.labels import Label
from datamask.runs.store import ROW_COLUMNS, Run, RunStore
from tests.making.run_folders import config, fake_execute, finished, in_another_process, kill, names

SMALL = ("status.json", "config.json", "label.json", "metrics.jsonl")

HUGE, DEEP = "9" * 5000, "[" * 100_000 + "]" * 100_000
VALUES = (
    "null",
    '""',
    '"x"',
    "[]",
    "{}",
    "-1",
    "1" + "0" * 400,
    "1e400",
    "NaN",
    "true",
    "[1]",
    '{"a": 1}',
    "0.5",
    "1e300",
    HUGE,
    DEEP,
)


@pytest.fixture
def done(store) -> Run:
    """A done run with a label and metrics, beside another."""
    run = store.create(config("quick"), run_id="damaged")
    with run.writer() as writer:
        writer.append_metrics({"step": 1, "joint": 0.5})
    fake_execute(run)
    run.relabel(name="mine", tags=["a"])
    store.create(config("whole"), run_id="whole")
    return run


@pytest.fixture
def deadline():
    """Ends a test that waits for ever."""

    def end(*args):
        pytest.fail("it waited for a file")  # no OSError, which would pass for an answer

    before = signal.signal(signal.SIGALRM, end)
    signal.alarm(30)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


def look(store: RunStore) -> None:
    """Everything a list of runs and a page about one run asks."""
    assert "whole" in {run.id for run in store.list()}
    for run in store.list():
        status = run.status()
        assert status.state == "queued" or isinstance(status.step + status.total_steps, int)
        assert isinstance(status.message + status.error + status.ending, str)
        for moment in (status.created, status.queued, status.started, status.ended, status.heartbeat):
            time.strftime("%Y", time.gmtime(moment or 0.0))
        time.strftime("%Y", time.gmtime(run.created))
        calibrated = (status.to_dict()["summary"] or {}).get("calibrated") or {}
        assert all(isinstance(value, (float, int, type(None))) for value in calibrated.values())
        assert isinstance(run.label(), Label)
        try:
            assert run.config.arguments() and run.facts().get("n", 0) >= 0
        except StoreError:
            assert status.state == "failed" and "cannot be read" in status.error
        with contextlib.suppress(StoreError):
            run.metrics()


# -- what is no ordinary file -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name", [*SMALL, "lock", "queue", "stop", "checkpoint.npz", "rows.parquet", "selection.parquet"]
)
def test_a_pipe_in_the_place_of_a_file_makes_nobody_wait(store, done, name, deadline):
    (done.path / name).unlink(missing_ok=True)
    os.mkfifo(done.path / name)
    look(store)
    for action in (done.rows, done.selection, done.metrics):
        with contextlib.suppress(DatamaskError):
            action()
    for write in (
        lambda writer: writer.load_checkpoint(),
        lambda writer: writer.truncate_metrics(1),
        lambda writer: writer.append_metrics({"step": 2}),
    ):
        try:
            with done.writer() as writer:
                write(writer)
        except DatamaskError as error:
            assert name in str(error) or name == "status.json"  # without which it is no run


def test_a_file_larger_than_any_record_is_not_read(store, done):
    for name in ("config.json", "metrics.jsonl"):
        with (done.path / name).open("r+b") as file:
            file.truncate(1 << 40)
    look(store)
    assert "larger" in done.status().error
    with pytest.raises(StoreError, match=r"metrics\.jsonl.* larger"):
        done.metrics()


class Pickled:
    """Makes a file where it is read as a pickle."""

    def __init__(self, made: Path) -> None:
        self.made = made

    def __reduce__(self):
        return Path.touch, (self.made,)


def test_a_pickle_among_arrays_is_never_executed(store, done, tmp_path):
    made = tmp_path / "made"
    pickled = np.array([Pickled(made)], object)
    np.savez(done.path / "checkpoint.npz", x=pickled)
    with done.writer() as writer, pytest.raises(StoreError, match=r"checkpoint\.npz is damaged"):
        writer.load_checkpoint()
    assert not made.exists()
    with np.load(done.path / "checkpoint.npz", allow_pickle=True) as stored:
        assert stored["x"].size and made.exists(), "it would have been"


# -- what is no record ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", SMALL)
@pytest.mark.parametrize(
    "text",
    [
        DEEP,
        '{"a":' * 100_000,
        "null",
        "[]",
        "{}",
        "\x00",
        HUGE,
        '{"state": "done"}',
        '{"state": ["done"]}',
        '{"state": "done", "step": 1e999}',
    ],
)
def test_a_file_that_is_no_record_takes_no_list_down(store, done, name, text):
    (done.path / name).write_text(text)
    look(store)


def entries(record: object, above: tuple = ()) -> list[tuple]:
    """The path of every entry of a record."""
    if isinstance(record, dict):
        return [path for key, value in record.items() for path in [(*above, key), *entries(value, (*above, key))]]
    return []


@given(data=st.data())
@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_an_entry_of_another_type_takes_no_list_down(store, done, data):
    name = data.draw(st.sampled_from(["status.json", "config.json", "label.json"]))
    path = done.path / name
    before = path.read_text()
    record = json.loads(before)
    place = data.draw(st.sampled_from(entries(record)))
    holder = record
    for key in place[:-1]:
        holder = holder[key]
    holder[place[-1]] = "@@"
    path.write_text(json.dumps(record).replace('"@@"', data.draw(st.sampled_from(VALUES))))
    try:
        look(store)
    finally:
        path.write_text(before)


def test_the_sentence_names_the_entry(store, done):
    path = done.path / "status.json"
    record = json.loads(path.read_text())
    path.write_text(json.dumps({**record, "step": "three"}))
    assert "step must be a whole number from 0, got 'three'" in done.status().error
    with pytest.raises(StoreError, match="step must be"):
        done.writer().__enter__()
    path.write_text(json.dumps({**record, "ended": 1e12}))
    assert "ended must be seconds since 1970" in done.status().error


def test_a_metric_of_hundreds_of_digits_is_none(done):
    (done.path / "metrics.jsonl").write_text('{"step": 1, "joint": 1' + "0" * 400 + '}\n{"step": 2, "joint": 0.5}\n')
    assert done.metrics()["joint"][1] == 0.5 and done.metrics()["joint"][0] != done.metrics()["joint"][0]
    with done.writer() as writer:
        writer.truncate_metrics(2)


def test_numbers_that_no_page_can_show_are_none():
    text = '{"whole": 9223372036854775807, "beyond": 9223372036854775808, "below": -%s, "digits": %s, "large": 1e400}'
    record = parse_json(text % ("1" + "0" * 400, HUGE))
    assert record == {"whole": 2**63 - 1, "beyond": None, "below": None, "digits": None, "large": None}
    assert parse_json("[NaN, -Infinity, 1e308]") == [None, None, 1e308]


def test_a_run_id_longer_than_a_file_name_is_refused(store):
    with pytest.raises(InputError, match="at most 200"):
        store.get("a" * 5000)
    with pytest.raises(InputError, match="at most 200"):
        store.create(config(), run_id="a" * 201)
    assert store.get(store.create(config(), run_id="a" * 200).id).status().state == "queued"


# -- clocks, links and what was left ----------------------------------------------------------------------------------


def test_a_run_queued_by_a_clock_that_ran_ahead_is_interrupted_and_can_go_on(store):
    run = store.create(config())
    record = json.loads((run.path / "status.json").read_text())
    ahead = time.time() + 86400
    (run.path / "status.json").write_text(json.dumps({**record, "queued": ahead, "created": ahead}))
    assert run.status().state == "interrupted" and run.status().resumable


def test_removing_a_linked_run_removes_the_link(store, tmp_path):
    other = RunStore(tmp_path / "other").create(config())
    store.create(config())
    (store.root / "linked").symlink_to(other.path)
    with store.get("linked").writer(), pytest.raises(RunStateError, match="running"):
        store.remove("linked")
    store.remove("linked")
    assert "linked" not in names(store.root) and other.status().state == "queued"
    assert len(names(store.root)) == 1


LEAVER = """
import sys, time
from datamask.files import replacing
from datamask.runs.store import RunStore
run = RunStore(sys.argv[1]).get(sys.argv[2])
cached = run.path.parent / ".kept" / "abc" / "x.npz"
with run.writer(), replacing(run.path / "rows.parquet"), replacing(cached, ".npz"):
    print("ready", flush=True)
    time.sleep(60)
"""


def test_what_a_killed_writer_left_is_gone_with_the_next(store):
    run = store.create(config())
    before = names(run.path)
    kill(in_another_process(LEAVER, store.root, run.id))
    assert len(names(run.path)) > len(before)
    with run.writer():
        pass
    assert set(names(run.path)) - set(before) == {"lock"}
    for kind in (".new-x", ".trash-x"):
        (store.root / kind).mkdir()
        os.utime(store.root / kind, (0, 0))
    (store.root / ".new-young").mkdir()
    assert names(store.root / ".kept" / "abc")
    second = store.create(config())
    assert names(store.root / ".kept" / "abc") == []
    assert names(store.root) == [".kept", ".new-young", *sorted((run.id, second.id))]


# -- a record and a table that do not speak of the same columns --------------------------------------------------------


def test_a_record_that_names_another_id_column_is_one_sentence(tmp_path):
    run = finished(tmp_path, {"a.parquet": pa.table({"id": [1, 2, 3]})}, {"a.parquet": [0, 1, 2]}, {"a.parquet": [1]})
    path = run.path / "config.json"
    path.write_text(path.read_text().replace('"id": "id"', '"id": "i)"'))
    for export in (exports.filtered_rows, exports.write_masks):
        with pytest.raises(StoreError) as refusal:
            export(RunStore(run.path.parent).get(run.id), tmp_path / "out")
        sentence = str(refusal.value)
        assert "rows.parquet has no column 'i)', only id, source_file, source_row, selected" in sentence
        assert "config.json" in sentence and "run the selection again" in sentence and "\n" not in sentence
    assert not (tmp_path / "out").exists()


WHOLE = pa.table(
    {
        "id": ["a", "b"],
        "source_file": pa.array(["x", "x"]).dictionary_encode(),
        "source_row": [0, 1],
        "selected": [True, False],
        "eligible": [True, True],
        "given": [False, False],
        "logit": [0.5, -0.5],
        "score": [0.5, -0.5],
        "marginal_quality": [0.5, -0.5],
        "marginal_diversity": [0.5, -0.5],
        "weight": [0.75, 0.25],
        "tokens": [3.0, 5.0],
    }
)


@pytest.mark.parametrize("name", ROW_COLUMNS)
@pytest.mark.parametrize("how", ["renamed", "twice", "of another type", "null"])
def test_a_table_without_a_column_that_is_read_by_name_is_one_sentence(store, name, how):
    run = store.create(config("quick"))
    place = WHOLE.column_names.index(name)
    table = {
        "renamed": WHOLE.rename_columns([f"{name}x" if column == name else column for column in WHOLE.column_names]),
        "twice": WHOLE.append_column(name, WHOLE[name]),
        "of another type": WHOLE.set_column(place, name, pa.array([b"1", b"2"])),
        "null": WHOLE.set_column(place, name, pa.array([None, None], WHOLE[name].type)),
    }[how]
    with run.writer() as writer:
        writer.write_rows(table)
    if how == "null" and pa.types.is_floating(WHOLE[name].type):  # a list of ids from elsewhere has no scores
        assert run.rows([name])[name].null_count == 2
        return
    with pytest.raises(StoreError, match=f"rows.parquet .*{name}.*damaged; put both back from a copy, or run"):
        run.rows([name])


def test_columns_are_those_asked_for_and_optional_ones_may_be_missing(store):
    run = store.create(config("quick"))
    with run.writer() as writer:
        writer.write_rows(WHOLE.drop_columns(["given"]))
    assert run.rows(["selected", "eligible"], optional=["given", "score"]).column_names == [
        "selected",
        "eligible",
        "score",
    ]
