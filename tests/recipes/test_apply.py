"""Applying a recipe: every kept row and no other, in three forms, shard by shard, whole or not at all."""

from __future__ import annotations

import contextlib
import csv
import gzip
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from datamask.cli import main
from datamask.corpus.shards import open_source
from datamask.errors import InputError, OptionError, Stopped, StoreError
from datamask.recipes import Recipe, read_recipe, write_recipe
from datamask.recipes import apply as applying
from datamask.recipes.batches import Judge
from datamask.recipes.quality import FrozenQuality
from datamask.recipes.recipe import FeatureColumn, ScoreRule, Thresholds
from datamask.work.context import Work
from tests.making.derivable_runs import D, shard
from tests.making.run_folders import ROOT, wait_for

ENDS = {"random": 0.0, "best": 1.0, "best_kind": "proved"}


def made(**fields) -> Recipe:
    """A recipe for the columns of `shard` that keeps about a third."""
    rng = np.random.default_rng(7)
    given = {
        "objective": "pairwise",
        "lamb": 0.5,
        "scale": "calibrated",
        "anchors": {"quality": ENDS, "diversity": {"pairwise": ENDS}},
        "share": 0.3,
        "of": "rows",
        "rule": ScoreRule(0.5, 1.0, rng.normal(size=D) / 3),
        "thresholds": Thresholds(0.1),
        "quality": (FrozenQuality("quality_score", 1.0),),
        "features": FeatureColumn("feature_arr", D),
        "id_column": "id",
        "learned": {"share_kept": 0.3},
    }
    return Recipe(**given | fields)


def expected(recipe: Recipe, table: pa.Table) -> tuple[np.ndarray, np.ndarray]:
    """Score and whether a row is kept, by the words of the recipe's docstring, row by row in plain Python."""
    record, scores, kept = json.loads(recipe.to_json()), [], []
    for row in table.to_pylist():
        q = sum(column["weight"] * row[column["column"]] for column in record["quality"])
        x = np.array(row["feature_arr"], np.float64) - np.array(record["features"]["center"] or [0.0] * D)
        x /= np.sqrt((x**2).sum())
        rule = record["rule"]
        score = rule["quality_weight"] * q
        if rule["direction"]:
            score -= rule["crowding_weight"] * float(np.dot(x, rule["direction"]))
        if rule["moment"]:
            y = (x - np.array(rule["mean"])) * np.array(rule["inverse_sd"])
            score -= rule["moment_weight"] * float(y @ np.array(rule["moment"]) @ y)
        score += rule["length_weight"] * row["n_tokens"]
        tau = record["thresholds"]["groups"].get(row["source"], record["thresholds"]["tau"])
        least = record["thresholds"]["least_quality"]
        inside = tau is not None and score >= tau and (least is None or q >= least)
        inside = (inside or row["id"] in record["always"]) and row["id"] not in record["never"]
        scores.append(score)
        kept.append(inside)
    return np.array(scores), np.array(kept)


@pytest.fixture
def shards(tmp_path):
    """Three shards, one of them with variable-length lists and small row groups, one below another folder."""
    folder = tmp_path / "in"
    (folder / "deep").mkdir(parents=True)
    tables = [shard(300, 1), shard(200, 2), shard(100, 3)]
    lists = tables[1]["feature_arr"].cast(pa.list_(pa.float32()))
    tables[1] = tables[1].set_column(tables[1].column_names.index("feature_arr"), "feature_arr", lists)
    pq.write_table(tables[0], folder / "a.parquet")
    pq.write_table(tables[1], folder / "b.parquet", row_group_size=17)
    pq.write_table(tables[2], folder / "deep" / "a.parquet")
    return folder, dict(zip(("a", "b", "deep/a"), tables))


def _apply(recipe, folder, output, kind="ids", should_stop=None, progress=None, **options):
    inputs = [str(path) for path in (folder if isinstance(folder, list) else [folder])]
    judge = Judge(recipe, open_source("input", inputs), with_ids=kind == "ids", **options)
    return applying.apply(judge, output, kind, Work.of(should_stop, progress))


MOMENT = np.array(np.random.default_rng(3).normal(size=(D, D)))
RECIPES = {
    "pairwise": {},
    "disf_fixed": {
        "objective": "disf_fixed",
        "rule": ScoreRule(0.5, 0.0, None, 0.01, MOMENT + MOMENT.T, np.full(D, 0.1), np.full(D, 2.5)),
        "anchors": {"quality": ENDS, "diversity": {"disf_fixed": ENDS}},
        "thresholds": Thresholds(0.0),
    },
    "quality alone": {"lamb": 1.0, "rule": ScoreRule(1.0), "thresholds": Thresholds(0.5)},
    "tokens": {
        "of": "tokens",
        "length_column": "n_tokens",
        "rule": ScoreRule(0.5, 1.0, np.ones(D) / 3, length_weight=1e-4),
    },
    "centered": {"features": FeatureColumn("feature_arr", D, np.linspace(-0.5, 0.5, D))},
    "groups": {"thresholds": Thresholds(0.1, "source", {"web": 0.4, "code": None})},
    "lists": {"always": ("1-0", "2-5", "3-7"), "never": tuple(f"2-{row}" for row in range(5, 100))},
    "pruned": {"thresholds": Thresholds(-0.2, least_quality=0.4)},
    "two columns": {"quality": (FrozenQuality("quality_score", 1.0), FrozenQuality("edu", -0.2))},
}


@pytest.mark.parametrize("which", RECIPES)
def test_ids_masks_and_rows_are_those_of_the_definition(which, shards, tmp_path):
    folder, tables = shards
    recipe = made(**RECIPES[which])
    summaries = {kind: _apply(recipe, folder, tmp_path / kind, kind) for kind in applying.KINDS}
    total = 0
    for name, table in tables.items():
        score, kept = expected(recipe, table)
        assert 0 < kept.sum() < len(kept)
        total += kept.sum()
        ids = pq.read_table(tmp_path / "ids" / f"{name}.ids.parquet")
        assert ids.column_names == ["id", "source_file", "source_row", "score"]
        assert ids["source_row"].to_pylist() == kept.nonzero()[0].tolist()
        assert ids["id"].to_pylist() == [table["id"][row].as_py() for row in kept.nonzero()[0]]
        assert set(ids["source_file"].to_pylist()) == {str(folder / f"{name}.parquet")}
        assert np.allclose(ids["score"].to_numpy(), score[kept], atol=1e-9)
        mask = pq.read_table(tmp_path / "masks" / f"{name}.mask.parquet")
        assert mask["selected"].to_pylist() == kept.astype(int).tolist() and all(mask["considered"].to_pylist())
        assert pq.read_table(tmp_path / "rows" / f"{name}.parquet").equals(table.filter(pa.array(kept)))
    for summary in summaries.values():
        assert summary["kept"] == total and summary["rows"] == 600 and summary["reused"] == 0
    everything = pa.concat_tables([table.drop(["feature_arr"]) for table in tables.values()])
    of_rows = np.concatenate([expected(recipe, table)[1] for table in tables.values()])
    amounts = everything["n_tokens"].to_numpy() if recipe.of == "tokens" else np.ones(600)
    assert summaries["ids"]["share_kept"] == pytest.approx(amounts[of_rows].sum() / amounts.sum())


def test_rows_are_in_groups_with_page_index_and_checksums(tmp_path):
    table = pa.concat_tables([shard(20_000, seed) for seed in range(3)])
    (tmp_path / "in").mkdir()
    pq.write_table(table, tmp_path / "in" / "a.parquet", row_group_size=700)
    _apply(made(thresholds=Thresholds(-1e9)), tmp_path / "in", tmp_path / "out", "rows")
    with pq.ParquetFile(tmp_path / "out" / "a.parquet", page_checksum_verification=True) as file:
        assert [file.metadata.row_group(place).num_rows for place in range(3)] == [25_000, 25_000, 10_000]
        column = file.metadata.row_group(0).column(0)
        assert column.has_offset_index and column.has_column_index
        assert file.read().equals(table)


def test_other_formats_and_float_widths_keep_the_same_rows(tmp_path):
    table = shard(80, 4)
    scores = np.sort(expected(made(), table)[0])[30:60]
    gap = int(np.diff(scores).argmax())
    recipe = made(thresholds=Thresholds(float(scores[gap : gap + 2].mean())))
    score, kept = expected(recipe, table)
    assert np.abs(score - recipe.thresholds.tau).min() > 2e-3  # so that float16 changes nobody's side
    rows = table.to_pylist()
    for name in ("wide", "half", "lines", "table"):
        (tmp_path / name).mkdir()
    place = table.column_names.index("feature_arr")
    for name, kind in (("wide", pa.float64()), ("half", pa.float16())):
        converted = table["feature_arr"].combine_chunks().values.cast(kind)
        features = pa.FixedSizeListArray.from_arrays(converted, D)
        pq.write_table(table.set_column(place, "feature_arr", features), tmp_path / name / "x.parquet")
    with gzip.open(tmp_path / "lines" / "x.jsonl.gz", "wt") as file:
        file.writelines(json.dumps(row) + "\n" for row in rows)
    with (tmp_path / "table" / "x.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(table.column_names)
        writer.writerows([json.dumps(v) if isinstance(v, list) else v for v in row.values()] for row in rows)
    for name in ("wide", "half", "lines", "table"):
        for kind in applying.KINDS:
            summary = _apply(recipe, tmp_path / name, tmp_path / f"{name}-{kind}", kind)
            assert summary["kept"] == kept.sum(), (name, kind)
        (written,) = (tmp_path / f"{name}-ids").glob("*.ids.parquet")
        assert pq.read_table(written)["source_row"].to_pylist() == kept.nonzero()[0].tolist()


# -- what is wrong with rows ------------------------------------------------------------------------------------------


def _with(table: pa.Table, column: str, row: int, value) -> pa.Table:
    values = table[column].to_pylist()
    values[row] = value
    place = table.column_names.index(column)
    return table.set_column(place, column, pa.array(values, table[column].type))


BROKEN = {
    "null features": ("feature_arr", None, "null features in column 'feature_arr'"),
    "NaN features": ("feature_arr", [float("nan")] + [1.0] * (D - 1), "NaN or infinite features"),
    "infinite features": ("feature_arr", [float("inf")] + [1.0] * (D - 1), "NaN or infinite features"),
    "zero features": ("feature_arr", [0.0] * D, "all-zero features"),
    "null quality": ("quality_score", None, "null quality in column 'quality_score'"),
    "NaN quality": ("quality_score", float("nan"), "NaN or infinite quality"),
    "infinite quality": ("quality_score", float("inf"), "NaN or infinite quality"),
    "null length": ("n_tokens", None, "null, infinite or negative length"),
    "negative length": ("n_tokens", -1, "null, infinite or negative length"),
}


@pytest.mark.parametrize("what", BROKEN)
def test_an_invalid_row_is_refused_by_its_place_or_dropped_and_counted_as_when_opening(what, tmp_path):
    column, value, sentence = BROKEN[what]
    recipe = made(**RECIPES["tokens"])
    table = _with(shard(60, 5), column, 41, value)
    (tmp_path / "in").mkdir()
    pq.write_table(table, tmp_path / "in" / "a.parquet", row_group_size=13)
    with pytest.raises(InputError, match=rf"a\.parquet row 41 has {sentence}.*--drop_invalid"):
        _apply(recipe, tmp_path / "in", tmp_path / "refused")
    assert not list((tmp_path / "refused").glob("*.parquet"))
    kept = expected(recipe, shard(60, 5))[1]
    kept[41] = False
    summary = _apply(recipe, tmp_path / "in", tmp_path / "dropped", "masks", drop_invalid=True)
    mask = pq.read_table(tmp_path / "dropped" / "a.mask.parquet")
    assert mask["selected"].to_pylist() == kept.astype(int).tolist()
    assert mask["considered"].to_pylist() == [row != 41 for row in range(60)]
    assert list(summary["dropped"].values()) == [1] and sentence in next(iter(summary["dropped"]))


def test_a_row_at_the_center_has_no_direction(tmp_path):
    center = np.linspace(-0.5, 0.5, D)
    table = _with(shard(20, 6), "feature_arr", 3, center.tolist())
    (tmp_path / "in").mkdir()
    pq.write_table(table, tmp_path / "in" / "a.parquet")
    recipe = made(features=FeatureColumn("feature_arr", D, center.astype(np.float32).astype(np.float64)))
    with pytest.raises(InputError, match="row 3 has features in column 'feature_arr' that equal the mean"):
        _apply(recipe, tmp_path / "in", tmp_path / "out")


@pytest.mark.parametrize("scale", [1e-300, 1e-170, 1e170, 1e300])
def test_features_of_any_length_have_their_direction(scale, tmp_path):
    table = shard(50, 7)
    place = table.column_names.index("feature_arr")
    values = table["feature_arr"].combine_chunks().values.to_numpy().astype(np.float64) * scale
    wide = pa.FixedSizeListArray.from_arrays(pa.array(values), D)
    (tmp_path / "in").mkdir()
    pq.write_table(table.set_column(place, "feature_arr", wide), tmp_path / "in" / "a.parquet")
    _apply(made(), tmp_path / "in", tmp_path / "out", "masks")
    mask = pq.read_table(tmp_path / "out" / "a.mask.parquet")["selected"].to_pylist()
    assert mask == expected(made(), table)[1].astype(int).tolist()


@pytest.mark.parametrize(
    "change, sentence",
    [
        (lambda table: table.drop(["quality_score"]), "must have a column 'quality_score' .quality., a number column"),
        (lambda table: table.drop(["feature_arr"]), "must have a column 'feature_arr' .*--feature_column"),
        (lambda table: table.drop(["id"]), "must have a column 'id' .*got 0 such columns.*--id_column"),
        (lambda table: table.append_column("id", table["id"]), "got 2 such columns"),
        (lambda table: table.drop(["source"]), "has 0 columns 'source', by which the recipe's quotas"),
        (lambda table: _with(table, "id", 4, None), "row 4 has a null in the id column"),
        (lambda table: _with(table, "id", 9, "8-3"), r"1 repeated ids \(the first: rows 3 and 9\)"),
        (lambda table: table.set_column(1, "quality_score", table["source"]), "got one of string"),
    ],
)
def test_shards_that_the_recipe_does_not_fit_are_refused(change, sentence, tmp_path):
    (tmp_path / "in").mkdir()
    pq.write_table(change(shard(30, 8)), tmp_path / "in" / "a.parquet")
    with pytest.raises(InputError, match=sentence):
        _apply(made(**RECIPES["groups"]), tmp_path / "in", tmp_path / "out")
    assert not list(tmp_path.glob("out/*.parquet"))


def test_features_of_another_dimension_and_ids_of_another_kind_are_refused(tmp_path):
    (tmp_path / "in").mkdir()
    pq.write_table(shard(30, 8, d=D + 1), tmp_path / "in" / "a.parquet")
    with pytest.raises(InputError, match=f"has features in column 'feature_arr' of another length than {D}"):
        _apply(made(), tmp_path / "in", tmp_path / "out")
    table = shard(30, 8)
    pq.write_table(table.set_column(0, "id", pa.array(range(30))), tmp_path / "in" / "a.parquet")
    with pytest.raises(InputError, match="names ids such as '1-0'"):
        _apply(made(**RECIPES["lists"]), tmp_path / "in", tmp_path / "out")


def test_columns_may_have_other_names(tmp_path):
    table = shard(40, 9)
    renamed = table.rename_columns({"id": "key", "feature_arr": "vector"})
    (tmp_path / "in").mkdir()
    pq.write_table(renamed, tmp_path / "in" / "a.parquet")
    _apply(made(), tmp_path / "in", tmp_path / "out", id_column="key", feature_column="vector")
    ids = pq.read_table(tmp_path / "out" / "a.ids.parquet")
    assert ids["key"].to_pylist() == [
        name for name, kept in zip(table["id"].to_pylist(), expected(made(), table)[1]) if kept
    ]


# -- whole or not at all, and not twice -------------------------------------------------------------------------------


def _states(folder: Path) -> dict[str, tuple[int, bytes]]:
    return {str(path): (path.stat().st_mtime_ns, path.read_bytes()) for path in sorted(folder.rglob("*.parquet"))}


def test_a_shard_that_was_done_is_not_read_again_until_it_or_the_settings_change(shards, tmp_path):
    folder, tables = shards
    first = _apply(made(), folder, tmp_path / "out")
    before = _states(tmp_path / "out")
    again = _apply(made(), folder, tmp_path / "out")
    assert again["reused"] == 3 and _states(tmp_path / "out") == before
    for name in ("rows", "kept", "share_kept", "dropped"):
        assert again[name] == first[name]
    assert again["megabytes_per_second"] is None  # nothing was read
    # a shard of other contents, one of which the file is damaged, one that is as it was
    pq.write_table(tables["a"].slice(1), folder / "a.parquet")
    (tmp_path / "out" / "b.ids.parquet").write_bytes(b"PAR1 no more")
    third = _apply(made(), folder, tmp_path / "out")
    assert third["reused"] == 1 and third["rows"] == 599
    after = _states(tmp_path / "out")
    assert [before[name][1] == after[name][1] for name in before] == [False, True, True]
    assert _apply(made(), folder, tmp_path / "out", drop_invalid=True)["reused"] == 0


def test_two_recipes_never_share_a_folder(shards, tmp_path):
    folder, _ = shards
    _apply(made(), folder, tmp_path / "out")
    with pytest.raises(OptionError, match=r"holds what another recipe chose .*recipe\.json"):
        _apply(made(lamb=0.25), folder, tmp_path / "out")
    assert read_recipe(tmp_path / "out" / "recipe.json").digest == made().digest
    (tmp_path / "file").write_text("x")
    with pytest.raises((OptionError, StoreError), match="must be a folder"):
        _apply(made(), folder, tmp_path / "file")


def test_of_two_recipes_that_claim_a_folder_at_once_one_is_refused(tmp_path, monkeypatch):
    write, together = applying.write_recipe, threading.Barrier(2, timeout=60)

    def slowly(recipe, path):
        time.sleep(0.005)
        write(recipe, path)

    monkeypatch.setattr(applying, "write_recipe", slowly)
    claimed: list[tuple[int, float]] = []

    def claim(lamb):
        for number in range(10):
            together.wait()
            with contextlib.suppress(OptionError):
                applying.claim(tmp_path / str(number), made(lamb=lamb))
                claimed.append((number, lamb))

    threads = [threading.Thread(target=claim, args=(lamb,)) for lamb in (0.5, 0.25)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(number for number, _ in claimed) == list(range(10))
    assert all(read_recipe(tmp_path / str(number) / "recipe.json").lamb == lamb for number, lamb in claimed)


def test_files_that_a_call_does_not_write_are_named_and_refused(shards, tmp_path):
    folder, _ = shards
    _apply(made(), folder, tmp_path / "out")
    before = _states(tmp_path / "out")
    with pytest.raises(OptionError, match=r"does not write: 'deep/a\.ids\.parquet'; remove them"):
        _apply(made(), [folder / "a.parquet", folder / "b.parquet"], tmp_path / "out")
    with pytest.raises(OptionError, match=r"'b\.ids\.parquet', 'deep/a\.ids\.parquet'; remove them"):
        _apply(made(), folder / "a.parquet", tmp_path / "out")
    assert _states(tmp_path / "out") == before
    # also where nobody says any more by which recipe they were made
    (tmp_path / "out" / "recipe.json").unlink()
    with pytest.raises(OptionError, match="does not write"):
        _apply(made(lamb=0.25), folder / "b.parquet", tmp_path / "out")
    (tmp_path / "out" / "recipe.json").unlink()
    (tmp_path / "out" / "deep" / "a.ids.parquet").unlink()
    assert _apply(made(), [folder / "a.parquet", folder / "b.parquet"], tmp_path / "out")["reused"] == 2
    for number in range(4):
        shutil.copy(tmp_path / "out" / "a.ids.parquet", tmp_path / "out" / f"x{number}.ids.parquet")
    with pytest.raises(OptionError, match=r"'x0\.ids\.parquet', 'x1\.ids\.parquet', 'x2\.ids\.parquet' and 1 more;"):
        _apply(made(), [folder / "a.parquet", folder / "b.parquet"], tmp_path / "out")


def test_a_folder_may_hold_other_forms_of_the_same_shards_until_these_change(shards, tmp_path):
    folder, tables = shards
    for kind in applying.KINDS:
        _apply(made(), folder, tmp_path / "out", kind)
    assert all(_apply(made(), folder, tmp_path / "out", kind)["reused"] == 3 for kind in applying.KINDS)
    pq.write_table(tables["b"].slice(1), folder / "b.parquet")
    with pytest.raises(OptionError, match=r"'b\.mask\.parquet', 'b\.parquet'; remove them"):
        _apply(made(), folder, tmp_path / "out")


def test_other_files_and_the_folders_of_other_calls_may_lie_there(shards, tmp_path):
    folder, tables = shards
    assert _apply(made(), folder, tmp_path / "out" / "rows", "rows")["shards"] == 3
    _apply(made(lamb=0.25), tmp_path / "out" / "rows", tmp_path / "out")
    (tmp_path / "out" / "notes.parquet").write_text("no parquet")
    pq.write_table(tables["a"], tmp_path / "out" / "mine.parquet")
    (tmp_path / "out" / "link.ids.parquet").symlink_to("/dev/zero")
    os.mkfifo(tmp_path / "out" / "pipe.ids.parquet")
    # the recipe of those shards is gone, but they are what is read
    (tmp_path / "out" / "rows" / "recipe.json").unlink()
    assert _apply(made(lamb=0.25), tmp_path / "out" / "rows", tmp_path / "out")["reused"] == 3


def test_two_calls_at_once_do_one_after_the_other(shards, tmp_path, monkeypatch):
    folder, _ = shards
    judged, let_go, waiting = Judge.__call__, threading.Event(), threading.Event()

    def held(self, place, first, batch):
        assert let_go.wait(60)
        return judged(self, place, first, batch)

    monkeypatch.setattr(Judge, "__call__", held)
    outcomes: dict[str, object] = {}

    def call(name, inputs, **options):
        try:
            outcomes[name] = _apply(made(), inputs, tmp_path / "out", **options)["reused"]
        except OptionError as error:
            outcomes[name] = str(error)

    def told(share, what):
        if what.startswith("Waiting for another call"):
            waiting.set()

    first = threading.Thread(target=call, args=("first", folder))
    first.start()
    wait_for(lambda: (tmp_path / "out" / "recipe.json").exists() and any(tmp_path.glob("out/.*.part")))
    others = [
        threading.Thread(target=call, args=("same", folder)),
        threading.Thread(target=call, args=("other", folder / "b.parquet"), kwargs={"progress": told}),
    ]
    for other in others:
        other.start()
    wait_for(waiting.is_set)
    with pytest.raises(OptionError, match="holds what another recipe chose"):  # at once
        _apply(made(lamb=0.25), folder, tmp_path / "out")
    with pytest.raises(Stopped):
        _apply(made(), folder, tmp_path / "out", should_stop=lambda: True)
    let_go.set()
    for thread in (first, *others):
        thread.join(60)
    assert outcomes.pop("first") == 0 and outcomes.pop("same") == 3
    assert "does not write: 'a.ids.parquet', 'deep/a.ids.parquet'" in str(outcomes["other"])


@pytest.mark.parametrize("kind", ["parquet", "csv"])
def test_a_shard_rewritten_with_the_same_size_and_time_is_read_again(kind, tmp_path):
    table = shard(40, 9)
    (tmp_path / "in").mkdir()
    path = tmp_path / "in" / f"a.{kind}"

    def write(table):
        if kind == "parquet":
            pq.write_table(table, path, compression="none", use_dictionary=False)
        else:
            rows = zip(table["id"].to_pylist(), table["quality_score"].to_pylist(), table["feature_arr"].to_pylist())
            lines = [f'{name},{quality:+.6f},"{json.dumps(feature)}"' for name, quality, feature in rows]
            path.write_text("\n".join(["id,quality_score,feature_arr", *lines]) + "\n")

    write(table)
    facts = path.stat()
    _apply(made(), tmp_path / "in", tmp_path / "out", "masks")
    before = pq.read_table(next((tmp_path / "out").glob("*.parquet")))
    turned = pa.array([-quality for quality in table["quality_score"].to_pylist()])
    write(table.set_column(table.column_names.index("quality_score"), "quality_score", turned))
    os.utime(path, ns=(facts.st_atime_ns, facts.st_mtime_ns))
    assert (path.stat().st_size, path.stat().st_mtime_ns) == (facts.st_size, facts.st_mtime_ns)
    assert _apply(made(), tmp_path / "in", tmp_path / "out", "masks")["reused"] == 0
    assert not pq.read_table(next((tmp_path / "out").glob("*.parquet"))).equals(before)


@pytest.mark.parametrize("what", ["pipe", "link", "folder"])
def test_something_else_under_the_name_of_the_lock_is_left_alone(what, shards, tmp_path):
    folder, _ = shards
    (tmp_path / "out").mkdir()
    lock = tmp_path / "out" / applying.LOCK_FILE
    {"pipe": lambda: os.mkfifo(lock), "link": lambda: lock.symlink_to(tmp_path / "made"), "folder": lock.mkdir}[what]()
    assert _apply(made(), folder, tmp_path / "out")["shards"] == 3
    assert not (tmp_path / "made").exists()


def test_a_shard_is_never_written_over(shards, tmp_path):
    folder, _ = shards
    before = _states(folder)
    (tmp_path / "link").symlink_to(folder)
    for output in (folder, tmp_path / "link"):
        with pytest.raises(OptionError, match=r"would write over the shard .*a\.parquet"):
            _apply(made(), folder, output, "rows")
    assert _states(folder) == before and not (folder / "recipe.json").exists()


def test_columns_of_every_kind_come_along(tmp_path):
    table = shard(60, 9)
    extra = {
        "kind": pa.array([("a", "b", None)[row % 3] for row in range(60)]).dictionary_encode(),
        "view": pa.array([f"text {row}" for row in range(60)], pa.string_view()),
        "tags": pa.array([[str(row)] * (row % 3) for row in range(60)]),
        "place": pa.array([{"x": row, "y": None} for row in range(60)]),
        "map": pa.array([[("k", row)] for row in range(60)], pa.map_(pa.string(), pa.int64())),
        "nothing": pa.nulls(60),
        "when": pa.array(range(60), pa.timestamp("us", "UTC")),
    }
    for name, column in extra.items():
        table = table.append_column(name, column)
    table = table.replace_schema_metadata({"made by": "somebody"})
    (tmp_path / "in").mkdir()
    pq.write_table(table, tmp_path / "in" / "a.parquet", row_group_size=9)
    _apply(made(), tmp_path / "in", tmp_path / "out", "rows")
    written = pq.read_table(tmp_path / "out" / "a.parquet")
    kept = [row for row, inside in zip(table.to_pylist(), expected(made(), shard(60, 9))[1]) if inside]
    assert written.to_pylist() == kept and written.schema.names == table.schema.names
    assert written.schema.metadata[b"made by"] == b"somebody"


def test_what_is_stopped_leaves_whole_files_and_goes_on_from_there(shards, tmp_path, monkeypatch):
    folder, _ = shards
    whole = _apply(made(), folder, tmp_path / "whole")
    monkeypatch.setattr("datamask.corpus.threads.thread_count", lambda tasks: 1)
    judged = Judge.__call__

    def slowly(self, place, first, batch):
        if place == 2:
            time.sleep(0.05)
        return judged(self, place, first, batch)

    monkeypatch.setattr(Judge, "__call__", slowly)
    pq.write_table(shard(2000, 3), folder / "deep" / "a.parquet", row_group_size=20)
    began = time.monotonic()
    with pytest.raises(Stopped, match="after 2 of 3 shards; the same command goes on from there"):
        _apply(made(), folder, tmp_path / "out", should_stop=lambda: (tmp_path / "out" / "b.ids.parquet").exists())
    assert time.monotonic() - began < 10  # what was left would take longer than a stop may
    left = [path.name for path in (tmp_path / "out").rglob("*") if path.is_file()]
    assert sorted(left) == [".apply.lock", "a.ids.parquet", "b.ids.parquet", "recipe.json"]
    monkeypatch.setattr(Judge, "__call__", judged)
    end = _apply(made(), folder, tmp_path / "out")
    assert end["reused"] == 2 and end["rows"] == 2500
    assert (tmp_path / "out" / "a.ids.parquet").exists() and whole["kept"] < end["kept"]


def test_ctrl_c_leaves_with_130_and_the_same_command_ends_it(tmp_path):
    (tmp_path / "in").mkdir()
    pq.write_table(shard(3000, 1), tmp_path / "in" / "a.parquet")
    pq.write_table(shard(60_000, 2), tmp_path / "in" / "b.parquet", row_group_size=20)  # small groups take long
    for name in "cdefgh":
        shutil.copy(tmp_path / "in" / "b.parquet", tmp_path / "in" / f"{name}.parquet")
    write_recipe(made(), tmp_path / "r.json")
    words = [sys.executable, "-m", "datamask", "apply", "r.json", "in", "--output", "out", "--as", "masks"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    with subprocess.Popen(words, cwd=tmp_path, env=environment, stderr=subprocess.PIPE, text=True) as process:
        wait_for(lambda: (tmp_path / "out" / "a.mask.parquet").exists())
        process.send_signal(signal.SIGINT)
        _, error = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "stopping and keeping the shards that are done" in error
    stopped = re.search(r"applying was stopped after (\d) of 8 shards; the same command goes on from there", error)
    assert stopped
    done_before = int(stopped[1])
    assert 1 <= done_before < 8 and len(list((tmp_path / "out").glob("*.parquet"))) == done_before
    for name in "bcdefgh":
        if not (tmp_path / "out" / f"{name}.mask.parquet").exists():
            pq.write_table(shard(2000, 2), tmp_path / "in" / f"{name}.parquet")
    done = subprocess.run([*words, "--json"], cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert done.returncode == 0 and json.loads(done.stdout.splitlines()[-1])["reused"] == done_before


def test_a_shard_damaged_further_in_leaves_no_file_for_it(shards, tmp_path):
    folder, _ = shards
    content = bytearray((folder / "b.parquet").read_bytes())
    content[len(content) // 2 : len(content) // 2 + 400] = os.urandom(400)
    (folder / "b.parquet").write_bytes(content)
    with pytest.raises(InputError, match=r"b\.parquet"):
        _apply(made(), folder, tmp_path / "out")
    assert not (tmp_path / "out" / "b.ids.parquet").exists()
    assert not [path for path in (tmp_path / "out").rglob("*") if path.name.endswith(".part")]


def test_empty_shards_have_empty_files(shards, tmp_path):
    folder, tables = shards
    pq.write_table(tables["a"].slice(0, 0), folder / "none.parquet")
    for kind, how in applying.KINDS.items():
        assert _apply(made(), folder, tmp_path / kind, kind)["shards"] == 4
        assert pq.read_table(tmp_path / kind / f"none{how.ending}").num_rows == 0


def test_the_command_says_what_it_kept_and_refuses_in_one_sentence(shards, tmp_path, capsys, monkeypatch):
    _, tables = shards
    monkeypatch.chdir(tmp_path)
    write_recipe(made(), "r.json")
    assert main(["apply", "r.json", "in", "--output", "out", "--as", "masks", "--json"]) == 0
    said = json.loads(capsys.readouterr().out.splitlines()[-1])
    kept = sum(int(expected(made(), table)[1].sum()) for table in tables.values())
    assert said["kept"] == kept and said["share_kept"] == kept / 600 and said["share_expected"] == 0.3
    assert said["as"] == "masks" and said["shards"] == 3 and said["output"] == str(tmp_path / "out")
    assert main(["apply", "r.json", "in", "--output", "out", "--as", "masks"]) == 0
    text = capsys.readouterr().out
    assert f"Kept {kept:,} of 600 rows" in text and "Shards that an earlier call had finished: 3 of 3." in text
    for words, sentence in {
        ("r.json", "in", "--output", "in/out"): "lies in the input folder",
        ("r.json", "in", "--output", "x", "--as", "csv"): "--as must be one of ids, masks, rows, got 'csv'",
        ("none.json", "in", "--output", "x"): "there is no such file",
        ("r.json", "nowhere", "--output", "x"): "does not exist",
        ("r.json", "--output", "x"): "INPUT",
    }.items():
        assert main(["apply", *words]) == 2
        error = capsys.readouterr().err
        assert sentence in error and "Traceback" not in error
    assert not Path("x").exists()
