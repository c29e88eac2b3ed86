"""The pair-wise rule as SQL for DuckDB: the same rows by a query, without datamask."""

from __future__ import annotations

import numpy as np

from datamask.errors import InputError
from datamask.feasibility import NO_VALUE
from datamask.recipes.quality import FrozenQuality
from datamask.recipes.recipe import Recipe

TABLE = "shards"
"""The table or view that the query reads."""


def duckdb_sql(recipe: Recipe, table: str = TABLE) -> str:
    """A query for DuckDB that gives the id and the score of every row that the recipe keeps.

    Rows with values that cannot be used (null, NaN, infinite, all zero) are left out, as `apply --drop-invalid` does.
    Sums run in another order than here, so rows within rounding of the threshold may come out otherwise.

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
    quality = " + ".join(_quality(column) for column in recipe.quality)
    score = f"{_number(rule.quality_weight)} * datamask_quality"
    source = f"SELECT *, {quality} AS datamask_quality"
    valid = ["isfinite(datamask_score)"]
    if recipe.of == "tokens" and recipe.length_column is not None:
        length = f"{_name(recipe.length_column)}::DOUBLE"
        score += f" + {_number(rule.length_weight)} * {length}"
        valid += [f"isfinite({length})", f"{length} >= 0"]
    if rule.direction is not None:
        source += f", {_name(recipe.features.column)}::DOUBLE[] AS datamask_x"
        score += f"\n    - {_number(rule.crowding_weight)} * {_cosine(rule.direction, recipe.features.center)}"
    kept = f"datamask_score >= {_threshold(recipe)}"
    if thresholds.least_quality is not None:
        kept += f" AND datamask_quality >= {_number(thresholds.least_quality)}"
    if recipe.always:
        kept = f"(({kept}) OR {_name(recipe.id_column)} IN ({_ids(recipe.always)}))"
    if recipe.never:
        kept += f" AND {_name(recipe.id_column)} NOT IN ({_ids(recipe.never)})"
    conditions = "\n  AND ".join([*valid, kept])
    return (
        f"-- The rows that a datamask recipe keeps ({recipe.objective}, lambda {recipe.lamb:g}).\n"
        f"-- Run {recipe.learned.get('run')}. For DuckDB; before it, for instance:\n"
        f"-- CREATE VIEW {TABLE} AS SELECT * FROM read_parquet('path/*.parquet');\n"
        f"WITH datamask_rows AS (\n  {source}\n  FROM {table}\n),\n"
        f"datamask_scored AS (\n  SELECT *, {score}\n    AS datamask_score\n  FROM datamask_rows\n)\n"
        f"SELECT {_name(recipe.id_column)}, datamask_score AS score\nFROM datamask_scored\nWHERE {conditions};\n"
    )


def _quality(column: FrozenQuality) -> str:
    value = f"{_name(column.name)}::DOUBLE"
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
    value = f"coalesce({_name(thresholds.column)}::VARCHAR, {_text(NO_VALUE)})"
    return f"CASE {value} {cases} ELSE {common} END" if cases else common


def _number(value: float | None) -> str:
    """With all digits, and an exponent, without which DuckDB reads a decimal of few digits; None: never reached."""
    return "'infinity'::DOUBLE" if value is None else f"({value:.17e})"


def _vector(values: np.ndarray) -> str:
    return f"[{', '.join(f'{value:.17e}' for value in values)}]"


def _name(column: str) -> str:
    return '"' + column.replace('"', '""') + '"'


def _text(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"


def _ids(ids: tuple[str | int, ...]) -> str:
    return ", ".join(_text(name) if isinstance(name, str) else str(name) for name in ids)
