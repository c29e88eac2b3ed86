"""The form of the page Frontier: what varies, over which values, the settings that all its runs share, and Start."""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import streamlit as st

from datamask import catalogue
from datamask.analyses.frontier import kinds, sweeping
from datamask.dashboard.data.openings import OpenCorpus
from datamask.dashboard.drawing import words
from datamask.dashboard.runs import cost, listing, outcome
from datamask.dashboard.shell import background, option_control, session
from datamask.dashboard.shell.option_control import KEPT
from datamask.dashboard.workspace.current import Current
from datamask.errors import DatamaskError
from datamask.options import OPTIONS
from datamask.runs.store import Run
from datamask.runs.varying import Plan, Point, points
from datamask.work.worker import worker

QUICK = "pairwise"
"""Solved within seconds, and its unreachable side is proved."""

COPIES = {"none": "Keep all", "exact": "Keep the best one"}
QUICK_STEPS, PAPER_STEPS = 200, 1000
"""Update steps of a run that learns masks, and of one in a preset, unless another number is asked for."""

SWEEPING = background.Look("stop_sweep", beneath=True, every=1.0)


@dataclass(frozen=True)
class Asked:
    """What the form says.

    Attributes:
        word: what varies, of `kinds`.
        plan: to be computed; None where there is nothing, or the settings contradict each other, which is then said.
        arms: name -> points of the arms of a preset, else empty.
    """

    word: str
    plan: Plan | None = None
    arms: Mapping[str, Sequence[Point]] = field(default_factory=dict)


def form(opened: OpenCorpus, current: Current | None, word: str) -> Asked:
    """Draw the controls; what they say.

    Args:
        current: what the page shows; its objective is chosen first. word: what varies, of `kinds`.
    """
    given = "" if word in kinds.PRESETS else _values(word)
    objectives, options = _objectives(current, word), _shared(word)
    seeds = 1
    if word != kinds.LAMBDA:
        method = _method(kinds.methods(word))
        if method != catalogue.AUTO:
            options["estimator"] = method
        seeds, steps = _numbers(word, method, given if word == "objective" else objectives)
        if steps is not None:
            options["n_epochs"] = steps
        options["lamb"] = option_control.draw(OPTIONS["lamb"], 0.5, "sweep_lamb", persist_state="session")
    if not objectives:
        return Asked(word)
    try:
        if word in kinds.PRESETS:
            named = arms(word, options, objectives, seeds)
        else:
            named = {"": _spanned(word, given, options, objectives, seeds)}
    except DatamaskError as error:
        st.error(words.sentence(error), icon=":material/error:")
        return Asked(word)
    # arms may share a setting, which is done once
    points_ = tuple({point.selection: point for arm in named.values() for point in arm}.values())
    several = len({point.selection.objective for point in points_}) > 1
    shares = [] if several or not points_ else [outcome.objective_label(points_[0].selection.objective)]
    shares += [words.percent(options["select_ratio"])] if "select_ratio" in options else []
    plan = Plan(opened.config, points_, ", ".join(shares)) if points_ else None
    return Asked(word, plan, named if word in kinds.PRESETS else {})


def _spanned(
    word: str, given: str | Sequence[str], options: Mapping[str, Any], objectives: Sequence[str], seeds: int
) -> tuple[Point, ...]:
    varied = kinds.values_of(word, given)
    spanned: list[Point] = []
    for objective in objectives:
        values = (word, kinds.fitting(word, varied, objective))
        # a run is called by what is varied in it
        each = [("objective", (objective,)), values] if len(objectives) > 1 else [values]
        spanned += points({"objective": objective, **options}, each, seeds)
    return tuple(spanned)


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


# -- controls ----------------------------------------------------------------------------------------------------------


def _values(word: str) -> str | Sequence[str]:
    """The values to vary over, as typed or chosen."""
    key, choices = f"sweep_values_{word}", kinds.choices(word)
    if choices:
        return st.multiselect(
            "Values",
            choices,
            default=kinds.CHOSEN.get(word, choices),
            format_func=functools.partial(kinds.named, word),
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


def _objective(name: str) -> str:
    # what stands in brackets would be cut off in the narrow column
    return outcome.objective_choice(name).partition(" (")[0]


def _estimator(name: str) -> str:
    return "Automatic" if name == catalogue.AUTO else catalogue.estimator(name).label


def _objectives(current: Current | None, word: str) -> tuple[str, ...]:
    """The objectives; that of the current selection until a person chooses, so that the curve goes through it.

    One alone: a second takes as long again, and is one press away. A figure over time has one.
    """
    names = [entry.name for entry in catalogue.OBJECTIVES]
    if word == "objective":
        return (names[0],)
    started = "" if current is None else current.workspace.settings.objective
    if "frontier_objectives" not in st.session_state:
        # a sum of objectives has no curve here
        st.session_state["frontier_objectives"] = [started if started in names else QUICK]
    several = word == "single" or word not in kinds.PRESETS
    chosen = st.pills(
        "Diversity objectives",
        names,
        selection_mode="multi",
        persist_state="session",
        key="frontier_objectives",
        wrap=True,
        help="Each objective has its own 0 % and 100 %.",
        format_func=_objective,
    )
    if not several and len(chosen) > 1:
        st.caption(f"Drawn for the first alone: {_objective(chosen[0])}.")
    return tuple(chosen if several else chosen[:1])


def _shared(word: str) -> dict[str, Any]:
    """Ratio and duplicates, without what varies."""
    options: dict[str, Any] = {}
    if word != "select_ratio":
        about = "Each ratio has its own 0 % and 100 %."
        options["select_ratio"] = float(option_control.draw(OPTIONS["select_ratio"], 0.3, "ratio", help=about, **KEPT))
    if word != "collapse":
        options["collapse"] = option_control.draw(
            OPTIONS["collapse"],
            "none",
            "frontier_copies",
            choices=tuple(COPIES),
            shown=COPIES.__getitem__,
            label="Exact duplicates",
            persist_state="session",
        )
    return options


def _method(methods: Sequence[str]) -> str:
    """The method; automatic where it is what varies."""
    if not methods:
        return catalogue.AUTO
    key = f"sweep_method_{'_'.join(methods)}"
    return st.selectbox("Method", methods, format_func=_estimator, key=key, persist_state="session")


def _numbers(word: str, method: str, objectives: Sequence[str]) -> tuple[int, int | None]:
    """Seeds, where some run depends on them, and steps where masks are learned."""
    if word == "seed" or not kinds.seeded(word, method, objectives):
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
    preset = word in kinds.PRESETS
    steps = option_control.draw(
        OPTIONS["n_epochs"],
        PAPER_STEPS if preset else QUICK_STEPS,
        "preset_steps" if preset else "sweep_steps",
        right,
        label="Steps",
        help="The paper uses 5,000.",
        persist_state="session",
        min_value=10,
        max_value=100_000,
        step=100,
    )
    return int(seeds), int(steps)


# -- starting ----------------------------------------------------------------------------------------------------------


def start(opened: OpenCorpus, runs: Sequence[Run], asked: Asked) -> None:
    """What the sweep will cost and its Start button, or its progress where one is under way.

    Args:
        runs: on the open corpus.
    """
    key = sweeping.key_of(opened.corpus.fingerprint)
    if background.under_way(key, SWEEPING):
        return
    count = 0
    if asked.plan is not None:
        sentence, count = price(opened, runs, asked.plan)
        st.markdown(sentence)
    st.button(
        "Start the sweep",
        icon=":material/play_arrow:",
        width="stretch",
        key="start_sweep",
        disabled=not count,
        on_click=_begin,
        args=(opened, asked),
    )
    background.ending(key, "Stopped. Finished points are kept; Start continues.")
    job = worker().find(key)
    if job is not None and job.result:
        st.warning(f"A point failed: {words.sentence(job.result)}")


def _begin(opened: OpenCorpus, asked: Asked) -> None:
    if asked.plan is not None:
        sweeping.start(session.runs_dir(), opened.corpus.fingerprint, asked.plan, asked.word)


def working(opened: OpenCorpus) -> bool:
    """Whether a sweep is under way on the open corpus."""
    return background.working(sweeping.key_of(opened.corpus.fingerprint))


def price(opened: OpenCorpus, runs: Sequence[Run], plan: Plan) -> tuple[str, int]:
    """What a sweep will take, in words, and how many of its points are still to be computed."""
    done = {run.config.selection for run in runs if run.status().state == "done"}
    left = [point.selection for point in plan.points if point.selection not in done]
    if not left:
        return f"All {len(plan.points):,} runs are stored.", 0
    sentence = f"**{len(left):,}** run{'s' if len(left) > 1 else ''}"
    counts = Counter(selection.objective for selection in left)
    if len(counts) > 1:
        sentence += ": " + ", ".join(
            f"{count:,} of {words.plain(outcome.objective_label(name), 60)}" for name, count in counts.items()
        )
    sentence += f" (stored already: {len(plan.points) - len(left):,})" if len(left) < len(plan.points) else ""
    # runs on other corpora too: the first sweep on a new one has nothing else to be estimated from
    every, total = listing.readable(session.store()), 0.0
    # neither lambda nor seed changes how long a point takes, and there may be hundreds of them
    for settings, times in Counter(replace(selection, lamb=0.5, seed=0) for selection in left).items():
        corpus = opened.corpus
        seconds = cost.estimate(settings, len(corpus), corpus.dim, corpus.fingerprint, every).seconds
        if seconds is None:
            return f"{sentence}. No estimate of the time yet.", len(left)
        total += seconds * times
    return f"{sentence}, in about **{words.roughly(total)}**.", len(left)
