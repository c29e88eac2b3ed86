"""The part of the Data page's form that makes scores and features of files with texts alone."""

from __future__ import annotations

from collections.abc import Callable, Iterable
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
from datamask.dashboard.shell.presses import pressed
from datamask.errors import DatamaskError
from datamask.work.worker import worker

EMBEDDERS = {"tfidf": "TF-IDF", "model2vec": "Static model"}
ASKED = "prepare_asked"
"""Of the session: the preparation that it started, and whose corpus it opens."""

HELP = {
    "embedder": "TF-IDF learns 256 dimensions from these texts. A static model (model2vec) gives each text the mean of "
    "its tokens' vectors. The command line also takes a function of your own: `datamask prepare --embedder`.",
    "model": "A folder on the machine this server runs on, with config.json, model.safetensors and tokenizer.json. "
    "Nothing is downloaded.",
    "create": "Adds a quality score by rules, features and token counts in the background, and opens the result. The "
    "result is kept with the uploads.",
}


def show(
    config: CorpusConfig,
    seen: Inspection,
    used: Callable[[], Iterable[CorpusConfig]],
    open_corpus: Callable[[CorpusConfig], None],
    weight: Literal["primary", "secondary"],
) -> None:
    """Draw the form for files without features; what is made is opened once it is there.

    Args:
        config: of the files, every path checked. seen: what the look at them found.
        used: corpora whose uploads must stay. open_corpus: makes a corpus the session's.
        weight: how much the button asks to be pressed.
    """
    columns = seen.candidates.get("text", [])
    if not columns:
        return
    with st.container(border=True):
        st.markdown("**Create scores and features from the texts**")
        text_column = st.selectbox(
            "Text column",
            columns,
            index=columns.index(TEXT) if TEXT in columns else 0,
            key="prepare_text",
            help="The column whose texts are scored and embedded. Rows without text are left out.",
        )
        kind = st.segmented_control(
            "Features by",
            list(EMBEDDERS),
            default="tfidf",
            key="prepare_embedder",
            required=True,
            format_func=EMBEDDERS.__getitem__,
            help=HELP["embedder"],
            width="stretch",
        )
        model: Path | None = None
        if kind == "model2vec":
            text = st.text_input("Model folder", key="prepare_model", help=HELP["model"], placeholder="/models/potion")
            try:
                model = confined_model(text.strip(), session.roots()) if text.strip() else None
            except DatamaskError as error:
                st.error(words.sentence(error), icon=":material/error:")
        runs_dir = session.runs_dir()
        name = preparing.key(runs_dir, config, text_column, model)
        if background.under_way(name, background.Look(beneath=True, stop_help=preparing.STOPS)):
            return
        _open_made(name, open_corpus)
        background.ending(name, "Stopped. Starting again continues from what a model has embedded.")
        if pressed(
            "Create features",
            type=weight,
            icon=":material/auto_awesome:",
            width="stretch",
            key="prepare_start",
            disabled=kind == "model2vec" and model is None,
            help=HELP["create"],
        ):
            preparing.start(runs_dir, config, text_column, model, used)
            st.session_state[ASKED] = name
            st.rerun()


def _open_made(name: str, open_corpus: Callable[[CorpusConfig], None]) -> None:
    """Open what the job of that name made, where this session has asked for it and has not opened it yet."""
    job = worker().find(name)
    if job is not None and job.state == "done" and st.session_state.get(ASKED) == name:
        del st.session_state[ASKED]
        open_corpus(job.result)
