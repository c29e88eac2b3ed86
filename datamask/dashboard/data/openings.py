"""Opening a corpus behind the page: in a thread, with progress, for every browser session alike.

A page never opens a corpus itself, because reading shards takes seconds to minutes and would hold up the whole server.
It starts an `Opening`, shows the progress of its job, and takes the `Corpus` once it is there. Openings live once per
process (`openings`), outside Streamlit's caches, so a cleared cache or an edited module loses nothing; what was opened
is also noted under the runs folder (`<runs>/.kept/openings/<key>.json`), so that a link with ``?corpus=<key>`` still
works after a restart.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import logging
import re
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from datamask.config import CorpusConfig
from datamask.corpus import Corpus, first_look
from datamask.corpus.shards import list_files
from datamask.corpus.shared_corpora import IDLE_SECONDS, shared_corpora
from datamask.dashboard.data import demo, first_looks
from datamask.dashboard.data.copy_counts import Copies, count_exact, count_near
from datamask.dashboard.data.first_looks import FirstPicture
from datamask.dashboard.data.inputs import check_uploads
from datamask.errors import DatamaskError, InputError, NoRoomError, RemoteError
from datamask.files import write_text
from datamask.process import held
from datamask.runs.formats import read_json
from datamask.storage.address import file_name, is_address
from datamask.work.cache import FOLDER, NOTES
from datamask.work.context import Work
from datamask.work.job import Job
from datamask.work.ledger import ledger
from datamask.work.worker import worker

KEPT = 2
"""Corpora held open at a time; the process (`corpus.shared_corpora`) keeps as many."""

COUNTED_AT_ONCE = 30_000
"""Up to this many rows near-copies are counted unasked, in seconds; above, on request: it takes the rows squared."""

LOOK_FROM_BYTES = 64 << 20
"""Smaller files are open before a first look at them would be there."""

log = logging.getLogger(__name__)


@dataclass(frozen=True, eq=False)
class OpenCorpus:
    """A corpus that is open, with what it was opened from; the fields are those of its `Opening`."""

    key: str
    title: str
    config: CorpusConfig
    corpus: Corpus


@dataclass(eq=False)
class Opening:
    """One corpus being opened, or open.

    Attributes:
        key: short name of the configuration, safe in a URL.
        title: what people call it: "Demo corpus", a folder's name.
        config: what is opened.
        corpus: the corpus once it is open. copies: how many of its rows repeat others, as far as counted.
        first: the first look, with its pictures, while the corpus is being read; None before it is there, after that,
            and where it would be no quicker. unlooked: why there is none, where something is in the way.
        job: opens it; `Openings.start` gives it before anybody else sees the opening.
        counting: counts near-copies; None before that is asked for.
        started, used: when it was started, and when a page last asked for it, in seconds of `time.monotonic`: a clock
            that is set back would let go of what is in use. The longest unused is let go first.
    """

    key: str
    title: str
    config: CorpusConfig
    corpus: Corpus | None = None
    copies: Copies = field(default_factory=Copies)
    first: FirstPicture | None = None
    unlooked: str = ""
    job: Job = field(init=False, repr=False)
    counting: Job | None = None
    started: float = field(default_factory=time.monotonic)
    used: float = field(default_factory=time.monotonic)

    @property
    def ready(self) -> bool:
        """Whether the corpus is open."""
        return self.corpus is not None

    @property
    def opened(self) -> OpenCorpus | None:
        """The open corpus; None: it is still to come, or never will."""
        if self.corpus is None:
            return None
        return OpenCorpus(self.key, self.title, self.config, self.corpus)

    @property
    def under_way(self) -> bool:
        """Whether the corpus is still to come."""
        return self.corpus is None and not self.job.ended

    def stop(self) -> None:
        """Ask the opening, and the counting after it, to stop within about a second."""
        for job in filter(None, (self.job, self.counting)):
            job.stop()

    def wait(self, seconds: float | None = None) -> None:
        """Wait for the opening, and the counting after it, to end, each at most `seconds`. For tests and scripts."""
        self.job.wait(seconds)
        if self.counting is not None:
            self.counting.wait(seconds)


@dataclass(frozen=True)
class Recent:
    """A corpus opened before, as noted on disk."""

    key: str
    title: str
    config: CorpusConfig
    rows: int
    opened: float


def opening_key(config: CorpusConfig) -> str:
    """Twelve hex digits that name what is opened."""
    text = json.dumps(config.to_dict(), sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def title_of(config: CorpusConfig) -> str:
    """What to call a corpus: its file's or folder's name, and how many others there are; the demo is called so."""
    if config == demo.config():
        return demo.TITLE
    first = Path(file_name(config.inputs[0]).rstrip("/"))
    name = first.name if not any(mark in first.name for mark in "*?[") else f"{first.parent.name}/{first.name}"
    more = len(config.inputs) - 1
    return f"{name} and {more} more" if more else name


class Openings:
    """All openings of one runs folder in this process. Thread-safe.

    Attributes:
        runs_dir: the folder of all runs. folder: where it is noted what was opened.
    """

    def __init__(self, runs_dir: str | Path) -> None:
        self.runs_dir = Path(runs_dir)
        self.folder = self.runs_dir / FOLDER / NOTES
        self._lock = threading.Lock()
        self._by_key: dict[str, Opening] = {}
        ledger().add_spare(self._let_go)

    def get(self, key: str | None) -> Opening | None:
        """The opening of that key, if this process has it."""
        with self._lock:
            opening = self._by_key.get(key or "")
        if opening is not None:
            opening.used = time.monotonic()
        return opening

    def start(self, config: CorpusConfig, title: str) -> Opening:
        """Open a corpus in the background, or join the opening already under way.

        A corpus that is ready is opened again all the same, so that changed files are noticed; the shared corpora make
        that quick when nothing changed.
        """
        key = opening_key(config)
        with self._lock:
            running = self._by_key.get(key)
            if running is not None and running.under_way:
                return running
            opening = Opening(key, title, config)
            # one that was asked to stop may still be ending
            opening.job = worker().start(
                f"open {self.folder} {key} {id(opening)}", lambda job: self._open(opening, job)
            )
            self._by_key[key] = opening
        return opening

    def resume(self, key: str, check: Callable[[CorpusConfig], None]) -> Opening | None:
        """The opening of that key, started anew from the note on disk where this process does not have it.

        Args:
            check: raises where the corpus of a note may not be opened: a note may be older than the rules, or false.
        """
        opening = self.get(key)
        if opening is None and re.fullmatch(r"[0-9a-f]{12}", key or ""):
            recent = self._read(self.folder / f"{key}.json")
            if recent is not None:
                check(recent.config)
                opening = self.start(recent.config, recent.title)
        return opening

    def recent(self, limit: int = 5) -> list[Recent]:
        """What was opened before, newest first."""
        notes = [self._read(path) for path in self.folder.glob("*.json")]
        return sorted((note for note in notes if note), key=lambda note: -note.opened)[:limit]

    def all(self) -> list[Opening]:
        """Every opening of this process, oldest first."""
        with self._lock:
            return list(self._by_key.values())

    def active(self) -> list[Opening]:
        """Openings under way."""
        return [opening for opening in self.all() if opening.under_way]

    def count_copies(self, opening: Opening) -> None:
        """Count near-copies in the background, where that is not done or under way. Finds the neighbour graph too."""
        with self._lock:
            corpus = opening.corpus
            if (
                corpus is not None
                and opening.copies.near is None
                and (opening.counting is None or opening.counting.ended)
            ):
                opening.counting = worker().start(
                    f"copies {self.folder} {opening.key} {id(opening)}",
                    lambda job: self._count(opening, corpus, job),
                    device="cpu",
                )

    def count_at_sight(self, opening: Opening) -> None:
        """As `count_copies`, for a page that shows them: where it takes seconds, and once."""
        if opening.counting is None and opening.corpus is not None and len(opening.corpus) <= COUNTED_AT_ONCE:
            self.count_copies(opening)

    def _open(self, opening: Opening, job: Job) -> None:
        if opening.config == demo.config():
            demo.install(self.runs_dir)
        check_uploads(opening.config, self.runs_dir)
        try:
            if self._large(opening.config, job):
                self._look(opening, job)
            corpus = shared_corpora().get(opening.config, job.work)
            opening.corpus = corpus
        finally:
            first, opening.first = opening.first, None
            if first is not None:
                first.job.stop()
        self._trim()
        self._note(opening, corpus)
        if len(corpus) > COUNTED_AT_ONCE:
            opening.copies = Copies(count_exact(corpus, job.work))
        elif opening.config != demo.config():  # its first map has the processor; Data counts where it is looked at
            self.count_copies(opening)

    def _large(self, config: CorpusConfig, job: Job) -> bool:
        """Whether reading takes so long that a first look is worth its seconds."""
        if shared_corpora().holds(config, job.poll):
            return False
        if any(map(is_address, config.inputs)):
            return True
        total = 0
        for path in list_files(config.inputs, "input", job.poll, config.split):
            with contextlib.suppress(OSError):  # opening says what is wrong with it
                total += Path(path).stat().st_size
            if total >= LOOK_FROM_BYTES:
                return True
        return False

    def _look(self, opening: Opening, job: Job) -> None:
        try:
            look = first_look(
                opening.config,
                work=Work(job.poll, lambda share, _: job.report(0.0, f"Taking a first look, {100 * share:.0f} %")),
            )
        except (InputError, RemoteError, NoRoomError) as error:
            # opening has the last word on what is wrong with the files
            opening.unlooked = str(error)
            return
        opening.first = first_looks.start(look, f"{self.folder} {opening.key} {id(opening)}")

    def _count(self, opening: Opening, corpus: Corpus, job: Job) -> None:
        job.report(0.0, "looking for copies")
        if opening.copies.exact is None:
            opening.copies = Copies(count_exact(corpus, job.work))
        opening.copies = Copies(opening.copies.exact, *count_near(corpus, self.folder.parent, job.work))

    def _trim(self) -> None:
        with self._lock:
            for old in self._ready()[:-KEPT]:
                del self._by_key[old.key]

    def _ready(self) -> list[Opening]:
        """Those with an open corpus, the longest unused first; under the lock."""
        return sorted((opening for opening in self._by_key.values() if opening.ready), key=lambda o: o.used)

    def _let_go(self) -> bool:
        """Let go of the open corpus that no page has asked for longest, where that is long enough; the note stays."""
        with self._lock:
            for old in self._ready():
                if time.monotonic() - old.used >= IDLE_SECONDS:
                    del self._by_key[old.key]
                    return True
        return False

    def _note(self, opening: Opening, corpus: Corpus) -> None:
        note = {
            "key": opening.key,
            "title": opening.title,
            "config": opening.config.to_dict(),
            "rows": len(corpus),
            "opened": time.time(),
        }
        try:
            write_text(self.folder / f"{opening.key}.json", json.dumps(note, indent=1))
        except DatamaskError as error:
            # the corpus is open all the same; only the list of recent ones will lack it
            log.warning("%s is open, but not noted for the next time: %s", opening.title, error)

    @staticmethod
    def _read(path: Path) -> Recent | None:
        try:
            note = read_json(path)
            return Recent(
                note["key"],
                str(note["title"]),
                CorpusConfig.from_dict(note["config"]),
                int(note["rows"]),
                float(note["opened"]),
            )
        except (OSError, ValueError, KeyError, TypeError, AttributeError, OverflowError):
            # a note is a convenience; one that cannot be read is one that is not there
            return None


def openings(runs_dir: str | Path) -> Openings:
    """The process's `Openings` of a runs folder; the same object after a hot reload or a cleared cache."""
    return held(f"openings {Path(runs_dir).resolve()}", lambda: Openings(runs_dir))
