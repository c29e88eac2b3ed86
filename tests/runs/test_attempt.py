"""One attempt at a run: every way it can end leaves a status that tells so."""

from __future__ import annotations

import errno
import shutil
import sys
import types

import pytest
import torch

from datamask.errors import InputError, RunStateError, StoreError, out_of_memory
from datamask.runs.attempt import attempt, fault_sentence
from datamask.work.context import Work
from tests.making.run_folders import config


def never() -> bool:
    return False


def test_a_good_run_returns_its_result(store, fake_execute):
    run = store.create(config("quick"))
    outcome = attempt(run, Work.of(never))
    assert outcome.status.state == "done" and outcome.result.size.selected == 2
    assert outcome.error is None and not outcome.faulty


def test_bad_input_is_one_sentence_without_a_traceback(store, fake_execute):
    run = store.create(config("mistake"))
    outcome = attempt(run, Work.of(never))
    assert isinstance(outcome.error, InputError) and not outcome.faulty
    assert run.status().state == "failed"
    assert run.status().error == "shard.parquet: no column 'quality'"
    assert run.status().traceback == ""


def test_a_bug_keeps_its_traceback(store, fake_execute):
    run = store.create(config("bug"))
    outcome = attempt(run, Work.of(never))
    assert outcome.faulty
    status = run.status()
    assert status.state == "failed"
    assert "(ZeroDivisionError): division by zero" in status.error and "\n" not in status.error
    assert status.traceback.startswith("Traceback") and "fake_execute" in status.traceback


def test_a_full_disk_is_no_bug(store, fake_execute):
    run = store.create(config("disk"))
    outcome = attempt(run, Work.of(never))
    assert isinstance(outcome.error, StoreError) and not outcome.faulty
    assert run.status().error == "cache.npz cannot be read or written: No space left on device"
    assert run.status().traceback == "" and run.status().resumable


def test_stopped_while_the_corpus_opens(store, fake_execute):
    run = store.create(config("early"))
    outcome = attempt(run, Work.of(never))
    assert (outcome.status.state, outcome.error) == ("stopped", None)


def test_another_workers_run_keeps_its_status(store, fake_execute):
    run = store.create(config("quick"))
    with run.writer() as writer:
        writer.set_status("running", step=42)
        outcome = attempt(run, Work.of(never))
        assert isinstance(outcome.error, RunStateError)
        assert (run.status().state, run.status().step) == ("running", 42)


def test_a_done_run_keeps_its_status(store, monkeypatch, fake_execute):
    run = store.create(config("quick"))
    attempt(run, Work.of(never))

    def refuse(run, work, **kwargs):
        raise RunStateError("done already")

    sys.modules["datamask.runs.execute"].execute = refuse
    assert isinstance(attempt(run, Work.of(never)).error, RunStateError)
    assert run.status().state == "done"


def test_a_refusal_by_nobody_else_is_a_failure(store, fake_execute):
    """The corpus changed since the checkpoint: a RunStateError although nobody holds the lock."""

    def refuse(run, work, **kwargs):
        with run.writer() as writer:
            writer.set_status("running")
            raise RunStateError("the corpus has changed")

    sys.modules["datamask.runs.execute"].execute = refuse
    run = store.create(config("quick"))
    attempt(run, Work.of(never))
    assert (run.status().state, run.status().error) == ("failed", "the corpus has changed")


def test_a_run_removed_under_the_worker_ends_quietly(store, fake_execute):
    def vanish(run, work, **kwargs):
        shutil.rmtree(run.path)
        raise OSError(errno.ENOENT, "No such file or directory", str(run.path))

    sys.modules["datamask.runs.execute"].execute = vanish
    run = store.create(config("quick"))
    outcome = attempt(run, Work.of(never))
    assert outcome.faulty and "removed" in outcome.status.error
    assert not run.path.exists()


def test_a_request_by_another_process_stops_it(store, fake_execute):
    run = store.create(config("slow"))
    run.request_stop()
    outcome = attempt(run, Work.of(never))
    assert outcome.status.state == "stopped" and outcome.status.step < 100


@pytest.mark.parametrize(
    "error",
    [
        MemoryError("cannot allocate 30 GiB"),
        type("OutOfMemoryError", (RuntimeError,), {})("CUDA out of memory"),
        RuntimeError(
            "[enforce fail at alloc_cpu.cpp:124] err == 0. DefaultCPUAllocator: can't allocate memory: you tried to "
            "allocate 80000000000 bytes. Error code 12 (Cannot allocate memory)"
        ),
        RuntimeError("[enforce fail] data. DefaultCPUAllocator: not enough memory: you tried to allocate 80 bytes."),
    ],
)
def test_out_of_memory_says_what_helps(error):
    assert "--rows" in fault_sentence(error) and "Internal error" not in fault_sentence(error)


def test_what_torch_says_of_memory_is_known():
    """By asking it for an exabyte."""
    with pytest.raises(RuntimeError) as refusal:
        torch.empty(1 << 60, dtype=torch.uint8)
    assert out_of_memory(refusal.value)
    assert not out_of_memory(RuntimeError("mat1 and mat2 shapes cannot be multiplied"))
    assert not out_of_memory(ValueError("not enough memory"))


def test_execute_is_imported_only_by_an_attempt(store, monkeypatch):
    """A broken installation is a failed run, not a dead server."""
    monkeypatch.setitem(sys.modules, "datamask.runs.execute", types.ModuleType("datamask.runs.execute"))
    run = store.create(config("quick"))
    assert attempt(run, Work.of(never)).faulty
    assert "ImportError" in run.status().error
