"""The rules of the next run, what it will cost either way, and the two buttons that start it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import streamlit as st

from datamask.analyses.steering import panel as steering_panel
from datamask.config import SelectionConfig
from datamask.dashboard.data.openings import OpenCorpus
from datamask.dashboard.drawing import words
from datamask.dashboard.runs import cost, form_panel
from datamask.dashboard.runs.form_panel import RunForm
from datamask.dashboard.shell import session
from datamask.dashboard.shell.presses import pressed
from datamask.dashboard.tradeoff import below_random
from datamask.dashboard.workspace import keeping
from datamask.errors import DatamaskError
from datamask.runs.store import Run


def start(opened: OpenCorpus, runs: Sequence[Run], form: RunForm) -> None:
    """Draw the rules, the estimate and the two buttons; pressing one makes a run, queues it, and shows it.

    Args:
        opened: the open corpus. runs: earlier runs on it, newest first, to estimate from.
        form: what the form says.
    """
    corpus = opened.corpus
    with st.container(gap="xxsmall"):
        rules = steering_panel.listed(corpus, "**Rules for the next run**")
    ready: dict[str, SelectionConfig] = {}
    prices: dict[str, cost.Cost] = {}
    refused: list[str] = []
    wrong: list[str] = []
    for way, settings in ((form_panel.SOLVE, form.solve), (form_panel.LEARN, form.learn)):
        if settings is None:
            continue
        settings, reason = steering_panel.applied(settings, corpus)
        if reason:
            refused.append(reason)
            continue
        try:
            prices[way] = _price(settings, opened, runs)
            ready[way] = settings
        except DatamaskError as error:
            wrong.append(words.sentence(error))
    for reason in dict.fromkeys(refused):
        steering_panel.refused(reason)
    for sentence in dict.fromkeys(wrong):
        st.error(sentence, icon=":material/error:")
    if prices:
        solve, learn = prices.get(form_panel.SOLVE), prices.get(form_panel.LEARN)
        about = [f"*{WAYS[way]}*: {HELP[way]}" for way in prices]
        st.markdown(
            cost.sentence_of_two(solve, learn, len(corpus)),
            help="  \n".join([*about, cost.details_of_two(solve, learn)]),
        )
        if form.training is not None:
            times = max(corpus.provenance.total_rows, len(corpus)) / max(corpus.provenance.rows_read, len(corpus))
            st.markdown(cost.epochs_of_two(solve, learn, form.training, times))
        solving = ready.get(form_panel.SOLVE)
        if solving is not None and (said := below_random.warning(corpus, solving, runs, session.store().cache_dir)):
            st.caption(f":material/warning: {said}")
    chosen_way = None
    columns = st.columns(2, gap="small")
    for place, way, label, icon in (
        (columns[0], form_panel.SOLVE, form.solver, ":material/bolt:"),
        (columns[1], form_panel.LEARN, "Learn masks", ":material/school:"),
    ):
        with place:
            # a press may have been on its way while the settings came to contradict each other
            if _button(way, label, icon, way not in ready) and way in ready:
                chosen_way = way
    if chosen_way is None:
        return
    settings = ready[chosen_way]
    try:
        run = keeping.begin(opened, runs, settings, len(rules.rules), form.name)
    except DatamaskError as error:
        st.error(words.sentence(error), icon=":material/error:")
    else:
        form_panel.note_problem(settings)
        session.choose_run(run.id)
        st.rerun()


def _price(settings: SelectionConfig, opened: OpenCorpus, runs: Sequence[Run]) -> cost.Cost:
    corpus = opened.corpus
    return cost.estimate(
        settings,
        len(corpus),
        corpus.dim,
        corpus.fingerprint,
        runs,
        cost.token_total(corpus),
        lambda count: cost.best_tokens(corpus, count),
    )


KEYS = {form_panel.SOLVE: "start", form_panel.LEARN: "learn"}

WAYS = {form_panel.SOLVE: "Solve", form_panel.LEARN: "Learn masks"}

HELP = {
    form_panel.SOLVE: "selects with the method chosen as *Method of Solve* under *More settings*.",
    form_panel.LEARN: "samples candidate subsets (masks), scores them and learns which rows to keep.",
}


def _button(way: str, label: str, icon: str, disabled: bool) -> bool:
    return pressed(
        label,
        KEYS[way],
        partial(form_panel.choose_way, way),
        type="primary",
        icon=icon,
        width="stretch",
        disabled=disabled,
    )
