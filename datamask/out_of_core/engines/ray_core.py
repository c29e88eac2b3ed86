"""The Ray engine: tasks of Ray Core, on this machine or on a cluster that is joined.

Only texts cross: Ray's object store, data sets and retries are not used. Retries are counted as in every engine, so
that a task which kills its workers ends in the same sentence.

The library asks for four things that are not obvious. The processes that `ray.init` starts are killed by the kernel
when the *thread* that called it ends, so that thread lives as long as the connection. Called in the main thread it
would put its own handler in the place of the one by which a polite kill stops a run with a checkpoint. A process has
one connection at a time. And a process that drops a reference to a result while its connection ends is ended without a
word, so no reference outlives `RayEngine.run`, not even in the traceback of an error that is kept.
"""

from __future__ import annotations

import contextlib
import logging
import os
import socket
import threading
import traceback
from collections import Counter, deque
from collections.abc import Mapping, Sequence
from types import ModuleType
from typing import Any

from datamask import __version__
from datamask.errors import OptionError, RemoteError
from datamask.out_of_core.engines.contract import (
    ASKED_SECONDS,
    ONE_THREAD,
    TRIES,
    Engine,
    OnDone,
    Result,
    lost_for_good,
    usable_cores,
)
from datamask.out_of_core.engines.replies import call_text, reply_to, result_of
from datamask.polling import Poll
from datamask.process import child_environment

IN_FLIGHT = 1000
"""Tasks that the cluster is given at once: more than it has cores, or it would not grow where it can."""

ENDING_TRIES = 20
"""So often tasks in flight are asked to end, `ASKED_SECONDS` apart."""

KNOCK_SECONDS = 5.0
"""For a cluster to take a connection."""

STORE_BYTES = 78_643_200
"""The least that Ray allows its object store, in which there is nothing here but texts."""

_Places = dict[Any, int]
"""Of tasks in flight: the place of its argument, by the reference to its result."""

_lock, _one_at_a_time = threading.Lock(), threading.Lock()
_current: _Connection | None = None


class RayEngine(Engine):
    """A cluster of Ray that is joined, or one of this machine alone that ends with the engine."""

    def __init__(self, workers: int | None = None, address: str | None = None) -> None:
        """Raises OptionError: Ray is not installed. ValueError: `workers` is below 1."""
        if workers is not None and workers < 1:
            raise ValueError(f"workers must be at least 1, got {workers}")
        self._ray = _library()
        self._asked, self._address = workers, address
        self._connection: _Connection | None = None

    @property
    def workers(self) -> int:
        """How many tasks it does at a time: of a cluster that is joined, as many as it has cores."""
        if self._asked is not None:
            return self._asked
        if self._address is None:
            return usable_cores()
        return max(1, int(self._ray.cluster_resources().get("CPU", 1))) if self._connection is not None else 1

    def run(
        self,
        task: str,
        arguments: Sequence[Mapping[str, Any]],
        *,
        poll: Poll,
        on_done: OnDone | None = None,
    ) -> list[Result]:
        """As `Engine.run` says.

        Raises also:
            RemoteError: the cluster cannot be joined, or cannot call datamask.
        """
        calls = [call_text(task, argument) for argument in arguments]
        if not calls:
            return []
        self._connect(poll)
        ray = self._ray
        remote = ray.remote(num_cpus=1, max_retries=0)(_reply)
        # what a cluster of one's own does at a time is bounded by its cores
        most = IN_FLIGHT if self._asked is None or self._address is None else self._asked
        results: dict[int, Result] = {}
        begun: Counter[int] = Counter()
        waiting, places = deque(range(len(calls))), _Places()
        try:
            while len(results) < len(calls):
                while waiting and len(places) < most:
                    place = waiting.popleft()
                    places[remote.remote(calls[place], __version__)] = place
                    begun[place] += 1
                for place, reply in self._ended(places):
                    if isinstance(reply, str):
                        results[place] = result_of(reply)
                        if on_done is not None:
                            on_done(place, results[place])
                        continue
                    how = self._how_lost(reply)
                    if begun[place] == TRIES:
                        raise lost_for_good(task, how)
                    waiting.appendleft(place)
                poll()
        except BaseException:
            self._end(list(places))
            raise
        finally:
            places.clear()  # which the traceback of an error keeps
        return [results[place] for place in range(len(calls))]

    def close(self) -> None:
        """Leave the cluster; one of this machine alone ends. Nobody waits for that."""
        if self._connection is not None:
            self._connection.end()
            self._connection = None

    def _end(self, references: list[Any]) -> None:
        """End tasks in flight. A request that comes while a task is on its way to its worker is lost: ask again."""
        for _ in range(ENDING_TRIES):
            for reference in references:
                with contextlib.suppress(self._ray.exceptions.RayError):
                    self._ray.cancel(reference, force=True)
            if not references:
                return
            _, references = self._ray.wait(references, num_returns=len(references), timeout=ASKED_SECONDS)

    def _connect(self, poll: Poll) -> None:
        if self._connection is None:
            connection = _Connection.shared(self._ray, self._asked, self._address)
            try:
                connection.wait(poll)
            except BaseException:
                connection.end()
                raise
            self._connection = connection

    def _ended(self, places: _Places) -> list[tuple[int, str | Exception]]:
        """Places whose tasks have ended, after `ASKED_SECONDS` at the latest, each with the reply or Ray's error."""
        ready, _ = self._ray.wait(list(places), num_returns=1, timeout=ASKED_SECONDS)
        return [(places.pop(reference), self._reply_of(reference)) for reference in ready]

    def _reply_of(self, reference: object) -> str | Exception:
        try:
            reply: str = self._ray.get(reference)
            return reply
        except self._ray.exceptions.RayError as error:
            # functions of Ray that it came through know the reference
            traceback.clear_frames(error.__traceback__)
            known: Exception = error.with_traceback(None)
            return known

    def _how_lost(self, error: Exception) -> str:
        """How a worker was lost, or the machine that it was on, in words.

        Raises:
            RemoteError: neither was.
        """
        errors = self._ray.exceptions
        lost = errors.WorkerCrashedError, errors.NodeDiedError, errors.OutOfMemoryError, errors.ObjectLostError
        last = _last_line(error)
        if isinstance(error, lost):
            return f"by Ray's {type(error).__name__} ({last.rstrip('.')})"
        raise RemoteError(
            f"the Ray cluster {self._address or 'of this machine'} cannot call datamask: {last}; datamask "
            f"{__version__} must be installed on every machine of it"
        ) from error


def _last_line(error: Exception) -> str:
    """Of what Ray says, which begins with traces of other processes."""
    return str(error).strip().rpartition("\n")[2]


def _reply(call: str, version: str) -> str:
    """Do a call on a machine of the cluster; refuse to where that has another version of datamask."""
    if version != __version__:
        raise RuntimeError(f"a machine of it has datamask {__version__}, and {version} asks")
    return reply_to(call)


class _Connection:
    """A connection to a cluster, and the thread that it needs for as long as it lasts. Get it from `shared`."""

    def __init__(self, ray: ModuleType, workers: int | None, address: str | None) -> None:
        self._ray, self._workers, self.address = ray, workers, address
        self._users = 0
        self._there, self._over = threading.Event(), threading.Event()
        self._error: Exception | None = None
        threading.Thread(target=self._live, name="ray connection", daemon=True).start()

    @classmethod
    def shared(cls, ray: ModuleType, workers: int | None, address: str | None) -> _Connection:
        """The connection of this process, which is made where there is none; each user ends it once.

        Raises:
            RemoteError: there is one to another cluster.
        """
        global _current
        with _lock:
            if _current is None:
                _current = cls(ray, workers, address)
            elif _current.address != address:
                raise RemoteError(
                    f"this process is joined to the Ray cluster {_current.address or 'of this machine'}, and can be "
                    f"joined to {address or 'one of its own'} when what runs there has ended"
                )
            _current._users += 1
            return _current

    def wait(self, poll: Poll) -> None:
        """Wait for it to be there.

        Raises:
            RemoteError: the cluster cannot be joined, or none can be started here.
        """
        while not self._there.wait(ASKED_SECONDS):
            poll()
        if self._error is not None:
            last = str(self._error).strip().partition("\n")[0]
            what = f"joined at {self.address}" if self.address else "started on this machine"
            raise RemoteError(f"the Ray cluster cannot be {what}: {last}") from self._error

    def end(self) -> None:
        """One user less; without any it ends, which may take a second."""
        global _current
        with _lock:
            self._users -= 1
            if self._users == 0:
                self._over.set()
                _current = None

    def _live(self) -> None:
        ray = self._ray
        # the one before may be about to end
        with _one_at_a_time:
            if self._over.is_set():
                return
            ours = not ray.is_initialized()
            try:
                if ours:
                    self._open()
            # it is raised where the connection is waited for
            except Exception as error:
                self._error = error
            self._there.set()
            self._over.wait()
            if ours:
                ray.shutdown()

    def _open(self) -> None:
        if self.address is not None:
            _check_answers(self.address)
        environment = dict(ONE_THREAD)
        options: dict[str, Any] = {"address": self.address}
        if self.address is None:
            environment["PYTHONPATH"] = child_environment()["PYTHONPATH"]
            options = {
                "address": "local",
                "num_cpus": self._workers or usable_cores(),
                "num_gpus": 0,
                "object_store_memory": STORE_BYTES,
                "include_dashboard": False,
            }
        # it would warn that it leaves the handler of signals alone
        logging.getLogger("ray").setLevel(logging.ERROR)
        self._ray.init(
            **options, log_to_driver=False, logging_level=logging.ERROR, runtime_env={"env_vars": environment}
        )


def _check_answers(address: str) -> None:
    """Knock at ``HOST:PORT``, since Ray itself goes on for minutes where nobody answers.

    Raises:
        OSError: nobody does.
    """
    host, _, port = address.rpartition(":")
    # auto, local and ray://HOST:PORT are Ray's to understand
    if host and port.isdecimal() and "/" not in host:
        socket.create_connection((host, int(port)), KNOCK_SECONDS).close()


def _library() -> ModuleType:
    """Ray, which reports to nobody that it is used, unless somebody allowed it to.

    Raises:
        OptionError: it is not installed.
    """
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    try:
        import ray
    except ImportError as error:
        raise OptionError(
            "--engine ray needs the library ray, which is not installed: pip install 'datamask[ray]'"
        ) from error
    library: ModuleType = ray
    return library
