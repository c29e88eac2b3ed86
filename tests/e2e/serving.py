"""A dashboard of its own for a browser test, on the loopback, ended by its process id."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

FAILED = '[data-testid="stException"], .st-key-fault'
"""What a page shows where its script failed."""

STILL = """() => new Promise((answer) => {
    const still = () => document.querySelector('[data-testid="stApp"]')?.dataset.testScriptState === "notRunning"
        && !document.querySelector('[data-stale="true"]');
    if (!still()) answer(false);
    else requestAnimationFrame(() => requestAnimationFrame(() => answer(still())));
})"""
"""Whether a page stands still: its script has ended, nothing of it is left from before, and both are painted."""


# as `streamlit run`, with the sample in a folder that is given; on SIGUSR1 it writes into its log where its threads are
LAUNCH = """
import faulthandler, signal, sys
from pathlib import Path
faulthandler.register(signal.SIGUSR1, all_threads=True)
script, sample_folder, *options = sys.argv[1:]
if sample_folder:
    from datamask.dashboard import sample
    sample.BUILT = Path(sample_folder)
from streamlit.web import cli
sys.argv = ["streamlit", "run", script, *options]
sys.exit(cli.main())
"""

LOG_END = 12_000
"""Bytes of a log that are shown of a test that fails."""

_serving: list[tuple[subprocess.Popen, Path]] = []


def ends_of_logs() -> list[str]:
    """The ends of the logs of the dashboards that are served now, each with where its threads are."""
    for server, _ in _serving:
        server.send_signal(signal.SIGUSR1)
    if _serving:
        # the interpreter's own handler writes at once, whatever the threads wait for
        time.sleep(1.0)
    return [log.read_bytes()[-LOG_END:].decode(errors="replace") for _, log in _serving]


@contextlib.contextmanager
def served(
    folder: Path, sample: Path | None = None, script: Path = ROOT / "app.py", **environment: str
) -> Iterator[str]:
    """The address of a dashboard whose runs are in ``folder / "runs"``; its log is beside them.

    Args:
        sample: the folder of the sample corpus; None: where it always is.
        script: what is served in the place of app.py.
        environment: variables besides.
    """
    with serving(folder, sample, script, **environment) as (address, _):
        yield address


@contextlib.contextmanager
def serving(
    folder: Path, sample: Path | None = None, script: Path = ROOT / "app.py", **environment: str
) -> Iterator[tuple[str, subprocess.Popen]]:
    """As `served`, with the server's process."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    environment = {
        **os.environ,
        "DATAMASK_RUNS_DIR": str(folder / "runs"),
        "PYTHONPATH": str(ROOT),
        # the sample waits for its button
        "DATAMASK_SAMPLE": "off",
        # the working directory, which may be read unless somebody says otherwise, and the test's own files
        "DATAMASK_ROOTS": os.pathsep.join((str(ROOT), str(folder))),
        **environment,
    }
    words = [
        sys.executable,
        "-c",
        LAUNCH,
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
    with (folder / "server.log").open("wb") as log:
        server = subprocess.Popen(words, cwd=ROOT, stdout=log, stderr=log, env=environment)
        entry = (server, folder / "server.log")
        _serving.append(entry)
        try:
            address, deadline = f"http://127.0.0.1:{port}", time.monotonic() + 120
            while True:
                with contextlib.suppress(OSError), urllib.request.urlopen(f"{address}/_stcore/health", timeout=2) as ok:
                    if ok.status == 200:
                        break
                assert server.poll() is None, (folder / "server.log").read_text()
                assert time.monotonic() < deadline, "the server did not answer within two minutes"
                time.sleep(0.2)
            yield address, server
        finally:
            _serving.remove(entry)
            server.terminate()
            try:
                server.wait(10)
            except subprocess.TimeoutExpired:
                server.kill()
                server.wait()
