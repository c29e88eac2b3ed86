"""Why the chosen sample is in a run's selection, or not: a sentence, a waterfall, who is behind it, and over lambda."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import streamlit as st

from datamask import catalogue
from datamask.analyses.explanation import chart, explanations, tables
from datamask.analyses.explanation.explanations import Answer
from datamask.corpus import Corpus
from datamask.dashboard.drawing import words
from datamask.dashboard.drawing.signs import Sign
from datamask.dashboard.map import scene
from datamask.dashboard.map.places import cut
from datamask.dashboard.shell import background
from datamask.runs.store import Run

if TYPE_CHECKING:
    from streamlit.delta_generator import DeltaGenerator

ABOUT = (
    "The score of a row is λ · its quality + (1 − λ) · what it adds to diversity, given the other selected rows. "
    "The bars add up to the score minus the threshold of the last selected row."
)


def show(run: Run, runs: Sequence[Run], corpus: Corpus, row: int, below: DeltaGenerator) -> None:
    """One sample under one run, in a narrow column.

    Args:
        runs: finished runs on this corpus. below: the place for who is behind its score.
    """
    with st.container():
        selected = bool(scene.run_columns(run).selected[row])
        st.markdown(f"**Why is it {('selected' if selected else 'not selected')}?**", help=ABOUT)
        answer = background.answer(explanations.ask(run, row, runs), "why")
        if answer is None:
            return
        st.markdown(words.plain(answer.explanation.sentence, 600))
        _waterfall(answer)
        entry = catalogue.estimator(run.config.selection.estimator)
        if not entry.guided:
            st.caption(
                f"{entry.label} did not select by these scores, so a row may lie on either side of the threshold."
            )
        texts = _texts(corpus)
        for sentence in (tables.copies_sentence(answer, texts), tables.nearest_sentence(answer, texts)):
            if sentence:
                st.caption(sentence)
    _along(run, row, answer)
    if answer.explanation.witnesses:
        with below:
            _witnesses(answer, corpus)


def _waterfall(answer: Answer) -> None:
    table = tables.waterfall(answer)
    st.html(chart.waterfall(table, alt="What each term adds to the row's score, up to score minus threshold"))
    total = table["amount"].iloc[-1]
    st.caption(
        f"In total {abs(total):.2f} {tables.UNIT} {('above' if total >= 0 else 'below')} the threshold (dashed)."
    )


def _along(run: Run, row: int, answer: Answer) -> None:
    st.markdown(
        "**In which stored runs is it selected?**",
        help="Stored runs that differ in λ alone: ● the row is selected, ○ it is not. Bold: this run.",
    )
    if len(answer.along.lambdas) > 1:
        st.markdown(tables.along_line(answer.along, run.id))
    st.caption(tables.along_sentence(answer.along))
    if catalogue.estimator(run.config.selection.estimator).guided:
        link = {
            "run": run.id,
            "sample": str(answer.explanation.id),
            **{name: st.query_params[name] for name in ("corpus",) if name in st.query_params},
        }
        sign = Sign("Exact λ of a row", "app.py", link)
        flip = background.offer(
            explanations.flip_key(run, row),
            "Find the exact λ",
            lambda: explanations.flip(run, row, answer.along, sign),
            name="flip",
            icon=":material/target:",
            cost="Solves at about five λ. Each solve takes as long as the run.",
        )
        if flip is not None:
            st.markdown(tables.flip_sentence(flip))


def _witnesses(answer: Answer, corpus: Corpus) -> None:
    for objective in answer.explanation.witnesses:
        sentence, table = tables.witnesses(answer, objective, _texts(corpus))
        st.markdown(f"**{catalogue.objective(objective).label}**: {sentence}")
        if table.empty:
            continue
        number = st.column_config.NumberColumn
        narrow = 66  # pixels: all four columns stand in the reader
        st.dataframe(
            table,
            hide_index=True,
            lazy=False,
            key=f"why_{objective}",
            height=220 if len(table) > 5 else "auto",
            alt=f"Details of {objective}",
            column_config={
                "row": st.column_config.TextColumn(width=124),
                "cosine": number(format="%.3f", width=narrow),
                "otherwise": number(format="%.3f", width=narrow + 10),
                "adds": number(
                    format="%+.3f",
                    width=narrow,
                    help=f"Share of the score, in {tables.UNIT}, before the mean over all rows is subtracted.",
                ),
            },
        )


def _texts(corpus: Corpus) -> Callable[[int], str]:
    """A function from a row to its id and the beginning of its text."""
    texts = corpus.texts

    def text_of(row: int) -> str:
        name = cut(corpus.ids[row].as_py(), 40)
        return name if texts is None else f"{name}: {cut(texts[row].as_py() or '', 90)}"

    return text_of
