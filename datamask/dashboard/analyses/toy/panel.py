"""What each objective sees, on a planted toy that is solved when it is first asked for; it needs no corpus."""

from __future__ import annotations

import streamlit as st

from datamask.dashboard.analyses.toy import solving
from datamask.dashboard.analyses.toy.chart import toy as picture
from datamask.dashboard.drawing import words
from datamask.dashboard.shell import background, session
from datamask.work.worker import worker

SOLVING = background.Look(instead="Solving the made-up corpus with each objective, once: a few seconds …")


def show() -> None:
    """What each objective selects of the toy; where it is not solved yet, its solving under way."""
    solved = solving.load(session.store().cache_dir)
    if solved is None:
        _solve()
    else:
        _draw(solved)


def _draw(solved: solving.Toy) -> None:
    random = words.percent(solved.ratio)
    st.markdown(
        f"{len(solved.group):,} made-up samples in four groups: a crowd, families of near-copies around it, a "
        f"niche of good ones, outliers of low quality. Each objective selected {random} of them at λ 0.5. Blue "
        "and large: selected. The shape tells the group. Copies are drawn a little apart, to be counted."
    )
    st.plotly_chart(
        picture(solved, dark=session.dark()),
        width="stretch",
        key="toy_figure",
        config={"displayModeBar": False},
        alt="Four panels of the same made-up samples, each with what one objective selects",
    )
    table = solving.table(solved)
    titles = list(solving.TITLES.values())
    table[titles] = table[titles].map(words.percent)
    st.dataframe(
        table,
        hide_index=True,
        width="stretch",
        lazy=False,
        alt="Selected share of each planted group under each objective",
        column_config={
            "group": "Planted group",
            "n": st.column_config.NumberColumn("Samples", format="localized"),
            **{
                title: st.column_config.TextColumn(title, help=f"Selected share of the group. At random: {random}.")
                for title in titles
            },
        },
    )
    st.caption(
        f"Selected share of each group; at random it would be {random} everywhere. "
        + " ".join(f"{solving.TITLES[name]}: {says}" for name, says in solving.SEES.items())
    )


def _solve() -> None:
    """Start the solving where it is not under way, and watch it."""
    cache_dir = session.store().cache_dir
    job = worker().find(solving.KEY)
    if job is not None and job.state == "failed":
        st.error(words.sentence(job.error), icon=":material/error:")
        st.button("Try again", key="toy_again", on_click=background.on_press(solving.start), args=(cache_dir,))
        return
    if job is None or job.ended:
        solving.start(cache_dir)
    if not background.under_way(solving.KEY, SOLVING):
        st.rerun()
