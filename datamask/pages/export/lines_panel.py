"""The table of the Export page: a line for each thing to download."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import streamlit as st

from datamask.dashboard.drawing import words


@dataclass(frozen=True)
class File:
    """A line in one format.

    Attributes:
        format: what the menu calls it. name: of the file. media_type: what a browser is told that it is.
        content: makes it, or is it. about: what the format alone does not say. size: bytes, where they are known.
    """

    format: str
    name: str
    media_type: str
    content: Callable[[], bytes] | bytes | str
    about: str = ""
    size: int | None = None


def line(key: str, heading: str, about: str, rows: str, files: Sequence[File]) -> None:
    """Draw a line.

    Args:
        key: of its button. heading: what there is to download. about: behind "?". rows: how many, in words.
        files: in each of the formats, the usual one first.
    """
    notes = [f"*{file.format}*: {file.about}" for file in files if file.about]
    with st.container(key=f"line_{key}", horizontal=True, vertical_alignment="center", gap="medium"):
        begin(heading, "  \n".join([about, *notes]), rows)
        formats = [file.format for file in files]
        chosen = formats[0]
        if len(formats) > 1:
            chosen = st.selectbox(
                f"Format of {heading.lower()}",
                formats,
                key=f"{key}_format",
                label_visibility="collapsed",
                width=150,
            )
        else:
            st.markdown(chosen, width=150)
        file = files[formats.index(chosen)]
        st.caption("" if file.size is None else words.size(file.size), width=80)
        st.download_button(
            f"Download {heading[0].lower()}{heading[1:]}",
            file.content,
            on_click="ignore",
            file_name=file.name,
            mime=file.media_type,
            icon=":material/download:",
            width=240,
            key=key,
        )


def begin(heading: str, about: str, rows: str) -> None:
    """The first two cells of a line."""
    st.markdown(f"**{heading}**", help=about, width=190)
    st.caption(rows, width=110)
