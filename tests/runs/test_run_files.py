"""What a worker writes: checkpoints, history and tables, also on a disk that refuses."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from datamask import memo
from datamask.errors import StoreError
from datamask.runs import writer as writer_module
from datamask.runs.store import RunStore
from tests.making.run_folders import ROOT, config, names

# -- checkpoint, history, tables --------------------------------------------------------------------------------------


@given(
    seed=st.integers(0, 2**32 - 1),
    n=st.integers(0, 50),
    meta=st.dictionaries(
        st.text(max_size=5),
        st.one_of(st.integers(-(2**60), 2**60), st.text(max_size=5), st.floats(allow_nan=False, allow_infinity=False)),
    ),
)
@settings(max_examples=25, deadline=None)
def test_checkpoints_read_back_exactly(tmp_path_factory, seed, n, meta):
    rng = np.random.default_rng(seed)
    arrays = {
        "logits": rng.normal(size=n).astype(np.float32),
        "rng": rng.integers(0, 256, 2 * n).astype(np.uint8),
        "mask": rng.random(n) < 0.5,
        "step": np.array(seed),
    }
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


def test_rows_read_back_with_their_types(store):
    run = store.create(config())
    table = pa.table(
        {
            "id": pa.array([1, 2], pa.uint16()),
            "logit": pa.array([None, 0.5], pa.float32()),
            "source_file": pa.array(["a", "a"]).dictionary_encode(),
        }
    )
    with run.writer() as writer:
        writer.write_rows(table)
    assert run.rows().equals(table)


def test_an_unchanged_table_is_validated_once_and_a_changed_one_anew(store, monkeypatch):
    class Table:
        def validate(self, full):
            validated.append(full)

    run, validated = store.create(config()), []
    with run.writer() as writer:
        writer.write_rows(pa.table({"id": [1, 2], "source_file": ["a", "a"]}))
    monkeypatch.setattr(memo, "SETTLED_SECONDS", -60.0)
    monkeypatch.setattr("datamask.runs.store.pq.read_table", lambda file, columns=None: Table())
    for columns in (None, None, ["id"], ["id"]):
        store.get(run.id).rows(columns)
    assert validated == [True, True], "all columns once, and one column once"
    with run.writer() as writer:
        writer.write_rows(pa.table({"id": [1, 2], "source_file": ["a", "b"]}))
    for _ in range(2):
        run.rows()
    assert len(validated) == 3


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
    done = subprocess.run([sys.executable, "-c", LIMITED, store.root, run.id], capture_output=True, text=True, cwd=ROOT)
    assert done.stdout.startswith("5 True"), done.stdout + done.stderr
    assert run.rows().to_pydict() == {"x": [1]}
    assert not run.has_selection and "long" not in run.facts()
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
