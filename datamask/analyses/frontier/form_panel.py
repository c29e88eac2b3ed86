"""Next to the frontier and the sweeps: what to sweep, Start, its progress with a Stop, and the baselines."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import streamlit as st

from datamask import catalogue
from datamask.analyses.frontier import sweeping, tables
from datamask.config import CorpusConfig, SelectionConfig
from datamask.dashboard.data.openings import OpenCorpus
from datamask.dashboard.drawing import words
from datamask.dashboard.runs import cost, listing, outcome
from datamask.dashboard.runs import sweep_kinds as kinds
from datamask.dashboard.shell import background, session
from datamask.dashboard.workspace.current import Current
from datamask.errors import DatamaskError
from datamask.options import OPTIONS
from datamask.runs.store import Run
from datamask.runs.varying import Plan, Point
from datamask.work.worker import worker

COUNTS = (5, 11, 21, 41)
QUICK = "pairwise"
"""Solved within seconds, and its unreachable side is proved."""

COPIES = {"none": "Keep all", "exact": "Keep the best one"}

SWEEPING = background.Look("stop_sweep", beneath=True, every=1.0)


@dataclass(frozen=True)
class Shared:
    """What all of them ask for first: objectives, ratio and what to do with copies."""

    objectives: tuple[str, ...]
    ratio: float
    collapse: str

    @property
    def options(self) -> dict:
        """As options of a selection."""
        return {"select_ratio": self.ratio, "collapse": self.collapse}


def shared(opened: OpenCorpus, several: bool, current: Current | None, without: Sequence[str] = ()) -> Shared:
    """The controls that all views have.

    Args:
        several: whether more than one objective may be chosen.
        current: what the page shows. Its objective is chosen until a person chooses, so that the curve goes through
            this selection. One alone: a second takes as long again, and is one press away.
        without: options that are not asked for here, because they vary; they have their default.
    """
    names = [entry.name for entry in catalogue.OBJECTIVES]
    started = "" if current is None else current.workspace.settings.objective
    started = started if started in names else QUICK  # a sum of objectives has no curve here
    about = "Each objective has its own 0 % and 100 %."
    if "objective" in without:
        chosen = [names[0]]
    elif several:
        if "frontier_objectives" not in st.session_state:
            st.session_state["frontier_objectives"] = [started]
        chosen = st.pills(
            "Diversity objectives",
            names,
            selection_mode="multi",
            persist_state="session",
            key="frontier_objectives",
            wrap=True,
            help=about,
            # what stands in brackets would be cut off in the narrow column
            format_func=lambda name: outcome.objective_choice(name).partition(" (")[0],
        )
    else:
        remembered = [name for name in st.session_state.get("frontier_objectives", []) if name in names]
        first = names.index((remembered or [started])[0])
        chosen = [
            st.selectbox(
                "Diversity objective",
                names,
                first,
                key=f"frontier_objective_{len(names)}",
                help=about,
                format_func=outcome.objective_choice,
                persist_state="session",
            )
        ]
    share = 0.3
    if "select_ratio" not in without:
        share = st.number_input(
            "Select ratio",
            0.0001,
            0.9999,
            0.3,
            step=0.05,
            format="%.4g",
            key="ratio",
            bind="query-params",
            persist_state="session",
            help="Each ratio has its own 0 % and 100 %.",
        )
    collapse = "none"
    if "collapse" not in without:
        collapse = st.selectbox(
            "Exact duplicates",
            tuple(COPIES),
            key="frontier_copies",
            persist_state="session",
            format_func=COPIES.__getitem__,
            help=OPTIONS["collapse"].help,
        )
    return Shared(tuple(chosen), float(share), collapse)


def lambda_points(settings: Shared) -> tuple[Point, ...]:
    """The control of a sweep over lambda, and its points."""
    count = st.select_slider(
        "Number of λ values",
        COUNTS,
        11,
        key="frontier_count",
        persist_state="session",
        help="Evenly spaced from 0 to 1. Stored runs are not solved again.",
    )
    return sweeping.along_lambda(settings.objectives, sweeping.lambdas(count), **settings.options)


def planned(plans: Callable[[], list[Plan]]) -> list[Plan]:
    """What `plans` gives; none where the settings contradict each other, which is said."""
    try:
        return plans()
    except DatamaskError as error:
        st.error(words.sentence(error), icon=":material/error:")
        return []


def start(
    opened: OpenCorpus,
    runs: Sequence[Run],
    plans: Sequence[Plan],
    vary: str,
) -> None:
    """What the sweep will cost and its Start button, or its progress where one is under way.

    Args:
        plans: one per corpus; empty: something is missing, which was said.
        vary: what it varies, of `kinds`.
    """
    fingerprint = opened.corpus.fingerprint
    key = sweeping.key_of(fingerprint)
    if background.under_way(key, SWEEPING):
        return
    count = sum(len(plan.points) for plan in plans)
    if count:
        sentence, count = price(opened, runs, plans)
        st.markdown(sentence)
    st.button(
        "Start the sweep",
        type="primary",
        icon=":material/play_arrow:",
        width="stretch",
        key="start_sweep",
        disabled=not count,
        on_click=begin,
        args=(opened, plans, vary),
    )
    background.ending(key, "Stopped. Finished points are kept; Start continues.")
    job = worker().find(key)
    if job is not None and job.result:
        st.warning(f"A point failed: {words.sentence(job.result)}")


def begin(opened: OpenCorpus, plans: Sequence[Plan], vary: str = kinds.LAMBDA) -> None:
    """Start a sweep on the open corpus, or join the one under way."""
    sweeping.start(session.runs_dir(), opened.corpus.fingerprint, plans, vary)


def working(opened: OpenCorpus) -> bool:
    """Whether a sweep is under way on the open corpus."""
    return background.working(sweeping.key_of(opened.corpus.fingerprint))


def plan_of(opened: OpenCorpus, points: Sequence[Point]) -> list[Plan]:
    """One plan per objective and ratio, so that each has a name that says them."""
    groups: dict[str, list[Point]] = {}
    for point in points:
        groups.setdefault(sweeping.plan_name(point), []).append(point)
    return [Plan(opened.config, tuple(group), name) for name, group in groups.items()]


def baselines(opened: OpenCorpus, survey: tables.Survey, settings: Shared) -> None:
    """Buttons for the baselines that the picture still lacks, for the chosen objectives and ratio."""
    have = {
        (spot.settings.objective, spot.settings.estimator)
        for spot in survey.named
        if spot.settings.select_ratio == settings.ratio and spot.settings.collapse == settings.collapse
    }
    missing = [
        name
        for name in sweeping.BASELINES
        if any(
            (objective, name) not in have and catalogue.estimator(name).selects_by(objective)
            for objective in settings.objectives
        )
    ]
    if not missing or not settings.objectives:
        return
    with st.popover(
        "Add a baseline",
        icon=":material/add:",
        width="stretch",
    ):
        for name in missing:
            entry = catalogue.estimator(name)
            st.button(
                entry.label.removesuffix(" (baseline)"),
                key=f"baseline_{name}",
                width="stretch",
                disabled=working(opened),
                on_click=_add_baseline,
                args=(opened, name, settings),
            )


def _add_baseline(opened: OpenCorpus, name: str, settings: Shared) -> None:
    try:
        points = sweeping.baselines([name], settings.objectives, **settings.options)
        sweeping.start(session.runs_dir(), opened.corpus.fingerprint, plan_of(opened, points))
    except DatamaskError as error:
        st.session_state["trouble"] = str(error)


def price(opened: OpenCorpus, runs: Sequence[Run], plans: Sequence[Plan]) -> tuple[str, int]:
    """What a sweep will take, in words, and how many of its points are still to be computed.

    Args:
        runs: on the open corpus; on parts of it, those with the very settings of a plan are looked for.
    """
    # runs on other corpora too: the first sweep on a new one has nothing else to be estimated from
    every = listing.readable(session.store())
    left: dict[str, list[tuple[Plan, Point]]] = {}
    total = 0
    for plan in plans:
        corpus_runs = (
            runs if plan.corpus == opened.config else [run for run in every if run.config.corpus == plan.corpus]
        )
        done = {run.config.selection for run in corpus_runs if run.status().state == "done"}
        total += len(plan.points)
        for point in plan.points:
            if point.selection not in done:
                left.setdefault(point.selection.objective, []).append((plan, point))
    count = sum(map(len, left.values()))
    if not count:
        return f"All {total:,} runs are stored.", 0
    sentence = f"**{count:,}** run{'s' if count > 1 else ''}"
    if len(left) > 1:
        sentence += ": " + ", ".join(
            f"{len(pairs):,} of {words.plain(outcome.objective_label(name), 60)}" for name, pairs in left.items()
        )
    sentence += f" (stored already: {total - count:,})" if count < total else ""
    # neither lambda nor seed changes how long a point takes, and there may be hundreds of them
    kinds = Counter(
        (plan.corpus, replace(point.selection, lamb=0.5, seed=0)) for pairs in left.values() for plan, point in pairs
    )
    total_seconds = 0.0
    for kind, times in kinds.items():
        seconds = _seconds(opened, *kind, every)
        if seconds is None:
            return f"{sentence}. No estimate of the time yet.", count
        total_seconds += seconds * times
    return f"{sentence}, in about **{words.roughly(total_seconds)}**.", count


def _seconds(opened: OpenCorpus, on: CorpusConfig, settings: SelectionConfig, runs: Sequence[Run]) -> float | None:
    """About how long one run takes, on the open corpus or on a part of it."""
    corpus, whole = opened.corpus, on == opened.config
    rows = len(corpus) if whole else on.rows or len(corpus)
    return cost.estimate(settings, rows, corpus.dim, corpus.fingerprint if whole else "", runs).seconds
