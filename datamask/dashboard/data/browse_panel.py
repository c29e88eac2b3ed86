"""A browser of the folders that the server may read: it fills in the path of the form."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import streamlit as st

from datamask.dashboard.data import folders
from datamask.dashboard.drawing import words
from datamask.errors import DatamaskError
from datamask.storage.address import FilePath

AT = "browse_folder"
"""Of the session state: the folder that is looked into; none: the list of those that may be."""

_INTO, _FILE = "browse_into", "browse_file"
UP = ".."


def show(roots: Sequence[FilePath], field: str) -> None:
    """Draw the browser; what is chosen in it stands in the text field of that key."""
    starts = folders.starts(roots)
    if not starts:
        return
    with st.popover("Browse folders", icon=":material/folder_open:", width="stretch"):
        at = st.session_state.get(AT) or (str(starts[0]) if len(starts) == 1 else None)
        if at is None:
            _choose_folder([str(start) for start in starts])
            return
        try:
            folder = folders.look_into(at, roots)
        except DatamaskError as error:
            st.session_state.pop(AT, None)
            st.error(words.sentence(error), icon=":material/error:")
            return
        st.caption(words.plain(folder.path))
        up = [UP] if folder.above is not None or len(starts) > 1 else []
        if up or folder.folders:
            _choose_folder([*up, *folder.folders], str(folder.path), "" if folder.above is None else str(folder.above))
        if not folder.files:
            st.caption("This folder has no readable file.")
            return
        st.selectbox(
            f"{len(folder.files):,} files{', and more' if folder.more else ''}",
            folder.files,
            None,
            key=_FILE,
            placeholder="Choose one file",
            on_change=_take_file,
            args=(str(folder.path), field),
        )
        st.button(
            "Use this folder",
            key="browse_use",
            icon=":material/check:",
            width="stretch",
            on_click=_take,
            args=(str(folder.path), field),
        )


def _choose_folder(options: list[str], within: str = "", above: str = "") -> None:
    st.selectbox(
        "Folders",
        options,
        None,
        key=_INTO,
        placeholder="Choose a folder",
        on_change=_enter,
        args=(within, above),
    )


def _enter(within: str, above: str) -> None:
    name = st.session_state.get(_INTO)
    st.session_state[_INTO] = None
    if name == UP:
        st.session_state[AT] = above or None
    elif name:
        st.session_state[AT] = str(Path(within) / name)


def _take_file(folder: str, field: str) -> None:
    name = st.session_state.get(_FILE)
    st.session_state[_FILE] = None
    if name:
        _take(str(Path(folder) / name), field)


def _take(path: str, field: str) -> None:
    st.session_state[field] = path
