"""Export: ids, the selected rows, a mask per shard, repeat weights, a recipe or a report, with their provenance."""

import streamlit as st

from datamask.analyses.report.summary import kept_by
from datamask.dashboard.drawing import words
from datamask.dashboard.frame.frame import frame
from datamask.dashboard.runs import listing, menu_panel, provenance
from datamask.dashboard.shell import session
from datamask.pages.export import (
    code_panel,
    report_panel,
    run_files_panel,
    selection_panel,
    summary_panel,
    whole_panel,
)
from datamask.pages.runs import run_panel

current = frame("Export", "What can you download?")

opening = session.current_opening()
corpus = None if opening is None else opening.corpus
selection = None if current is None else current.selection
# without an open corpus, the run of the address as its folder has it
run = session.current_run() if selection is None else selection.run
if opening is None and run is None:
    session.open_corpus_or_stop()
finished = [r for r in listing.runs_on(session.store(), opening) if r.has_selection]

for refused in [] if current is None else current.workspace.refused:
    instead = "" if selection is None else f" Shown instead: **{words.plain(selection.name, 80)}**."
    st.info(f"**{words.plain(refused.name, 80)}** has no selection: {refused.reason}.{instead}", icon=":material/info:")
if run is not None or selection is not None:
    menu_panel.choose(finished, run)
if run is None:
    if current is not None and selection is not None:
        selection_panel.show(current.workspace, selection)
    else:
        run_files_panel.nothing_yet()
    st.stop()
if not listing.is_on(run, opening):
    run_panel.other_corpus(run)
if not run.has_selection:
    run_files_panel.not_finished(run)
    st.stop()

shards = provenance.shards(run, session.check_readable, None if opening is None else opening.opened)
if shards.newer:
    st.warning(
        f"Some shards of the corpus ({shards.newer:,}) are newer than this run. The export of rows and masks checks "
        "their ids first."
    )
corpus = corpus if listing.is_on(run, opening) else None
cache_dir = session.store().cache_dir
run_files_panel.show(run, shards)
report_panel.show(run, finished, corpus, cache_dir)
run_files_panel.missing(run)
run_files_panel.amounts(run)
code_panel.show(run)
whole_panel.show(run, corpus)
summary_panel.show(kept_by(run), str(run.facts().get("fingerprint") or ""), cache_dir)
with st.expander("Provenance"):
    st.dataframe(
        provenance.table(run),
        hide_index=True,
        lazy=False,
        alt="Provenance of the selection",
        column_config={"what": st.column_config.TextColumn(width=110), "value": st.column_config.TextColumn(width=890)},
    )
    st.caption("The metadata of selection.parquet holds the settings and the command line, under the key datamask.")
