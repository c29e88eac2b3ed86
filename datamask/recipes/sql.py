"""The pair-wise rule as SQL for DuckDB: the same rows by a query, without datamask."""

from __future__ import annotations

import itertools
import json

import numpy as np

from datamask.errors import InputError
from datamask.quotas import NO_VALUE
from datamask.recipes.quality import FrozenQuality
from datamask.recipes.recipe import Recipe

TABLE = "shards"
"""The table or view that the query reads."""


def duckdb_sql(recipe: Recipe, table: str = TABLE) -> str:
    """Return a query for DuckDB that gives the id and the score of every row that the recipe keeps.

    The query leaves out rows with values that cannot be used (null, NaN, infinite, all zero), as
    `apply --drop_invalid` does. It sums in another order than `apply`, so rows within rounding of the threshold may
    come out differently.

    The first part takes the columns that the rule needs under names of its own, and no other column of the shards goes
    further. Columns are matched exactly: in DuckDB a quoted name also finds a column that differs in case.

    Args:
        table: what is read, in SQL: a table, a view, or ``read_parquet('shards/*.parquet')``.

    Raises:
        InputError: the rule has second moments, or a quality column goes by rank.
    """
    rule, thresholds = recipe.rule, recipe.thresholds
    if rule.moment is not None:
        raise InputError(
            "the recipe's rule has a matrix (disf_fixed), which is no query of a sensible length; use `datamask apply`"
        )
    if ranked := [column.name for column in recipe.quality if column.transform == "rank"]:
        raise InputError(
            f"quality column {ranked[0]!r} goes by its rank in the corpus, a table of thousands of values, which is no "
            "query of a sensible length; use `datamask apply`, or a run with :raw or :z"
        )
    columns = {"datamask_id": _column(recipe.id_column)}
    for place, column in enumerate(recipe.quality):
        columns[f"datamask_quality_{place}"] = f"{_column(column.name)}::DOUBLE"
    quality = " + ".join(_quality(column, f"datamask_quality_{place}") for place, column in enumerate(recipe.quality))
    score = f"{_number(rule.quality_weight)} * datamask_quality"
    valid = ["isfinite(datamask_score)"]
    if recipe.of == "tokens" and recipe.length_column is not None:
        columns["datamask_length"] = f"{_column(recipe.length_column)}::DOUBLE"
        score += f" + {_number(rule.length_weight)} * datamask_length"
        valid += ["isfinite(datamask_length)", "datamask_length >= 0"]
    if rule.direction is not None:
        columns["datamask_x"] = f"{_column(recipe.features.column)}::DOUBLE[]"
        score += f"\n    - {_number(rule.crowding_weight)} * {_cosine(rule.direction, recipe.features.center)}"
    if thresholds.column is not None:
        columns["datamask_group"] = f"{_column(thresholds.column)}::VARCHAR"
    kept = f"datamask_score >= {_threshold(recipe)}"
    if thresholds.least_quality is not None:
        kept += f" AND datamask_quality >= {_number(thresholds.least_quality)}"
    if recipe.always:
        kept = f"(({kept}) OR datamask_id IN ({_ids(recipe.always)}))"
    if recipe.never:
        kept += f" AND datamask_id NOT IN ({_ids(recipe.never)})"
    conditions = "\n  AND ".join([*valid, kept])
    taken = ",\n    ".join(f"{value} AS {name}" for name, value in columns.items())
    objective = " + ".join(name for name, _ in recipe.terms)
    run = recipe.learned.get("run")
    of_run = "" if run is None else f"Run {json.dumps(run)}. "
    return (
        f"-- The rows that a datamask recipe selects ({objective}, lambda {recipe.lamb:g}).\n"
        f"-- {of_run}For DuckDB; before it, for instance:\n"
        f"-- CREATE VIEW {TABLE} AS SELECT * FROM read_parquet('path/*.parquet');\n"
        f"WITH datamask_columns AS (\n  SELECT\n    {taken}\n  FROM {table}\n),\n"
        f"datamask_rows AS (\n  SELECT *, {quality}\n    AS datamask_quality\n  FROM datamask_columns\n),\n"
        f"datamask_scored AS (\n  SELECT *, {score}\n    AS datamask_score\n  FROM datamask_rows\n)\n"
        f"SELECT datamask_id AS {_name(recipe.id_column)}, datamask_score AS score\n"
        f"FROM datamask_scored\nWHERE {conditions};\n"
    )


def _quality(column: FrozenQuality, value: str) -> str:
    if column.transform == "z":
        if column.sd == 0:
            return f"0.0 * {value}"
        value = f"(({value} - {_number(column.mean)}) / {_number(column.sd)})"
    return f"{_number(column.weight)} * {value}"


def _cosine(direction: np.ndarray, center: np.ndarray | None) -> str:
    """``x . direction`` of the feature, made unit length after the center is subtracted."""
    along = f"list_dot_product(datamask_x, {_vector(direction)})"
    square = "list_dot_product(datamask_x, datamask_x)"
    if center is not None:
        along = f"({along} - {_number(float(center @ direction))})"
        square = f"({square} - 2 * list_dot_product(datamask_x, {_vector(center)}) + {_number(float(center @ center))})"
    return f"{along} / nullif(sqrt(greatest({square}, 0.0)), 0)"


def _threshold(recipe: Recipe) -> str:
    thresholds = recipe.thresholds
    common = _number(thresholds.tau)
    if thresholds.column is None:
        return common
    cases = " ".join(f"WHEN {_text(name)} THEN {_number(tau)}" for name, tau in thresholds.groups.items())
    value = f"coalesce(datamask_group, {_text(NO_VALUE)})"
    return f"CASE {value} {cases} ELSE {common} END" if cases else common


def _number(value: float | None) -> str:
    """With all digits, and an exponent, without which DuckDB reads a decimal of few digits; None: never reached."""
    return "'infinity'::DOUBLE" if value is None else f"({value:.17e})"


def _vector(values: np.ndarray) -> str:
    return f"[{', '.join(f'{value:.17e}' for value in values)}]"


def _column(name: str) -> str:
    """The column of exactly this name: a pattern of letters, digits and code points."""
    pattern = "".join(letter if letter.isalnum() or letter == "_" else f"\\x{{{ord(letter):x}}}" for letter in name)
    return f"COLUMNS('^{pattern}$')"


def _name(column: str) -> str:
    """A name for a column of the result; ``id`` for one that is not printable, since DuckDB has no escapes in names."""
    return '"' + column.replace('"', '""') + '"' if column.isprintable() else "id"


def _text(value: str) -> str:
    """A text literal; characters that are not printable are given by their code points."""
    pieces: list[str] = []
    for printable, letters in itertools.groupby(value, str.isprintable):
        if printable:
            pieces.append("'" + "".join(letters).replace("'", "''") + "'")
        else:
            pieces += [f"chr({ord(letter)})" for letter in letters]
    text = " || ".join(pieces) or "''"
    return f"({text})" if len(pieces) > 1 else text


def _ids(ids: tuple[str | int, ...]) -> str:
    return ", ".join(_text(name) if isinstance(name, str) else str(name) for name in ids)
