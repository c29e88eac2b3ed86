"""What a run gives on the Export page: a line for each entry of `datamask.runs.export_table`."""

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
from datamask.pages.export import lines_panel
from datamask.pages.export.lines_panel import File
from datamask.repeat_counts import MOST, Amount
from datamask.runs.export_table import EXPORTS, Export
from datamask.runs.store import Run
from datamask.work.worker import worker


def nothing_yet() -> None:
    """No run to export."""
    _empty(
        "Nothing to export yet",
        "You can export a run when it is done. Start one and come back.",
        "Start a run",
        views.now().address,
    )


def not_finished(run: Run) -> None:
    """The chosen run has no selection."""
    story = outcome.story(run)
    text = f"{story.heading}. {words.sentence(story.text)}" if story else "The selection is missing."
    _empty("This run has no selection yet", text, "Go to the run", views.address_of_run(run.id))


def _empty(heading: str, text: str, link: str, address: dict[str, str]) -> None:
    with st.container(border=True):
        st.subheader(heading, anchor=False)
        st.write(text)
        views.page_link("pages/runs.py", link, address=address)


def show(run: Run, shards: provenance.Shards) -> None:
    """Draw a line for each export that the run can give."""
    given = [export for export in EXPORTS if not export.amounts and not export.missing(run)]
    for export in given:
        _line(run, export, shards)


def missing(run: Run) -> None:
    """What the run cannot give, each with its reason."""
    for export in EXPORTS:
        if why := export.missing(run):
            st.caption(f"**{export.heading}**: {words.sentence(why)}")


def amounts(run: Run) -> None:
    """Draw the exports of which there is as much as one asks for, folded."""
    for export in EXPORTS:
        if export.amounts and not export.missing(run):
            _amount_card(run, export)


def _amount_card(run: Run, export: Export) -> None:
    with st.expander(export.heading):
        _files(run, export, amount=_amount(run))


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


def _line(run: Run, export: Export, shards: provenance.Shards) -> None:
    """One thing to download; or why it cannot be, or the button that writes it to disk."""
    if not export.needs_shards or (shards.present and not shards.newer and not (export.bounded and shards.large)):
        _files(run, export)
        return
    with st.container(horizontal=True, vertical_alignment="center", gap="medium"):
        lines_panel.begin(export.heading, export.caption, _rows(run, export))
        if shards.outside:
            st.warning(words.sentence(shards.outside), icon=":material/lock:")
        elif not shards.present:
            st.warning(f"The shards of the corpus have moved. Put them back to export {export.needs_shards}.")
        else:
            target = run.path / "exports" / export.target
            with st.container():
                _to_folder(
                    run,
                    f"{target.stem}-{run.id}",
                    export.to_disk,
                    target,
                    lambda job: export.write(run, target, job.work),
                )


def _files(run: Run, export: Export, **amount: Amount) -> None:
    files = []
    for download in export.downloads:
        stored = run.path / download.stored if download.stored else None
        files.append(
            File(
                download.label,
                f"{run.id}{download.ending}",
                download.media_type,
                functools.partial(export.content, download, run, **amount)
                if stored is None
                else downloads.of_file(stored),
                download.help,
                None if stored is None else stored.stat().st_size,
            )
        )
    lines_panel.line(export.name, export.heading, export.caption, _rows(run, export), files)


def _rows(run: Run, export: Export) -> str:
    counts = {"selected": (run.status().result or NO_RESULT).size.selected, "all": run.facts().get("total_rows")}
    count = counts.get(export.counts)
    return "" if count is None else f"{count:,} rows"


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
