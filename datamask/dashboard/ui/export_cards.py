"""The three cards of the Export page, each a file to take home."""

from __future__ import annotations

import io
import tempfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import streamlit as st

from datamask.dashboard import words
from datamask.dashboard.ui import downloads, session
from datamask.dashboard.views import outcome, provenance
from datamask.runs import exports
from datamask.runs.store import Run
from datamask.work.worker import worker

PARQUET = "application/vnd.apache.parquet"
HEIGHT = 300


def nothing_yet() -> None:
    """No run to export."""
    with st.container(border=True):
        st.subheader("Nothing to take home yet", anchor=False)
        st.write("A selection is exported once its run has finished. Start one, and come back here.")
        st.page_link(
            "pages/run.py", label="Start a run", icon=":material/arrow_forward:", query_params=session.link_parameters()
        )


def not_finished(run: Run) -> None:
    """The chosen run has no selection."""
    story = outcome.story(run)
    with st.container(border=True):
        st.subheader("This run has no selection yet", anchor=False)
        st.write(f"{story.heading}. {words.sentence(story.text)}" if story else "Its selection is gone.")
        st.page_link(
            "pages/run.py",
            label="Go to the run",
            icon=":material/arrow_forward:",
            query_params={**session.link_parameters(), "run": run.id},
        )


def ids(run: Run) -> None:
    """The selected ids, as parquet and CSV."""
    selection = run.path / "selection.parquet"
    with st.container(border=True, height=HEIGHT):
        st.markdown("**The selected ids**")
        st.caption(
            "One row per selected sample: id, rank, logit, score, quality, its marginal quality and "
            "diversity, source file and row. Rank 1 is the strongest. To keep fewer samples, run "
            "again with a smaller ratio; do not cut this list."
        )
        st.space("stretch")
        st.download_button(
            f"Parquet, {words.size(selection.stat().st_size)}",
            downloads.of_file(selection),
            on_click="ignore",
            file_name=f"{run.id}.parquet",
            mime=PARQUET,
            icon=":material/download:",
            width="stretch",
            key="ids_parquet",
            help="The command line's OUT.parquet, configuration in its metadata.",
        )
        st.download_button(
            "CSV",
            lambda: exports.selected_csv(run),
            on_click="ignore",
            file_name=f"{run.id}.csv",
            mime="text/csv",
            icon=":material/download:",
            width="stretch",
            key="ids_csv",
            help="For spreadsheets. Text that a spreadsheet would run as a formula is defused.",
        )


def rows(run: Run, shards: provenance.Shards) -> None:
    """The corpus's own rows, filtered."""
    with st.container(border=True, height=HEIGHT):
        st.markdown("**The rows themselves**")
        st.caption(
            "The corpus's own rows, all columns as they are in the shards, only the selected ones, in input "
            "order. Ready to train on."
        )
        st.space("stretch")
        if shards.outside:
            st.warning(words.sentence(shards.outside), icon=":material/lock:")
        elif not shards.found:
            st.warning("The corpus's shards are no longer where they were; put them back to export their rows.")
        elif shards.bytes <= provenance.SMALL and not shards.newer:
            st.download_button(
                "Parquet, all columns",
                lambda: filtered(run),
                on_click="ignore",
                file_name=f"{run.id}-rows.parquet",
                mime=PARQUET,
                icon=":material/download:",
                width="stretch",
                key="rows_parquet",
                help=_with_doubt(run, "Reads the shards again when you press it."),
            )
        else:
            target = run.path / "exports" / "rows.parquet"
            _to_folder(
                run,
                f"rows-{run.id}",
                "Write the rows to disk",
                target,
                lambda job: exports.filtered_rows(run, target, progress=job.report, should_stop=job.should_stop),
            )


def masks(run: Run, shards: provenance.Shards) -> None:
    """A 0/1 mask per shard."""
    with st.container(border=True, height=HEIGHT):
        st.markdown("**A mask per shard**")
        st.caption(
            "One small parquet per shard in its own row order with two columns: selected (0 or 1), and "
            "considered (false if the row was not opened or was invalid)."
        )
        st.space("stretch")
        if shards.outside:
            st.warning(words.sentence(shards.outside), icon=":material/lock:")
        elif not shards.found:
            st.warning("The corpus's shards are no longer where they were; put them back to export masks.")
        elif not shards.newer:
            st.download_button(
                "Zip of masks",
                lambda: zip_of_masks(run),
                on_click="ignore",
                file_name=f"{run.id}-masks.zip",
                mime="application/zip",
                icon=":material/download:",
                width="stretch",
                key="masks_zip",
                help=_with_doubt(run, "Files keep their shards' names."),
            )
        else:
            folder = run.path / "exports" / "masks"
            _to_folder(
                run,
                f"masks-{run.id}",
                "Write them to disk",
                folder,
                lambda job: exports.mask_per_shard(run, folder, progress=job.report, should_stop=job.should_stop),
            )


def _with_doubt(run: Run, help_text: str) -> str:
    """A button's help, and what of the export cannot be checked."""
    return " ".join(filter(None, (help_text, exports.unchecked(run))))


def filtered(run: Run) -> bytes:
    """The corpus's own selected rows as a parquet file."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.parquet"
        exports.filtered_rows(run, path)
        return path.read_bytes()


def zip_of_masks(run: Run) -> bytes:
    """A mask per shard, in one zip file."""
    buffer = io.BytesIO()
    with tempfile.TemporaryDirectory() as folder, zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in exports.mask_per_shard(run, folder):
            archive.write(path, path.relative_to(folder))
    return buffer.getvalue()


def _to_folder(run: Run, key: str, label: str, target: Path, work: Callable) -> None:
    """A button that writes a large file into the run's folder in the background, its progress, and its path."""
    job = worker().find(key)
    if job is not None and not job.ended:
        st.fragment(_working, run_every=0.5)(key)
        return
    if job is not None and job.state == "failed":
        st.error(words.sentence(job.error), icon=":material/error:")
    elif target.exists():
        st.caption("Written on this server:")
        st.code(str(target.resolve()), language=None, wrap_lines=True)
    st.button(
        label if not target.exists() else "Write again",
        key=key,
        icon=":material/save:",
        width="stretch",
        on_click=worker().start,
        args=(key, work),
        help=_with_doubt(
            run, "Too large for the browser, or to be checked first: written to the run's folder, in the background."
        ),
    )


def _working(key: str) -> None:
    job = worker().find(key)
    if job is None or job.ended:
        st.rerun()
    st.progress(min(job.share, 1.0), text=words.plain(job.message))
    st.button(
        "Stop",
        key=f"stop_{key}",
        icon=":material/stop:",
        on_click=job.stop,
        help="Nothing half written is left behind.",
    )
