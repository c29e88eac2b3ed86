"""The sections of the Evidence page: lambdas judged by held-out text, compared runs by measures, parts and models."""

from __future__ import annotations

import streamlit as st

from datamask.dashboard.analyses.agreement import panel as agreement_panel
from datamask.dashboard.analyses.comparison import choice_panel as compared_runs
from datamask.dashboard.analyses.comparison import panel as comparison_panel
from datamask.dashboard.analyses.downstream import panel as downstream_panel
from datamask.dashboard.analyses.scoreboard import panel as scoreboard_panel
from datamask.dashboard.analyses.which_lambda import panel as lambda_panel
from datamask.dashboard.shell import session


def which_lambda() -> None:
    """Selections over lambda judged by text that none of them was made from, or by examples where there is none."""
    corpus = session.open_corpus_or_stop()
    cache_dir = session.store().cache_dir
    lambda_panel.follow(corpus)
    answers = lambda_panel.stored(corpus, cache_dir)
    controls, picture = st.columns([1, 2.9], gap="large")
    with controls:
        lambda_panel.form(corpus, cache_dir)
        answer = lambda_panel.choose(answers)
    with picture:
        searched = lambda_panel.search(corpus, cache_dir)
        if answer is not None:
            lambda_panel.show(answer)
        elif not searched:
            lambda_panel.nothing_yet(corpus)


def scoreboard() -> None:
    """The compared runs by measures, those that none of them was made for among them."""
    chosen = compared_runs.choose()
    scoreboard_panel.show(chosen.entries, chosen.runs, chosen.corpus, session.store().cache_dir)
    comparison_panel.draw_refused(chosen.refused)


def agreement() -> None:
    """Which samples of a compared run would come out again."""
    chosen = compared_runs.choose()
    agreement_panel.show(chosen.entries, chosen.runs, chosen.corpus, session.store().cache_dir)
    comparison_panel.draw_refused(chosen.refused)


def downstream() -> None:
    """Numbers of models that were trained on the runs."""
    chosen = compared_runs.choose()
    downstream_panel.show(chosen.everyone, chosen.ids, chosen.names)
    comparison_panel.draw_refused(chosen.refused)
