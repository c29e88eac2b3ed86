"""What a command writes to stdout and stderr, also where those take nothing: a full disk, a pipe without a reader.

stdout carries the answer, so a command whose answer is lost ends with one sentence. stderr carries progress and
remarks, and no work ends because they are lost.
"""

from __future__ import annotations

import contextlib
import io
import os
import sys
from collections.abc import Iterator
from typing import TextIO

from datamask.errors import StoreError, escaped


class ReaderLeft(Exception):
    """The program that read stdout has ended, as `head` does: it has what it needs."""


def print_text(text: str) -> None:
    """Write a text and a line break to stdout, with what would steer a terminal escaped.

    Raises:
        ReaderLeft, StoreError: as `flush_stdout`.
    """
    with _checked():
        print(escaped(text), flush=True)


def flush_stdout() -> None:
    """Write what other code has printed.

    Raises:
        ReaderLeft: stdout is a pipe without a reader. StoreError: stdout cannot be written.
    """
    with _checked():
        if sys.stdout is not None:
            sys.stdout.flush()


def print_aside(text: str) -> None:
    """Write a text and a line break to stderr, escaped likewise, if that can be."""
    write_aside(f"{escaped(text)}\n")


def write_aside(text: str, stream: TextIO | None = None) -> None:
    """Write a text to stderr, or the stream that stands for it, if that can be."""
    stream = sys.stderr if stream is None else stream
    with contextlib.suppress(OSError):
        stream.write(text)
        stream.flush()


def prepare_streams() -> None:
    """Make both streams of this process fit to be written.

    A stream that was closed before the start is None, and its number would be given to the next file that is opened. A
    letter that the terminal's encoding lacks is escaped on stdout, as Python does on stderr.
    """
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115, PTH123
    if isinstance(sys.stdout, io.TextIOWrapper) and sys.stdout.errors == "strict":
        sys.stdout.reconfigure(errors="backslashreplace")


@contextlib.contextmanager
def _checked() -> Iterator[None]:
    try:
        yield
    except BrokenPipeError as error:
        _discard()
        raise ReaderLeft from error
    except OSError as error:
        _discard()
        raise StoreError(
            f"stdout cannot be written ({error.strerror or error}); make room there or send it elsewhere, and repeat "
            "the command; finished work of a run is kept"
        ) from error


def _discard() -> None:
    """Point stdout elsewhere, so that what is still to be written to it does not fail again at the end."""
    with contextlib.suppress(OSError, ValueError):
        nothing = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nothing, sys.stdout.fileno())
        os.close(nothing)
