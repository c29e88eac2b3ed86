"""An ablation on the page: the job under way, which result is looked at, its sentence, picture and table."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path

import streamlit as st

from datamask.ablation import wording
from datamask.ablation.offer import MODELS, compare_models
from datamask.ablation.question import AblationQuestion
from datamask.ablation.result import AblationResult
from datamask.analyses.ablation import ablation_job, chart, form_panel, opening_panel, tables
from datamask.corpus import Corpus
from datamask.dashboard.drawing import words
from datamask.dashboard.runs import listing
from datamask.dashboard.shell import background
from datamask.dashboard.shell.plots import plot
from datamask.dashboard.shell.tables import height
from datamask.runs import ablation_results
from datamask.work.job import Job
from datamask.work.worker import worker

ANSWER = "answer"
"""Of the address: the key of the result that is looked at."""

WATCHED, MINUTES = "ablation_watched", "ablation_minutes"
"""In the session: the job that was watched; the minutes that confirming a result takes, by its key."""

MOST_ROWS = 25
NARROWEST = 640

WIDE = f"""<style>
.st-key-ablation_targets {{overflow-x: auto}}
.st-key-ablation_targets > * {{min-width: {NARROWEST}px}}
</style>"""
"""In a narrower window the heat map scrolls sideways: it is illegible when it is squeezed."""


def stored(corpus: Corpus, cache_dir: Path) -> list[AblationResult]:
    """Every result on this corpus, newest first, without those of the second proxy model, which confirm others."""
    every = ablation_results.results(cache_dir, corpus.fingerprint)
    return [result for result in every if result.judge != MODELS[1]]


def follow(corpus: Corpus) -> None:
    """Look at the result of a job that was watched and has ended. Call it before `choose`."""
    job = worker().find(ablation_job.key_of(corpus))
    if job is not None and job.state == "done" and st.session_state.pop(WATCHED, None) == job.key:
        question = job.about.question if isinstance(job.about, ablation_job.Asked) else None
        st.query_params[ANSWER] = question.by(MODELS[0]).key if question is not None else str(job.result)


def choose(results: Sequence[AblationResult]) -> AblationResult | None:
    """Return the result that is looked at, which stands in the URL; None where there is no result yet."""
    by_key = {result.question.key: result for result in results}
    if len(by_key) < 2:
        return next(iter(by_key.values()), None)
    wanted = st.query_params.get(ANSWER)
    if wanted not in by_key:
        wanted = next(iter(by_key))
    lines = listing.unlike(tables.titles(results))
    key = st.selectbox(
        "Results",
        list(by_key),
        index=list(by_key).index(wanted),
        format_func=lines.__getitem__,
    )
    st.query_params[ANSWER] = key
    return by_key[key]


def work(corpus: Corpus, cache_dir: Path) -> bool:
    """Draw the job under way, or one that ended without a result and how to continue; whether there is either."""
    job = worker().find(ablation_job.key_of(corpus))
    if job is None or job.state == "done" or not isinstance(job.about, ablation_job.Asked):
        return False
    if not job.ended:
        st.session_state[WATCHED] = job.key
    seen = _provisional(corpus, cache_dir)
    ended_since = background.offer(
        job.key,
        "Continue",
        partial(form_panel.start, corpus, job.about, cache_dir),
        name="ablation_again",
        icon=":material/play_arrow:",
        cost=_asked(job.about.question),
        stopped=f"Stopped at {words.percent(job.share)}. Finished selections are kept.",
        look=background.Look(
            "ablation_stop",
            every=1.0,
            place="live_ablation",
            title="Comparing methods",
            about=_asked(job.about.question),
            says=_doing,
            beside=_done,
            # the first answer comes while the job goes on
            over=lambda: _provisional(corpus, cache_dir) != seen,
        ),
    )
    if ended_since is not None:
        st.rerun()
    if job.ended:
        st.button("Dismiss", key="ablation_forget", type="tertiary", on_click=worker().forget, args=(job.key,))
    return True


def _provisional(corpus: Corpus, cache_dir: Path) -> list[str]:
    """The results of first seeds that are there."""
    return [result.question.key for result in stored(corpus, cache_dir) if result.provisional]


def _asked(question: AblationQuestion) -> str:
    asked = tables.asked(question)
    return words.plain(asked[:1].upper() + asked[1:], 300)


def _doing(job: Job) -> str:
    message = background.message(job)
    return message[:1].upper() + message[1:]


def _done(job: Job) -> str:
    left = words.soon(job.left)
    done = f"{words.percent(job.share)} done, {left}. " if left else ""
    return f"{done}You can leave this page; the work continues."


def nothing_yet(corpus: Corpus) -> None:
    """No result so far."""
    judged = (
        "A small model learns from each selection and predicts held-out text."
        if form_panel.has_texts(corpus)
        else "It measures how near each selection is to held-out rows."
    )
    with st.container(border=True):
        st.subheader("No ablation of this corpus yet", anchor=False)
        st.write(
            f"An ablation compares simple baselines with methods that use λ, on equally large selections. {judged}"
        )


def show(found: AblationResult, corpus: Corpus, cache_dir: Path) -> None:
    """Draw a result: its sentence, the picture, what confirms it, the table, how it was measured."""
    headline = words.plain(wording.headline(found), 900)
    if found.provisional:
        st.info(headline, icon=":material/hourglass_top:")
    elif any(target.circular for target in found.targets):
        st.warning(f"**{headline}**", icon=":material/sync_problem:")
    else:
        st.markdown(f"**{headline}**")
    best = None if found.overall is None else found.overall.best_simple[0]
    plot(
        chart.interval_rows(tables.overall(found), found.unit, "" if best is None else found.methods[best].label),
        key="ablation_intervals",
        alt="Difference from random of all methods",
    )
    opening_panel.follow(found)
    opening_panel.actions(found)
    _confirmation(found, corpus, cache_dir)
    _numbers(found)
    with st.expander("How this was measured"):
        st.write(words.plain(" ".join([wording.method_note(found), *wording.pool_note(found)]), 2000))


def _numbers(result: AblationResult) -> None:
    """Every method on every target, folded, and drawn where it is opened."""
    folded = st.expander("All targets and numbers", key="ablation_numbers", on_change="rerun")
    if not folded.open:
        return
    with folded:
        if result.several:
            st.html(WIDE)
            with st.container(key="ablation_targets"), st.container():
                plot(
                    chart.heat_map(tables.cells(result), result.unit, tables.regrets(result)),
                    key=opening_panel.MAP,
                    alt="Difference from random of each method on each target",
                    on_select=opening_panel.cell_pressed,
                )
            ends = ", so far" if result.provisional else ", gray is level"
            st.caption(f"Difference from random in {result.unit}: below 0 is better (blue), above worse (brown){ends}.")
            opening_panel.menu(result)
        table = tables.methods(result) if result.several else tables.losses(result)
        st.dataframe(
            table,
            hide_index=True,
            lazy=False,
            height=height(len(table), MOST_ROWS),
            column_config={
                "largest regret": st.column_config.NumberColumn(
                    format="%.3f", help=f"At most this many {result.unit} behind the best method of a target."
                ),
                "loss": st.column_config.NumberColumn(format="%.4f", help=result.unit),
            },
            alt="All methods",
        )


def _confirmation(result: AblationResult, corpus: Corpus, cache_dir: Path) -> None:
    """What the second proxy model says, or a button that asks it and says its minutes first."""
    if result.provisional or result.judge != MODELS[0]:
        return
    every = ablation_results.results(cache_dir, corpus.fingerprint)
    if compare_models(result, every) is not None:
        st.caption(tables.confirmation(result, every))
        return
    target = result.question.target
    if form_panel.working(corpus) or (target is not None and (target.kind == "texts" or target.steers)):
        # a person's own texts are not kept, so the command line confirms those
        return
    minutes = st.session_state.get(MINUTES, {}).get(result.question.key)
    with st.container(horizontal=True, vertical_alignment="center"):
        if minutes is None:
            st.button(
                "Confirm the result",
                key="ablation_confirm",
                on_click=_time_confirmation,
                args=(result,),
            )
            st.caption(
                "Only one proxy model has run.",
                help="The button *Confirm the result* ranks the methods again with a second proxy model, a small "
                "transformer.",
            )
        else:
            st.button(
                "Start confirming",
                key="ablation_confirm_start",
                icon=":material/play_arrow:",
                on_click=form_panel.start,
                args=(corpus, ablation_job.Asked(result.question.by(MODELS[1])), cache_dir),
            )
            st.caption(f"The small transformer takes about {max(1, round(minutes)):,} min.")


def _time_confirmation(result: AblationResult) -> None:
    """Time a few training steps of the second proxy model: a second or two."""
    minutes = ablation_job.minutes_to_confirm(result)
    st.session_state[MINUTES] = {**st.session_state.get(MINUTES, {}), result.question.key: minutes}
