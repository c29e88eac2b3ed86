"""The three-class picture: top-diverse, top-quality and selected on one map, and how tight each class is."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd
import streamlit as st

from datamask.analyses.classes import tightness
from datamask.analyses.classes.tightness import NAMES, Tightness
from datamask.corpus import Corpus
from datamask.dashboard.drawing import words
from datamask.dashboard.map import canvas_map, map_layout, scene
from datamask.dashboard.map.scene import Ground
from datamask.dashboard.runs import listing, outcome
from datamask.runs.store import Run

NAME = "classes_map"
OUTLIERS = "least similar to their neighbors"


def show(corpus: Corpus, ground: Ground, run: Run, runs: Sequence[Run], selected: np.ndarray, cache_dir: Path) -> None:
    """Picture and numbers.

    Args:
        run: that selected. selected: bool ``(N,)``.
        runs: finished ones on this corpus; those for diversity alone offer their selection as the most diverse.
    """
    crowding = map_layout.crowding(corpus, cache_dir)
    if crowding is None:
        st.caption("Waiting for the nearest neighbors. The map computes them.")
        return
    size = int(selected.sum())
    alone = {other.id: scene.run_columns(other).selected for other in runs if for_diversity(other)}
    alone = {run_id: mask for run_id, mask in alone.items() if mask.sum() == size}
    objectives = {other.id: other.config.selection.objective for other in runs if other.id in alone}
    # what this run itself means by diverse comes first
    order = sorted(objectives, key=lambda run_id: objectives[run_id] != run.config.selection.objective)
    names = listing.unlike(
        {
            other.id: f"{outcome.objective_label(objectives[other.id])}, {listing.name_of(other)}"
            for other in runs
            if other.id in objectives
        }
    )
    picture, beside = st.columns([1.3, 1], gap="large")
    with beside:
        together = (
            st.segmented_control(
                "Draw as",
                ("apart", "together"),
                default="apart",
                required=True,
                key="classes_drawn",
                persist_state="session",
                help="Together: a row of several classes is drawn as one of them, at random.",
            )
            == "together"
        )
        diverse = st.selectbox(
            "Top-diverse",
            [*order, OUTLIERS],
            key="classes_diverse",
            persist_state="session",
            format_func=lambda choice: names.get(choice, choice),
            help="The rows least similar to their neighbors, or a run at λ 0 that selects as many rows.",
        )
        outliers, best = _masks(corpus.fingerprint, size, corpus, crowding)
        sets = (outliers if diverse == OUTLIERS else alone[diverse], best, selected)
        rows = _tightness(corpus.fingerprint, f"{run.id} {diverse}", size, corpus, crowding, sets)
        _table(rows)
        st.caption(
            f"{size:,} rows in each class. Tightness: mean cosine of all pairs of rows in the class. Crowding: mean "
            "cosine of a row to its 15 nearest rows of the corpus."
        )
        if sentence := tightness.spread_words(rows[0], rows[-1]):
            st.caption(sentence)
    with picture:
        canvas_map.canvas_map(
            NAME,
            ground.scope,
            scene.ground_parcel(corpus, ground),
            ground.places,
            tightness.layers(sets, together),
            height=430,
            alt="Map of the top-diverse, the top-quality and the selected rows",
        )


def for_diversity(run: Run) -> bool:
    """Whether a run's selection was made for diversity alone."""
    settings = run.config.selection
    return settings.lamb == 0 and settings.estimator not in ("random", "top-quality")


def _table(rows: list[Tightness]) -> None:
    shown = pd.DataFrame(
        {
            "class": [row.name for row in rows],
            "tightness": [row.pairwise for row in rows],
            "crowding": [row.crowding for row in rows],
            "quality": [row.quality for row in rows],
            "selected share": [words.percent(row.shared / row.size) for row in rows],
        }
    )
    digits = st.column_config.NumberColumn(format="%.3f")
    st.dataframe(
        shown,
        hide_index=True,
        lazy=False,
        alt="Tightness and mean quality of each class",
        column_config={
            "tightness": digits,
            "crowding": digits,
            "quality": st.column_config.NumberColumn("mean quality score", format="%.4g"),
        },
    )


@st.cache_resource(max_entries=4, show_spinner="Ranking the rows")
def _masks(fingerprint: str, size: int, _corpus: Corpus, _crowding: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return (tightness.top(-_crowding, size, _corpus.ids), tightness.top(_corpus.quality, size, _corpus.ids))


@st.cache_data(max_entries=16, show_spinner="Measuring the tightness of the classes")
def _tightness(
    fingerprint: str, chosen: str, size: int, _corpus: Corpus, _crowding: np.ndarray, _sets: tuple[np.ndarray, ...]
) -> list[Tightness]:
    everything = np.ones(len(_corpus), bool)
    return [
        tightness.tightness(name, _corpus.features, mask, _corpus.quality, _crowding, _sets[-1])
        for name, mask in zip((*NAMES, "all rows"), (*_sets, everything), strict=True)
    ]
