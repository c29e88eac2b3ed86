"""A recipe as a function: the rows that `apply` keeps, whatever holds them."""

from __future__ import annotations

import pickle

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from datamask import load_recipe
from datamask.errors import InputError
from datamask.recipes import write_recipe
from tests.making.derivable_runs import shard
from tests.recipes.test_apply import RECIPES, _apply, made

FORMS = {
    "Table": lambda table: table,
    "RecordBatch": lambda table: table.combine_chunks().to_batches()[0],
    "pandas": lambda table: table.to_pandas(),
    "lists": lambda table: table.to_pydict(),
    "arrays": lambda table: {
        name: np.array(table[name].to_pylist()) if name == "feature_arr" else table[name].to_numpy()
        for name in table.column_names
    },
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("kind", RECIPES)
def test_rows_are_those_of_apply(kind, form, tmp_path):
    (tmp_path / "in").mkdir()
    table = shard(700, 3)
    pq.write_table(table, tmp_path / "in" / "a.parquet")
    recipe = made(**RECIPES[kind])
    _apply(recipe, tmp_path / "in", tmp_path / "out")
    applied = pq.read_table(next((tmp_path / "out").rglob("*.ids.parquet")))["source_row"].to_pylist()
    write_recipe(recipe, tmp_path / "recipe.json")
    keep = pickle.loads(pickle.dumps(load_recipe(tmp_path / "recipe.json")))
    parts = [keep(FORMS[form](table.slice(low, 128))) for low in range(0, 700, 128)]
    assert {part.dtype for part in parts} == {np.dtype(bool)} and len(parts[0]) == 128
    assert np.flatnonzero(np.concatenate(parts)).tolist() == applied and applied


def test_rows_that_cannot_be_used_are_refused_or_not_kept(tmp_path):
    table = shard(50, 3)
    quality = table["quality_score"].to_pylist()
    place = table.column_names.index("quality_score")
    bad = table.set_column(place, "quality_score", pa.array([None, *quality[1:]]))
    write_recipe(made(**RECIPES[next(iter(RECIPES))]), tmp_path / "recipe.json")
    with pytest.raises(InputError, match="table row 0"):
        load_recipe(tmp_path / "recipe.json")(bad)
    kept = load_recipe(tmp_path / "recipe.json", drop_invalid=True)(bad)
    assert len(kept) == 50 and not kept[0]
    assert len(load_recipe(tmp_path / "recipe.json")(table.slice(0, 0))) == 0
    with pytest.raises(InputError, match=r"rows must be a pandas or polars DataFrame, .* got int"):
        load_recipe(tmp_path / "recipe.json")(5)
