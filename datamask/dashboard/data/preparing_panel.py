"""The part of the Data page's form that creates scores and embeddings for files that have only texts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Literal

import streamlit as st

from datamask.config import CorpusConfig
from datamask.corpus import Inspection
from datamask.corpus.text_survey import TEXT
from datamask.dashboard.data import preparing
from datamask.dashboard.data.inputs import confined_model
from datamask.dashboard.drawing import words
from datamask.dashboard.shell import background, session
from datamask.dashboard.shell.option_control import one_of
from datamask.errors import DatamaskError
from datamask.work.worker import worker

EMBEDDERS = {"tfidf": "TF-IDF (seconds)", "model": "Model (folder)"}
ASKED = "prepare_asked"
"""Of the session: the preparation that it started, and whose corpus it opens."""

HELP = {
    "embedder": "TF-IDF learns 256 dimensions from these texts. A model was trained on others: static ones (model2vec) "
    "embed thousands of texts a second, those of sentence-transformers tens without a GPU.",
    "model": "A folder on the server, as model2vec or sentence-transformers saves it. Nothing is downloaded.",
}


def show(
    config: CorpusConfig,
    seen: Inspection,
    used: Callable[[], Iterable[CorpusConfig]],
    open_corpus: Callable[[CorpusConfig], None],
    weight: Literal["primary", "secondary"],
) -> None:
    """Draw the form for files without embeddings. The page opens the prepared corpus when the job is done.

    Args:
        config: of the files, every path checked. seen: what the look at them found.
        used: corpora whose uploads must stay. open_corpus: makes a corpus the session's.
        weight: how much the button asks to be pressed.
    """
    columns = seen.candidates.get("text", [])
    if not columns:
        st.error(
            "These files have no embeddings, and no text column to create embeddings from. Add one of them, or name "
            "the files with embeddings under *Features or scores in other shards*.",
            icon=":material/error:",
        )
        return
    with st.container(border=True):
        st.markdown("**These files have texts and no embeddings**")
        text_column, kind, model = _controls(columns)
        runs_dir = session.runs_dir()
        name = preparing.key(runs_dir, config, text_column, model)
        if background.under_way(name, background.Look(beneath=True)):
            return
        _open_made(name, open_corpus)
        background.ending(name, "Stopped. Start again to continue from the finished embeddings.")
        st.caption(
            "Adds embeddings and token counts, and a quality score by rules if no column is called score. "
            "Opens the result."
        )

        def start() -> None:
            preparing.start(runs_dir, config, text_column, model, used)
            st.session_state[ASKED] = name

        st.button(
            "Create scores and embeddings",
            type=weight,
            icon=":material/auto_awesome:",
            width="stretch",
            key="prepare_start",
            disabled=kind == "model" and model is None,
            on_click=start,
        )


def _controls(columns: Sequence[str]) -> tuple[str, str, Path | None]:
    """The column of the texts, what embeds them, and the folder of the model, where one was named that can be read."""
    text_column = st.selectbox(
        "Text column",
        columns,
        index=columns.index(TEXT) if TEXT in columns else 0,
        key="prepare_text",
        help="Rows without text are skipped.",
    )
    kind = one_of("Embeddings by", EMBEDDERS, "prepare_embedder", help=HELP["embedder"], width="stretch")
    model: Path | None = None
    if kind == "model":
        text = st.text_input("Model folder", key="prepare_model", help=HELP["model"], placeholder="/models/e5-small")
        try:
            model = confined_model(text.strip(), session.roots()) if text.strip() else None
        except DatamaskError as error:
            st.error(words.sentence(error), icon=":material/error:")
    return text_column, kind, model


def _open_made(name: str, open_corpus: Callable[[CorpusConfig], None]) -> None:
    """Open what the job of that name made, where this session has asked for it and has not opened it yet."""
    job = worker().find(name)
    if job is not None and job.state == "done" and st.session_state.get(ASKED) == name:
        del st.session_state[ASKED]
        open_corpus(job.result)
        st.rerun()
