"""prepare_shards: what it keeps, adds, drops, refuses, and leaves behind when it ends early."""

import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from datamask.config import CorpusConfig
from datamask.corpus import open_corpus, preparation, quality_rules, text_survey, token_counts
from datamask.corpus.preparation import prepare_shards
from datamask.corpus.quality_rules import scored
from datamask.corpus.shards import open_source
from datamask.corpus.token_counts import estimate_tokens
from datamask.errors import InputError, Stopped, StoreError
from datamask.work.context import UNWATCHED, Work

WORDS = ["river", "stone", "cloud", "engine", "market", "violin", "garden", "theory", "winter", "harbour"]


def sentences(n, seed=0):
    rng = np.random.default_rng(seed)
    return [f"The {' and the '.join(rng.choice(WORDS, 6))} of {i} were seen." for i in range(n)]


def write(path, **columns):
    pq.write_table(pa.table(columns), path)
    return path


def test_columns_are_added_and_the_others_kept(tmp_path):
    texts = sentences(40)
    source = write(tmp_path / "in.parquet", url=[f"u{i}" for i in range(40)], body=texts, tags=[["a", "b"]] * 40)
    result = prepare_shards([source], tmp_path / "out.parquet", text_column="body", dim=8)
    table = pq.read_table(tmp_path / "out.parquet")
    assert table.column_names == ["chunk_id", "url", "body", "tags", "quality_score", "feature_arr", "n_tokens"]
    assert table["chunk_id"].to_pylist() == [f"in:{i}" for i in range(40)]
    assert table["url"].to_pylist() == [f"u{i}" for i in range(40)] and table["tags"][3].as_py() == ["a", "b"]
    assert table.schema.field("quality_score").type == pa.float32()
    assert table.schema.field("feature_arr").type == pa.list_(pa.float16(), 8)
    assert table.schema.field("n_tokens").type == pa.int32()
    np.testing.assert_allclose(table["quality_score"].to_numpy(), [scored(t)[0] for t in texts], rtol=1e-6)
    assert table["n_tokens"].to_pylist() == [estimate_tokens(t) for t in texts]
    features = np.array(table["feature_arr"].to_pylist())
    np.testing.assert_allclose(np.linalg.norm(features, axis=1), 1, atol=2e-3)
    assert (result["rows_read"], result["rows"], result["dropped"], result["dim"]) == (40, 40, {}, 8)
    assert any("in:0" in note for note in result["notes"])


def test_what_is_written_opens_as_a_corpus(tmp_path):
    write(tmp_path / "a.parquet", id=list(range(30)), text=sentences(30))
    write(tmp_path / "b.parquet", id=list(range(30, 50)), text=sentences(20, seed=1))
    result = prepare_shards([tmp_path], tmp_path / "out", text_column="text", id_column="id", dim=6)
    assert [path.split("/")[-1] for path in result["files"]] == ["a.parquet", "b.parquet"]
    corpus = open_corpus(CorpusConfig((str(tmp_path / "out"),)))
    assert (len(corpus), corpus.dim) == (50, 6)
    assert corpus.ids.to_pylist() == list(range(50)) and corpus.ids.type == pa.int64()
    assert corpus.lengths is not None and corpus.lengths[0] == estimate_tokens(sentences(1)[0])


def test_empty_null_and_foreign_rows_are_dropped_and_counted(tmp_path):
    texts = [*sentences(30), None, "", "  \n", "qqq zzz", "the end"]  # "the" is known, "qqq" and "zzz" occur once
    source = write(tmp_path / "in.parquet", text=texts)
    result = prepare_shards([source], tmp_path / "out.parquet", text_column="text", dim=4)
    assert result["dropped"] == {"no text": 3, "no word in common with the other texts": 1}
    assert result["rows"] == 31 == pq.read_metadata(tmp_path / "out.parquet").num_rows
    assert "3 of 35 rows were dropped: no text." in result["notes"]
    # made ids keep pointing at the row of the input
    assert pq.read_table(tmp_path / "out.parquet")["chunk_id"][-1].as_py() == "in:34"


def test_jsonl_equals_parquet(tmp_path):
    texts = sentences(25)
    write(tmp_path / "x.parquet", text=texts, k=list(range(25)))
    (tmp_path / "x.jsonl").write_text("".join(json.dumps({"text": t, "k": i}) + "\n" for i, t in enumerate(texts)))
    tables = []
    for ending in ("parquet", "jsonl"):
        prepare_shards([tmp_path / f"x.{ending}"], tmp_path / f"out-{ending}.parquet", text_column="text", dim=5)
        tables.append(pq.read_table(tmp_path / f"out-{ending}.parquet"))
    assert tables[0].equals(tables[1])


def test_a_small_corpus_gets_fewer_dimensions_and_is_told(tmp_path):
    source = write(tmp_path / "in.parquet", text=sentences(5))
    result = prepare_shards([source], tmp_path / "out.parquet", text_column="text")
    assert result["dim"] == 4
    assert any("TF-IDF of 5 texts has 4 dimensions" in note for note in result["notes"])


def test_it_is_said_where_the_quality_comes_from(tmp_path):
    source = write(tmp_path / "in.parquet", text=sentences(6), stars=[1.0, 2.0, 3.0, 4.0, 5.0, 6.0])
    notes = prepare_shards([source], tmp_path / "out.parquet", text_column="text", dim=3)["notes"]
    assert "The quality is made by rules on the text." in notes
    assert any("stars. To go by one of them, give --quality_column" in note for note in notes)
    scored = write(tmp_path / "scored.parquet", text=sentences(6), score=[1.0] * 6, stars=[1.0] * 6)
    notes = prepare_shards([scored], tmp_path / "again.parquet", text_column="text", dim=3)["notes"]
    assert any("quality score" in note for note in notes) and not any("stars" in note for note in notes)


def test_own_scores_are_kept(tmp_path):
    source = write(tmp_path / "in.parquet", chunk_id=list("abcdef"), text=sentences(6), quality_score=[9.0] * 6)
    result = prepare_shards([source], tmp_path / "out.parquet", text_column="text", dim=3)
    table = pq.read_table(tmp_path / "out.parquet")
    assert table["quality_score"].to_pylist() == [9.0] * 6 and table.schema.field("quality_score").type == pa.float64()
    assert table["chunk_id"].to_pylist() == list("abcdef")
    assert "Kept as they are: ids chunk_id, quality quality_score." in result["notes"]


def test_own_features_are_kept(tmp_path):
    source = write(tmp_path / "in.parquet", text=["one", "two"], feature_arr=[[1.0, 0.0], [0.0, 1.0]])
    result = prepare_shards([source], tmp_path / "out.parquet", text_column="text")
    table = pq.read_table(tmp_path / "out.parquet")
    assert table["feature_arr"].to_pylist() == [[1.0, 0.0], [0.0, 1.0]] and len(table["quality_score"]) == 2
    assert result["dim"] is None and result["fitted_on"] == 0


def test_whatever_is_there_is_kept_under_its_name_and_type_and_selected_by(tmp_path):
    """A TF-IDF column beside one's own embedding was what `select` took."""
    rng = np.random.default_rng(0)
    own = {
        "Doc_ID": pa.array(range(1000, 1040), pa.int32()),
        "text": sentences(40),
        "embedding": list(rng.normal(size=(40, 5)).astype(np.float32)),
        "edu_score": rng.normal(size=40),
        "Token_Count": list(range(40)),
    }
    made = {"Doc_ID": "chunk_id", "embedding": "feature_arr", "edu_score": "quality_score", "Token_Count": "n_tokens"}
    for left_out in made:
        source = write(tmp_path / "in.parquet", **{name: own[name] for name in own if name != left_out})
        result = prepare_shards([source], tmp_path / f"{left_out}.parquet", dim=4)
        out = pq.read_table(tmp_path / f"{left_out}.parquet")
        assert set(out.column_names) == {*own, made[left_out]} - {left_out} and len(result["made"]) == 1
        corpus = open_corpus(CorpusConfig((str(tmp_path / f"{left_out}.parquet"),)))
        columns = corpus.provenance.columns
        chosen = (columns["id"], columns["feature"], columns["quality"][0], columns["length"])
        assert set(chosen) == {made.get(name) if name == left_out else name for name in made}
        if left_out != "Doc_ID":
            assert out["Doc_ID"].type == pa.int32() and corpus.ids.to_pylist() == list(range(1000, 1040))
    source = write(
        tmp_path / "in.parquet", **{name: own[name] for name in own if name != "edu_score"}, vector=own["embedding"]
    )
    notes = prepare_shards([source], tmp_path / "two.parquet")["notes"]
    assert any("Columns embedding and vector can be the features, and none are made" in note for note in notes)
    with pytest.raises(InputError, match=r"could be the feature \(embedding, vector\)"):
        open_corpus(CorpusConfig((str(tmp_path / "two.parquet"),)))


def test_a_large_input_is_learned_on_a_uniform_sample_whatever_the_batches(tmp_path, monkeypatch):
    monkeypatch.setattr(text_survey, "FIT_LIMIT", 40)
    source = write(tmp_path / "in.parquet", text=sentences(400))
    samples = []
    for rows in (7, 1_000):
        monkeypatch.setattr("datamask.corpus.text_survey.BATCH_ROWS", rows)
        plan = text_survey.plan_texts(open_source("input", [str(source)]), "text")
        samples.append(text_survey.survey(plan, 0, UNWATCHED).sample)
    assert samples[0] == samples[1] and len(samples[0]) == 40
    numbers = [int(text.split(" of ")[1].split()[0]) for text in samples[0]]
    assert numbers == sorted(numbers) and 100 < np.mean(numbers) < 300
    result = prepare_shards([source], tmp_path / "out.parquet", text_column="text", dim=4)
    assert result["fitted_on"] == 40 and result["rows"] == 400
    assert any("40 of 400 texts" in note for note in result["notes"])


def test_equal_names_in_different_folders_stay_apart(tmp_path):
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        write(tmp_path / folder / "x.parquet", text=sentences(8))
    prepare_shards([tmp_path / "a", tmp_path / "b"], tmp_path / "out", text_column="text", dim=3)
    ids = pq.read_table(tmp_path / "out")["chunk_id"].to_pylist()
    assert len(set(ids)) == 16 and {"a-x.parquet:0", "b-x.parquet:7"} <= set(ids)


def test_row_groups_are_gathered_from_small_batches(tmp_path, monkeypatch):
    monkeypatch.setattr("datamask.corpus.text_survey.BATCH_ROWS", 10)
    monkeypatch.setattr(preparation, "ROW_GROUP", 30)
    source = write(tmp_path / "in.parquet", text=sentences(100))
    prepare_shards([source], tmp_path / "out.parquet", text_column="text", dim=3)
    metadata = pq.read_metadata(tmp_path / "out.parquet")
    rows = [metadata.row_group(group).num_rows for group in range(metadata.num_row_groups)]
    assert sum(rows) == 100
    assert all(30 <= count < 40 for count in rows[:-1])


def test_the_text_column_is_found_by_its_name(tmp_path):
    texts = sentences(10)
    both = write(tmp_path / "both.parquet", body=["x"] * 10, text=texts)
    prepare_shards([both], tmp_path / "a.parquet", dim=3)
    assert pq.read_table(tmp_path / "a.parquet")["n_tokens"].to_pylist() == [estimate_tokens(text) for text in texts]
    body = write(tmp_path / "body.parquet", title=["x"] * 10, body=texts)
    result = prepare_shards([body], tmp_path / "b.parquet", dim=3)
    assert "Column 'body' was taken as the text column." in result["notes"]
    several = write(tmp_path / "several.parquet", content=texts, body=texts)
    with pytest.raises(InputError, match=r"several that may hold the texts \(content, body\); choose one with --text"):
        prepare_shards([several], tmp_path / "c.parquet", dim=3)
    none = write(tmp_path / "none.parquet", title=texts, n=list(range(10)))
    with pytest.raises(InputError, match=r"no column called text; name .* by --text_column \(columns of .*: title"):
        prepare_shards([none], tmp_path / "c.parquet", dim=3)


BAD = {
    "nothing there": (lambda d: None, {}, "none-.* matches no file"),
    "another ending": (lambda d: (d / "in.txt").touch() or ["in.txt"], {}, "in.txt is empty"),
    "not parquet": (lambda d: (d / "in.parquet").write_bytes(b"PAR1 no"), {}, "is not a parquet file"),
    "cut short": (lambda d: (d / "in.parquet").write_bytes((d / "in.parquet").read_bytes()[:-30]), {}, "cut short"),
    "bad json": (
        lambda d: (d / "in.jsonl").write_text('{"text": "a"}\n{"text": ') and ["in.jsonl"],
        {},
        "in.jsonl line 2, column 10 is not JSON",
    ),
    "no rows": (lambda d: write(d / "in.parquet", text=pa.array([], pa.string())), {}, "has no rows"),
    "no text": (lambda d: write(d / "in.parquet", text=["", None]), {}, "holds no text in any of 2 rows"),
    "no column": (lambda d: write(d / "in.parquet", body=["a"]), {}, "has no column 'text' for the text"),
    "numbers": (lambda d: write(d / "in.parquet", text=[1, 2]), {}, "is int64, but text must be a column of texts"),
    "no id column": (lambda d: None, {"id_column": "key"}, "has no column 'key' for the id"),
    "null id": (
        lambda d: write(d / "in.parquet", text=["a", "b"], key=["x", None]),
        {"id_column": "key"},
        "row 1 has a null in the id column 'key'.*--make_ids",
    ),
    "repeated id": (
        lambda d: write(d / "in.parquet", text=["a", "b"], key=["x", "x"]),
        {"id_column": "key"},
        "column 'key' holds 1 id more than once .'x'; 'x' is in .* row 0 and .* row 1.*--make_ids",
    ),
    "float id": (
        lambda d: write(d / "in.parquet", text=["a", "b"], key=[1.5, 2]),
        {"id_column": "key"},
        "is double, but id must be",
    ),
    "repeated known id": (lambda d: write(d / "in.parquet", text=["a", "b"], id=["x", "x"]), {}, "--make_ids"),
    "prepared": (
        lambda d: write(d / "in.parquet", id=["x"], text=["a"], score=[1.0], embedding=[[1.0]], n_tokens=[1]),
        {},
        "open it as it is",
    ),
    "no shared word": (lambda d: write(d / "in.parquet", text=["!", "?"]), {}, "no words in common to learn"),
    "dim": (lambda d: None, {"dim": 1}, "--dim must be at least 2, got 1"),
    "output is input": (lambda d: None, {"output": "in.parquet"}, "is one of the inputs"),
    "output is full": (lambda d: ((d / "out").mkdir(), (d / "out" / "x").touch()), {}, "exists already"),
    "output is a file": (lambda d: (d / "out").touch(), {}, "exists already"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_one_sentence_and_leaves_nothing(case, tmp_path):
    write(tmp_path / "in.parquet", text=sentences(10))
    make, options, message = BAD[case]
    made = make(tmp_path)
    inputs = [tmp_path / name for name in made] if isinstance(made, list) else [tmp_path / "in.parquet"]
    if case == "nothing there":
        inputs = [tmp_path / "none-*.parquet"]
    options = {"text_column": "text", **options}
    output = tmp_path / options.pop("output", "out")
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    with pytest.raises(InputError, match=message) as caught:
        prepare_shards(inputs, output, **options)
    assert "\n" not in str(caught.value)
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before


def test_columns_that_differ_are_named(tmp_path):
    write(tmp_path / "a.parquet", text=sentences(6), k=[1] * 6)
    write(tmp_path / "b.parquet", text=sentences(6), j=[1] * 6)
    with pytest.raises(InputError, match=r"b\.parquet has other columns"):
        prepare_shards([tmp_path], tmp_path / "out.parquet", text_column="text", dim=3)
    assert not (tmp_path / "out.parquet").exists()
    prepare_shards([tmp_path], tmp_path / "out", text_column="text", dim=3)
    assert "j" in pq.read_schema(tmp_path / "out" / "b.parquet").names
    write(tmp_path / "b.parquet", text=sentences(6), quality_score=[1.0] * 6)
    with pytest.raises(InputError, match="prepare them apart"):
        prepare_shards([tmp_path / "a.parquet", tmp_path / "b.parquet"], tmp_path / "out2", text_column="text")


@pytest.mark.parametrize("polls", [0, 3, 11])
def test_stop_leaves_nothing(polls, tmp_path, monkeypatch):
    monkeypatch.setattr("datamask.corpus.text_survey.BATCH_ROWS", 20)
    source = write(tmp_path / "in.parquet", text=sentences(100))
    answers = iter([False] * polls)
    with pytest.raises(Stopped):
        prepare_shards([source], tmp_path / "out", text_column="text", dim=3, work=Work.of(lambda: next(answers, True)))
    assert [path.name for path in tmp_path.iterdir()] == ["in.parquet"]


def test_a_folder_that_cannot_be_made_is_a_store_error(tmp_path):
    source = write(tmp_path / "in.parquet", text=sentences(10))
    (tmp_path / "file").touch()
    for output in ("file/out.parquet", "file/out"):
        with pytest.raises(StoreError, match="cannot be written"):
            prepare_shards([source], tmp_path / output, text_column="text", dim=3)


def test_a_full_disk_leaves_the_old_file(tmp_path, monkeypatch):
    source = write(tmp_path / "in.parquet", text=sentences(10))
    (tmp_path / "out.parquet").write_text("old")

    def full(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(pq.ParquetWriter, "write_table", full)
    with pytest.raises(StoreError, match="No space left"):
        prepare_shards([source], tmp_path / "out.parquet", text_column="text", dim=3)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in.parquet", "out.parquet"]
    assert (tmp_path / "out.parquet").read_text() == "old"


def test_progress_rises_to_one(tmp_path):
    source = write(tmp_path / "in.parquet", text=sentences(50))
    seen = []
    prepare_shards(
        [source], tmp_path / "out", text_column="text", dim=3, work=Work(report=lambda *call: seen.append(call))
    )
    shares = [share for share, _ in seen]
    assert shares == sorted(shares) and shares[-1] == 1 and all(what for _, what in seen)


def test_the_text_column_is_known_in_the_shard_whatever_its_name(tmp_path):
    texts = [f"number {k} of many words about rivers and bridges" for k in range(40)]
    path = tmp_path / "films.parquet"
    pq.write_table(pa.table({"film": [f"f{k}" for k in range(40)], "plot": texts, "stars": np.arange(40.0)}), path)
    result = prepare_shards([path], tmp_path / "out.parquet", dim=4, text_column="plot", id_column="film")
    assert result["numbers"] == ["stars"]
    corpus = open_corpus(CorpusConfig((str(tmp_path / "out.parquet"),)))
    assert corpus.provenance.columns["text"] == "plot" and corpus.texts.to_pylist() == texts


def test_several_scripts_are_named_and_other_languages_counted(tmp_path, monkeypatch):
    asked = []

    def script_of(text):
        asked.append(text)
        return token_counts.script_of(text)

    for module in (preparation, quality_rules):
        monkeypatch.setattr(module, "script_of", script_of)
    texts = sentences(40) + [f"违う行を選ぶ方法{i}があります。" for i in range(20)]
    source = write(tmp_path / "in.parquet", text=texts)
    result = prepare_shards([source], tmp_path / "out.parquet", dim=4)
    assert len(asked) == 2 * len(texts), "of the sample, and of each text"
    scripts = pq.read_table(tmp_path / "out.parquet")["language_script"].to_pylist()
    assert scripts.count("Latin") == 40 and scripts.count("Japanese") == len(scripts) - 40 > 0
    assert any(note.startswith("20 of 60 texts are not English") for note in result["notes"])
    assert any("--quality_within language_script" in note for note in result["notes"])
    again = pq.read_table(tmp_path / "out.parquet").drop_columns("feature_arr")
    pq.write_table(again, tmp_path / "again.parquet")
    notes = prepare_shards([tmp_path / "again.parquet"], tmp_path / "more.parquet", dim=4)["notes"]
    assert any("--quality_within language_script" in note for note in notes)
    alone = prepare_shards([write(tmp_path / "a.parquet", text=texts[:40])], tmp_path / "alone.parquet", dim=4)
    assert "language_script" not in pq.read_schema(tmp_path / "alone.parquet").names
    assert not any("English" in note for note in alone["notes"])


@pytest.mark.parametrize("name", ["in.jsonl.gz", "in.jsonl.zst", "in.csv.gz"])
def test_of_a_file_that_is_cut_what_can_be_read_is_kept_if_asked_for(tmp_path, name):
    words = np.random.default_rng(0).integers(0, 10**9, (9_000, 40)).astype(str)
    rows = [{"doc": f"d{i}", "text": "a row of\n" + " ".join(words[i])} for i in range(len(words))]
    if ".csv" in name:
        content = "doc,text\n" + "".join(f'{row["doc"]},"{row["text"]}"\n' for row in rows)
    else:
        content = "".join(json.dumps(row) + "\n" for row in rows)
    packed = pa.Codec("gzip" if name.endswith("gz") else "zstd").compress(content.encode()).to_pybytes()
    (tmp_path / name).write_bytes(packed[: len(packed) // 2])
    with pytest.raises(InputError, match=rf"{name} .*Truncated compressed stream"):
        prepare_shards([tmp_path / name], tmp_path / "out.parquet", dim=4, id_column="doc")
    result = prepare_shards([tmp_path / name], tmp_path / "out.parquet", dim=4, id_column="doc", drop_invalid=True)
    kept = pq.read_table(tmp_path / "out.parquet")
    read = result["rows_read"]
    assert 1_000 < read < len(rows) and all(
        rows[int(row["doc"][1:])] == row for row in kept.select(["doc", "text"]).to_pylist()
    )
    note = next(note for note in result["notes"] if name in note)
    assert f"{name} is cut short or damaged (Truncated compressed stream): its first {read:,} rows were read." in note
