"""The lambda slider on the map: solved selections sent once, and the exact one where the slider is let go.

    regions = canvas_map(MAP, ..., slider=True)
    lambda_slider.show(MAP, Beside(current, places, seen, panel, sample, scope))

What is dragged never comes here: the browser shows the nearest solved selection by itself, and dims what cannot follow
at once: `slider.js` marks the page. Letting go comes as one question. The fragment below sends the selection that
stands there, and then has the whole page drawn anew, as all of it shows the current selection.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, TypeVar

import numpy as np
import streamlit as st

from datamask.analyses.explanation import explanations
from datamask.analyses.lambda_slider import counts
from datamask.corpus import Corpus
from datamask.dashboard.drawing import words
from datamask.dashboard.frame import address
from datamask.dashboard.linked.tally import Tally
from datamask.dashboard.map import scene
from datamask.dashboard.map.canvas_map import carry, take_sight
from datamask.dashboard.map.marks import Seen
from datamask.dashboard.map.parcels import pack
from datamask.dashboard.map.places import Places, cut
from datamask.dashboard.runs import listing
from datamask.dashboard.shell import session
from datamask.dashboard.shell import view as views
from datamask.dashboard.shell.components import component
from datamask.dashboard.shell.garbage import settled
from datamask.dashboard.tradeoff import below_random, lambda_points, live
from datamask.dashboard.tradeoff.lambda_point import LambdaPoint
from datamask.dashboard.tradeoff.lambda_points import Mark
from datamask.dashboard.workspace import along as along_lambda
from datamask.dashboard.workspace import current as currently
from datamask.dashboard.workspace.along import Along
from datamask.dashboard.workspace.current import Current
from datamask.dashboard.workspace.selection import Selection
from datamask.dashboard.workspace.workspace import MIDDLE, Workspace
from datamask.work.worker import worker

EAR = ("parcel", "lasting", "ear")
"""The scripts of what hears the slider's questions."""

LATER = 2.0
"""Seconds from the drawing of a page to the beginning of what it does not need yet."""

EVERY = 1.0
"""Seconds from one drawing to the next while selections are being solved."""

ASKED = 0.3
"""Seconds an answer is waited for before it is seen whether the user wants something else."""

T = TypeVar("T")

PREPARE, HOME, SIGHT = "prepare", "home", "sight"
"""Questions of the browser besides a lambda; the last one is the map's, and tells where it was moved to."""

BEGUN_BY_MOVING = 100_000
"""Up to this many rows letting go of the slider begins what solves for it; above it takes minutes, and a press."""

TURN = "explore_lambda_turn"
"""Of the session: the last question of the browser."""

HEARD = "explore_lambda_heard"
"""Of the session: the number of the last question of the browser that was taken note of."""


@dataclass(frozen=True)
class Beside:
    """What the slider stands beside.

    Attributes:
        current: what the page was drawn with.
        places: where the samples lie on the map. seen: what a filter lets through.
        panel: of the map, the one that shows the selections. between: whether it does so only until the page has
            followed, as it then shows another color, or what follows from the selection.
        tallies: what is counted at each lambda, for what stands around the map.
        sample: the marked row.
        scope: names places and run, so that what was packed of them is found again.
    """

    current: Current
    places: Places
    seen: Seen
    panel: int
    between: bool
    tallies: tuple[Tally, ...]
    sample: int | None
    scope: str

    @property
    def workspace(self) -> Workspace:
        """The corpus and the problem, at the lambda that is chosen now: the page may be older."""
        return replace(self.current.workspace, lamb=views.now().lamb)

    @property
    def corpus(self) -> Corpus:
        """The open corpus."""
        return self.current.workspace.corpus

    @property
    def name(self) -> str:
        """What the run is called on the map; empty without one."""
        run = self.current.workspace.run
        return "" if run is None else cut(listing.name_of(run), 40)


def show(name: str, beside: Beside) -> None:
    """Send a map's slider what stands on it, and answer what it asks.

    Args:
        name: of a map that was drawn with a slider.
    """
    watched = along_lambda.under_way(beside.current.along)
    st.fragment(_follow, run_every=EVERY if watched else None)(name, beside, watched)
    if along_lambda.begins_later(beside.workspace, beside.current.along):
        st.fragment(_begin, run_every=LATER)(beside.workspace, [])


def _begin(workspace: Workspace, drawn: list[bool]) -> None:
    """Begin what answers between the kept points, once the page is drawn: it would take the processor from the browser.

    Args:
        drawn: empty at the drawing of the page, no longer when this is drawn by itself.
    """
    if drawn:
        along_lambda.begin_later(workspace)
        st.rerun()  # for the last time
    drawn.append(True)


def _follow(name: str, beside: Beside, watched: bool) -> None:
    settled()
    with st.container(gap=None):  # nothing of what is in it is seen: it takes no room
        _answer(name, beside, watched)


def _answer(name: str, beside: Beside, watched: bool) -> None:
    component("ear", EAR)(
        key=f"{name}_ear",
        data={"name": name},
        on_asked_change=lambda: _asked(name, beside),
    )
    address.follow("Map")
    workspace = beside.workspace
    along = along_lambda.known(workspace)
    if along_lambda.under_way(along) != watched:
        st.rerun()  # to be drawn again by itself, or no longer
    points, place = list(along.points), st.empty()
    point, waits = currently.at(workspace, along, ASKED)
    while waits and along.answering:
        place.empty()  # another input of the user ends the waiting there
        point, waits = currently.at(workspace, along, ASKED)
    draggable = len(points) > 1 or answers(workspace)
    if points:
        beside = _on_one_scale(name, along.stamp, beside, points)
        carry(name, "lambdas", _packed(f"{name} lambdas", along.stamp, beside, points, along.final))
    apart = [] if point is None or any(point is other for other in points) else [point]
    if point is not None and apart and along.behind is not None:
        settled = along.settled(point.lamb)
        known = f"{along.behind.number} {point.lamb} {point.joint} {point.gap} {settled}"
        carry(name, "released", _packed(f"{name} released", known, beside, apart, settled))
    counted = [*points, *apart]
    if counted and beside.tallies and len(beside.corpus) <= counts.MOST_ROWS:
        carry(name, "counts", _counts(name, along.stamp, beside, counted))
    lamb = None if workspace.lamb is None or not draggable else workspace.lamb if point is None else point.lamb
    selection = currently.selection(workspace, point)
    carry(name, "slider", _state(beside, along, selection, lamb))
    if _shown(selection) != _shown(beside.current.selection):
        st.rerun()  # all of the page shows the current selection


def _shown(selection: Selection | None) -> tuple[object, ...]:
    """What tells one drawing of the page from another."""
    if selection is None:
        return ()
    return selection.key, selection.lamb, selection.name


def chosen(name: str) -> float | None:
    """The lambda that was chosen last beside a map, or None.

    Where letting go of the slider and the press of a button reach a busy server together, Streamlit calls the button
    first: what is not taken note of yet counts here too.
    """
    lamb = views.now().lamb
    for question in _unheard(name):
        lamb = _lambda_after(question.get("wants"), lamb)
    return lamb


def _unheard(name: str) -> list[dict[str, Any]]:
    """The questions of the browser that are not taken note of yet, first to last."""
    ear = st.session_state.get(f"{name}_ear")
    asked = None if ear is None else ear.get("asked")
    if not isinstance(asked, list):
        return []
    questions = [question for question in asked if isinstance(question, dict)]
    questions = [question for question in questions if isinstance(question.get("number"), int)]
    if HEARD not in st.session_state:
        return questions[-1:]  # those before it went to a session that has ended
    return [question for question in questions if question["number"] > st.session_state[HEARD]]


def _lambda_after(wants: object, lamb: float | None) -> float | None:
    """Which lambda is chosen once the browser has asked for something."""
    if wants == HOME:
        return None
    if isinstance(wants, int | float) and not isinstance(wants, bool) and 0 <= wants <= 1:
        return round(float(wants), 2)
    return lamb


def _asked(name: str, beside: Beside) -> None:
    """Note what the browser asks, before the fragment is drawn."""
    for question in _unheard(name):
        st.session_state[HEARD] = question["number"]
        wants, turn = question.get("wants"), question.get("turn")
        if isinstance(turn, int):
            st.session_state[TURN] = turn
        if wants == PREPARE:
            live.session(beside.corpus, beside.workspace.settings, session.store().cache_dir)
        elif wants == SIGHT:
            take_sight(name, beside.corpus.fingerprint, question.get("sight"))
        else:
            views.change(lamb=_lambda_after(wants, views.now().lamb))
            if _lambda_after(wants, None) is not None and answers(beside.workspace):
                live.session(beside.corpus, beside.workspace.settings, session.store().cache_dir)


def answers(workspace: Workspace) -> bool:
    """Whether the slider answers wherever it is let go, though nothing is solved yet."""
    small = len(workspace.corpus) <= BEGUN_BY_MOVING
    return small and not workspace.refusal and live.quick(workspace.settings)


def _on_one_scale(name: str, known: str, beside: Beside, points: Sequence[LambdaPoint]) -> Beside:
    """The same with the colours' scale of all points, so that one made on release is drawn as those dragged over are.

    Args:
        known: names the points, among all beside the same run.
    """
    if beside.seen.ends:
        return beside
    ends = _kept(f"{name} ends", (known, beside.scope), lambda: lambda_points.scale_of(points, beside.places))
    return replace(beside, seen=replace(beside.seen, ends=ends))


def _packed(place: str, known: str, beside: Beside, points: list[LambdaPoint], final: bool) -> bytes:
    """A parcel of points, kept in the session for as long as nothing in it changes.

    Args:
        place: where it is kept. known: names the points, among all beside the same run.
    """
    dark, seen = session.dark(), beside.seen
    # the key of cells is a scale: what was drawn on the map counts nothing in it
    counted = None if beside.places.cells is not None else seen.counted
    scale = tuple((kind.__name__, ends) for kind, ends in seen.ends.items())
    key = (known, beside.scope, dark, _digest(seen.shown), _digest(counted), scale)

    def parcel() -> bytes:
        run = beside.current.workspace.run
        shown = None if run is None else (beside.name, scene.run_columns(run).selected)
        return lambda_points.points_parcel(points, beside.places, dark=dark, seen=seen, shown=shown, final=final)

    return _kept(place, key, parcel)


def _counts(name: str, known: str, beside: Beside, points: Sequence[LambdaPoint]) -> bytes:
    """The counts at some points, kept in the session for as long as nothing in them changes.

    Args:
        known: names the points of the problem, among all beside the same run.
    """
    last = points[-1]
    key = (known, beside.scope, len(points), last.lamb, last.joint, [tally.key for tally in beside.tallies])
    return _kept(f"{name} counts", key, lambda: counts.counts_parcel(points, beside.tallies))


def _kept(place: str, key: object, make: Callable[[], T]) -> T:
    """What is kept in the session at a place under this key; made, and kept in place of the last, where it is not."""
    kept: tuple[object, T] | None = st.session_state.get(place)
    if kept is None or kept[0] != key:
        kept = st.session_state[place] = (key, make())
    return kept[1]


def _digest(mask: np.ndarray | None) -> str:
    return "" if mask is None else hashlib.blake2b(np.packbits(mask).tobytes(), digest_size=8).hexdigest()


def _state(beside: Beside, along: Along, selection: Selection | None, lamb: float | None) -> bytes:
    """What stands on the slider besides its points.

    Args:
        selection: the current one. lamb: where the slider stands; None: nobody has moved it.
    """
    workspace, own = beside.workspace, along.own
    sentence, press, label = _progress(beside, along)
    if not sentence and lamb is not None and lamb != workspace.lamb:
        sentence = f"λ {workspace.lamb:g} is not solved: {workspace.settings.objective} needs a run for each λ"
    home = own.lamb if own is not None else MIDDLE
    drawn = beside.current.selection
    header: dict[str, Any] = {
        "kind": "slider",
        "panel": beside.panel,
        "between": beside.between,
        "dark": session.dark(),
        "at": home if lamb is None else lamb,
        "touched": lamb is not None,
        "answers": answers(workspace),
        "turn": st.session_state.get(TURN, 0),
        "home": home,
        "back": f"As in {beside.name}" if workspace.run is not None else "Back to the middle",
        "run": beside.name,
        # what the page around the map shows: the rest of it is dimmed while the map draws another selection
        "drawn": None if drawn is None or drawn.quality is None else drawn.lamb,
        "words": sentence,
        "press": press,
        "label": label,
        "marks": [asdict(mark) for mark in _marks(beside, along)],
    }
    return pack(header)


def _progress(beside: Beside, along: Along) -> tuple[str, str, str]:
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


def _marks(beside: Beside, along: Along) -> list[Mark]:
    """Return what stands next to the solved points: the run, below random, the marked row and its flip."""
    run = beside.workspace.run
    marks = [] if along.own is None else [Mark("run", along.own.lamb, along.own.lamb, "")]
    marks += below_random.marks(along.points)
    if beside.sample is not None:
        job = None if run is None else worker().find(explanations.flip_key(run, beside.sample))
        flip = job.result.lamb if job is not None and job.state == "done" else None
        name = cut(beside.corpus.ids[beside.sample].as_py(), 24)
        marks += lambda_points.sample_marks(name, along.points, beside.sample, flip)
    return marks
