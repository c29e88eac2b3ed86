"""The left side of the Data page: where the corpus comes from, which column plays which part, how many rows."""

from __future__ import annotations

import contextlib
import json
import time
import zlib
from dataclasses import dataclass, replace
from typing import Any, Literal

import streamlit as st

from datamask.config import CorpusConfig, QualityColumn
from datamask.corpus import Inspection, inspect_inputs
from datamask.corpus.readers import endings, formats
from datamask.dashboard.data import browse_panel, demo, preparing_panel
from datamask.dashboard.data.inputs import (
    UPLOADS,
    confined_config,
    idle_uploads,
    keep_uploads,
    remove_uploads,
)
from datamask.dashboard.data.openings import Opening, opening_key, title_of
from datamask.dashboard.drawing import words
from datamask.dashboard.shell import code_field, option_control, session
from datamask.dashboard.shell.option_control import one_of
from datamask.errors import DatamaskError, InputError, Stopped
from datamask.files import OutsideRoots
from datamask.options import CORPUS_OPTIONS, InputPaths
from datamask.polling import poll_of
from datamask.storage.address import is_address

PLACES = {"sample": "Demo", "path": "Path", "upload": "Upload"}
NONE = "(none)"
Weight = Literal["primary", "secondary"]
"""How much a button asks to be pressed."""

MADE = "corpus_made"
"""Of the session state: key of the corpus that was made from texts, and the texts that the form named."""

TRANSFORM_WORDS = {"raw": "as it is", "z": "z-score", "rank": "rank"}

LOOK_SECONDS = 30.0
"""A page waits so long for a store; what is opened then is read behind it."""

HELP = {
    "place": "Path: files on the server. Upload: small files from your computer.",
    "path": f"One per line: {formats()}, or addresses such as s3://bucket/shards if this server allows them.",
    "upload": "Stored in the runs folder.",
}


@dataclass(frozen=True)
class Named:
    """The corpus that the form names.

    Attributes:
        config: its files and columns. readable: whether it opens as it is named.
    """

    config: CorpusConfig
    readable: bool


def corpus_form(opening: Opening | None) -> Named | None:
    """Draw the form; pressing Open starts an opening and makes it the session's corpus.

    Return what the form names, None where it names no files yet, or those of the corpus that is open.

    Args:
        opening: what is open already: then opening another is no longer the first thing to do here.
    """
    weight: Weight = "secondary" if opening is not None and opening.ready else "primary"
    place = one_of("Source", PLACES, "corpus_place", help=HELP["place"], width="stretch")
    named = None
    if place == "sample":
        offer_sample(weight, opening)
    else:
        named = _from_paths(opening) if place == "path" else _from_uploads(opening)
    offer_recent(opening)
    if named is None or opening is None:
        return named
    same = named.config == opening.config or st.session_state.get(MADE) == (opening.key, named.config)
    return None if same else named


def offer_sample(weight: Weight, opening: Opening | None = None) -> None:
    """What the demo corpus is, and the button that opens it; none where it is open.

    Args:
        opening: the session's; None: none.
    """
    st.markdown(
        "5,988 docstrings from Python and 13 packages, with embeddings. The quality score is how often other code uses "
        "the documented name (log scale)."
    )
    if opening is not None and opening.ready and opening.config == demo.config():
        st.caption("The demo is open.")
    else:
        st.button(
            "Open the demo",
            type=weight,
            icon=":material/folder_open:",
            width="stretch",
            key="open_sample",
            on_click=_open,
            args=(demo.config(), title_of(demo.config())),
            kwargs={"ours": True},
        )


def _from_paths(opening: Opening | None) -> Named | None:
    lines = st.text_area(
        CORPUS_OPTIONS["inputs"].label,
        key="corpus_paths",
        help=HELP["path"],
        height=90,
        placeholder="/data/shards/*.parquet",
    )
    with st.expander("Features or scores in other shards"):
        sides: dict[str, Any] = {
            name: tuple(option_control.draw(option, "", f"corpus_{name}").split())
            for name, option in CORPUS_OPTIONS.items()
            if name != "inputs" and isinstance(option.kind, InputPaths)
        }
    roots = session.roots()
    if roots:
        st.caption("Readable folders: " + ", ".join(words.plain(root) for root in roots))
        browse_panel.show(roots, "corpus_paths")
    inputs = tuple(line.strip() for line in lines.splitlines() if line.strip())
    if not inputs:
        return None
    try:
        config = CorpusConfig(inputs, **sides)
    except DatamaskError as error:  # an address with a secret
        _say(error)
        return None
    try:
        found = confined_config(config, roots)
    except OutsideRoots as error:
        code_field.refuse(error, config, roots, session.visitor(), session.runs_dir())
        return Named(config, False)
    except DatamaskError as error:
        _say(error)
        return Named(config, False)
    return _mapping(found, opening)


def _from_uploads(opening: Opening | None) -> Named | None:
    files = st.file_uploader(
        f"Shards: {formats()}",
        type=[ending[1:] for ending in endings()],
        key="corpus_uploads",
        accept_multiple_files=True,
        help=HELP["upload"],
    )
    if not files:
        _idle_uploads()
        return None
    try:
        kept = keep_uploads([(file.name, file) for file in files], session.runs_dir(), _used)
    except DatamaskError as error:
        _say(error)
        return None
    return _mapping(CorpusConfig(tuple(map(str, kept))), opening)


def _used() -> list[CorpusConfig]:
    """Every corpus that a run was made from, or that is open or offered for opening."""
    openings = session.all_openings()
    used = [opening.config for opening in openings.all()]
    used += [note.config for note in openings.recent()]
    for run in session.store().list():
        with contextlib.suppress(DatamaskError):  # a damaged run cannot be resumed, so it reads nothing
            used.append(run.config.corpus)
    return used


def _idle_uploads() -> None:
    """What earlier uploads take up, where nothing reads them any more, and a button that removes them."""
    idle = idle_uploads(session.runs_dir(), _used())
    if not idle:
        return
    files = f"{len(idle):,} uploaded file{'' if len(idle) == 1 else 's'}"
    # not `pressed`: nothing is removed that has come to be idle since the press
    if st.button(
        f"Remove {files} without a run, {words.size(sum(idle.values()))}",
        key="remove_uploads",
        type="tertiary",
        icon=":material/delete:",
    ):
        try:
            remove_uploads(idle)
        except DatamaskError as error:
            _say(error)
            return
        st.rerun()


@st.cache_data(max_entries=16, ttl=30, show_spinner="Reading the first rows")
def _inspect(config: str) -> Inspection:
    wanted = CorpusConfig.from_dict(json.loads(config))
    if not any(is_address(path) for paths in wanted.paths.values() for path in paths):
        return inspect_inputs(wanted)
    deadline = time.monotonic() + LOOK_SECONDS
    try:
        return inspect_inputs(wanted, poll=poll_of(lambda: time.monotonic() > deadline))
    except Stopped as error:
        raise InputError(
            f"reading the first rows took longer than {LOOK_SECONDS:g} s; name fewer files, or select from them "
            "on the command line"
        ) from error


def _mapping(config: CorpusConfig, opening: Opening | None) -> Named:
    """Columns, row limit and the Open button, for files that were found; what is then named."""
    try:
        seen = _inspect(json.dumps(config.to_dict()))
    except DatamaskError as error:
        _say(error)
        return Named(config, False)
    _counted(seen)
    if not config.features and not seen.candidates.get("feature"):
        # the other controls choose among columns that open as they are; these files cannot
        preparing_panel.show(config, seen, _used, lambda made: _open_made(made, config), "primary")
        return Named(config, False)
    values, chosen = _columns(seen), config
    try:
        chosen = replace(config, **values)
        problems = _inspect(json.dumps(chosen.to_dict())).problems
    except DatamaskError as error:
        problems = (str(error),)
    for problem in problems:
        _say(problem)
    st.button(
        "Open",
        type="secondary" if opening is not None and opening.ready and opening.config == chosen else "primary",
        icon=":material/folder_open:",
        width="stretch",
        key="open_corpus",
        disabled=bool(problems),
        on_click=_open,
        args=(chosen, title_of(chosen)),
    )
    return Named(chosen, not problems)


def _counted(seen: Inspection) -> None:
    amount = f"{len(seen.files):,} file{'s' if len(seen.files) != 1 else ''}, {seen.rows:,} rows"
    more = "" if seen.complete else " in a first look, of more"
    st.markdown(
        f"**{amount}**{more}, {words.size(seen.bytes)} on disk" + (f", {seen.dim:,} dimensions" if seen.dim else "")
    )


def _columns(seen: Inspection) -> dict[str, Any]:
    """The controls of columns and rows: options of a corpus, name to what was chosen."""
    quality = _quality(seen)
    left, right = st.columns(2)
    with left:
        columns = {"id_column": _choice("id", seen), "length_column": _choice("length", seen, optional=True)}
    most = max(2, seen.rows)
    with right:
        columns |= {"feature_column": _choice("feature", seen), "quality_within": _within(seen)}
        rows = option_control.draw(
            CORPUS_OPTIONS["rows"],
            min(most, seen.row_limit or seen.rows),
            f"corpus_rows_{seen.rows}_{seen.dim}",
            max_value=most,
        )
    rows = None if rows >= seen.rows and seen.complete else int(rows)
    return {**columns, "quality_columns": quality, "rows": rows, **other_options()}


def other_options() -> dict[str, Any]:
    """The options that need no place of their own in this form, drawn as their kinds are: name to what was chosen."""
    return {
        name: option_control.draw(option, option.default, f"corpus_{name}")
        for name, option in CORPUS_OPTIONS.items()
        if option.control is not None and option.control.more
    }


def _choice(role: str, seen: Inspection, optional: bool = False) -> str | None:
    """A column for a role; None where the guess was left as it was, so that the configuration stays short."""
    option = CORPUS_OPTIONS[f"{role}_column"]
    options = list(seen.candidates.get(role, ()))
    guess = seen.columns.get(role)
    options = [NONE, *options] if optional else options
    placeholder: dict[str, Any] = {} if optional else {"placeholder": "choose" if options else "no such column"}
    chosen = option_control.draw(option, guess, f"corpus_{role}_{_tag(options)}", choices=options, **placeholder)
    return None if chosen in (guess, NONE) else chosen


def _within(seen: Inspection) -> str | None:
    """The column within whose values scores are compared."""
    names = seen.candidates.get("text", [])
    key = f"corpus_quality_within_{_tag(names)}"
    chosen: str | None = option_control.draw(
        CORPUS_OPTIONS["quality_within"], None, key, choices=names, placeholder=NONE
    )
    return chosen


def _tag(options: list[str]) -> str:
    """Other columns make another control: a choice among the old ones must not survive them."""
    return f"{zlib.crc32(chr(0).join(options).encode()):08x}"


def _quality(seen: Inspection) -> tuple[QualityColumn, ...]:
    options = list(seen.candidates.get("quality", ()))
    guess = seen.columns.get("quality")
    names = st.multiselect(
        CORPUS_OPTIONS["quality_columns"].label,
        options,
        [guess] if guess in options else [],
        help=CORPUS_OPTIONS["quality_columns"].help,
        key=f"corpus_quality_{_tag(options)}",
        placeholder="choose",
    )
    if not names or names == [guess]:
        return ()
    if len(names) == 1:
        return (QualityColumn(names[0]),)
    with st.popover("Weights", icon=":material/balance:", width="stretch"):
        columns = []
        for name in names:
            weight = st.number_input(
                f"Weight of {words.plain(name, 40)}",
                value=1.0,
                step=0.1,
                key=f"weight_{name}",
                help="Multiplies the score before the scores are added.",
            )
            transform = one_of(
                f"Scale of {words.plain(name, 40)}",
                TRANSFORM_WORDS,
                f"transform_{name}",
                default="z",
                help="Add scores of different scales as z-scores or ranks.",
            )
            columns.append(QualityColumn(name, float(weight), transform))
    return tuple(columns)


def offer_recent(opening: Opening | None) -> None:
    """The corpora that were opened before, without the one that is open."""
    current = opening.key if opening is not None else None
    recent = [note for note in session.all_openings().recent() if note.config != demo.config() and note.key != current]
    if not recent:
        return
    with st.container(gap="xxsmall"):
        st.caption("Opened before")
        for note in recent:
            st.button(
                f"{words.plain(note.title, 40)} · {note.rows:,} rows",
                key=f"recent_{note.key}",
                type="tertiary",
                icon=":material/history:",
                on_click=_open,
                args=(note.config, note.title),
            )


def _open_made(made: CorpusConfig, texts: CorpusConfig) -> None:
    """Open what was made from the texts that the form names."""
    st.session_state[MADE] = (opening_key(made), texts)
    _open(made, title_of(made))


def _open(config: CorpusConfig, title: str, *, ours: bool = False) -> None:
    """Start an opening, its paths checked once more: a note on disk may be older than the roots."""
    if not ours:
        try:
            config = confined_config(config, (*session.roots(), session.runs_dir() / UPLOADS))
        except DatamaskError as error:
            st.session_state["trouble"] = str(error)
            return
    session.choose_opening(session.all_openings().start(config, title))


def _say(problem: object) -> None:
    """A problem in words for the form: its options are controls here."""
    st.error(words.sentence(problem), icon=":material/error:")
