"""Data: which corpus? Choose one on the left, see it on the right."""

import streamlit as st

from datamask.analyses.overview import first_look_panel
from datamask.analyses.overview import panel as corpus_panel
from datamask.dashboard.data import form_panel
from datamask.dashboard.frame.frame import frame
from datamask.dashboard.shell import session

frame("Data", "Which corpus?")

opening = session.current_opening()
form, picture = st.columns([1, 2.6], gap="large")

with form:
    named = form_panel.corpus_form(opening)

with picture:
    if named is not None:
        first_look_panel.show_ahead(named.config, named.readable)
    elif opening is None and session.outside():
        session.draw_outside()
    elif opening is None:
        st.subheader("No corpus is open", anchor=False)
        st.write("Open shards with one row per text. Texts alone are enough: scores and embeddings can be created.")
    elif opening.corpus is not None:
        corpus_panel.show(opening, opening.corpus)
    else:
        session.draw_opening(opening, follow=True)
        first_look_panel.show(opening)
