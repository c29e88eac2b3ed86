"""Everything datamask raises on purpose.

Each error is also the built-in it resembles, so callers who do not know this module still catch what they expect. The
message is one sentence or two for the person who typed the option or made the file: what, expected, came, way out.
"""

from __future__ import annotations

import re

LONGEST = 600
"""Letters of a message; a terminal shows some eight lines of it."""

LONGEST_WORD = 80
"""Letters of one path, id or column name in a message that would be longer than `LONGEST`."""


class DatamaskError(Exception):
    """Base of all errors that datamask raises on purpose.

    Its message names paths, ids and columns as people made them, so it is made readable where it is asked for: nothing
    in it moves a terminal's cursor or cannot be encoded, and it is no longer than `LONGEST`.
    """

    def __str__(self) -> str:
        return readable(super().__str__())


def readable(text: str) -> str:
    """`text` as a terminal can print it, of at most `LONGEST` letters.

    Letters that cannot be printed are escaped, other than spaces and line breaks. Where the whole is too long, words
    lose their middles first, since a path of thousands of letters must not hide the way out behind it; then the text.
    """
    text = escaped(text)
    for most in (LONGEST_WORD, LONGEST_WORD // 2):
        if len(text) > LONGEST:
            text = _words_shortened(text, most)
    return shortened(text, LONGEST)


_MOVING = "\r\v\f\x1c\x1d\x1e\x1f\x85"
"""White space that is no space: a carriage return lets the end of a line overwrite its beginning."""


def escaped(text: str) -> str:
    """`text` with letters that cannot be printed escaped, other than spaces and line breaks."""
    return "".join(
        letter
        if letter.isprintable() or (letter.isspace() and letter not in _MOVING)
        else letter.encode("unicode_escape").decode("ascii")
        for letter in text
    )


def _words_shortened(text: str, most: int) -> str:
    """`text` with no word of more than so many letters."""
    return re.sub(rf"\S{{{most + 1},}}", lambda word: shortened(word[0], most), text)


def shortened(text: str, most: int) -> str:
    """`text` without its middle, so that it has at most so many letters: both ends of a path tell where it is."""
    if len(text) <= most:
        return text
    end = (most - 1) // 2
    return f"{text[: most - 1 - end]}…{text[len(text) - end :]}"


class InputError(DatamaskError, ValueError):
    """A file, column or row that cannot be used as given."""


MADE_BY_ANOTHER = "made by another version of datamask"


class VersionError(InputError):
    """A record that another version of datamask made."""

    def __init__(self) -> None:
        super().__init__(f"it was {MADE_BY_ANOTHER}")


class OptionError(InputError):
    """An option out of range, unknown, or of another estimator."""


class StoreError(DatamaskError, OSError):
    """The runs folder could not be read or written: full disk, missing rights, a file where a folder is expected."""


class RemoteError(DatamaskError, OSError):
    """A store or server that holds shards did not answer, broke off, or refused: what it holds may be all right."""


class NoRoomError(DatamaskError, MemoryError):
    """Work that needs more memory than is free. The files may be all right."""


class RunStateError(DatamaskError, RuntimeError):
    """An action in the wrong order: resuming a run that is running, exporting one that has not finished."""


class Stopped(DatamaskError):
    """Raised inside a long step when its stop callable answered true; the half-done step is discarded."""


def out_of_memory(error: BaseException) -> bool:
    """Whether an exception says that memory was refused: Python's and numpy's own, torch's on a GPU, or torch's on a
    processor, which is a plain RuntimeError and known by its words alone."""
    return (
        isinstance(error, MemoryError)
        or type(error).__name__ == "OutOfMemoryError"
        or (isinstance(error, RuntimeError) and any(words in str(error) for words in _NO_MEMORY))
    )


_NO_MEMORY = ("DefaultCPUAllocator", "not enough memory", "CUDA out of memory")
