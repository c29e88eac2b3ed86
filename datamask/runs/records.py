"""What config.json and status.json may say: the type of every entry that somebody reads, checked in one place.

Entries that are not named are nobody's business and pass, and so does what is missing, unless it is named in
`Complete`: records grow from version to version. What is there has its type, or the record as a whole is damaged.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from datamask.config import RunConfig
from datamask.options import (
    CORPUS_OPTIONS,
    OPTIONS,
    Flag,
    InputPaths,
    Kind,
    Number,
    Option,
    QualityColumns,
    Quotas,
    Whole,
)

LATEST = 253370764800.0
"""Seconds since 1970 at the end of the year 9998: later times no calendar can show."""

EVERY = "*"
"""The name, in a schema, of all entries that have no line of their own."""


@dataclass(frozen=True)
class ValueType:
    """A type of value, in words, and what is of it."""

    words: str
    fits: Callable[[Any], bool]

    def __or__(self, other: ValueType) -> ValueType:
        return ValueType(f"{self.words} or {other.words}", lambda value: self.fits(value) or other.fits(value))


class Complete(dict[str, Any]):
    """A schema none of whose entries may be missing."""


Schema = Mapping[str, Any]


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


NONE = ValueType("null", lambda value: value is None)
FLAG = ValueType("true or false", lambda value: isinstance(value, bool))
TEXT = ValueType("text", lambda value: isinstance(value, str))
TEXTS = ValueType("a list of texts", lambda value: isinstance(value, list) and all(isinstance(v, str) for v in value))
COUNT = ValueType("a whole number from 0", lambda value: _is_number(value) and isinstance(value, int) and value >= 0)
NUMBER = ValueType("a number", _is_number)
TIME = ValueType("seconds since 1970 up to the year 9998", lambda value: _is_number(value) and 0 <= value < LATEST)
TERMS: Schema = {"quality": NUMBER | NONE, "diversity": NUMBER | NONE, "joint": NUMBER | NONE}
ANCHOR = Complete(random=NUMBER, best=NUMBER, best_kind=TEXT)
ANCHORS: Schema = {"quality": ANCHOR, "diversity": {EVERY: ANCHOR}}
NEIGHBORS: Schema = Complete(kind=TEXT, k=COUNT, recall=NUMBER, recall_rows=COUNT)

SUMMARY: Schema = {
    **TERMS,
    "run_id": TEXT,
    "status": TEXT,
    "estimator": TEXT,
    "scale": TEXT,
    "n": COUNT,
    "selected": COUNT,
    "given": COUNT,
    "unknown_ids": COUNT,
    "steps": COUNT,
    "budget": NUMBER | NONE,
    "tokens": NUMBER | NONE,
    "upper_bound": NUMBER | NONE,
    "gap": NUMBER | NONE,
    "bound_holds_for": TEXT | NONE,
    "settled": (Complete(inside=COUNT, outside=COUNT, open=COUNT), NONE),
    "weights": (Complete(sum=NUMBER, samples=COUNT), NONE),
    "warm_from": TEXT | NONE,
    "seconds": NUMBER,
    "seconds_graph": NUMBER,
    "seconds_total": NUMBER,
    "peak_memory_bytes": COUNT,
    "device": TEXT,
    "values": TEXT,
    "estimate": (Complete(value=NUMBER, low=NUMBER, high=NUMBER, rows=COUNT), NONE),
    "calibrated": TERMS,
    "objectives": {EVERY: NUMBER | NONE},
    "anchors": ANCHORS,
    "neighbors": (NEIGHBORS, NONE),
    "warnings": TEXTS,
}

STATUS: Schema = {
    "step": COUNT,
    "total_steps": COUNT,
    "message": TEXT,
    "error": TEXT,
    "traceback": TEXT,
    "ending": TEXT,
    **dict.fromkeys(("heartbeat", "created", "queued", "started", "ended"), TIME | NONE),
    "pid": COUNT | NONE,
    "summary": (SUMMARY, NONE),
}

WHOLE: Schema = {
    "sample_rows": ValueType("a whole number from 2", lambda value: COUNT.fits(value) and value >= 2),
    **dict.fromkeys(("rows", "selected", "shards", "passes", "blocks"), COUNT),
    **dict.fromkeys(("scratch_bytes", "memory_bytes"), COUNT),
    "scratch": TEXT | NONE,
}
"""Of a run on all rows of a corpus that is not in memory; see `datamask.runs.whole`."""

REFERENCE: Schema = {**TERMS, "calibrated": TERMS}
FACTS: Schema = {
    "output": TEXT | NONE,
    "unwritten": TEXT | NONE,
    "versions": {EVERY: TEXT},
    "command": TEXTS,
    "threads": COUNT,
    "fingerprint": TEXT,
    "n": COUNT,
    "dim": COUNT,
    "total_rows": COUNT,
    "files": TEXTS,
    "notes": TEXTS,
    "dropped": {EVERY: COUNT},
    "columns": {
        "id": TEXT,
        "feature": TEXT,
        "quality": TEXTS,
        "falling": TEXTS,
        "length": TEXT | NONE,
        "text": TEXT | NONE,
    },
    "device": TEXT,
    "given": COUNT,
    "pinned": COUNT,
    "banned": COUNT,
    "eligible": COUNT,
    "selected": COUNT,
    "budget": NUMBER | NONE,
    "anchors": ANCHORS,
    "references": {"random": REFERENCE, "top_quality": REFERENCE},
    "switched_off": TEXTS,
    "neighbors": (NEIGHBORS, NONE),
    "warm_from": TEXT | NONE,
    "start_from": TEXT | NONE,
    "first_step": COUNT,
    "planned_steps": COUNT,
    "sweep": TEXT,
    "swept": {},
    "own_code": {EVERY: TEXT},
    "contents": ({EVERY: TEXT | NONE}, NONE),
    "whole": (WHOLE, NONE),
}

OF_KIND: dict[type[Kind], Any] = {
    Number: NUMBER,
    Whole: COUNT,
    Flag: FLAG,
    InputPaths: TEXTS,
    QualityColumns: [Complete(name=TEXT, weight=NUMBER, transform=TEXT)],
    Quotas: [Complete(column=TEXT, value=TEXT, low=NUMBER, high=NUMBER)],
}
"""Kind of an option -> what a record holds of it, where it is no text."""


def _of_option(option: Option) -> Any:
    if option.kind.is_text:
        return TEXT | NONE
    held = OF_KIND[type(option.kind)]
    return held | NONE if option.default is None and not option.kind.many else held


CONFIG: Schema = {
    "corpus": {name: _of_option(option) for name, option in CORPUS_OPTIONS.items()},
    # numbers of a selection are checked by the settings themselves, whose sentences name the bounds
    "selection": {
        name: _of_option(option)
        for name, option in OPTIONS.items()
        if option.kind.is_text or isinstance(option.kind, Quotas)
    },
    "name": TEXT,
    "notes": TEXT,
    "ids": TEXT | NONE,
    "ignore_unknown": FLAG,
}

RESULTS: Schema = Complete(results=[Complete(task=TEXT, score=NUMBER)])

CHECKPOINT: Schema = Complete(
    state=Complete(step=COUNT, best_joint=NUMBER | NONE, quiet=COUNT),
    **dict.fromkeys(
        ("seconds", "seconds_total", "seconds_graph"),
        ValueType("seconds", lambda value: _is_number(value) and value >= 0),
    ),
)

TRACED: Schema = {"traced": COUNT}
"""Of a checkpoint, where it is there: lines of metrics.jsonl up to it that were no steps of the estimator."""

RECORD: Schema = {"format_version": COUNT, "run_id": TEXT, "created": TIME, "config": CONFIG, "facts": FACTS}


def check(value: Any, schema: Any, name: str = "") -> None:
    """Refuse a value that is not of its schema.

    Args:
        schema: a `ValueType`; a mapping of names to schemas; a list of one schema, that of every item; a tuple of
            alternatives, of which the first says what is expected.
        name: of the value, for the sentence.

    Raises:
        ValueError: a sentence that names the entry, what was expected and what came.
    """
    if isinstance(schema, tuple):
        if not any(isinstance(other, ValueType) and other.fits(value) for other in schema[1:]):
            check(value, schema[0], name)
    elif isinstance(schema, ValueType):
        _require(schema.fits(value), name, schema.words, value)
    elif isinstance(schema, list):
        _require(isinstance(value, list), name, "a list", value)
        for place, member in enumerate(value):
            check(member, schema[0], f"{name}[{place}]")
    else:
        _require(isinstance(value, dict), name, "an object", value)
        missing = [key for key in schema if key not in value] if isinstance(schema, Complete) else ()
        _require(not missing, name, f"an object with {', '.join(missing)}", value)
        for key, entry in value.items():
            if (kind := schema.get(key, schema.get(EVERY))) is not None:
                check(entry, kind, f"{name}.{key}" if name else key)


def _require(holds: bool, name: str, expected: str, value: Any) -> None:
    if not holds:
        came = repr(value)
        raise ValueError(f"{name or 'it'} must be {expected}, got {came if len(came) <= 60 else came[:57] + '...'}")


@dataclass(frozen=True)
class RunRecord:
    """What config.json says, every entry of its type."""

    config: RunConfig
    facts: dict[str, Any]
    format_version: int | None
    created: float | None

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> RunRecord:
        """Raises:
        ValueError: it is not of a run.
        """
        check(record, RECORD)
        try:
            config = RunConfig.from_dict(record["config"])
        except (KeyError, TypeError, AttributeError, OverflowError) as error:
            raise ValueError(f"its config is not of a run: {error!r}") from error
        return cls(config, record.get("facts", {}), record.get("format_version"), record.get("created"))
