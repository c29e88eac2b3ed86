"""The parts of "which lambda?": the form, the search under way, and an answer with its two charts."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import streamlit as st

from datamask import catalogue
from datamask.config.lambda_question import (
    JUDGES,
    LAMBDAS,
    LEAST_EXAMPLES,
    LEAST_TEXTS,
    MOST_EXAMPLES,
    LambdaQuestion,
    Target,
    check_texts,
    texts_of,
)
from datamask.corpus import Corpus
from datamask.dashboard.analyses.which_lambda import lambda_search, tables
from datamask.dashboard.analyses.which_lambda.chart import band
from datamask.dashboard.drawing import words
from datamask.dashboard.drawing.signs import Sign
from datamask.dashboard.runs import listing
from datamask.dashboard.shell import background, session
from datamask.dashboard.shell.plots import plot
from datamask.errors import DatamaskError
from datamask.runs import lambda_answers
from datamask.work.job import Job
from datamask.work.worker import worker

TARGETS = {
    "random": "Held-out text of the corpus",
    "column": "One kind of text in the corpus",
    "texts": "Texts of my own",
    "examples": "Examples that also steer",
    "quality": "The best by quality (circular)",
}
FINE = (0.0, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.25, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
STEPS = {"9, for a first look": LAMBDAS, "16, finer": FINE}
PROXY_MODELS = dict(zip(JUDGES, ("bigram model", "small transformer")))
RATIOS = (0.02, 0.05, 0.1, 0.3)
SOURCES = {"ids": "ids of samples", "features": "features", "examples": "texts"}
SOURCE_FILES = {"ids": ["txt", "csv", "parquet"], "features": ["parquet"], "examples": ["txt", "md", "jsonl"]}
SOURCE_HELP = {
    "ids": "One id per line, or a table with the corpus's id column.",
    "features": "A parquet file with a column of features, by the model that made the corpus's. They are judged by "
    "their texts where it has them too.",
    "examples": "One text per line, or .jsonl with the field text. Only where the corpus's features were made here, of "
    "its texts (datamask prepare).",
}
STOPS = "Stops within a second or two. What was selected so far is kept."
VALUES = 200
"""Values of a column that can be chosen, the most frequent first."""

PRESSED, REFUSED = "lambda_pressed", "lambda_refused"
"""In the session: on which corpus, and for what target, Start was pressed; the form that was refused, and why."""

QUICK = ("facility", "pairwise")
"""Objectives solved directly; every other one learns each point anew."""


def has_texts(corpus: Corpus) -> bool:
    """Whether there is text to judge by."""
    return corpus.provenance.columns.get("text") in corpus.metadata.column_names


def _without_texts() -> None:
    """The corpus has no texts: what it is judged by instead, and what texts would give."""
    st.caption(
        "**This corpus has no texts**, so lambdas are judged by samples that you care about: by how near the selected "
        "samples are to them. To judge by text, open shards with a column of texts (called text, content or similar)."
    )


def form(corpus: Corpus, cache_dir: Path) -> None:
    """What to try and what to judge by; Start begins the search."""
    readable = has_texts(corpus)
    if readable:
        kind = st.selectbox(
            "Judge by",
            list(TARGETS),
            key="lambda_target",
            format_func=TARGETS.__getitem__,
            persist_state="session",
            help="The text that a small model must predict after learning from each selection. Take what "
            "you want your own model to be good at.",
        )
    else:
        _without_texts()
        kind = "examples"
    column = value = source = ""
    uploads, pasted = [], ""
    if kind == "column":
        column, value = _one_kind(corpus)
    elif kind == "texts":
        uploads = st.file_uploader(
            "Text files",
            type=["txt", "md", "jsonl"],
            accept_multiple_files=True,
            key="lambda_files",
            help="One text per line; in .jsonl files the field text of each "
            "line. Some hundreds of texts are a good number.",
        )
        pasted = st.text_area(
            "Or paste texts, one per line",
            key="lambda_pasted",
            height=90,
            help="At least 60 lines. Lines that repeat count once.",
        )
    elif kind == "examples":
        source, uploads, pasted = _examples_form(readable)
    elif kind == "quality":
        st.caption(
            "Selections maximise this very quality, so whoever follows it wins. Good for looking at, not for choosing."
        )
    with st.container(gap="xxsmall"):
        st.caption("Objectives, a curve each")
        objectives = [
            entry.name
            for entry in catalogue.OBJECTIVES
            if st.checkbox(
                entry.label,
                value=entry.name in QUICK,
                key=f"lambda_{entry.name}",
                persist_state="session",
                help=entry.sees
                + (" Seconds for each lambda." if entry.name in QUICK else " Can take minutes for each lambda."),
            )
        ]
    ratios = st.pills(
        "Select ratios",
        RATIOS,
        selection_mode="multi",
        default=[0.1],
        key="lambda_ratios",
        persist_state="session",
        format_func=lambda ratio: words.percent(ratio),
        help="The share of the samples that is selected. Each ratio is judged by itself.",
    )
    steps = st.segmented_control(
        "Lambdas",
        list(STEPS),
        default=next(iter(STEPS)),
        required=True,
        key="lambda_steps",
        persist_state="session",
        help="How many values from 0 to 1 are tried.",
    )
    # without texts nobody learns: examples are judged by what lies near them
    judge = _proxy_model() if readable else JUDGES[0]
    ready = bool(objectives and ratios) and not (kind == "column" and not column)
    busy = working(corpus)
    st.button(
        "Start",
        type="primary",
        icon=":material/play_arrow:",
        key="lambda_start",
        width="stretch",
        disabled=not ready or busy,
        on_click=_press,
        args=(corpus.fingerprint, None if readable else kind),
        help="One search at a time. It runs in the background; you may leave this page. The answer is kept.",
    )
    files = [upload.file_id for upload in uploads]
    form_now = repr((corpus.fingerprint, kind, column, value, source, files, pasted, objectives, ratios, steps, judge))
    if st.session_state.get(PRESSED) != (corpus.fingerprint, kind) or busy or not ready:
        # not pressed, or for something else than what is asked now
        st.session_state.pop(PRESSED, None)
    elif kind in ("texts", "examples") and not uploads and not pasted.strip():
        _wait()
    else:
        del st.session_state[PRESSED]
        texts: list[str] = []
        examples = None
        try:
            if kind == "examples":
                examples, target = _examples(corpus, source, uploads, pasted)
            else:
                texts, target = _target(kind, column, value, uploads, pasted)
            question = LambdaQuestion(tuple(objectives), tuple(ratios), STEPS[steps], target, judge=judge)
        except DatamaskError as error:
            st.session_state[REFUSED] = form_now, str(error)
        else:
            _start(corpus, lambda_search.Asked(question, tuple(texts), examples), cache_dir)
            st.rerun()
    refused_form, refusal = st.session_state.get(REFUSED, ("", ""))
    if refused_form == form_now:
        st.error(words.sentence(refusal), icon=":material/error:")


def _proxy_model() -> str:
    """Who learns from the selections."""
    return st.segmented_control(
        "Proxy model",
        list(PROXY_MODELS),
        default=JUDGES[0],
        required=True,
        key="lambda_judge",
        persist_state="session",
        format_func=PROXY_MODELS.__getitem__,
        help="Who learns from each selection. The bigram model counts which word follows which, in milliseconds. The "
        "transformer is trained anew for each of them, ten times, some ten seconds or more each: choose one objective. "
        "What it has learned is kept when you stop.",
    )


def _press(fingerprint: str, kind: str | None) -> None:
    """Remember that Start was pressed, until the page has what the search needs.

    Args:
        kind: of the target; None: what the menu says now.

    A page that is drawn anew, as by a file that arrives, ends the drawing that knew of the press; and files may still
    be on their way when it comes.
    """
    st.session_state[PRESSED] = fingerprint, kind or st.session_state["lambda_target"]


def _wait() -> None:
    st.caption("Your texts are not here yet. The search starts as soon as they are uploaded or pasted.")
    st.button(
        "Do not start",
        key="lambda_not",
        type="tertiary",
        on_click=st.session_state.pop,
        args=(PRESSED, None),
        help="Forgets that Start was pressed.",
    )


def _one_kind(corpus: Corpus) -> tuple[str, str]:
    """A metadata column and one of its values."""
    # whole numbers too many for classes as well: a year tells kinds of text apart, however many years there are
    names = [
        column.name
        for column in corpus.metadata_columns.values()
        if column.kind == "class" or (column.kind == "number" and column.cells == "whole")
    ]
    if not names:
        st.caption("The corpus has no column that names kinds of text.")
        return "", ""
    column = st.selectbox("Column", names, key="lambda_column", help="What tells kinds of text apart.")
    counts = pc.value_counts(corpus.metadata[column].cast(pa.string()).combine_chunks()).to_pylist()
    counts = sorted(
        (entry for entry in counts if entry["values"] is not None and entry["counts"] >= LEAST_TEXTS),
        key=lambda entry: -entry["counts"],
    )[:VALUES]
    sizes = {entry["values"]: entry["counts"] for entry in counts}
    if not sizes:
        st.caption(f"No value has {LEAST_TEXTS} samples, which are needed to tell selections apart.")
        return "", ""
    value = st.selectbox(
        "Value",
        list(sizes),
        key=f"lambda_value_{column}",
        format_func=lambda name: f"{name} ({sizes.get(name, 0):,})",
        help="Held-out samples with this value are what is predicted.",
    )
    return column, value or ""


def _target(kind: str, column: str, value: str, uploads, pasted: str) -> tuple[list[str], Target]:
    """The target, and the person's own texts where they are it."""
    if kind != "texts":
        return [], Target(kind, column, value)
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
        f"{LEAST_EXAMPLES:,} to {MOST_EXAMPLES:,} of them. Half give the quality to select by, in the place of the "
        "corpus's own: how near a sample is to them. The other half judges, and near-copies between the halves are "
        "taken out."
    )
    source = st.segmented_control(
        "They are",
        list(SOURCES) if readable else [name for name in SOURCES if name != "examples"],
        default="ids",
        required=True,
        # remembered of a corpus with texts, it may be what is not offered here
        key="lambda_source" if readable else "lambda_source_without_texts",
        persist_state="session",
        format_func=SOURCES.__getitem__,
        help="What stands in the file.",
    )
    upload = st.file_uploader(
        "File of examples",
        type=SOURCE_FILES[source],
        key=f"lambda_examples_{source}",
        help=SOURCE_HELP[source],
    )
    pasted = ""
    if source != "features":
        pasted = st.text_area(
            f"Or paste {SOURCES[source]}, one per line",
            key=f"lambda_pasted_{source}",
            height=90,
            help=f"At least {LEAST_EXAMPLES:,} lines. A file goes before what is pasted.",
        )
    return source, [] if upload is None else [upload], pasted


def _examples(corpus: Corpus, source: str, uploads: list, pasted: str) -> tuple:
    """The `Examples` and their target, from what was uploaded or pasted.

    Raises:
        InputError: they cannot be read, or are too few or too many.
    """
    content = uploads[0].getvalue() if uploads else pasted.encode("utf-8", "replace")
    name = Path(uploads[0].name).name if uploads else "your list.txt"
    return lambda_search.examples_of(corpus, source, name, content)


def _start(corpus: Corpus, asked: lambda_search.Asked, cache_dir: Path) -> None:
    link = {name: st.query_params[name] for name in ("corpus",) if name in st.query_params}
    sign = Sign("Which lambda", "pages/evidence.py", link, STOPS)
    lambda_search.start(corpus, asked.question, cache_dir, asked.texts, sign, asked.examples)


def working(corpus: Corpus) -> bool:
    """Whether a search is under way on this corpus."""
    return background.working(lambda_search.key_of(corpus))


def follow(corpus: Corpus) -> None:
    """Look at the answer of a search that was watched and has ended. Call it before `choose`."""
    job = worker().find(lambda_search.key_of(corpus))
    if job is not None and job.state == "done" and st.session_state.pop("lambda_watched", None) == job.key:
        st.query_params["answer"] = str(job.result)


def search(corpus: Corpus, cache_dir: Path) -> bool:
    """Draw the search under way, or one that ended without an answer and how to go on; whether there is either."""
    job = worker().find(lambda_search.key_of(corpus))
    if job is None or job.state == "done":
        return False
    if not job.ended:
        st.session_state["lambda_watched"] = job.key
        background.follow(
            job,
            background.Look(
                "lambda_stop",
                STOPS,
                every=1.0,
                place="live_lambdas",
                title="Searching",
                about=_asked(job),
                says=_doing,
                beside=_done,
            ),
        )
        return True
    stopped = job.state == "stopped"
    with st.container(border=True):
        st.subheader("Stopped" if stopped else "The search could not be finished", anchor=False)
        if stopped:
            st.write(
                f"At {words.percent(job.share)} of the way. What was selected so far is kept, and Continue goes "
                "on from there. A search for something else lets it go."
            )
        else:
            st.error(words.sentence(job.error), icon=":material/error:")
        st.caption(_asked(job))
        with st.container(horizontal=True):
            if stopped:
                st.button(
                    "Continue",
                    icon=":material/play_arrow:",
                    key="lambda_again",
                    on_click=_start,
                    args=(corpus, job.about, cache_dir),
                    help="Asks the same again and goes on from what is selected.",
                )
            st.button(
                "Put away",
                key="lambda_forget",
                type="tertiary",
                on_click=worker().forget,
                args=(job.key,),
                help="Takes this message away.",
            )
    return True


def _asked(job: Job) -> str:
    if not isinstance(job.about, lambda_search.Asked):
        return ""
    return words.plain(tables.asked(job.about.question.to_dict(), job.about.question.target.label), 300)


def _doing(job: Job) -> str:
    message = background.message(job)
    return message[:1].upper() + message[1:]


def _done(job: Job) -> str:
    left = words.soon(job.left)
    done = f"{words.percent(job.share)} done, {left}. " if left else ""
    return f"{done}You can leave this page; the search goes on."


def nothing_yet(corpus: Corpus) -> None:
    """No answer so far."""
    judged = (
        "a small model learns from each selection, and text that none of them has seen tells which one taught it most"
        if has_texts(corpus)
        else "toward one half of your examples, and the other half tells which selection comes nearest to them"
    )
    with st.container(border=True):
        st.subheader("No lambda has been tried on this corpus", anchor=False)
        st.write(f"Press Start. Samples are selected at several lambdas, {judged}, or that they cannot be told apart.")


def stored(corpus: Corpus, cache_dir: Path) -> list[dict]:
    """Every answer on this corpus, newest first."""
    return lambda_answers.answers(cache_dir, corpus.fingerprint)


def choose(answers: list[dict]) -> dict | None:
    """Which answer is looked at; it stands in the URL. None: there is none yet."""
    by_key = {answer["key"]: answer for answer in answers}
    wanted = st.query_params.get("answer")
    if wanted not in by_key:
        wanted = answers[0]["key"] if answers else None
    if len(answers) < 2:
        return by_key.get(wanted)
    lines = listing.unlike(tables.titles(answers))
    key = st.selectbox(
        "Answers so far",
        list(by_key),
        index=list(by_key).index(wanted),
        format_func=lines.__getitem__,
        help="Every search on this corpus, newest first.",
    )
    st.query_params["answer"] = key
    return by_key[key]


def show(answer: Mapping) -> None:
    """An answer: its sentence, the band, the second measure beneath, how it was measured, all numbers."""
    main, second = tables.main_measure(answer), tables.second_measure(answer)
    _headline(answer, main)
    ratio, near = _ratio(answer), True
    if tables.lopsided(main, ratio):
        near = (
            st.segmented_control(
                "Show",
                ("near random", "everything"),
                default="near random",
                required=True,
                key="lambda_near",
                label_visibility="collapsed",
                help="Near random leaves out what is far worse; arrows at the edge say how far.",
            )
            == "near random"
        )
    _chart(main, ratio, near, 286, "lambda_band")
    st.caption(
        words.plain(tables.reading(main, ratio), 400),
        help=tables.nats_help(main),
    )
    if second is not None:
        st.markdown("**A second opinion: is the target covered?**", help=second["says"])
        _chart(second, ratio, near, 165, "lambda_coverage", small=True)
        st.caption(words.plain(tables.second_caption(answer), 600))
    with st.expander("How this was measured"):
        st.write(words.plain(tables.caption(answer, main, ratio), 2000))
    with st.expander("All numbers"):
        for record in answer["measures"]:
            _numbers(record, ratio, answer["target"]["texts"])


def _headline(answer: Mapping, main: Mapping) -> None:
    headline = words.plain(answer["headline"], 900)
    if answer["target"]["circular"]:
        st.warning(f"**{headline}**", icon=":material/sync_problem:")
    else:
        st.markdown(f"**{headline}**")
    effect = tables.effect(answer, main)
    if effect:
        st.markdown(words.plain(effect, 400))
    for note in tables.other_notes(answer):
        st.caption(words.plain(note, 600))


def _numbers(record: Mapping, ratio: float, texts: int) -> None:
    st.markdown(f"**{record['label']}**, {record['unit']}; lower is better")
    st.dataframe(
        tables.table(record, ratio, texts),
        hide_index=True,
        lazy=False,
        column_config={
            "value": st.column_config.NumberColumn(format="%.4f"),
            "difference": st.column_config.NumberColumn("difference to random", format="%+.4f"),
            "interval": st.column_config.TextColumn("95 % interval"),
            "samples": st.column_config.NumberColumn(format="localized", help="Selected samples."),
            "words": st.column_config.NumberColumn("words trained on", format="localized"),
            "bytes": st.column_config.NumberColumn("bytes trained on", format="localized"),
            "texts predicted": st.column_config.NumberColumn(format="localized", help="In both halves together."),
        },
        alt=f"{record['label']} of every selection",
    )
    for curve in tables.curves(record, ratio):
        st.caption(words.plain(curve["sentence"], 600))


def _ratio(answer: Mapping) -> float:
    ratios = tables.ratios(answer)
    if len(ratios) == 1:
        return ratios[0]
    return st.segmented_control(
        "Select ratio",
        ratios,
        default=ratios[0],
        required=True,
        key="lambda_ratio_shown",
        format_func=lambda ratio: words.percent(ratio),
        help="Each ratio was judged by itself.",
    )


def _chart(record: Mapping, ratio: float, near: bool, height: int, key: str, *, small: bool = False) -> None:
    table = tables.points(record, ratio)
    objectives = list(dict.fromkeys(table["objective"]))
    recommended = None if small else tables.recommended(record, ratio)
    top = tables.top_quality(record, ratio)
    figure = band(
        table,
        objectives,
        tables.span(record, ratio, near=near),
        record["unit"],
        recommended=recommended,
        top_quality=None if top is None else top["difference"],
        dark=session.dark(),
        small=small,
        height=height,
    )
    plot(figure, key=key, alt=f"{record['label']} against lambda, as the difference to a random selection")
