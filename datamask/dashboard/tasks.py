"""One-off work behind a page, such as writing a large export: a thread with progress and a stop, one per key.

A page starts a task under a key of its own, draws what `find` gives back, and may be left and come back to.
"""

from __future__ import annotations

import threading
import types
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from datamask import endings
from datamask.errors import DatamaskError, Stopped
from datamask.process import held
from datamask.runs.progress import Eta, RunPace

Progress = Callable[[float, str], None]
KEPT = 32
"""Ended tasks remembered; the oldest is forgotten first."""


@dataclass(frozen=True)
class Sign:
    """How the menu of every page names long work, and where it is watched.

    Attributes:
        title: its name. page: the script of its page. link: what the page's address must hold. stops: what a Stop does.
        sweeps: for work that makes runs, the ids of its sweeps; they are shown as part of it.
    """

    title: str
    page: str
    link: Mapping[str, str]
    stops: str
    sweeps: tuple[str, ...] = ()


@dataclass
class Task:
    """Work under way or ended.

    Attributes:
        key: what it is known by.
        state: ``working``, ``done``, ``failed`` or ``stopped``.
        share, message: progress, 0..1. result: what the work returned. error: the sentence when it failed.
        left: seconds still to go, as far as the pace tells; None while it does not.
        sign: for work that the menu shows. about: what was asked for, so that a page can say it and ask again.
    """

    key: str
    state: str = "working"
    share: float = 0.0
    message: str = "starting"
    result: object = None
    error: str = ""
    left: float | None = None
    sign: Sign | None = None
    about: object = None
    _stop: threading.Event = field(default_factory=threading.Event, repr=False)
    _ended: threading.Event = field(default_factory=threading.Event, repr=False)

    def wait(self, seconds: float | None = None) -> None:
        """Wait for the work to end, at most `seconds`. A page waits a blink, for what is often there at once."""
        self._ended.wait(seconds)

    def stop(self) -> None:
        """Ask the work to stop."""
        self._stop.set()


def start(key: str, work: Callable[[Progress, Callable[[], bool]], object], *, sign: Sign | None = None,
          about: object = None, pace: RunPace | None = None) -> Task:
    """Do ``work(progress, should_stop)`` in a thread, or join the task of that key already under way.

    Args:
        pace: what knows the time left, where that does not follow from the shares alone.
    """
    holder = _holder()
    with holder.lock:
        running = holder.tasks.get(key)
        if running is not None and running.state == "working":
            return running
        task = Task(key, sign=sign, about=about)
        holder.tasks.pop(key, None)
        holder.tasks[key] = task
        for old in [k for k, t in holder.tasks.items() if t.state != "working"][:-KEPT]:
            del holder.tasks[old]
    endings.start(_work, task, work, pace or Eta(), name=f"task-{key}", stop=task.stop)
    return task


def find(key: str) -> Task | None:
    """The task of that key, under way or ended."""
    return _holder().tasks.get(key)


def signed() -> list[Task]:
    """The tasks at work that the menu shows, the oldest first."""
    holder = _holder()
    with holder.lock:
        return [task for task in holder.tasks.values() if task.sign is not None and task.state == "working"]


def forget(key: str) -> None:
    """Forget an ended task, so that its work may be done anew. For a button's `on_click`."""
    holder = _holder()
    with holder.lock:
        found = holder.tasks.get(key)
        if found is not None and found.state != "working":
            del holder.tasks[key]


def _work(task: Task, work: Callable[[Progress, Callable[[], bool]], object], pace: Eta | RunPace) -> None:
    def report(share: float, what: str) -> None:
        task.share, task.message, task.left = share, what, pace.update(share, what=what)

    try:
        task.result = work(report, task._stop.is_set)
    except Stopped:
        task.state = "stopped"
    except DatamaskError as error:
        task.error, task.state = str(error), "failed"
    # the thread's last door: what went wrong must reach the page, not vanish with the thread
    except Exception as error:
        task.error, task.state = f"This stopped on an unexpected error: {type(error).__name__}: {error}", "failed"
    else:
        task.share, task.state = 1.0, "done"
    finally:
        task._ended.set()


def _holder() -> types.SimpleNamespace:
    return held("tasks", lambda: types.SimpleNamespace(tasks={}, lock=threading.Lock()))
