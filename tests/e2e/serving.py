"""A dashboard of its own for a browser test, on the loopback, ended by its process id."""

from __future__ import annotations

import contextlib
import math
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from playwright.sync_api import Locator

from tests.e2e.prepared import Prepared

ROOT = Path(__file__).resolve().parents[2]

FAILED = '[data-testid="stException"], .st-key-fault'
"""What a page shows where its script failed."""

QUIET = """document.fonts.status === "loaded"
    && document.querySelector('[data-testid="stApp"]')?.dataset.testScriptState === "notRunning"
    && !document.querySelector('[data-stale="true"], [data-testid="stSkeleton"]')"""
"""Whether the script of a page has ended, and nothing is left from before."""

STILL = f"""() => {{
    const elements = document.querySelectorAll('[data-testid="stElementContainer"]');
    const places = {QUIET} && JSON.stringify([...elements].map((element) => element.getBoundingClientRect()));
    const frames = places && window.stood?.places === places ? window.stood.frames + 1 : 0;
    window.stood = frames === 2 ? undefined : {{places, frames}};
    return frames === 2;
}}"""
"""Whether a page stands still, for `Page.wait_for_function`, which asks at every frame and takes a promise for yes: its
script has ended, nothing of it is left from before, whatever the browser loads when it first needs it is there, its
fonts too, and while two frames were painted nothing moved: a press must meet what it was aimed at."""


# as `streamlit run`, with another demo corpus where one is given; on SIGUSR1 it logs where its threads are
LAUNCH = """
import faulthandler, signal, sys
from pathlib import Path
faulthandler.register(signal.SIGUSR1, all_threads=True)
script, sample_folder, *options = sys.argv[1:]
if sample_folder:
    from datamask.dashboard.data import demo
    demo.CORPUS = Path(sample_folder)
from streamlit.web import cli
sys.argv = ["streamlit", "run", script, *options]
sys.exit(cli.main())
"""

STEPS = 60
"""Presses of a key after which a slider will not come to its value any more."""

STARTS = 5
"""Ports that a dashboard tries."""

LOG_END = 12_000
"""Characters of a log that are shown of a test that fails."""

PREPARED = Prepared()

_serving: list[tuple[Any, Path]] = []
_failed: list[str] = []
_ports: list[int] = []


def slide(slider: Locator, to: float) -> None:
    """Bring a slider to a value by its arrow keys, step by step.

    Streamlit's slider steps from the value that it has drawn, so on a busy machine one of two quick presses is lost,
    and one in the moment of its redrawing is taken back. What the page makes of the value is for the caller to see.
    """
    slider.focus()
    for _ in range(STEPS):
        slider.page.wait_for_function(STILL)
        value = float(slider.input_value())
        if math.isclose(value, to, abs_tol=1e-9):
            return
        slider.press("ArrowLeft" if value > to else "ArrowRight")
    raise AssertionError(f"the slider never came to {to:g}")


def ends_of_logs() -> list[str]:
    """The ends of the logs of the dashboards that are served now, or were when a test failed, since last asked.

    Each with its first traceback and where its threads are.
    """
    ends = [*_failed, *(_end_of_log(*entry) for entry in _serving)]
    _failed.clear()
    return ends


def _end_of_log(server: Any, log: Path) -> str:
    if server.poll() is None:
        server.send_signal(signal.SIGUSR1)
        # the interpreter's own handler writes at once, whatever the threads wait for
        time.sleep(1.0)
    text = log.read_bytes().decode(errors="replace")
    fault, end = text.find("Traceback"), max(0, len(text) - LOG_END)
    # where the threads are can take all of the end
    first = text[fault : min(end, fault + LOG_END)] if 0 <= fault < end else ""
    return first + text[end:]


@contextlib.contextmanager
def served(
    folder: Path, sample: Path | None = None, script: Path = ROOT / "app.py", **environment: str
) -> Iterator[str]:
    """The address of a dashboard whose runs are in ``folder / "runs"``; its log is beside them.

    It is forked off a process that has imported the libraries already, where the system lets it (`prepared`).

    Args:
        sample: the folder of another demo corpus; None: the one that comes with the program.
        script: what is served in the place of app.py.
        environment: variables besides.
    """
    start = PREPARED.start if PREPARED.possible() else _started
    with _answering(start, folder, sample, script, environment) as (address, _):
        yield address


@contextlib.contextmanager
def serving(
    folder: Path, sample: Path | None = None, script: Path = ROOT / "app.py", **environment: str
) -> Iterator[tuple[str, subprocess.Popen]]:
    """As `served`, with the server's process, which is one of its own from its first import on."""
    with _answering(_started, folder, sample, script, environment) as (address, server):
        yield address, server


def _started(program: str, arguments: list[str], environment: dict[str, str], log: Path) -> subprocess.Popen:
    with log.open("ab") as output:
        words = [sys.executable, "-c", program, *arguments]
        return subprocess.Popen(words, cwd=ROOT, stdout=output, stderr=output, env=environment)


def _free_port() -> int:
    """A port that a dashboard had before, where it is free: a browser has that address's files. Else a new one."""
    for port in (*_ports, 0):
        with socket.socket() as free, contextlib.suppress(OSError):
            # as servers do: connections that are being forgotten keep nobody from it
            free.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            free.bind(("127.0.0.1", port))
            if port == 0:
                _ports.append(free.getsockname()[1])
            return free.getsockname()[1]
    raise OSError("no port of 127.0.0.1 is free")


@contextlib.contextmanager
def _answering(
    start: Callable[..., Any], folder: Path, sample: Path | None, script: Path, environment: dict[str, str]
) -> Iterator[tuple[str, Any]]:
    """The address and process of a dashboard that answers; it is ended after."""
    environment = {
        **os.environ,
        "DATAMASK_RUNS_DIR": str(folder / "runs"),
        "PYTHONPATH": str(ROOT),
        # the demo waits for its button
        "DATAMASK_SAMPLE": "off",
        # the working directory, which may be read unless somebody says otherwise, and the test's own files
        "DATAMASK_ROOTS": os.pathsep.join((str(ROOT), str(folder))),
        **environment,
    }
    log = folder / "server.log"
    for _ in range(STARTS):
        port = _free_port()
        arguments = [
            str(script),
            "" if sample is None else str(sample),
            "--server.port",
            str(port),
            "--server.address",
            "127.0.0.1",
            "--server.headless",
            "true",
            "--server.fileWatcherType",
            "none",
        ]
        log.write_bytes(b"")
        with _ended_after(start(LAUNCH, arguments, environment, log), log) as server:
            if _has_its_port(server, port, log):
                yield f"http://127.0.0.1:{port}", server
                return
        # the dashboard of another process of tests was quicker
        _ports.remove(port)
    raise AssertionError(f"the port was taken by others {STARTS} times")


@contextlib.contextmanager
def _ended_after(server: Any, log: Path) -> Iterator[Any]:
    entry = (server, log)
    _serving.append(entry)
    try:
        yield server
    except BaseException:
        _failed.append(_end_of_log(*entry))
        raise
    finally:
        _serving.remove(entry)
        server.terminate()
        try:
            server.wait(10)
        except subprocess.TimeoutExpired:
            server.kill()
            server.wait(60)


def _has_its_port(server: Any, port: int, log: Path) -> bool:
    """Whether the dashboard got its port, which may have been taken in between; waits until it answers or has ended.

    Raises:
        AssertionError: it has ended for another reason, or does not answer within two minutes.
    """
    address, deadline = f"http://127.0.0.1:{port}", time.monotonic() + 120
    while True:
        ended, text = server.poll() is not None, log.read_bytes().decode(errors="replace")
        if ended:
            assert f"Port {port} is not available" in text, text
            return False
        # which it writes once the port is its own
        if f"URL: {address}" in text:
            with contextlib.suppress(OSError), urllib.request.urlopen(f"{address}/_stcore/health", timeout=2) as answer:
                if answer.status == 200:
                    return True
        assert time.monotonic() < deadline, "the server did not answer within two minutes"
        time.sleep(0.2)
