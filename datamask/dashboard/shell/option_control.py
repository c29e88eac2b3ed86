"""One option of a table as its kind is drawn: a menu, a box to tick, or a number."""

from __future__ import annotations

from typing import Any

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from datamask.options import Choice, Flag, Option


def draw(option: Option, value: Any, key: str, place: DeltaGenerator | None = None, **about: Any) -> Any:
    """Draw an option that has a `control`; what the reader chose.

    Args:
        value: where the control starts.
        key: of the control.
        place: a column or container; None: where the page stands. about: further arguments of the control.
    """
    drawing = st if place is None else place
    about = {"key": key, "help": option.help or None, **about}
    if isinstance(option.kind, Choice):
        meanings = option.kind.meanings
        choices = tuple(meanings)
        start = choices.index(value) if value in choices else 0
        return drawing.selectbox(option.label, choices, start, format_func=meanings.__getitem__, **about)
    if isinstance(option.kind, Flag):
        return drawing.checkbox(option.label, value, **about)
    limits = option.control.limits if option.control is not None else {}
    return drawing.number_input(option.label, value=value, **about, **limits)
