"""A plan in sentences, for the command line and the pages."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from datamask.out_of_core.plan import Plan

HOUR, DAY, YEAR = 3600.0, 86_400.0, 365.25 * 86_400.0


def size_sentence(plan: Plan) -> str:
    """How much is selected of how much, and how."""
    count, unit = (plan.passes, "pass") if plan.passes else (plan.blocks, "block")
    how = f"{count:,} {unit}{'' if count == 1 else 'es' if unit == 'pass' else 's'}"
    return (
        f"{plan.selected:,} of {plan.rows:,} rows of {plan.dim:,} dimensions, in {plan.shards:,} "
        f"shard{'s' if plan.shards != 1 else ''} of {bytes_text(plan.input_bytes)} together, by {how}."
    )


def takes_sentences(plan: Plan, memory: int) -> list[str]:
    """What it reads and holds; and that it does not fit, where it does not. memory: of this machine, in bytes."""
    lines = [
        f"Reads {bytes_text(plan.read_bytes)}, at most; scratch takes {bytes_text(plan.scratch_bytes)}, memory "
        f"{bytes_text(plan.memory_bytes)}, at most."
    ]
    if plan.memory_bytes > memory:
        lines.append(
            f"That is more memory than the {bytes_text(memory)} of this machine: take a larger one, or parts of the "
            "corpus."
        )
    return lines


def bytes_text(count: float) -> str:
    """Bytes as people say them: ``"1.2 GB"``."""
    for unit, size in (("PB", 1e15), ("TB", 1e12), ("GB", 1e9), ("MB", 1e6)):
        if count >= size:
            return f"{count / size:,.1f} {unit}"
    return f"{count / 1e3:,.1f} kB"


def time_text(seconds: float) -> str:
    """Seconds as people say them, of any length: ``"8 s"``, ``"2.5 h"``, ``"40 days"``."""
    if seconds < 120:
        return "less than 1 s" if seconds < 1 else f"{seconds:.2g} s" if seconds < 10 else f"{seconds:.0f} s"
    if seconds < 2 * HOUR:
        return f"{seconds / 60:.0f} min"
    if seconds < 2 * DAY:
        return f"{seconds / HOUR:.1f} h"
    return f"{seconds / DAY:,.0f} days" if seconds < 2 * YEAR else f"{seconds / YEAR:,.0f} years"
