"""Data: which corpus? Choose one on the left, see it on the right."""

import streamlit as st

from datamask.dashboard.ui import corpus_form, corpus_panel, first_look_panel, session
from datamask.dashboard.ui.frame import frame

frame("Data", "Which corpus?")

opening = session.current_opening()
form, picture = st.columns([1, 2.6], gap="large")

with form:
    corpus_form.corpus_form(opening)

with picture:
    if opening is None and session.outside():
        session.draw_outside()
    elif opening is None:
        corpus_panel.nothing_open()
    elif opening.corpus is not None:
        corpus_panel.show(opening, opening.corpus)
    else:
        session.draw_opening(opening, follow=True)
        first_look_panel.show(opening)
