"""The sample corpus: built on first opening, in a child process that shows progress and can be stopped.

A child, because half a minute of parsing in a thread of the server would leave the pages a fraction of a core. Run as
``python -m datamask.dashboard.data.sample BUILDER FOLDER`` it builds the shards and prints its progress, a JSON object
a line.
"""

from __future__ import annotations

import hashlib
import importlib.util
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path

from datamask.config import CorpusConfig
from datamask.dashboard.server.scripts import FOLDER, IS_INSTALLED
from datamask.errors import InputError, Stopped
from datamask.files import user_path

BUILDER = FOLDER / "sample_data" / "build.py"


def _built() -> Path:
    """The folder of the shards: beside the builder in a checkout, else among the user's caches.

    An installed package may lie where nobody can write; and another environment has other docstrings.
    """
    if not IS_INSTALLED:
        return BUILDER.parent / "built"
    caches = user_path(os.environ.get("XDG_CACHE_HOME") or "~/.cache")
    return caches / "datamask" / f"sample-{hashlib.sha256(sys.prefix.encode()).hexdigest()[:8]}"


BUILT = _built()

TITLE = "Sample corpus"


def config() -> CorpusConfig:
    """The sample's shards as a corpus."""
    return CorpusConfig(inputs=(str(BUILT),))


def is_built() -> bool:
    """Whether the shards are there; they appear all at once or not at all."""
    return (BUILT / "_manifest.json").is_file()


def build_in_child(progress: Callable[[float, str], None], should_stop: Callable[[], bool]) -> None:
    """Build the sample's shards where they are missing.

    Args:
        progress: called with a share 0..1 and what is being done.
        should_stop: polled ten times a second; the child is ended when it answers true.

    Raises:
        Stopped: should_stop answered true.
        InputError: the builder is not there, or failed; the message ends with its last line.
    """
    if is_built():
        return
    if not BUILDER.exists():
        raise InputError(f"the sample corpus cannot be built: {BUILDER} is missing; open your own shards instead")
    with tempfile.TemporaryFile("w+") as complaints:
        child = subprocess.Popen(
            [sys.executable, "-m", __name__, str(BUILDER), str(BUILT)],
            cwd=FOLDER,
            stdout=subprocess.PIPE,
            stderr=complaints,
            text=True,
        )
        reader = threading.Thread(target=_relay, args=(child.stdout, progress), daemon=True)
        reader.start()
        try:
            while child.poll() is None:
                if should_stop():
                    raise Stopped("building the sample corpus was stopped")
                time.sleep(0.1)
        finally:
            if child.poll() is None:
                child.terminate()
            child.wait()
            reader.join()
            if child.stdout is not None:
                child.stdout.close()
        if child.returncode:
            complaints.seek(0)
            lines = complaints.read().strip().splitlines() or [f"exit status {child.returncode}"]
            raise InputError(f"the sample corpus could not be built: {lines[-1]}")


def _relay(lines, progress: Callable[[float, str], None]) -> None:
    for line in lines:
        if line.startswith("{"):
            message = json.loads(line)
            progress(message["share"], message["what"])


def main(builder: str, output: str) -> None:
    """Build the shards into the folder `output`, telling of progress on standard output."""
    spec = importlib.util.spec_from_file_location("datamask_sample_build", builder)
    if spec is None or spec.loader is None:
        raise InputError(f"the sample corpus cannot be built: {builder} is no Python file")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    last = 0.0
    stopping = threading.Event()
    # a plain kill would leave half-written files behind; the builder cleans up when asked
    signal.signal(signal.SIGTERM, lambda *_: stopping.set())

    def tell(share: float, what: str) -> None:
        nonlocal last
        if share >= 1 or time.monotonic() - last > 0.2:
            last = time.monotonic()
            print(json.dumps({"share": share, "what": what}), flush=True)

    try:
        module.build(Path(output), progress=tell, should_stop=stopping.is_set)
    except Stopped:
        sys.exit("stopped")


if __name__ == "__main__":
    main(*sys.argv[1:])
