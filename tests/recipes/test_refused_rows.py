"""One contract for opening in memory and in mapped files and for applying a recipe: which rows are refused."""

from __future__ import annotations

import re

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from datamask.config import CorpusConfig, QualityColumn
from datamask.corpus import open_corpus
from datamask.corpus.shards import open_source
from datamask.errors import InputError
from datamask.recipes import Recipe
from datamask.recipes.apply import apply
from datamask.recipes.batches import Judge
from datamask.recipes.quality import FrozenQuality
from datamask.recipes.recipe import FeatureColumn, ScoreRule, Thresholds
from tests.making.derivable_runs import D, shard

COUNTS = (40, 60)
"""Rows of the two shards, ``a`` and ``b``; the faults are in the second."""

NAN, INF = float("nan"), float("inf")
ENDS = {"random": 0.0, "best": 1.0, "best_kind": "proved"}


def _open(folder, columns, drop, into=None):
    config = CorpusConfig((str(folder),), quality_columns=columns, drop_invalid=drop)
    corpus = open_corpus(config, into=into)
    return set(zip(corpus.source_file.tolist(), corpus.source_row.tolist())), corpus.provenance.dropped


def _open_in_maps(folder, columns, drop):
    return _open(folder, columns, drop, folder.parent / "maps")


def _apply(folder, columns, drop):
    recipe = Recipe(
        objective="pairwise",
        lamb=0.5,
        scale="calibrated",
        anchors={"quality": ENDS, "diversity": {"pairwise": ENDS}},
        share=0.3,
        of="tokens",
        length_column="n_tokens",
        rule=ScoreRule(0.5, 1.0, np.ones(D) / 3),
        thresholds=Thresholds(0.1),
        quality=_frozen(folder, columns),
        features=FeatureColumn("feature_arr", D),
        id_column="id",
        learned={"share_kept": 0.3},
    )
    source = open_source("input", [str(folder)])
    summary = apply(Judge(recipe, source, drop_invalid=drop, with_ids=True), folder / "ids")
    judge = Judge(recipe, source, drop_invalid=drop)
    apply(judge, folder / "masks", "masks")
    masks = [pq.read_table(folder / "masks" / f"{name}.mask.parquet")["considered"].to_pylist() for name in "ab"]
    rows = {(number, row) for number, mask in enumerate(masks) for row, valid in enumerate(mask) if valid}
    return rows, summary["dropped"]


WAYS = {"opening": _open, "maps": _open_in_maps, "apply": _apply}


def _frozen(folder, columns) -> tuple[FrozenQuality, ...]:
    """The quality columns as a run on the rows of the first shard, which are all valid, has them."""
    table = pq.read_table(folder / "a.parquet")
    return tuple(FrozenQuality.of(column, table[column.name].to_numpy().astype(float)) for column in columns)


def _with(table: pa.Table, column: str, **values) -> pa.Table:
    """The table with other values in some rows of a column: ``r5=None`` in row 5."""
    changed = table[column].to_pylist()
    for row, value in values.items():
        changed[int(row[1:])] = value
    return table.set_column(table.column_names.index(column), column, pa.array(changed, table[column].type))


def _lists(table: pa.Table) -> pa.Table:
    place = table.column_names.index("feature_arr")
    return table.set_column(place, "feature_arr", table["feature_arr"].cast(pa.list_(pa.float32())))


def _wide(table: pa.Table, kind: pa.DataType) -> pa.Table:
    place = table.column_names.index("feature_arr")
    return table.set_column(place, "feature_arr", table["feature_arr"].cast(pa.list_(kind, D)))


RAW = (QualityColumn("quality_score"),)
TWO = (QualityColumn("quality_score"), QualityColumn("edu"))
RANK = (QualityColumn("quality_score", 1.0, "rank"),)
Z = (QualityColumn("quality_score", 1.0, "z"),)
CONSTANT = (QualityColumn("quality_score"), QualityColumn("one", 1.0, "z"))

F = "features in column 'feature_arr'"
Q = "quality in column 'quality_score'"
ROW_FAULTS = {
    # what is wrong: (the shard made wrong, quality columns, reason -> rows that are refused for it)
    "null features": (lambda t: _with(t, "feature_arr", r5=None), RAW, {f"null {F}": [5]}),
    "null features in lists": (lambda t: _lists(_with(t, "feature_arr", r5=None)), RAW, {f"null {F}": [5]}),
    "empty and short features": (
        lambda t: _with(_lists(t), "feature_arr", r5=[], r7=[1.0] * (D - 1)),
        RAW,
        {f"{F} of another length than {D}": [5, 7]},
    ),
    "features of another fixed length": (
        lambda t: t.set_column(
            t.column_names.index("feature_arr"),
            "feature_arr",
            pa.FixedSizeListArray.from_arrays(pa.array(np.ones(4 * COUNTS[1], np.float32)), 4),
        ),
        RAW,
        {f"{F} of another length than {D}": list(range(COUNTS[1]))},
    ),
    "null inside features": (
        lambda t: _with(t, "feature_arr", r5=[None, *[1.0] * (D - 1)]),
        RAW,
        {f"NaN or infinite {F}": [5]},
    ),
    "NaN and infinite features": (
        lambda t: _with(t, "feature_arr", r5=[NAN, *[1.0] * (D - 1)], r7=[-INF, *[1.0] * (D - 1)]),
        RAW,
        {f"NaN or infinite {F}": [5, 7]},
    ),
    "infinite features in float64": (
        lambda t: _with(_wide(t, pa.float64()), "feature_arr", r5=[INF, *[1e300] * (D - 1)]),
        RAW,
        {f"NaN or infinite {F}": [5]},
    ),
    "all-zero features": (lambda t: _with(t, "feature_arr", r5=[0.0, -0.0] * (D // 2)), RAW, {f"all-zero {F}": [5]}),
    "null quality": (lambda t: _with(t, "quality_score", r5=None), RAW, {f"null {Q}": [5]}),
    "NaN and infinite quality": (
        lambda t: _with(t, "quality_score", r5=NAN, r7=INF, r9=-INF),
        RAW,
        {f"NaN or infinite {Q}": [5, 7, 9]},
    ),
    "infinite quality by rank": (
        lambda t: _with(t, "quality_score", r5=NAN, r7=INF, r9=-INF),
        RANK,
        {f"NaN or infinite {Q}": [5, 7, 9]},
    ),
    "infinite quality by z": (lambda t: _with(t, "quality_score", r5=NAN, r7=INF), Z, {f"NaN or infinite {Q}": [5, 7]}),
    "infinite quality of a constant column": (
        lambda t: _with(t, "one", r5=NAN, r7=INF),
        CONSTANT,
        {f"NaN or infinite {Q}, 'one'": [5, 7]},
    ),
    "null and infinite quality in two columns": (
        lambda t: _with(_with(t, "quality_score", r5=None, r7=INF), "edu", r5=INF, r7=-INF, r9=None),
        TWO,
        {f"null {Q}, 'edu'": [5, 9], f"NaN or infinite {Q}, 'edu'": [7]},
    ),
    "null and negative length": (
        lambda t: _with(t, "n_tokens", r5=None, r7=-1),
        RAW,
        {"null, infinite or negative length in column 'n_tokens'": [5, 7]},
    ),
    "several faults of a row": (
        lambda t: _with(_with(t, "feature_arr", r5=[0.0] * D, r7=None), "quality_score", r5=NAN, r7=None, r9=NAN),
        RAW,
        {f"null {F}": [7], f"all-zero {F}": [5], f"NaN or infinite {Q}": [9]},
    ),
    "an id that an invalid row repeats": (
        lambda t: _with(_with(t, "quality_score", r5=None), "id", r5="1-9"),
        RAW,
        {f"null {Q}": [5]},
    ),
}


def _write(folder, second) -> None:
    for name, seed, rows in (("a", 0, COUNTS[0]), ("b", 1, COUNTS[1])):
        table = shard(rows, seed=seed).append_column("one", pa.array(np.ones(rows)))
        pq.write_table(table if name == "a" else second(table), folder / f"{name}.parquet", row_group_size=25)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("what", ROW_FAULTS)
def test_the_same_rows_are_dropped_for_the_same_reasons(what, way, tmp_path):
    second, columns, reasons = ROW_FAULTS[what]
    _write(tmp_path, second)
    rows, dropped = WAYS[way](tmp_path, columns, True)
    everything = {(number, row) for number, count in enumerate(COUNTS) for row in range(count)}
    assert rows == everything - {(1, row) for refused in reasons.values() for row in refused}
    assert dropped == {reason: len(refused) for reason, refused in reasons.items()}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("what", ROW_FAULTS)
def test_a_row_that_is_not_dropped_is_refused_with_its_place_and_reason(what, way, tmp_path):
    second, columns, reasons = ROW_FAULTS[what]
    _write(tmp_path, second)
    with pytest.raises(InputError) as refusal:
        WAYS[way](tmp_path, columns, False)
    reason, rows = next((reason, rows) for reason, rows in reasons.items() if rows)
    message = str(refusal.value)
    assert reason in message and f"b.parquet row {rows[0]}" in message and "--drop_invalid" in message


CORPUS_FAULTS = {
    # what is wrong, whether or not rows are dropped: (the shard made wrong, what the sentence holds)
    "null id": (
        lambda t: _with(t, "id", r5=None),
        r"b\.parquet row 5 has a null in the id column 'id'; every row needs an id, so repair it, choose another",
    ),
    "repeated id": (
        lambda t: _with(t, "id", r5="1-9"),
        r"column 'id' .*holds 1 .*\b5 and .*\b9\); ids must be unique",
    ),
}


@pytest.mark.parametrize("drop", [False, True])
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("what", CORPUS_FAULTS)
def test_a_corpus_that_no_row_can_be_dropped_from_is_refused_in_the_same_words(what, way, drop, tmp_path):
    second, sentence = CORPUS_FAULTS[what]
    _write(tmp_path, second)
    with pytest.raises(InputError) as refusal:
        WAYS[way](tmp_path, RAW, drop)
    assert re.search(sentence, str(refusal.value)), str(refusal.value)
