"""The lambda slider on the map: solved selections sent once, and the exact one where the slider is let go.

    regions = canvas_map(MAP, ..., slider=True)
    lambda_slider.show(MAP, Beside(opened, run, selected, places, seen, panel, others, sample, scope))

What is dragged never comes here: the browser shows the nearest solved selection by itself. Letting go comes as one
question, which the fragment below answers, so that the page around it stands still; the button that downloads the
selection on the map is in it too. The parts that still show the run are dimmed meanwhile: `slider.js` marks the page.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from datamask.config import SelectionConfig
from datamask.corpus import Corpus
from datamask.dashboard.analyses.explanation import explanations
from datamask.dashboard.analyses.frontier import tables as frontier
from datamask.dashboard.analyses.lambda_slider import drawn_panel, lambda_points, live
from datamask.dashboard.analyses.lambda_slider.lambda_points import LambdaPoint, Mark
from datamask.dashboard.data import sample_work
from datamask.dashboard.data.openings import OpenCorpus
from datamask.dashboard.drawing import words
from datamask.dashboard.frame import address
from datamask.dashboard.map.canvas_map import carry, take_sight
from datamask.dashboard.map.marks import Seen
from datamask.dashboard.map.parcels import pack
from datamask.dashboard.map.places import Places, cut
from datamask.dashboard.runs import listing
from datamask.dashboard.shell import session
from datamask.dashboard.shell.components import component
from datamask.dashboard.shell.garbage import settled
from datamask.errors import DatamaskError
from datamask.runs import lambda_answers
from datamask.runs.store import Run
from datamask.work.worker import worker

EAR = ("parcel", "lasting", "ear")
"""The scripts of what hears the slider's questions."""

MIDDLE = 0.5
"""Where the slider stands until somebody moves it, beside no run: nothing but a person chooses lambda."""

EVERY = 1.0
"""Seconds from one drawing to the next while selections are being solved."""

ASKED = 0.3
"""Seconds an answer is waited for before it is seen whether the user wants something else."""

PREPARE, STOP, HOME, SIGHT = "prepare", "stop", "home", "sight"
"""Questions of the browser besides a lambda; the last one is the map's, and tells where it was moved to."""

AT, TURN, OF = "explore_lambda", "explore_lambda_turn", "explore_lambda_of"
"""Of the session: the lambda that was chosen, or None; the last question of the browser; the selection that it was
chosen beside."""

HEARD = "explore_lambda_heard"
"""Of the session: the number of the last question of the browser that was taken note of."""

ANSWER, BEGUN = "explore_lambda_answer", "explore_lambda_begun"
"""Of the session: what was selected last where the slider was let go; the problems that were prepared unasked."""


@dataclass(frozen=True)
class Beside:
    """What the slider stands beside.

    Attributes:
        opened: the corpus. run: the shown one; None: there is none. selected: bool ``(N,)`` of it.
        runs: the finished ones on this corpus, the shown one among them.
        places: where the samples lie on the map. seen: what a filter lets through.
        panel: of the map, the one that shows the selections. others: those that go on showing the run.
        sample: the marked row.
        scope: names places and run, so that what was packed of them is found again.
    """

    opened: OpenCorpus
    run: Run | None
    selected: np.ndarray | None
    places: Places
    seen: Seen
    panel: int
    others: tuple[int, ...]
    sample: int | None
    scope: str
    runs: Sequence[Run] = ()

    @property
    def corpus(self) -> Corpus:
        """The open corpus."""
        return self.opened.corpus

    @property
    def settings(self) -> SelectionConfig:
        """The problem of the slider."""
        if self.run is not None:
            return lambda_points.settings_of(self.run.config.selection)
        settings = lambda_points.settings_of(None)
        # as the sweeps of the sample do: half of it are copies
        return replace(settings, collapse="exact") if self.opened.sample else settings

    @property
    def whole(self) -> bool:
        """Whether the shown run selects from all rows of a corpus of which a sample is open."""
        return self.run is not None and self.run.whole is not None

    @property
    def name(self) -> str:
        """What the run is called on the map; empty without one."""
        return "" if self.run is None else cut(listing.name_of(self.run), 40)


def show(name: str, beside: Beside) -> None:
    """Send a map's slider what stands on it, and answer what it asks.

    Args:
        name: of a map that was drawn with a slider.
    """
    chosen_beside = (beside.corpus.fingerprint, None if beside.run is None else beside.run.id)
    if st.session_state.setdefault(OF, chosen_beside) != chosen_beside:
        st.session_state[OF], st.session_state[AT] = chosen_beside, None
    settings = beside.settings
    refusal = lambda_points.WHOLE if beside.whole else lambda_points.refusal(settings)
    behind = None if refusal else live.find(beside.corpus, settings)
    begun = st.session_state.setdefault(BEGUN, set())
    problem = live.key_of(beside.corpus, settings)
    if not refusal and behind is None and problem not in begun:
        # once: few sessions are held, and one that made room must not take another's again and again
        if lambda_points.prepared_unasked(beside.corpus, settings):
            behind = live.unasked(beside.corpus, settings, session.store().cache_dir)
        elif (
            beside.opened.sample
            and settings == sample_work.slider_settings()
            and sample_work.is_done(session.runs_dir())
        ):
            # in the process before this one it was ready too
            behind = sample_work.prepare_slider(beside.corpus, session.store().cache_dir)
        if behind is not None:
            begun.add(problem)
    watched = _watched(behind)
    stored = [] if refusal else _stored(beside, settings)
    st.fragment(_follow, run_every=EVERY if watched else None)(name, beside, settings, refusal, watched, stored)


def _watched(behind: live.Session | None) -> bool:
    return behind is not None and behind.alive and not behind.job.ended


def _follow(
    name: str, beside: Beside, settings: SelectionConfig, refusal: str, watched: bool, stored: list[LambdaPoint]
) -> None:
    settled()
    with st.container(gap=None):  # of what is in it the download alone is seen: the rest takes no room
        _answer(name, beside, settings, refusal, watched, stored, st.empty())


def _answer(
    name: str,
    beside: Beside,
    settings: SelectionConfig,
    refusal: str,
    watched: bool,
    stored: list[LambdaPoint],
    download: DeltaGenerator,
) -> None:
    component("ear", EAR)(
        key=f"{name}_ear",
        data={"name": name},
        on_asked_change=lambda: _asked(name, beside, settings),
    )
    address.follow("Map")
    behind = None if refusal else live.find(beside.corpus, settings)
    if _watched(behind) != watched:
        st.rerun()  # to be drawn again by itself, or no longer
    own = _own(beside)
    stamp, solved = (0, ()) if behind is None or not behind.alive else behind.solved
    final = behind is not None and behind.ready
    reported = stored if own is None else [*stored, own]
    points = lambda_points.with_stored([lambda_points.of_solved(point) for point in solved], reported)
    lamb = st.session_state.get(AT)
    released = None
    if behind is not None and behind.alive and not behind.preparing and lamb is not None and len(points) > 1:
        lamb, released = _at(behind, points, lamb)
    if len(points) < 2:
        lamb = None  # nothing to choose from yet
    if points:
        lasting = [(point.lamb, point.joint) for point in reported]
        known = f"{'' if behind is None else behind.number} {stamp} {final} {lasting}"
        beside = _on_one_scale(name, known, beside, points)
        carry(name, "lambdas", _packed(f"{name} lambdas", known, beside, points, final))
    if behind is not None and released is not None:
        _send(name, "released", behind, beside, released, final)
    carry(name, "slider", _state(beside, settings, refusal, behind, points, own, lamb))
    made = [] if released is None else [released]
    if lamb is not None:
        drawn_panel.offer(download, beside.corpus, settings, lambda_points.drawn_at([*points, *made], lamb))
    if behind is None or released is None or st.session_state[ANSWER].refined:
        return
    if lambda_points.refined(beside.corpus, settings):
        # shown already; this is what a run finds there, a moment later
        point = _made(behind, released.lamb, refined=True)
        if point is not None:
            _send(name, "refined", behind, beside, point, final)
            drawn_panel.offer(download, beside.corpus, settings, point, "map_drawn_refined")


def _send(name: str, part: str, behind: live.Session, beside: Beside, point: LambdaPoint, final: bool) -> None:
    known = f"{behind.number} {point.lamb} {point.joint} {point.gap}"
    carry(name, part, _packed(f"{name} {part}", known, beside, [point], final))


def chosen(name: str) -> float | None:
    """The lambda that was chosen last beside a map, or None.

    Where letting go of the slider and the press of a button reach a busy server together, Streamlit calls the button
    first: what is not taken note of yet counts here too.
    """
    lamb = st.session_state.get(AT)
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


def _asked(name: str, beside: Beside, settings: SelectionConfig) -> None:
    """Note what the browser asks, before the fragment is drawn."""
    for question in _unheard(name):
        st.session_state[HEARD] = question["number"]
        wants, turn = question.get("wants"), question.get("turn")
        if isinstance(turn, int):
            st.session_state[TURN] = turn
        if wants == PREPARE:
            live.session(beside.corpus, settings, session.store().cache_dir)
        elif wants == STOP and (behind := live.find(beside.corpus, settings)) is not None:
            behind.stop()
        elif wants == SIGHT:
            take_sight(name, beside.corpus.fingerprint, question.get("sight"))
        else:
            st.session_state[AT] = _lambda_after(wants, st.session_state.get(AT))


def _own(beside: Beside) -> LambdaPoint | None:
    """The shown run as a point; None where it has no lambda, or no values on the slider's scale."""
    if beside.run is None or beside.selected is None:
        return None
    return _of_run(beside.run, beside.corpus.fingerprint, beside.selected, shown=True)


def _of_run(run: Run, fingerprint: str, selected: np.ndarray, *, shown: bool) -> LambdaPoint | None:
    spot = frontier.spot_of(run, fingerprint)
    if spot is None or not spot.priced:
        return None
    estimated = bool((run.status().summary or {}).get("estimate"))
    return lambda_points.of_run(spot, selected, exact=not estimated, shown=shown)


def _stored(beside: Beside, settings: SelectionConfig) -> list[LambdaPoint]:
    """What stored runs found for the slider's problem at their lambdas, on one scale, the shown one's left out."""
    fingerprint = beside.corpus.fingerprint
    spot = None if beside.run is None else frontier.spot_of(beside.run, fingerprint)
    scale = None if spot is None else spot.scale
    points = []
    for run in beside.runs:
        try:
            if run is beside.run or run.whole is not None:
                continue
            if not lambda_points.posed_alike(settings, run.config.selection):
                continue
            spot = frontier.spot_of(run, fingerprint)
            if spot is None or spot.scale != (scale := scale or spot.scale):
                continue
            # the record of a run is written last
            changed = (run.path / "status.json").stat().st_mtime_ns
            point = _stored_point(run.id, changed, fingerprint, run)
        except (DatamaskError, OSError):  # discarded since it was listed
            continue
        if point is not None and point.rows == len(beside.corpus):
            points.append(point)
    return points


@st.cache_resource(max_entries=128, show_spinner=False)
def _stored_point(run_id: str, changed: int, fingerprint: str, _run: Run) -> LambdaPoint | None:
    try:
        selected = _run.rows(["selected"])["selected"].to_numpy(zero_copy_only=False).astype(bool)
    except DatamaskError:  # a damaged run is listed elsewhere, with its reason
        return None
    return _of_run(_run, fingerprint, selected, shown=False)


def _at(behind: live.Session, points: list[LambdaPoint], lamb: float) -> tuple[float, LambdaPoint | None]:
    """What stands at a chosen lambda: a point that is there already, or the selection made for it at once."""
    near = min(points, key=lambda point: abs(point.lamb - lamb))
    if abs(near.lamb - lamb) < 1e-9:
        return lamb, None
    if not behind.quick:
        return near.lamb, None
    kept = st.session_state.get(ANSWER)
    if kept is not None and kept.asked == (behind.number, lamb, behind.ready):
        return lamb, kept.point
    point = _made(behind, lamb, refined=False)
    return (near.lamb if point is None else lamb), point


@dataclass(frozen=True)
class _Kept:
    """The last answer where the slider was let go: asking again would take the solver from what it is solving.

    Attributes:
        asked: session, lambda, and whether all was solved and proved by then.
        refined: whether it was solved for its lambda.
    """

    asked: tuple[int, float, bool]
    point: LambdaPoint
    refined: bool


def _made(behind: live.Session, lamb: float, *, refined: bool) -> LambdaPoint | None:
    """An answer as a point, kept in the session; None where the solver ended."""
    ask, ready, place = behind.refined if refined else behind.answer, behind.ready, st.empty()
    while (answer := ask(lamb, ASKED)) is None and behind.alive:
        place.empty()  # another input of the user ends the waiting there
    if answer is None:
        return None
    point = lambda_points.of_answer(answer)
    st.session_state[ANSWER] = _Kept((behind.number, lamb, ready), point, refined)
    return point


def _on_one_scale(name: str, known: str, beside: Beside, points: list[LambdaPoint]) -> Beside:
    """The same with the colours' scale of all points, so that one made on release is drawn as those dragged over are.

    Args:
        known: names the points, among all beside the same run.
    """
    if beside.seen.ends:
        return beside
    key, kept = (known, beside.scope), st.session_state.get(f"{name} ends")
    if kept is None or kept[0] != key:
        kept = st.session_state[f"{name} ends"] = (key, lambda_points.scale_of(points, beside.places))
    return replace(beside, seen=replace(beside.seen, ends=kept[1]))


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
    kept = st.session_state.get(place)
    if kept is None or kept[0] != key:
        shown = None if beside.selected is None else (beside.name, beside.selected)
        parcel = lambda_points.points_parcel(points, beside.places, dark=dark, seen=seen, shown=shown, final=final)
        kept = st.session_state[place] = (key, parcel)
    return kept[1]


def _digest(mask: np.ndarray | None) -> str:
    return "" if mask is None else hashlib.blake2b(np.packbits(mask).tobytes(), digest_size=8).hexdigest()


def _state(
    beside: Beside,
    settings: SelectionConfig,
    refusal: str,
    behind: live.Session | None,
    points: list[LambdaPoint],
    own: LambdaPoint | None,
    lamb: float | None,
) -> bytes:
    """What stands on the slider besides its points."""
    sentence, press, label = _progress(beside, settings, refusal, behind, len(points) > 1)
    if not sentence and lamb is not None and lamb != st.session_state.get(AT):
        sentence = f"λ {st.session_state[AT]:g} is not solved: {settings.objective} is learned anew at each λ"
    home = own.lamb if own is not None else MIDDLE
    header: dict[str, Any] = {
        "kind": "slider",
        "panel": beside.panel,
        "others": list(beside.others),
        "dark": session.dark(),
        "at": home if lamb is None else lamb,
        "touched": lamb is not None,
        "turn": st.session_state.get(TURN, 0),
        "home": home,
        "back": f"As in {beside.name}" if beside.run is not None else "As coloured before",
        "run": beside.name,
        "words": sentence,
        "press": press,
        "label": label,
        "marks": [asdict(mark) for mark in _marks(beside, settings, points, own)],
    }
    return pack(header)


def _progress(
    beside: Beside, settings: SelectionConfig, refusal: str, behind: live.Session | None, draggable: bool
) -> tuple[str, str, str]:
    """What is being done or could be, the question that the button asks, and the button's label.

    Args:
        draggable: whether there are selections to drag over already.
    """
    if refusal:
        return refusal, "", ""
    if behind is None or not behind.alive:
        if behind is not None and behind.error:
            return cut(words.unmarked(behind.error), 200), PREPARE, "Prepare λ again"
        seconds = lambda_points.expected_seconds(beside.corpus, settings)
        takes = "takes a while" if seconds is None else f"about {words.roughly(seconds)}"
        if draggable:
            return (
                f"Runs that are stored; the λ between them are solved in the background, {takes}",
                PREPARE,
                "Prepare λ",
            )
        return f"To drag λ, its selections are solved first, {takes}, in the background", PREPARE, "Prepare λ"
    if behind.job.ended:
        return "", "", ""
    left = words.soon(behind.job.left)
    done = ", ".join(filter(None, (cut(behind.job.message, 80), words.percent(behind.job.share), left)))
    return done, STOP, "Stop"


def _marks(beside: Beside, settings: SelectionConfig, points: list[LambdaPoint], own: LambdaPoint | None) -> list[Mark]:
    """What others say of lambda: the run, the marked sample, and the searches for one."""
    marks = [] if own is None else [Mark("run", own.lamb, own.lamb, "")]
    answers = lambda_answers.answers(session.store().cache_dir, beside.corpus.fingerprint)
    ratio = None if settings.budget is not None else settings.select_ratio
    marks += lambda_points.judges(answers, settings.objective, ratio)
    if beside.sample is not None:
        job = None if beside.run is None else worker().find(explanations.flip_key(beside.run, beside.sample))
        flip = job.result.lamb if job is not None and job.state == "done" else None
        name = cut(beside.corpus.ids[beside.sample].as_py(), 24)
        marks += lambda_points.sample_marks(name, points, beside.sample, flip)
    return marks
