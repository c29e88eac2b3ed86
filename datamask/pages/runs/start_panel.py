"""The rules, what a run will cost either way, and the two buttons that start it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import streamlit as st

from datamask.analyses.steering import panel as steering_panel
from datamask.config import SelectionConfig
from datamask.corpus import Corpus
from datamask.dashboard.data.openings import OpenCorpus
from datamask.dashboard.drawing import words
from datamask.dashboard.runs import cost, form_panel, listing
from datamask.dashboard.runs.form_panel import RunForm
from datamask.dashboard.shell import session
from datamask.dashboard.tradeoff import below_random, kept_points, lambda_points, live
from datamask.dashboard.workspace import keeping
from datamask.dashboard.workspace.current import Current
from datamask.dashboard.workspace.workspace import Workspace
from datamask.errors import DatamaskError, OptionError
from datamask.runs.store import Run
from datamask.runs.warm import warm_start


def start(current: Current, runs: Sequence[Run], form: RunForm) -> None:
    """Draw the rules, the estimate and the two buttons; pressing one makes a run, queues it, and shows it.

    Args:
        current: what the page shows. runs: earlier runs on its corpus, newest first, to estimate from.
        form: what the form says.
    """
    workspace = current.workspace
    with st.container(gap="xxsmall"):
        steering_panel.listed(workspace, "**Rules**")
        steering_panel.refused(workspace.reason)
    ready = _priced(current, runs, form)
    learn = ready.get(form_panel.LEARN)
    start_from = None if learn is None else warm_start(learn, runs, workspace.corpus.fingerprint)
    before = next((run for run in runs if run.id == start_from), None)
    if before is not None:
        st.checkbox(
            f"Continue from {words.named(listing.name_of(before), 60)}",
            key=CONTINUE,
            help="Learning masks starts where this run ended. It takes fewer steps, and its curve starts higher.",
        )
    columns = st.columns(2, gap="small")
    for place, way, label, icon in (
        (columns[0], form_panel.SOLVE, form.solver, ":material/bolt:"),
        (columns[1], form_panel.LEARN, "Learn masks", ":material/school:"),
    ):
        with place:
            st.button(
                label,
                key=KEYS[way],
                icon=icon,
                width="stretch",
                disabled=way not in ready,
                on_click=_start,
                args=(workspace, runs, way, form.name),
            )


def _priced(current: Current, runs: Sequence[Run], form: RunForm) -> dict[str, SelectionConfig]:
    """The ways that can be started with their settings, once what they cost was said."""
    workspace, selection = current.workspace, current.selection
    opened, corpus = workspace.opened, workspace.corpus
    ready: dict[str, SelectionConfig] = {}
    prices: dict[str, cost.Cost] = {}
    wrong: list[str] = []
    for way, settings in ((form_panel.SOLVE, form.solve), (form_panel.LEARN, form.learn)):
        if settings is None or workspace.reason:
            continue
        try:
            prices[way] = _price(settings, opened, runs)
            ready[way] = settings
        except DatamaskError as error:
            wrong.append(words.sentence(error))
    for sentence in dict.fromkeys(wrong):
        st.error(sentence, icon=":material/error:")
    if prices:
        solve, learned = prices.get(form_panel.SOLVE), prices.get(form_panel.LEARN)
        shown = None if selection is None else selection.count
        if said := cost.sentence_of_two(solve, learned, len(corpus), shown):
            st.markdown(said, help="  \n".join([*HELP, cost.details_of_two(solve, learned)]))
        if form.training is not None:
            times = max(corpus.provenance.total_rows, len(corpus)) / max(corpus.provenance.rows_read, len(corpus))
            st.markdown(cost.epochs_of_two(solve, learned, form.training, times))
        solving = ready.get(form_panel.SOLVE)
        if solving is not None and (said := below_random.warning(corpus, solving, runs, session.store().cache_dir)):
            st.caption(f":material/warning: {said}")
    return ready


def _start(drawn: Workspace, runs: Sequence[Run], way: str, name: str) -> None:
    workspace = drawn.renewed()
    try:
        settings = form_panel.settings_now(workspace.asked, way)
    except OptionError as error:
        st.session_state["trouble"] = str(error)
        return
    if not workspace.reason:
        continues = way == form_panel.LEARN and st.session_state.get(CONTINUE)
        keeping.start(workspace, settings, name, runs if continues else ())


def _price(settings: SelectionConfig, opened: OpenCorpus, runs: Sequence[Run]) -> cost.Cost:
    corpus = opened.corpus
    return cost.estimate(
        settings,
        len(corpus),
        corpus.dim,
        corpus.fingerprint,
        runs,
        cost.token_total(corpus),
        lambda count, lamb: cost.token_range(corpus, _typical(corpus.identity, corpus), count, lamb),
        _solved(corpus, settings),
    )


@st.cache_resource(max_entries=2, show_spinner=False)
def _typical(identity: str, _corpus: Corpus) -> np.ndarray:
    """The similarity of each row to the mean row."""
    similarity: np.ndarray = _corpus.features @ _corpus.features.mean(axis=0)
    return similarity


def _solved(corpus: Corpus, settings: SelectionConfig) -> dict[float, float]:
    """Tokens of what is solved of this problem at the nearest lambdas, at most two, by lambda."""
    problem = lambda_points.settings_of(settings)
    points = kept_points.of_problem(corpus, problem, session.store().cache_dir)
    points = points or tuple(lambda_points.solved_by(live.find(corpus, problem)))
    below = [point for point in points if point.lamb <= settings.lamb][-1:]
    above = [point for point in points if point.lamb >= settings.lamb][:1]
    if corpus.lengths is None:
        return {}
    return {point.lamb: float(np.nansum(corpus.lengths[point.mask])) for point in (*below, *above)}


KEYS = {form_panel.SOLVE: "start", form_panel.LEARN: "learn"}

CONTINUE = "learn_continue"
"""Of the session: whether Learn masks continues from an earlier run."""

HELP = (
    "*Solve* selects with the method chosen as *Method of Solve* under *More settings*.",
    "*Learn masks* repeats the paper's method: samples candidate subsets (masks), scores them and learns which rows to "
    "keep.",
)
