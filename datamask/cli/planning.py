"""The command `plan`: what a run over all rows of a corpus will take."""

from __future__ import annotations

import argparse
import shutil
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from datamask.cli.common import DONE, stop_on_signals
from datamask.cli.output import print_json, say, table_text
from datamask.cli.parser import corpus_config, given_options
from datamask.cli.streams import print_text
from datamask.config import SelectionConfig
from datamask.errors import OptionError
from datamask.files import existing_parent
from datamask.options.amounts import parse_tokens, tokens_text
from datamask.polling import poll_of
from datamask.runs.folders import scratch_place
from datamask.runs.phases import sample_seconds
from datamask.runs.store import default_root

if TYPE_CHECKING:
    from datamask.out_of_core.plan import Plan, Planned


def plan(options: argparse.Namespace) -> int:
    """`plan`: a look at the shards, a probe of the first rows, and arithmetic."""
    from datamask.memory import memory_bytes
    from datamask.out_of_core.plan import plan_run

    if options.machines < 1:
        raise OptionError(f"--machines must be at least 1, got {options.machines}")
    tokens = None if options.tokens is None else parse_tokens(options.tokens, "tokens")
    selection = SelectionConfig.from_options(**{**given_options(options), "all_rows": True})
    with stop_on_signals("and planning nothing") as stop:
        say("probing the first rows, which takes some seconds")
        planned = plan_run(
            corpus_config(options, selection.seed),
            selection,
            tokens,
            learning=lambda rows, dim: sample_seconds(selection, rows, dim),
            poll=poll_of(stop.is_set),
        )
    memory, place = memory_bytes(), scratch_place(selection, Path(default_root()))
    free = shutil.disk_usage(existing_parent(place)).free
    if options.json:
        larger = planned.larger and {"tokens": tokens, **planned.larger.to_dict(options.machines)}
        print_json(
            {
                **planned.local.to_dict(options.machines),
                "fits_in_memory": planned.fits,
                "machine_memory_bytes": memory,
                "scratch_free_bytes": free,
                "measured": asdict(planned.rates),
                "assumed": list(planned.assumed),
                **({"for_tokens": larger} if larger else {}),
            }
        )
    else:
        print_text(_text(planned, options.machines, memory, place, free))
    return DONE


def _text(planned: Planned, machines: int, memory: int, place: Path, free: int) -> str:
    from datamask.out_of_core.plan_words import bytes_text, size_sentence, takes_sentences, time_text

    local, rates = planned.local, planned.rates
    label = f"{machines} machines" if machines > 1 else "1 machine"
    rows = [
        {
            "part": part.what,
            "core time": time_text(part.core_seconds),
            "here": time_text(part.seconds(local.cores, 1)),
            label: time_text(part.seconds(local.cores, machines)),
        }
        for part in local.parts
    ]
    rows.append(
        {
            "part": "All of it",
            "core time": time_text(sum(part.core_seconds for part in local.parts)),
            "here": time_text(local.seconds()),
            label: time_text(local.seconds(machines)),
        }
    )
    lines = [
        size_sentence(local),
        *(["The corpus fits in memory: without --scratch_dir it is solved there."] if planned.fits else []),
        *takes_sentences(local, memory),
        f"{place} has {bytes_text(free)} free.",
        "",
        table_text(rows),
        *_recipe(local, machines, label),
        "",
        *_larger(planned, machines, label, memory),
        f"Measured on {rates.rows:,} rows, one core: reading {_rate(rates.read)}, scratch {_rate(rates.write)}"
        + (f", a pass {_rate(rates.passed)}" if rates.passed else "")
        + (f", blocks {_rate(sum(each.seconds for each in rates.tasks.values()) / rates.rows)}" if rates.tasks else "")
        + f". Here are {local.cores} cores.",
        *(f"Assumed: {sentence}." for sentence in planned.assumed),
    ]
    return "\n".join(lines)


def _larger(planned: Planned, machines: int, label: str, memory: int) -> list[str]:
    """The forecast for a corpus of so many tokens, where one was requested."""
    from datamask.out_of_core.plan_words import size_sentence, takes_sentences, time_text

    if planned.larger is None or planned.tokens is None:
        return []
    size = size_sentence(planned.larger)
    return [
        f"For {tokens_text(planned.tokens)} tokens: {size[0].lower()}{size[1:]}",
        *takes_sentences(planned.larger, memory),
        f"Time: {time_text(planned.larger.seconds())} here, {time_text(planned.larger.seconds(machines))} on {label}.",
        *_recipe(planned.larger, machines, label),
        "",
    ]


def _recipe(plan: Plan, machines: int, label: str) -> list[str]:
    from datamask.out_of_core.plan_words import time_text

    if plan.recipe is None:
        return []
    on_one, on_several = (time_text(plan.recipe.seconds(plan.cores, count)) for count in (1, machines))
    return [
        f"Or by a recipe: a selection from a sample, and `apply` over all shards, in {on_one} here, {on_several} on "
        f"{label}."
    ]


def _rate(seconds: float) -> str:
    """Seconds per row, as rows per second."""
    return f"{1 / seconds:,.0f} rows/s" if seconds > 0 else "no time"
