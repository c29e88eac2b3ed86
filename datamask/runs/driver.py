"""The driver of a run: ``python -m datamask.runs.driver RUN_FOLDER LOCK OBJECTIVE...``, started by `detached`.

It holds the run's ``queue`` lock, whose open file it was given, does the run as the command line does, and writes the
selection where it was asked for. Interrupt and a polite kill stop it with a checkpoint. The fact ``unwritten`` says why
the selection does not lie where it was asked for; it is there before the run is done, lest a driver that is killed
between the two leave a run that looks as if all had been done.
"""

from __future__ import annotations

import signal
import sys
import threading
import traceback
from collections.abc import Sequence
from pathlib import Path

from datamask import endings
from datamask.errors import DatamaskError
from datamask.runs import exports
from datamask.runs.attempt import attempt, fault_sentence, one_sentence
from datamask.runs.store import Run
from datamask.work.context import Work
from datamask.work.locks import FileLock


def main(words: Sequence[str]) -> int:
    """Do the run whose folder is named; 0 where it has ended as it should, done or stopped."""
    folder, handle, *objectives = words
    run, lock = Run(Path(folder)), FileLock.adopted(Path(folder) / "queue", int(handle))
    stop = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stop.set())
    try:
        if objectives:
            from datamask.objectives import own

            for name in objectives:
                own.permit(name)
        output = run.facts().get("output")
        if output is not None:
            exports.note_unwritten(run, "its driver ended before that")
        outcome = attempt(run, Work.of(stop.is_set))
        if outcome.error is not None:
            raise outcome.error
        if output is not None and outcome.status.state == "done":
            try:
                exports.write_selection(run, output)
            except Exception as error:
                exports.note_unwritten(run, one_sentence(error))
                raise
            exports.note_unwritten(run, None)
    except DatamaskError as error:
        print(f"datamask: {one_sentence(error)}", file=sys.stderr)
        return 2
    # the process's last door: what nobody expected belongs into the log
    except Exception as error:
        traceback.print_exception(error)
        print(f"datamask: {fault_sentence(error)}", file=sys.stderr)
        return 1
    finally:
        lock.release()
    return 0


if __name__ == "__main__":
    sys.exit(endings.leaving(main(sys.argv[1:])))
