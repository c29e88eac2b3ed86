"""One attempt at a run, whatever happens: the only place that catches everything, and writes it into the status.

Command line and run queue both go through `attempt`; nothing below it hides an exception, nothing above it has to
fear one.
"""

from __future__ import annotations

import errno
import logging
import time
import traceback
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from datamask import endings
from datamask.errors import DatamaskError, RunStateError, Stopped, StoreError, out_of_memory
from datamask.evaluation.result import RunResult
from datamask.polling import Poll
from datamask.runs.callbacks import Callbacks
from datamask.runs.status import RunStatus
from datamask.runs.store import Run
from datamask.work.context import UNWATCHED, Work

if TYPE_CHECKING:
    from datamask.evaluation.pool import Pool

log = logging.getLogger(__name__)

DISK_ERRORS = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS, errno.EACCES, errno.EPERM)
"""What a disk says that the person at the keyboard can mend; other OSErrors are faults of the program."""

STOP_FILE_SECONDS = 0.2
"""Between two looks at whether the stop file is there."""


@dataclass(frozen=True)
class Outcome:
    """How an attempt ended.

    Attributes:
        status: the run's status afterwards.
        result: what `execute` returned, None where it stopped or raised.
        error: what it raised, None where it ended by itself; `Stopped` is an ending, not an error.
    """

    status: RunStatus
    result: RunResult | None = None
    error: Exception | None = None

    @property
    def faulty(self) -> bool:
        """Whether the program is to blame, not the input, the options or the disk."""
        return self.error is not None and not isinstance(self.error, DatamaskError)


def attempt(
    run: Run, work: Work = UNWATCHED, *, pool: Pool | None = None, callbacks: Callbacks | None = None
) -> Outcome:
    """Execute `run` from where it stands and leave a status that tells how that went; raises no `Exception`.

    Args:
        work: besides its own stop, a request that any process left in the run folder is heard.
        pool: the run's corpus where it is open already (`datamask.runs.sweep`).
        callbacks: what is told of the run besides its progress.

    A run that is done, or whose lock somebody else holds, keeps its status: it is not ours to write.
    """
    try:
        work = replace(work, poll=_stop_poll(run, work.poll))
        # here, not above: whoever only looks at runs must not load torch; and a Stop is heard while it is loaded
        endings.load("datamask.runs.execute", work.poll)
        from datamask.runs.execute import execute

        result = execute(run, work, pool=pool, callbacks=callbacks)
    except Stopped:
        began = len(run.metrics().get("step", ())) > 0  # of an attempt before, or stopped after the last step
        _record(run, "stopped", ending="stopped", message="stopped" if began else "stopped before learning began")
        return Outcome(run.status())
    except DatamaskError as error:
        _record(run, "failed", error=one_sentence(error))
        return Outcome(run.status(), error=error)
    except Exception as error:
        if isinstance(error, OSError) and error.errno in DISK_ERRORS:
            error = StoreError(f"{error.filename or 'a file'} cannot be read or written: {error.strerror}")
            _record(run, "failed", error=one_sentence(error))
        else:
            _record(run, "failed", error=fault_sentence(error), traceback=traceback.format_exc())
        return Outcome(run.status(), error=error)
    status = run.status()
    if status.state == "failed":  # it ended well, and the disk refuses to say so
        return Outcome(status, error=StoreError(status.error))
    return Outcome(status, result=result)


def _stop_poll(run: Run, poll: Poll) -> Poll:
    """Make a poll that also stops on the run's stop file, looking for it every `STOP_FILE_SECONDS` at most."""
    looked, requested = -STOP_FILE_SECONDS, False

    def either() -> None:
        nonlocal looked, requested
        poll()
        if not requested and time.monotonic() - looked >= STOP_FILE_SECONDS:
            looked, requested = time.monotonic(), run.stop_requested()
        if requested:
            raise Stopped("stopped on request")

    return either


def one_sentence(error: BaseException) -> str:
    """An error's message on one line."""
    return " ".join(str(error).split()) or type(error).__name__


def fault_sentence(error: BaseException) -> str:
    """What to tell a person about an exception that nobody expected."""
    if out_of_memory(error):
        return f"Out of memory ({one_sentence(error)[:200]}); choose fewer --rows or a smaller --partial."
    return f"Internal error ({type(error).__name__}): {one_sentence(error)}"


def _record(run: Run, state: str, *, ending: str = "", **fields: str) -> None:
    if run.status().state == "done":
        return
    try:
        with run.writer() as writer:
            writer.finish(state, None, ending, **fields)
    except RunStateError as held:
        log.info("%s; its status is left as it is", held)
    except DatamaskError:
        # no room even for the status: it stays "running" with a free lock, which readers see as interrupted
        log.exception("the ending of run %s (%s: %s) could not be written", run.id, state, {"ending": ending, **fields})
