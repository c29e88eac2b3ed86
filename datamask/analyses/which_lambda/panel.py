"""A stored answer to "which lambda?", the question that ablations replaced: its sentence, two charts, all numbers."""

from __future__ import annotations

from collections.abc import Mapping

import streamlit as st

from datamask.analyses.which_lambda import tables
from datamask.analyses.which_lambda.chart import band
from datamask.dashboard.drawing import words
from datamask.dashboard.shell import session
from datamask.dashboard.shell.plots import plot


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
                help="Near random hides values far from random. Arrows at the edge give them.",
            )
            == "near random"
        )
    _chart(main, ratio, near, 286, "lambda_band")
    st.caption(
        words.plain(tables.reading(main, ratio), 400),
        help=tables.nats_help(main),
    )
    if second is not None:
        st.markdown("**Second measure: coverage of the target**", help=second["says"])
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
            "rows": st.column_config.NumberColumn(format="localized", help="Selected rows."),
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
        help="Each ratio was measured on its own.",
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
    plot(figure, key=key, alt=f"{record['label']} over λ, as the difference to random")
