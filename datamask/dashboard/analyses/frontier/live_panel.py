"""The live λ: a slider whose values and map follow, answered by a solver session that is kept warm."""

from __future__ import annotations

import numpy as np
import streamlit as st

from datamask.config import SelectionConfig
from datamask.corpus.projections import DEFAULT
from datamask.dashboard.analyses.frontier import exact_panel
from datamask.dashboard.analyses.frontier.form_panel import Shared
from datamask.dashboard.analyses.lambda_slider import live
from datamask.dashboard.data.openings import OpenCorpus
from datamask.dashboard.drawing import words
from datamask.dashboard.frame import address
from datamask.dashboard.map import scene
from datamask.dashboard.map.canvas_map import canvas_layer, canvas_map
from datamask.dashboard.map.layers import Change, Selection
from datamask.dashboard.runs import listing
from datamask.dashboard.shell import background, session
from datamask.runs.store import Run

BY_ITSELF = 100_000
"""Up to this many rows the problem is prepared without being asked."""

OFFERED = live.OFFERED
MAP = "live_map"


def show(opened: OpenCorpus, settings: Shared) -> None:
    """The slider, its values and its map; before that the preparation with progress and Stop."""
    corpus = opened.corpus
    config = SelectionConfig.from_options(objective=settings.objectives[0], **settings.options)
    behind = live.find(corpus, config)
    if behind is None and len(corpus) <= BY_ITSELF and config.objective in live.QUICK:
        behind = live.session(corpus, config, session.store().cache_dir)
    if behind is None or not behind.alive:
        _offer(opened, config, behind)
        return
    if behind.preparing:
        background.follow(
            behind.job,
            background.Look(
                "live_stop",
                "What was put on disk is kept, so the next preparation is quicker.",
                place="live_preparing",
                title="Preparing the live λ",
                # the job goes on solving when the slider is there: its time left is not that of the preparation
                beside=lambda job: "You may leave this page meanwhile; the work goes on.",
                stop=lambda job: behind.stop(),
                over=lambda: not behind.preparing,
            ),
        )
        return
    held, name = _against(opened)
    ground = scene.ground(corpus, session.store().cache_dir, DEFAULT, None)
    values = st.container()
    canvas_map(
        MAP,
        ground.scope,
        scene.ground_parcel(corpus, ground),
        ground.places,
        [None, None],
        alt=f"Two maps of {len(corpus):,} samples: selected at the slider's λ, and what changes against {name}",
    )
    # a layout that is being computed would take the processor from the slider, so it is not started here
    st.caption(ground.caption + ("" if ground.kind == DEFAULT else f" The Map computes the {DEFAULT} layout, once."))
    with values, st.container(key="live_values"):
        st.fragment(_follow)(opened, config, behind, held, name, ground.places)
        if behind.solving:
            st.fragment(_solving, run_every=1.0)(behind)


def _follow(
    opened: OpenCorpus, config: SelectionConfig, behind: live.Session, held: np.ndarray | None, name: str, places
) -> None:
    lamb = st.slider(
        "Balance λ",
        0.0,
        1.0,
        0.5,
        step=0.01,
        key="live_lamb",
        persist_state="session",
        help="Move it: values and map follow. 0 is diversity alone, 1 quality alone.",
    )
    address.follow("Live λ")
    final = behind.ready  # asked before the answer: what it says was known by then
    answer = exact_panel.waited(behind, lambda seconds: behind.answer(lamb, seconds))
    if answer is None:
        st.error(words.sentence(behind.error or "The solver was stopped."), icon=":material/error:")
        return
    if held is None:
        middle = exact_panel.waited(behind, lambda seconds: behind.answer(0.5, seconds))
        held = answer.mask if middle is None else middle.mask
    size = int(answer.mask.sum())
    shared_rows = int((answer.mask & held).sum())
    with st.container(horizontal=True, gap="large", vertical_alignment="bottom"):
        st.metric(
            "Quality",
            words.percent(answer.quality, 1),
            width="content",
            help="Share of the way from a random subset to the best quality.",
        )
        st.metric(
            "Diversity",
            ("" if answer.exact else "≥ ") + words.percent(answer.diversity, 1),
            width="content",
            help="Share of the way from a random subset to the best diversity of this objective."
            + (
                ""
                if answer.exact
                else " Measured on neighbour lists, which is never above the true value; "
                "a stored run measures it exactly."
            ),
        )
        st.metric(
            f"Kept of {words.plain(name, 40)}",
            words.percent(shared_rows / max(int(held.sum()), 1), 1),
            width="content",
            help=f"Share of the rows of {words.plain(name, 80)} that are still selected.",
        )
        st.metric(
            "Other rows",
            words.count(size - shared_rows),
            width="content",
            help="Rows that are selected now and were not.",
        )
        exact_panel.store_button(opened, config, lamb)
    canvas_layer(MAP, 0, Selection(f"Selected at λ {lamb:g}", answer.mask), places)
    canvas_layer(MAP, 1, Change.between(f"Against {name}", held, answer.mask), places)
    if proof := live.proof_words(answer.gap, final):
        st.caption(proof)
    if answer.solved_at is not None:
        st.caption(f"The best selection known here is the one solved at λ {answer.solved_at:g}.")
    elif answer.gap is None and not answer.solved:
        st.caption("A quick answer between solved values of λ: a stored run is polished further.")


def _solving(behind: live.Session) -> None:
    """How far the background work is. It asks for no answer, which would interrupt that work; once that is done the
    page is drawn again, with the final proof."""
    if not behind.solving:
        st.rerun()
    st.progress(min(behind.job.share, 1.0), text=words.plain(behind.job.message, 200))


def _against(opened: OpenCorpus) -> tuple[np.ndarray | None, str]:
    """What the slider's selection is held against: the current run where it fits, else the one at λ 0.5."""
    run = session.current_run()
    if run is not None and run.status().state == "done" and run.has_rows and listing.is_on(run, opened):
        return scene.run_columns(run).selected, _short(run)
    return None, "λ 0.5"


def _short(run: Run) -> str:
    return listing.name_of(run)


def _offer(opened: OpenCorpus, config: SelectionConfig, ended: live.Session | None) -> None:
    with st.container(border=True):
        if ended is not None and ended.error:
            st.subheader("The live λ could not be prepared", anchor=False)
            st.error(words.sentence(ended.error), icon=":material/error:")
        else:
            st.subheader("A slider that answers at once", anchor=False)
            st.write(
                "The problem is prepared once: nearest neighbours where the objective needs them, the ends of the "
                "scales, and a few solved values of λ. After that every move of the slider is answered within "
                "half a second"
                + (
                    "."
                    if config.objective in live.QUICK
                    else ", with the best of the selections solved so far; each takes a while."
                )
            )
        st.button(
            "Prepare it",
            key="live_start",
            type="primary",
            icon=":material/play_arrow:",
            on_click=background.on_press(live.session),
            args=(opened.corpus, config, session.store().cache_dir),
            help="Runs in the background and can be stopped.",
        )
