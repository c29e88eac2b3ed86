"""The mixture: the groups of one column, and the share of the selection that each of them is to have."""

from __future__ import annotations

import contextlib
import re
from zlib import crc32

import numpy as np
import pandas as pd
import pyarrow as pa
import streamlit as st

from datamask.config import Quota
from datamask.dashboard.drawing import words
from datamask.dashboard.linked import columns as linked_columns
from datamask.dashboard.linked.brushing import Linked
from datamask.dashboard.map.filters import Among
from datamask.dashboard.shell import tables
from datamask.dashboard.workspace import rules as kept_rules
from datamask.dashboard.workspace.workspace import Workspace, pose, without_rules
from datamask.errors import DatamaskError, OptionError
from datamask.runs.rule_book import GIVEN, QUOTA, share_words

COLUMN, TABLE, WANTED = "mixture_column", "mixture_table", "share wanted"
GROUPS_AT_ONCE, WIDTH = 8, 520

SHARE = r"\s*(\d+(?:\.\d+)?)\s*%?\s*"
RANGE = re.compile(rf"{SHARE}(?:to{SHARE})?")
"""``60``, ``60 %``, ``10 to 30`` or ``10 % to 30 %``, as `share_words` writes them."""


def offer(workspace: Workspace, view: Linked, selected: np.ndarray | None) -> None:
    """The table behind a button; nothing where no column divides the rows into named groups.

    Args:
        selected: bool ``(N,)``; None: nothing is selected yet.
    """
    names = _columns(view)
    if names:
        with st.popover("Mixture", icon=":material/percent:", type="tertiary"), st.container(width=WIDTH):
            st.fragment(_table)(workspace, view, names, selected)


def _columns(view: Linked) -> list[str]:
    """Columns of the shards that divide the rows into named groups; what is filtered by comes first."""
    shown = {name: linked_columns.shown_name(view.corpus, name) for name in view.corpus.metadata_columns}
    among = {condition.name for condition in view.filters.conditions if isinstance(condition, Among)}
    divide = [
        column.name
        for column in view.corpus.metadata_columns.values()
        if column.kind == "class" and len(view.rows.classes[shown[column.name]][1]) > 1
    ]
    return sorted(divide, key=lambda name: shown[name] not in among)


def _table(workspace: Workspace, view: Linked, names: list[str], selected: np.ndarray | None) -> None:
    quotas = _quotas(workspace)
    # quotas are of one column; until there are some, what is filtered by is offered first
    bound = next((quota.column for quota in quotas.values()), names[0])
    column = st.selectbox("Column", names, names.index(bound) if bound in names else 0, key=f"{COLUMN}_{bound}")
    codes, groups = view.rows.classes[linked_columns.shown_name(view.corpus, column)]
    new = None if selected is None else selected & ~_given(workspace)
    by_tokens = workspace.settings.budget is not None
    table = mixture(codes, groups, new, view.corpus.lengths, by_tokens=by_tokens)
    said = {value: share_words(quota) for value, quota in quotas.items() if quota.column == column}
    table[WANTED] = [said.get(group, "") for group in table["group"]]
    # what was typed is kept by place: a table with other rows, or under another mixture, is another one
    key = f"{TABLE}_{column}_{by_tokens}_{crc32(repr(quotas).encode())}"
    number = st.column_config.NumberColumn
    st.data_editor(
        table,
        hide_index=True,
        height=tables.height(len(table), GROUPS_AT_ONCE),
        key=key,
        disabled=[name for name in table.columns if name != WANTED],
        column_order=["group", "now", WANTED, "tokens", "corpus"],
        column_config={
            "group": st.column_config.TextColumn(column),
            "corpus": number("share of corpus", format="%.1f %%"),
            "now": number("share now", format="%.1f %%"),
            "tokens": number("tokens now", format="localized"),
            WANTED: st.column_config.TextColumn(
                validate=f"^({RANGE.pattern})?$", help="Such as 60, or 10 to 30. Empty: any share."
            ),
        },
        alt=f"Shares of the groups of {column}, with the share wanted of each",
    )
    values = table["group"].tolist()
    try:
        wanted = _wanted(workspace, column, key, values)
        mixed = workspace.rules.mixing(wanted.values())
        _, reason = kept_rules.applied(without_rules(workspace.settings), mixed, workspace.corpus)
    except OptionError as error:
        reason = str(error)
    if reason:
        st.error(f"{words.sentence(reason)}.")
    else:
        what = "tokens" if by_tokens else "rows"
        shares = [(quota.low, quota.high) for value, quota in wanted.items() if value in values]
        replaced = f" It replaces the mixture by {bound}." if quotas and column != bound else ""
        st.caption(words.plain(left_to_others(shares, len(table), what) + replaced))
    if st.button("Set mixture", key="mixture_set", on_click=_set, args=(workspace, column, key, values)):
        st.rerun()


def mixture(
    codes: np.ndarray, groups: tuple[str, ...], selected: np.ndarray | None, lengths: np.ndarray | None, by_tokens: bool
) -> pd.DataFrame:
    """One row per group, the largest first: ``group, corpus, now, tokens``, shares in percent.

    ``now`` is left out where nothing is selected, and ``tokens`` where their number is not known too.

    Args:
        codes: ``(N,)`` indices into groups; -1: in no group.
        by_tokens: shares are of the tokens, not of the rows.
    """
    amounts = lengths if by_tokens and lengths is not None else np.ones(len(codes))

    def held(rows: np.ndarray, amounts: np.ndarray) -> np.ndarray:
        inside = rows & (codes >= 0)
        return np.bincount(codes[inside], amounts[inside], len(groups))

    everything = np.ones(len(codes), bool)
    table = pd.DataFrame({"group": np.array(groups, object), "corpus": 100 * held(everything, amounts) / amounts.sum()})
    if selected is not None:
        table["now"] = 100 * held(selected, amounts) / max(float(amounts[selected].sum()), 1.0)
        if lengths is not None:
            table["tokens"] = held(selected, lengths).astype(np.int64)
    there = held(everything, np.ones(len(codes))) > 0
    return table[there].sort_values("corpus", ascending=False, kind="stable", ignore_index=True)


def share(text: str) -> tuple[float, float]:
    """The least and most of a share as it is typed, from 0 to 1.

    Raises:
        OptionError: it is none.
    """
    found = RANGE.fullmatch(text)
    low, high = (float(end) / 100 for end in (found[1], found[2] or found[1])) if found else (1.0, 0.0)
    if not low <= high <= 1:
        raise OptionError(f"a share wanted must be from 0 to 100 %, such as 60, or 10 to 30, got {text!r}")
    return low, high


def left_to_others(wanted: list[tuple[float, float]], groups: int, what: str) -> str:
    """What the shares that are wanted leave to the other groups, in a sentence.

    Args:
        groups: how many there are. what: rows or tokens.
    """
    if not wanted:
        return f"Type the share of the selected {what} that a group is to have."
    if len(wanted) == groups:
        return f"Every group has a share of the {what}."
    least, most = (max(1 - sum(ends), 0.0) for ends in reversed(list(zip(*wanted, strict=True))))
    shares = words.percent(least, 1) + (f" to {words.percent(most, 1)}" if most - least > 1e-9 else "")
    return f"The other groups have {shares} of the {what}."


def _quotas(workspace: Workspace) -> dict[str, Quota]:
    """The quotas by their groups, as pages name these."""
    quotas, metadata = {}, workspace.corpus.metadata
    for rule in workspace.rules.of(QUOTA):
        if rule.quota is not None:
            is_truth = pa.types.is_boolean(metadata[rule.quota.column].type)
            quotas[rule.quota.value.capitalize() if is_truth else rule.quota.value] = rule.quota
    return quotas


def _given(workspace: Workspace) -> np.ndarray:
    """The rows that one already has: a mixture is of the others. A list that is gone names none."""
    given = np.zeros(len(workspace.corpus), bool)
    for rule in workspace.rules.of(GIVEN):
        with contextlib.suppress(DatamaskError):
            given[kept_rules.store().rows(workspace.corpus, rule.ids)] = True
    return given


def _wanted(workspace: Workspace, column: str, key: str, values: list[str]) -> dict[str, Quota]:
    """The quotas of the column with what was typed since. Raises OptionError: something typed is no share."""
    quotas = {value: quota for value, quota in _quotas(workspace).items() if quota.column == column}
    for place, cells in st.session_state[key]["edited_rows"].items():
        value, text = values[int(place)], cells.get(WANTED)
        quotas.pop(value, None)
        if text:
            quotas[value] = Quota(column, value, *share(text))
    return quotas


def _set(drawn: Workspace, column: str, key: str, values: list[str]) -> None:
    workspace = drawn.renewed()
    # read now, not when the button was drawn: a share typed just before the press was not drawn yet
    try:
        wanted = _wanted(workspace, column, key, values)
    except OptionError as error:
        st.session_state["trouble"] = str(error)
        return
    if st.session_state[key]["edited_rows"]:
        pose(workspace.asked, workspace.rules.mixing(wanted.values()))


def remove(drawn: Workspace) -> None:
    """Let the groups have any share. For callbacks."""
    workspace = drawn.renewed()
    pose(workspace.asked, workspace.rules.mixing(()))
