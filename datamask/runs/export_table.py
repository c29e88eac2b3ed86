"""What can be taken home from a finished run: a table; `runs export`, the Export page and a contract test loop over it.

To add one: a function that writes it (`datamask.runs.exports` has those there are), and its entry in `EXPORTS`. The
report is no entry: it is made of an open corpus and of other runs, and so has a line of its own.
"""

from __future__ import annotations

import io
import tempfile
import zipfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from datamask.repeat_counts import AS_SELECTED, Amount
from datamask.runs import exports
from datamask.runs.store import Run
from datamask.tables import CSV, IDS_FILE, JSONL, OF_IDS, OF_ROWS, PARQUET, ROWS_FILE, TXT, format_of, is_file
from datamask.work.context import UNWATCHED, Work

ZIP = "application/zip"

MEDIA_TYPES = {
    PARQUET: "application/vnd.apache.parquet",
    CSV: "text/csv",
    JSONL: "application/x-ndjson",
    TXT: "text/plain",
}

NAMES = {PARQUET: "Parquet", CSV: "CSV", JSONL: "JSON lines", TXT: "text"}

Write = Callable[..., str | list[str]]


@dataclass(frozen=True)
class Download:
    """One file for a browser.

    Attributes:
        key: its name, the same for ever.
        label: what its format is called.
        ending: of its name, behind the run's id.
        media_type: what a browser is told that it is.
        help: what the page tells of it; "": nothing that its label does not.
        stored: a file of the run folder that is handed on as it is; the page says its size. "": it is written anew.
    """

    key: str
    label: str
    ending: str
    media_type: str
    help: str
    stored: str = ""


@dataclass(frozen=True)
class Export:
    """One thing to take home.

    Attributes:
        name: its option of `runs export`, and its entry in what that prints as JSON.
        metavar, about: what follows the option, and what the help says of it.
        check: called with what follows the option before anything is written; raises OptionError.
        heading, caption: of its line on the page.
        write: ``write(run, path, work)`` writes it whole or not at all, and gives the path or paths
            written; raises as the functions of `datamask.runs.exports` do.
        downloads: what a browser may fetch, one of them at a time.
        needs_shards: what to put the shards back for, in words; "": it is made of the run folder alone.
        target: where in the run's folder ``exports`` a server writes what a browser cannot take or what must be checked
            first; its name without ending is that of the work too.
        to_disk: the button for that.
        bounded: whether its size, or the work, grows with the shards', so that those of large ones are written to the
            folder only.
        counts: which rows it has, ``selected`` or ``all`` of the shards; "": it has none, or other ones.
        missing: why a run has no such thing, in a sentence; "" where it has.
        amounts: whether there is as much of it as somebody asks for: `write` then takes ``amount``, an `Amount` of
            `datamask.repeat_counts`, and ``report``, to be given a sentence; a download's content takes ``amount``.
    """

    name: str
    metavar: str
    about: str
    heading: str
    caption: str
    write: Write
    downloads: tuple[Download, ...]
    needs_shards: str = ""
    target: str = ""
    to_disk: str = ""
    bounded: bool = False
    counts: str = ""
    missing: Callable[[Run], str] = lambda run: ""
    amounts: bool = False
    check: Callable[[str], object] = lambda path: None

    def content(self, download: Download, run: Run, **wanted: Any) -> bytes:
        """Return the file of a download; several files come as one zip. wanted: more arguments of `write`."""
        if download.stored:
            return (run.path / download.stored).read_bytes()
        with tempfile.TemporaryDirectory() as folder:
            target = Path(folder) / ("files" if download.media_type == ZIP else f"file{download.ending}")
            written = self.write(run, target, **wanted)
            if isinstance(written, str):
                return target.read_bytes()
            packed = io.BytesIO()
            with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
                for path in map(Path, written):
                    archive.write(path, path.relative_to(target))
            return packed.getvalue()


def _write_ids(run: Run, path: str | Path, work: Work = UNWATCHED) -> str:
    exports.write_selection(run, path)
    return str(path)


def _write_weights(
    run: Run,
    path: str | Path,
    work: Work = UNWATCHED,
    amount: Amount = AS_SELECTED,
    report: Callable[[str], None] = lambda sentence: None,
) -> str:
    from datamask.runs.weights import write_weights

    return write_weights(run, path, amount, report)


def _write_rows(run: Run, path: str | Path, work: Work = UNWATCHED) -> str:
    exports.filtered_rows(run, path, work)
    return str(path)


def _write_masks(run: Run, path: str | Path, work: Work = UNWATCHED) -> list[str]:
    return [str(mask) for mask in exports.write_masks(run, path, work)]


def _write_recipe(run: Run, path: str | Path, work: Work = UNWATCHED) -> str:
    from datamask.recipes import write_recipe
    from datamask.runs.recipe import recipe_of

    write_recipe(recipe_of(run, work), path)
    return str(path)


def _no_recipe(run: Run) -> str:
    from datamask.recipes.derive import refusal

    return refusal(run.config.selection)


ESCAPED = "Ids are written as they are; other text that a spreadsheet would run as a formula is escaped."


def _downloads(name: str, endings: Sequence[str], help: str = "", stored: str = "") -> tuple[Download, ...]:
    """A table in each of the formats that the command line writes. help, stored: of the first."""
    return tuple(
        Download(
            f"{name}_{ending[1:]}",
            NAMES[ending],
            ending if name == "ids" else f"-{name}{ending}",
            MEDIA_TYPES[ending],
            help if ending == endings[0] else ESCAPED if ending == CSV else "",
            stored if ending == endings[0] else "",
        )
        for ending in endings
    )


EXPORTS: list[Export] = [
    Export(
        name="ids",
        metavar=IDS_FILE,
        check=partial(format_of, option="ids"),
        about="the selected ids with rank, logit and marginals",
        heading="Selected ids",
        caption="The selected ids with rank, score in this run, quality score, marginal diversity, shard and row.",
        write=_write_ids,
        downloads=_downloads("ids", OF_IDS, stored="selection.parquet"),
        counts="selected",
    ),
    Export(
        name="weights",
        metavar=ROWS_FILE,
        check=partial(format_of, option="weights", among=OF_ROWS),
        about="how often to repeat each row: repeat weights and whole counts (--repeats, --repeat_tokens)",
        heading="Repeat weights",
        caption="For each row, a weight from 0 to 1 and how often to train on it.",
        write=_write_weights,
        downloads=_downloads(
            "weights", OF_ROWS, help="Columns: id, weight, repeat, selected, tokens if known, source file and row."
        ),
        missing=exports.no_weights,
        amounts=True,
    ),
    Export(
        name="rows",
        metavar=ROWS_FILE,
        check=partial(format_of, option="rows", among=OF_ROWS),
        about="the selected rows of the corpus",
        heading="Selected rows",
        caption="The selected rows with all columns of the shards, in input order.",
        write=_write_rows,
        downloads=_downloads("rows", OF_ROWS),
        counts="selected",
        needs_shards="their rows",
        target="rows.parquet",
        to_disk="Write rows to disk",
        bounded=True,
    ),
    Export(
        name="mask",
        metavar=f"FOLDER|{ROWS_FILE}",
        check=partial(is_file, option="mask", among=OF_ROWS),
        about="0 or 1 for each row of the shards: a folder with a parquet per shard, or one file",
        heading="Mask per shard",
        caption="One small Parquet file per shard, in row order. `selected` is 0 or 1; `considered` is false for rows "
        "of the shard that are not in the corpus, such as invalid rows.",
        write=_write_masks,
        downloads=(Download("masks_zip", "zip", "-masks.zip", ZIP, ""),),
        needs_shards="masks",
        counts="all",
        target="masks",
        to_disk="Write masks to disk",
    ),
    Export(
        name="recipe",
        metavar="OUT.json",
        about="the per-row rule of the selection (pairwise, disf_fixed), for `datamask apply`",
        heading="Recipe",
        caption="A recipe is a rule that decides row by row, as JSON. `datamask apply` selects from any shards by it.",
        write=_write_recipe,
        downloads=(Download("recipe_json", "JSON", "-recipe.json", "application/json", ""),),
        needs_shards="its recipe",
        target="recipe.json",
        to_disk="Write recipe to disk",
        bounded=True,
        missing=_no_recipe,
    ),
]
"""In this order everywhere."""


def flags() -> str:
    """The options of `runs export` with an example each, for a sentence."""
    *first, last = [f"--{export.name} {export.metavar.split('|')[0]}" for export in EXPORTS]
    return f"{', '.join(first)} or {last}"
