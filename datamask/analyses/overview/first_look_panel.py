"""The first look at a corpus that is read, or that the form names: map and quality of some rows, labelled as such."""

from __future__ import annotations

import streamlit as st

from datamask.analyses.overview import tables as overview
from datamask.analyses.overview.chart import quality_histogram
from datamask.config import CorpusConfig
from datamask.corpus.projections import PROJECTIONS, STAND_IN
from datamask.dashboard.data.first_looks import FirstPicture
from datamask.dashboard.data.looks_ahead import LookAhead, look_ahead
from datamask.dashboard.data.openings import Opening, title_of
from datamask.dashboard.drawing import words
from datamask.dashboard.map.canvas_map import canvas_map
from datamask.dashboard.map.layers import Number
from datamask.dashboard.shell.plots import plot

MAP_HEIGHT = 360


def show(opening: Opening) -> None:
    """What is there of the first look while the corpus is being read; nothing before and after that."""
    first = opening.first
    if not opening.under_way:
        return
    if first is None:
        if opening.unlooked:
            st.caption(f"No first look: {words.sentence(opening.unlooked)}")
        return
    draw(first)


def show_ahead(config: CorpusConfig, readable: bool) -> None:
    """Draw what is known of the corpus that the form names, before it is opened.

    Args:
        readable: whether it opens as the form names it; else the form says why not.
    """
    st.subheader(words.plain(title_of(config)), anchor=False)
    if not readable:
        st.caption("Not open yet. The form says what is missing.")
        return
    look = look_ahead(config)
    st.caption("Not open yet. Press *Open* in the form to read all rows.")
    if look.under_way:
        st.fragment(_ahead, run_every=0.5)(look, look.parts)
    if look.job.state == "failed":
        st.caption(f"No first look: {words.sentence(look.job.error)}")
    if look.picture is not None:
        draw(look.picture)


def _ahead(look: LookAhead, drawn: int) -> None:
    if look.parts != drawn or not look.under_way:
        st.rerun()
    if look.picture is None:
        st.progress(min(max(look.job.share, 0.0), 1.0), text="Reading the first rows")


def draw(first: FirstPicture) -> None:
    """Draw the pictures of a first look, as far as they are there."""
    look = first.look
    st.markdown(f"**{words.plain(look.label)}.**")
    st.caption(f"The first {len(look.sample):,} rows of the shards. The whole corpus replaces them when it is read.")
    map_side, quality_side = st.columns([1.25, 1], gap="large")
    with map_side:
        _map(first)
    with quality_side:
        _quality(first)
    _left_out(first)


def _map(first: FirstPicture) -> None:
    st.markdown("**Map**")
    if first.places is None:
        _under_way(first, "Computing the map.")
        return
    sample = first.look.sample
    canvas_map(
        "first_map",
        sample,
        f"{sample.fingerprint} {STAND_IN.name}",
        first.parcel,
        first.places,
        [Number.of("quality score", sample.quality)],
        alt=f"Map of {len(sample):,} rows of the first look, colored by quality",
        height=MAP_HEIGHT,
        of_view=False,
    )
    st.caption(f"{first.places.caption} {STAND_IN.name}: {PROJECTIONS[STAND_IN.name].reading}.")


def _quality(first: FirstPicture) -> None:
    sample = first.look.sample
    names = sample.provenance.columns.get("quality") or ["quality"]
    label = " + ".join([names] if isinstance(names, str) else names)
    st.markdown("**Quality scores**")
    plot(
        quality_histogram(overview.quality_histogram(sample), label=label, height=130),
        key="first_quality",
        alt=f"Histogram of {label} over the {len(sample):,} rows of the first look",
    )


def _under_way(first: FirstPicture, what: str) -> None:
    job = first.job
    if job.state == "failed":
        st.caption(words.sentence(job.error, 300))
    elif not job.ended:
        waits = " It waits for other work to end." if job.ahead else ""
        st.caption(f"{what}{waits}")


def _left_out(first: FirstPicture) -> None:
    sentences = [words.sentence(sentence, 300) for sentence in first.look.left_out]
    if sentences:
        files = f"{len(sentences):,} shard{'s' if len(sentences) > 1 else ''}"
        st.warning(f"Not in the first look: {files}: {sentences[0]}", icon=":material/warning:")
    dropped = first.look.sample.provenance.dropped
    if dropped:
        why = words.plain("; ".join(dropped))
        st.caption(f"{sum(dropped.values()):,} invalid rows were skipped: {why}.")
