"""The sliders on the map, λ and how much to keep: solved selections sent once, the exact one where one is let go.

    beside = lambda_slider.Beside(current, places, seen, panel, tallies, sample, tried, scope)
    canvas_map(MAP, ..., slider=lambda_slider.slider(MAP, beside))
    lambda_slider.follow(current)

What is dragged never comes here: the browser shows the nearest solved selection by itself, and dims what cannot follow
at once: `slider.js` marks the page. Letting go comes as one value, and the page is drawn with the selection there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, TypeVar

import numpy as np
import streamlit as st

from datamask.ablation.offer import TriedLambda
from datamask.analyses.explanation import explanations
from datamask.analyses.lambda_slider import counts
from datamask.analyses.lambda_slider.preview import Preview
from datamask.analyses.lambda_slider.released import Released
from datamask.corpus import Corpus
from datamask.dashboard.drawing import words
from datamask.dashboard.linked.tally import Tally
from datamask.dashboard.map.canvas_map import Slider
from datamask.dashboard.map.ends import Ends
from datamask.dashboard.map.marks import Seen
from datamask.dashboard.map.places import Places, cut
from datamask.dashboard.runs import listing
from datamask.dashboard.server.parcels import parcels
from datamask.dashboard.shell import session
from datamask.dashboard.shell import view as views
from datamask.dashboard.shell.garbage import settled
from datamask.dashboard.tradeoff import amounts, lambda_points, live
from datamask.dashboard.tradeoff.lambda_point import key_of_rows
from datamask.dashboard.tradeoff.lambda_points import Mark
from datamask.dashboard.workspace import current as currently
from datamask.dashboard.workspace.current import HEARD, Current
from datamask.dashboard.workspace.selection import Selection
from datamask.dashboard.workspace.workspace import MIDDLE, Workspace, pose
from datamask.errors import OptionError
from datamask.work.worker import worker

LATER = 2.0
"""Seconds from the drawing of a page to the beginning of what it does not need yet."""

EVERY = 1.0
"""Seconds from one look at what is being solved to the next."""

T = TypeVar("T")

PREPARE = "prepare"
"""What the slider's button asks."""

BEGUN_BY_MOVING = 100_000
"""Up to this many rows letting go of the slider begins what solves for it; above it takes minutes, and a press."""


@dataclass(frozen=True)
class Beside:
    """What the slider stands beside.

    Attributes:
        current: what the page is drawn with.
        places: where the samples lie on the map. seen: what a filter lets through.
        panel: of the map, the one that shows the selections.
        tallies: what is counted at each lambda, for what stands around the map.
        sample: the marked row.
        tried: the lambdas at which an ablation found something better or worse than random.
        scope: names places and run, so that what was packed of them is found again.
    """

    current: Current
    places: Places
    seen: Seen
    panel: int
    tallies: tuple[Tally, ...]
    sample: int | None
    tried: Sequence[TriedLambda]
    scope: str

    @property
    def workspace(self) -> Workspace:
        """The corpus and the problem."""
        return self.current.workspace

    @property
    def corpus(self) -> Corpus:
        """The open corpus."""
        return self.workspace.corpus

    @property
    def name(self) -> str:
        """What the run is called on the map; empty without one."""
        return "" if self.workspace.run is None else cut(listing.name_of(self.workspace.run), 40)


def slider(name: str, beside: Beside) -> Slider:
    """What a map shows of the selections along lambda, and who is told where its slider was let go.

    Args:
        name: of the map.
    """
    workspace, along = beside.workspace, beside.current.along
    points, ends, bodies = along.points, beside.seen.ends, {}
    named = along.stamp, workspace.settings, beside.scope
    if points:
        # one scale, so that what is made on release is drawn as those dragged over are
        ends = _kept(f"{name} ends", named, lambda: lambda_points.scale_of(points, beside.places))
        bodies["lambdas"] = _packed(f"{name} lambdas", named, along, beside, ends)
    if points and beside.tallies and len(beside.corpus) <= counts.MOST_ROWS:
        key = (named, [tally.key for tally in beside.tallies])
        bodies["counts"] = _kept(f"{name} counts", key, lambda: counts.counts_parcel(points, beside.tallies))
    return Slider(
        {**_state(beside, along), "released": _released(beside, along, ends)},
        bodies,
        ends,
        on_moved=lambda: take(name, workspace),
        on_pressed=lambda: _prepare(workspace),
    )


def follow(current: Current) -> None:
    """Have the page drawn again with what is solved along lambda since."""
    workspace = current.workspace
    if current.under_way:
        st.fragment(_watch, run_every=EVERY)(workspace, len(current.along.points))
    if current.begins_later or current.awaits_scores:
        st.fragment(_begin, run_every=LATER)(workspace, [])


def _watch(workspace: Workspace, drawn: int) -> None:
    """Once twice as many are solved as were drawn, or all, the page is drawn with them."""
    settled()
    along = currently.known(workspace).along
    if not along.under_way or drawn < len(along.points) >= min(2 * drawn, lambda_points.GRID_SIZE):
        st.rerun()


def _begin(workspace: Workspace, drawn: list[bool]) -> None:
    """Begin what answers between the kept points, once the page is drawn: it would take the processor from the browser.
    The page is drawn again when it can say what each row adds.

    Args:
        drawn: empty at the drawing of the page, no longer when this is drawn by itself.
    """
    if drawn:
        now = currently.known(workspace)
        if now.begins_later:
            currently.begin_later(workspace)
        elif not now.awaits_scores:
            st.rerun()  # for the last time
    drawn.append(True)


def take(name: str, workspace: Workspace) -> None:
    """Take note of where the sliders of a map were let go last, once.

    Where that and the press of a button reach a busy server together, Streamlit may call the button first.
    """
    moved = st.session_state.get(name, {}).get("moved")
    if not isinstance(moved, Mapping) or moved.get("turn") == st.session_state.get(HEARD):
        return
    st.session_state[HEARD], lamb = moved.get("turn"), moved.get("lamb")
    chosen = False
    if isinstance(lamb, int | float) and not isinstance(lamb, bool) and 0 <= lamb <= 1:
        chosen = True
        views.change(lamb=round(float(lamb), 2))
    elif "lamb" in moved and lamb is None:
        views.change(lamb=None)
    if isinstance(keep := moved.get("keep"), Mapping):
        workspace, chosen = _keep(workspace, str(keep.get("amount")), str(keep.get("unit"))), True
    if chosen and answers(workspace):
        _prepare(workspace)


def _keep(workspace: Workspace, amount: str, unit: str) -> Workspace:
    """Have the view select another amount; gives the workspace then. What cannot be selected is kept in `trouble`."""
    now = workspace.renewed()
    try:
        pose(amounts.keeping(now.asked, len(now.corpus), amount, unit), now.rules)
    except OptionError as error:
        st.session_state["trouble"] = str(error)
    return now.renewed()


def _prepare(workspace: Workspace) -> None:
    live.session(workspace.corpus, workspace.settings, session.store().cache_dir)


def answers(workspace: Workspace) -> bool:
    """Whether the slider answers wherever it is let go, though nothing is solved yet."""
    small = len(workspace.corpus) <= BEGUN_BY_MOVING
    return small and not workspace.refusal and live.quick(workspace.settings)


def _packed(place: str, named: object, along: Current, beside: Beside, ends: Mapping[type, Ends]) -> bytes:
    """The parcel of the points, kept in the session for as long as nothing in it changes.

    Args:
        place: where it is kept. named: names the points and where they lie. ends: their common scale.
    """
    seen, dark = Seen(beside.seen.shown, None, ends), session.dark()
    key = (named, dark, along.units, _digest(seen.shown))
    return _kept(
        place,
        key,
        lambda: lambda_points.points_parcel(
            beside.corpus, along.units, along.points, beside.places, dark=dark, seen=seen, final=along.final
        ),
    )


def _kept(place: str, key: object, make: Callable[[], T]) -> T:
    """What is kept in the session at a place under this key; made, and kept in place of the last, where it is not."""
    kept: tuple[object, T] | None = st.session_state.get(place)
    if kept is None or kept[0] != key:
        kept = st.session_state[place] = (key, make())
    return kept[1]


def _digest(mask: np.ndarray | None) -> str:
    return "" if mask is None else key_of_rows(np.packbits(mask))


def _state(beside: Beside, along: Current) -> dict[str, Any]:
    """What stands on the slider besides its points."""
    workspace, current, own = beside.workspace, beside.current, along.own
    point, lamb = current.point, workspace.lamb
    sentence, press, label = _progress(beside, along)
    if len(along.points) < 2 and not answers(workspace):
        lamb = None
    elif lamb is not None and current.waits:
        sentence = f"solving λ {lamb:g}"
    elif lamb is not None and point is not None and point.lamb != lamb:
        sentence = sentence or f"λ {lamb:g} is not solved: {workspace.settings.objective} needs a run for each λ"
        lamb = point.lamb
    home = own.lamb if own is not None else MIDDLE
    return {
        "panel": beside.panel,
        "dark": session.dark(),
        "at": home if lamb is None else lamb,
        "touched": lamb is not None,
        "answers": answers(workspace),
        "heard": st.session_state.get(HEARD),
        "home": home,
        "back": f"As in {beside.name}" if workspace.run is not None else "Back to the middle",
        "run": beside.name,
        "keep": _amount(beside),
        # what the page around the map shows, too
        "current": None
        if point is None
        else lambda_points.answer_at(beside.corpus, along.units, point, along.settled(point.lamb)),
        "words": sentence,
        "press": press,
        "label": label,
        "marks": [asdict(mark) for mark in _marks(beside, along)],
        "tried": [
            {"lamb": point.lamb, "verdict": point.verdict, "words": cut(f"λ {point.lamb:g}: {point.words}", 200)}
            for point in beside.tried
        ],
    }


def _amount(beside: Beside) -> dict[str, Any] | None:
    """What stands on the slider of the amount; None where another one cannot be solved here."""
    workspace, selection = beside.workspace, beside.current.selection
    if workspace.run is not None and workspace.run.whole is not None:
        return None
    amount = amounts.amount_of(workspace.settings, beside.corpus, None if selection is None else selection.mask)
    waits = selection is None and beside.current.waits
    return {**amount, "waits": waits, "preview": "" if selection is None else _preview(beside, selection, amount)}


def _preview(beside: Beside, selection: Selection, amount: Mapping[str, Any]) -> str:
    """The address of the rows with other amounts; empty where the selection is not of this problem, or is a preview."""
    workspace, current = beside.workspace, beside.current
    if workspace.refusal or selection.preview or current.unsolved:
        return ""
    problem, dark, shown = current.problem, session.dark(), beside.seen.shown
    made = Preview(
        problem,
        replace(workspace.settings, lamb=selection.lamb),
        selection.mask,
        beside.corpus.lengths,
        amount["tokens"] or amount["rows"],
        beside.places,
        dark,
        Seen(shown, None, beside.seen.ends),
    )
    content = f"{problem} {selection.lamb} {selection.key} {beside.scope} {dark} {_digest(shown)} preview"
    return parcels().promise(beside.corpus, content.encode(), lambda _: made.parcel())


def _released(beside: Beside, along: Current, ends: Mapping[type, Ends]) -> str:
    """The address of the selection at any lambda; empty where none is made there."""
    if beside.workspace.refusal or not live.quick(beside.workspace.settings):
        return ""
    problem, units, dark, shown = along.problem, along.units, session.dark(), beside.seen.shown
    made = Released(problem, units, beside.places, dark, Seen(shown, None, ends))
    known = units.baselines is not None
    content = f"{problem} {along.stamp} {known} {beside.scope} {dark} {_digest(shown)} released"
    return parcels().promise(beside.corpus, content.encode(), made.parcel)


def _progress(beside: Beside, along: Current) -> tuple[str, str, str]:
    """What could be done, the question that the button asks, and the button's label."""
    behind, settings = along.behind, beside.workspace.settings
    if refusal := beside.workspace.refusal:
        return refusal, "", ""
    if behind is None or not behind.alive:
        if behind is not None and behind.error:
            return cut(words.unmarked(behind.error), 200), PREPARE, "Prepare λ again"
        if along.kept:
            return "", "", ""
        seconds = lambda_points.expected_seconds(beside.corpus, settings)
        takes = "takes a while" if seconds is None else f"about {words.roughly(seconds)}"
        if len(along.points) > 1:
            return (
                f"Drawn: stored runs. The λ between them are solved in the background, {takes}",
                PREPARE,
                "Prepare λ",
            )
        return f"λ can be dragged once it is solved, {takes}, in the background", PREPARE, "Prepare λ"
    return "", "", ""


def _marks(beside: Beside, along: Current) -> list[Mark]:
    """Return what stands next to the solved points: the run, the marked row and its flip."""
    run = beside.workspace.run
    marks = [] if along.own is None else [Mark("run", along.own.lamb, along.own.lamb, "")]
    if beside.sample is not None:
        job = None if run is None else worker().find(explanations.flip_key(run, beside.sample))
        flip = job.result.lamb if job is not None and job.state == "done" else None
        name = cut(beside.corpus.ids[beside.sample].as_py(), 24)
        marks += lambda_points.sample_marks(name, along.points, beside.sample, flip)
    return marks
