"""What counts as handled: an answer, or one clear sentence. Everything else is a `Finding`."""

from __future__ import annotations

import contextlib
import io
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from datamask.errors import DatamaskError
from tests.torture.contract import Finding

LONGEST_SENTENCE = 600
ACCEPTED, REFUSED = "accepted", "refused"

Result = TypeVar("Result")


@dataclass(frozen=True)
class Family:
    """Cases of one kind within a part; numbered from 0.

    Attributes:
        name: two words for the report.
        size: how many.
        run: ``run(number, folder)``, as in `Part`.
        about: ``about(number)``, what is special about this case, "" where nothing can be said without doing it.
    """

    name: str
    size: int
    run: Callable[[int, Path], str]
    about: Callable[[int], str] = lambda number: ""


def attempted(work: Callable[[], Result], doing: str, naming: str = "") -> tuple[str, Result | None]:
    """``(ACCEPTED, result)``, or ``(REFUSED, None)`` where `work` refuses as it should.

    Args:
        doing: what is done, for the finding.
        naming: what the sentence must name.

    Raises:
        Finding: an exception that is no `DatamaskError`, or a sentence that is none.
    """
    try:
        return ACCEPTED, work()
    except DatamaskError as error:
        check_sentence(str(error), f"{doing}: {type(error).__name__}", naming)
        return REFUSED, None
    except Finding:
        raise
    except Exception as error:
        raise Finding(f"{doing}: a traceback instead of a sentence: {trace(error)}") from error


def check_sentence(text: str, where: str, naming: str = "") -> None:
    """A refusal is not empty, not endless, printable, and names what it is about.

    Raises:
        Finding: it is not.
    """
    wrong = None
    if not text.strip():
        wrong = "an empty refusal"
    elif len(text) > LONGEST_SENTENCE:
        wrong = f"a refusal of {len(text):,} letters"
    elif "Traceback" in text:
        wrong = "a refusal with a traceback"
    elif naming and naming not in text:
        wrong = f"a refusal that does not name {naming}"
    try:
        text.encode()
    except UnicodeEncodeError:
        wrong = "a refusal that no terminal can print"
    if wrong:
        raise Finding(f"{where}: {wrong}: {text[:900]!r}")


def command(*words: str, doing: str = "", codes: tuple[int, ...] = (0, 2)) -> tuple[int, str]:
    """Exit code and stdout of a command line, done in this process.

    Raises:
        Finding: another exit code, a traceback, or a refusal that is no sentence.
    """
    from datamask.cli import main

    doing = doing or " ".join(words[:2])
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            code = main([str(word) for word in words])
        except SystemExit as leaving:
            code = int(leaving.code or 0)
        except Exception as error:
            raise Finding(f"{doing}: a traceback instead of a sentence: {trace(error)}") from error
    text = err.getvalue()
    if "Traceback" in text or "nternal error" in text or code not in codes:
        raise Finding(f"{doing}: exit code {code}, expected {' or '.join(map(str, codes))}: {text[-900:]}")
    if code == 2:
        lines = [line for line in text.splitlines() if line.strip()]
        check_sentence(lines[-1] if lines else "", doing)
    return code, out.getvalue()


def trace(error: BaseException) -> str:
    """The last lines of a traceback, paths cut down to file names."""
    frames = traceback.extract_tb(error.__traceback__)[-6:]
    where = " < ".join(f"{Path(frame.filename).name}:{frame.lineno}:{frame.name}" for frame in reversed(frames))
    return f"{type(error).__name__}: {str(error)[:400]} @ {where}"
