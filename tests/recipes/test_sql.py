"""The rule as SQL, run by DuckDB: the ids that `apply` keeps, but for rows within rounding of the threshold."""

from __future__ import annotations

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from datamask.cli import main
from datamask.errors import InputError
from datamask.recipes import read_recipe
from datamask.recipes.quality import FrozenQuality
from datamask.recipes.recipe import Thresholds
from datamask.recipes.sql import duckdb_sql
from datamask.runs.recipe import recipe_of
from tests.recipes.made_runs import D, done, shard
from tests.recipes.test_apply import BROKEN, RECIPES, _apply, _with, made

NEAR = 1e-6
"""Rows whose score is this near to the threshold may come out otherwise."""


def _asked(recipe, folder):
    """The ids and scores that DuckDB gives."""
    with duckdb.connect() as connection:
        connection.execute(f"CREATE VIEW shards AS SELECT * FROM read_parquet('{folder}/*.parquet')")
        rows = connection.execute(duckdb_sql(recipe)).fetchall()
    return dict(rows)


def _applied(recipe, folder, output, **options):
    _apply(recipe, folder, output, **options)
    table = pa.concat_tables([pq.read_table(path) for path in sorted(output.rglob("*.ids.parquet"))])
    return dict(zip(table[0].to_pylist(), table["score"].to_pylist()))


def _agree(recipe, folder, output, **options):
    asked, applied = _asked(recipe, folder), _applied(recipe, folder, output, **options)
    taus = [tau for tau in (recipe.thresholds.tau, *recipe.thresholds.groups.values()) if tau is not None]
    for name in set(asked) ^ set(applied):
        score = asked.get(name, applied.get(name))
        assert min(abs(score - tau) for tau in taus) < NEAR
    for name in set(asked) & set(applied):
        assert asked[name] == pytest.approx(applied[name], abs=1e-9)
    assert applied
    return applied


@pytest.fixture
def folder(tmp_path):
    """Two shards."""
    (tmp_path / "in").mkdir()
    pq.write_table(shard(400, 1), tmp_path / "in" / "a.parquet")
    pq.write_table(shard(300, 2), tmp_path / "in" / "b.parquet")
    return tmp_path / "in"


@pytest.mark.parametrize("which", [which for which in RECIPES if which != "disf_fixed"])
def test_duckdb_keeps_the_same_ids(which, folder, tmp_path):
    _agree(made(**RECIPES[which]), folder, tmp_path / "out")


@pytest.mark.parametrize("kind", [pa.float16(), pa.float64()])
@pytest.mark.parametrize("fixed", [True, False])
def test_whatever_the_width_and_the_kind_of_list(kind, fixed, tmp_path):
    table = shard(2000, 3)
    values = table["feature_arr"].combine_chunks().values.cast(kind)
    features = pa.FixedSizeListArray.from_arrays(values, D)
    features = features if fixed else features.cast(pa.list_(kind))
    (tmp_path / "in").mkdir()
    table = table.set_column(table.column_names.index("feature_arr"), "feature_arr", features)
    pq.write_table(table, tmp_path / "in" / "a.parquet")
    assert 200 < len(_agree(made(), tmp_path / "in", tmp_path / "out")) < 1800


@pytest.mark.parametrize("what", BROKEN)
def test_rows_that_cannot_be_used_are_left_out(what, tmp_path):
    column, value, _ = BROKEN[what]
    table = _with(shard(60, 5), column, 41, value)
    (tmp_path / "in").mkdir()
    pq.write_table(table, tmp_path / "in" / "a.parquet")
    recipe = made(**RECIPES["tokens"] | {"thresholds": Thresholds(-1e9)})
    assert "5-41" not in _agree(recipe, tmp_path / "in", tmp_path / "out", drop_invalid=True)


def test_names_and_texts_are_quoted(tmp_path):
    table = shard(50, 6).rename_columns({"source": "so'ur\"ce", "id": "the \"id'"})
    (tmp_path / "in").mkdir()
    pq.write_table(table, tmp_path / "in" / "a.parquet")
    names = np.array(table["so'ur\"ce"].to_pylist(), object)
    names[:20] = "o'clock"
    table = table.set_column(table.column_names.index("so'ur\"ce"), "so'ur\"ce", pa.array(names.tolist()))
    pq.write_table(table, tmp_path / "in" / "a.parquet")
    recipe = made(
        id_column="the \"id'",
        thresholds=Thresholds(0.1, "so'ur\"ce", {"o'clock": -5.0, "'; DROP TABLE shards; --": 1.0}),
        quality=(FrozenQuality("quality_score", 1.0, "z", 0.125, 1.5), FrozenQuality("edu", 1.0, "z", 2.0, 0.0)),
    )
    assert len(_agree(recipe, tmp_path / "in", tmp_path / "out")) > 20


def test_the_rule_of_a_run_by_the_command(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run = done(tmp_path, center=True)
    assert main(["recipe", run.id, "--output", "r.json", "--sql", "rule.sql"]) == 0
    recipe = read_recipe("r.json")
    assert (tmp_path / "rule.sql").read_text() == duckdb_sql(recipe)
    kept = _agree(recipe, tmp_path / "shards", tmp_path / "out")
    assert len(kept) == recipe.learned["kept"]
    # of a recipe that is at hand already
    assert main(["recipe", "r.json", "--sql", "again.sql"]) == 0
    assert (tmp_path / "again.sql").read_text() == (tmp_path / "rule.sql").read_text()
    assert main(["recipe", run.id]) == 2
    assert "--output" in capsys.readouterr().err


def test_what_is_no_short_query_is_refused(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match="has a matrix"):
        duckdb_sql(made(**RECIPES["disf_fixed"]))
    run = done(tmp_path, {"quality_columns": ("quality_score:1:rank",)})
    with pytest.raises(InputError, match="'quality_score' goes by its rank"):
        duckdb_sql(recipe_of(run))
    assert main(["recipe", run.id, "--output", "r.json", "--sql", "rule.sql"]) == 2
    assert "goes by its rank" in capsys.readouterr().err
    assert not (tmp_path / "rule.sql").exists() and not (tmp_path / "r.json").exists()
