"""Scratch: every usable row once, in input order, as the shards have it; written by shards, whole or not at all."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import textwrap

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from datamask.config import CorpusConfig, QualityColumn
from datamask.corpus import open_corpus
from datamask.corpus.sampling import row_hash
from datamask.errors import InputError, OptionError, Stopped, StoreError
from datamask.files import replacing
from datamask.out_of_core import scratch as scratches
from datamask.out_of_core import scratch_writing
from datamask.out_of_core.scratch import RECORD, open_scratch, remove_scratch, scratch_bytes, scratch_folder
from datamask.out_of_core.scratch_writing import write_scratch
from datamask.out_of_core.whole_corpus import WholeCorpus
from datamask.recipes.quality import FrozenQuality
from datamask.work.context import Work
from tests.making.derivable_runs import shard
from tests.making.run_folders import ROOT, wait_for

COUNTS = (300, 1, 0, 20_000, 77)


@pytest.fixture
def folder(tmp_path):
    """Shards of very different size, one of them empty."""
    place = tmp_path / "shards"
    place.mkdir()
    for number, rows in enumerate(COUNTS):
        pq.write_table(shard(rows, seed=number), place / f"{number}.parquet")
    return place


def _whole(folder, **options) -> WholeCorpus:
    return WholeCorpus.open(CorpusConfig((str(folder),), **options))


def test_it_holds_every_row_as_opening_reads_it(folder, tmp_path):
    corpus = open_corpus(CorpusConfig((str(folder),)))
    written = write_scratch(_whole(folder), tmp_path / "scratch")
    assert not {"quality", "id_hash"} & set(vars(written)), "16 bytes a row that a solver may not want"
    scratch = open_scratch(tmp_path / "scratch")
    assert (scratch.rows, scratch.dim) == (len(corpus), corpus.dim)
    assert scratch.starts.tolist() == np.cumsum([0, *COUNTS]).tolist()
    assert np.array_equal(scratch.quality, corpus.quality)
    assert np.array_equal(scratch.id_hash, row_hash(corpus.ids, 0))
    assert np.array_equal(scratch.lengths(0, scratch.rows), corpus.lengths)
    # float16 has 11 bits
    assert np.abs(scratch.features(0, scratch.rows) - corpus.features).max() <= 2.0**-11
    norms = np.linalg.norm(scratch.features(0, scratch.rows).astype(np.float64), axis=1)
    assert np.abs(norms - 1).max() <= 1e-6
    shards, inside = scratch.place(np.arange(scratch.rows))
    assert np.array_equal(shards, corpus.source_file) and np.array_equal(inside, corpus.source_row)
    for number in range(len(COUNTS)):
        assert np.array_equal(
            scratch.find(number, np.arange(COUNTS[number])), scratch.starts[number] + np.arange(COUNTS[number])
        )


def test_what_it_holds_opens_as_a_corpus_with_the_same_features(folder, tmp_path):
    """Rounded once, the features are what they are: opened in memory they are the same numbers."""
    scratch = write_scratch(_whole(folder), tmp_path / "scratch")
    kept = np.concatenate([np.fromfile(path, np.float16) for path in sorted(scratch.folder.glob("*.features"))])
    table = pa.table(
        {
            "id": np.arange(scratch.rows),
            "quality": scratch.quality,
            "features": pa.FixedSizeListArray.from_arrays(pa.array(kept), scratch.dim),
        }
    )
    pq.write_table(table, tmp_path / "again.parquet")
    again = open_corpus(CorpusConfig((str(tmp_path / "again.parquet"),)))
    assert np.abs(again.features - scratch.features(0, scratch.rows)).max() <= 2e-7


def test_any_range_and_any_rising_rows_are_those_of_the_whole(folder, tmp_path):
    scratch = write_scratch(_whole(folder), tmp_path / "scratch")
    whole, rng = scratch.features(0, scratch.rows), np.random.default_rng(0)
    for low, high in [(0, 0), (300, 301), (299, 303), (scratch.rows, scratch.rows), (250, scratch.rows - 3)]:
        assert np.array_equal(scratch.features(low, high), whole[low:high])
        assert np.array_equal(scratch.lengths(low, high), scratch.lengths(0, scratch.rows)[low:high])
    for count in (0, 1, 50, scratch.rows):
        rows = np.sort(rng.choice(scratch.rows, count, replace=False))
        assert np.array_equal(scratch.rows_at(rows), whole[rows])
    for refused in (lambda: scratch.features(0, scratch.rows + 1), lambda: scratch.rows_at(np.array([3, 2]))):
        with pytest.raises(IndexError):
            refused()


def _with_bad_rows(folder):
    """Two rows that cannot be used, for two reasons; one row has both."""
    table = pq.read_table(folder / "0.parquet")
    quality, features = table["quality_score"].to_numpy().copy(), np.stack(table["feature_arr"].to_numpy())
    quality[[5, 9]], features[9] = np.nan, 0.0
    features = pa.FixedSizeListArray.from_arrays(pa.array(features.ravel()), features.shape[1])
    table = table.set_column(table.schema.get_field_index("quality_score"), "quality_score", pa.array(quality))
    pq.write_table(
        table.set_column(table.schema.get_field_index("feature_arr"), "feature_arr", features), folder / "0.parquet"
    )


def test_rows_that_cannot_be_used_are_refused_or_counted_as_opening_does(folder, tmp_path):
    _with_bad_rows(folder)
    with pytest.raises(InputError, match=r"0.parquet row [59] has .*--drop_invalid"):
        write_scratch(_whole(folder), tmp_path / "scratch")
    scratch = write_scratch(_whole(folder, drop_invalid=True), tmp_path / "scratch")
    corpus = open_corpus(CorpusConfig((str(folder),), drop_invalid=True))
    assert scratch.rows == len(corpus) == sum(COUNTS) - 2 == int(scratch.starts[-1])
    assert sum(scratch.dropped.values()) == 2 and scratch.dropped == corpus.provenance.dropped
    assert np.array_equal(scratch.place(np.arange(scratch.rows))[1], corpus.source_row)
    assert scratch.find(0, np.array([4, 5, 6])).tolist() == [4, -1, 5]


def test_repeated_ids_are_refused_by_what_they_are_not_by_their_hash(folder, tmp_path, monkeypatch):
    again = pq.read_table(folder / "3.parquet").slice(17, 2)
    pq.write_table(pa.concat_tables([pq.read_table(folder / "4.parquet"), again]), folder / "4.parquet")
    with pytest.raises(InputError, match=r"'id' holds 2 ids more than once.*3.parquet row 17 and .*4.parquet row 77"):
        write_scratch(_whole(folder), tmp_path / "scratch")
    with pytest.raises(StoreError, match="not finished"):
        open_scratch(tmp_path / "scratch")
    pq.write_table(shard(77, seed=4), folder / "4.parquet")
    # ids whose hashes are equal by chance are two ids
    monkeypatch.setattr(scratches, "row_hash", lambda ids, seed: row_hash(ids, seed) & np.uint64(0xFF))
    assert write_scratch(_whole(folder), tmp_path / "other").rows == sum(COUNTS)


def test_shards_without_two_usable_rows_are_refused(tmp_path):
    pq.write_table(shard(1), tmp_path / "one.parquet")
    with pytest.raises(InputError, match="1 of the 1 rows can be used"):
        write_scratch(_whole(tmp_path / "one.parquet"), tmp_path / "scratch")


def test_quality_center_and_side_shards(folder, tmp_path):
    """Transforms and the center are the sample's; features of other shards are not joined here."""
    frozen = (FrozenQuality("quality_score", 2.0, "z", 0.25, 0.5), FrozenQuality("edu", -1.0))
    center = np.linspace(-0.2, 0.3, 6)
    columns = (QualityColumn("quality_score", 2.0, "z"), QualityColumn("edu", -1.0))
    config = CorpusConfig((str(folder),), quality_columns=columns)
    scratch = write_scratch(WholeCorpus.open(config, quality=frozen, center=center), tmp_path / "scratch")
    table = pq.read_table(folder)
    q = 2.0 * (table["quality_score"].to_numpy() - 0.25) / 0.5 - table["edu"].to_numpy()
    assert np.allclose(scratch.quality, q, rtol=0, atol=1e-12)
    x = np.stack(table["feature_arr"].to_numpy()).astype(np.float64) - center
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    assert np.abs(scratch.features(0, scratch.rows) - x).max() <= 2.0**-11
    with pytest.raises(ValueError, match="transformed"):
        WholeCorpus.open(config)
    with pytest.raises(OptionError, match="put rows together in memory"):
        WholeCorpus.open(CorpusConfig((str(folder),), scores=(str(folder),)))


# -- written once, whole or not at all ---------------------------------------------------------------------------------


def _times(folder) -> dict[str, int]:
    return {path.name: path.stat().st_mtime_ns for path in folder.iterdir()}


def test_what_is_there_is_not_read_again_and_what_changed_is(folder, tmp_path):
    place = tmp_path / "scratch"
    first = write_scratch(_whole(folder), place)
    before = _times(place)
    assert write_scratch(_whole(folder), place).digest == first.digest and _times(place) == before
    pq.write_table(shard(30, seed=9), folder / "4.parquet")
    (place / "000001.quality").write_bytes(b"short")
    (place / "000000.length").unlink()
    again = write_scratch(_whole(folder), place)
    changed = {name for name, when in _times(place).items() if when != before.get(name)}
    assert {name.split(".")[0] for name in changed} == {"000000", "000001", "000004", "scratch"}
    assert again.rows == sum(COUNTS) - 77 + 30 and again.digest != first.digest
    assert np.array_equal(again.quality, open_corpus(CorpusConfig((str(folder),))).quality)
    settings = WholeCorpus.open(CorpusConfig((str(folder),)), center=np.full(6, 0.1))
    assert write_scratch(settings, place).digest != again.digest


def test_a_first_pass_that_was_killed_repeats_only_the_shards_in_flight(folder, tmp_path):
    """Killed while it writes the largest shard: of the others nothing is written again, and the outcome is the same."""
    place = tmp_path / "scratch"
    script = textwrap.dedent(
        """
        import sys, time
        from datamask.config import CorpusConfig
        from datamask.out_of_core import scratch_writing
        from datamask.out_of_core.whole_corpus import WholeCorpus

        add = scratch_writing._add
        def slow(corpus, number, first, batch, sinks, note):
            if number == 3:
                time.sleep(600)
            return add(corpus, number, first, batch, sinks, note)
        scratch_writing._add = slow
        scratch_writing.write_scratch(WholeCorpus.open(CorpusConfig((sys.argv[1],))), sys.argv[2])
        """
    )
    child = subprocess.Popen([sys.executable, "-c", script, str(folder), str(place)], cwd=ROOT)
    try:
        done = [place / f"{number:06d}.json" for number in (0, 1, 2, *([4] if (os.cpu_count() or 1) > 1 else []))]
        wait_for(lambda: all(path.exists() for path in done))
    finally:
        child.send_signal(signal.SIGKILL)
        child.wait()
    assert not (place / "000003.json").exists()
    with pytest.raises(StoreError, match="there is no whole scratch"):
        open_scratch(place)
    before = _times(place)
    scratch = write_scratch(_whole(folder), place)
    after = _times(place)
    assert all(after[path.name] == before[path.name] for path in done)
    assert not [name for name in after if name.endswith(".part")]
    assert scratch.digest == write_scratch(_whole(folder), tmp_path / "other").digest
    assert np.array_equal(scratch.quality, open_corpus(CorpusConfig((str(folder),))).quality)


def test_stop_is_heard_and_what_was_written_stays(folder, tmp_path):
    with pytest.raises(Stopped):
        write_scratch(_whole(folder), tmp_path / "scratch", Work.of(lambda: True))
    assert not (tmp_path / "scratch" / "scratch.json").exists()
    assert write_scratch(_whole(folder), tmp_path / "scratch").rows == sum(COUNTS)


def test_a_folder_of_somebody_else_is_neither_written_nor_removed(folder, tmp_path):
    place = tmp_path / "mine"
    place.mkdir()
    (place / "letters.txt").write_text("dear")
    with pytest.raises(OptionError, match="holds something else"):
        write_scratch(_whole(folder), place)
    (place / "about.txt").write_text("a diary")
    mine = place.rename(tmp_path / "datamask-run-1")
    remove_scratch(mine, "run-1")
    assert (mine / "letters.txt").read_text() == "dear"
    scratch = scratch_folder("run-2", str(tmp_path))
    write_scratch(_whole(folder), scratch)
    remove_scratch(scratch, "run-1")
    (tmp_path / "datamask-run-1b").symlink_to(scratch)
    remove_scratch(tmp_path / "datamask-run-1b", "run-1b")
    assert (scratch / RECORD).is_file()
    remove_scratch(scratch, "run-2")
    assert not scratch.exists()
    remove_scratch(scratch, "run-2")
    scratch.mkdir()  # a removal that was cut off before its last step
    remove_scratch(scratch, "run-2")
    assert not scratch.exists()


def test_what_a_killed_writer_left_in_a_new_folder_is_no_reason_to_refuse_it(folder, tmp_path):
    (tmp_path / "scratch").mkdir()
    with replacing(tmp_path / "scratch" / "about.txt") as part:
        left = part.name
        part.write_text("")
    (tmp_path / "scratch" / "about.txt").unlink()
    (tmp_path / "scratch" / left).write_text("half")
    assert write_scratch(_whole(folder), tmp_path / "scratch").rows == sum(COUNTS)


def test_the_room_is_asked_for_before_anything_is_written(folder, tmp_path, monkeypatch):
    corpus = _whole(folder)
    needed = scratch_bytes(corpus.source.rows, 6, lengths=True)
    scratch = write_scratch(corpus, tmp_path / "scratch")
    raw = sum(path.stat().st_size for path in scratch.folder.iterdir() if path.suffix not in (".json", ".txt"))
    assert raw == needed
    free = type("Usage", (), {"free": needed - 1})
    monkeypatch.setattr(scratch_writing.shutil, "disk_usage", lambda place: free)
    with pytest.raises(OptionError, match=r"takes 0\.0 GB.*--scratch_dir"):
        write_scratch(corpus, tmp_path / "full")
    assert not list((tmp_path / "full").iterdir())
    assert write_scratch(corpus, tmp_path / "scratch").rows == scratch.rows, "what is there needs no room"


@pytest.mark.parametrize("kind", ["quality", "features", "source_row"])
def test_damaged_files_are_refused_in_a_sentence(folder, tmp_path, kind):
    scratch = write_scratch(_whole(folder), tmp_path / "scratch")
    path = scratch.folder / f"000003.{kind}"
    whole = path.read_bytes()
    use = {
        "quality": lambda: open_scratch(scratch.folder).quality,
        "features": lambda: (
            open_scratch(scratch.folder).features(0, 500),
            open_scratch(scratch.folder).rows_at(np.array([400])),
        ),
        "source_row": lambda: open_scratch(scratch.folder).place(np.array([400])),
    }[kind]
    use()
    path.write_bytes(whole[:100])
    with pytest.raises(StoreError, match=r"remove the folder"):
        use()
    path.write_bytes(b"\xff" * len(whole))
    with pytest.raises(StoreError, match=rf"has a 000003.{kind} with .*; remove the folder"):
        use()
    path.unlink()
    with pytest.raises(StoreError, match=rf"lacks 000003.{kind}"):
        use()
    (scratch.folder / "scratch.json").write_text(json.dumps({"format": "other"}))
    with pytest.raises(StoreError, match="is damaged"):
        open_scratch(scratch.folder)
