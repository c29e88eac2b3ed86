"""Beside the form of runs: one run, live while it works, with its story where it did not finish."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from pathlib import Path

import streamlit as st

from datamask.dashboard.analyses.convergence import tables as curves
from datamask.dashboard.analyses.convergence.chart import convergence, drawn
from datamask.dashboard.analyses.convergence.phases import started_from
from datamask.dashboard.analyses.run_lines.tables import FEWEST
from datamask.dashboard.analyses.vitals import tables as vitals
from datamask.dashboard.analyses.vitals.chart import vital
from datamask.dashboard.data.openings import title_of
from datamask.dashboard.drawing import words
from datamask.dashboard.runs import form_panel, listing, outcome, provenance
from datamask.dashboard.shell import session
from datamask.errors import DatamaskError
from datamask.runs.store import Run

CURVE_HEIGHT = 400

MEASURES = {**{name: name.capitalize() for name in curves.MEASURES}, curves.GAP: "To the bound"}
ALONG = {"step": "Steps", "seconds": "Seconds", "masks": "Masks"}

PICTURE = Path(__file__).resolve().parents[3] / "docs" / "how-it-learns.svg"
"""How it learns, in a drawing; missing where only the package is installed."""


def other_corpus(run: Run) -> None:
    """A run that was learned on another corpus than the open one: said, with the way there; not of a damaged record."""
    with contextlib.suppress(DatamaskError), st.container(horizontal=True, vertical_alignment="center"):
        st.caption(f"Learned on another corpus: {words.plain(title_of(run.config.corpus), 80)}", width="content")
        st.button(
            "Open that one",
            key="open_other",
            type="tertiary",
            icon=":material/folder_open:",
            on_click=session.choose_corpus_of,
            args=(run,),
            help="Makes it the open corpus on every page.",
        )


def no_corpus(run: Run) -> None:
    """In the place of the form, where a run is shown without its corpus: its record is damaged, or it lies outside."""
    if session.outside():
        session.draw_outside()
        return
    st.info(
        f"The corpus of **{words.plain(listing.name_of(run), 80)}** cannot be opened, because the run's record is "
        "damaged. Choose a corpus on the Data page to start another run.",
        icon=":material/info:",
    )


def nothing_yet() -> None:
    """What stands here before the first run."""
    with st.container(border=True):
        st.subheader("No run on this corpus yet", anchor=False)
        st.markdown(
            "Press **Solve** on the left; the settings there give a good first selection, by the quickest way that can "
            "prove how near the best possible it comes. Or press **Learn masks**, the paper's way: in each of its "
            "steps the learner samples G candidate subsets, called masks, scores them by quality and diversity, and "
            "shifts one number per sample, its logit. Either way you will watch the score rise here."
        )
        # on a dark page its white ground would glare
        if PICTURE.is_file() and not session.dark():
            st.image(
                str(PICTURE),
                width="stretch",
                alt="How it learns: draw masks, score them, raise the logits of the good ones, repeat",
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
    with st.container(border=True):
        with st.container(horizontal=True, vertical_alignment="center", horizontal_alignment="distribute"):
            st.markdown(f"**{story.heading}**", width="content")
            st.button(
                "Stop",
                key="stop_run",
                icon=":material/stop:",
                on_click=session.stop_run,
                args=(run_id,),
                help="Stops within a second. What was learned so far is kept and can be resumed.",
            )
        if state == "queued":
            st.caption(words.sentence(story.text))
        else:
            share = job.share if job else 0.0
            st.progress(min(max(share, 0.0), 1.0), text=words.plain(job.sentence if job else story.text, 300))
    _curve(run)


def _ended(run: Run) -> None:
    story = outcome.story(run)
    if story is None:
        _numbers(run)
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
                help="The same settings, from the last checkpoint; without one, from the beginning. To change "
                "one, press Copy to the form, then start it there.",
            )
    if run.status().traceback:
        # not shown: it names folders of the server
        st.caption("For a bug report: status.json in the run's folder holds the traceback.")


def _numbers(run: Run) -> None:
    for place, number in zip(st.columns([1.25, 1.25, 1]), outcome.numbers(run)):
        with place, st.container(gap=None):
            st.metric(number.label, number.value, help=number.help)
            st.caption(number.caption)
    proved = outcome.certificate(run)
    if proved:
        st.caption(words.plain(proved, 400))
    if (run.facts().get("neighbors") or {}).get("kind") == "approximate":
        st.caption(f"Nearest rows. {outcome.neighbors(run)}")
    with st.container(horizontal=True):
        parameters = {**session.link_parameters(), "run": run.id}
        st.page_link(
            "app.py",
            label="See what was selected",
            icon=":material/arrow_forward:",
            query_params=parameters,
            width="content",
        )
        st.page_link(
            "pages/export.py",
            label="Export it, or send a report",
            icon=":material/arrow_forward:",
            query_params=parameters,
            width="content",
        )
        facts = run.facts()
        if run.whole is None and (facts.get("total_rows") or 0) > (facts.get("n") or 0):
            st.page_link(
                "pages/export.py",
                label="Apply to the whole corpus",
                icon=":material/arrow_forward:",
                query_params=parameters,
                width="content",
            )


def _curve(run: Run) -> None:
    metrics = run.metrics()
    if not len(metrics.get("step", ())):
        status = run.status()
        if status.state == "done":
            st.caption("A baseline takes no steps, so there is no curve. Compare it with a learned run, under Compare.")
        elif status.state == "running":
            with st.container(
                border=True, height=CURVE_HEIGHT, vertical_alignment="center", horizontal_alignment="center"
            ):
                st.caption(
                    "The curve starts with the first step. Before it come the neighbour graph and the "
                    "references, once per corpus.",
                    text_alignment="center",
                )
        return
    _vitals(run)
    # both on the left: on the right the chart's own toolbar would cover them
    with st.container(horizontal=True, vertical_alignment="center"):
        measure = _choice(
            "Value",
            "curve_measure",
            curves.measures(run),
            MEASURES,
            "Joint is what the learner maximises: λ times quality plus 1 − λ times diversity. To the "
            "bound, where there is one: how much a better selection could still gain, at most.",
        )
        across = _choice(
            "Along",
            "curve_x",
            curves.across(run),
            ALONG,
            "Seconds of learning, without the time for the "
            "neighbour graph and the references. Masks: candidate subsets scored so far.",
        )
    curve = curves.curve(run, measure)
    if curve.points < FEWEST:
        st.caption(words.plain(_few(run, curve), 300))
        return
    # not Plotly: while the run is at work it changes each second, and a Plotly figure that changes is mounted anew
    st.vega_lite_chart(
        drawn(curve, across, CURVE_HEIGHT),
        convergence(curve, across, dark=session.dark(), height=CURVE_HEIGHT),
        key="curve",
        width="stretch",
        alt=f"{measure} of sampled masks and of the selected subset over {across}",
    )
    if curve.start is not None:
        st.caption(f"✚ It went on from where run {words.plain(started_from(run), 80)} had ended.")
    if measure == curves.GAP:
        st.caption("How far the selected subset is below a value that no selection can exceed, on a logarithmic axis.")
    elif curve.table["series"].isin((curves.BATCH, curves.EDGE)).any():
        st.caption(
            "The thin line scores each step's G masks on that step's batch alone, so it can lie below random "
            "although the selection is good; its band is their spread, not an error. Only the bold line is "
            "measured on the whole corpus and compares with the horizontal lines. An arrow at the edge stands "
            "for what lies too far off to be drawn."
        )


def _few(run: Run, curve: curves.Curve) -> str:
    """What there is to say of a curve of so few points that it shows no way."""
    if curve.table.empty:
        return "No step of this run has a value of it."
    last = words.value(float(curve.table["value"].iloc[-1]))
    counted = "One value" if curve.points == 1 else f"{curve.points} values"
    more = " so far; the curve is drawn from the fourth on" if run.status().active else ", too few for a curve"
    return f"{counted} on the way{more}. The last: {last} ({curve.unit})."


def _choice(label: str, key: str, options: Sequence[str], names: dict[str, str], help_: str) -> str:
    """A row of choices, of which another run may have fewer."""
    if st.session_state.get(key) not in options:
        st.session_state.pop(key, None)
    return st.segmented_control(
        label,
        options,
        default=options[0],
        key=key,
        required=True,
        format_func=names.__getitem__,
        label_visibility="collapsed",
        help=help_,
    )


def _vitals(run: Run) -> None:
    """What is wrong, if anything; the learner's state in a line; its vital signs folded away."""
    for what, advice in vitals.concerns(run):
        st.warning(f"**{words.plain(what, 400)}** {words.plain(advice, 400)}", icon=":material/warning:")
    line = vitals.line(run)
    if line is None:
        return
    with st.expander(words.plain(line), icon=":material/vital_signs:", key="vitals", on_change="rerun") as details:
        if not details.open:
            return
        signs = vitals.vitals(run.metrics(), run.config.selection, run.facts())
        for first in range(0, len(signs), 3):
            for place, sign in zip(st.columns(3, gap="medium"), signs[first : first + 3]):
                with place, st.container(gap="xxsmall"):
                    st.markdown(f"**{sign.title}**", help=sign.help)
                    # not Plotly, as the curve above
                    st.vega_lite_chart(
                        sign.table,
                        vital(sign, dark=session.dark()),
                        key=f"vital_{sign.name}",
                        width="stretch",
                        alt=f"{sign.title} over the update steps",
                    )


def _settings(run: Run) -> None:
    with st.container(horizontal=True, horizontal_alignment="distribute", vertical_alignment="center"):
        st.caption("This run: " + words.plain(outcome.headline(run), 300), width="content")
        st.button(
            "Copy to the form",
            key="use_settings",
            icon=":material/content_copy:",
            type="tertiary",
            on_click=form_panel.use_settings,
            args=(run.config.selection,),
            help="Fills the form on the left with this run's settings.",
        )
    with st.expander("The same run as a command line"):
        st.code(provenance.command(run), language="bash", wrap_lines=True)


def _resume(run_id: str) -> None:
    """Resume a run; what cannot be done is said when the page is drawn again."""
    try:
        session.check_readable(session.store().get(run_id).config.corpus)
        session.run_queue().resume(run_id)
    except DatamaskError as error:
        st.session_state["trouble"] = str(error)
