"""Apply to the whole corpus, on the Export page: the plan first, then a run of its own, and at the end its shares.

A process of its own does the run, so that it outlives the page and the server; what is seen of it here is what its
folder says, as anywhere else.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import streamlit as st

from datamask.config import RunConfig
from datamask.corpus import Corpus
from datamask.dashboard.drawing import words
from datamask.dashboard.runs import listing, outcome
from datamask.dashboard.shell import background, session
from datamask.dashboard.shell import view as views
from datamask.errors import DatamaskError
from datamask.evaluation.result import NO_RESULT
from datamask.pages.export import whole_work
from datamask.runs import applying
from datamask.runs.detached import start_detached
from datamask.runs.forecast import Forecast
from datamask.runs.store import Run
from datamask.work.worker import worker

ABOUT = (
    "The open corpus is a uniform sample of all rows. This selects from all rows with the objective, λ, "
    "ratio and scales of the shown run."
)
SHOWN = 50
"""Groups in the table, the largest first."""


def sampled(corpus: Corpus) -> bool:
    """Whether the corpus is a sample of a larger one."""
    return corpus.provenance.rows_read < corpus.provenance.total_rows


def show(run: Run, corpus: Corpus | None) -> None:
    """Draw the card; nothing where the run has seen all rows.

    Args:
        run: finished. corpus: the run's, where it is open, else None.
    """
    if corpus is not None and run.whole is None and not sampled(corpus):
        return
    with st.container(border=True, key="whole_card"):
        st.markdown("**Apply to the whole corpus**", help=ABOUT)
        if corpus is None:
            st.caption("Open the corpus of this run to see whether it has more rows.")
        elif run.whole is not None:
            _shares(run, run, corpus)
        else:
            _ask(run, corpus)


def _ask(run: Run, corpus: Corpus) -> None:
    try:
        config = applying.over_all_rows(run.config, session.store().root)
    except DatamaskError as error:
        st.caption(f"Not available for this run: {words.sentence(error)}")
        return
    begun = applying.newest(session.store().list(), config, corpus.provenance, corpus.fingerprint)
    if begun is None:
        _plan(run, config, corpus)
    elif begun.status().active:
        with st.container(key="whole_live"):
            st.fragment(_live, run_every=1.0)(begun.id, begun.status().state)
    elif begun.has_selection:
        _shares(begun, run, corpus)
        counted = worker().find(whole_work.groups_key(begun, str(st.session_state.get("whole_column"))))
        if counted is not None and counted.state == "failed":  # mostly because a shard has changed
            _plan(run, config, corpus)
    else:
        _ended(begun)


def _plan(run: Run, config: RunConfig, corpus: Corpus) -> None:
    """What it will take, once that is known, and the button that starts it."""
    total, rows = corpus.provenance.total_rows, len(corpus)
    told: Forecast | None = background.offer(
        whole_work.plan_key(config),
        "Plan all rows",
        lambda: _begin(config, lambda: whole_work.start_plan(config, session.store().root)),
        name="plan_whole",
        icon=":material/straighten:",
        cost=f"The run has seen {rows:,} of {total:,} rows. Plan the rest first: this times the first rows.",
        stopped="Stopped before the plan was ready.",
    )
    if told is None:
        return
    try:
        sentence, fits = told.sentence, told.fits
    except DatamaskError as error:
        sentence, fits = str(error), False
    (st.markdown if fits else st.warning)(words.plain(sentence, 1200))
    st.caption(applying.method_sentence(config, run.config))
    st.button(
        f"Select from all {told.rows:,} rows",
        key="start_whole",
        disabled=not fits,
        type="primary",
        icon=":material/bolt:",
        on_click=_start,
        args=(config, corpus),
    )


def _start(config: RunConfig, corpus: Corpus) -> None:
    """Begin the run; a second press, here or in another tab, finds the first one's and begins nothing."""
    try:
        session.check_readable(config.corpus)
        with session.starting():
            begun = applying.newest(session.store().list(), config, corpus.provenance, corpus.fingerprint)
            if begun is None or not begun.status().active:
                applying.begin(config, session.store())
    except DatamaskError as error:
        st.session_state["trouble"] = str(error)


def _live(run_id: str, state: str) -> None:
    """How far it is, by what its folder says: the value so far, the time left."""
    run = session.store().get(run_id)
    status = run.status()
    if status.state != state or not status.active:
        st.rerun()
    job = next(iter(listing.running(session.store(), session.run_queue(), only=(run_id,))), None)
    with st.container(horizontal=True, vertical_alignment="center", horizontal_alignment="distribute"):
        st.markdown(words.plain(job.sentence if job else "starting", 300), width="content")
        st.button(
            "Stop",
            key="stop_whole",
            icon=":material/stop:",
            on_click=session.stop_run,
            args=(run_id,),
        )
    st.caption(_so_far(run) or "No value over all rows yet.")


def _so_far(run: Run) -> str:
    """The last value of a selection from all rows."""
    values = run.metrics().get("joint", np.zeros(0))
    values = values[np.isfinite(values)]
    return f"Value so far {words.value(float(values[-1]))}" if len(values) else ""


def _ended(run: Run) -> None:
    story = outcome.story(run)
    if story is not None:
        st.warning(f"**{story.heading}.** {words.sentence(story.text, 600)}")
    if run.status().resumable:
        st.button(
            "Resume",
            key="resume_whole",
            type="primary",
            icon=":material/play_arrow:",
            on_click=_resume,
            args=(run.id,),
        )


def _resume(run_id: str) -> None:
    try:
        run = session.store().get(run_id)
        session.check_readable(run.config.corpus)
        with session.starting():
            if not run.status().active:
                start_detached(run)
    except DatamaskError as error:
        st.session_state["trouble"] = str(error)


def _shares(whole: Run, run: Run, corpus: Corpus) -> None:
    """What came out, and which share each group kept: of all rows, and of the sample."""
    size = (whole.status().result or NO_RESULT).size
    selected, rows = size.selected or 0, size.n or 0
    st.markdown(
        f"Selected **{selected:,}** of all {rows:,} rows"
        + (f": {words.named(listing.name_of(whole), 80)}" if whole.id != run.id else "")
    )
    if sentence := outcome.certificate(whole):
        st.caption(words.plain(sentence, 600))
    if whole.id != run.id:
        views.page_link("pages/export.py", "Export its ids", address=views.address_of_run(whole.id), width="content")
    columns = [column.name for column in corpus.metadata_columns.values() if column.kind == "class"]
    if not columns:
        st.caption("No column divides the rows into groups.")
        return
    column = st.selectbox(
        "Selected share by",
        columns,
        key="whole_column",
        help="The column whose groups are counted, over all rows and over the sample.",
    )
    groups = background.offer(
        whole_work.groups_key(whole, column),
        "Count groups",
        lambda: _begin(whole.config, lambda: whole_work.start_counting(whole, column)),
        name="count_groups",
        icon=":material/table_rows:",
        stopped="Stopped before the groups were counted.",
    )
    if groups is not None:
        _table(groups, run, corpus, column)


def _begin(config: RunConfig, start: Callable[[], object]) -> None:
    """Start long work over all shards of a run's corpus, as far as this server may read them."""
    try:
        session.check_readable(config.corpus)
    except DatamaskError as error:
        st.session_state["trouble"] = str(error)
        return
    start()


def _table(groups: list[applying.Group], run: Run, corpus: Corpus, column: str) -> None:
    chosen = run.rows(["selected"])["selected"].combine_chunks()
    values = pc.cast(corpus.metadata[column], pa.string())
    values = pc.fill_null(values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values, applying.NOTHING)
    sample = {entry["values"]: entry["counts"] for entry in pc.value_counts(values).to_pylist()}
    kept = {entry["values"]: entry["counts"] for entry in pc.value_counts(values.filter(chosen)).to_pylist()}
    table = pd.DataFrame(
        {
            column: [group.name for group in groups[:SHOWN]],
            "rows": [group.rows for group in groups[:SHOWN]],
            "kept": [group.kept for group in groups[:SHOWN]],
            "selected share of all rows": [100 * group.kept / group.rows for group in groups[:SHOWN]],
            "selected share of the sample": [
                100 * kept.get(group.name, 0) / sample[group.name] if group.name in sample else None
                for group in groups[:SHOWN]
            ],
        }
    )
    percent, count = (st.column_config.NumberColumn(format=format_) for format_ in ("%.1f %%", "localized"))
    st.dataframe(
        table,
        hide_index=True,
        lazy=False,
        key="whole_groups",
        alt="Selected share of each group, of all rows and of the sample",
        column_config={
            "rows": count,
            "kept": count,
            "selected share of all rows": percent,
            "selected share of the sample": percent,
        },
    )
    if len(groups) > SHOWN:
        st.caption(f"The {SHOWN} largest of {len(groups):,} groups.")
