"""Downstream results: numbers measured elsewhere, attached to runs as CSV and drawn over lambda."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import streamlit as st

from datamask.analyses.downstream import tables
from datamask.analyses.downstream.chart import downstream
from datamask.dashboard.drawing import words
from datamask.dashboard.shell import menus, session
from datamask.dashboard.shell.plots import plot
from datamask.errors import DatamaskError
from datamask.runs.labels import read_results
from datamask.runs.store import Run

EXAMPLE = "task,score,seed\nhellaswag,0.412,0\nhellaswag,0.418,1\narc-easy,0.533,0"
TASKS = 6
"""Charts drawn at once; more tasks are chosen from a menu."""


def show(runs: Sequence[Run], chosen: Sequence[str], names: Mapping[str, str]) -> None:
    """The form on the left, one chart per task on the right.

    Args:
        runs: all finished runs on the corpus; every attached number of them is drawn.
        chosen: ids of the compared ones, first in the menu. names: of all, by id.
    """
    by_id = {run.id: run for run in runs}
    scores = tables.collected(runs)
    form, pictures = st.columns([1, 2.6], gap="large")
    with form:
        _form(by_id, [*chosen, *(run_id for run_id in by_id if run_id not in chosen)], names)
    with pictures:
        if scores.empty:
            st.markdown("**Downstream results**")
            st.write(
                "Train a model on each selection, evaluate it on your tasks, and attach the scores here to plot them "
                "against λ."
            )
            return
        _charts(scores)
        with st.expander("All numbers and their runs"):
            points = tables.points(scores)
            points["sd"] = points["high"] - points["mean"]
            st.dataframe(
                points[["task", "curve", "lamb", "mean", "sd", "seeds"]],
                hide_index=True,
                lazy=False,
                alt="Mean score of each task, curve and λ",
                column_config={
                    "lamb": st.column_config.NumberColumn("λ", width="small"),
                    "mean": st.column_config.NumberColumn(format="%.4f"),
                    "sd": st.column_config.NumberColumn("standard deviation", format="%.4f"),
                    "seeds": st.column_config.NumberColumn("numbers", width="small"),
                },
            )
            st.dataframe(
                tables.tally(scores, names),
                hide_index=True,
                lazy=False,
                alt="Runs with attached results",
                column_config={"lambda": st.column_config.NumberColumn("λ", width="small")},
            )


def _charts(scores) -> None:
    table = tables.points(scores)
    tasks, curves = sorted(table["task"].unique()), sorted(table["curve"].unique())
    if len(tasks) > TASKS:
        tasks = st.multiselect(
            "Tasks",
            tasks,
            tasks[:TASKS],
            key="downstream_tasks",
            max_selections=TASKS,
        )
    for first in range(0, len(tasks), 2):
        for place, task in zip(st.columns(2, gap="medium"), tasks[first : first + 2]):
            with place:
                plot(
                    downstream(table[table["task"] == task], task, curves, dark=session.dark()),
                    key=f"downstream_{first}_{task}",
                    alt=f"Mean score on {words.plain(task, 60)} over λ",
                )
    st.caption("Mark: mean with one standard deviation over training seeds. Horizontal line: a baseline without λ.")


def _form(by_id: Mapping[str, Run], order: Sequence[str], names: Mapping[str, str]) -> None:
    menus.settle("downstream_run", {listed: names[listed] for listed in order})
    run_id = st.selectbox(
        "Run",
        order,
        key="downstream_run",
        format_func=names.__getitem__,
    )
    run = by_id.get(run_id, by_id[order[0]])
    version = st.session_state.get("downstream_version", 0)
    file = st.file_uploader(
        "CSV file",
        type=["csv", "txt"],
        key=f"downstream_file_{version}",
        max_upload_size=5,
        help="Columns: task, score and, optionally, seed.",
    )
    text = st.text_area(
        "Or paste CSV",
        key=f"downstream_text_{version}",
        placeholder=EXAMPLE,
        height=118,
    )
    present = run.results()
    with st.container(horizontal=True):
        st.button(
            "Attach scores",
            key="downstream_attach",
            type="primary",
            icon=":material/attach_file:",
            disabled=file is None and not text.strip(),
            on_click=_attach,
            args=(run, file, text),
        )
        if present:
            st.button(
                f"Remove {len(present):,} scores",
                key="downstream_remove",
                icon=":material/delete:",
                type="tertiary",
                on_click=_take_off,
                args=(run,),
            )
    trouble = st.session_state.pop("downstream_trouble", None)
    if trouble:
        st.error(words.sentence(trouble), icon=":material/error:")


def _attach(run: Run, file, text: str) -> None:
    try:
        if file is not None:
            try:
                text = file.getvalue().decode("utf-8-sig")
            except UnicodeDecodeError:
                st.session_state["downstream_trouble"] = f"{file.name} is not UTF-8 text. Save it as CSV in UTF-8."
                return
        run.attach(read_results(text, "the file" if file is not None else "the pasted text"))
    except DatamaskError as error:
        st.session_state["downstream_trouble"] = str(error)
        return
    # a fresh form: what was attached is not to be attached again to another run
    st.session_state["downstream_version"] = st.session_state.get("downstream_version", 0) + 1


def _take_off(run: Run) -> None:
    try:
        run.attach([])
    except DatamaskError as error:
        st.session_state["downstream_trouble"] = str(error)
