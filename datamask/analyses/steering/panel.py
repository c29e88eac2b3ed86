"""The rules of the view: made from what the Map shows, listed with a way to remove each, obeyed by all it selects."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import streamlit as st

from datamask.analyses.steering import mixture_panel
from datamask.dashboard.drawing import words
from datamask.dashboard.linked.brushing import Linked
from datamask.dashboard.shell import view as views
from datamask.dashboard.workspace import rules as kept_rules
from datamask.dashboard.workspace.workspace import Workspace, pose
from datamask.errors import DatamaskError
from datamask.runs.rule_book import BAN, GIVEN, PIN, Rule, share_words

SAID = {PIN: "Pinned", BAN: "Banned", GIVEN: "You have"}
ICONS = {PIN: ":material/keep:", BAN: ":material/block:", GIVEN: ":material/inventory_2:"}
OFFERS = {
    PIN: ("Pin these {:,}", "select all of these rows."),
    BAN: ("Ban these {:,}", "select none of these rows."),
    GIVEN: (
        "I have these {:,}",
        "select rows that complement these, and export only the new ones.",
    ),
}


def offer(
    workspace: Workspace,
    view: Linked,
    passing: np.ndarray,
    selected: np.ndarray | None,
    beside: Callable[[], None] = lambda: None,
) -> None:
    """Buttons that make a rule of the samples that are shown, and the rules made so far.

    Args:
        passing: bool ``(N,)``. selected: bool ``(N,)``; None: nothing is selected yet.
        beside: draws what else there is to do with them, on the same line.
    """
    count = int(passing.sum())
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        st.markdown(
            "**Rules**",
            width="content",
            help="Filter rows, then press a rule. "
            + " ".join(f"*{label.removesuffix(' {:,}')}*: {about}" for label, about in OFFERS.values())
            + " *Mixture*: the share of each group in the selection.",
        )
        if view.filters and count:
            description = ", ".join(condition.description for condition in view.filters.conditions)
            for kind, (label, _) in OFFERS.items():
                st.button(
                    label.format(count),
                    key=f"rule_{kind}",
                    icon=ICONS[kind],
                    type="tertiary",
                    on_click=_add_rows,
                    args=(workspace, kind, passing, description),
                )
        else:
            st.caption("Filter rows to pin or ban them.", width="content")
        mixture_panel.offer(workspace, view, selected)
        beside()
        # on the same line: what is made of these buttons is seen without scrolling
        _made(workspace)
    refused(workspace.reason)


def _made(workspace: Workspace) -> None:
    """The rules made so far, and the ways to a run under them."""
    if not workspace.rules.rules:
        return
    reason = workspace.reason
    listed(workspace)
    views.page_link("pages/runs.py", "Start a run under these rules", disabled=bool(reason))
    if reason:
        views.page_link("pages/runs.py", "Change the settings", ":material/tune:")


def listed(workspace: Workspace, heading: str = "") -> None:
    """The rules made so far, each with a button that removes it; nothing where there is none."""
    book = workspace.rules
    if book.rules and heading:
        st.markdown(heading)
    quotas = [rule.quota for rule in book.rules if rule.quota is not None]
    for place, rule in enumerate(rule for rule in book.rules if rule.quota is None):
        said = f"{SAID[rule.kind]} {rule.count:,}: {rule.said}"
        _removable(said, f"rule_{place}", _remove, workspace, rule)
    if quotas:
        shares = ", ".join(f"{quota.value} {share_words(quota)}" for quota in quotas)
        _removable(f"Mixture by {quotas[0].column}: {shares}", "rule_mixture", mixture_panel.remove, workspace)


def _removable(said: str, key: str, remove: Callable[..., None], *args: object) -> None:
    icon = ":material/close:"
    st.button(words.plain(said, 120), key=key, icon=icon, type="tertiary", on_click=remove, args=args)


def refused(reason: str) -> None:
    """Say why no selection can obey the rules; nothing where there is no reason."""
    if reason:
        st.error(f"No selection satisfies these rules. {words.sentence(reason)}.", icon=":material/rule:")


def _add_rows(workspace: Workspace, kind: str, passing: np.ndarray, description: str) -> None:
    rows = np.flatnonzero(passing)
    try:
        rule = Rule(kind, description[:200], len(rows), kept_rules.store().keep_rows(workspace.corpus, rows))
    except DatamaskError as error:
        st.session_state["trouble"] = str(error)
        return
    _add(workspace, rule)


def _add(drawn: Workspace, rule: Rule) -> None:
    workspace = drawn.renewed()
    pose(workspace.asked, workspace.rules.adding(rule))


def _remove(drawn: Workspace, rule: Rule) -> None:
    workspace = drawn.renewed()
    if rule in workspace.rules.rules:
        pose(workspace.asked, workspace.rules.without(workspace.rules.rules.index(rule)))
