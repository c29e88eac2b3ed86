"""How the menu of every page names long work that is no run, and where it is watched."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from datamask.work.job import Job
from datamask.work.worker import worker


@dataclass(frozen=True)
class Sign:
    """What the menu says of a job.

    Attributes:
        title: its name. page: the script of its page. link: what the page's address must hold.
        sweeps, runs: for work that makes runs, the ids of its sweeps and of single runs; they are shown as part of it.
        arrived: how much of what pages show has come; they are drawn again when that grows.
    """

    title: str
    page: str
    link: Mapping[str, str]
    sweeps: tuple[str, ...] = ()
    runs: tuple[str, ...] = ()
    arrived: Callable[[], int] = int


def signed() -> list[Job]:
    """The jobs under way that the menu shows, the oldest first."""
    return [job for job in worker().active() if job.sign is not None]
