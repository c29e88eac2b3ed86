"""The field for the code of the server's terminal, which allows the folders of a corpus from now on."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterable
from pathlib import Path

import streamlit as st

from datamask.config import CorpusConfig
from datamask.dashboard.data import kept_roots
from datamask.dashboard.data.allowed import allowed
from datamask.dashboard.data.inputs import outside_paths
from datamask.dashboard.drawing import words
from datamask.dashboard.server.codes import one_time_code
from datamask.dashboard.shell.loopback import on_loopback
from datamask.errors import DatamaskError
from datamask.files import RealRoots
from datamask.storage.address import FilePath

HELP = (
    "The server's terminal shows a one-time code. It allows this folder and its content for everyone who can "
    "open this page, also after a restart."
)


def refuse(
    error: object, config: CorpusConfig, roots: Iterable[FilePath], visitor: str, runs_dir: Path, key: str = "allow"
) -> None:
    """Draw why a corpus is not opened, and on a loopback server the field: the right code allows what it names.

    The button names the whole path: who types the code must see what it opens.

    Args:
        error: what is wrong. config: of the corpus. roots: what may be read. visitor: tells sessions apart.
        runs_dir: beside which it is kept what was allowed. key: of the button; one on a page.
    """
    named: tuple[FilePath, ...] = ()
    if on_loopback():
        with contextlib.suppress(DatamaskError):  # no path that anything could be allowed at
            named = outside_paths(config, roots)  # none: it is a link below an allowed folder that leads out
    way = " The quickest way: enter the one-time code below." if named else ""
    st.error(f"{words.sentence(error).rstrip('.')}.{way}", icon=":material/lock:")
    if not named:
        return
    with st.form(f"{key}_by_code", border=False):
        code = st.text_input("One-time code from the server's terminal", key=f"{key}_code", max_chars=20, help=HELP)
        submitted = st.form_submit_button(
            f"Allow {words.plain(', '.join(map(str, named)), 200)}",
            key=key,
            type="primary",
            icon=":material/lock_open:",
        )
    if not submitted:
        return
    tried = one_time_code().spend(code, visitor)
    if tried.right:
        allowed().allow(named)
        kept_roots.keep(runs_dir, RealRoots.of(named))
        st.rerun()
    found = "Wrong code." if tried.judged else "Too many wrong codes. This one was not checked."
    again = f" Try again in {math.ceil(tried.wait)} s." if tried.wait else ""
    st.warning(found + again, icon=":material/lock:")
