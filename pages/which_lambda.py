"""Which lambda: does it help, and which one? Selections over lambda judged by text that none of them was made from."""

import streamlit as st

from datamask.dashboard.ui import lambda_panel, session
from datamask.dashboard.ui.frame import frame

frame("Which lambda", "Does it help, and which lambda?")

corpus = session.open_corpus_or_stop()
if corpus.provenance.columns.get("text") not in corpus.metadata.column_names:
    lambda_panel.without_texts()
    st.stop()

cache_dir = session.store().cache_dir
controls, picture = st.columns([1, 2.9], gap="large")
with controls:
    lambda_panel.form(corpus, cache_dir)
with picture:
    under_way = lambda_panel.under_way(corpus)
    found = lambda_panel.stored(corpus, cache_dir)
    if found:
        lambda_panel.show(lambda_panel.choose(found))
    elif not under_way:
        lambda_panel.nothing_yet()
