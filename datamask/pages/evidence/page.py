"""Evidence: methods compared on targets, compared runs by measures and by parts."""

from __future__ import annotations

import streamlit as st

from datamask.analyses.ablation import form_panel as ablation_form
from datamask.analyses.ablation import panel as ablation_panel
from datamask.analyses.agreement import panel as agreement_panel
from datamask.analyses.comparison import choice_panel as compared_runs
from datamask.analyses.comparison import panel as comparison_panel
from datamask.analyses.scoreboard import panel as scoreboard_panel
from datamask.dashboard.shell import session


def ablation() -> None:
    """Methods compared on held-out text of one target or of several, or by features where there are no texts."""
    corpus = session.open_corpus_or_stop()
    cache_dir = session.store().cache_dir
    ablation_panel.follow(corpus)
    controls, picture = st.columns([1, 2.9], gap="large")
    with controls, st.container(key="below_evidence"):
        ablation_form.form(corpus, cache_dir)
        found = ablation_panel.choose(ablation_panel.stored(corpus, cache_dir))
    with picture:
        at_work = ablation_panel.work(corpus, cache_dir)
        if found is not None:
            ablation_panel.show(found, corpus, cache_dir)
        elif not at_work:
            ablation_panel.nothing_yet(corpus)


def scoreboard() -> None:
    """The compared runs by measures, those that none of them was made for among them."""
    chosen = compared_runs.choose()
    scoreboard_panel.show(chosen.entries, chosen.runs, chosen.corpus, session.store().cache_dir)
    comparison_panel.draw_refused(chosen.refused)


def agreement() -> None:
    """Which samples of a compared run would come out again."""
    chosen = compared_runs.choose(needed=1)
    agreement_panel.show(chosen.entries, chosen.runs, chosen.corpus, session.store().cache_dir)
    comparison_panel.draw_refused(chosen.refused)


TAB, OF_RUNS = "evidence_tab", ("Independent metrics", "Stability")
DRAWN = dict(zip(("What helps", *OF_RUNS), (ablation, scoreboard, agreement)))


def show() -> None:
    """Draw what is chosen, and nothing else."""
    chosen = st.segmented_control(
        "Evidence",
        list(DRAWN),
        default="What helps",
        required=True,
        key=TAB,
        bind="query-params",
        persist_state="session",
        label_visibility="collapsed",
    )
    DRAWN[chosen]()
