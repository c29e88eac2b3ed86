"""What several commands do before and after their work: stop on signals, check the device, hand the result over."""

from __future__ import annotations

import argparse
import contextlib
import shlex
import signal
import threading
from collections.abc import Collection, Iterator, Mapping, Sequence
from types import FrameType
from typing import TYPE_CHECKING

from datamask import endings
from datamask.cli.output import Progress, print_json, say, summary_text
from datamask.cli.streams import print_aside, print_text
from datamask.config import CorpusConfig
from datamask.evaluation.result import RunResult
from datamask.options.amounts import parse_tokens
from datamask.polling import poll_of
from datamask.repeat_counts import Amount, check_amounts
from datamask.runs import exports
from datamask.runs.rooted import absolute_corpus
from datamask.runs.store import Run, default_root
from datamask.work.context import Work

if TYPE_CHECKING:
    from datamask.corpus.corpus import Corpus

DONE, FAULT, BAD, STOPPED = 0, 1, 2, 130
"""Exit codes; `datamask.cli` says what they mean."""


@contextlib.contextmanager
def stop_on_signals(ending: str = "and saving a checkpoint") -> Iterator[threading.Event]:
    """An event that Ctrl-C or a polite kill sets; a second Ctrl-C leaves at once.

    Outside the main thread Python delivers no signals, and there the event is only ever set by others.

    Args:
        ending: what stopping does, behind that word.
    """
    stop = threading.Event()

    def ask(number: int, frame: FrameType | None) -> None:
        if stop.is_set():
            raise KeyboardInterrupt
        stop.set()
        print_aside(f"\ndatamask: stopping {ending}; once more to leave at once")

    if threading.current_thread() is not threading.main_thread():
        yield stop
        return
    before = {number: signal.signal(number, ask) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextlib.contextmanager
def command_work(
    ending: str = "and saving a checkpoint",
    progress: Progress | None = None,
    sentence: str = "stopped on request",
) -> Iterator[Work]:
    """Yield the work of a command: Ctrl-C or a polite kill stops it, and stderr has its progress.

    Args:
        ending: what stopping does, behind that word.
        progress: draws the progress; None: a new one.
        sentence: the message of the `Stopped` it raises.
    """
    with stop_on_signals(ending) as stop, progress or Progress() as drawn:
        yield Work(poll_of(stop.is_set, sentence), drawn)


def read_rows_of(config: CorpusConfig, work: Work, beside: Collection[str] | None = None) -> Corpus:
    """Open a corpus, and say on stderr what was used and left out. beside: as of `read_corpus`.

    Raises:
        InputError, RemoteError, NoRoomError, Stopped: as `datamask.corpus.opening.read_corpus`.
    """
    from datamask.corpus.opening import read_corpus

    corpus = read_corpus(absolute_corpus(config), work, beside=beside)
    for note in corpus.provenance.notes:
        say(note)
    say_left_out(corpus.provenance.dropped)
    return corpus


def say_left_out(dropped: Mapping[str, int]) -> None:
    """Say on stderr how many rows were left out, by reason."""
    for reason, count in dropped.items():
        say(f"left out {count:,} row{'s' if count != 1 else ''}: {reason}")


def check_device(device: str) -> None:
    """Refuse a device that is not there.

    Raises:
        OptionError: torch finds no such device.
    """
    # in a thread, so that Ctrl-C is heard meanwhile
    endings.load("datamask.learning.device")
    from datamask.learning.device import resolve

    resolve(device)


def deliver(run: Run, output: str | None, result: RunResult, options: argparse.Namespace) -> int:
    """Write a finished run's selection to `output` if there is one, print its result, and return the exit code."""
    if output is not None:
        exports.write_selection(run, output)
        if run.facts().get("unwritten"):
            exports.note_unwritten(run, None)
    weights = getattr(options, "weights", None)
    if weights is not None:
        from datamask.runs.weights import write_weights

        write_weights(run, weights, repeat_amount(options), say)
    place = output or str(run.path.absolute() / "selection.parquet")
    if options.json:
        written = {} if weights is None else {"weights_output": weights}
        print_json({"run_id": run.id, **result.to_dict(), "status": "done", "output": place, **written})
    else:
        print_text(summary_text(run, result, place))
    return DONE


def repeat_amount(options: argparse.Namespace) -> Amount:
    """What --repeats and --repeat_tokens ask for.

    Raises:
        OptionError: one is out of range, or both are given.
    """
    tokens = None if options.repeat_tokens is None else parse_tokens(options.repeat_tokens, "repeat_tokens")
    check_amounts(options.repeats, tokens)
    return Amount(options.repeats, tokens)


def of_run(command: Sequence[str], run_id: str, options: argparse.Namespace) -> list[str]:
    """The words of a command on a run, with the folder of runs where that is not the default one."""
    return [*command, run_id, *([] if options.runs_dir == default_root() else ["--runs_dir", options.runs_dir])]


def shell(words: Sequence[str]) -> str:
    """A command line to copy, from the words after ``python -m datamask``."""
    return shlex.join(["python", "-m", "datamask", *words])
