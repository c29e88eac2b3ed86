"""Beside the form of runs: one run, live while it works, with its story where it did not finish."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from pathlib import Path

import streamlit as st

from datamask.analyses.curves import chart, vitals
from datamask.analyses.curves import tables as curves
from datamask.analyses.curves.phases import started_from
from datamask.dashboard.data.openings import title_of
from datamask.dashboard.drawing import words
from datamask.dashboard.runs import form_panel, listing, outcome, provenance
from datamask.dashboard.shell import session
from datamask.dashboard.shell import view as views
from datamask.dashboard.shell.option_control import one_of
from datamask.dashboard.workspace.rules import book_of_run
from datamask.dashboard.workspace.workspace import pose
from datamask.errors import DatamaskError
from datamask.runs.health import learning
from datamask.runs.store import Run

CURVE_HEIGHT, LIVE_HEIGHT, VITAL_HEIGHT = 420, 280, 185
"""Pixels of the curve, while the run is at work, so that it is whole on a screen of 900, and of a vital sign."""

MEASURES = {**{name: name.capitalize() for name in curves.MEASURES}, curves.GAP: "Gap"}
ALONG = {"step": "Steps", "seconds": "Seconds", "masks": "Masks"}

PICTURE = Path(__file__).resolve().parents[3] / "docs" / "how-it-learns.svg"
"""How it learns, in a drawing; missing where only the package is installed."""


def other_corpus(run: Run) -> None:
    """A run that was learned on another corpus than the open one: said, with the way there; not of a damaged record."""
    with contextlib.suppress(DatamaskError), st.container(horizontal=True, vertical_alignment="center"):
        st.caption(f"Made on another corpus: {words.plain(title_of(run.config.corpus), 80)}", width="content")
        st.button(
            "Open that corpus",
            key="open_other",
            type="tertiary",
            icon=":material/folder_open:",
            on_click=session.choose_corpus_of,
            args=(run,),
        )


def no_corpus(run: Run) -> None:
    """In the place of the form, where a run is shown without its corpus: its record is damaged, or it lies outside."""
    if session.outside():
        session.draw_outside()
        return
    st.info(
        f"The record of **{words.named(listing.name_of(run), 80)}** is damaged, so its corpus cannot be opened. "
        "Choose a corpus on the Data page.",
        icon=":material/info:",
    )


def nothing_yet() -> None:
    """What stands here before the first run."""
    with st.container(border=True):
        st.subheader("No run on this corpus yet", anchor=False)
        st.markdown(
            "Press **Solve** for the best selection with a proof, or **Learn masks** for the paper's method: "
            "each step samples G candidate subsets (masks), scores them by quality and diversity, and updates "
            "one logit per row."
        )
        # on a dark page its white ground would glare
        if PICTURE.is_file() and not session.dark():
            st.image(
                str(PICTURE),
                width="stretch",
                alt="Learning: sample masks, score them, raise the logits of the good ones, repeat",
            )


def show(run: Run) -> None:
    """Everything about one run; redrawn every second while it is under way."""
    status = run.status()
    try:
        run.config, run.facts()
    except DatamaskError:
        # its state is failed, with the sentence that says what is wrong
        _ended(run)
        return
    if run.config.notes:
        st.caption(words.plain(run.config.notes, 400))
    if status.active:
        with st.container(key="live_run"):
            st.fragment(_live, run_every=1.0)(run.id, status.state)
    else:
        _ended(run)
        _curve(run)
    _settings(run)


def _live(run_id: str, state: str) -> None:
    run = session.store().get(run_id)
    status = run.status()
    story = outcome.story(run)
    if status.state != state or story is None:
        # another state by now; a run without a story has ended since its state was read
        st.rerun()
    job = next(iter(listing.running(session.store(), session.run_queue(), only=(run_id,))), None)
    with st.container(border=True, horizontal=True, vertical_alignment="center"):
        waits = job is None or job.waits
        st.markdown(f"**{story.heading if waits or state != 'queued' else 'Starting'}**", width="content")
        if state == "queued":
            st.caption(words.sentence(_waiting(job, story)))
        else:
            share = job.share if job else 0.0
            st.progress(min(max(share, 0.0), 1.0), text=words.plain(job.sentence if job else story.text, 300))
        st.button(
            "Stop",
            key="stop_run",
            icon=":material/stop:",
            on_click=session.stop_run,
            args=(run_id,),
        )
    _curve(run)


def _waiting(job: listing.Busy | None, story: outcome.Story) -> str:
    """What a queued run waits for, or is being prepared by, in whole sentences."""
    if job is None:
        return story.text
    said = f"{job.sentence[0].upper()}{job.sentence[1:]}."
    if not job.waits:
        return said
    # the heading says already that it waits
    return story.text if said.startswith(story.heading) else f"{said} {story.text}"


def _ended(run: Run) -> None:
    story = outcome.story(run)
    if story is None:
        return
    draw = {"info": st.info, "warning": st.warning, "error": st.error}[story.kind]
    draw(f"**{story.heading}.** {words.sentence(story.text, 1200)}")
    with st.container(horizontal=True):
        if "resume" in story.actions:
            st.button(
                "Resume" if story.kind != "error" else "Try again",
                type="primary",
                icon=":material/play_arrow:",
                key="resume_run",
                on_click=_resume,
                args=(run.id,),
            )
    if run.status().traceback:
        # not shown: it names folders of the server
        st.caption("For a bug report: status.json in the run's folder has the traceback.")


def _curve(run: Run) -> None:
    metrics = run.metrics()
    if not len(metrics.get("step", ())):
        status = run.status()
        if status.state == "done":
            st.caption("This method takes no steps, so it has no curve.")
        elif status.state == "running":
            with st.container(
                border=True, height=LIVE_HEIGHT, vertical_alignment="center", horizontal_alignment="center"
            ):
                st.caption(
                    "The curve starts with the first step, after the neighbor graph and the scales.",
                    text_alignment="center",
                )
        return
    # both on the left: on the right the chart's own toolbar would cover them
    with st.container(horizontal=True, vertical_alignment="center"):
        measure = _choice(
            "Value",
            "curve_measure",
            curves.measures(run),
            MEASURES,
        )
        across = _choice(
            "Along",
            "curve_x",
            curves.across(run),
            ALONG,
        )
    curve = curves.curve(run, measure)
    if curve.points < curves.FEWEST:
        st.caption(words.plain(_few(run, curve), 300))
        _vitals(run)
        return
    height = LIVE_HEIGHT if run.status().active else CURVE_HEIGHT
    # not Plotly: while the run is at work it changes each second, and a Plotly figure that changes is mounted anew
    st.vega_lite_chart(
        curve.table,
        chart.curves(curve, across, dark=session.dark(), height=height),
        key="curve",
        width="stretch",
        alt=f"{measure} of sampled masks and of the selected subset over {across}",
    )
    notes = chart.notes(curve)
    if (start := started_from(run)) is not None:
        notes.append(f"Continued from run {words.plain(start, 80)}.")
    if curves.BATCH in curve.series:
        notes.append("Pale: mean and spread (2nd to 98th percentile) of each step's G masks.")
    if notes:
        st.caption(" ".join(notes))
    _vitals(run)


def _few(run: Run, curve: curves.Curves) -> str:
    """What there is to say of a curve of so few points that it shows no way."""
    if not curve.points:
        return "No step of this run has this value."
    way = curve.of(curves.CURVE)
    shown = curve.of(curves.MASKS) if way.empty else way
    last = curves.said(float(shown["value"].iloc[-1]), curve.raw, curve.measure)
    counted = "One value" if curve.points == 1 else f"{curve.points} values"
    more = " so far; the curve is drawn from the fourth on" if run.status().active else ", too few for a curve"
    return f"{counted} on the way{more}. The last: {last} ({curve.unit})."


def _choice(label: str, key: str, options: Sequence[str], names: dict[str, str]) -> str:
    """A row of choices, of which another run may have fewer."""
    if st.session_state.get(key) not in options:
        st.session_state.pop(key, None)
    chosen: str = one_of(label, {name: names[name] for name in options}, key, label_visibility="collapsed")
    return chosen


def _vitals(run: Run) -> None:
    """Whether learning converged, in a line; the learner's vital signs folded away behind it."""
    signs = vitals.vitals(run.metrics(), run.config.selection, run.facts())
    if not signs:
        return
    line = words.plain(learning(run) or "Steps in detail", 300)
    with st.expander(line, icon=":material/vital_signs:", key="vitals", on_change="rerun") as details:
        if not details.open:
            return
        for first in range(0, len(signs), 3):
            for place, sign in zip(st.columns(3, gap="medium"), signs[first : first + 3]):
                with place, st.container(gap="xxsmall"):
                    st.markdown(f"**{sign.title}**", help=sign.help)
                    # not Plotly, as the curve above
                    st.vega_lite_chart(
                        sign.curves.table,
                        chart.curves(sign.curves, dark=session.dark(), height=VITAL_HEIGHT),
                        key=f"vital_{sign.name}",
                        width="stretch",
                        alt=f"{sign.title} over the update steps",
                    )


def _settings(run: Run) -> None:
    with st.container(horizontal=True, horizontal_alignment="distribute", vertical_alignment="center"):
        name, settings = words.named(listing.name_of(run), 44), words.plain(outcome.headline(run), 300)
        st.caption(f"**{name}**: {settings}", width="content")
        st.button(
            "Copy settings to the form",
            key="use_settings",
            icon=":material/content_copy:",
            type="tertiary",
            on_click=_use_settings,
            args=(run,),
        )
        facts = run.facts()
        if run.whole is None and (facts.get("total_rows") or 0) > (facts.get("n") or 0):
            address = views.address_of_run(run.id)
            views.page_link("pages/export.py", "Apply to the whole corpus", address=address, width="content")
    with st.expander("Proof and command line"):
        if proved := outcome.certificate(run):
            st.caption(words.plain(proved, 400))
        if (graph := run.graph()) is not None and graph.approximate:
            st.caption(f"Nearest rows. {outcome.neighbors(run)}")
        st.code(provenance.command(run), language="bash", wrap_lines=True)


def _resume(run_id: str) -> None:
    """Resume a run; what cannot be done is said when the page is drawn again."""
    try:
        session.check_readable(session.store().get(run_id).config.corpus)
        session.run_queue().resume(run_id)
    except DatamaskError as error:
        st.session_state["trouble"] = str(error)


def _use_settings(run: Run) -> None:
    form_panel.use_method(run.config.selection)
    opening = session.current_opening()
    if opening is not None and opening.corpus is not None:
        pose(run.config.selection, book_of_run(opening.corpus, run))
