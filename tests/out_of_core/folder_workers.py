"""Workers that take calls out of a folder, as `datamask task` does on another machine."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from pathlib import Path

from datamask.out_of_core.engines import files, open_engine


@contextlib.contextmanager
def folder_workers(calls: Path, count: int = 2) -> Iterator[None]:
    """Have so many threads do the calls of a folder; each ends with the run that made them."""

    def work() -> None:
        with open_engine("local", workers=1) as own:
            files.do_calls(calls, own, wait=True)

    workers = [threading.Thread(target=work) for _ in range(count)]
    for worker in workers:
        worker.start()
    yield
    for worker in workers:
        worker.join(120)
    assert not any(worker.is_alive() for worker in workers)
