"""Shards in buckets: found, read and known again as files of the disk are."""

from __future__ import annotations

import errno
import gzip
import json
import re

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from datamask import parquet
from datamask.config import CorpusConfig
from datamask.corpus import first_look, open_corpus
from datamask.corpus.inspection import inspect_inputs
from datamask.corpus.preparation import prepare_shards
from datamask.corpus.remote_listing import file_stamps
from datamask.corpus.shards import list_files
from datamask.corpus.shared_corpora import SharedCorpora
from datamask.errors import InputError, RemoteError
from datamask.storage.address import Address
from datamask.storage.remote import RemoteFile
from datamask.work.ledger import Ledger
from tests.commands import table
from tests.making.control_groups import own_ledger
from tests.storage.elsewhere import Bucket, environment

KEYS = (
    "a.parquet",
    "b.txt",
    ".c.parquet",
    "x/a.parquet",
    "x/y/a.parquet",
    "x/y/z/b.parquet",
    "x/.h/a.parquet",
    "w1/a.parquet",
    "w2/a[1].parquet",
    "odd name/ä +%20.parquet",
    "folder.parquet/in.parquet",
)


@pytest.fixture(scope="module")
def planted(server, tmp_path_factory):
    """The same files in a bucket and in a folder."""
    filled, folder = Bucket(server), tmp_path_factory.mktemp("tree")
    for key in KEYS:
        filled.put(f"t/{key}", b"x")
        path = folder / "t" / key
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"x")
    return filled, folder


@pytest.fixture
def tree(planted, bucket):
    """The same, with what this process needs to read the bucket."""
    return planted


@pytest.mark.parametrize(
    "pattern",
    [
        "t",
        "t/x",
        "t/*.parquet",
        "t/**/*.parquet",
        "t/x/**",
        "**",
        "t/w?/*.parquet",
        "t/w[12]/*",
        "t/*/y/*",
        "**/y/**/b.parquet",
        "t/**/**/**/*.parquet",
        "t/.*",
        "t/x/.*/*.parquet",
        "t/**/.h/*",
        "t/no/**/*.parquet",
        "t/*/*/*",
        "t/odd name/*",
        "t/odd name/ä +%20.parquet",
        "t/**/folder.parquet/*",
    ],
)
def test_a_pattern_means_what_it_does_on_the_disk(tree, pattern):
    bucket, folder = tree

    def listed(prefix: str) -> list[str] | str:
        try:
            return [path.removeprefix(prefix) for path in list_files([f"{prefix}/{pattern}"])]
        except InputError as error:
            return str(error).replace(prefix, "")

    assert listed(bucket.url()) == listed(str(folder))


def test_each_file_is_listed_once_and_the_query_goes_with_it(tree):
    bucket, _ = tree
    folder, query = f"{bucket.url('t/x/y')}", "?region=us-east-1"
    assert list_files([folder + query, f"{folder}/*.parquet{query}"]) == (
        f"{folder}/a.parquet{query}",
        f"{folder}/z/b.parquet{query}",
    )


@pytest.fixture
def twins(bucket, tmp_path):
    """A corpus of two shards in row groups of 50, here and in a bucket."""
    for name, shard in (("in.parquet", table()), ("more.parquet", table(60, first=1000))):
        pq.write_table(shard, tmp_path / name, row_group_size=50)
        bucket.put(f"corpus/{name}", (tmp_path / name).read_bytes())
    return CorpusConfig((str(tmp_path),)), CorpusConfig((bucket.url("corpus"),))


def test_a_corpus_is_the_one_of_the_disk(twins):
    here, elsewhere = map(open_corpus, twins)
    assert here.fingerprint == elsewhere.fingerprint and len(elsewhere) == 300
    assert here.metadata.equals(elsewhere.metadata) and np.array_equal(here.source_row, elsewhere.source_row)
    assert [Address.parse(file).name for file in elsewhere.provenance.files] == ["in.parquet", "more.parquet"]


def test_a_sample_of_it_is_the_same_sample(twins):
    here, elsewhere = (open_corpus(CorpusConfig(config.inputs, rows=77, seed=3)) for config in twins)
    assert here.fingerprint == elsewhere.fingerprint and here.ids.equals(elsewhere.ids)


def test_looks_see_the_same(twins):
    here, elsewhere = map(inspect_inputs, twins)
    assert (here.rows, here.bytes, here.dim, here.columns) == (
        elsewhere.rows,
        elsewhere.bytes,
        elsewhere.dim,
        elsewhere.columns,
    )
    here, elsewhere = map(first_look, twins)
    assert here.sample.fingerprint == elsewhere.sample.fingerprint and here.label == elsewhere.label


def test_needed_columns_and_row_groups_alone_are_fetched(bucket, monkeypatch):
    rng = np.random.default_rng(1)
    rows = pa.table({"id": np.arange(4000), "wide": [rng.bytes(500) for _ in range(4000)], "q": rng.normal(size=4000)})
    address = bucket.put("wide.parquet", rows, row_group_size=1000)
    fetched = []
    piece = RemoteFile._piece

    def counting(self, offset, count):
        content = piece(self, offset, count)
        fetched.append(len(content))
        return content

    monkeypatch.setattr(RemoteFile, "_piece", counting)
    with parquet.open_parquet(address) as file:
        footer = file.metadata
    looked, fetched[:] = sum(fetched), []
    with parquet.open_parquet(address, footer, columns=["id", "q"]) as file:
        read = pa.Table.from_batches(parquet.read_batches(address, file, columns=["id", "q"], groups=[1, 2]))
    assert read.equals(rows.select(["id", "q"]).slice(1000, 2000))
    chunks = [footer.row_group(group).column(place).total_compressed_size for group in (1, 2) for place in (0, 2)]
    assert sum(fetched) == sum(chunks) and looked <= 1 << 16 and sum(fetched) < looked + 0.1 * len(rows) * 500


def test_a_footer_beyond_all_measure_is_not_fetched(bucket, monkeypatch):
    monkeypatch.setattr(parquet, "MOST_FOOTER", 1 << 20)
    length = 3 << 20
    address = bucket.put("a.parquet", b"PAR1" + bytes(length) + length.to_bytes(4, "little") + b"PAR1")
    fetched = []
    piece = RemoteFile._piece
    monkeypatch.setattr(RemoteFile, "_piece", lambda self, *part: fetched.append(part[1]) or piece(self, *part))
    with pytest.raises(InputError, match=r"a\.parquet has a footer of 3 MiB, and footers may have 1 MiB;"):
        open_corpus(CorpusConfig((address,)))
    assert sum(fetched) <= 1 << 16


def test_long_texts_elsewhere_have_a_reservation_for_their_pages(bucket, monkeypatch):
    ledger = own_ledger(monkeypatch, Ledger(lambda: 1 << 30))
    asked = []
    reserve = Ledger.reserve
    monkeypatch.setattr(Ledger, "reserve", lambda *given, **named: asked.append(given[1:3]) or reserve(*given, **named))
    texts = pa.table({"text": [str(k) + "z" * (1 << 20) for k in range(16)]})
    address = bucket.put("a.parquet", texts, compression="zstd", dictionary_pagesize_limit=1 << 28)
    with parquet.open_parquet(address) as file:
        read = pa.Table.from_batches(parquet.read_batches(address, file))
    assert read.equals(texts) and ledger.free() == ledger.total()
    [needed] = [nbytes for nbytes, what in asked if what == "Reading a.parquet"]
    assert 32 << 20 <= needed < 33 << 20


def test_what_comes_from_elsewhere_is_validated(bucket):
    columns = {
        "id": pa.array([b"a", b"\xff", b"c"]).view(pa.string()),
        "quality": [1.0, 2.0, 3.0],
        "features": [[1.0]] * 3,
    }
    garbled = bucket.put("garbled.parquet", pa.table(columns))
    with pytest.raises(InputError, match=r"s3://.*garbled.parquet is damaged.*UTF-?8"):
        open_corpus(CorpusConfig((garbled,)))
    sink = pa.BufferOutputStream()
    pq.write_table(table(), sink)
    short = bucket.put("short.parquet", sink.getvalue().to_pybytes()[:-20])
    with pytest.raises(InputError, match=r"short.parquet is not a parquet file, or was cut short"):
        open_corpus(CorpusConfig((short,)))
    with pytest.raises(InputError, match=r"empty.parquet is empty \(0 bytes\)"):
        open_corpus(CorpusConfig((bucket.put("empty.parquet", b""),)))


def test_every_format_is_read_from_elsewhere(bucket, tmp_path):
    shard = table(100)
    rows = [{**row, "feature_arr": list(row["feature_arr"])} for row in shard.to_pylist()]
    lines = "".join(f"{json.dumps(row)}\n" for row in rows).encode()
    flat = pa.table(
        {
            **{name: shard[name] for name in shard.column_names[:2]},
            "feature_arr": [json.dumps(row["feature_arr"]) for row in rows],
        }
    )
    pa.csv.write_csv(flat, tmp_path / "rows.csv")
    contents = {
        "rows.jsonl": lines,
        "rows.jsonl.gz": gzip.compress(lines),
        "rows.csv": (tmp_path / "rows.csv").read_bytes(),
    }
    for name, content in contents.items():
        (tmp_path / name).write_bytes(content)
        here, elsewhere = (
            open_corpus(CorpusConfig((path,))) for path in (str(tmp_path / name), bucket.put(name, content))
        )
        assert here.fingerprint == elsewhere.fingerprint and len(here) == 100


def test_features_beside_the_ids_are_joined(bucket):
    shard = table(80)
    config = CorpusConfig(
        (bucket.put("ids.parquet", shard.drop_columns(["feature_arr"])),),
        features=(bucket.put("features.parquet", shard.select(["chunk_id", "feature_arr"]).slice(0, 70)),),
        drop_invalid=True,
    )
    joined = open_corpus(config)
    assert joined.ids.to_pylist() == list(range(70))


def test_texts_are_prepared_from_elsewhere(bucket, tmp_path):
    words = np.array(["alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta", "iota", "kappa"])
    rng = np.random.default_rng(0)
    for name in ("one", "two"):
        rows = [" ".join(rng.choice(words, 30)) for _ in range(40)]
        bucket.put(f"texts/{name}.parquet", pa.table({"text": rows}))
    report = prepare_shards([bucket.url("texts")], tmp_path / "out", text_column="text", dim=4)
    assert report["rows"] == 80
    made = pq.read_table(tmp_path / "out" / "two.parquet")
    assert made["chunk_id"][0].as_py() == "two:0"


def test_an_object_written_anew_is_another_corpus(bucket):
    address = bucket.put("shard.parquet", table())
    before = file_stamps([address])
    corpora = SharedCorpora()
    first = corpora.get(CorpusConfig((address,)))
    assert corpora.get(CorpusConfig((address,))) is first
    other = table().set_column(1, "quality_score", pa.array(table()["quality_score"].to_numpy() + 1))
    bucket.put("shard.parquet", other)
    assert file_stamps([address]) != before and file_stamps([address])[0][0] > 0
    assert corpora.get(CorpusConfig((address,))).fingerprint != first.fingerprint


def test_what_is_not_there_is_said_by_the_option(bucket):
    bucket.put("texts/b.txt", b"x")
    for text, words in (
        (bucket.url("no.parquet"), "does not exist"),
        ("s3://no-such-bucket-anywhere/x.parquet", "does not exist"),
        (bucket.url("no/*.parquet"), "matches no file"),
        (bucket.url("texts"), "is a folder without any file to read"),
    ):
        with pytest.raises(InputError, match=re.escape(f"--input {text} {words}")):
            list_files([text])
    assert file_stamps([bucket.url("no.parquet")])[0].errno == errno.ENOENT


def test_endpoint_region_and_account_may_stand_in_the_query(bucket, monkeypatch):
    address = bucket.put("open/shard.parquet", table())
    bucket.client.put_object_acl(Bucket=bucket.name, Key="open/shard.parquet", ACL="public-read")
    for name in environment(bucket.port):
        monkeypatch.delenv(name)
    query = f"endpoint_override=127.0.0.1:{bucket.port}&scheme=http&region=eu-west-1&anonymous=true"
    corpus = open_corpus(CorpusConfig((f"{address}?{query}",)))
    assert len(corpus) == 240 and corpus.provenance.files == (f"{address}?{query}",)
    bucket.put("shut/shard.parquet", table())
    with pytest.raises(RemoteError, match=r"shut/shard.parquet.*access is refused .*AWS_ACCESS_KEY_ID"):
        open_corpus(CorpusConfig((f"{bucket.url('shut/shard.parquet')}?{query}",)))
