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
from datamask.recipes.recipe import FeatureColumn, Thresholds
from datamask.recipes.sql import duckdb_sql
from datamask.runs.recipe import recipe_of
from tests.making.derivable_runs import D, done, shard
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
    return dict(zip(table[0].to_pylist(), table[3].to_pylist()))


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


INSIDE = ("datamask_id", "datamask_quality", "datamask_quality_0", "datamask_x", "datamask_score", "datamask_rows")


@pytest.mark.parametrize("case", [str.lower, str.upper])
def test_columns_of_the_shards_with_names_of_the_query_change_nothing(case, folder, tmp_path):
    recipe = made(**RECIPES["groups"])
    kept = _agree(recipe, folder, tmp_path / "out")
    for path in folder.glob("*.parquet"):
        table = pq.read_table(path)
        for name in (*INSIDE, "datamask_group", "datamask_length", "score"):
            table = table.append_column(case(name), pa.array([1e9] * len(table)))
        pq.write_table(table, path)
    assert _asked(recipe, folder) == pytest.approx(kept, abs=1e-9)


def test_roles_may_have_the_names_of_the_query(tmp_path):
    table = shard(300, 7).rename_columns(
        {"id": "datamask_score", "quality_score": "datamask_x", "feature_arr": "datamask_id", "source": "score"}
    )
    (tmp_path / "in").mkdir()
    pq.write_table(table, tmp_path / "in" / "a.parquet")
    recipe = made(
        id_column="datamask_score",
        quality=(FrozenQuality("datamask_x", 1.0),),
        features=FeatureColumn("datamask_id", D),
        thresholds=Thresholds(0.1, "score", {"web": -5.0}),
    )
    assert len(_agree(recipe, tmp_path / "in", tmp_path / "out")) > 20


def test_a_column_that_differs_in_case_is_not_taken_for_another(tmp_path):
    table = shard(300, 8)
    (tmp_path / "in").mkdir()
    other = table.append_column("Quality_Score", pa.array([9.0] * len(table)))
    pq.write_table(other, tmp_path / "in" / "a.parquet")
    _agree(made(), tmp_path / "in", tmp_path / "out")
    # DuckDB gives the second of them another name, so nothing is left to read
    pq.write_table(other.select(other.column_names[::-1]), tmp_path / "in" / "a.parquet")
    with pytest.raises(duckdb.Error, match="No matching columns found"):
        _asked(made(), tmp_path / "in")


HOSTILE = "x\nCOPY (SELECT 1) TO 'PLACE';\r\n-- \x1b[31m\u2028\x00 '\" $$ */ \\ ü"


def test_no_text_of_a_recipe_becomes_a_statement(tmp_path, monkeypatch):
    hostile = HOSTILE.replace("PLACE", str(tmp_path / "pwned.csv"))
    column = hostile.replace("\x00", "")
    table = shard(300, 9).rename_columns({"id": "i" + column, "source": "s" + column, "quality_score": "q" + column})
    names = [hostile if place % 2 else name for place, name in enumerate(table["s" + column].to_pylist())]
    table = table.set_column(table.column_names.index("s" + column), "s" + column, pa.array(names))
    ids = [hostile if place == 7 else name for place, name in enumerate(table["i" + column].to_pylist())]
    table = table.set_column(table.column_names.index("i" + column), "i" + column, pa.array(ids))
    (tmp_path / "in").mkdir()
    pq.write_table(table, tmp_path / "in" / "a.parquet")
    recipe = made(
        id_column="i" + column,
        quality=(FrozenQuality("q" + column, 1.0),),
        thresholds=Thresholds(0.1, "s" + column, {hostile: -0.5}),
        always=(hostile,),
        never=("9-0", hostile + "-"),
        learned={"run": hostile, "name": hostile},
        notes=(hostile,),
    )
    assert hostile in _agree(recipe, tmp_path / "in", tmp_path / "out")
    query = duckdb_sql(recipe)
    assert query.replace("\n", "").isprintable() and "'; DROP" not in query
    assert not (tmp_path / "pwned.csv").exists()
