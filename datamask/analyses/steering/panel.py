"""The rules of the view: made from what the Map shows, listed with a way to remove each, obeyed by all it selects."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import streamlit as st

from datamask.config import Quota
from datamask.dashboard.drawing import words
from datamask.dashboard.linked import columns as linked_columns
from datamask.dashboard.linked.brushing import Linked
from datamask.dashboard.map.filters import Among
from datamask.dashboard.shell import view as views
from datamask.dashboard.workspace import rules as kept_rules
from datamask.dashboard.workspace.workspace import Workspace, pose
from datamask.errors import DatamaskError
from datamask.runs.rule_book import BAN, GIVEN, PIN, QUOTA, Rule, share_words

SAID = {PIN: "Pinned", BAN: "Banned", GIVEN: "You have", QUOTA: "Quota"}
ICONS = {PIN: ":material/keep:", BAN: ":material/block:", GIVEN: ":material/inventory_2:", QUOTA: ":material/percent:"}
OFFERS = {
    PIN: ("Pin these {:,}", "select all of these rows."),
    BAN: ("Ban these {:,}", "select none of these rows."),
    GIVEN: (
        "I have these {:,}",
        "select rows that complement these, and export only the new ones.",
    ),
}


def offer(workspace: Workspace, view: Linked, passing: np.ndarray, beside: Callable[[], None] = lambda: None) -> None:
    """Buttons that make a rule of the samples that are shown, and the rules made so far.

    Args:
        passing: bool ``(N,)``.
        beside: draws what else there is to do with them, on the same line.
    """
    count = int(passing.sum())
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        st.markdown(
            "**Rules**",
            width="content",
            help="Filter rows, then press a rule. "
            + " ".join(f"*{label.removesuffix(' {:,}')}*: {about}" for label, about in OFFERS.values())
            + " *Quota*: limit the share of a group in the selection.",
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
        columns = _columns(view)
        if columns:
            with st.popover(
                "Quota",
                icon=ICONS[QUOTA],
                type="tertiary",
            ):
                _quota(workspace, view, columns)
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
    for place, rule in enumerate(book.rules):
        st.button(
            words.plain(rule_line(rule), 120),
            key=f"rule_{place}",
            icon=":material/close:",
            type="tertiary",
            on_click=_remove,
            args=(workspace, rule),
        )


def rule_line(rule: Rule) -> str:
    """A rule on one line."""
    if rule.quota is not None:
        return f"{rule.said}: {share_words(rule.quota)}"
    return f"{SAID[rule.kind]} {rule.count:,}: {rule.said}"


def refused(reason: str) -> None:
    """Say why no selection can obey the rules; nothing where there is no reason."""
    if reason:
        st.error(f"No selection satisfies these rules. {words.sentence(reason)}.", icon=":material/rule:")


def _quota(workspace: Workspace, view: Linked, columns: list[str]) -> None:
    corpus = view.corpus
    conditions = [condition for condition in view.filters.conditions if isinstance(condition, Among)]
    shown = {name: linked_columns.shown_name(corpus, name) for name in columns}
    among = next((condition for condition in conditions if condition.name in shown.values()), None)
    bound = next((rule.quota for rule in workspace.rules.of(QUOTA) if rule.quota is not None), None)
    if bound is not None:  # quotas divide the selection by one column
        columns = [name for name in columns if name == bound.column] or columns
    start = next((place for place, name in enumerate(columns) if among is not None and shown[name] == among.name), 0)
    column = st.selectbox("Column", columns, start, key=f"quota_column_{start}", help="Quotas apply to one column.")
    codes, names = view.rows.classes[shown[column]]
    counts = np.bincount(codes[codes >= 0], minlength=len(names))
    order = [str(names[place]) for place in np.argsort(-counts, kind="stable") if counts[place]]
    wanted = among.names[0] if among is not None and among.name == shown[column] else None
    place = order.index(wanted) if wanted in order else 0
    value = st.selectbox(
        "Group",
        order,
        place,
        key=f"quota_value_{column}_{place}",
    )
    count = int(counts[list(map(str, names)).index(value)])
    share, counted, of = count / len(codes), "selection", "the corpus"
    if workspace.settings.budget is not None and corpus.lengths is not None:
        held = corpus.lengths[codes == list(map(str, names)).index(value)].sum()
        share, counted, of = float(held / corpus.lengths.sum()), "tokens", "all tokens"
    st.caption(f"{count:,} rows, {words.percent(share, 1)} of {of}.")
    low = st.number_input(
        f"At least, % of the {counted}",
        0.0,
        100.0,
        round(100 * share, 1),
        1.0,
        format="%.4g",
        key=f"quota_low_{value}",
    )
    high = st.number_input(
        f"At most, % of the {counted}",
        0.0,
        100.0,
        100.0,
        1.0,
        format="%.4g",
        key=f"quota_high_{value}",
    )
    st.button(
        "Add quota",
        key="rule_quota",
        icon=":material/add:",
        disabled=low > high,
        on_click=_add_quota,
        args=(workspace, column, value, count),
    )


def _columns(view: Linked) -> list[str]:
    """Columns of the shards that divide the samples into named groups."""
    return [
        column.name
        for column in view.corpus.metadata_columns.values()
        if column.kind == "class" and len(view.rows.classes[linked_columns.shown_name(view.corpus, column.name)][1]) > 1
    ]


def _add_rows(workspace: Workspace, kind: str, passing: np.ndarray, description: str) -> None:
    rows = np.flatnonzero(passing)
    try:
        rule = Rule(kind, description[:200], len(rows), kept_rules.store().keep_rows(workspace.corpus, rows))
    except DatamaskError as error:
        st.session_state["trouble"] = str(error)
        return
    _add(workspace, rule)


def _add_quota(workspace: Workspace, column: str, value: str, count: int) -> None:
    # read now, not when the button was drawn: a number typed just before the press was not drawn yet
    low, high = (st.session_state[f"quota_{end}_{value}"] / 100 for end in ("low", "high"))
    try:
        rule = Rule(QUOTA, f"{column} {value}", count, quota=Quota(column, value, low, high))
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
