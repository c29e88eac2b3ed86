"""What an opening reserves: enough for what it takes, kept by the open corpus, waited for, refused in a sentence."""

from __future__ import annotations

import gc
import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from datamask.cli import main
from datamask.config import CorpusConfig
from datamask.corpus import first_look, open_corpus
from datamask.corpus import shared_corpora as shared_module
from datamask.corpus.readers import parquet
from datamask.corpus.shared_corpora import SharedCorpora
from datamask.errors import InputError, NoRoomError
from datamask.work import ledger as module
from datamask.work.ledger import Ledger
from tests.making.control_groups import own_ledger

MIB = 1 << 20


def shard(path: Path, n: int, dim: int = 4, dictionaries: Sequence[str] = ("notes", "text"), **columns) -> CorpusConfig:
    """A shard whose notes and texts stand once in their dictionary however often they are repeated.

    Texts lie in a file once they are read, notes, like any other column, in memory.
    """
    rng = np.random.default_rng(0)
    features = pa.FixedSizeListArray.from_arrays(pa.array(rng.normal(size=dim * n).astype(np.float32)), dim)
    table = {"chunk_id": [f"r{k}" for k in range(n)], "quality_score": rng.normal(size=n), "feature_arr": features}
    pq.write_table(
        pa.table(table | columns),
        path,
        compression="zstd",
        store_schema=False,
        use_dictionary=list(dictionaries),
        dictionary_pagesize_limit=1 << 28,
    )
    return CorpusConfig((str(path),))


def texts(n: int, nbytes: int) -> pa.Array:
    """The same long text n times."""
    return pa.DictionaryArray.from_arrays(pa.array(np.zeros(n, np.int32)), pa.array(["z" * nbytes]))


def test_the_open_corpus_keeps_what_it_holds_and_no_longer_than_it_lives(tmp_path, monkeypatch):
    ledger = own_ledger(monkeypatch, Ledger(lambda: 1 << 30))
    corpus = open_corpus(shard(tmp_path / "a.parquet", 500, notes=texts(500, 1000)))
    assert corpus.nbytes > 500 * 1000 and ledger.free() == ledger.total() - corpus.nbytes
    look = first_look(corpus.provenance.config)
    assert ledger.free() == ledger.total() - corpus.nbytes - look.sample.nbytes
    del corpus, look
    gc.collect()
    assert ledger.free() == ledger.total()


def test_one_that_fails_holds_nothing(tmp_path, monkeypatch):
    ledger = own_ledger(monkeypatch, Ledger(lambda: 1 << 30))
    config = shard(tmp_path / "a.parquet", 20, chunk_id=["same"] * 20)
    with pytest.raises(InputError, match="more than once"):
        open_corpus(config)
    assert ledger.free() == ledger.total()


def test_it_waits_for_what_others_hold_and_reads_anew_what_outgrew_its_files(tmp_path, monkeypatch):
    """The file says some kilobytes, the texts decode to 100 MiB: that shows while others hold the memory."""
    ledger = own_ledger(monkeypatch, Ledger(lambda: 256 * MIB))
    config = shard(tmp_path / "a.parquet", 400, notes=texts(400, MIB // 4))
    other = ledger.reserve(150 * MIB, "Other work")
    waiting = threading.Event()
    refusal = Ledger._wait
    monkeypatch.setattr(Ledger, "_wait", lambda *arguments: waiting.set() or refusal(*arguments))
    answers: list[object] = []
    thread = threading.Thread(target=lambda: answers.append(open_corpus(config)))
    thread.start()
    assert waiting.wait(60.0) and not answers
    other.release()
    thread.join(60.0)
    assert len(answers) == 1 and len(answers[0]) == 400


def test_after_a_while_it_is_refused_in_one_sentence_and_holds_nothing(tmp_path, monkeypatch):
    ledger = own_ledger(monkeypatch, Ledger(lambda: 256 * MIB))
    monkeypatch.setattr(module, "WAIT_SECONDS", 0.2)
    config = shard(tmp_path / "a.parquet", 400, notes=texts(400, MIB // 4))
    with ledger.reserve(150 * MIB, "Other work"):
        with pytest.raises(NoRoomError) as refusal:
            open_corpus(config)
        assert ledger.free() == 106 * MIB
    sentence = str(refusal.value)
    assert sentence.startswith("Opening a.parquet needs ") and str(tmp_path) not in sentence
    assert "of the 0.25 GiB that this process may use are free; take a sample (--rows), or try again" in sentence
    assert len(open_corpus(config)) == 400, "nothing is wrong with the file"


def test_what_was_read_is_let_go_of_without_the_garbage_collector(tmp_path, monkeypatch):
    """A server sets most objects aside from collections, so errors must not keep their frames in circles."""
    ledger = own_ledger(monkeypatch, Ledger(lambda: 256 * MIB))
    monkeypatch.setattr(module, "WAIT_SECONDS", 0.2)
    config, pool = shard(tmp_path / "a.parquet", 400, notes=texts(400, MIB // 4)), pa.system_memory_pool()
    monkeypatch.setattr(module, "collect", lambda: None)
    before = pool.bytes_allocated()
    gc.disable()
    try:
        with ledger.reserve(150 * MIB, "Other work"), pytest.raises(NoRoomError) as refusal:
            SharedCorpora().get(config)
        assert pool.bytes_allocated() - before < MIB
        del refusal
    finally:
        gc.enable()


def test_select_reads_the_columns_that_it_goes_by_and_no_texts(tmp_path, monkeypatch, capsys):
    own_ledger(monkeypatch, Ledger(lambda: 256 * MIB))
    read, reader = [], parquet.read_batches

    def reads(path, file, *, columns=None, **options):
        read.append(columns)
        return reader(path, file, columns=columns, **options)

    monkeypatch.setattr(parquet, "read_batches", reads)
    tags = pa.array(["a", "b"] * 1_000)
    (source,) = shard(tmp_path / "a.parquet", 2_000, text=texts(2_000, MIB // 4), tag=tags, other=tags).inputs
    words = ["--objective", "pairwise", "--select_ratio", "0.01", "--n_epochs", "20", "--runs-dir", str(tmp_path / "r")]
    assert main(["select", source, *words, "--quota", "tag=a:0.2:0.4", "--output", str(tmp_path / "o.parquet")]) == 0
    assert pq.read_table(tmp_path / "o.parquet").num_rows == 20
    named = {name for columns in read for name in columns or ()}
    assert named == {"chunk_id", "quality_score", "feature_arr", "tag"}
    assert main(["select", source, *words, "--quota", "tags=a:0.2:0.4", "--output", str(tmp_path / "p.parquet")]) == 2
    assert "no column 'tags'; it has text, tag, other" in capsys.readouterr().err


def test_small_ones_are_opened_while_large_ones_fill_the_memory(tmp_path, monkeypatch):
    ledger = own_ledger(monkeypatch, Ledger(lambda: 512 * MIB))
    monkeypatch.setattr(module, "WAIT_SECONDS", 0.2)
    bombs = [shard(tmp_path / f"{k}.parquet", 600, notes=texts(600, MIB // 4)) for k in range(6)]
    small = shard(tmp_path / "small.parquet", 50)
    kept, refused = [], []

    def visit(config: CorpusConfig) -> None:
        try:
            kept.append(open_corpus(config))
        except NoRoomError as error:
            refused.append(str(error))

    visitors = [threading.Thread(target=visit, args=(config,)) for config in bombs]
    for visitor in visitors:
        visitor.start()
    while any(visitor.is_alive() for visitor in visitors):
        assert len(open_corpus(small)) == 50 and ledger.free() >= 0
    assert 1 <= len(kept) <= 3 and len(kept) + len(refused) == 6, refused


def test_an_idle_corpus_goes_where_memory_is_short(tmp_path, monkeypatch):
    own_ledger(monkeypatch, Ledger(lambda: 256 * MIB))
    monkeypatch.setattr(module, "WAIT_SECONDS", 0.2)
    shared = SharedCorpora()
    first, second = (shard(tmp_path / f"{k}.parquet", 600, notes=texts(600, MIB // 4)) for k in "ab")
    shared.get(first)
    with pytest.raises(NoRoomError):
        shared.get(second)
    assert shared.holds(first), "asked for just now"
    monkeypatch.setattr(shared_module, "IDLE_SECONDS", 0.0)
    shared.get(second)
    assert shared.holds(second) and not shared.holds(first)


PEAK = """
import sys
from datamask.config import CorpusConfig
from datamask.corpus import open_corpus
from datamask.work.ledger import Ledger, ledger

def peak():
    return 1024 * int(next(line for line in open("/proc/self/status") if line.startswith("VmHWM")).split()[1])

open_corpus(CorpusConfig((sys.argv[1],), drop_invalid=True))
most, take = 0, Ledger.take

def taken(self, account, nbytes):
    global most
    answer = take(self, account, nbytes)
    most = max(most, self.total() - self.free())
    return answer

Ledger.take = taken
before = peak()
corpus = open_corpus(CorpusConfig((sys.argv[2],), drop_invalid=True))
print(peak() - before, most, corpus.nbytes)
"""


def large(path: Path, kind: str) -> CorpusConfig:
    """A file that takes far more memory than it says, by one of its columns."""
    n = 600
    match kind:
        case "texts":
            return shard(path, n, notes=texts(n, MIB // 2))
        case "texts and invalid rows":
            return shard(path, n, notes=texts(n, MIB // 2), quality_score=[None, *range(1, n)])
        case "texts in other types":
            shard(path.with_name("b.parquet"), 2, notes=pa.array(["a", "b"], pa.large_string()), chunk_id=["x", "y"])
            pq.write_table(
                pq.read_table(path.with_name("b.parquet")).append_column(
                    "more", pa.array(["a", "b"], pa.large_string())
                ),
                path.with_name("b.parquet"),
            )
            table = pq.read_table(shard(path, n).inputs[0]).append_column("more", texts(n, MIB // 2))
            pq.write_table(table, path, compression="zstd", dictionary_pagesize_limit=1 << 28)
            return CorpusConfig((str(path.parent),))
        case "ids":
            return shard(path, n, chunk_id=["i" * (MIB // 8) + str(k) for k in range(n)])
        case "plain texts":
            return shard(path, n, dictionaries=(), notes=[str(k) + "z" * (MIB // 8) for k in range(n)])
        case "distinct texts":
            return shard(path, n, notes=[str(k) + "z" * (MIB // 8) for k in range(n)])
        case "distinct ids":
            return shard(path, n, dictionaries=["chunk_id"], chunk_id=[str(k) + "z" * (MIB // 8) for k in range(n)])
        case "one id":
            return shard(path, n, chunk_id=["i" * (32 * MIB), *(str(k) for k in range(1, n))])
        case _:
            return shard(path, 2_048, dim=20_000)


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="reads Linux's own account of peak memory")
@pytest.mark.parametrize(
    "kind",
    [
        "texts",
        "texts and invalid rows",
        "texts in other types",
        "plain texts",
        "distinct texts",
        "distinct ids",
        "ids",
        "one id",
        "features",
    ],
)
def test_the_peak_stays_within_what_was_reserved(tmp_path, kind):
    (tmp_path / "in").mkdir()
    small, config = shard(tmp_path / "small.parquet", 50), large(tmp_path / "in" / "a.parquet", kind)
    out = subprocess.run(
        [sys.executable, "-c", PEAK, small.inputs[0], config.inputs[0]], capture_output=True, text=True, check=True
    )
    peak, reserved, held = map(int, out.stdout.split())
    assert held > 64 * MIB or kind == "one id"
    assert peak <= reserved + 16 * MIB  # what the system's allocator and the interpreter keep


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="reads Linux's own account of peak memory")
def test_texts_take_no_memory_that_counts(tmp_path):
    """512 MiB of texts, of a file of some kilobytes, a row of it dropped: the peak is that of the same rows alone."""
    n, peaks, held = 1_000, {}, {}
    small = shard(tmp_path / "small.parquet", 50).inputs[0]
    for name, columns in {"without": {}, "with": {"text": texts(n, MIB // 2)}}.items():
        path = shard(tmp_path / f"{name}.parquet", n, quality_score=[None, *range(1, n)], **columns).inputs[0]
        out = subprocess.run([sys.executable, "-c", PEAK, small, path], capture_output=True, text=True, check=True)
        peaks[name], _, held[name] = map(int, out.stdout.split())
    assert peaks["with"] <= peaks["without"] + 128 * MIB and held["with"] == held["without"]
