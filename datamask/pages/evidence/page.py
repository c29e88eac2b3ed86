"""Evidence: methods compared on targets, compared runs by measures and by parts."""

from __future__ import annotations

import streamlit as st

from datamask.analyses.ablation import form_panel, panel
from datamask.dashboard.shell import session
from datamask.dashboard.shell.option_control import KEPT, one_of
from datamask.dashboard.workspace.current import Current


def ablation(current: Current | None) -> None:
    """Methods compared on held-out text of one target or of several, or by features where there are no texts."""
    corpus = session.open_corpus_or_stop()
    assert current is not None, "of an open corpus there is a view"
    cache_dir = session.store().cache_dir
    panel.follow(corpus)
    controls, picture = st.columns([1, 2.9], gap="large")
    with controls, st.container(key="below_evidence"):
        form_panel.form(corpus, current.workspace.settings, cache_dir)
        found = panel.choose(panel.stored(corpus, cache_dir))
    with picture:
        at_work = panel.work(corpus, cache_dir)
        if found is not None:
            panel.show(found, corpus, cache_dir)
        elif not at_work:
            panel.nothing_yet(corpus)


def of_runs(name: str) -> None:
    """The compared runs by measures that none of them was made for, or which rows of one would come out again."""
    # loaded for this tab alone: the first one is drawn sooner
    from datamask.analyses.comparison import choice_panel
    from datamask.analyses.comparison import panel as comparison_panel
    from datamask.analyses.scoreboard import panel as scoreboard_panel
    from datamask.analyses.scoreboard import stability_panel

    show, needed = {METRICS: (scoreboard_panel.show, 2), STABILITY: (stability_panel.show, 1)}[name]
    chosen = choice_panel.choose(needed=needed)
    show(chosen.entries, chosen.runs, chosen.corpus, session.store().cache_dir)
    comparison_panel.draw_refused(chosen.refused)


TAB, HELPS = "evidence_tab", "What helps"
METRICS, STABILITY = OF_RUNS = ("Independent metrics", "Stability")


def show(current: Current | None) -> None:
    """Draw what is chosen, and nothing else.

    Args:
        current: the current selection; None: no corpus is open.
    """
    chosen = one_of("Evidence", [HELPS, *OF_RUNS], TAB, label_visibility="collapsed", **KEPT)
    if chosen == HELPS:
        ablation(current)
    else:
        of_runs(chosen)
