"""The form of an ablation: what methods are compared on, at which ratio, and Start."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import streamlit as st

from datamask.ablation.cost import expected_seconds, first_question
from datamask.ablation.question import (
    LABEL_REGIONS,
    LEAST_SEEDS,
    MASKS,
    METHODS,
    SEEDS,
    AblationQuestion,
)
from datamask.analyses.ablation import ablation_job
from datamask.config import SelectionConfig
from datamask.config.target import (
    LEAST_EXAMPLES,
    LEAST_TEXTS,
    MOST_EXAMPLES,
    Target,
    check_texts,
    texts_of,
)
from datamask.corpus import Corpus
from datamask.dashboard.drawing import words
from datamask.dashboard.drawing.signs import Sign
from datamask.dashboard.shell import background
from datamask.dashboard.shell.option_control import one_of
from datamask.errors import DatamaskError

SEVERAL, OTHER = "several", "other"
FIRST = {SEVERAL: "Labels", "examples": "Examples", "random": "Held-out text", OTHER: "Other"}
OTHERS = {
    "column": "One value of a column",
    "score": "Rows with high scores in another column",
    "texts": "My own texts",
}
KIND = "ablation_target"
"""In the session: which of `FIRST` is chosen."""

SOURCES = {"ids": "ids of rows", "features": "features", "examples": "texts"}
SOURCE_FILES = {"ids": ["txt", "csv", "jsonl", "parquet"], "features": ["parquet"], "examples": ["txt", "md", "jsonl"]}
SOURCE_HELP = {
    "ids": "One id per line, or a table with the id column of the corpus.",
    "features": "A parquet file with a feature column, made by the model of the corpus.",
    "examples": "One text per line, or .jsonl with the field text. Requires features that `datamask prepare` "
    "made from texts.",
}
VALUES = 200
"""Values of a column that can be chosen, the most frequent first."""

PRESSED, REFUSED = "ablation_pressed", "ablation_refused"
"""In the session: on which corpus, and for what target, Start was pressed; the form that was refused, and why."""


def has_texts(corpus: Corpus) -> bool:
    """Whether there is text that proxy models can learn from."""
    return corpus.provenance.columns.get("text") in corpus.metadata.column_names


@dataclass(frozen=True)
class Wanted:
    """What the model should be good at, as the form says it.

    Attributes:
        kind: of `FIRST` and `OTHERS`. column, value: of the metadata; empty where the corpus has none that fits.
        source: of examples, of `SOURCES`. uploads, pasted: texts or examples.
    """

    kind: str
    column: str = ""
    value: str = ""
    source: str = ""
    uploads: Sequence[Any] = ()
    pasted: str = ""

    @property
    def ready(self) -> bool:
        """Whether Start can be pressed; texts may still come."""
        return bool(self.column) or self.kind not in ("column", "score")

    @property
    def waits(self) -> bool:
        """Whether texts or examples are still to come."""
        return self.kind in ("texts", "examples") and not self.uploads and not self.pasted.strip()

    @property
    def key(self) -> tuple[object, ...]:
        """What tells it from another one."""
        files = [upload.file_id for upload in self.uploads]
        return self.kind, self.column, self.value, self.source, files, self.pasted

    def asked(self, corpus: Corpus, question: AblationQuestion) -> ablation_job.Asked:
        """The question with this target.

        Raises:
            DatamaskError: texts or examples cannot be read, or are too few or too many.
        """
        if self.kind == "examples":
            content = self.uploads[0].getvalue() if self.uploads else self.pasted.encode("utf-8", "replace")
            name = Path(self.uploads[0].name).name if self.uploads else "your list.txt"
            examples, target = ablation_job.examples_of(corpus, self.source, name, content)
            return ablation_job.Asked(replace(question, target=target), (), examples)
        if self.kind == "texts":
            texts, target = _own_texts(self.uploads, self.pasted)
            return ablation_job.Asked(replace(question, target=target), tuple(texts))
        if self.kind == SEVERAL:
            return ablation_job.Asked(question)
        return ablation_job.Asked(replace(question, target=Target(self.kind, self.column, self.value)))


def form(corpus: Corpus, settings: SelectionConfig, cache_dir: Path) -> None:
    """What to compare methods on; Start begins the ablation.

    Args:
        settings: of the current selection; its objective and select ratio are compared.
    """
    wanted = _wanted(corpus)
    question = _question(corpus, settings, several=wanted.kind == SEVERAL)
    busy = working(corpus)
    st.button(
        "Start the ablation",
        icon=":material/play_arrow:",
        key="ablation_start",
        width="stretch",
        disabled=not wanted.ready or busy,
        on_click=_press,
        args=(corpus.fingerprint, wanted.kind),
    )
    takes = words.roughly(expected_seconds(question, len(corpus)))
    st.caption(f"Compares at {words.percent(question.ratio)} of the rows, about {takes}.")
    form_now = repr((corpus.fingerprint, wanted.key, question.key))
    if st.session_state.get(PRESSED) != (corpus.fingerprint, wanted.kind) or busy or not wanted.ready:
        # not pressed, or for something else than what is asked now
        st.session_state.pop(PRESSED, None)
    elif wanted.waits:
        _wait()
    else:
        del st.session_state[PRESSED]
        try:
            asked = wanted.asked(corpus, question)
        except DatamaskError as error:
            st.session_state[REFUSED] = form_now, str(error)
        else:
            start(corpus, asked, cache_dir)
            st.rerun()
    refused_form, refusal = st.session_state.get(REFUSED, ("", ""))
    if refused_form == form_now:
        st.error(words.sentence(refusal), icon=":material/error:")


def _wanted(corpus: Corpus) -> Wanted:
    """The controls of the target."""
    readable = has_texts(corpus)
    if not readable:
        st.caption(
            "**This corpus has no texts**, so a method is measured by how near its selection is to held-out rows. "
            "Add a text column to measure by text."
        )
    kind = one_of(
        "Target",
        FIRST,
        KIND,
        persist_state="session",
        help="What your model should be good at: each value of a label column, rows or texts like given examples, or "
        "any text of the corpus.",
    )
    if kind == OTHER:
        kind = st.selectbox(
            "Other target",
            list(OTHERS) if readable else [name for name in OTHERS if name != "texts"],
            # remembered of a corpus with texts, it may be what is not offered here
            key="ablation_other" if readable else "ablation_other_without_texts",
            format_func=OTHERS.__getitem__,
            persist_state="session",
        )
    if kind == "column":
        return Wanted(kind, *_one_value(corpus))
    if kind == "score":
        return Wanted(kind, _score(corpus))
    if kind == "examples":
        source, uploads, pasted = _examples_form(readable)
        return Wanted(kind, source=source, uploads=uploads, pasted=pasted)
    if kind == "texts":
        uploads, pasted = _given(
            "Text files",
            ["txt", "md", "jsonl"],
            "One text per line, or .jsonl with the field text. Some hundreds of texts are enough.",
            "texts",
            f"At least {LEAST_TEXTS} different lines.",
        )
        return Wanted(kind, uploads=uploads, pasted=pasted)
    return Wanted(kind)


def _question(corpus: Corpus, settings: SelectionConfig, several: bool) -> AblationQuestion:
    """The controls behind More, and what is asked then, of several targets or of one that is still to be named."""
    asked = first_question(settings.objective, None if settings.budget is not None else settings.select_ratio)
    with st.popover("More", type="tertiary"):
        label = _label(corpus) if several else ""
        seeds = st.number_input(
            "Seeds",
            LEAST_SEEDS,
            50,
            SEEDS,
            key="ablation_seeds",
            persist_state="session",
            help="More seeds find smaller differences and take longer.",
        )
        masks = st.checkbox(
            "Learned masks",
            value=True,
            key="ablation_masks",
            persist_state="session",
            help="Adds learned masks with the paper's preset. They take longer than all other methods together.",
        )
    methods = tuple(name for name in METHODS if masks or name != MASKS)
    return replace(asked, label=label, seeds=int(seeds), methods=methods)


def start(corpus: Corpus, asked: ablation_job.Asked, cache_dir: Path) -> None:
    """Start a job, or join the one under way. For a button's `on_click` too."""
    link = {name: st.query_params[name] for name in ("corpus",) if name in st.query_params}
    sign = Sign("Ablation", "pages/evidence.py", link)
    ablation_job.start(corpus, asked.question, cache_dir, asked.texts, sign, asked.examples)


def choose_examples() -> None:
    """Have the form ask for examples. For a button's `on_click`."""
    st.session_state[KIND] = "examples"


def working(corpus: Corpus) -> bool:
    """Whether an ablation of this corpus is under way."""
    return background.working(ablation_job.key_of(corpus))


def _press(fingerprint: str, kind: str) -> None:
    """Remember that Start was pressed, until the page has what the job needs.

    A page that is drawn anew, as by a file that arrives, ends the drawing that knew of the press; and files may still
    be on their way when it comes.
    """
    st.session_state[PRESSED] = fingerprint, kind


def _wait() -> None:
    st.caption("Waiting for your texts. The ablation starts when they are uploaded or pasted.")
    st.button(
        "Cancel the start",
        key="ablation_not",
        type="tertiary",
        on_click=st.session_state.pop,
        args=(PRESSED, None),
    )


def _label_columns(corpus: Corpus) -> list[str]:
    """Columns whose values tell kinds of samples apart; a year does, however many there are."""
    return [
        column.name
        for column in corpus.metadata_columns.values()
        if column.kind == "class" or (column.kind == "number" and column.cells == "whole")
    ]


def _label(corpus: Corpus) -> str:
    """What the several targets are."""
    names = {"": "automatic", **{name: name for name in _label_columns(corpus)}, LABEL_REGIONS: "regions"}
    return st.selectbox(
        "Label column",
        list(names),
        key="ablation_label",
        format_func=lambda name: names.get(name, name),
        help=f"Each value with at least {2 * LEAST_TEXTS} rows is a target. *automatic* takes the column whose "
        "targets cover the most rows. If no column has enough targets, it takes *regions* (clusters).",
    )


def _one_value(corpus: Corpus) -> tuple[str, str]:
    """A metadata column and one of its values."""
    names = _label_columns(corpus)
    if not names:
        st.caption("The corpus has no label column.")
        return "", ""
    column = st.selectbox("Column", names, key="ablation_column")
    counts = pc.value_counts(corpus.metadata[column].cast(pa.string()).combine_chunks()).to_pylist()
    counts = sorted(
        (entry for entry in counts if entry["values"] is not None and entry["counts"] >= LEAST_TEXTS),
        key=lambda entry: -entry["counts"],
    )[:VALUES]
    sizes = {entry["values"]: entry["counts"] for entry in counts}
    if not sizes:
        st.caption(f"No value has at least {LEAST_TEXTS} rows, as the comparison needs.")
        return "", ""
    value = st.selectbox(
        "Value",
        list(sizes),
        key=f"ablation_value_{column}",
        format_func=lambda name: f"{name} ({sizes.get(name, 0):,})",
    )
    return column, value or ""


def _score(corpus: Corpus) -> str:
    """A metadata column with numbers, other than the quality."""
    names = [column.name for column in corpus.metadata_columns.values() if column.cells in ("whole", "fraction")]
    if not names:
        st.caption("The corpus has no second number column.")
        return ""
    return st.selectbox(
        "Column of scores",
        names,
        key="ablation_score",
        help="The target is the best quarter of the held-out rows.",
    )


def _own_texts(uploads: Sequence[Any], pasted: str) -> tuple[list[str], Target]:
    """The person's own texts and their target.

    Raises:
        InputError: they are too few.
    """
    distinct: dict[str, None] = {}
    for upload in uploads:
        distinct.update(dict.fromkeys(texts_of(upload.getvalue().decode("utf-8", "replace"), upload.name)))
    distinct.update(dict.fromkeys(texts_of(pasted)))
    name = uploads[0].name if len(uploads) == 1 and not pasted.strip() else "your own texts"
    return (texts := check_texts(list(distinct), name)), Target.own(texts, name)


def _examples_form(readable: bool) -> tuple[str, list, str]:
    """What the examples are, their file and what is pasted.

    Args:
        readable: whether the corpus has texts; without, texts are no examples of it.
    """
    st.caption(
        f"{LEAST_EXAMPLES:,} to {MOST_EXAMPLES:,} examples. One half scores the rows by similarity, the other "
        "half evaluates."
    )
    source = one_of(
        "Kind",
        {name: said for name, said in SOURCES.items() if readable or name != "examples"},
        # remembered of a corpus with texts, it may be what is not offered here
        "ablation_source" if readable else "ablation_source_without_texts",
        persist_state="session",
    )
    lines = f"At least {LEAST_EXAMPLES:,} lines. A file takes precedence over pasted text."
    uploads, pasted = _given("Example file", SOURCE_FILES[source], SOURCE_HELP[source], source, lines)
    return source, uploads, pasted


def _given(label: str, types: list[str], about: str, source: str, lines: str) -> tuple[list, str]:
    """Files that were uploaded, several of texts, and what was pasted.

    Args:
        label, types, about: of the files. source: ``texts``, or one of `SOURCES`. lines: help of what is pasted.
    """
    several = source == "texts"
    files: Any = st.file_uploader(
        label, type=types, accept_multiple_files=several, key=f"ablation_files_{source}", help=about
    )
    pasted = ""
    if source != "features":
        what = SOURCES.get(source, source)
        pasted = st.text_area(f"Or paste {what}, one per line", key=f"ablation_pasted_{source}", height=90, help=lines)
    return files if several else [files] if files else [], pasted
