"""The frontier, live while a sweep runs, and beside it the chosen point with its price."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st
from plotly import graph_objects as go

from datamask.analyses.frontier import chart as charts
from datamask.analyses.frontier import form_panel, tables
from datamask.analyses.frontier.chart import Here
from datamask.analyses.frontier.tables import Line, Survey
from datamask.dashboard.data.openings import OpenCorpus
from datamask.dashboard.drawing import words
from datamask.dashboard.runs import listing
from datamask.dashboard.shell import session
from datamask.dashboard.shell import view as views
from datamask.dashboard.tradeoff import lambda_points
from datamask.dashboard.tradeoff.ends import other_version
from datamask.dashboard.tradeoff.spots import Spot
from datamask.dashboard.workspace.current import Current
from datamask.runs.varying import Plan

MOST_LINES = 6
"""Curves drawn unless more are chosen: as many as can be told apart."""

HEIGHT = 600
PHONE = f"""<style>
@media (max-width: 700px) {{
.st-key-frontier_place {{overflow: hidden}}
div:has(> .st-key-frontier_place) {{flex: none; height: min({HEIGHT}px, 100vw)}}
}}
</style>"""
"""Both axes have one scale, so that the picture is no higher than a narrow window is wide."""

CLICK, LAMBDA, KEEP = "click", "λ", "minimum quality"
CHOSEN = "frontier_run_chosen"
"""Of the session: a point was clicked, and the rest of the page does not know yet."""

CONFIG = {"displaylogo": False, "scrollZoom": True, "modeBarButtonsToRemove": ["autoScale2d", "lasso2d", "select2d"]}


def picture(opened: OpenCorpus, plans: Sequence[Plan], current: Current | None = None) -> None:
    """Draw it in a fragment; while a sweep runs, points appear as they are done.

    Args:
        plans: what the form on the left would sweep; offered where there is nothing to draw.
        current: what the page shows; its selection gets a dot where it is no stored run.
    """
    st.session_state.pop(CHOSEN, None)  # all of the page is being drawn
    with st.container(key="live_frontier"):
        st.fragment(_picture, run_every=1.5 if form_panel.working(opened) else None)(opened.key, plans, current)


def survey(opened: OpenCorpus) -> Survey:
    """What is stored on the open corpus."""
    return tables.survey(listing.runs_on(session.store(), opened), opened.corpus.fingerprint)


def _picture(key: str, plans: Sequence[Plan], current: Current | None) -> None:
    opening = session.all_openings().get(key)
    opened = opening.opened if opening is not None else None
    if opened is None:
        st.rerun()
    stored = survey(opened)
    if not stored.lines and not stored.named:
        _nothing_yet(opened, plans)
        return
    names = tables.line_names(stored.lines)
    chart, panel = st.columns([2.15, 1], gap="medium")
    with chart, st.container(horizontal=True, vertical_alignment="top"):
        legend = st.container()
        chosen = _shown(stored, names)
        lines = tables.on_one_axis(chosen)
    named = tables.named_for(stored, lines) or (list(stored.named) if not lines else [])
    with panel:
        line, spot = _choose(lines, named, names)
    here = _here(current, lines)
    with legend:
        st.html(PHONE + charts.legend(lines, names, focus=line, chosen=spot, here=here, dark=session.dark()))
    with chart:
        figure = _figure(lines, named, names, line, spot, here)
        # its place is kept while the browser still loads what draws it, or the page would jump by all its height
        with st.container(height=HEIGHT, border=False, key="frontier_place"):
            st.plotly_chart(
                figure,
                key="frontier_chart",
                on_select=_clicked,
                selection_mode="points",
                theme=None,
                config=CONFIG,
                width="stretch",
                alt=_alt(lines, names),
            )
        st.caption(" ".join(_notes(lines, line, names)))
        for other in (other for other in chosen if other not in lines):
            kept = next(line for line in lines if line.spots[0].ends.clash(other.spots[0].ends))
            name, drawn = (words.plain(names[curve.key], 120) for curve in (other, kept))
            st.caption(f"**{name}** is not drawn: {other_version(drawn)}.")
    count = sum(len(line.spots) for line in lines) + len(named)
    with st.expander(f"All {count:,} points as a table" if count != 1 else "The point as a table"):
        _table(lines, named)
    if st.session_state.pop(CHOSEN, False):
        st.rerun()  # the links of the menu, which stands outside of the fragment, name the run of the address


def _nothing_yet(opened: OpenCorpus, plans: Sequence[Plan]) -> None:
    """What will be seen here, what it costs, and one button."""
    working = form_panel.working(opened)
    with st.container(border=True):
        st.subheader("The first point is being solved" if working else "No run on this corpus yet", anchor=False)
        st.markdown(
            "Each point is a **selection**.\n\n- λ moves along the curve, from diversity alone (0) to quality "
            "alone (1). The slope is the **price** of quality in diversity.\n- **No selection can reach** the gray "
            "area, as proved."
        )
        if working:
            st.caption("The curve grows as points are solved.")
        elif plans:
            st.markdown(form_panel.price(opened, (), plans)[0])
            st.button(
                "Draw the frontier",
                type="primary",
                icon=":material/play_arrow:",
                key="first_sweep",
                on_click=form_panel.begin,
                args=(opened, plans),
            )


def _shown(stored: Survey, names: dict[str, str]) -> list[Line]:
    """The curves to draw; a menu where there is a choice."""
    if len(stored.lines) < 2:
        return list(stored.lines)
    curves = [line for line in stored.lines if len(line.lambdas) > 1] or list(stored.lines)
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


def _choose(lines: Sequence[Line], named: Sequence[Spot], names: dict[str, str]) -> tuple[Line | None, Spot | None]:
    """The chosen point and its curve, with what it keeps and costs."""
    by_run: dict[str, tuple[Line | None, Spot | None]] = {
        spot.run_id: (line, spot) for line in lines for spot in line.spots
    }
    by_run |= {spot.run_id: (None, spot) for spot in named}
    line, spot = by_run.get(views.now().run, (None, None))
    how = st.segmented_control(
        "Choose a point by",
        (CLICK, LAMBDA, KEEP),
        default=CLICK,
        required=True,
        key="frontier_how",
        persist_state="session",
        help="*Minimum quality* takes the most diverse point that reaches it.",
    )
    if spot is None and lines:
        line = lines[0]
        spot = min(line.spots, key=lambda other: abs(other.lamb - 0.5))
    if how != CLICK and lines:
        line = _curve(line or lines[0], lines, names)
        spot = _at(line, spot) if how == LAMBDA else _keeping(line)
    if spot is not None:
        _of_spot(line, spot, names)
    return line, spot


def _curve(line: Line, lines: Sequence[Line], names: dict[str, str]) -> Line:
    """The curve on which a point is chosen; a menu where there are several, which starts at `line`."""
    if len(lines) < 2:
        return line
    keys = [other.key for other in lines]
    if st.session_state.get("frontier_on") not in keys:
        st.session_state.pop("frontier_on", None)
    key = st.selectbox(
        "On the curve",
        keys,
        keys.index(line.key),
        format_func=names.__getitem__,
        key="frontier_on",
    )
    return next(other for other in lines if other.key == key)


def _keeping(line: Line) -> Spot | None:
    """The most diverse stored point of a curve that keeps the wanted quality."""
    least = st.slider(
        "Quality at least, %",
        0,
        100,
        95,
        key="frontier_keep",
        persist_state="session",
    )
    spot = tables.at_least(line, least / 100)
    if spot is None:
        st.info("No stored point of this curve has this quality. Sweep more λ, or choose a lower quality.")
    else:
        st.markdown(words.plain(tables.keeps_words(line, spot), 400))
        if warning := tables.below_random_words(spot.quality, spot.diversity):
            st.warning(warning, icon=":material/warning:")
    return spot


def _at(line: Line, spot: Spot | None) -> Spot:
    """The point of a curve at a λ, by a control that needs no mouse."""
    lambdas = line.lambdas
    wanted = spot.lamb if spot is not None else 0.5
    lamb = lambdas[0]
    if len(lambdas) > 1:
        lamb = st.select_slider(
            "λ of the point",
            lambdas,
            min(lambdas, key=lambda other: abs(other - wanted)),
            key=f"frontier_at_{line.key}",
            persist_state="session",
        )
    spots = [other for other in line.spots if other.lamb == lamb]
    return spot if spot in spots else spots[0]


def _of_spot(line: Line | None, spot: Spot, names: dict[str, str]) -> None:
    title = f"λ {spot.lamb:g}" if line is not None else spot.label
    where = names[line.key] if line is not None else ""
    with st.container(border=True, gap="small"):
        st.markdown(f"**{words.plain(title, 60)}**" + (f"  \n:gray[{words.plain(where, 120)}]" if where else ""))
        # beside each other where both are whole, else below each other: half a number is none
        with st.container(horizontal=True, gap="medium"):
            for label, share, raw in (
                ("Quality", spot.quality, f"Mean quality score: {words.value(spot.raw_quality)}."),
                ("Diversity", spot.diversity, f"Unscaled value: {words.value(spot.raw_diversity)}."),
            ):
                st.metric(label, words.percent(share), width="content", help=raw)
        price = tables.price_words(spot)
        if price:
            st.markdown(price, help="The slope of the dotted tangent. Each further percent costs more.")
        proved = tables.proof_words(spot)
        if proved:
            st.caption(proved)
        parameters = views.address_of_run(spot.run_id)
        with st.container(gap=None):
            st.page_link("app.py", label="Show on the map", icon=":material/scatter_plot:", query_params=parameters)
            st.page_link("pages/export.py", label="Export", icon=":material/download:", query_params=parameters)
            st.page_link("pages/runs.py", label="Open the run", icon=":material/tune:", query_params=parameters)


def _here(current: Current | None, lines: Sequence[Line]) -> Here | None:
    """The current selection, where it is no stored run and of the problem of a curve that is drawn."""
    selection = None if current is None else current.selection
    if selection is None or selection.run is not None or selection.quality is None or selection.diversity is None:
        return None
    problem = lambda_points.settings_of(selection.settings)
    if all(lambda_points.settings_of(line.settings) != problem for line in lines):
        return None
    return Here(selection.name, selection.quality, selection.diversity)


def _figure(
    lines: Sequence[Line],
    named: Sequence[Spot],
    names: dict[str, str],
    line: Line | None,
    spot: Spot | None,
    here: Here | None,
) -> go.Figure:
    """From a cache: the fragment runs every second while a sweep runs, and a figure that is the same stays mounted."""
    mark = (
        tuple((curve.key, tuple(s.run_id for s in (*curve.spots, *curve.others))) for curve in lines),
        tuple(s.run_id for s in named),
        tuple(sorted(names.items())),
        line.key if line else "",
        spot.run_id if spot else "",
        here,
        session.dark(),
    )
    return _drawn(mark, lines, named, names, line, spot, here, session.dark())


@st.cache_resource(max_entries=16, show_spinner=False)
def _drawn(mark: tuple, _lines, _named, _names, _line, _spot, _here, dark: bool) -> go.Figure:
    return charts.frontier(
        _lines, _named, names=_names, focus=_line, chosen=_spot, here=_here, dark=dark, height=HEIGHT
    )


def _clicked() -> None:
    """Make the clicked point's run the current one."""
    event = st.session_state.get("frontier_chart")
    points = event.selection.points if event else []
    ids = [point.get("customdata") for point in points]
    run_id = next((custom[0] if isinstance(custom, list) else custom for custom in ids if custom), None)
    if run_id:
        st.session_state["frontier_how"] = CLICK
        st.session_state[CHOSEN] = True
        views.choose_run(str(run_id))


def _notes(lines: Sequence[Line], line: Line | None, names: dict[str, str]) -> list[str]:
    notes = []
    if line is not None and line.planes:
        proof = "the bound of a run proves"
        if any(spot.plane is not None for spot in line.others):
            proof = f"the bounds of {len(line.planes)} runs prove"
        notes.append(f"Gray: no selection lies here, as {proof}.")
    if any(min(spot.quality, spot.diversity) < -0.2 for other in lines for spot in other.spots):
        notes.append("Arrows give points outside the picture.")
    hull = dict.fromkeys(other.settings.objective for other in lines if tables.hull_only(other.settings.objective))
    if hull:
        notes.append(
            "For " + " and ".join(hull) + " a weighted sum finds only the hull of the frontier and misses points "
            "in its dents."
        )
    return notes


def _alt(lines: Sequence[Line], names: dict[str, str]) -> str:
    curves = ", ".join(f"{names[line.key]} with {len(line.lambdas)} values of λ" for line in lines) or "no curve"
    return f"Quality against diversity, 0 % random to 100 % best found: {curves}"


def _table(lines: Sequence[Line], named: Sequence[Spot]) -> None:
    table = tables.table(lines, named)
    share = st.column_config.NumberColumn(format="%.1f %%", width="small")
    event = st.dataframe(
        table.drop(columns="run_id"),
        hide_index=True,
        lazy=False,
        key="frontier_table",
        on_select="rerun",
        selection_mode="single-row",
        alt="All points of the picture",
        column_config={
            "quality": share,
            "diversity": share,
            "gap": st.column_config.NumberColumn("proved within", format="%.2f %%"),
            "mean quality": st.column_config.NumberColumn("mean quality score", format="%.4g"),
            "seconds": st.column_config.NumberColumn(format="%.2f", width="small"),
        },
    )
    if event.selection.rows:
        run_id = table["run_id"].iloc[event.selection.rows[0]]
        st.page_link(
            "app.py",
            label=f"Show on the map {words.plain(run_id, 60)}",
            icon=":material/scatter_plot:",
            query_params=views.address_of_run(run_id),
        )
