"""Files as other programs write them: the same rows, read as the plain file is."""

import json
import uuid

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet as pq
import pytest

from datamask import CorpusConfig, open_corpus
from datamask.cli import main
from datamask.corpus.preparation import prepare_shards
from datamask.corpus.shards import list_files
from datamask.errors import InputError

N, DIM = 60, 12
RNG = np.random.default_rng(0)
FEATURES = RNG.normal(size=(N, DIM)).astype(np.float32)
PLAIN = {
    "id": pa.array([f"d{i}" for i in range(N)]),
    "score": pa.array(RNG.normal(size=N)),
    "embedding": pa.array(list(FEATURES), pa.list_(pa.float32())),
    "lang": pa.array(["en" if i < 40 else "de" for i in range(N)]),
}
NUMBERED = {f"emb_{i}": pa.array(FEATURES[:, i]) for i in range(DIM)}


def plain(folder):
    pq.write_table(pa.table(PLAIN), folder / "in.parquet")
    return folder


def without(*names, **more):
    return pa.table({name: column for name, column in PLAIN.items() if name not in names} | more)


def hive(folder):
    for value, rows in (("en", slice(0, 40)), ("d%65", slice(40, N))):
        (folder / f"lang={value}").mkdir()
        table = without("lang").slice(rows.start, rows.stop - rows.start)
        pq.write_table(table, folder / f"lang={value}" / "part-0.parquet")
    return folder


def hive_json(folder):
    for value, rows in (("en", range(40)), ("de", range(40, N))):
        (folder / f"lang={value}").mkdir()
        lines = [json.dumps(row) for row in without("lang").take(list(rows)).to_pylist()]
        (folder / f"lang={value}" / "part-0.json").write_text("\n".join(lines))
    return folder


def numbered(folder):
    pq.write_table(without("embedding", **NUMBERED), folder / "in.parquet", row_group_size=7)
    return folder


def numbered_from_one(folder):
    columns = {f"dim{i + 1}": column for i, column in enumerate(NUMBERED.values())}
    pq.write_table(without("embedding", **columns), folder / "in.parquet")
    return folder


def numbered_csv(folder):
    pa.csv.write_csv(without("embedding", **NUMBERED), folder / "in.csv")
    return folder


def other_case(folder):
    pq.write_table(pa.table({name.title(): column for name, column in PLAIN.items()}), folder / "IN.PARQUET")
    return folder


def feather(folder):
    pyarrow.feather.write_feather(pa.table(PLAIN), folder / "in.feather", chunksize=7)
    return folder


def save_to_disk(folder):
    """As `datasets` does."""
    for place in range(2):
        table = pa.table(PLAIN).slice(place * 30, 30)
        path = str(folder / f"data-{place:05d}-of-00002.arrow")
        with pa.OSFile(path, "wb") as sink, pa.ipc.new_stream(sink, table.schema) as stream:
            stream.write_table(table, 7)
    (folder / "dataset_info.json").write_text("{}")
    (folder / "state.json").write_text('{"_data_files": []}')
    return folder


LAYOUTS = [feather, save_to_disk, hive, hive_json, numbered, numbered_from_one, numbered_csv, other_case]


@pytest.mark.parametrize("layout", LAYOUTS, ids=lambda layout: layout.__name__)
def test_a_layout_is_the_plain_file(tmp_path, layout):
    (tmp_path / "plain").mkdir()
    (tmp_path / "other").mkdir()
    expected = open_corpus(CorpusConfig((str(plain(tmp_path / "plain")),)))
    corpus = open_corpus(CorpusConfig((str(layout(tmp_path / "other")),)))
    order = np.argsort([int(row[1:]) for row in corpus.ids.to_pylist()])
    assert corpus.ids.take(pa.array(order)).equals(expected.ids)
    np.testing.assert_array_equal(corpus.quality[order], expected.quality)
    np.testing.assert_allclose(corpus.features[order], expected.features, atol=1e-7)
    assert [name.lower() for name in corpus.metadata.column_names] == expected.metadata.column_names
    assert corpus.metadata[0].take(pa.array(order)).to_pylist() == PLAIN["lang"].to_pylist()


@pytest.mark.parametrize("kind", [np.float16, np.float32, np.float64, ">f4", np.int8])
def test_arrays_give_features_and_scores_by_position(tmp_path, kind):
    pq.write_table(pa.table(PLAIN).select(["id", "lang"]), tmp_path / "in.parquet")
    features = (FEATURES * 20).astype(kind)
    np.save(tmp_path / "features.npy", features)
    np.save(tmp_path / "scores.npy", np.arange(N))
    config = {"features": (str(tmp_path / "features.npy"),), "scores": (str(tmp_path / "scores.npy"),)}
    corpus = open_corpus(CorpusConfig((str(tmp_path / "in.parquet"),), **config))
    units = features.astype(np.float64) / np.linalg.norm(features.astype(np.float64), axis=1, keepdims=True)
    np.testing.assert_allclose(corpus.features, units, atol=1e-6)
    assert corpus.quality.tolist() == list(range(N))
    np.save(tmp_path / "features.npy", features[1:])
    with pytest.raises(InputError, match=r"--features has 59 rows and no id column .* --input has 60 rows"):
        open_corpus(CorpusConfig((str(tmp_path / "in.parquet"),), **config))


def object_array(path):
    np.save(path, np.array([{"a": 1}], object))


def by_columns(path):
    np.save(path, np.asfortranarray(FEATURES))


def cube(path):
    np.save(path, np.ones((2, 3, 4)))


def cut(path):
    np.save(path, FEATURES)
    path.write_bytes(path.read_bytes()[:-5])


def another(path):
    path.write_bytes(b"\x93NUMPY and no more")


@pytest.mark.parametrize("made", [object_array, by_columns, cube, cut, another], ids=lambda made: made.__name__)
def test_arrays_that_are_no_features_are_refused(tmp_path, made):
    pq.write_table(pa.table(PLAIN).select(["id", "score"]), tmp_path / "in.parquet")
    made(tmp_path / "features.npy")
    with pytest.raises(InputError, match=r"features\.npy (must hold n x d|is cut short|is not a NumPy array)"):
        open_corpus(CorpusConfig((str(tmp_path / "in.parquet"),), features=(str(tmp_path / "features.npy"),)))


BITS = np.random.default_rng(1).integers(0, 256, (N, 3), np.uint8)
PACKED = {
    "bytes": pa.array([row.tobytes() for row in BITS]),
    "fixed": pa.array([row.tobytes() for row in BITS], pa.binary(3)),
    "uint8": pa.array(list(BITS), pa.list_(pa.uint8())),
    "int8": pa.array(list((BITS.astype(np.int16) - 128).astype(np.int8)), pa.list_(pa.int8(), 3)),
}


@pytest.mark.parametrize("kind", PACKED)
def test_packed_bits_are_features_if_asked_for(tmp_path, kind):
    pq.write_table(without("embedding", embedding=PACKED[kind]), tmp_path / "in.parquet", row_group_size=7)
    corpus = open_corpus(CorpusConfig((str(tmp_path / "in.parquet"),), feature_bits=True))
    np.testing.assert_allclose(corpus.features * np.sqrt(24), np.unpackbits(BITS, axis=1) * 2.0 - 1, atol=1e-6)
    assert "features embedding (24, bits)" in corpus.provenance.notes[0]
    select = ["select", str(tmp_path / "in.parquet"), "--feature_bits", "--objective", "pairwise", "--n_epochs", "20"]
    assert main([*select, "--runs-dir", str(tmp_path / "r"), "--output", str(tmp_path / "out.csv")]) == 0
    (run,) = (path.name for path in (tmp_path / "r").iterdir() if path.name[0].isdigit())
    assert main(["recipe", run, "--runs-dir", str(tmp_path / "r"), "--output", str(tmp_path / "recipe.json")]) == 0
    unpacked = pa.array(list(np.unpackbits(BITS, axis=1) * 2.0 - 1))
    pq.write_table(without("embedding", embedding=unpacked), tmp_path / "plain.parquet")
    apply = ["apply", str(tmp_path / "recipe.json"), "--as", "masks", "--output"]
    assert main([*apply, str(tmp_path / "kept.csv"), str(tmp_path / "in.parquet"), "--feature_bits"]) == 0
    assert main([*apply, str(tmp_path / "plain.csv"), str(tmp_path / "plain.parquet")]) == 0
    kept, plain = (pa.csv.read_csv(tmp_path / name)["selected"].to_pylist() for name in ("kept.csv", "plain.csv"))
    assert kept == plain and sum(kept) == 18
    with pytest.raises(InputError, match=r"needs one column of packed bits .* such columns are embedding"):
        open_corpus(CorpusConfig((str(tmp_path / "in.parquet"),), feature_bits=True, feature_column="score"))


IDS = {
    "uuid": pa.array([uuid.UUID(int=i << 64).bytes for i in range(N)], pa.uuid()),
    "bytes": pa.array([bytes([i, 255]) for i in range(N)]),
    "fixed": pa.array([bytes([i, 255]) for i in range(N)], pa.binary(2)),
    "decimal": pa.array([10**20 + i for i in range(N)], pa.decimal128(38, 0)),
    "uint64": pa.array([2**63 + i for i in range(N)], pa.uint64()),
    "none": None,
}


@pytest.mark.parametrize("kind", IDS)
def test_ids_of_every_kind_find_their_rows_again(tmp_path, monkeypatch, capsys, kind):
    monkeypatch.chdir(tmp_path)
    column = IDS[kind]
    pq.write_table(without("id", **({} if column is None else {"id": column})), "in.parquet")
    column = pa.array([f"in:{i}" for i in range(N)]) if column is None else column
    method = ["--objective", "pairwise", "--estimator", "top-quality"]
    assert main(["select", "in.parquet", "--output", "out.parquet", *method]) == 0
    best = np.argsort(-PLAIN["score"].to_numpy())[:18].tolist()
    chosen = column.take(pa.array(best)).to_pylist()
    (run,) = (path.name for path in (tmp_path / "runs").iterdir() if path.name[0].isdigit())
    for file in ("out.parquet", f"runs/{run}/selection.parquet"):
        ids = pq.read_table(file)[0]
        assert ids.type == column.type and set(ids.to_pylist()) == set(chosen)
    assert main(["runs", "export", run, "--rows", "rows.parquet"]) == 0
    assert pq.read_table("rows.parquet")["score"].to_pylist() == PLAIN["score"].take(sorted(best)).to_pylist()
    assert main(["select", "in.parquet", "--output", "more.csv", *method, "--given", "out.parquet"]) == 0
    assert "18 rows given" in capsys.readouterr().out
    assert main(["recipe", run, "--output", "recipe.json"]) == 0
    assert main(["apply", "recipe.json", "in.parquet", "--output", "applied"]) == 0
    kept = pq.read_table("applied/in.ids.parquet")[0]
    assert kept.type == column.type and len(kept) and set(kept.to_pylist()) <= set(column.to_pylist())


SPLITS = {
    "names": ("train-00000-of-00002.parquet", "train-00001-of-00002.parquet", "test-00000-of-00001.parquet"),
    "folders": ("train/a.parquet", "train/b.parquet", "validation/a.parquet"),
    "below": ("data/train.parquet", "data/train_1.parquet", "data/dev.parquet"),
}


@pytest.mark.parametrize("written", SPLITS)
def test_of_several_splits_one_is_read_and_named(tmp_path, written):
    for place, name in enumerate(SPLITS[written]):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(pa.table(PLAIN).slice(place * 20, 20), tmp_path / name)
    other = next(name for name in ("test", "validation", "dev") if any(name in file for file in SPLITS[written]))

    def opened(**options):
        return open_corpus(CorpusConfig((str(tmp_path),), **options))

    corpus = opened()
    assert len(corpus) == 40 and corpus.ids.to_pylist() == PLAIN["id"].to_pylist()[:40]
    (note,) = (note for note in corpus.provenance.notes if "has the splits" in note)
    assert "train" in note and other in note and note.endswith("train is read, and --split chooses another, or all.")
    assert opened(split=other).ids.to_pylist() == PLAIN["id"].to_pylist()[40:]
    assert len(opened(split="all")) == N
    with pytest.raises(InputError, match="has no split 'tuning'; its splits are"):
        opened(split="tuning")
    (tmp_path / SPLITS[written][0]).rename(tmp_path / "test-1.parquet")
    (tmp_path / SPLITS[written][1]).rename(tmp_path / "validation-1.parquet")
    with pytest.raises(InputError, match=r"has the splits .*; choose one with --split"):
        opened()


def test_folders_without_splits_are_read_whole(tmp_path):
    for name in ("a.parquet", "train.parquet", "test.parquet"):
        pq.write_table(pa.table(PLAIN).slice(len(name), 1), tmp_path / name)
    assert len(list_files([str(tmp_path)])) == 3, "one file is of no split"


def test_a_part_of_numbered_columns_can_be_the_quality(tmp_path):
    config = CorpusConfig((str(numbered(tmp_path)),), quality_columns=("emb_3",))
    np.testing.assert_array_equal(open_corpus(config).quality, FEATURES[:, 3])


def test_what_is_prepared_keeps_columns_that_folders_name(tmp_path):
    for value in ("en", "_x"):
        (tmp_path / "in" / f"lang={value}").mkdir(parents=True)
        texts = [f"the text {i} of {value} and the rest" for i in range(20)]
        pq.write_table(pa.table({"text": texts}), tmp_path / "in" / f"lang={value}" / "a.parquet")
    prepare_shards([tmp_path / "in"], tmp_path / "out", dim=3)
    corpus = open_corpus(CorpusConfig((str(tmp_path / "out"),)))
    assert (
        corpus.metadata["lang"].to_pylist() == ["_x"] * 20 + ["en"] * 20
        and corpus.ids[0].as_py() == "lang=_x-a.parquet:0"
    )


def test_prepare_makes_nothing_beside_a_column_that_it_cannot_read(tmp_path):
    texts = [f"the text {i} and the rest" for i in range(N)]
    for name, column, message in (
        ("embedding", pa.array([row.tobytes() for row in FEATURES]), "column 'embedding' is binary, and the feature"),
        ("id", pa.array(np.arange(N) + 0.5), "column 'id' is double, and the id"),
    ):
        pq.write_table(pa.table({"text": texts, name: column}), tmp_path / "in.parquet")
        with pytest.raises(InputError, match=f"{message}.*rename that column"):
            prepare_shards([tmp_path / "in.parquet"], tmp_path / "out", dim=3)


WORDS = [
    first + second for first in ("ba", "do", "ki", "lu", "me", "no") for second in ("ra", "ti", "so", "pel", "dus")
]
GOOD = [{"id": f"d{i}", "text": " ".join(RNG.choice(WORDS, 8))} for i in range(300)]
BAD = {
    "half an object": b'{"id": "a", "text": "th',
    "no UTF-8": b'{"id": "a", "text": "th\xffe"}',
    "a list": b"[1, 2]",
    "a lone surrogate": b'{"id": "\\ud800"}',
    "two objects": b'{"id": "a"} {"id": "b"}',
    "a word": b"NaN oops",
}


@pytest.mark.parametrize("block", [97, 1 << 20])
def test_prepare_skips_lines_that_cannot_be_read_and_names_the_first(tmp_path, monkeypatch, block):
    monkeypatch.setattr("datamask.corpus.readers.text.READ_BYTES", block)
    lines = [json.dumps(row).encode() for row in GOOD]
    for place, bad in enumerate(BAD.values()):
        lines.insert(50 + 31 * place, bad)
    path = tmp_path / "in.jsonl"
    path.write_bytes(b"\n".join(lines))
    with pytest.raises(InputError, match=r"line 51, column|line 82 is no UTF-8"):
        prepare_shards([path], tmp_path / "out", dim=3)
    made = prepare_shards([path], tmp_path / "out", dim=3, drop_invalid=True)
    assert made["rows"] == 300 and made["dropped"]["lines that cannot be read"] == len(BAD)
    assert any(f"The first line that cannot be read: {path} line 51, column" in note for note in made["notes"])
    assert pq.read_table(tmp_path / "out")["id"].to_pylist() == [row["id"] for row in GOOD]


def test_prepare_skips_rows_of_csv(tmp_path):
    sheet = "id,text\n" + "".join(f"{row['id']},{row['text']}\n" for row in GOOD)
    (tmp_path / "in.csv").write_text(sheet.replace("d9,", "d9,more,", 1))
    made = prepare_shards([tmp_path / "in.csv"], tmp_path / "sheet", dim=3, drop_invalid=True)
    assert made["rows"] == 299 and made["dropped"] == {"lines that cannot be read": 1}
    assert any("row 11 (the header is row 1) has 3 values, the header 2" in note for note in made["notes"])
