"""The rules of the next run, what it will cost, and the button that starts it."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from datamask.config import RunConfig, SelectionConfig
from datamask.dashboard import words
from datamask.dashboard.openings import OpenCorpus
from datamask.dashboard.ui import session, steering_panel
from datamask.dashboard.views import cost, outcome, overview
from datamask.errors import DatamaskError
from datamask.runs.store import Run
from datamask.runs.warm import warm_start


def start(opened: OpenCorpus, runs: Sequence[Run], settings: SelectionConfig, name: str) -> None:
    """Draw the rules, the estimate and the Start button; pressing it makes a run, queues it, and shows it.

    Args:
        opened: the open corpus. runs: earlier runs on it, newest first, to estimate from.
        settings: of the form. name: of the run, made from the settings where it is empty.
    """
    corpus = opened.corpus
    with st.container(gap="xxsmall"):
        rules = steering_panel.listed(corpus, "**Rules for the next run**")
    settings, reason = steering_panel.applied(settings, corpus)
    if reason:
        steering_panel.refused(reason)
        _button(disabled=True)
        return
    try:
        price = cost.estimate(
            settings,
            len(corpus),
            corpus.dim,
            corpus.fingerprint,
            runs,
            overview.token_total(corpus),
            lambda count: overview.best_tokens(corpus, count),
        )
    except DatamaskError as error:
        st.error(words.sentence(error), icon=":material/error:")
        return
    st.markdown(cost.sentence(price, len(corpus)), help=cost.details(price))
    if not _button():
        return
    name = name or outcome.proposed_name(
        settings.objective, settings.lamb, settings.select_ratio, settings.estimator, settings.budget, len(rules.rules)
    )
    try:
        run = session.store().create(RunConfig(opened.config, settings, name))
        start_from = warm_start(settings, runs, corpus.fingerprint)
        if start_from is not None:
            with run.writer() as writer:
                writer.update_facts(start_from=start_from)
        session.run_queue().submit(run.id)
    except DatamaskError as error:
        st.error(words.sentence(error), icon=":material/error:")
    else:
        session.choose_run(run.id)
        st.rerun()


def _button(disabled: bool = False) -> bool:
    return st.button(
        "Start",
        type="primary",
        icon=":material/play_arrow:",
        width="stretch",
        key="start",
        disabled=disabled,
        help="Says above why it cannot start."
        if disabled
        else "Learns in the background. You can leave this page, or close the browser.",
    )
