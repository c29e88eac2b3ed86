"""How a run stands: one small frozen record, as status.json says it, plus the states that are derived from locks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from datamask.evaluation.result import RunResult
from datamask.runs.records import STATUS
from datamask.schemas import check

STATES = ("queued", "running", "done", "stopped", "failed", "interrupted")
WRITTEN_STATES = STATES[:-1]
"""What status.json may say; ``interrupted`` is only ever derived (see `datamask.runs.store`)."""

SUMMARY = "summary"
"""What a record calls the result."""

ENDED_STATES = ("done", "stopped", "failed", "interrupted")


@dataclass(frozen=True)
class RunStatus:
    """How a run stands.

    Attributes:
        state: one of `STATES`.
        step, total_steps: update steps done and planned; 0 before the first.
        message: what is being done, or how it ended, in a few words.
        error: one sentence for the person who started it, empty unless the run failed.
        traceback: for whoever mends it, empty unless the run failed on a fault of the program.
        heartbeat, created, queued, started, ended: seconds since 1970, None where not reached. `started` is the latest
            start: a resumed run starts again.
        result: the numbers of the final subset, None before the end; the record has them under ``summary``.
        ending: why the learner ended: converged, step limit, stopped ...
        pid: process that last wrote this, for people who look for it.
    """

    state: str = "queued"
    step: int = 0
    total_steps: int = 0
    message: str = ""
    error: str = ""
    traceback: str = ""
    heartbeat: float | None = None
    created: float | None = None
    queued: float | None = None
    started: float | None = None
    ended: float | None = None
    result: RunResult | None = None
    ending: str = ""
    pid: int | None = None

    @property
    def active(self) -> bool:
        """Whether something is, or will be, working on it."""
        return self.state in ("queued", "running")

    @property
    def resumable(self) -> bool:
        """Whether `resume` makes sense: it has ended, and not by finishing."""
        return self.state in ("stopped", "failed", "interrupted")

    def to_dict(self) -> dict[str, Any]:
        """Return the record, as status.json has it."""
        record = {each.name: getattr(self, each.name) for each in fields(self)}
        summary = None if self.result is None else self.result.to_dict()
        return {SUMMARY if name == "result" else name: summary if name == "result" else record[name] for name in record}

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> RunStatus:
        """Read a record, ignoring keys of newer versions.

        Raises:
            ValueError: it names no known state, or an entry is of another type than `datamask.runs.records` says.
        """
        state = record.get("state")
        if not isinstance(state, str) or state not in STATES:
            raise ValueError(f"state must be one of {', '.join(STATES)}, got {str(state)[:60]!r}")
        check(record, STATUS)
        names, summary = {f.name for f in fields(cls)} - {"result"}, record.get(SUMMARY)
        result = None if summary is None else RunResult.from_dict(summary)
        return cls(**{name: value for name, value in record.items() if name in names}, result=result)
