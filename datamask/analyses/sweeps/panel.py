"""The chart of a sweep, live while one runs: what the form says decides which of the three kinds it is."""

from __future__ import annotations

from collections.abc import Mapping

import streamlit as st

from datamask.analyses.frontier import chart as frontier_chart
from datamask.analyses.frontier import form_panel as frontier_form
from datamask.analyses.frontier import sweeping
from datamask.analyses.frontier.picture_panel import CONFIG
from datamask.analyses.sweeps import chart, series, tables, transfer
from datamask.analyses.sweeps.form_panel import Asked
from datamask.analyses.sweeps.series import Series
from datamask.config import CorpusConfig, SelectionConfig
from datamask.dashboard.data.openings import OpenCorpus
from datamask.dashboard.drawing import words
from datamask.dashboard.runs import listing
from datamask.dashboard.runs import sweep_kinds as kinds
from datamask.dashboard.shell import session
from datamask.dashboard.shell.plots import plot

OWN_ENDS = ("select_ratio", "prune", "collapse")
"""Options of which every value has another random and another best selection."""


def show(opened: OpenCorpus, asked: Asked) -> None:
    """Draw it in a fragment; while a sweep runs, points appear as they are done."""
    with st.container(key="live_sweep_picture"):
        st.fragment(_draw, run_every=2.0 if frontier_form.working(opened) else None)(opened, asked)


def _draw(opened: OpenCorpus, asked: Asked) -> None:
    if asked.word == kinds.PARTS:
        _transfer(opened, asked)
        return
    chosen = _chosen(_stored(opened, asked), asked.word)
    if chosen is None:
        _nothing("The chart appears when runs of two values have finished.")
        return
    label = kinds.LABELS[asked.word]
    dark, alt = session.dark(), f"{label}: {chosen.label}"
    over_time = tables.curves(chosen) if kinds.over_time(asked.word) else None
    if over_time is not None and over_time["level"].nunique() > 1:
        title = "arm" if asked.word in kinds.PRESETS else label
        plot(chart.curves(over_time, title, dark=dark), key="sweep_chart", alt=f"Joint value over seconds. {alt}")
        counts = {str(level): int(n) for level, n in over_time.groupby("level", sort=False)["n"].first().items()}
        st.caption(f"Line: mean over seeds; band: worst to best seed. {_seeds(counts)}")
        return
    ends = tables.ends(chosen)
    if ends.empty or ends["level"].nunique() < 2:
        _nothing("The chart appears when runs of two values have finished.")
        return
    if asked.word not in kinds.PRESETS and kinds.counted(asked.word):
        percent = asked.word == "select_ratio"
        plot(chart.lines(ends, label, percent=percent, dark=dark), key="sweep_chart", alt=alt)
    else:
        plot(chart.dots(ends, label, dark=dark), key="sweep_chart", alt=alt)
    notes = ["Mark: mean over seeds; bar: worst to best seed."]
    if asked.word in OWN_ENDS:
        notes.append(f"Each {label.lower()} has its own 0 % and 100 %.")
    if asked.word in ("objective", "single"):
        notes.append("Each run measures diversity by its own objective.")
    st.caption(" ".join(notes))


def _stored(opened: OpenCorpus, asked: Asked) -> list[Series]:
    runs, fingerprint = listing.runs_on(session.store(), opened), opened.corpus.fingerprint
    if asked.word in kinds.PRESETS:
        return series.of_arms(runs, fingerprint, kinds.LABELS[asked.word], asked.arms)
    return series.stored(runs, fingerprint, asked.word)


def _chosen(stored: list[Series], word: str) -> Series | None:
    """One series, by a menu where there are several; None: there is none."""
    if len(stored) < 2:
        return stored[0] if stored else None
    by_key = {one.key: one for one in stored}
    if st.session_state.get(f"sweep_series_{word}") not in by_key:
        st.session_state.pop(f"sweep_series_{word}", None)
    key = st.selectbox(
        "Stored sweep",
        list(by_key),
        format_func=lambda key: by_key[key].label,
        key=f"sweep_series_{word}",
    )
    return by_key[key]


def _seeds(counts: Mapping[str, int]) -> str:
    if len(set(counts.values())) == 1:
        count = next(iter(counts.values()))
        return f"{count:,} seed{'s' if count > 1 else ''} each."
    return ", ".join(f"{words.plain(name)}: {count:,}" for name, count in counts.items()) + " seeds."


def _nothing(needs: str) -> None:
    with st.container(border=True):
        st.subheader("No stored sweep of this kind", anchor=False)
        st.markdown(f"{needs} Press **Start the sweep**.")


# -- parts of the corpus -----------------------------------------------------------------------------------------------


def _transfer(opened: OpenCorpus, asked: Asked) -> None:
    slices = sweeping.slices(opened.config, len(opened.corpus))
    config = SelectionConfig.from_options(objective=asked.settings.objectives[0], **asked.settings.options)
    frontiers = transfer.transfer(session.store().list(), slices, opened.corpus.fingerprint, config)
    if not frontiers.lines:
        _nothing("Shows whether a λ chosen on an eighth or a quarter of the rows holds for all of them.")
        return
    lines = list(frontiers.lines.values())
    names = _names(frontiers.lines, slices, opened)
    st.html(frontier_chart.legend(lines, names, dark=session.dark()))
    st.plotly_chart(
        frontier_chart.frontier(lines, names=names, dark=session.dark(), height=560),
        key="transfer_chart",
        theme=None,
        config=CONFIG,
        width="stretch",
        alt="Frontiers of parts of the corpus over the frontier of all rows",
    )
    st.markdown(words.plain(transfer.transfer_words(frontiers), 600))
    st.caption("Each part has its own 0 % and 100 %.")


def _names(lines: Mapping[str, object], slices: Mapping[str, CorpusConfig], opened: OpenCorpus) -> dict[str, str]:
    return {
        name: f"{name}: {slices[name].rows or len(opened.corpus):,} rows"
        if name != "N"
        else f"all {len(opened.corpus):,} rows"
        for name in lines
    }
