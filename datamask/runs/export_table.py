"""What can be taken home from a finished run: a table; `runs export`, the Export page and a contract test loop over it.

To add one: a function that writes it (`datamask.runs.exports` has those there are), and its entry in `EXPORTS`. The
report is no entry: it is made of an open corpus and of other runs, and so has a card of its own.
"""

from __future__ import annotations

import io
import tempfile
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from datamask.repeat_counts import AS_SELECTED, Amount
from datamask.runs import exports
from datamask.runs.store import Run
from datamask.work.context import UNWATCHED, Work

PARQUET = "application/vnd.apache.parquet"

Write = Callable[..., str | list[str]]


@dataclass(frozen=True)
class Download:
    """One file for a browser.

    Attributes:
        key: of its button, the same for ever.
        label: of its button.
        ending: of its name, behind the run's id.
        media_type: what a browser is told that it is.
        help: what its card tells of it; "": nothing that its label does not.
        content: its bytes.
        stored: a file of the run folder that is handed on as it is, in place of `content`; the button says its size.
    """

    key: str
    label: str
    ending: str
    media_type: str
    help: str
    content: Callable[..., bytes]
    stored: str = ""


@dataclass(frozen=True)
class Export:
    """One thing to take home.

    Attributes:
        name: its option of `runs export`, and its entry in what that prints as JSON.
        metavar, about: what follows the option, and what the help says of it.
        heading, caption: of its card.
        write: ``write(run, path, work)`` writes it whole or not at all, and gives the path or paths
            written; raises as the functions of `datamask.runs.exports` do.
        downloads: what a browser may fetch, each a button.
        needs_shards: what to put the shards back for, in words; "": it is made of the run folder alone.
        target: where in the run's folder ``exports`` a server writes what a browser cannot take or what must be checked
            first; its name without ending is that of the work too.
        to_disk: the button for that.
        bounded: whether its size, or the work, grows with the shards', so that those of large ones are written to the
            folder only.
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
    missing: Callable[[Run], str] = lambda run: ""
    amounts: bool = False


def _write_ids(run: Run, path: str | Path, work: Work = UNWATCHED) -> str:
    return exports.write_ids(run, path)


def _write_weights(
    run: Run,
    path: str | Path,
    work: Work = UNWATCHED,
    amount: Amount = AS_SELECTED,
    report: Callable[[str], None] = lambda sentence: None,
) -> str:
    from datamask.runs.weights import write_weights

    return write_weights(run, path, amount, report)


def _weights_parquet(run: Run, amount: Amount = AS_SELECTED) -> bytes:
    from datamask.runs.weights import weights_parquet

    return weights_parquet(run, amount)


def _weights_csv(run: Run, amount: Amount = AS_SELECTED) -> bytes:
    from datamask.runs.weights import weights_csv

    return weights_csv(run, amount)


def _write_rows(run: Run, path: str | Path, work: Work = UNWATCHED) -> str:
    exports.filtered_rows(run, path, work)
    return str(path)


def _write_masks(run: Run, path: str | Path, work: Work = UNWATCHED) -> list[str]:
    return [str(mask) for mask in exports.mask_per_shard(run, path, work)]


def _write_recipe(run: Run, path: str | Path, work: Work = UNWATCHED) -> str:
    from datamask.recipes import write_recipe
    from datamask.runs.recipe import recipe_of

    write_recipe(recipe_of(run, work), path)
    return str(path)


def _recipe(run: Run) -> bytes:
    from datamask.runs.recipe import recipe_of

    return recipe_of(run).to_json().encode()


def _no_recipe(run: Run) -> str:
    from datamask.recipes.derive import refusal

    return refusal(run.config.selection)


def _selection(run: Run) -> bytes:
    return (run.path / "selection.parquet").read_bytes()


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


ESCAPED = "Text that a spreadsheet would run as a formula is escaped."

EXPORTS: list[Export] = [
    Export(
        name="ids",
        metavar="OUT.csv|OUT.parquet",
        about="the selected ids with rank, logit and marginals",
        heading="Selected ids",
        caption="The selected ids with rank, score in this run, quality score, marginal diversity, shard and row.",
        write=_write_ids,
        downloads=(
            Download(
                "ids_parquet",
                "Download ids (Parquet)",
                ".parquet",
                PARQUET,
                "",
                _selection,
                stored="selection.parquet",
            ),
            Download(
                "ids_csv",
                "Download ids (CSV)",
                ".csv",
                "text/csv",
                ESCAPED,
                exports.selected_csv,
            ),
        ),
    ),
    Export(
        name="weights",
        metavar="OUT.csv|OUT.parquet",
        about="how often to repeat each row: repeat weights and whole counts (--repeats, --repeat_tokens)",
        heading="Repeat weights",
        caption="For each row, a weight from 0 to 1 and how often to train on it.",
        write=_write_weights,
        downloads=(
            Download(
                "weights_parquet",
                "Download weights (Parquet)",
                "-weights.parquet",
                PARQUET,
                "Columns: id, weight, repeat, selected, tokens if known, source file and row.",
                _weights_parquet,
            ),
            Download(
                "weights_csv",
                "Download weights (CSV)",
                "-weights.csv",
                "text/csv",
                ESCAPED,
                _weights_csv,
            ),
        ),
        missing=exports.no_weights,
        amounts=True,
    ),
    Export(
        name="rows",
        metavar="OUT.parquet",
        about="the selected rows of the corpus",
        heading="Selected rows",
        caption="The selected rows with all columns of the shards, in input order.",
        write=_write_rows,
        downloads=(
            Download(
                "rows_parquet",
                "Download rows (Parquet)",
                "-rows.parquet",
                PARQUET,
                "",
                filtered,
            ),
        ),
        needs_shards="their rows",
        target="rows.parquet",
        to_disk="Write rows to disk",
        bounded=True,
    ),
    Export(
        name="mask",
        metavar="FOLDER",
        about="per shard, a parquet with 0 or 1 for each of its rows",
        heading="Mask per shard",
        caption="One small Parquet file per shard, in row order. `selected` is 0 or 1; `considered` is false for rows "
        "of the shard that are not in the corpus, such as invalid rows.",
        write=_write_masks,
        downloads=(
            Download(
                "masks_zip",
                "Download masks (zip)",
                "-masks.zip",
                "application/zip",
                "",
                zip_of_masks,
            ),
        ),
        needs_shards="masks",
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
        downloads=(
            Download(
                "recipe_json",
                "Download recipe (JSON)",
                "-recipe.json",
                "application/json",
                "",
                _recipe,
            ),
        ),
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
