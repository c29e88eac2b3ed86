"""The selections behind the map's lambda slider, and how they travel: solved once, a bit or a byte per mark. No torch.

The browser shows any of them at once, without a request: a parcel holds what the map draws of each, packed as one bit
per drawn sample, or a byte and a count per hexagon, and what the answer bar says of it.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from datamask import catalogue
from datamask.config import SelectionConfig
from datamask.config.selection import PROBLEM, RULES
from datamask.corpus import Corpus
from datamask.dashboard.map.ends import Ends, common_ends
from datamask.dashboard.map.layers import Selection
from datamask.dashboard.map.marks import EVERYTHING, Seen, marks_of
from datamask.dashboard.map.parcels import look_of, pack, shapes_of
from datamask.dashboard.map.places import Places, cut
from datamask.dashboard.tradeoff import answers, lambda_point, live
from datamask.dashboard.tradeoff.answers import Units
from datamask.dashboard.tradeoff.lambda_point import LambdaPoint
from datamask.runs.rule_book import FOLDER

if TYPE_CHECKING:
    from datamask.evaluation.lambda_path import Answer

POSED_BY = (*PROBLEM, *RULES)
"""Settings that say which selections there are; the others say how one of them is searched for."""

GRID_SIZE = 22
"""Lambdas that are solved beforehand."""

REFINED_WITHIN = 1.0
"""Seconds that solving for a lambda may take where the slider is let go; above, it is answered between solved ones."""

AT_ONCE = 3.0
"""Seconds of preparation that nobody has to ask for."""

NEEDED = 45.0
"""The same where a page has no selection to show otherwise. The first lambda is solved after about a tenth of them, and
runs go before the rest."""


def settings_of(selection: SelectionConfig | None) -> SelectionConfig:
    """The problem that the slider solves beside a selection: the same but for how it is searched for.

    Args:
        selection: of the shown run; None: the defaults.
    """
    if selection is None:
        return SelectionConfig.from_options()
    kept = {name: getattr(selection, name) for name in (*POSED_BY, *(("seed",) if selection.prune else ()))}
    if kept["budget"] is not None:
        kept.pop("select_ratio")
    return SelectionConfig.from_options(**{name: value for name, value in kept.items() if value not in (None, ())})


def expected_seconds(corpus: Corpus, settings: SelectionConfig) -> float | None:
    """What preparing the slider will take; None where that is not known beforehand."""
    terms = settings.terms
    rates = catalogue.objective(terms[0][0]).live_seconds if len(terms) == 1 else None
    if rates is None:
        return None
    free, rules, tokens = rates
    return (tokens if settings.budget is not None else rules if settings.ruled else free) * corpus.features.size


def refined(corpus: Corpus, settings: SelectionConfig) -> bool:
    """Whether a lambda where the slider is let go is solved for itself, as one of the grid is."""
    seconds = expected_seconds(corpus, settings)
    return seconds is not None and seconds / GRID_SIZE <= REFINED_WITHIN


def selected_at(behind: live.Session, lamb: float, seconds: float) -> Answer | None:
    """What a session selects where the slider is let go; None where it is not there within so many seconds."""
    return (behind.refined if refined(behind.corpus, behind.config) else behind.answer)(lamb, seconds)


def prepared_unasked(corpus: Corpus, settings: SelectionConfig, needed: bool = False) -> bool:
    """Whether the selections along lambda are prepared without a press of a button.

    Looking at runs loads no torch, so nothing is prepared before torch is loaded, unless it is needed.

    Args:
        needed: whether the page has nothing to show otherwise: there is no run, or lambda was moved.
    """
    seconds = expected_seconds(corpus, settings)
    if needed:
        return seconds is not None and seconds <= NEEDED
    return "torch" in sys.modules and prepared_at_once(corpus, settings)


def prepared_at_once(corpus: Corpus, settings: SelectionConfig) -> bool:
    """Whether the selections along lambda are prepared in moments."""
    seconds = expected_seconds(corpus, settings)
    return seconds is not None and seconds <= AT_ONCE


def refusal(settings: SelectionConfig) -> str:
    """Why these settings cannot follow a slider, in a sentence; empty where they can."""
    if settings.objective not in catalogue.LIVE:
        return f"λ can be dragged for {', '.join(catalogue.LIVE)}, one at a time. For {settings.objective}, start a run"
    if settings.scale != "calibrated":
        return f"λ cannot be dragged on the {settings.scale} scale, where it has another meaning"
    return ""


WHOLE = (
    "λ cannot be dragged for a run on all rows, because only a sample of them is open. Show a run on the sample, "
    "or none, to drag λ"
)
"""Why there is nothing to drag beside a run on mapped arrays."""


def solved_by(behind: live.Session | None) -> list[LambdaPoint]:
    """What a session has solved so far, by rising lambda; empty where there is none, or it has ended early."""
    solved = behind.solved[1] if behind is not None and behind.alive else ()
    return [lambda_point.of_solved(point) for point in solved]


def posed_alike(settings: SelectionConfig, other: SelectionConfig) -> bool:
    """Whether a stored run with `other` is a solution of the slider's problem, as the slider itself would solve it.

    Args:
        settings: the slider's, of `settings_of`. Of rules by files of ids only those are alike that lie among the kept
            ones, which never change.
    """
    if other.scratch_dir is not None:  # of all rows, where settings ask of the open ones
        return False
    plain = (settings.objective, settings.estimator, settings.select_ratio, settings.budget)
    if (other.objective, other.estimator, other.select_ratio, other.budget) != plain:
        return False
    lists = [path for path in (other.pin, other.ban, other.given) if path is not None]
    return all(Path(path).parent.name == FOLDER for path in lists) and settings_of(other) == settings


def with_stored(points: Sequence[LambdaPoint], stored: Sequence[LambdaPoint]) -> list[LambdaPoint]:
    """Solved points and those of stored runs by rising lambda, of each lambda one.

    One lambda has one answer: what the shown run reports is not contradicted beside it, so it counts before what was
    solved there. That counts before other runs, as it is what the live slider of the Runs page says too; of these, the
    best counts.
    """
    others = sorted((point for point in stored if not point.run), key=lambda point: point.joint)
    shown = [point for point in stored if point.run]
    answers = {point.lamb: point for point in (*others, *points, *shown)}
    return sorted(answers.values(), key=lambda point: point.lamb)


def points_parcel(
    corpus: Corpus,
    units: Units,
    points: Sequence[LambdaPoint],
    places: Places,
    *,
    dark: bool = False,
    seen: Seen = EVERYTHING,
    final: bool = True,
) -> bytes:
    """What the map shows of each point and of the baselines: words, key, and bits of drawn samples or bytes of cells.

    Args:
        points: at least one. places: where their rows lie.
        dark: whether the page is dark. seen: what a filter lets through.
        final: whether all is solved and proved that will be.
    """
    baselines = answers.baselines(corpus, units)
    layers = [Selection(f"Selected at λ {point.lamb:g}", point.mask) for point in points]
    layers += [Selection(said["name"], mask) for mask, said in baselines]
    if not seen.ends:
        # one scale for all of them: a cell that changes its colour has changed its share
        seen = replace(seen, ends=common_ends(layers, places.cells))
    looks = [marks_of(layer, places, dark, seen) for layer in layers]
    said = [answer_at(corpus, units, point, final) for point in points] + [said for _, said in baselines]
    entries = [{**each, **look_of(look)} for each, look in zip(said, looks, strict=True)]
    header = {"points": entries[: len(points)], "baselines": entries[len(points) :], **shapes_of(looks[0])}
    if places.cells is None:
        bits = np.packbits(np.array([look.codes for look in looks], bool), axis=1)
        return pack({**header, "marks": len(places.drawn)}, bits=bits, colors=looks[0].colors)
    codes = np.array([look.codes for look in looks])
    # a blank cell has no value; a selection's cells always have one
    values = np.array([look.values for look in looks], np.float32)
    return pack({**header, "marks": codes.shape[1]}, codes=codes, values=values, colors=looks[0].colors)


def drawn_at(points: Sequence[LambdaPoint], lamb: float) -> LambdaPoint:
    """The point that the browser draws at a lambda: the nearest one; of several as near the last.

    Args:
        points: at least one, in the order in which they are sent.
    """
    nearest = points[0]
    for point in points:
        if abs(point.lamb - lamb) <= abs(nearest.lamb - lamb) + 1e-9:
            nearest = point
    return nearest


def scale_of(points: Sequence[LambdaPoint], places: Places) -> Mapping[type, Ends]:
    """The colours' scale for all of these points: what is made between them later is drawn on it too.

    Returns:
        For `Seen.ends`; empty where single samples are drawn, whose colours have no scale.
    """
    if places.cells is None:
        return {}
    return common_ends([Selection("", point.mask) for point in points], places.cells)


def stretches(points: Sequence[LambdaPoint], row: int) -> list[tuple[float, float]]:
    """From which to which solved lambda a row is selected, stretch by stretch."""
    selected: list[tuple[float, float]] = []
    before = False
    for point in points:
        inside = point.holds(row)
        if inside:
            selected.append((selected.pop()[0] if before else point.lamb, point.lamb))
        before = inside
    return selected


def answer_at(corpus: Corpus, units: Units, point: LambdaPoint, final: bool = True) -> dict[str, Any]:
    """Return what the answer bar says of a point while λ is dragged over it.

    Args:
        final: whether all is solved and proved that will be.
    """
    said = answers.answer(
        corpus,
        units,
        point.mask,
        f"λ {point.lamb:g}",
        quality=point.quality,
        diversity=point.diversity,
        exact=point.exact,
        gap=point.gap,
        final=final or point.run or bool(point.stored),
        note=_note(point),
    )
    return {"lamb": point.lamb, "run": point.run, **said}


def _note(point: LambdaPoint) -> str:
    if point.stored:
        return f"stored: {cut(point.stored, 40)}"
    if point.solved_at is not None:
        return f"best known here: solved at λ {point.solved_at:g}"
    return "preview between solved λ" if point.quick else ""


@dataclass(frozen=True)
class Mark:
    """What stands on the slider besides solved points.

    Attributes:
        kind: flip, sample or run.
        low, high: lambdas from which to which it reaches, equal where it is one.
        words: what it is.
    """

    kind: str
    low: float
    high: float
    words: str


def sample_marks(name: str, points: Sequence[LambdaPoint], row: int, flips_at: float | None) -> list[Mark]:
    """Where the marked sample is selected, by the points, and the lambda of its flip where that is known.

    Args:
        name: of the sample. points: by rising lambda; fewer than two tell nothing.
    """
    marks = [] if flips_at is None else [Mark("flip", flips_at, flips_at, f"{name} flips at λ {flips_at:.3f}")]
    if len(points) < 2:
        return marks
    kept = stretches(points, row)
    for low, high in kept:
        everywhere = (low, high) == (points[0].lamb, points[-1].lamb)
        reach = "at every λ solved" if everywhere else f"at λ {low:g}" if low == high else f"from λ {low:g} to {high:g}"
        marks.append(Mark("sample", low, high, f"{name} is selected {reach}"))
    return marks
