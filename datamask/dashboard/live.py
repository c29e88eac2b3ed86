"""The live lambda of this process: solver sessions in threads of their own, shared by every browser tab.

A session poses its problem once (the neighbour graph and the ends of the scales may take a while, with progress and a
stop), then solves a grid of lambdas in the background and answers requests in between; a request interrupts the grid.
Sessions are anchored in the process, outside Streamlit's caches; `KEPT` of them are held, and one lock lets a single
one compute at a time. Loads torch only inside the thread.
"""

from __future__ import annotations

import contextlib
import json
import threading
import types
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from datamask import endings
from datamask.config import SelectionConfig
from datamask.corpus import Corpus
from datamask.dashboard import words
from datamask.errors import DatamaskError, Stopped
from datamask.process import held

if TYPE_CHECKING:
    from datamask.evaluation.live import Live
    from datamask.evaluation.solved import Answer

KEPT = 2
"""Sessions held; the longest unused ends first. A session holds dual solutions, not the features."""

REMEMBERED = 16
"""Results kept for whoever asked; the masks are the largest thing in them."""

QUICK = ("pairwise", "facility")
"""Objectives that answer anew at every lambda, and are prepared in moments; the others answer with what was solved."""

OFFERED = (*QUICK, "disf_fixed", "disf")

_NAME = "live lambda"
_POSED, _SOLVED = 0.5, 0.9
"""Shares of the preparation that end with posing and with the grid; proofs follow."""


class Session:
    """One problem behind a slider. Get it from `session`; all methods may be called from any thread.

    Attributes:
        state: ``preparing`` (posing), ``warming`` (answers come, the grid is being solved), ``ready``, ``failed`` or
            ``stopped``.
        share, message: progress of preparing and warming. error: the sentence when it failed.
    """

    def __init__(self, corpus: Corpus, config: SelectionConfig, cache_dir: Path, turn: threading.Lock) -> None:
        self.state, self.share, self.message, self.error = "preparing", 0.0, "starting", ""
        self._corpus, self._config, self._cache_dir, self._turn = corpus, config, cache_dir, turn
        self._wanted: OrderedDict[object, Callable[[Live, Callable[[], None]], Answer]] = OrderedDict()
        self._results: OrderedDict[object, tuple[int, Answer]] = OrderedDict()
        self._learned = 0
        """How many lambdas were solved or proved so far."""
        self._changed = threading.Condition()
        self._end = threading.Event()
        self._thread = endings.start(self._work, name="live-lambda", stop=self.stop)

    @property
    def alive(self) -> bool:
        """Whether it can still answer."""
        return self.state in ("preparing", "warming", "ready")

    def answer(self, lamb: float, seconds: float) -> Answer | None:
        """The selection at a lambda; None where it is not there within so many seconds. Ask again: it is under way."""
        return self._ask(("lambda", lamb), lambda live, poll: live.answer(lamb, poll), seconds)

    def keeping(self, quality: float, seconds: float) -> Answer | None:
        """The selection at the smallest lambda that keeps a share of the attainable quality; None as in `answer`."""
        return self._ask(("keeping", quality), lambda live, poll: live.keeping(quality, poll), seconds)

    def stop(self) -> None:
        """End it; what it knows is lost, what was put on disk (graph, ends of the scales) stays."""
        self._end.set()
        with self._changed:
            self._changed.notify_all()

    def wait(self, seconds: float) -> None:
        """Wait until it is ready or has ended. For tests and scripts; a page never waits."""
        with self._changed:
            self._changed.wait_for(lambda: self.state not in ("preparing", "warming"), seconds)

    def _ask(self, key: object, work: Callable, seconds: float) -> Answer | None:
        with self._changed:
            # what was answered before more was known is asked again, not shown again
            if key not in self._results or self._results[key][0] < self._learned:
                self._results.pop(key, None)
                self._wanted[key] = work
                self._wanted.move_to_end(key)
                self._changed.notify_all()
                self._changed.wait_for(lambda: key in self._results or not self.alive, seconds)
            return self._results[key][1] if key in self._results else None

    # -- the thread's side ---------------------------------------------------------------------------------------

    def _work(self) -> None:
        try:
            live = self._posed()
            self._become("warming")
            self._warm(live)
            self._become("ready")
            while not self._end.is_set():
                with self._changed:
                    self._changed.wait_for(lambda: self._wanted or self._end.is_set())
                self._serve(live)
        except Stopped:
            self._become("stopped")
        except DatamaskError as error:
            self.error = str(error)
            self._become("failed")
        # the thread's last door: what went wrong must reach the page, not vanish with the thread
        except Exception as error:
            self.error = f"The live balance ended on an unexpected error: {type(error).__name__}: {error}"
            self._become("failed")
        else:
            self._become("stopped")

    def _become(self, state: str) -> None:
        with self._changed:
            self.state = state
            self._changed.notify_all()

    def _poll(self) -> None:
        if self._end.is_set():
            raise Stopped("the live balance was ended")

    def _posed(self) -> Live:
        from datamask.evaluation.live import open_live
        from datamask.evaluation.threads import threads

        def report(share: float, what: str) -> None:
            self.share, self.message = _POSED * share, what

        report(0.0, "preparing the neighbours and the ends of the scales")
        with self._turn, threads(_cores()):
            return open_live(self._corpus, self._config, self._cache_dir, self._poll, report)

    def _warm(self, live: Live) -> None:
        """Solve the grid, the ends and the middle first, then prove what is not proved yet; a request goes before."""
        ordered = sorted(live.grid, key=lambda lamb: (lamb not in (0.0, 0.5, 1.0), -lamb if lamb == 1.0 else lamb))
        self._through(live, ordered, live.solve, "solving", _POSED, _SOLVED)
        self._through(live, [lamb for lamb in live.grid if live.provable(lamb)], live.prove, "proving", _SOLVED, 1.0)
        self.share = 1.0

    def _through(self, live: Live, waiting: list[float], work: Callable, what: str, low: float, high: float) -> None:
        from datamask.evaluation.threads import threads

        def polled() -> None:
            self._poll()
            if self._wanted:
                raise Stopped("a request goes first")

        total = len(waiting)
        while waiting:
            self._poll()
            self._serve(live)
            self.share = low + (high - low) * (1 - len(waiting) / total)
            self.message = f"{what} λ {waiting[0]:g}"
            with contextlib.suppress(Stopped), self._turn, threads(_cores()):
                work(waiting[0], polled)
                waiting.pop(0)
                self._learned += 1

    def _serve(self, live: Live) -> None:
        """Answer what is wanted, the latest first."""
        from datamask.evaluation.threads import threads

        while self._wanted and not self._end.is_set():
            with self._changed:
                key, work = self._wanted.popitem(last=True)
            with self._turn, threads(_cores()):
                found = work(live, self._poll)
            with self._changed:
                self._results[key] = self._learned, found
                while len(self._results) > REMEMBERED:
                    self._results.popitem(last=False)
                self._changed.notify_all()


def _cores() -> int:
    """CPU threads for the longer work."""
    from datamask.runs.jobs import beside_the_server
    return beside_the_server()


def proof_words(gap: float | None, final: bool) -> str:
    """How near the best possible an answer is proved to be; empty where nothing is proved.

    Args:
        gap: of the answer. final: whether all that is solved and proved in the background is; until then the gap is
            mostly what is not known yet, and falls.
    """
    if gap is None:
        return ""
    within = "0.01" if gap < 1e-4 else f"{100 * gap:.2f}"
    gain = f"within {within}{words.GAP}% of the attainable gain of the best possible at this λ"
    if final:
        return f"Proved: {gain}."
    return f"Still solving: so far this selection is only proved to be {gain}; the proof gets tighter until it is done."


def key_of(corpus: Corpus, config: SelectionConfig) -> str:
    """What a session is found by: the corpus, and every setting but lambda."""
    return json.dumps([corpus.fingerprint, {**config.to_dict(), "lamb": None}], sort_keys=True, default=str)


def session(corpus: Corpus, config: SelectionConfig, cache_dir: str | Path) -> Session:
    """The session of a problem, started where there is none that can still answer."""
    holder = _holder()
    with holder.lock:
        found = holder.sessions.get(key := key_of(corpus, config))
        if found is None or not found.alive:
            found = holder.sessions[key] = Session(corpus, config, Path(cache_dir), holder.turn)
        holder.sessions.move_to_end(key)
        while len(holder.sessions) > KEPT:
            holder.sessions.popitem(last=False)[1].stop()
        return found


def find(corpus: Corpus, config: SelectionConfig) -> Session | None:
    """The session of a problem, under way, ready or ended; None: it was never started, or made room for others."""
    return _holder().sessions.get(key_of(corpus, config))


def _holder() -> types.SimpleNamespace:
    return held(_NAME, lambda: types.SimpleNamespace(
        sessions=OrderedDict(), lock=threading.Lock(), turn=threading.Lock()))
