"""The one sample a session looks at: chosen by a click on the map or in a table, kept in the URL (``?sample=<id>``).

`chosen` answers its row; whatever explains a single sample starts from there.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc
import streamlit as st

from datamask.corpus import Corpus

KEY = "sample"
"""Of the session state: the fingerprint of the corpus and the row, or nothing."""


def chosen(corpus: Corpus) -> int | None:
    """The row of the chosen sample of this corpus, or None. After a reload it is found again by the id in the URL."""
    kept = st.session_state.get(KEY)
    if kept is not None and kept[0] == corpus.fingerprint:
        return kept[1]
    wanted = st.query_params.get(KEY)
    if wanted is None:
        return None
    ids = corpus.ids
    text = ids if pa.types.is_string(ids.type) else ids.cast(pa.string())
    row = pc.index(text, pa.scalar(wanted, text.type)).as_py()
    if row < 0:  # of another corpus
        del st.query_params[KEY]
        return None
    st.session_state[KEY] = (corpus.fingerprint, row)
    return row


def choose(corpus: Corpus, row: int | None) -> None:
    """Make a sample the chosen one; None: no sample."""
    if row is None:
        st.session_state.pop(KEY, None)
        st.query_params.pop(KEY, None)
        return
    st.session_state[KEY] = (corpus.fingerprint, int(row))
    st.query_params[KEY] = str(corpus.ids[int(row)].as_py())
