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
    """The row of the chosen sample of this corpus, or None. What the URL names comes first, as after a reload."""
    kept, wanted = st.session_state.get(KEY), st.query_params.get(KEY)
    if kept is not None and kept[0] == corpus.fingerprint and wanted in (None, str(corpus.ids[kept[1]].as_py())):
        # coming back from another page, whose links do not carry it
        st.query_params[KEY] = str(corpus.ids[kept[1]].as_py())
        return kept[1]
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
