"""A selection as a folder that a dataset hub takes: ids or rows, the recipe, the settings, a picture, and a card.

The card is README.md with a YAML header, as Hugging Face reads it. It says what is kept, by which settings, with which
values, and what an ablation found. It names no license: that of the rows is their owner's to say.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

import datamask
from datamask.analyses.report import raster
from datamask.analyses.report.hub_text import command_line, front_matter, plain
from datamask.analyses.report.public import one_line, public_config, public_name, public_recipe
from datamask.analyses.report.sentence import sentence
from datamask.analyses.report.summary import kept_by, summary
from datamask.corpus.corpus import Corpus
from datamask.corpus.embedders.contract import FEATURES_BY
from datamask.corpus.opening import read_corpus
from datamask.corpus.projections import STAND_IN
from datamask.dashboard.map import map_layout
from datamask.dashboard.runs import outcome
from datamask.errors import DatamaskError, Stopped, StoreError
from datamask.evaluation.result import NO_RESULT
from datamask.files import remove_leftovers, replacing_folder, write_text
from datamask.runs import exports
from datamask.runs.ablation_results import results
from datamask.runs.export_table import EXPORTS, Export
from datamask.runs.formats import write_table
from datamask.runs.store import Run
from datamask.work.context import UNWATCHED, Work
from datamask.work.locks import claimed

SIZES = {10**k: name for k, name in enumerate(("1K", "10K", "100K", "1M", "10M", "100M", "1B", "10B"), start=3)}
"""Rows below which -> the name of the upper end of a size class, as the hub calls it."""

CARD, PICTURE, RECIPE, SETTINGS = "README.md", "map.png", "recipe.json", "settings.json"
MAP = "Map of the corpus, rows by their features: the selected ones are blue, the others gray"
ROWS = "The rows have all columns of the corpus, as they are in its files."
RECIPES: Export = next(export for export in EXPORTS if export.name == "recipe")
DATA = {False: "data/selection.parquet", True: "data/rows.parquet"}
"""Whether the rows are written, or the ids alone -> the file."""

COLUMNS = (
    "Columns of the ids: {id}, the id; `rank`, 1 is the strongest row; {score}, λ times "
    "`marginal_quality` plus 1 - λ times `marginal_diversity`, which are what the row adds to the selection; "
    "`quality`, the score of the corpus; `logit`, of learned masks only; `source_file` and `source_row`."
)


def write_dataset(
    run: Run,
    folder: str | Path,
    cache_dir: Path,
    work: Work = UNWATCHED,
    *,
    rows: bool = False,
) -> list[str]:
    """Write the folder, whole or not at all, and return the files in it.

    Args:
        run: a done one. cache_dir: where layouts and ablations are kept.
        folder: which must be empty or not there.
        rows: whether the selected rows are written with all columns of the shards, in place of the ids.

    Raises:
        InputError: rows are asked for, and a shard is gone or has changed since the run.
        StoreError: the folder cannot be written, or another process writes it. RunStateError: the run has not finished.
        Stopped: from `work`.

    Example:
        >>> write_dataset(RunStore("runs").get(run_id), "card", Path("runs/.kept"))
        ['README.md', 'data/selection.parquet', 'map.png', 'settings.json']
    """
    target = Path(folder)
    with claimed(target):
        if target.exists() and (not target.is_dir() or any(target.iterdir())):
            raise StoreError(f"--card {target} exists already; name a new or an empty folder")
        remove_leftovers(target)
        with replacing_folder(target) as place:
            (place / "data").mkdir()
            if rows:
                exports.filtered_rows(run, place / DATA[rows], work)
            else:
                write_table(place / DATA[rows], _public_ids(run))
            notes = []
            if not RECIPES.missing(run):
                try:
                    RECIPES.write(run, place / RECIPE, work)
                    whole = (place / RECIPE).read_text(encoding="ascii")
                    (place / RECIPE).write_text(public_recipe(whole, run.config), encoding="ascii")
                except Stopped:
                    raise
                except DatamaskError as error:
                    notes.append(f"The recipe is missing: {error}")
            write_text(place / SETTINGS, json.dumps(public_config(run.config).to_dict(), indent=2) + "\n")
            picture = _picture(run, cache_dir, work)
            if picture is not None:
                (place / PICTURE).write_bytes(picture)
            files = sorted(str(path.relative_to(place)) for path in place.rglob("*") if path.is_file())
            write_text(place / CARD, card(run, cache_dir, files, notes))
        return sorted([*files, CARD])


def _public_ids(run: Run) -> pa.Table:
    """Return the selection with the names of local files in place of their paths, in its metadata too."""
    table = run.selection()
    public = {
        "run_id": run.id,
        "config": public_config(run.config).to_dict(),
        "fingerprint": run.facts().get("fingerprint"),
    }
    table = table.replace_schema_metadata({b"datamask": json.dumps(public).encode()})
    files = pc.unique(table["source_file"]).to_pylist()
    names = pa.array([None if file is None else public_name(file) for file in files], pa.string())
    place = table.column_names.index("source_file")
    named = names.take(pc.index_in(table["source_file"], pa.array(files, pa.string())))
    return table.set_column(place, "source_file", named)


def _score(run: Run) -> str:
    return next(name for name in run.selection().column_names[1:] if re.fullmatch("(datamask_)*score", name))


def _picture(run: Run, cache_dir: Path, work: Work) -> bytes | None:
    """Return the map of the corpus with the selected rows colored, as PNG; None where the corpus does not open."""
    if run.whole is not None:  # the map is of a sample
        return None
    try:
        corpus: Corpus = read_corpus(run.config.corpus, work)
    except Stopped:
        raise
    except DatamaskError:
        return None
    if corpus.fingerprint != run.facts().get("fingerprint"):
        return None
    layout = map_layout.layout(corpus, cache_dir)
    points = STAND_IN.coordinates(corpus.features) if layout is None else layout.points
    return raster.picture(points, run.mask())


def card(run: Run, cache_dir: Path, files: list[str], notes: list[str]) -> str:
    """Return the card as Markdown.

    Args:
        run: a done one. cache_dir: where ablations are kept.
        files: next to the card. notes: sentences about what is missing.
    """
    result, settings, facts = run.status().result or NO_RESULT, run.config.selection, run.facts()
    name = one_line(run.config.name) or outcome.proposed_name(
        settings.objective, settings.lamb, settings.select_ratio, settings.estimator, settings.budget
    )
    fingerprint = str(facts.get("fingerprint") or "")
    columns = facts.get("columns") or {}
    data = next(file for file in files if file.startswith("data/"))
    found = summary(kept_by(run, data), results(cache_dir, fingerprint) if fingerprint else [])
    command = command_line(["datamask", *public_config(run.config).arguments("selection.parquet")])
    parts = [
        front_matter(_header(name, result.size.selected or 0, data)),
        f"# {plain(name)}",
        plain(sentence(run)),
        *([] if PICTURE not in files else [f"![{MAP}]({PICTURE})", MAP + "."]),
        "## Result",
        "\n".join(f"- {plain(each)}" for each in (*found, *notes)),
        _values(run),
        *(plain(each) for each in (outcome.certificate(run),) if each),
        "## Corpus",
        "\n".join(f"- {plain(line)}" for line in _corpus(facts, columns)),
        "## Settings",
        f"    {command}",
        "## Files",
        "\n".join(f"- `{file}`" for file in files),
        COLUMNS.format(id=plain(columns.get("id", "id")), score=plain(_score(run))) if data == DATA[False] else ROWS,
        f"Made by datamask {datamask.__version__} ([the method](https://arxiv.org/abs/2512.24265)). The license of the "
        "rows is that of their corpus.",
    ]
    return "\n\n".join(parts) + "\n"


def _values(run: Run) -> str:
    """Return quality and diversity as a table."""
    rows = [(plain(label), *numbers) for label, *numbers in outcome.values(run)]
    lines = [outcome.VALUES, ("---",) * len(outcome.VALUES), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _corpus(facts: Mapping[str, Any], columns: Mapping[str, Any]) -> list[str]:
    """Return what quality and features are, in sentences."""
    files = [Path(str(file)).name for file in facts.get("files") or []]
    named = ", ".join(files[:3]) + (f" and {len(files) - 3:,} more" if len(files) > 3 else "")
    said = [f"{facts.get('n', 0):,} rows of {len(files):,} {'file' if len(files) == 1 else 'files'}: {named}."]
    if quality := columns.get("quality"):
        said.append(f"Quality is column {', '.join(quality)}: higher is better.")
    if feature := columns.get("feature"):
        said.append(f"Diversity is measured on column {feature}, {facts.get('dim', 0):,} dimensions.")
    said.append("λ weighs quality against diversity: 1 is quality alone, 0 is diversity alone.")
    return [*said, *(str(note) for note in facts.get("notes") or [] if str(note).startswith(FEATURES_BY))]


def _header(name: str, rows: int, data: str) -> dict[str, Any]:
    return {
        "pretty_name": name,
        "tags": ["data-selection", "pre-training", "datamask"],
        "task_categories": ["text-generation"],
        "size_categories": [size_class(rows)],
        "configs": [{"config_name": "default", "data_files": data}],
    }


def size_class(rows: int) -> str:
    """Return the hub's name for a number of rows.

    Example:
        >>> size_class(5400)
        '1K<n<10K'
    """
    below = next((limit for limit in SIZES if rows < limit), None)
    if below is None:
        return "n>10B"
    return f"n<{SIZES[below]}" if below == 1000 else f"{SIZES[below // 10]}<n<{SIZES[below]}"
