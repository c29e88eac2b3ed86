"""What a browser session is looking at: the runs folder, the open corpus, the chosen run.

Which they are is in the `view`. Handles are anchored in the process by the modules that own them, not in Streamlit's
caches, which any visitor may clear for everyone.
"""

from __future__ import annotations

import contextlib
import functools
import logging
import os
import secrets
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING

import streamlit as st

from datamask import process
from datamask.config import CorpusConfig
from datamask.corpus import Corpus
from datamask.dashboard.data import demo
from datamask.dashboard.data.allowed import allowed
from datamask.dashboard.data.inputs import UPLOADS, Outside, check_roots, confined_config
from datamask.dashboard.data.openings import OpenCorpus, Opening, Openings, opening_key, openings, title_of
from datamask.dashboard.drawing import words
from datamask.dashboard.runs import candidates
from datamask.dashboard.shell import background, code_field
from datamask.dashboard.shell import view as views
from datamask.dashboard.shell.loopback import on_loopback
from datamask.errors import DatamaskError, InputError, StoreError
from datamask.files import RealRoots
from datamask.storage.address import FilePath, path_of, refuse_secrets, split_roots

if TYPE_CHECKING:
    from datamask.runs.run_queue import RunQueue
    from datamask.runs.store import Run, RunStore

log = logging.getLogger(__name__)

_OPENED, _OUTSIDE, _VISITOR = "opened_runs", "corpus_outside", "visitor"
SAMPLE = "DATAMASK_SAMPLE"
"""Variable of the environment; ``off``: the demo is not opened by itself."""

REMEMBERED = 20
"""Runs that a session knows it has looked at."""

LONGEST_NAME = 255
"""Letters of the longest name that a file can have."""


def runs_dir() -> Path:
    """The folder of all runs, the command line's too where both start in the same place."""
    from datamask.runs.store import default_root

    return Path(default_root()).absolute()


def roots() -> tuple[FilePath, ...]:
    """Folders whose files people may open by path, and addresses below which they may.

    DATAMASK_ROOTS (separated like PATH; the colons of an address separate nothing) where it is set; else the working
    directory and the home folder if the server listens on the loopback only, and nothing otherwise: whoever can reach
    the port could read every file under them. Besides, what the command line of this server named and what its one-time
    code allowed.
    """
    named = split_roots(os.environ.get("DATAMASK_ROOTS", ""))
    folders: tuple[FilePath, ...]
    if named:
        folders = RealRoots.of(root for root in named if _usable(root))
    else:
        folders = (Path.cwd(), Path.home()) if on_loopback() else ()
    return (*folders, *(path for path in allowed().paths if path not in folders))


def visitor() -> str:
    """A name of this browser session that no other has."""
    if _VISITOR not in st.session_state:
        st.session_state[_VISITOR] = secrets.token_hex(8)
    return str(st.session_state[_VISITOR])


@functools.cache
def _usable(root: str) -> bool:
    """Whether a root is a path or an address; what is wrong with it is said in the log, once."""
    try:
        refuse_secrets(root, "DATAMASK_ROOTS")
        path_of(root)
    except InputError as error:
        log.warning("DATAMASK_ROOTS: %s", error)
        return False
    return True


def store() -> RunStore:
    """The store of all runs."""
    from datamask.runs.store import RunStore

    return RunStore(runs_dir())


def run_queue() -> RunQueue:
    """The background workers of this process."""
    from datamask.runs.run_queue import run_queue as queue_of

    return queue_of(runs_dir())


def all_openings() -> Openings:
    """Every corpus this process has open or is opening."""
    return openings(runs_dir())


def dark() -> bool:
    """Whether the page is drawn on a dark ground. For figures that do not follow the theme by themselves."""
    return st.context.theme.type == "dark"


def current_run() -> Run | None:
    """The run that the view names, or None; one that does not exist is said once and forgotten."""
    run_id = views.now().run
    if not run_id:
        return None
    run = existing_run(run_id)
    if run is None:
        # a page's frame says it
        st.session_state["trouble"] = f"Run {run_id[:80]} does not exist here. It may have been deleted."
        views.choose_run("")
        return None
    st.session_state[_OPENED] = [run.id, *(other for other in opened_runs() if other != run.id)][:REMEMBERED]
    return run


def existing_run(run_id: str) -> Run | None:
    """The run of an id that an address or a session holds; None: there is none, or none any more."""
    try:
        # the store's own sentence names the folder on the server; and no file system has a longer name
        return store().get(run_id) if run_id and len(run_id) <= LONGEST_NAME else None
    except (DatamaskError, OSError):
        return None


def opened_runs() -> list[str]:
    """Ids of the runs that this session looked at, the latest first."""
    return st.session_state.get(_OPENED, [])


def stop_run(run_id: str) -> None:
    """Stop a run, in this process or another. For a button's `on_click`; what cannot be done is kept in `trouble`."""
    try:
        run_queue().stop(run_id)
    except DatamaskError as error:
        st.session_state["trouble"] = str(error)


def choose_opening(opening: Opening) -> None:
    """Make a corpus the one this session looks at."""
    if views.now().corpus in ("", opening.key):
        views.change(corpus=opening.key)
    else:
        views.show_corpus(opening.key)


def current_opening() -> Opening | None:
    """The corpus this session looks at, in whatever state: by the URL, else by the session, else by the chosen run.

    Without any of these it is `first_opening`. A link that names no corpus is said once and forgotten. None also where
    the corpus lies outside the roots; `outside` then has the sentence.
    """
    key = views.now().corpus
    st.session_state.pop(_OUTSIDE, None)
    opening = None
    try:
        opening = all_openings().resume(key, check_readable) if key else None
        if key and opening is None:
            views.change(corpus="")
            st.warning("This server has never opened the corpus of this link. Choose a corpus on the Data page.")
        run = current_run() if opening is None else None
        if run is not None:
            # a run whose settings cannot be read is listed with its reason; it must not take the page down
            with contextlib.suppress(StoreError):
                opening = open_corpus_of(run)
        elif opening is None:
            opening = first_opening()
    except Outside as error:
        st.session_state[_OUTSIDE] = (str(error), error.config)
    if opening is not None:
        choose_opening(opening)
    return opening


def first_opening() -> Opening | None:
    """The opening of the corpus that is shown where nobody names one, begun where it is not open.

    It is the one that the command line named, else that of the newest finished run that this server may read, else the
    demo, unless the variable `SAMPLE` of the environment is ``off``.
    """
    config = allowed().corpus or _corpus_of_newest_run()
    if config is None and os.environ.get(SAMPLE, "").lower() != "off":
        config = demo.config()
    if config is None:
        return None
    return all_openings().get(opening_key(config)) or all_openings().start(config, title_of(config))


def _corpus_of_newest_run() -> CorpusConfig | None:
    """The corpus of the newest finished run whose files are there and below the roots; None: there is none.

    Where other machines reach the server, uploads count for less: what one visitor opened the next one did not ask for.
    """
    readable = (*roots(), demo.DEMO, *([runs_dir() / UPLOADS] if on_loopback() else []))
    with contextlib.suppress(StoreError):  # the pages say so, where they need the folder
        for run in store().list():
            with contextlib.suppress(DatamaskError):
                if candidates.candidates([run], None)[0] and confined_config(run.config.corpus, readable):
                    return run.config.corpus
    return None


def check_readable(config: CorpusConfig) -> None:
    """Refuse a corpus that a run or a note names and that lies neither under the roots nor among the uploads.

    Raises:
        Outside: it lies elsewhere.
    """
    check_roots(config, (*roots(), runs_dir() / UPLOADS, demo.DEMO))


def starting() -> threading.Lock:
    """Held while a run is looked for and begun, so that of two presses, in whatever tab, one begins it."""
    return process.held("starting a run on a page", threading.Lock)


def outside() -> str:
    """Why the corpus of the address was not opened, where it lies outside the roots; else nothing."""
    return str(st.session_state.get(_OUTSIDE, ("", None))[0])


def open_corpus_of(run: Run) -> Opening:
    """The opening of the corpus a run was learned on, started in the background where it is not open yet.

    Raises:
        Outside: the run names files that this server may not read.
    """
    config = run.config.corpus
    existing = [o for o in all_openings().all() if o.config == config and (o.ready or o.under_way)]
    if existing:
        return existing[0]
    check_readable(config)
    return all_openings().start(config, title_of(config))


def choose_corpus_of(run: Run) -> None:
    """Make a run's corpus the open one. For a button's `on_click`; what cannot be done is kept in `trouble`."""
    try:
        choose_opening(open_corpus_of(run))
        if run.has_selection:
            views.choose_run(run.id)
    except DatamaskError as error:
        st.session_state["trouble"] = str(error)


def open_corpus_or_stop() -> Corpus:
    """The open corpus. Where there is none yet, draws what to do next, or the opening's progress, and ends the page."""
    return opened_or_stop().corpus


def opened_or_stop() -> OpenCorpus:
    """The open corpus with what it was opened from; where there is none yet, as `open_corpus_or_stop`."""
    opening = current_opening()
    if opening is None and outside():
        draw_outside()
        st.stop()
    if opening is None:
        with st.container(border=True):
            st.subheader("No corpus is open")
            st.write("Start from a corpus: files with scores and embeddings. Open the demo corpus or your own shards.")
            if st.button(
                "Choose a corpus",
                type="primary",
                icon=":material/arrow_forward:",
                key="choose_corpus",
            ):
                st.switch_page("pages/data.py")
        st.stop()
    opened = opening.opened
    if opened is None:
        draw_opening(opening)
        st.stop()
    return opened


def draw_outside() -> None:
    """Why the corpus of a run is not opened, and what there is to see all the same."""
    with st.container(border=True):
        st.subheader("This corpus is not open", anchor=False)
        sentence, named = st.session_state[_OUTSIDE]
        code_field.refuse(sentence, named, roots(), visitor(), runs_dir(), "allow_outside")
        if views.now().run:
            views.page_link("pages/runs.py", "The run as stored in its folder")
        st.page_link("pages/data.py", label="Choose another corpus", icon=":material/arrow_forward:")


def draw_opening(opening: Opening, follow: bool = False) -> None:
    """Progress of an opening with a Stop button, or the sentence why it ended without a corpus.

    Args:
        follow: draw the page again whenever there is more of the first look.
    """
    if opening.under_way:
        drawn = _first_parts(opening)
        background.follow(
            opening.job,
            background.Look(
                "stop_opening",
                place="live_opening",
                title=f"Opening {words.plain(opening.title)}",
                beside=lambda job: _so_far(opening),
                stop=lambda job: opening.stop(),
                over=lambda: not opening.under_way or (follow and drawn != _first_parts(opening)),
            ),
        )
    elif opening.job.state == "stopped":
        with st.container(border=True):
            st.subheader("Opening was stopped")
            st.write(f"{words.plain(opening.title)} was not opened. Nothing was changed on disk.")
            st.button("Open it again", icon=":material/refresh:", key="reopen", on_click=_reopen, args=(opening,))
    elif opening.job.state == "failed":
        with st.container(border=True):
            st.subheader("This corpus could not be opened")
            st.error(words.sentence(opening.job.error, 1000), icon=":material/error:")
            with st.container(horizontal=True):
                st.button("Try again", icon=":material/refresh:", key="reopen", on_click=_reopen, args=(opening,))
                st.page_link("pages/data.py", label="Choose another corpus", icon=":material/arrow_forward:")


def _reopen(opening: Opening) -> None:
    try:
        check_readable(opening.config)
    except Outside as error:
        st.session_state["trouble"] = str(error)
        return
    choose_opening(all_openings().start(opening.config, opening.title))


def _first_parts(opening: Opening) -> int:
    """How many parts of the first look are there."""
    return 0 if opening.first is None else opening.first.parts


def _so_far(opening: Opening) -> str:
    left = words.soon(opening.job.left)
    passed = words.duration(time.monotonic() - opening.started)
    return f"{passed} so far{(f', {left}' if left else '')}. You can leave this page; opening continues."
