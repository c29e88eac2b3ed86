"""All that is prepared of an open corpus by itself, in one line of the menu: λ 0.5, other λ, the layout, names."""

from __future__ import annotations

from dataclasses import dataclass

import streamlit as st

from datamask.dashboard.drawing import words
from datamask.dashboard.map import map_layout
from datamask.dashboard.map import preparing_panel as layout_panel
from datamask.dashboard.shell import session
from datamask.dashboard.shell.garbage import settled
from datamask.dashboard.tradeoff import lambda_points, live
from datamask.dashboard.workspace import current as currently
from datamask.dashboard.workspace.current import Current
from datamask.dashboard.workspace.workspace import MIDDLE, Workspace
from datamask.work.job import Job
from datamask.work.worker import worker


@dataclass(frozen=True)
class Part:
    """One thing that is prepared.

    Attributes:
        names: what it is, one after the other; the first is computed now. seconds: it takes on an idle machine, about.
    """

    names: tuple[str, ...]
    job: Job
    seconds: float

    @property
    def left(self) -> float:
        """Seconds that it still computes, about."""
        return self.seconds * (1.0 - self.job.share) if self.job.left is None else self.job.left


def begin_map(current: Current, projection: str) -> None:
    """Begin what a map of the corpus lacks and may begin by itself; then the page is drawn again, with it in the menu.

    Args:
        projection: the chosen one.
    """
    corpus, cache_dir = current.workspace.corpus, session.store().cache_dir
    # λ goes first, as a person looks at it and moves it: a layout would take half of a small machine from it
    first = current.behind.job if current.under_way and current.behind is not None else None
    if layout_panel.begin(corpus, cache_dir, projection, first):
        st.rerun()


def parts(known: Current) -> list[Part]:
    """What is being prepared, in its order, with what of it is done; empty where nothing is under way."""
    corpus, behind, found = known.workspace.corpus, known.behind, []
    # beside points that are kept it is begun for what is between them: nothing waits for that
    if behind is not None and behind.alive and (behind.job.ended or known.under_way):
        there = any(abs(point.lamb - MIDDLE) < currently.SAME for point in lambda_points.solved_by(behind))
        names = ("other λ",) if there else (f"λ {MIDDLE:g}", "other λ")
        seconds = lambda_points.expected_seconds(corpus, known.workspace.settings) or 0.0
        found.append(Part(names, behind.job, seconds))
    job = worker().find(map_layout.key_of(corpus))
    if job is not None and not job.ended:
        found.append(Part((str(job.about),), job, map_layout.expected_seconds(corpus)))
    return found if _waiting(found) else []


def show(workspace: Workspace, drawn: list[Part]) -> None:
    """Draw the line, again every second; the whole page once one of the parts has ended or crowding has come.

    Args:
        drawn: of `parts`, not empty.
    """
    st.fragment(_line, run_every=1.0)(workspace, _stamp(workspace, _waiting(drawn)))


def _waiting(known: list[Part]) -> list[Part]:
    return [part for part in known if not part.job.ended]


def _stamp(workspace: Workspace, waiting: list[Part]) -> tuple[object, ...]:
    crowded = map_layout.crowding(workspace.corpus, session.store().cache_dir) is not None
    return crowded, *(part.job.key for part in waiting)


def _line(workspace: Workspace, drawn: tuple[object, ...]) -> None:
    settled()
    known = parts(currently.known(workspace))
    waiting = _waiting(known)
    if not waiting or _stamp(workspace, waiting) != drawn:
        st.rerun()
    first = next(name for part in waiting for name in part.names)
    share = sum(part.seconds * part.job.share for part in known) / max(sum(part.seconds for part in known), 1e-9)
    left = words.soon(sum(part.left for part in waiting))
    with st.container(horizontal=True, wrap=False, vertical_alignment="center", gap="xsmall"):
        st.progress(min(max(share, 0.0), 1.0), text=f"**Preparing {', '.join(filter(None, (first + '**', left)))}")
        st.button(
            "Stop",
            key="stop_preparing",
            icon=":material/stop:",
            type="tertiary",
            on_click=_stop,
            args=(workspace,),
        )


def _stop(workspace: Workspace) -> None:
    behind = live.find(workspace.corpus, workspace.settings)
    if behind is not None:
        behind.stop()
    for part in parts(currently.known(workspace)):
        part.job.stop()
