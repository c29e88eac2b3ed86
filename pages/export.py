"""Export: what do you take home? Ids, the corpus's own rows, a mask per shard, or a report, with their origin."""

import streamlit as st

from datamask.dashboard.analyses.comparison import candidates
from datamask.dashboard.drawing import words
from datamask.dashboard.export import cards_panel, report_panel, whole_panel
from datamask.dashboard.frame.frame import frame
from datamask.dashboard.runs import listing, menu_panel, provenance, run_panel
from datamask.dashboard.shell import session

frame("Export", "What do you take home?")

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
        f"{candidates.UNFINISHED.get(run.status().state, 'its selection is gone')}. Shown instead: "
        f"**{words.plain(listing.name_of(first), 80)}**."
    )
    run = None
if run is None:
    run = first

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

shards = provenance.shards(run, session.check_readable)
if shards.newer:
    st.warning(
        f"{shards.newer:,} of the corpus's shards were written after this run was made. Rows and masks are "
        "checked against its ids before anything is written."
    )
cards_panel.show(run, shards)
corpus = corpus if listing.is_on(run, opening) else None
report_panel.show(run, finished, corpus, session.store().cache_dir)
whole_panel.show(run, corpus)

st.markdown("**Where does it come from?**")
st.dataframe(
    provenance.table(run),
    hide_index=True,
    lazy=False,
    alt="Provenance of the selection",
    column_config={"what": st.column_config.TextColumn(width=110), "value": st.column_config.TextColumn(width=890)},
)
st.code(provenance.command(run), language="bash", wrap_lines=True)
st.caption("The same lines travel inside selection.parquet, in its metadata under the key datamask.")
