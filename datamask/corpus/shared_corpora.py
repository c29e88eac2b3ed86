"""The corpora this process holds open: a few, shared by all pages, runs and threads.

Feature arrays are the largest thing in the process, so no corpus is opened twice at once and only `SIZE` are kept. A
corpus is found again by its configuration and by the size and time of every file: a changed file is a new corpus.
"""

from __future__ import annotations

import json
import threading
import time
from collections import OrderedDict
from collections.abc import Collection
from dataclasses import replace
from pathlib import Path
from weakref import WeakValueDictionary

from datamask.config import CorpusConfig
from datamask.corpus.corpus import Corpus
from datamask.corpus.opening import read_corpus
from datamask.corpus.remote_listing import file_stamps
from datamask.corpus.shards import list_files
from datamask.errors import InputError, Stopped
from datamask.polling import Poll, no_poll
from datamask.process import held
from datamask.work.context import UNWATCHED, Work
from datamask.work.ledger import ledger

SIZE = 2
"""Corpora kept, where there is memory for them. A caller's own reference keeps its corpus alive beyond that."""


IDLE_SECONDS = 30.0
"""A corpus unused for this long is let go where memory is short. Until then others wait for it: two visitors
whose corpora do not fit together would else open them again and again."""


class _Slot:
    """One opening, under way or done."""

    def __init__(self, corpus: Corpus | None = None) -> None:
        self.finished = threading.Event()
        self.corpus = corpus
        if corpus is not None:
            self.finished.set()
        self.error: Exception | None = None
        self.share, self.what = 0.0, "Opening"
        self.used = time.monotonic()


class SharedCorpora:
    """Opens each corpus once. Safe to use from any thread.

    Args:
        size: how many corpora are kept, the latest used.
    """

    def __init__(self, size: int = SIZE) -> None:
        self._size = size
        self._lock = threading.Lock()
        self._slots: OrderedDict[str, _Slot] = OrderedDict()
        self._alive: WeakValueDictionary[str, Corpus] = WeakValueDictionary()
        ledger().add_spare(self._let_go)

    def get(
        self,
        config: CorpusConfig,
        work: Work = UNWATCHED,
        *,
        row_limit: int | None = None,
        beside: Collection[str] | None = None,
        into: Path | None = None,
    ) -> Corpus:
        """The corpus of `config`, opened by this caller, or by another whom this one waits for.

        One that has read all columns serves whoever needs some of them (`beside`, `into`: see `read_corpus`).

        Where the caller that opens is stopped or interrupted, one of those waiting opens in its stead.

        Raises:
            InputError, NoRoomError: as `open_corpus`; everyone who waited gets the same sentence.
            Stopped: from `work.poll`, while opening or waiting.
        """
        whole = _key(config, row_limit, work.poll, into)
        while True:
            with self._lock:
                key = whole
                if beside is not None and whole not in self._slots and whole not in self._alive:
                    key = json.dumps([whole, sorted(beside)])
                slot = self._slots.get(key)
                corpus = self._alive.get(key) if slot is None else None
                opens = slot is None and corpus is None
                if slot is None:
                    # one that was let go of and is still in use: a second one would take as much again
                    slot = self._slots[key] = _Slot(corpus)
                    self._trim()
                self._slots.move_to_end(key)
                slot.used = time.monotonic()
            if opens:
                return self._open(key, slot, config, work, row_limit, None if key == whole else beside, into)
            while not slot.finished.wait(0.1):
                work.poll()
                work.report(slot.share, slot.what)
            if slot.corpus is not None:
                return slot.corpus
            error = slot.error
            # None: whoever opened was interrupted (Ctrl-C), which says nothing about the corpus
            if error is not None and not isinstance(error, Stopped):
                raise type(error)(*error.args) from error

    def holds(self, config: CorpusConfig, poll: Poll = no_poll) -> bool:
        """Whether the corpus is open, or is being opened, as its files are now.

        Raises:
            InputError: a file cannot be found. Stopped: from `poll`.
        """
        key = _key(config, None, poll)
        with self._lock:
            return key in self._slots or key in self._alive

    def _open(
        self,
        key: str,
        slot: _Slot,
        config: CorpusConfig,
        work: Work,
        row_limit: int | None,
        beside: Collection[str] | None,
        into: Path | None,
    ) -> Corpus:
        def report(share: float, what: str) -> None:
            slot.share, slot.what = share, what
            work.report(share, what)

        try:
            told = replace(work, report=report)
            slot.corpus = read_corpus(config, told, row_limit=row_limit, beside=beside, into=into)
            self._alive[key] = slot.corpus
            return slot.corpus
        except Exception as error:
            # without its frames, of which this is one: they would keep what was read for as long as each other
            slot.error = type(error)(*error.args)
            raise
        finally:
            with self._lock:
                if slot.corpus is None:
                    self._slots.pop(key, None)
                self._trim()
            slot.finished.set()

    def _trim(self) -> None:
        done = [key for key, slot in self._slots.items() if slot.corpus is not None]
        for key in done[: max(0, len(done) - self._size)]:
            del self._slots[key]

    def _let_go(self) -> bool:
        """Let go of the corpus that was asked for longest ago, where that is long enough; whether there was one."""
        with self._lock:
            for key, slot in self._slots.items():
                if slot.corpus is not None and time.monotonic() - slot.used >= IDLE_SECONDS:
                    del self._slots[key]
                    return True
        return False


def _key(config: CorpusConfig, row_limit: int | None, poll: Poll, into: Path | None = None) -> str:
    """The configuration as text (a reloaded class is not equal to its old self), with every file's size and time."""
    stamps = []
    for option, paths in config.paths.items():
        files = list_files(paths, option, poll, config.split)
        for path, stamp in zip(files, file_stamps(files, poll), strict=True):
            if isinstance(stamp, OSError):
                raise InputError(f"{path} cannot be read: {stamp.strerror or stamp}") from stamp
            stamps.append((path, *stamp[:2]))
    return json.dumps([config.to_dict(), row_limit, stamps, None if into is None else str(into)])


def shared_corpora() -> SharedCorpora:
    """Those of this process."""
    return held("shelf", SharedCorpora)
