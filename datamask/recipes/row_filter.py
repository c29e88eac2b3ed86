"""A recipe as a function of rows in memory: what `apply` keeps, for other people's pipelines."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from datamask.corpus.in_memory import source_of, table_of
from datamask.recipes.batches import Judge, shard_batches
from datamask.recipes.recipe import Recipe, read_recipe


@dataclass(frozen=True)
class RowFilter:
    """Says for rows whether a recipe keeps them; without state, so it can be pickled and called in any process.

    Attributes:
        recipe: the rule.
        drop_invalid: do not keep rows with null, infinite or all-zero values, instead of refusing them.
        id_column, feature_column: where the rows call them otherwise than the recipe; None: as the recipe.
    """

    recipe: Recipe
    drop_invalid: bool = False
    id_column: str | None = None
    feature_column: str | None = None
    feature_bits: bool = False

    def __call__(self, rows: Any) -> np.ndarray:
        """Return bool ``(N,)``, true where a row is kept.

        Args:
            rows: a pyarrow Table or RecordBatch, a DataFrame, or a dict of arrays or lists, of N rows.

        Raises:
            InputError: it is something else, lacks a column, or has a row that cannot be used.
        """
        table = table_of(rows)
        if not table.num_rows:
            return np.zeros(0, bool)
        source = source_of(table)
        judge = Judge(
            self.recipe,
            source,
            drop_invalid=self.drop_invalid,
            id_column=self.id_column,
            feature_column=self.feature_column,
            feature_bits=self.feature_bits,
        )
        (shard,) = source.shards
        batches = shard_batches(shard, judge.columns, max(1.0, shard.facts.row_bytes))
        judged = (judge(0, first, shard.with_leaves(batch, judge.columns)) for first, batch in batches)
        return np.concatenate([part.kept for part in judged])


def load_recipe(
    path: str | Path,
    *,
    drop_invalid: bool = False,
    id_column: str | None = None,
    feature_column: str | None = None,
    feature_bits: bool = False,
) -> RowFilter:
    """Read a recipe as a function that says for each row whether it is kept, as `apply` would.

    Args:
        path: file written by ``datamask recipe`` or ``runs export --recipe``.
        drop_invalid: do not keep rows with null, infinite or all-zero values, instead of refusing them.
        id_column: name of the id column, where the rows call it otherwise than the recipe.
        feature_column: the same of the features.
        feature_bits: the features are packed bits.

    Returns:
        A function without state that can be pickled: a pyarrow Table or RecordBatch, a DataFrame or a dict of arrays
        in, bool ``(N,)`` out.

    Raises:
        InputError: the file is no recipe.

    Examples:
        >>> import pyarrow.parquet as pq
        >>> from tempfile import mkdtemp
        >>> from datamask import load_recipe, open_corpus, select
        >>> from datamask.recipes import write_recipe
        >>> from datamask.runs.recipe import recipe_of
        >>> from datamask.runs.store import Run
        >>> corpus = open_corpus("sample_data/tiny")
        >>> run = select(corpus, objective="pairwise", select_ratio=0.1, device="cpu", runs_dir=mkdtemp()).run
        >>> write_recipe(recipe_of(Run(run)), run / "recipe.json")
        >>> keep = load_recipe(run / "recipe.json")
        >>> kept = keep(pq.read_table("sample_data/tiny/sample-1-of-2.parquet"))
        >>> kept.dtype, bool(0 < kept.sum() < len(kept))
        (dtype('bool'), True)
    """
    return RowFilter(read_recipe(path), drop_invalid, id_column, feature_column, feature_bits)
