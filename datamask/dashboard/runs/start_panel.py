"""The rules of the next run, what it will cost either way, and the two buttons that start it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import streamlit as st

from datamask.config import RunConfig, SelectionConfig
from datamask.dashboard.analyses.overview import tables as overview
from datamask.dashboard.data.openings import OpenCorpus
from datamask.dashboard.drawing import words
from datamask.dashboard.runs import cost, form_panel, outcome, steering_panel
from datamask.dashboard.runs.form_panel import RunForm
from datamask.dashboard.shell import session
from datamask.dashboard.shell.presses import pressed
from datamask.errors import DatamaskError
from datamask.runs.store import Run
from datamask.runs.warm import warm_start


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
        st.markdown(cost.sentence_of_two(solve, learn, len(corpus), form.about), help=cost.details_of_two(solve, learn))
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
        run = begin(opened, runs, settings, len(rules.rules), form.name)
    except DatamaskError as error:
        st.error(words.sentence(error), icon=":material/error:")
    else:
        session.choose_run(run.id)
        st.rerun()


def begin(opened: OpenCorpus, runs: Sequence[Run], settings: SelectionConfig, rules: int, name: str = "") -> Run:
    """Make a run and queue it.

    Args:
        runs: earlier ones on the corpus, to start from. rules: how many it obeys. name: empty: made from the settings.

    Raises:
        StoreError: the runs folder cannot be written.
    """
    name = name or outcome.proposed_name(
        settings.objective, settings.lamb, settings.select_ratio, settings.estimator, settings.budget, rules
    )
    run = session.store().create(RunConfig(opened.config, settings, name))
    start_from = warm_start(settings, runs, opened.corpus.fingerprint)
    if start_from is not None:
        with run.writer() as writer:
            writer.update_facts(start_from=start_from)
    session.run_queue().submit(run.id)
    return run


def _price(settings: SelectionConfig, opened: OpenCorpus, runs: Sequence[Run]) -> cost.Cost:
    corpus = opened.corpus
    return cost.estimate(
        settings,
        len(corpus),
        corpus.dim,
        corpus.fingerprint,
        runs,
        overview.token_total(corpus),
        lambda count: overview.best_tokens(corpus, count),
    )


KEYS = {form_panel.SOLVE: "start", form_panel.LEARN: "learn"}

HELP = {
    form_panel.SOLVE: "The quickest way that comes with a proof of how near the best possible it ends, where there is "
    "one; another one can be chosen under More settings.",
    form_panel.LEARN: "The paper's way: candidate subsets are drawn, scored and reinforced, with the settings below.",
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
        help="Says above why it cannot start."
        if disabled
        else f"{HELP[way]} It runs in the background: you can leave this page, or close the browser.",
    )
