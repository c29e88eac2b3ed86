"""Which runs can be shown or compared on a corpus, which cannot and why, and which ones come first. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from datamask.config import CorpusConfig
from datamask.dashboard.data.openings import title_of
from datamask.errors import DatamaskError
from datamask.runs.store import Run

UNFINISHED = {
    "queued": "it has not started",
    "running": "it is still running",
    "stopped": "it was stopped; resume it on the Runs page",
    "interrupted": "its process ended early; resume it on the Runs page",
    "failed": "it failed; the Runs page says why",
}
"""What to say of a run that is not done, by its state."""


@dataclass(frozen=True)
class Refused:
    """A run that cannot be compared on this corpus, and why: the end of a sentence that begins with its name."""

    run: Run
    reason: str

    @property
    def name(self) -> str:
        """The run's name, or its id where it has none or its record cannot be read."""
        try:
            return self.run.config.name or self.run.id
        except DatamaskError:
            return self.run.id


def candidates(
    runs: Sequence[Run], fingerprint: str | None, archived: bool = False, config: CorpusConfig | None = None
) -> tuple[list[Run], list[Refused]]:
    """Finished runs on the corpus of that fingerprint, in the order given, and the others with the reason.

    Args:
        fingerprint: None: of any corpus, where none is open yet.
        archived: whether runs that were put away are among them.
        config: how that corpus was opened, so that runs from before its files changed are told from those of others.
    """
    fit, others = [], []
    for run in runs:
        if not archived and run.label().archived:
            continue
        reason = _reason(run, fingerprint, config)
        if reason is None:
            fit.append(run)
        else:
            others.append(Refused(run, reason))
    return fit, others


def _reason(run: Run, fingerprint: str | None, config: CorpusConfig | None) -> str | None:
    """Why a run cannot be compared; None: it can."""
    state = run.status().state
    try:
        of, facts = run.config.corpus, run.facts()
    except DatamaskError as error:
        return f"its record cannot be read ({error})"
    known = facts.get("fingerprint")
    if fingerprint is None:
        fingerprint = known
    if known and known != fingerprint:
        if of == config:
            return "the files have changed since this run"
        size = f", {facts['n']:,} rows" if isinstance(facts.get("n"), int) else ""
        return f"it is of another corpus: {title_of(of)}{size}"
    if state != "done":
        return UNFINISHED.get(state, f"it is {state}")
    if not known or known != fingerprint or not run.has_rows:
        return "its record does not list the selected rows"
    return None


@dataclass(frozen=True)
class Pair:
    """The two runs that a comparison begins with, A before B, and in a sentence why these."""

    first: Run
    second: Run
    why: str


def made_alone(runs: Sequence[Run]) -> list[Run]:
    """Those candidates that are no points of sweeps, in the order given."""
    return [run for run in runs if "sweep" not in run.facts()]


def first_shown(runs: Sequence[Run]) -> Run | None:
    """The run that pages open on: the newest one that is no point of a sweep, else the middle of the newest sweep.

    The newest point of a sweep over lambda is an end of the scale: quality alone, at any price in diversity.

    Args:
        runs: candidates, newest first. Returns None where there are none.
    """
    alone = made_alone(runs)
    if alone or not runs:
        return alone[0] if alone else None
    newest = runs[0].facts()["sweep"]
    points = [run for run in runs if run.facts()["sweep"] == newest]
    return min(points, key=lambda run: abs(run.config.selection.lamb - 0.5))


def first_pair(runs: Sequence[Run], opened: Sequence[str] = ()) -> Pair:
    """B is the run that was opened last, else the newest; A the one opened before it, else the newest other one, those
    of the same size and then of the same objective first. Where nothing was opened, points of sweeps are looked at only
    if no two others are there.

    Args:
        runs: at least two candidates, newest first.
        opened: ids of the runs that the reader looked at, the latest first; others than candidates do not count.
    """
    by_id = {run.id: run for run in runs}
    seen = [by_id[run_id] for run_id in opened if run_id in by_id]
    if len(seen) > 1:
        return Pair(seen[1], seen[0], "your last two runs")
    alone = made_alone(runs)
    aside = not seen and 2 <= len(alone) < len(runs)
    if aside:
        runs = alone
    second = seen[0] if seen else runs[0]
    mine = second.config.selection

    def unlike(run: Run) -> tuple[bool, bool]:
        other = run.config.selection
        return (other.select_ratio, other.budget) != (mine.select_ratio, mine.budget), other.objective != mine.objective

    first = min((run for run in runs if run.id != second.id), key=unlike)
    size, objective = unlike(first)
    shared = [what for what, other in (("objective", objective), ("size", size)) if not other]
    alike = f" of the same {' and '.join(shared)}" if shared else ""
    about = "run that you opened last" if seen else "newest run"
    return Pair(first, second, f"the {about} (B) with the next newest{alike} (A)")
