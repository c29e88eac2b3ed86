"""Export: ids, the selected rows, a mask per shard, repeat weights, a recipe or a report, with their provenance."""

from functools import partial

import streamlit as st

from datamask.analyses.report.summary import kept_by
from datamask.dashboard.drawing import words
from datamask.dashboard.frame.frame import frame
from datamask.dashboard.runs import candidates, listing, menu_panel, provenance
from datamask.dashboard.shell import session
from datamask.pages.export import cards_panel, report_panel, selection_panel, summary_panel, whole_panel
from datamask.pages.runs import run_panel

current = frame("Export", "What can you download?")

opening = session.current_opening()
run = session.current_run()
if opening is None and run is None:
    session.open_corpus_or_stop()
finished = [r for r in listing.runs_on(session.store(), opening) if r.has_selection]
corpus = None if opening is None else opening.corpus
fit, _ = candidates.candidates(finished, None if corpus is None else corpus.fingerprint)
first = session.run_to_open(fit) or next(iter(finished), None)
instead = ""
if first is not None and run is not None and listing.is_on(run, opening) and not run.has_selection:
    instead = (
        f"**{words.plain(listing.name_of(run), 80)}** has no selection: "
        f"{candidates.UNFINISHED.get(run.status().state, 'its files are missing')}. Shown instead: "
        f"**{words.plain(listing.name_of(first), 80)}**."
    )
    run = None
selection = None if current is None else current.selection
if run is None or (listing.is_on(run, opening) and run.has_selection):
    run = first if selection is None else selection.run

if run is None and current is not None and selection is not None:
    menu_panel.choose(finished, None)
    if instead:
        st.info(instead, icon=":material/info:")
    selection_panel.show(current.workspace, selection)
    st.stop()
if run is None:
    cards_panel.nothing_yet()
    st.stop()

menu_panel.choose(finished, run)
if instead:
    st.info(instead, icon=":material/info:")
if not listing.is_on(run, opening):
    run_panel.other_corpus(run)
if not run.has_selection:
    cards_panel.not_finished(run)
    st.stop()

shards = provenance.shards(run, session.check_readable, None if opening is None else opening.opened)
if shards.newer:
    st.warning(
        f"Some shards of the corpus ({shards.newer:,}) are newer than this run. The export of rows and masks checks "
        "their ids first."
    )
corpus = corpus if listing.is_on(run, opening) else None
cache_dir = session.store().cache_dir
cards_panel.show(run, shards, partial(report_panel.show, run, finished, corpus, cache_dir))
whole_panel.show(run, corpus)
summary_panel.show(kept_by(run), str(run.facts().get("fingerprint") or ""), cache_dir)
cards_panel.amounts(run)
with st.expander("Provenance and command line"):
    st.dataframe(
        provenance.table(run),
        hide_index=True,
        lazy=False,
        alt="Provenance of the selection",
        column_config={"what": st.column_config.TextColumn(width=110), "value": st.column_config.TextColumn(width=890)},
    )
    st.code(provenance.command(run), language="bash", wrap_lines=True)
    st.caption("The metadata of selection.parquet holds the settings and the command line, under the key datamask.")
