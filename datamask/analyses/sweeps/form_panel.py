"""The form of a sweep: what varies, over which values and seeds, and the settings that all its runs share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import streamlit as st

from datamask import catalogue
from datamask.analyses.frontier import form_panel as frontier_form
from datamask.analyses.frontier import sweeping
from datamask.analyses.frontier.form_panel import Shared
from datamask.dashboard.data.openings import OpenCorpus
from datamask.dashboard.runs import outcome
from datamask.dashboard.runs import sweep_kinds as kinds
from datamask.dashboard.workspace.current import Current
from datamask.options import OPTIONS
from datamask.runs.varying import Plan, Point, points

QUICK_STEPS, PAPER_STEPS = 200, 1000
"""Update steps of a run that learns masks, and of one in a preset, unless another number is asked for."""


@dataclass(frozen=True)
class Asked:
    """What the form says.

    Attributes:
        word: what varies, of `kinds`. settings: objectives, ratio and copies.
        plans: to be computed; empty where the settings contradict each other, which is then said.
        arms: name -> points of the arms of a preset, else empty.
    """

    word: str
    settings: Shared
    plans: list[Plan]
    arms: Mapping[str, Sequence[Point]] = field(default_factory=dict)


def form(opened: OpenCorpus, current: Current | None, word: str) -> Asked:
    """Draw the form; what it says.

    Args:
        current: what the page shows; its objective is chosen first. word: what varies, of `kinds`; not λ.
    """
    given = "" if word in kinds.PRESETS else _values(word)
    # a figure over time and curves of parts are of one objective
    several = word == "single" or not (word in kinds.PRESETS or word == kinds.PARTS)
    settings = frontier_form.shared(opened, several, current, without=(word,))
    options: dict[str, Any] = {name: value for name, value in settings.options.items() if name != word}
    methods = kinds.methods(word)
    method = _method(word, methods) if methods else catalogue.AUTO
    if method != catalogue.AUTO:
        options["estimator"] = method
    seeds, steps = _numbers(word, method, given if word == "objective" else settings.objectives)
    if steps is not None:
        options["n_epochs"] = steps
    if word != kinds.PARTS:
        options["lamb"] = _lambda()
    made: dict[str, tuple[Point, ...]] = {}

    def plans() -> list[Plan]:
        if not settings.objectives:
            return []
        if word in kinds.PRESETS:
            made.update(arms(word, options, settings.objectives, seeds))
            # arms may share a setting, which is done once
            once = {point.selection: point for arm in made.values() for point in arm}
            return frontier_form.plan_of(opened, tuple(once.values()))
        values = kinds.values_of(word, given)
        if word == kinds.PARTS:
            return _on_parts(
                opened, sweeping.along_lambda(settings.objectives, [float(value) for value in values], **options)
            )
        spanned: list[Point] = []
        for objective in settings.objectives:
            one = {} if word == "objective" else {"objective": objective}
            spanned += points({**options, **one}, [(word, kinds.fitting(word, values, objective))], seeds)
        return frontier_form.plan_of(opened, spanned)

    planned = frontier_form.planned(plans)
    return Asked(word, settings, planned, made)


def arms(
    preset: str, options: Mapping[str, Any], objectives: Sequence[str], seeds: int
) -> dict[str, tuple[Point, ...]]:
    """Return the points of each arm of a preset, without arms whose pruning leaves too few rows to select from.

    Args:
        preset: of `kinds.PRESETS`. options: as of `SelectionConfig.from_options`; an arm overrides them.
        objectives: of the arms that are repeated; the first is that of the others.
        seeds: runs of an arm whose method is random.
    """
    plain = {name: value for name, value in options.items() if name not in ("estimator", "n_epochs")}
    made = {}
    for name, levels in kinds.PRESETS[preset].arms.items():
        if float(levels.get("prune", 0.0)) > 0.99 - options.get("select_ratio", 0.3):
            continue
        for objective in objectives if "{}" in name else objectives[:1]:
            given = {**(plain if "estimator" in levels else options), "objective": objective, **levels}
            made[name.format(objective)] = points(given, [(level, (value,)) for level, value in levels.items()], seeds)
    return made


def _values(word: str) -> str | Sequence[str]:
    """The values to vary over, as typed or chosen."""
    key, choices = f"sweep_values_{word}", kinds.choices(word)
    if choices:
        return st.multiselect(
            "Values",
            choices,
            default=kinds.CHOSEN.get(word, choices),
            format_func=_namer(word),
            key=key,
            persist_state="session",
        )
    return st.text_input(
        "Values",
        kinds.VALUES[word],
        key=key,
        persist_state="session",
        help="Values separated by commas, or START:STOP:COUNT, such as 0:1:11.",
    )


def _namer(word: str):
    if word == "objective":
        return lambda name: outcome.objective_choice(name).partition(" (")[0]
    if word == "estimator":
        return lambda name: catalogue.estimator(name).label
    return OPTIONS[word].shown


def _method(word: str, methods: Sequence[str]) -> str:
    return st.selectbox(
        "Method",
        methods,
        format_func=lambda name: "Automatic" if name == catalogue.AUTO else catalogue.estimator(name).label,
        key=f"sweep_method_{'_'.join(methods)}",
        persist_state="session",
    )


def _numbers(word: str, method: str, objectives: Sequence[str]) -> tuple[int, int | None]:
    """Seeds, where some run depends on them, and steps where masks are learned."""
    if word in ("seed", kinds.PARTS) or not kinds.seeded(word, method, objectives):
        return 1, None
    left, right = st.columns(2)
    seeds = left.number_input(
        "Seeds",
        1,
        10,
        3,
        key="sweep_seeds",
        persist_state="session",
        help="Repeats each value with other random numbers. A method without random numbers runs once.",
    )
    if word == "n_epochs" or not kinds.draws_masks(method):
        return int(seeds), None
    steps = right.number_input(
        "Steps",
        10,
        100_000,
        PAPER_STEPS if word in kinds.PRESETS else QUICK_STEPS,
        step=100,
        key="preset_steps" if word in kinds.PRESETS else "sweep_steps",
        persist_state="session",
        help="The paper uses 5,000.",
    )
    return int(seeds), int(steps)


def _lambda() -> float:
    return st.slider(
        "Balance λ",
        0.0,
        1.0,
        0.5,
        step=0.05,
        key="sweep_lamb",
        persist_state="session",
    )


def _on_parts(opened: OpenCorpus, spanned: Sequence[Point]) -> list[Plan]:
    """The same points on an eighth, a quarter and all of the corpus."""
    slices = sweeping.slices(opened.config, len(opened.corpus))
    return [
        Plan(corpus, tuple(spanned), f"{sweeping.plan_name(spanned[0])}, {name}") for name, corpus in slices.items()
    ]
