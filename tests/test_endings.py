"""Background threads and the end of the process: asked, waited for, and never thrown out of compiled code."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
import uuid

import pytest

from datamask import endings
from datamask.config import RunConfig
from datamask.errors import Stopped
from datamask.polling import poll_of
from datamask.runs.run_queue import run_queue
from datamask.runs.store import RunStore
from tests.making.runs import write_shard

HEAD = """
import signal, sys, threading
import torch
from datamask.work.worker import worker
torch.set_num_threads(1)
begun = threading.Event()

def work(job):
    from datamask.errors import Stopped
    square = torch.rand(300, 300)
    while not job.work.stopping():
        square = square @ square
        square /= square.norm()
        begun.set()
    raise Stopped("stopped")

job = worker().start("measuring", work)
begun.wait()
"""
"""A process that measures in compiled code; what follows says so and ends it in the middle."""

READY = "print('measuring', flush=True)\n"


def ended(tail: str, send: signal.Signals | None = None) -> subprocess.CompletedProcess:
    """How a process of HEAD and `tail` ended, once it measures and was sent a signal."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    child = subprocess.Popen(
        [sys.executable, "-c", HEAD + tail], stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment
    )
    try:
        assert child.stdout.readline() == b"measuring\n", child.stderr.read().decode()
        if send is not None:
            child.send_signal(send)
        said, wrong = child.communicate(timeout=120)
    finally:
        child.kill()
        child.wait()
    return subprocess.CompletedProcess(child.args, child.returncode, said.decode(), wrong.decode())


def test_a_process_ends_cleanly_while_compiled_code_runs_in_a_thread():
    """Without the wait this is `terminate called without an active exception`, and a core dump."""
    found = ended(READY)
    assert (found.returncode, found.stderr) == (0, "")


def test_a_signal_ends_it_cleanly_too():
    # as Streamlit does: its handler lets the main thread run to its end
    tail = "gone = threading.Event()\nsignal.signal(signal.SIGTERM, lambda *_: gone.set())\n"
    found = ended(tail + READY + "gone.wait()\n", signal.SIGTERM)
    assert (found.returncode, found.stderr) == (0, "")


def test_a_command_tidies_up_and_leaves_before_libraries_are_taken_down():
    """A short command that reads parquet aborted now and then while the libraries' own threads were ended."""
    code = """
import atexit, sys
from datamask import endings

class Late:
    def __del__(self):
        print("taken down")

late = Late()
atexit.register(print, "tidied up")
sys.stdout.write("what is buffered, ")
sys.exit(endings.leaving(3))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (3, "what is buffered, tidied up\n", "")


def test_everyone_is_asked_and_waited_for_together():
    asked = [threading.Event() for _ in range(3)]
    threads = [endings.start(stop.wait, 120, name=f"waits-{i}", stop=stop.set) for i, stop in enumerate(asked)]
    short = endings.start(lambda: None, name="short")
    assert endings.goodbye(120) and not any(thread.is_alive() for thread in (*threads, short))


def test_the_wait_has_an_end():
    go = threading.Event()
    endings.start(go.wait, 120, name="deaf")
    assert not endings.goodbye(0.3)
    go.set()
    assert endings.goodbye(120)


SLOW = """
import time
time.sleep(3600)
"""


@pytest.fixture
def slow_module(tmp_path, monkeypatch) -> str:
    """The name of a module that takes an hour to import."""
    name = f"slow_{uuid.uuid4().hex}"
    (tmp_path / f"{name}.py").write_text(SLOW)
    monkeypatch.syspath_prepend(tmp_path)
    return name


def test_a_stop_is_heard_while_a_module_is_imported(slow_module):
    for _ in range(2):
        asked = threading.Event()
        threading.Timer(0.3, asked.set).start()
        with pytest.raises(Stopped):
            endings.load(slow_module, poll_of(asked.is_set))
    importing = [thread for thread in threading.enumerate() if thread.name == f"import-{slow_module}"]
    assert len(importing) == 1, "who asks next joins the import under way"


def test_a_module_is_given_whole_to_everyone_who_waits(tmp_path, monkeypatch):
    name = f"whole_{uuid.uuid4().hex}"
    (tmp_path / f"{name}.py").write_text("import time\nearly = 1\ntime.sleep(0.5)\nlate = 2\n")
    monkeypatch.syspath_prepend(tmp_path)
    given = []
    waiting = [threading.Thread(target=lambda: given.append(endings.load(name).late)) for _ in range(4)]
    for thread in waiting:
        thread.start()
    for thread in waiting:
        thread.join(120)
    assert given == [2, 2, 2, 2] and endings.load(name) is sys.modules[name]


def test_what_an_import_raises_is_raised_and_it_may_be_tried_again(tmp_path, monkeypatch):
    name = f"broken_{uuid.uuid4().hex}"
    (tmp_path / f"{name}.py").write_text("1 / 0\n")
    monkeypatch.syspath_prepend(tmp_path)
    for _ in range(2):
        with pytest.raises(ZeroDivisionError):
            endings.load(name)


HELD = """
import sys, types, importlib.machinery, importlib.abc, signal
# what a shell script starts behind itself would ignore it, and so would all that it starts
signal.signal(signal.SIGINT, signal.default_int_handler)
class Held(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    def find_spec(self, name, path, target=None):
        return importlib.machinery.ModuleSpec(name, self) if name == "torch" else None
    def create_module(self, spec):
        return None
    def exec_module(self, module):
        print("importing torch", file=sys.stderr, flush=True)
        signal.sigwait([signal.SIGUSR1])
sys.meta_path.insert(0, Held())
from datamask import cli
sys.argv = ["datamask", *sys.argv[1:]]
sys.exit(cli.main())
"""
"""The command line where torch never comes: as with the real one, no Python code of the importing thread runs
meanwhile (a sleep would end at a signal)."""


def interrupted(words: list[str], number: signal.Signals) -> tuple[int, str]:
    """Exit code and stderr of that command, sent the signal while it imports torch."""
    child = subprocess.Popen([sys.executable, "-c", HELD, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    try:
        lines = iter(child.stderr.readline, b"")
        assert any(line == b"importing torch\n" for line in lines)
        child.send_signal(number)
        _, rest = child.communicate(timeout=60)
    finally:
        child.kill()
        child.wait()
    return child.returncode, rest.decode()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_command_line_ends_at_once_although_torch_is_being_imported(tmp_path, number):
    store = RunStore(tmp_path / "runs")
    run = store.create(RunConfig(write_shard(tmp_path / "shard.parquet")))
    with run.writer() as writer:
        writer.finish("stopped", message="stopped")
    code, rest = interrupted(["resume", run.id, "--runs_dir", str(store.root)], number)
    assert code == 130 and "go on with" in rest and "Traceback" not in rest
    assert run.status().state == "stopped"


def test_a_new_run_is_left_at_once_although_torch_is_being_imported_to_check_its_device(tmp_path):
    shard, runs = write_shard(tmp_path / "shard.parquet"), tmp_path / "runs"
    words = ["select", *map(str, shard.inputs), "--output", str(tmp_path / "o.parquet"), "--runs_dir", str(runs)]
    code, rest = interrupted(words, signal.SIGINT)
    assert code == 130 and "interrupted" in rest and "Traceback" not in rest
    assert not RunStore(runs).list()


def test_a_queued_run_stops_at_once_although_torch_is_being_imported(tmp_path, slow_module, monkeypatch):
    store = RunStore(tmp_path / "runs")
    run = store.create(RunConfig(write_shard(tmp_path / "shard.parquet")))
    waits = endings.load
    monkeypatch.setattr(endings, "load", lambda module, poll: waits(slow_module, poll))
    here = run_queue(store.root)
    here.submit(run.id)
    deadline = time.monotonic() + 60
    while not any(thread.name == f"import-{slow_module}" for thread in threading.enumerate()):
        assert time.monotonic() < deadline
        time.sleep(0.02)
    here.stop(run.id)
    while run.status().active:
        assert time.monotonic() < deadline
        time.sleep(0.02)
    assert run.status().state == "stopped"
