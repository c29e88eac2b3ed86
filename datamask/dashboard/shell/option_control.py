"""One option of a table as a control: a menu, a box to tick, a slider, a number or a text, by its kind; and one of a
few choices that are no option.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import cycle
from typing import Any

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from datamask.options import Choice, Device, Flag, Number, Option, Whole

KEPT: Any = {"bind": "query-params", "persist_state": "session"}
"""Of controls that are no part of the view: a reload and the way back from another page find them as they were."""


def draw(
    option: Option,
    value: Any,
    key: str,
    place: DeltaGenerator | None = None,
    *,
    choices: Sequence[Any] | None = None,
    shown: Callable[[Any], str] = str,
    **about: Any,
) -> Any:
    """Draw an option with its label, help and bounds; what the reader chose.

    Args:
        value: where the control starts. Once it has moved it starts where it stands: a browser that mounts it anew, as
            when a run begins or ends, would else put a number at its least value and a menu at its first line.
        key: of the control.
        place: a column or container; None: where the page stands.
        choices: of a menu, where the kind does not say them; the first one is chosen unless `value` is one, and none
            where a placeholder is given. shown: what the menu calls a choice.
        about: further arguments of the control, and others in the place of the table's.
    """
    drawing = st if place is None else place
    value = st.session_state.get(key, value)
    limits: Mapping[str, Any] = option.control.limits if option.control is not None else {}
    about = {"label": option.label, "key": key, "help": option.help or None, **limits, **about}
    if isinstance(option.kind, Choice):
        choices, shown = tuple(option.kind.meanings), option.kind.meanings.__getitem__
    elif isinstance(option.kind, Device):
        choices = tuple(dict.fromkeys((*option.kind.choices, value)))
        about["accept_new_options"] = True
    if choices is not None:
        start = choices.index(value) if value in choices else None if "placeholder" in about else 0
        return drawing.selectbox(options=choices, index=start, format_func=shown, **about)
    if isinstance(option.kind, Flag):
        return drawing.checkbox(value=value, **about)
    if not isinstance(option.kind, (Number, Whole)):
        return drawing.text_input(value=value or "", **about)
    slides = option.control is not None and option.control.slider
    return (drawing.slider if slides else drawing.number_input)(value=value, **about)


def one_of(label: str, choices: Iterable[Any], key: str, **about: Any) -> Any:
    """Draw a few choices beside each other; the chosen one, the first unless a `default` says another.

    Args:
        choices: where it is a mapping, from each to what the page calls it.
        about: further arguments of the control.
    """
    named = {"format_func": choices.__getitem__} if isinstance(choices, Mapping) else {}
    offered = list(choices)
    about = {"default": offered[0], "required": True, **named, **about}
    return st.segmented_control(label, offered, key=key, **about)


def draw_in_pairs(
    options: Iterable[Option],
    values: Mapping[str, Any],
    key: Callable[[str], str],
    paired: tuple[type, ...] = (Number, Whole),
    **about: Any,
) -> None:
    """Draw options: those of the kinds `paired` in two columns, the others below them.

    Args:
        values: of each name, where it starts. key: of the control of a name. about: as of `draw`.
    """
    drawn = list(options)
    beside = [option for option in drawn if isinstance(option.kind, paired)]
    columns = st.columns(2) if beside else ()
    for place, option in zip(cycle(columns), beside):
        draw(option, values[option.name], key(option.name), place, **about)
    for option in drawn:
        if option not in beside:
            draw(option, values[option.name], key(option.name), **about)
