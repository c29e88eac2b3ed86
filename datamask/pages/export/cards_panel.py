"""The cards of the Export page, one for each entry of `datamask.runs.export_table`."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path

import streamlit as st

from datamask.dashboard.drawing import words
from datamask.dashboard.runs import outcome, provenance
from datamask.dashboard.shell import background, downloads
from datamask.dashboard.shell import view as views
from datamask.evaluation.result import NO_RESULT
from datamask.repeat_counts import MOST, Amount
from datamask.runs import exports
from datamask.runs.export_table import EXPORTS, Download, Export
from datamask.runs.store import Run
from datamask.work.worker import worker


def nothing_yet() -> None:
    """No run to export."""
    with st.container(border=True):
        st.subheader("Nothing to export yet", anchor=False)
        st.write("You can export a run when it is done. Start one and come back.")
        st.page_link(
            "pages/runs.py",
            label="Start a run",
            icon=":material/arrow_forward:",
            query_params=views.now().address,
        )


def not_finished(run: Run) -> None:
    """The chosen run has no selection."""
    story = outcome.story(run)
    with st.container(border=True):
        st.subheader("This run has no selection yet", anchor=False)
        st.write(f"{story.heading}. {words.sentence(story.text)}" if story else "The selection is missing.")
        st.page_link(
            "pages/runs.py",
            label="Go to the run",
            icon=":material/arrow_forward:",
            query_params=views.address_of_run(run.id),
        )


def show(run: Run, shards: provenance.Shards, report: Callable[[], None]) -> None:
    """Draw a card for each export that the run can give, side by side. What it cannot give is a line, with its reason.

    Args:
        report: draws the last card, the report.
    """
    missing = {export.heading: why for export in EXPORTS if (why := export.missing(run))}
    given = [export for export in EXPORTS if export.heading not in missing and not export.amounts]
    *places, last = st.columns(len(given) + 1)
    for place, export in zip(places, given, strict=True):
        with place:
            _card(run, export, shards)
    with last:
        report()
    if any(export.needs_shards for export in given) and (doubt := exports.unchecked(run)):
        st.caption(doubt)
    for heading, why in missing.items():
        st.caption(f"**{heading}**: {words.sentence(why)}")


def amounts(run: Run) -> None:
    """Draw the exports of which there is as much as one asks for, folded."""
    for export in EXPORTS:
        if export.amounts and not export.missing(run):
            _amount_card(run, export)


def _amount_card(run: Run, export: Export) -> None:
    with st.expander(export.heading):
        described, taken = st.columns([2.6, 1], gap="large", vertical_alignment="center")
        with described:
            st.caption(export.caption, help=_formats(export))
            amount = _amount(run)
        with taken:
            _downloads(run, export, amount=amount)


def _amount(run: Run) -> Amount:
    """The controls for how much there is to be: in samples, or in tokens where these are known."""
    size = (run.status().result or NO_RESULT).size
    selected, tokens = max(size.selected or 1, 1), float(size.tokens or 0.0)
    unit, number, _ = st.columns([1, 1, 1], vertical_alignment="bottom")
    in_tokens = False
    if tokens > 0:
        in_tokens = (
            unit.selectbox(
                "Unit",
                ("rows", "tokens"),
                key=f"weights_unit_{run.id}",
            )
            == "tokens"
        )
    number = number if tokens > 0 else unit
    if in_tokens:
        wanted = number.number_input(
            "Tokens to train on",
            min_value=min(1.0, tokens),
            # half of what the samples of the selection come to: those of the weights are a little longer or shorter
            max_value=MOST / 2 * tokens / selected,
            value=tokens,
            format="%.0f",
            key=f"weights_tokens_{run.id}",
            help="Repeats included, exact up to one row.",
        )
        return Amount(tokens=float(wanted))
    samples = number.number_input(
        "Rows to train on",
        min_value=1,
        max_value=MOST,
        value=selected,
        key=f"weights_samples_{run.id}",
        help="Repeats included.",
    )
    return Amount(samples=int(samples))


def _card(run: Run, export: Export, shards: provenance.Shards) -> None:
    """One thing to take home: what it is, and the buttons for it."""
    with st.container(border=True, height="stretch"):
        st.markdown(f"**{export.heading}**", help=f"{export.caption}  \n{_formats(export)}")
        st.space("stretch")
        if export.needs_shards and shards.outside:
            st.warning(words.sentence(shards.outside), icon=":material/lock:")
        elif export.needs_shards and not shards.present:
            st.warning(f"The shards of the corpus have moved. Put them back to export {export.needs_shards}.")
        elif export.needs_shards and (shards.newer or (export.bounded and shards.bytes > provenance.SMALL)):
            target = run.path / "exports" / export.target
            _to_folder(
                run,
                f"{target.stem}-{run.id}",
                export.to_disk,
                target,
                lambda job: export.write(run, target, job.work),
            )
        else:
            _downloads(run, export)


def _downloads(run: Run, export: Export, **amount: Amount) -> None:
    """A button for each file; of more than two the others are folded."""
    for download in export.downloads[:2]:
        _download(run, export, download, **amount)
    if others := export.downloads[2:]:
        with st.popover("More", width="stretch"):
            for download in others:
                _download(run, export, download, **amount)


def _download(run: Run, export: Export, download: Download, **amount: Amount) -> None:
    stored = run.path / download.stored if download.stored else None
    st.download_button(
        download.label if stored is None else f"{download.label}, {words.size(stored.stat().st_size)}",
        functools.partial(export.content, download, run, **amount) if stored is None else downloads.of_file(stored),
        on_click="ignore",
        file_name=f"{run.id}{download.ending}",
        mime=download.media_type,
        icon=":material/download:",
        width="stretch",
        key=download.key,
    )


def _formats(export: Export) -> str:
    """What the labels of the files of an export do not say, in Markdown."""
    return "  \n".join(f"*{download.label}*: {download.help}" for download in export.downloads if download.help)


def _to_folder(run: Run, key: str, label: str, target: Path, work: Callable) -> None:
    """A button that writes a large file into the run's folder in the background, its progress, and its path."""
    if target.exists() and not background.working(key):
        st.caption("Written on this server:")
        st.code(str(target.resolve()), language=None, wrap_lines=True)
    background.offer(
        key,
        label if not target.exists() else "Write again",
        lambda: worker().start(key, work),
        name=key,
        icon=":material/save:",
        find=lambda: None,  # what was written may be written again
        width="stretch",
    )
