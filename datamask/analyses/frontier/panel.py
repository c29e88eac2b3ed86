"""The picture of the page Frontier, live while a sweep runs: curves along λ, or what another setting changes.

Beside it stands the chosen point with its price, and a table of all points, whose rows choose a point too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pandas as pd
import streamlit as st

from datamask import catalogue
from datamask.analyses.curves import chart as curve_chart
from datamask.analyses.frontier import chart as charts
from datamask.analyses.frontier import form_panel, kinds, tables
from datamask.analyses.frontier.chart import Here
from datamask.analyses.frontier.form_panel import Asked
from datamask.analyses.frontier.tables import Series, Survey
from datamask.dashboard.data.openings import OpenCorpus
from datamask.dashboard.drawing import words
from datamask.dashboard.runs import listing
from datamask.dashboard.shell import session
from datamask.dashboard.shell import tables as heights
from datamask.dashboard.shell import view as views
from datamask.dashboard.shell.plots import plot
from datamask.dashboard.tradeoff import lambda_points
from datamask.dashboard.tradeoff.ends import other_version
from datamask.dashboard.tradeoff.spots import Spot
from datamask.dashboard.workspace.current import Current

MOST_LINES = 6
"""Curves drawn unless more are chosen: as many as can be told apart."""

ROWS_AT_ONCE = 12

HEIGHT = 600
PHONE = f"""<style>
@media (max-width: 700px) {{
.st-key-frontier_place {{overflow: hidden}}
div:has(> .st-key-frontier_place) {{flex: none; height: min({HEIGHT}px, 100vw)}}
}}
</style>"""
"""Both axes have one scale, so that the picture is no higher than a narrow window is wide."""

CHOSEN = "frontier_run_chosen"
"""Of the session: a point was chosen, and the rest of the page does not know yet."""

OWN_ENDS = ("select_ratio", "prune", "collapse")
"""Options of which every value has another random and another best selection."""

CONFIG = {"displaylogo": False, "scrollZoom": True, "modeBarButtonsToRemove": ["autoScale2d", "lasso2d", "select2d"]}

SHARE = st.column_config.NumberColumn(format="%.1f %%", width=64)
COLUMNS = {
    "curve": st.column_config.TextColumn(width=132),
    "λ": st.column_config.NumberColumn(format="%.4g", width=42),
    "quality": SHARE,
    "diversity": SHARE,
    "gap": st.column_config.NumberColumn("gap", format="%.2f %%", width=60),
    "mean quality": st.column_config.NumberColumn("mean quality score", format="%.4g"),
    "seconds": st.column_config.NumberColumn(format="%.2f", width="small"),
    "seeds": st.column_config.NumberColumn(width=50),
}


def show(opened: OpenCorpus, asked: Asked, current: Current | None) -> None:
    """Draw it in a fragment; while a sweep runs, points appear as they are done.

    Args:
        asked: what the form says. current: what the page shows; its selection gets a dot where no curve has it.
    """
    st.session_state.pop(CHOSEN, None)  # all of the page is being drawn
    with st.container(key="live_frontier"):
        st.fragment(_draw, run_every=1.5 if form_panel.working(opened) else None)(opened.key, asked, current)


def _draw(key: str, asked: Asked, current: Current | None) -> None:
    opening = session.all_openings().get(key)
    opened = opening.opened if opening is not None else None
    if opened is None:
        st.rerun()
    stored = tables.survey(listing.runs_on(session.store(), opened), opened.corpus.fingerprint)
    picture, side = st.columns([1.6, 1], gap="medium")
    drawn = _along_lambda if asked.word == kinds.LAMBDA else _along_setting
    if not drawn(stored, asked, current, picture, side):
        with picture:
            _nothing_yet(asked, form_panel.working(opened))
    if st.session_state.pop(CHOSEN, False):
        st.rerun()  # the links of the menu, which stands outside of the fragment, name the run of the address


def _nothing_yet(asked: Asked, working: bool) -> None:
    """What will be seen here."""
    with st.container(border=True):
        if working:
            st.subheader("The first point is being solved", anchor=False)
            st.caption("Points appear as they are solved.")
        elif asked.word == kinds.LAMBDA:
            st.subheader("No run on this corpus yet", anchor=False)
            st.markdown(
                "Each point is a **selection**.\n\n- λ moves along the curve, from diversity alone (0) to quality "
                "alone (1). The slope is the **price** of quality in diversity.\n- **No selection can reach** the gray "
                "area, as proved.\n\nPress **Start the sweep**."
            )
        else:
            st.subheader("No stored sweep of this kind", anchor=False)
            st.markdown("The chart appears when runs of two values have finished. Press **Start the sweep**.")


# -- along λ -----------------------------------------------------------------------------------------------------------


def _along_lambda(stored: Survey, asked: Asked, current: Current | None, picture, side) -> bool:
    if not stored.lines and not stored.named:
        return False
    names = tables.names(stored.lines)
    with picture:
        chosen = _shown(stored, names)
        lines = tables.on_one_axis(chosen)
    named = tables.named_for(stored, lines)
    line, spot = _current(lines, named)
    planes = [] if line is None else stored.planes(line)
    here, solved = _of_map(current, lines)
    figure = charts.frontier(
        lines, named, names=names, planes=planes, chosen=spot, here=here, solved=solved, height=HEIGHT
    )
    with picture:
        st.html(PHONE)
        _plot(figure, lines, names)
        st.caption(" ".join(_notes(lines, named, line, len(planes))))
        for other in (other for other in chosen if other not in lines):
            kept = next(line for line in lines if line.spots[0].ends.clash(other.spots[0].ends))
            name, drawn = (words.plain(names[curve.key], 120) for curve in (other, kept))
            st.caption(f"**{name}** is not drawn: {other_version(drawn)}.")
    table = tables.table(lines, named)
    order = ["λ", "quality", "diversity", "gap", "curve", "mean quality", "seconds"]
    if table["curve"].nunique() > 1:
        order.insert(0, order.pop(4))
    with side:
        if spot is not None:
            _of_spot(line, spot, names)
        _points(table, order, spot, "All points of the picture")
    return True


def _shown(stored: Survey, names: dict[str, str]) -> list[Series]:
    """The curves to draw; a menu where there is a choice."""
    if len(stored.lines) < 2:
        return list(stored.lines)
    curves = [line for line in stored.lines if len(line.levels) > 1] or list(stored.lines)
    default = [line.key for line in curves[:MOST_LINES]]
    with st.popover("Curves", icon=":material/stacked_line_chart:"):
        # another set of curves is another menu: a new curve must not stay hidden behind an old choice
        chosen = st.pills(
            "Curves",
            list(names),
            selection_mode="multi",
            default=default,
            format_func=names.__getitem__,
            persist_state="session",
            wrap=True,
            key=f"frontier_lines_{'_'.join(sorted(default))}",
            help="A curve joins runs that differ only in λ and seed.",
        )
    return [line for line in stored.lines if line.key in chosen]


def _current(lines: Sequence[Series], named: Sequence[Spot]) -> tuple[Series | None, Spot | None]:
    """The point of the current run, else the middle of the first curve, with its curve."""
    placed: list[tuple[Series | None, Spot]] = [(line, spot) for line in lines for spot in line.spots]
    placed += [(None, spot) for spot in named]
    run_id = views.now().run
    middle = min(((lines[0], spot) for spot in lines[0].spots), key=lambda it: abs(it[1].lamb - 0.5)) if lines else None
    return next((it for it in placed if it[1].run_id == run_id), middle or (None, None))


def _of_spot(line: Series | None, spot: Spot, names: dict[str, str]) -> None:
    title = f"λ {spot.lamb:g}" if line is not None else spot.label
    where = names[line.key] if line is not None else ""
    with st.container(gap="small"):
        st.markdown(f"**{words.plain(title, 60)}**" + (f"  \n:gray[{words.plain(where, 120)}]" if where else ""))
        if price := tables.price_words(spot):
            st.markdown(price, help="The slope of the curve here. Each further percent costs more.")
        parameters = views.address_of_run(spot.run_id)
        with st.container(gap=None):
            views.page_link("app.py", "Show on the map", ":material/scatter_plot:", address=parameters)
            views.page_link("pages/export.py", "Export", ":material/download:", address=parameters)
            views.page_link("pages/runs.py", "Open the run", ":material/tune:", address=parameters)


def _points(table: pd.DataFrame, order: list[str], spot: Spot | None, alt: str) -> None:
    """All points; a row that is ticked is chosen, as a point that is clicked."""
    # one choice a table: after another point was clicked, no row of an earlier one stays ticked
    key = f"frontier_table_{spot.run_id if spot else ''}"

    def ticked() -> None:
        rows = st.session_state[key].selection.rows
        if rows:
            _choose(str(table["run_id"].iloc[rows[0]]))

    st.dataframe(
        table.drop(columns="run_id"),
        hide_index=True,
        lazy=False,
        height=heights.height(len(table), ROWS_AT_ONCE),
        key=key,
        on_select=ticked,
        selection_mode="single-row",
        column_order=order,
        alt=alt,
        column_config=COLUMNS,
    )


def _choose(run_id: str) -> None:
    """Make a point's run the current one."""
    st.session_state[CHOSEN] = True
    views.choose_run(run_id)


def _clicked() -> None:
    event = st.session_state.get("frontier_chart")
    points = event.selection.points if event else []
    ids = [point.get("customdata") for point in points]
    run_id = next((custom[0] if isinstance(custom, list) else custom for custom in ids if custom), None)
    if run_id:
        _choose(str(run_id))


def _of_map(current: Current | None, lines: Sequence[Series]) -> tuple[Here | None, tuple[Here, ...]]:
    """The current selection, where it is no point of a curve that is drawn, and what the Map's slider has solved.

    Both only where they are of the problem of a curve that is drawn.
    """
    selection = None if current is None else current.selection
    if current is None or selection is None:
        return None, ()
    problem = lambda_points.settings_of(selection.settings)
    if all(lambda_points.settings_of(line.settings) != problem for line in lines):
        return None, ()
    solved = tuple(
        Here(f"λ {point.lamb:g}", point.quality, point.diversity)
        for point in current.points
        if not (point.run_id or point.quick)
    )
    drawn = selection.run is not None and any(selection.run.id == spot.run_id for line in lines for spot in line.spots)
    if drawn or selection.quality is None or selection.diversity is None:
        return None, solved
    return Here(selection.name, selection.quality, selection.diversity), solved


def _plot(figure, lines: Sequence[Series], names: Mapping[str, str]) -> None:
    """The figure; while a sweep runs, one that is the same stays mounted."""
    curves = ", ".join(f"{names[line.key]} with {len(line.levels)} values of λ" for line in lines) or "no curve"
    # its place is kept while the browser still loads what draws it, or the page would jump by all its height
    with st.container(height=HEIGHT, border=False, key="frontier_place"):
        st.plotly_chart(
            figure,
            key="frontier_chart",
            on_select=_clicked,
            selection_mode="points",
            theme="streamlit",
            config=CONFIG,
            width="stretch",
            alt=f"Quality against diversity, 0 % random to 100 % best found: {curves}",
        )


def _notes(lines: Sequence[Series], named: Sequence[Spot], proved: Series | None, proofs: int) -> list[str]:
    notes = []
    if proved is not None and proofs:
        others = any(line.settings.objective != proved.settings.objective for line in lines)
        here = f"here by {catalogue.objective(proved.settings.objective).label}" if others else "here"
        proof = f"the bounds of {proofs} runs prove" if proofs > 1 else "the bound of a run proves"
        notes.append(f"Gray: no selection lies {here}, as {proof}.")
    outside = [spot.label for spot in named if charts.far(spot)]
    outside += [f"λ {spot.lamb:g}" for line in lines for spot in line.spots if charts.far(spot)]
    if outside:
        notes.append(f"Outside the picture: {words.plain(', '.join(dict.fromkeys(outside)), 200)}.")
    hull = dict.fromkeys(other.settings.objective for other in lines if tables.hull_only(other.settings.objective))
    if hull:
        notes.append(
            "For " + " and ".join(hull) + " a weighted sum finds only the hull of the frontier and misses points "
            "in its dents."
        )
    if not named:
        notes.append("Vary *Method* to add baselines.")
    return notes


# -- along another setting ---------------------------------------------------------------------------------------------


def _along_setting(stored: Survey, asked: Asked, current: Current | None, picture, side) -> bool:
    word, label, preset = asked.word, kinds.LABELS[asked.word], asked.word in kinds.PRESETS
    found = tables.of_arms(stored.spots, asked.arms) if preset else tables.series(stored.spots, word)
    if not found:
        return False
    names = tables.names(found)
    with picture:
        one = found[0]
        if len(found) > 1:
            by_key = {one.key: one for one in found}
            one = by_key[
                st.selectbox("Stored sweep", by_key, format_func=names.__getitem__, key=f"sweep_series_{word}")
            ]
    ends, alt = tables.ends(one), f"{label}: {names[one.key]}"
    lines = tables.curves(one, "arm" if preset else label) if kinds.over_time(word) else None
    with picture:
        if lines is not None and len(lines.series) > 1:
            spec = curve_chart.curves(lines, "seconds", dark=session.dark(), height=charts.HEIGHT)
            # it grows while the sweep runs, and stays mounted
            st.vega_lite_chart(lines.table, spec, key="sweep_curves", width="stretch", height=charts.HEIGHT, alt=alt)
            notes = ["Line: mean over seeds; band: worst to best seed."]
        else:
            counted = not preset and kinds.counted(word)
            figure = charts.values(ends, label, counted=counted, percent=word == "select_ratio")
            plot(figure, key="sweep_chart", alt=alt)
            notes = ["Mark: mean over seeds; bar: worst to best seed."]
            if not counted and (outside := ends[ends["share"] < charts.FARTHEST]["level"].tolist()):
                notes.append(f"Outside the picture: {words.plain(', '.join(outside), 200)}.")
            if word in OWN_ENDS:
                notes.append(f"Each {label.lower()} has its own 0 % and 100 %.")
            if word in ("objective", "single"):
                notes.append("Each run measures diversity by its own objective.")
        st.caption(" ".join(notes))
    quality, diversity = (ends[ends["term"] == term].reset_index() for term in tables.TERMS)
    shares = {"quality": quality["share"], "diversity": diversity["share"], "seeds": quality["n"]}
    table = quality[["run_id"]].assign(**{label: quality["level"]}, **shares)
    with side:
        _points(table, [label, *tables.TERMS, "seeds"], None, "Mean quality and diversity of each value")
    return True
