"""Everything datamask raises on purpose.

Each error is also the built-in it resembles, so callers who do not know this module still catch what they expect. The
message is one sentence or two for the person who typed the option or made the file: what, expected, came, way out.
"""

from __future__ import annotations

from collections.abc import Callable


class DatamaskError(Exception):
    """Base of all errors that datamask raises on purpose."""


class InputError(DatamaskError, ValueError):
    """A file, column or row that cannot be used as given."""


class OptionError(InputError):
    """An option out of range, unknown, or of another estimator."""


class StoreError(DatamaskError, OSError):
    """The runs folder could not be read or written: full disk, missing rights, a file where a folder is expected."""


class RunStateError(DatamaskError, RuntimeError):
    """An action in the wrong order: resuming a run that is running, exporting one that has not finished."""


class Stopped(DatamaskError):
    """Raised inside a long step when its stop callable answered true; the half-done step is discarded."""


def poll_of(should_stop: Callable[[], bool] | None, sentence: str = "stopped on request") -> Callable[[], None]:
    """What long work calls between its chunks: raises `Stopped` with this sentence once `should_stop` answers true.

    Args:
        should_stop: None: nobody can stop the work.
    """
    def poll() -> None:
        if should_stop is not None and should_stop():
            raise Stopped(sentence)
    return poll
