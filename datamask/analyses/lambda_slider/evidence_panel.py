"""What the stored ablations say of the current selection: marks on the track, and the controls next to Solve."""

from __future__ import annotations

from typing import Any

import streamlit as st

from datamask.ablation.cost import expected_seconds, first_question
from datamask.ablation.offers import instead_of, offers
from datamask.ablation.result import Method
from datamask.ablation.steering import DASHED, Track
from datamask.analyses.ablation import ablation_job
from datamask.analyses.ablation import form_panel as ablation_form
from datamask.config import SelectionConfig
from datamask.corpus import Corpus
from datamask.dashboard.drawing import words
from datamask.dashboard.shell import session
from datamask.dashboard.shell import view as views
from datamask.dashboard.tradeoff import below_random, evidence_track
from datamask.dashboard.tradeoff.evidence_track import TARGET
from datamask.dashboard.workspace import method_panel
from datamask.dashboard.workspace.current import Current
from datamask.dashboard.workspace.workspace import Workspace
from datamask.runs import ablation_results


def track_of(corpus: Corpus, settings: SelectionConfig) -> Track:
    """What the track shows for a selection of the open corpus, on the chosen target."""
    results = ablation_results.results(session.store().cache_dir, corpus.fingerprint)
    return evidence_track.track_of(results, settings, st.session_state.get(TARGET) or "")


def found(corpus: Corpus, settings: SelectionConfig, selected: SelectionConfig | None) -> dict[str, Any]:
    """What was found along lambda, for a map's slider.

    Args:
        settings: of the slider's problem. selected: of the current selection; None: there is none.
    """
    shown = track_of(corpus, settings)
    instead = [] if selected is None else instead_of(selected, shown, len(corpus))
    return evidence_track.header(shown, offers(shown), instead)


def controls(current: Current) -> None:
    """Draw the target and what its result offers; without a result the button that finds out."""
    workspace = current.workspace
    corpus, settings = workspace.corpus, workspace.asked
    if said := below_random.below_at(current.along.points, workspace.wanted):
        st.caption(f":material/warning: {said}", width="content")
    shown = track_of(corpus, settings)
    if shown.result is None:
        _find_out(corpus, settings, "Find out what helps")
        return
    offered = offers(shown)
    with st.popover("What helps", icon=":material/balance:"):
        if shown.result.several:
            labels = {"": f"All {len(shown.result.targets)} targets"}
            labels |= {target.name: target.label for target in shown.result.targets}
            if st.session_state.get(TARGET) not in labels:
                st.session_state[TARGET] = ""
            st.selectbox(
                "Target",
                list(labels),
                key=TARGET,
                format_func=labels.__getitem__,
                persist_state="session",
                help="What the model should be good at. The marks under the slider are for this target.",
            )
        for offer in offered:
            st.write(words.plain(offer.sentence, 300))
        st.caption(words.plain(shown.reason, 300))
        if shown.state == DASHED:
            _find_out(corpus, settings, "Find out for this selection")
        st.page_link(
            "pages/evidence.py",
            label="All methods and targets",
            icon=":material/arrow_forward:",
            query_params={**views.now().address, "answer": shown.result.question.key},
        )
    for offer in offered:
        if offer.method is not None and not offer.moves:
            _run(workspace, offer.method)


def _run(workspace: Workspace, method: Method) -> None:
    """The button that shows a method's selection, or starts it."""
    st.button(
        f"Run {method.label}",
        key=f"evidence_run_{method.name}",
        icon=":material/play_arrow:",
        type="tertiary",
        on_click=method_panel.open_method,
        args=(workspace, method, workspace.settings.select_ratio),
    )


def _find_out(corpus: Corpus, settings: SelectionConfig, label: str) -> None:
    """The button that starts the default ablation, with its minutes; nothing while one is under way."""
    if ablation_form.working(corpus):
        return
    question = first_question(settings.objective, evidence_track.ratio_of(settings))
    takes = words.roughly(expected_seconds(question, len(corpus)))
    st.button(
        f"{label} (about {takes})",
        key="evidence_find_out",
        icon=":material/balance:",
        type="tertiary",
        on_click=ablation_form.start,
        args=(corpus, ablation_job.Asked(question), session.store().cache_dir),
    )
