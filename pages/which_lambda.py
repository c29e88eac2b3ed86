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
lambda_panel.follow(corpus)
found = lambda_panel.stored(corpus, cache_dir)
controls, picture = st.columns([1, 2.9], gap="large")
with controls:
    lambda_panel.form(corpus, cache_dir)
    answer = lambda_panel.choose(found)
with picture:
    searched = lambda_panel.search(corpus, cache_dir)
    if answer is not None:
        lambda_panel.show(answer)
    elif not searched:
        lambda_panel.nothing_yet()
