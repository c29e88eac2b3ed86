"""Roles: by name, by type, by choice."""

import pyarrow as pa
import pytest

from datamask.config import CorpusConfig, QualityColumn
from datamask.corpus.columns import candidates, columns_metadata, guess, resolve, side_id
from datamask.corpus.readers.kinds import is_feature, is_id, is_number
from datamask.corpus.readers.leaves import leaf_schema
from datamask.errors import InputError

PAPER = {"chunk_id": pa.string(), "quality_score": pa.float64(), "feature_arr": pa.list_(pa.float32(), 8)}
FINEWEB = {
    "text": pa.string(),
    "id": pa.string(),
    "dump": pa.string(),
    "url": pa.string(),
    "file_path": pa.string(),
    "language": pa.string(),
    "language_score": pa.float64(),
    "token_count": pa.int64(),
    "score": pa.float64(),
    "int_score": pa.int64(),
}
EMBEDDED = pa.list_(pa.float16())


def settled(columns, *, features=None, scores=None, **options):
    schemas = {"input": pa.schema(columns)}
    schemas |= {"features": pa.schema(features)} if features else {}
    schemas |= {"scores": pa.schema(scores)} if scores else {}
    return resolve(CorpusConfig(("x",), **options), schemas, dict.fromkeys(schemas, "x.parquet"))


def test_the_papers_names_need_no_note():
    columns = settled(PAPER)
    assert columns.as_dict() == {
        "id": "chunk_id",
        "feature": "feature_arr",
        "quality": ["quality_score"],
        "length": None,
        "text": None,
    }
    assert columns.notes == ()


def test_fineweb_edu_is_known():
    columns = settled(FINEWEB | {"embedding": EMBEDDED})
    assert columns.as_dict() == {
        "id": "id",
        "feature": "embedding",
        "quality": ["score"],
        "length": "token_count",
        "text": "text",
    }
    assert any("'score' was taken as the quality column" in note for note in columns.notes)


def test_the_papers_names_win_over_others():
    columns = settled({"id": pa.int64(), "score": pa.float32()} | PAPER)
    assert columns.as_dict()["id"] == "chunk_id"
    assert (columns.feature, columns.quality[0].name) == ("feature_arr", "quality_score")
    with pytest.raises(InputError, match=r"could be the feature \(feature_arr, embedding\); choose one"):
        settled(PAPER | {"embedding": EMBEDDED})


def test_the_only_column_of_a_type_is_taken():
    columns = settled(
        {"name": pa.string(), "text": pa.string(), "stars": pa.float32(), "v": EMBEDDED, "year": pa.int16()},
        id_column="name",
    )
    assert (columns.id, columns.feature, columns.quality[0].name, columns.text) == ("name", "v", "stars", "text")
    assert any("'stars' was taken as the quality column, by its type" in note for note in columns.notes)
    assert settled({"name": pa.string(), "text": pa.string(), "edu": pa.float32(), "v": EMBEDDED}).id == "name"


CORPUS = {"id": pa.string(), "embedding": EMBEDDED}
QUALITIES = {
    # columns of numbers next to ids and features: the quality, or what the error says
    ("score", "int_score", "language_score"): "score",
    ("language_score", "int_score"): "int_score",
    ("Score", "YEAR"): "Score",
    ("my_rating", "views", "likes"): "my_rating",
    ("language_score",): "language_score",
    ("language_score", "edu_rating"): "edu_rating",
    ("likes",): "likes",
    ("likes", "year", "perplexity", "__index_level_0__"): "likes",
    ("fineweb-edu-score-int", "fineweb-edu-score-float"): "fineweb-edu-score-float",
    ("likes", "views"): r"several .* \(likes, views\); choose one with --quality_column likes$",
    ("likes", "views", "ppl"): r"--quality_column likes, or --quality_column ppl:-1 where less is better",
    **{(name,): "has no quality column .*datamask prepare" for name in ("__index_level_0__", "Unnamed: 0", "index")},
    ("my_score", "other_score"): r"several .* \(my_score, other_score\)",
    **{
        (name,): f"no column that is clearly the quality; its columns of numbers are {name}; .*--quality_column {name}"
        for name in (
            *("row_number", "year", "timestamp", "crawlDate", "label"),
            *("minhash_cluster_size", "cluster_id", "num_links", "word_count", "split", "Class"),
        )
    },
    **{
        (name,): f"choose one with --quality_column {name}:-1 where less is better"
        for name in ("perplexity", "toxicity_score", "cosine_dist_to_cent", "ccnet_perplexity", "nsfw_prob", "loss")
    },
}


@pytest.mark.parametrize("names", QUALITIES)
@pytest.mark.parametrize("kind", [pa.float64(), pa.int32()])
def test_no_row_number_year_class_or_count_is_a_score(names, kind):
    expected, schema = QUALITIES[names], CORPUS | dict.fromkeys(names, kind)
    if expected in names:
        assert settled(schema).quality[0].name == expected
        return
    with pytest.raises(InputError, match=expected):
        settled(schema)


def test_without_ids_they_are_made_and_a_note_says_so():
    columns = settled({"embedding": EMBEDDED, "score": pa.float64(), "language": pa.string(), "year": pa.int64()})
    assert columns.made_ids and columns.id == "chunk_id"
    assert any(
        note.startswith("Ids are made of file and row, since no column looks like ids") for note in columns.notes
    )
    columns = settled(CORPUS | {"chunk_id": pa.string(), "score": pa.float64()}, make_ids=True)
    assert columns.made_ids and columns.id == "datamask_chunk_id"


def test_a_score_of_another_type_is_refused_rather_than_replaced():
    with pytest.raises(InputError, match="column 'score' is string"):
        settled(CORPUS | {"score": pa.string(), "views": pa.int64()})
    with pytest.raises(InputError, match="column 'embedding' is binary"):
        settled({"id": pa.string(), "score": pa.int8(), "embedding": pa.binary(), "v": EMBEDDED})
    schema = leaf_schema(pa.schema(CORPUS | {"score": pa.struct({"value": pa.float64()})}))
    with pytest.raises(InputError, match=r"'score' is a struct, .* name a field such as score\.value"):
        resolve(CorpusConfig(("x",)), {"input": schema}, {"input": "x.parquet"})


WRONG = {
    "id": (pa.float64(), "column 'id' is double, .*make ids with --make_ids"),
    "score": (pa.string(), "column 'score' is string, and the quality must be a number column; cast it"),
    "quality": (pa.bool_(), "column 'quality' is bool"),
    "embedding": (pa.binary(), "column 'embedding' is binary, .* write it as a list of numbers, or read packed bits"),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_known_name_of_the_wrong_type_is_refused_by_its_type(name):
    kind, message = WRONG[name]
    schema = {"id": pa.string(), "embedding": EMBEDDED} | ({"score": pa.int8()} if name != "quality" else {})
    with pytest.raises(InputError, match=message):
        settled(schema | {name: kind})


def test_what_prepare_noted_is_followed():
    noted = pa.schema(PAPER | {"embedding": EMBEDDED, "doc_id": pa.int64()}).with_metadata(
        columns_metadata({"id": "doc_id", "feature": "embedding", "quality": "gone"})
    )
    columns = resolve(CorpusConfig(("x",)), {"input": noted}, {"input": "x.parquet"})
    assert (columns.id, columns.feature, columns.quality[0].name) == ("doc_id", "embedding", "quality_score")


def test_a_known_name_of_the_wrong_type_is_passed_over():
    columns = settled(
        {
            "id": pa.float64(),
            "doc_id": pa.int32(),
            "quality": pa.string(),
            "score": pa.int8(),
            "features": pa.list_(pa.string()),
            "vec": EMBEDDED,
        }
    )
    assert (columns.id, columns.feature, columns.quality[0].name) == ("doc_id", "vec", "score")


def test_columns_asked_for_win():
    columns = settled(
        PAPER | {"key": pa.uint8(), "a": pa.decimal128(5, 2), "b": pa.int8(), "v": EMBEDDED, "n": pa.int64()},
        id_column="key",
        feature_column="v",
        length_column="n",
        quality_columns=(QualityColumn("a"), QualityColumn("b", 2.0, "z")),
    )
    assert columns.as_dict() == {"id": "key", "feature": "v", "quality": ["a", "b"], "length": "n", "text": None}
    assert columns.notes == ()


def test_side_shards_give_features_and_scores_and_asked_scores_may_lie_on_both_sides():
    columns = settled(
        {"id": pa.string(), "score": pa.float64()},
        features={"id": pa.string(), "emb": EMBEDDED},
        scores={"id": pa.string(), "dclm": pa.float64()},
        quality_columns=(QualityColumn("dclm"), QualityColumn("score")),
    )
    assert (columns.feature, columns.feature_from) == ("emb", "features")
    assert columns.quality_from == ("scores", "input")
    with pytest.raises(InputError, match="no feature column"):
        settled({"id": pa.string(), "score": pa.float64(), "emb": EMBEDDED}, features={"id": pa.string()})


def test_side_ids_share_a_name_or_are_known_and_of_the_same_kind():
    schema = pa.schema({"id": pa.string(), "uid": pa.int64(), "mine": pa.float64()})
    assert side_id(schema, "id", pa.string()) == "id"
    assert side_id(schema, "chunk_id", pa.large_string()) == "id"
    assert side_id(schema, "chunk_id", pa.int8()) == "uid"
    assert side_id(pa.schema({"v": EMBEDDED}), "chunk_id", pa.int8()) is None


def test_candidates_put_known_names_first():
    schema = pa.schema({"year": pa.int64(), "score": pa.float64(), "quality_score": pa.float64(), "t": pa.string()})
    assert candidates(schema, "quality") == ["quality_score", "score", "year"]
    assert candidates(schema, "id") == ["year", "t"]
    assert guess(schema, "length") == (None, "none")


@pytest.mark.parametrize(
    ("test", "good", "bad"),
    [
        (
            is_id,
            [
                pa.int8(),
                pa.uint64(),
                pa.string(),
                pa.large_string(),
                pa.string_view(),
                pa.dictionary(pa.int8(), pa.string()),
            ],
            [pa.float32(), pa.bool_(), pa.decimal128(4, 2), pa.list_(pa.int8())],
        ),
        (
            is_number,
            [pa.int8(), pa.float16(), pa.decimal128(4, 2), pa.dictionary(pa.int8(), pa.float32())],
            [pa.bool_(), pa.string(), pa.date32(), pa.null()],
        ),
        (
            is_feature,
            [
                pa.list_(pa.float16()),
                pa.large_list(pa.float32()),
                pa.list_(pa.float64(), 3),
                pa.fixed_shape_tensor(pa.float32(), [4]),
                pa.list_(pa.int8()),
                pa.list_view(pa.float32()),
                pa.list_(pa.list_(pa.float32())),
                pa.string(),
            ],
            [pa.list_(pa.bool_()), pa.list_(pa.string()), pa.binary(), pa.float32()],
        ),
    ],
)
def test_types(test, good, bad):
    assert all(test(kind) for kind in good) and not any(test(kind) for kind in bad)
