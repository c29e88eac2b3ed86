"""`datamask open` and `streamlit run app.py -- PATH`: a server of their own, on a corpus that nobody types again."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from datamask import server_note
from tests.e2e.serving import ROOT
from tests.e2e.test_server import ask
from tests.e2e.websocket_client import Visitor
from tests.making.runs import write_shard

COUNTING = """
import sys, threading
start, most = threading.Thread.start, 0

def draws(thread):
    frame = sys._current_frames().get(thread.ident)
    while frame is not None and frame.f_code.co_name != "exec_func_with_error_handling":
        frame = frame.f_back
    return frame is not None

def counted(self):
    global most
    start(self)
    if self.name != "ScriptRunner.scriptThread":
        return
    # this one will draw in a moment; one that has drawn may still be on its way to its end
    drawing = 1 + sum(draws(thread) for thread in threading.enumerate() if thread is not self)
    if drawing > most:
        most = drawing
        print("threads that draw:", most, flush=True)

threading.Thread.start = counted
"""
"""A `sitecustomize` that prints how many threads draw pages at once, each time they are more than ever before."""

SECONDS = 120
"""Until a server answers, or has ended: tenfold what it takes."""

OPEN = [sys.executable, "-m", "datamask", "open"]
RUN_APP = [sys.executable, "-m", "streamlit", "run", str(ROOT / "app.py")]


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


def started(folder: Path, words: list[str], **variables: str) -> subprocess.Popen:
    """A server in a folder of its own, which is also its home; what it prints goes to ``folder / "log"``."""
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith(("DATAMASK_", "STREAMLIT_"))
    }
    environment |= {"PYTHONPATH": str(ROOT), "HOME": str(folder), "STREAMLIT_SERVER_HEADLESS": "true"}
    environment |= {"DATAMASK_SAMPLE": "off", **variables}
    with (folder / "log").open("wb") as log:
        return subprocess.Popen(words, cwd=folder, env=environment, stdout=log, stderr=subprocess.STDOUT)


def printed(folder: Path) -> str:
    return (folder / "log").read_text()


@contextlib.contextmanager
def answering(folder: Path, words: list[str], port: int, **variables: str) -> Iterator[subprocess.Popen]:
    """A server that answers at that port; ended by its own process id if it has not ended before."""
    process, deadline = started(folder, words, **variables), time.monotonic() + SECONDS
    try:
        while True:
            with (
                contextlib.suppress(OSError),
                urllib.request.urlopen(f"http://127.0.0.1:{port}/_stcore/health", timeout=2) as ok,
            ):
                if ok.status == 200:
                    break
            assert process.poll() is None, printed(folder)
            assert time.monotonic() < deadline, "the server did not answer"
            time.sleep(0.2)
        yield process
    except BaseException:
        print(printed(folder))
        raise
    finally:
        if process.poll() is None:
            process.kill()
        process.wait()


@pytest.fixture
def shards(tmp_path_factory) -> Path:
    """A folder with one shard, which is neither where the server is started nor below it."""
    folder = tmp_path_factory.mktemp("elsewhere")
    write_shard(folder / "shard.parquet")
    return folder


def counting(folder: Path) -> str:
    """The `PYTHONPATH` of a server that prints how many threads draw."""
    (folder / "sitecustomize.py").write_text(COUNTING)
    return os.pathsep.join((str(folder), str(ROOT)))


def go_about(visitor: Visitor) -> None:
    """Ask for pages faster than they are drawn, as a hasty visitor does, and wait for the last."""
    visitor.draw_until("240", seconds=SECONDS)
    for page in ("runs", "evidence", "", "runs", "export", ""):
        visitor.ask(page)
        time.sleep(0.05)
    visitor.draw_until("240", seconds=SECONDS)


def test_the_map_of_the_corpus_is_at_the_address_and_the_first_page_shows_it_too(tmp_path, shards):
    """One thread draws for a visitor, whatever another program left among the variables."""
    port, variables = free_port(), {"STREAMLIT_RUNNER_FAST_RERUNS": "true", "PYTHONPATH": counting(tmp_path)}
    with answering(tmp_path, [*OPEN, str(shards), "--port", str(port)], port, **variables) as process:
        found = re.search(r"(http://127\.0\.0\.1:(\d+)/)\?corpus=([0-9a-f]{12}) ", printed(tmp_path))
        assert found and int(found[2]) == port
        assert len(re.findall(r"^datamask: \w{4}-\w{4} is the one-time code", printed(tmp_path), re.MULTILINE)) == 1
        with urllib.request.urlopen(found[0].strip(), timeout=60) as answer:
            assert answer.status == 200
        with Visitor(f"http://127.0.0.1:{port}") as visitor:
            visitor.draw_until("240 rows", seconds=SECONDS)  # the bare address opens the corpus of the command
            go_about(visitor)
            assert server_note.address_of(tmp_path / "runs") == f"http://127.0.0.1:{port}/"
            process.send_signal(signal.SIGINT)
            assert process.wait(SECONDS) == 0
    assert not (tmp_path / "runs" / server_note.NOTE).exists()
    assert re.findall(r"threads that draw: (\d+)", printed(tmp_path)) == ["1"]
    assert "Traceback" not in printed(tmp_path) and (tmp_path / "runs" / ".kept" / "openings").is_dir()


def test_app_takes_paths_behind_two_hyphens_and_one_thread_draws_for_a_visitor(tmp_path, shards):
    port = free_port()
    words = [*RUN_APP, "--server.port", str(port), "--", str(shards / "*.parquet")]
    with answering(tmp_path, words, port, PYTHONPATH=counting(tmp_path)) as process:
        assert f"http://127.0.0.1:{port}/?corpus=" in printed(tmp_path)
        with Visitor(f"http://127.0.0.1:{port}") as visitor:
            go_about(visitor)
        process.send_signal(signal.SIGTERM)
        process.wait(SECONDS)
    assert re.findall(r"threads that draw: (\d+)", printed(tmp_path)) == ["1"]
    assert "Traceback" not in printed(tmp_path)


def test_streamlits_variables_are_obeyed_and_without_a_path_nothing_is_opened(tmp_path):
    port = free_port()
    with answering(tmp_path, [*OPEN, "--runs", "kept"], port, STREAMLIT_SERVER_PORT=str(port)) as process:
        assert f"datamask: http://127.0.0.1:{port}/ (" in printed(tmp_path)
        with Visitor(f"http://127.0.0.1:{port}") as visitor:
            visitor.draw_until("No corpus is open", seconds=SECONDS)
        process.send_signal(signal.SIGINT)
        assert process.wait(SECONDS) == 0


@pytest.mark.parametrize(
    "words, sentence",
    [
        ([*OPEN, "no-such-folder"], "--input {}/no-such-folder does not exist"),
        ([*RUN_APP, "--", "*.parquet"], "--input {}/*.parquet matches no file"),
    ],
    ids=["open", "app.py"],
)
def test_a_path_that_is_not_there_is_refused_in_one_sentence(tmp_path, words, sentence):
    assert started(tmp_path, words).wait(SECONDS) == 2
    lines = [line for line in printed(tmp_path).splitlines() if line.startswith("datamask: ")]
    assert lines == [f"datamask: {sentence.format(tmp_path)}"] and "Traceback" not in printed(tmp_path)


def test_a_port_that_somebody_else_has_is_refused_in_one_sentence(tmp_path):
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        assert started(tmp_path, OPEN, STREAMLIT_SERVER_PORT=str(port)).wait(SECONDS) == 2
    said = printed(tmp_path)
    assert said.startswith(f"datamask: --port {port} is not available (") and said.count("\n") == 1
    assert started(tmp_path, [*OPEN, "--port", "-1"]).wait(SECONDS) == 2
    assert "--port -1 is not available (" in printed(tmp_path) and printed(tmp_path).count("\n") == 1


def test_options_of_the_command_are_none_of_app(tmp_path):
    assert started(tmp_path, [*RUN_APP, "--", "--rows", "5", "x.parquet"]).wait(SECONDS) == 2
    assert "datamask: --rows is no option of app.py" in printed(tmp_path)


def test_the_settings_of_the_dockerfile_answer_to_this_machine_and_to_no_foreign_name(tmp_path, shards):
    text = (ROOT / "Dockerfile").read_text()
    variables = {
        name: quoted or plain
        for name, quoted, plain in re.findall(
            r"((?:DATAMASK|STREAMLIT)_\w+)=(?:\"([^\"]*)\"|([^\s\"]+))", text.split("FROM ")[1]
        )
    }
    assert variables["STREAMLIT_SERVER_ADDRESS"] == "0.0.0.0" and variables["DATAMASK_RUNS_DIR"] == "/runs"
    assert re.search(r"HEALTHCHECK.*\n.*http://127\.0\.0\.1:8501/_stcore/health'", text)
    port = free_port()
    variables |= {"STREAMLIT_SERVER_PORT": str(port), "DATAMASK_RUNS_DIR": str(tmp_path / "runs")}
    with answering(tmp_path, [*OPEN, str(shards)], port, **variables) as process:
        assert ask(f"http://127.0.0.1:{port}", "/", f"localhost:{port}")[0] == 200
        assert ask(f"http://127.0.0.1:{port}", "/", f"evil.example:{port}")[0] == 403
        with Visitor(f"http://127.0.0.1:{port}") as visitor:
            visitor.draw_until("240", seconds=SECONDS)
        assert "is the one-time code" not in printed(tmp_path), "others than the reader of the terminal can reach it"
        process.send_signal(signal.SIGTERM)
        process.wait(SECONDS)
