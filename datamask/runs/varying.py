"""What a sweep varies: ``lamb=0:1:11``, ``seed=0,1,2`` and the like, and the points that they span. Loads no torch."""

from __future__ import annotations

import hashlib
import itertools
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from datamask import catalogue
from datamask.config import CorpusConfig, RunConfig, SelectionConfig
from datamask.errors import OptionError
from datamask.options import OPTIONS, Number, Whole

MOST_POINTS = 10_000

Value = float | int | str


@dataclass(frozen=True)
class Point:
    """One run of a sweep: what is varied in it, and all its settings."""

    swept: tuple[tuple[str, Value], ...]
    selection: SelectionConfig

    @property
    def words(self) -> str:
        """``λ 0.3, seed 1``."""
        words = {name: name if OPTIONS[name].varied is None else OPTIONS[name].varied for name, _ in self.swept}
        return ", ".join(
            f"{words[name]} {f'{value:g}' if isinstance(value, float) else value}".lstrip()
            for name, value in self.swept
        )


@dataclass(frozen=True)
class Plan:
    """A sweep: one corpus, many selections of it."""

    corpus: CorpusConfig
    points: tuple[Point, ...]
    name: str = ""

    @property
    def id(self) -> str:
        """The same for the same corpus settings and points, so that repeating a command goes on with its sweep."""
        # as command lines, which name what differs from the defaults: a new option leaves old sweeps theirs
        commands = json.dumps([RunConfig(self.corpus, point.selection).arguments() for point in self.points])
        return f"sweep-{hashlib.sha256(commands.encode()).hexdigest()[:10]}"


def variable() -> tuple[str, ...]:
    """The options that a sweep can vary: first numbers, then whole numbers, then words."""
    kinds = (Number, Whole)
    return tuple(
        sorted(
            (name for name, option in OPTIONS.items() if option.varied is not None),
            key=lambda name: next(
                (place for place, kind in enumerate(kinds) if isinstance(OPTIONS[name].kind, kind)), len(kinds)
            ),
        )
    )


def parse_vary(text: str) -> tuple[str, tuple[Value, ...]]:
    """Read ``OPTION=START:STOP:COUNT`` (both ends included) or ``OPTION=VALUE,VALUE``.

    Raises:
        OptionError: the option cannot be varied, or a value is not one of its kind.
    """
    name, equals, given = text.partition("=")
    name = name.strip().lstrip("-").replace("-", "_")
    name = next((key for key, option in OPTIONS.items() if f"--{name}" in option.flags), name)
    if name not in variable():
        raise OptionError(f"--vary must name one of {', '.join(variable())}, got {name!r}")
    if not equals or not given:
        raise OptionError(f"--vary must be OPTION=START:STOP:COUNT or OPTION=VALUE,VALUE, got {text!r}")
    values: list[Value]
    if not isinstance(OPTIONS[name].kind, (Number, Whole)):
        values = [word.strip() for word in given.split(",")]
    elif ":" in given:
        values = _range(name, given)
    else:
        values = [_number(name, part) for part in given.split(",")]
    if len(set(values)) < len(values):
        raise OptionError(f"--vary {name} must be given each value once, got {given!r}")
    return name, tuple(values)


def points(
    given: Mapping[str, Any], varied: Sequence[tuple[str, tuple[Value, ...]]], seeds: int = 1
) -> tuple[Point, ...]:
    """The cross product of what is varied, the last one changing fastest.

    Args:
        given: options as for `SelectionConfig.from_options`, the same in every point.
        seeds: where the seed is not varied, so many seeds for every point whose estimator is random.

    Raises:
        OptionError: a point's settings do not hold, an option is varied twice, or there are too many points.
    """
    names = [name for name, _ in varied]
    if len(set(names)) < len(names):
        raise OptionError(f"--vary must name each option once, got {', '.join(names)}")
    if seeds < 1:
        raise OptionError(f"--seeds must be a whole number of at least 1, got {seeds}")
    spanned = []
    for values in itertools.product(*(values for _, values in varied)):
        swept = dict(zip(names, values))
        selection = SelectionConfig.from_options(**{**given, **swept})
        if seeds > 1 and "seed" not in names and catalogue.estimator(selection.estimator).seeded:
            spanned += [
                Point((*swept.items(), ("seed", seed)), replace(selection, seed=seed))
                for seed in range(selection.seed, selection.seed + seeds)
            ]
        else:
            spanned.append(Point(tuple(swept.items()), selection))
        if len(spanned) > MOST_POINTS:
            raise OptionError(f"--vary must span at most {MOST_POINTS:,} points; vary fewer options, or fewer values")
    return tuple(spanned)


def _range(name: str, text: str) -> list[Value]:
    parts = text.split(":")
    if len(parts) != 3 or not parts[2].strip().isdigit() or int(parts[2]) < 2:
        raise OptionError(f"--vary {name} must be START:STOP:COUNT with a COUNT of at least 2, got {text!r}")
    start, stop, count = float(_number(name, parts[0])), float(_number(name, parts[1])), int(parts[2])
    if count > MOST_POINTS:
        raise OptionError(f"--vary must span at most {MOST_POINTS:,} points, got {count:,} values of {name}")
    # 12 digits: 0.3, not 0.30000000000000004
    return [_number(name, repr(round(start + (stop - start) * k / (count - 1), 12))) for k in range(count)]


def _number(name: str, text: str) -> float | int:
    whole = isinstance(OPTIONS[name].kind, Whole)
    try:
        value = float(text)
        if not whole:
            return value
        if value == int(value):
            return int(value)
    except (ValueError, OverflowError):
        pass
    raise OptionError(f"--vary {name} must be given {'whole numbers' if whole else 'numbers'}, got {text.strip()!r}")
