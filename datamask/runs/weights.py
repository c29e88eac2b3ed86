"""The file of weights of a finished run: how often to repeat each sample. Reads the run folder alone, without torch."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa

from datamask.corpus.sampling import row_hash
from datamask.errors import OptionError, StoreError
from datamask.repeat_counts import AS_SELECTED, Amount, repeats
from datamask.runs.exports import no_weights
from datamask.runs.store import Run
from datamask.tables import OF_ROWS, format_of, with_fields, write_table


def weights_table(run: Run, amount: Amount = AS_SELECTED) -> pa.Table:
    """How often to repeat each sample, in input order: the rows that have a weight.

    The columns: the id; ``weight``, float64, the inclusion weight, adding to the number of selected samples, or under a
    budget to rows that fill it; ``repeat``, int64, whole counts (`datamask.repeat_counts`), 0 among them;
    ``selected``, whether the run's selection has the row; ``tokens``, where the corpus has lengths; source file and
    row. What it all adds to stands as JSON under the metadata key ``weights``.

    Raises:
        RunStateError: the run has not finished. OptionError: it has no weights, or not for this amount.
    """
    selection = run.selection()
    if why := no_weights(run):
        raise OptionError(f"--weights: {why[0].lower()}{why[1:].rstrip('.')}")
    name = run.id_column(selection)
    rows = run.rows((name, "weight", "selected", "source_file", "source_row"), optional=("tokens",))
    weights, seed = rows["weight"].to_numpy(), run.config.selection.seed
    if not ((weights >= 0) & (weights <= 1)).all():
        raise StoreError(f"rows.parquet of run {run.id} is damaged: its weights are not all from 0 to 1")
    known = "tokens" in rows.column_names and not rows["tokens"].null_count
    lengths = rows["tokens"].to_numpy() if known else None
    order = row_hash(rows[name].combine_chunks(), seed)
    counts = repeats(weights, order, seed, samples=amount.samples, tokens=amount.tokens, lengths=lengths)
    totals: dict[str, Any] = {"weight": float(weights.sum()), "repeat": int(counts.sum()), "seed": seed}
    columns = {
        name: rows[name],
        "weight": rows["weight"],
        "repeat": pa.array(counts),
        "selected": rows["selected"],
        **({} if lengths is None else {"tokens": rows["tokens"]}),
        "source_file": rows["source_file"].cast(pa.string()),
        "source_row": rows["source_row"],
    }
    if lengths is not None:
        totals |= {"weight_tokens": float(weights @ lengths), "repeat_tokens": float(counts @ lengths)}
    noted = {**(selection.schema.metadata or {}), b"weights": json.dumps(totals).encode()}
    table = with_fields(pa.table(columns), rows.schema.field(name))
    return table.filter(pa.array(weights > 0)).replace_schema_metadata(noted)


def weights_words(path: str | Path, table: pa.Table) -> str:
    """What a table of weights adds to, in a sentence for people."""
    totals = json.loads(table.schema.metadata[b"weights"])
    tokens = f", {totals['repeat_tokens']:,.0f} tokens" if "repeat_tokens" in totals else ""
    return (
        f"{path}: weights of {table.num_rows:,} rows, in sum {totals['weight']:,.2f}; to be repeated "
        f"{totals['repeat']:,} times in all{tokens}"
    )


def write_weights(
    run: Run, path: str | Path, amount: Amount = AS_SELECTED, report: Callable[[str], None] = lambda sentence: None
) -> str:
    """Write `weights_table` in the format of the name of `path`.

    Args:
        report: given the sentence that says what it adds to.

    Returns:
        The path, as text.

    Raises:
        OptionError: it has another ending, or as `weights_table`.
    """
    format_of(path, "weights", OF_ROWS)
    table = weights_table(run, amount)
    write_table(path, table)
    report(weights_words(path, table))
    return str(path)
