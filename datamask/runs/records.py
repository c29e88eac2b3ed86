"""What config.json and status.json may say: the type of every entry that somebody reads, checked in one place.

Entries that are not named are nobody's business and pass, and so does what is missing, unless it is named in
`Complete`: records grow from version to version. What is there has its type, or the record as a whole is damaged.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from datamask.config import RunConfig
from datamask.errors import VersionError
from datamask.evaluation.result import SUMMARY
from datamask.files import FORMAT
from datamask.measured import Anchors, GraphFacts, TermValues
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
from datamask.schemas import COUNT, EVERY, FLAG, NONE, NUMBER, TEXT, TEXTS, TIME, Complete, Schema, ValueType, check

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
    **dict.fromkeys(("rows", "selected", "shards"), COUNT),
    **dict.fromkeys(("fingerprint", "no_rule"), TEXT),
}
"""Of a run on mapped arrays; see `datamask.runs.whole`."""

REFERENCE: Schema = {**TermValues.SCHEMA, "calibrated": TermValues.SCHEMA}
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
    "anchors": Anchors.SCHEMA,
    "references": {"random": REFERENCE, "top_quality": REFERENCE},
    "switched_off": TEXTS,
    "duplicates": (Complete(recall=NUMBER, judged=COUNT, left=COUNT), NONE),
    "neighbors": (GraphFacts.SCHEMA, NONE),
    "warm_from": TEXT | NONE,
    "start_from": TEXT | NONE,
    "first_step": COUNT,
    "planned_steps": COUNT,
    "sweep": TEXT,
    "swept": {},
    "own_code": {EVERY: TEXT},
    "contents": {EVERY: TEXT},
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

CHECKPOINT: Schema = Complete(
    state=Complete(step=COUNT, best_joint=NUMBER | NONE, quiet=COUNT),
    traced=COUNT,
    **dict.fromkeys(
        ("seconds", "seconds_total", "seconds_graph"),
        ValueType("seconds", lambda value: NUMBER.fits(value) and value >= 0),
    ),
)
"""Of checkpoint.npz. traced: lines of metrics.jsonl up to it that were no steps of the estimator."""

RECORD: Schema = {"format": TEXT, "run_id": TEXT, "created": TIME, "config": CONFIG, "facts": FACTS}


@dataclass(frozen=True)
class RunRecord:
    """What config.json says, every entry of its type."""

    config: RunConfig
    facts: dict[str, Any]
    created: float | None

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> RunRecord:
        """Raises:
        VersionError: another version made it. ValueError: it is not of a run.
        """
        if record.get("format") != FORMAT:
            raise VersionError
        check(record, RECORD)
        try:
            config = RunConfig.from_dict(record["config"])
        except (KeyError, TypeError, AttributeError, OverflowError) as error:
            raise ValueError(f"its config is not of a run: {error!r}") from error
        return cls(config, record.get("facts", {}), record.get("created"))
