"""The borderline reader on a page: one text at a time, two buttons and a skip, what was kept told only afterwards."""

from __future__ import annotations

import numpy as np
import streamlit as st

from datamask.analyses.borderline import tables
from datamask.analyses.borderline.tables import DROP, KEEP, SKIP
from datamask.analyses.explanation import explanations
from datamask.analyses.explanation.explanations import Deck
from datamask.corpus import Corpus
from datamask.dashboard.drawing import words
from datamask.dashboard.shell import background
from datamask.runs.exports import table_csv
from datamask.runs.store import Run

KEY = "borderline"
LETTERS = 6000
SIZES = (20, 40, 100, 200)


def show(run: Run, corpus: Corpus, selected: np.ndarray, shown: np.ndarray | None) -> None:
    """The reader of one run's borderline.

    Args:
        selected: bool ``(N,)`` of the run. shown: those a filter lets through; None: there is none.
    """
    texts = corpus.texts
    if texts is None:
        st.caption("This corpus has no texts. Add a text column to the shards and open them again.")
        return
    reading, side = st.columns([2, 1], gap="large")
    with side:
        count = st.selectbox(
            "Texts",
            SIZES,
            1,
            key=f"{KEY}_count",
            persist_state="session",
        )
        seed = st.number_input(
            "Seed",
            0,
            10_000,
            0,
            key=f"{KEY}_seed",
            persist_state="session",
            help="Another seed shows the rows in another order.",
        )
        beside = st.container()
    with reading:
        st.caption(
            "Would you keep this text? Half of the texts were barely selected, half barely missed. Answer to see which."
        )
        within = shown
        if shown is not None:
            within, sentence = tables.within(shown, selected, count // 2)
            st.caption(f"**{sentence}**")
        task = explanations.deck(run, count // 2, int(seed), within)
        deck: Deck | None = background.answer(task, KEY)
        if deck is None:
            return
        name = task.key
        answers = _answers().setdefault(name, [])
        _read(name, deck, answers, texts)
    with beside:
        _tell(run, corpus, deck, name, answers)


def _read(name: str, deck: Deck, answers: list[str], texts) -> None:
    place = len(answers)
    if place >= len(deck.rows):
        st.markdown(
            f"**All {len(deck.rows):,} texts are read.** Download your answers, or choose another seed to shuffle "
            "the texts."
        )
        return
    st.progress(place / len(deck.rows), text=f"Text {place + 1:,} of {len(deck.rows):,}")
    with st.container(horizontal=True):
        for answer, label, key, icon in (
            (KEEP, "Keep", "1", ":material/thumb_up:"),
            (DROP, "Drop", "2", ":material/thumb_down:"),
            (SKIP, "Skip", "0", ":material/skip_next:"),
        ):
            st.button(
                label,
                key=f"{KEY}_{answer}",
                icon=icon,
                shortcut=key,
                on_click=_answer,
                args=(name, place, answer),
            )
    text = texts[int(deck.rows[place])].as_py() or ""
    with st.container(height=330, border=True):
        st.code(text[:LETTERS] + ("…" if len(text) > LETTERS else ""), language=None, wrap_lines=True)


def _tell(run: Run, corpus: Corpus, deck: Deck, name: str, answers: list[str]) -> None:
    st.markdown(tables.tally(deck, answers).sentence)
    if not answers:
        return
    place = len(answers) - 1
    row = int(deck.rows[place])
    facts = {"quality score": words.value(float(corpus.quality[row])), "id": words.plain(corpus.ids[row].as_py(), 80)}
    st.caption(tables.revealed(deck, place, answers[-1], facts))
    with st.container(horizontal=True):
        st.button(
            "Undo the last answer",
            key=f"{KEY}_undo",
            icon=":material/undo:",
            type="tertiary",
            on_click=_undo,
            args=(name,),
        )
        st.download_button(
            "Download answers (CSV)",
            lambda: table_csv(tables.answers_table(corpus, deck, answers, run.id)),
            file_name=f"borderline-{run.id}.csv",
            mime="text/csv",
            key=f"{KEY}_csv",
            on_click="ignore",
            icon=":material/download:",
        )


def _answers() -> dict[str, list[str]]:
    """The answers of this session, by run, number of texts and seed."""
    return st.session_state.setdefault(f"{KEY}_answers", {})


def _answer(name: str, place: int, answer: str) -> None:
    answers = _answers().setdefault(name, [])
    if len(answers) == place:  # a key pressed twice answers one text
        answers.append(answer)


def _undo(name: str) -> None:
    if _answers().get(name):
        _answers()[name].pop()
