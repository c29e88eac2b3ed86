"""One case in a forked process of its own, with a time limit and a memory limit; what came of it, whatever it did.

The worker that forks is warm: everything is imported and compiled before, so that a case costs milliseconds. A case and
whatever it started are one process group, which is killed at its end.
"""

from __future__ import annotations

import contextlib
import ctypes
import faulthandler
import json
import os
import resource
import shutil
import signal
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path

from tests.torture.contract import Finding
from tests.torture.judging import trace
from tests.torture.parts import Entry

TICK = 0.02
"""Seconds between two looks at a case's memory."""

LONGEST = 6_000
"""Letters of a finding that are kept."""

PATIENCE = 5
"""Times the time of a case, for one that did not end in it: on a machine busy with other things a case is slow, too."""

PR_SET_PDEATHSIG = 1
FINDING = "finding"
_LATE = "late"


@dataclass(frozen=True)
class Outcome:
    """What came of one case.

    Attributes:
        part, number: which case.
        word: what came of it, as the part says it; `FINDING` where a promise broke.
        seconds: how long it took.
        finding: what broke; empty where nothing did.
    """

    part: str
    number: int
    word: str
    seconds: float
    finding: str = ""

    def to_dict(self) -> dict:
        return asdict(self)


def attempt(entry: Entry, number: int) -> Outcome:
    """Do one case and clean up after it; a case that is late is done once more, from the start and with `PATIENCE`."""
    start = time.monotonic()
    word, finding = _in_a_folder(entry, number, entry.seconds)
    if word == _LATE:
        word, finding = _in_a_folder(entry, number, PATIENCE * entry.seconds)
    if word == _LATE:
        more = f"more than {PATIENCE * entry.seconds:.0f} s when tried again"
        word, finding = FINDING, f"hangs: more than {entry.seconds:.0f} s, and {more}"
    return Outcome(entry.part.name, number, word, round(time.monotonic() - start, 3), finding[:LONGEST])


def _in_a_folder(entry: Entry, number: int, seconds: float) -> tuple[str, str]:
    folder = Path(tempfile.mkdtemp(prefix="datamask-torture-"))
    try:
        return _forked(entry, number, folder, seconds)
    finally:
        _remove(folder)


def _forked(entry: Entry, number: int, folder: Path, seconds: float) -> tuple[str, str]:
    """The word and the finding of a case done in a child; the word is `_LATE` where it did not end in time."""
    answer, reply = os.pipe()
    os.set_blocking(answer, False)
    sys.stdout.flush()
    sys.stderr.flush()
    parent = os.getpid()
    child = os.fork()
    if child == 0:
        _case(entry, number, folder, reply, parent)
    os.close(reply)
    # of the child itself: it has not the pages of the files that its parent has read
    deadline, budget = time.monotonic() + seconds, _resident(child) + entry.memory
    word, ending = FINDING, ""
    while os.waitid(os.P_PID, child, os.WEXITED | os.WNOWAIT | os.WNOHANG) is None:
        if time.monotonic() > deadline:
            word, ending = _LATE, "late"
        elif _resident_tree(child) > budget:
            ending = f"takes more than {entry.memory / 2**30:.3g} GiB of memory"
        if ending:
            break
        time.sleep(TICK if time.monotonic() > deadline - seconds + 0.2 else 0.002)
    # the group before its leader is reaped: until then nobody else can have its number
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(child, signal.SIGKILL)
    with contextlib.suppress(ProcessLookupError):
        os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    try:
        data = os.read(answer, 1 << 16)
    except BlockingIOError:
        data = b""
    finally:
        os.close(answer)
    if data:
        word, finding = json.loads(data)
        return word, finding
    if ending:
        return word, ending
    if os.WIFSIGNALED(status):
        return FINDING, f"crash: ended by {signal.Signals(os.WTERMSIG(status)).name}"
    return FINDING, f"crash: left with exit code {os.WEXITSTATUS(status)} without an answer"


def _case(entry: Entry, number: int, folder: Path, reply: int, parent: int) -> None:
    """The child: never returns."""
    try:
        os.setsid()
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:
            os._exit(3)
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        faulthandler.disable()
        null = os.open(os.devnull, os.O_RDWR)
        for stream in (0, 1, 2):
            os.dup2(null, stream)
        os.chdir(folder)
        os.environ["HOME"] = str(folder)
        try:
            answer = entry.part.run(number, folder), ""
        except Finding as finding:
            answer = FINDING, str(finding)
        except BaseException as error:
            answer = FINDING, f"{type(error).__name__} came out of the case\n{trace(error)}"
        data = json.dumps([answer[0], answer[1][:LONGEST]]).encode()
        os.write(reply, data)
    finally:
        os._exit(0)


def _resident(process: int) -> int:
    try:
        return int(Path(f"/proc/{process}/statm").read_text().split()[1]) * resource.getpagesize()
    except (OSError, IndexError, ValueError):
        return 0


def _resident_tree(process: int) -> int:
    """Bytes that a process and its children hold; pages they share are counted once, by the largest."""
    try:
        children = Path(f"/proc/{process}/task/{process}/children").read_text().split()
    except OSError:
        children = []
    return max([_resident(process), *(_resident_tree(int(child)) for child in children)])


def _remove(folder: Path) -> None:
    def retry(function, path, error) -> None:
        with contextlib.suppress(OSError):
            Path(path).parent.chmod(0o700)
            Path(path).chmod(0o700)
            function(path)

    shutil.rmtree(folder, onerror=retry)
