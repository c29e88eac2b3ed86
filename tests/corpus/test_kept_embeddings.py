"""prepare_shards by an embedder: what the shards say, and going on behind what an earlier call embedded."""

import errno
import json
import os
import signal
import subprocess
import sys
import time
from io import FileIO
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from datamask.config import CorpusConfig
from datamask.corpus import inspect_inputs, open_corpus
from datamask.corpus.embedders.contract import METADATA_KEY, unit_rows
from datamask.corpus.kept_embeddings import kept_embeddings
from datamask.corpus.preparation import prepare_shards
from datamask.errors import InputError, Stopped, StoreError
from datamask.work.context import Work

ROOT = Path(__file__).parents[2]


class Letters:
    """Counts letters, and how many texts it was given. Texts without any of them have no features."""

    kind, name, digest, dim, batch = "function", "letters", "0123456789abcdef" * 4, 4, 16

    def __init__(self):
        self.texts = 0

    def transform(self, texts):
        self.texts += len(texts)
        return unit_rows(np.array([[text.count(letter) for letter in "aeio"] for text in texts]))


@pytest.fixture
def source(tmp_path):
    texts = [f"a text about {'pear' * (k % 5)} and {'lion' * (k % 3)} {k}" for k in range(300)]
    texts[7], texts[200] = None, "xyz"
    pq.write_table(pa.table({"text": texts, "n": range(300)}), tmp_path / "in.parquet")
    return tmp_path / "in.parquet"


def stop_after(texts, embedder):
    return Work.of(lambda: embedder.texts >= texts)


def test_the_shards_say_what_embedded_them_and_so_does_the_corpus(source, tmp_path):
    said = prepare_shards([source], tmp_path / "out", embedder=Letters())
    table = pq.read_table(tmp_path / "out" / "in.parquet")
    assert b'"name": "letters"' in table.schema.metadata[METADATA_KEY]
    expected = unit_rows(np.array([[t.count(letter) for letter in "aeio"] for t in table["text"].to_pylist()]))
    np.testing.assert_allclose(np.array(table["feature_arr"].to_pylist()), expected, atol=1e-3)
    assert said["dropped"] == {"no text": 1, "no word that the embedder knows": 1}
    assert (said["embedder"], said["digest"], said["dim"], said["fitted_on"]) == ("letters", Letters.digest, 4, 0)
    config = CorpusConfig((str(tmp_path / "out"),))
    note = "Features by letters (function)."
    assert note in open_corpus(config).provenance.notes and note in inspect_inputs(config).notes
    # features that are kept stay that embedder's; prepared again by TF-IDF, they are no longer
    pq.write_table(table.drop_columns(["quality_score"]), tmp_path / "unscored.parquet")
    prepare_shards([tmp_path / "unscored.parquet"], tmp_path / "kept.parquet")
    assert pq.read_schema(tmp_path / "kept.parquet").metadata[METADATA_KEY] == table.schema.metadata[METADATA_KEY]
    again = table.drop_columns(["feature_arr"])
    pq.write_table(again, tmp_path / "again.parquet")
    prepare_shards([tmp_path / "again.parquet"], tmp_path / "tfidf.parquet", dim=3)
    notes = open_corpus(CorpusConfig((str(tmp_path / "tfidf.parquet"),))).provenance.notes
    assert "Features by TF-IDF (fitted on 298 texts)." in notes and note not in notes


@pytest.mark.parametrize("texts", [1, 100, 290])
def test_a_stopped_call_goes_on_behind_what_it_embedded(source, tmp_path, texts):
    prepare_shards([source], tmp_path / "whole.parquet", embedder=Letters())
    first, second = Letters(), Letters()
    with pytest.raises(Stopped, match=r"\d+ embeddings are kept, and the same command goes on"):
        prepare_shards([source], tmp_path / "out.parquet", embedder=first, work=stop_after(texts, first))
    assert (tmp_path / ".out.parquet.embeddings").is_file() and not (tmp_path / "out.parquet").exists()
    said = prepare_shards([source], tmp_path / "out.parquet", embedder=second)
    assert first.texts + second.texts == 299 and first.texts >= texts
    assert said["notes"][0] == f"{first.texts} texts were embedded before this command was last stopped."
    assert (tmp_path / "out.parquet").read_bytes() == (tmp_path / "whole.parquet").read_bytes()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in.parquet", "out.parquet", "whole.parquet"]


def test_other_batches_or_another_model_begin_anew(source, tmp_path):
    first = Letters()
    with pytest.raises(Stopped):
        prepare_shards([source], tmp_path / "out.parquet", embedder=first, work=stop_after(100, first))
    other = Letters()
    other.digest = "f" * 64
    prepare_shards([source], tmp_path / "out.parquet", embedder=other)
    assert other.texts == 299


@pytest.mark.parametrize("damage", [b"\x40", np.full(4, np.nan, np.float16).tobytes()], ids=["a byte", "NaN"])
def test_a_batch_whose_bytes_changed_is_embedded_again(source, tmp_path, damage):
    prepare_shards([source], tmp_path / "whole.parquet", embedder=Letters())
    first, second, kept = Letters(), Letters(), tmp_path / ".out.parquet.embeddings"
    with pytest.raises(Stopped):
        prepare_shards([source], tmp_path / "out.parquet", embedder=first, work=stop_after(100, first))
    data, place = kept.read_bytes(), kept.stat().st_size // 2
    kept.write_bytes(data[:place] + damage + data[place + len(damage) :])
    assert kept.read_bytes() != data
    prepare_shards([source], tmp_path / "out.parquet", embedder=second)
    assert second.texts == 299 - first.texts + 16
    assert (tmp_path / "out.parquet").read_bytes() == (tmp_path / "whole.parquet").read_bytes()


def test_a_text_of_the_same_size_and_time_is_embedded_again_with_its_batch(tmp_path):
    source, texts = tmp_path / "in.jsonl", [f"{k:03} pear" for k in range(300)]

    def write():
        source.write_text("".join(json.dumps({"id": k, "text": text}) + "\n" for k, text in enumerate(texts)))
        os.utime(source, (1e9, 1e9))

    write()
    first, second = Letters(), Letters()
    with pytest.raises(Stopped):
        prepare_shards([source], tmp_path / "out.parquet", embedder=first, work=stop_after(100, first))
    texts[20] = "020 aaaa"
    write()
    prepare_shards([source], tmp_path / "out.parquet", embedder=second)
    prepare_shards([source], tmp_path / "whole.parquet", embedder=Letters())
    assert second.texts == 300 - first.texts + 16
    assert (tmp_path / "out.parquet").read_bytes() == (tmp_path / "whole.parquet").read_bytes()


def test_another_function_of_the_same_module_begins_anew(source, tmp_path):
    first, other = Letters(), Letters()
    with pytest.raises(Stopped):
        prepare_shards([source], tmp_path / "out.parquet", embedder=first, work=stop_after(100, first))
    # the digest of a function is that of its module
    other.name = "other_letters"
    prepare_shards([source], tmp_path / "out.parquet", embedder=other)
    assert other.texts == 299


@pytest.mark.parametrize("end", [bytes(29), (1).to_bytes(4, "little") + bytes(19)], ids=["zeros", "torn"])
def test_a_torn_batch_and_zeros_at_the_end_are_embedded_again(tmp_path, end):
    target, texts = tmp_path / "out", ["a", "e", "i", "o"]
    with pytest.raises(ValueError), kept_embeddings(target, Letters()) as kept:
        kept.transform(texts)
        raise ValueError
    with (tmp_path / ".out.embeddings").open("ab") as file:
        file.write(end)
    with kept_embeddings(target, embedder := Letters()) as kept:
        np.testing.assert_allclose(kept.transform(texts), np.eye(4), atol=1e-3)
        np.testing.assert_allclose(kept.transform(["ae"]), unit_rows(np.array([[1, 1, 0, 0]])), atol=1e-3)
        assert kept.reused == 4 and kept.kept == 5
    assert embedder.texts == 1 and not (tmp_path / ".out.embeddings").exists()


def test_batches_of_another_length_are_embedded_again(tmp_path):
    with pytest.raises(ValueError), kept_embeddings(tmp_path / "out", Letters()) as kept:
        kept.transform(["a", "e"]), kept.transform(["i"])
        raise ValueError
    with kept_embeddings(tmp_path / "out", embedder := Letters()) as kept:
        for text in "aei":
            kept.transform([text])
    assert embedder.texts == 3


def test_a_second_stop_before_the_first_batch_keeps_what_is_there(tmp_path):
    target = tmp_path / "out"
    for texts in (["a"], []):
        with pytest.raises(ValueError), kept_embeddings(target, Letters()) as kept:
            if texts:
                kept.transform(texts)
            raise ValueError
    with kept_embeddings(target, embedder := Letters()) as kept:
        kept.transform(["a"])
    assert embedder.texts == 0


class Full(FileIO):
    """A file on a full disk."""

    def write(self, data):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_two_at_one_output_and_a_full_disk_are_sentences(tmp_path, monkeypatch):
    with (
        kept_embeddings(tmp_path / "out", Letters()),
        pytest.raises(InputError, match="another process prepares"),
        kept_embeddings(tmp_path / "out", Letters()),
    ):
        pass
    with (
        pytest.raises(StoreError, match="the embeddings cannot be kept next to the output: No space left"),
        kept_embeddings(tmp_path / "out", Letters()) as kept,
    ):
        monkeypatch.setattr(kept, "_file", Full(tmp_path / ".out.embeddings", "r+"))
        kept.transform(["a"])
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "columns, options, said",
    [
        ({"text": ["a"]}, {"dim": 3}, "--dim belongs to TF-IDF features; those by letters have 4 dimensions"),
        ({"text": ["a"], "feature_arr": [[1.0]]}, {}, "has features already .feature_arr.; leave out --embedder"),
        ({"text": ["xyz", "zyx"]}, {}, "no text has a word that the embedder knows"),
    ],
)
def test_what_does_not_go_with_an_embedder_is_refused(columns, options, said, tmp_path):
    pq.write_table(pa.table(columns), tmp_path / "in.parquet")
    with pytest.raises(InputError, match=said):
        prepare_shards([tmp_path / "in.parquet"], tmp_path / "out", embedder=Letters(), **options)
    assert [path.name for path in tmp_path.iterdir()] == ["in.parquet"]


SLOW = """
import pathlib, time
def embed(texts):
    time.sleep(0.02)
    with open("calls.txt", "a") as calls:
        calls.write(f"{len(texts)}\\n")
    return [[len(text), 1.0] for text in texts]
"""


@pytest.mark.parametrize("size", [2_000, 12_000, 24_000])
def test_a_killed_command_goes_on_behind_what_it_embedded(tmp_path, size):
    (tmp_path / "slow_embedder.py").write_text(SLOW)
    pq.write_table(pa.table({"text": [f"text {'x' * (k % 50)}" for k in range(6_400)]}), tmp_path / "in.parquet")
    command = [sys.executable, "-m", "datamask", "prepare", "in.parquet", "--output", "out.parquet"]
    command += ["--embedder", "slow_embedder:embed"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    killed = subprocess.Popen(command, cwd=tmp_path, env=environment, stderr=subprocess.DEVNULL)
    kept = tmp_path / ".out.parquet.embeddings"
    deadline = time.monotonic() + 120
    while (not kept.exists() or kept.stat().st_size < size) and time.monotonic() < deadline:
        time.sleep(0.01)
    killed.send_signal(signal.SIGKILL)
    killed.wait(60)
    assert not (tmp_path / "out.parquet").exists() and kept.stat().st_size >= size
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stderr
    # each process asks once for the width, and the call that was cut off is made again at most
    embedded = sum(int(line) for line in (tmp_path / "calls.txt").read_text().split()) - 2
    assert 6_400 <= embedded <= 6_400 + 64 and pq.read_metadata(tmp_path / "out.parquet").num_rows == 6_400
    assert "texts were embedded before this command was last stopped" in done.stderr
    left = {path.name for path in tmp_path.iterdir()} - {"__pycache__"}
    assert left == {"calls.txt", "in.parquet", "out.parquet", "slow_embedder.py"}
    killed_at = (tmp_path / "out.parquet").read_bytes()
    (tmp_path / "out.parquet").unlink()
    subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, timeout=240, check=True)
    assert (tmp_path / "out.parquet").read_bytes() == killed_at
