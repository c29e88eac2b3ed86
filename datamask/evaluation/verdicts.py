"""Who is best on a measure: nobody on what they optimised, nobody by less than chance could do."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Set

from datamask import catalogue
from datamask.config import SelectionConfig
from datamask.errors import OptionError
from datamask.evaluation.measures import PANEL
from datamask.evaluation.measures.reading import Measured, difference
from datamask.evaluation.references import TOP_QUALITY
from datamask.options.duplicates import column_of

BEST, TIED, HATCHED = "best", "tied", "hatched"


def optimised_by(config: SelectionConfig) -> frozenset[str]:
    """The measures that a selection with these settings was made by, so that it may not be called best on them."""
    quality = {"quality"} if config.lamb > 0 else set()
    terms = {name for name, weight in config.terms if weight > 0 and config.lamb < 1}
    # the estimators that follow something else than the objective they are given
    own = {
        "random": set(),
        catalogue.IMPORTED.name: set(),
        "top-quality": {"quality"},
        "soft-quality": {"quality"},
        "semdedup": {"quality", "near_copies"},
        "cluster-balanced": {"clusters"} | ({"quality"} if config.inside == "best" else set()),
    }
    followed = set(own.get(catalogue.estimator(config.estimator).name, quality | terms))
    if config.prune > 0:
        followed.add("quality")
    if config.collapse != "none":
        # the best of each family is kept
        followed |= {"quality"} if column_of(config.collapse) is not None else {"near_copies", "quality"}
    return frozenset(followed)


def optimised_sets(
    optimised: Mapping[str, Collection[str]] | None, names: Collection[str]
) -> dict[str, frozenset[str]]:
    """What each of `names` optimised, checked, top-quality included.

    Raises:
        OptionError: an unknown selection or measure, which would silently let a selection win on its own ground.
    """
    measure_names = {entry.name for entry in PANEL}
    measures_of = {
        name: [_canonical(measure) for measure in measures]
        for name, measures in {TOP_QUALITY: ("quality",), **(optimised or {})}.items()
    }
    for name, measures in measures_of.items():
        if name not in names and name != TOP_QUALITY:
            raise OptionError(f"optimised names the selection {name!r}; there are {', '.join(names)}")
        for measure in measures:
            if measure.split(":")[0] not in measure_names:
                raise OptionError(
                    f"optimised[{name!r}] names the measure {measure!r}; there are {', '.join(sorted(measure_names))}"
                )
    return {name: frozenset(measures_of.get(name, ())) for name in names}


def _canonical(measure: str) -> str:
    names = {alias: entry.name for entry in catalogue.OBJECTIVES for alias in entry.aliases}
    return names.get(measure.lower(), measure)


def verdicts(measured: Measured, optimised: Mapping[str, Set[str]]) -> dict[str, str]:
    """``best``, ``tied`` (cannot be told apart from the best), ``hatched`` (made by this measure) or empty, by name.

    Best is whose paired difference to every other competitor has an interval off 0; a measure that is neither higher
    nor lower better, or a selection without an interval, has no best.
    """
    names = {measured.name, *measured.circular}
    verdict_of = {name: HATCHED if optimised.get(name, frozenset()) & names else "" for name in measured.readings}
    running = {
        name: reading
        for name, reading in measured.readings.items()
        if not verdict_of[name] and reading.interval is not None
    }
    if measured.better == "neither" or len(running) < 2:
        return verdict_of
    sign = 1.0 if measured.better == "higher" else -1.0
    values = {name: reading.value for name, reading in running.items() if reading.value is not None}
    leader = max(values, key=lambda name: sign * values[name])
    level = [leader]
    for name, reading in running.items():
        if name != leader:
            paired = difference(running[leader], reading)
            if paired is not None and (paired[1] <= 0.0 <= paired[2] or paired[0] == 0.0):
                level.append(name)
    for name in level:
        verdict_of[name] = BEST if len(level) == 1 else TIED
    return verdict_of
