"""Runs on shards of a bucket: the ids of the same shards on the disk, gone on with, exported and checked again."""

from __future__ import annotations

import json
import os

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from datamask import open_corpus, select
from datamask.config import CorpusConfig, RunConfig, SelectionConfig
from datamask.corpus.shared_corpora import shared_corpora
from datamask.dashboard.data.openings import Openings
from datamask.dashboard.runs import provenance
from datamask.runs import whole
from datamask.runs.attempt import attempt
from datamask.runs.store import RunStore
from datamask.storage import patience
from datamask.storage.remote import RemoteFile
from datamask.work.context import Work
from tests.commands import FAST, last_json, run, table
from tests.storage.elsewhere import KEYS


@pytest.fixture
def folder(bucket, tmp_path, monkeypatch):
    """A folder to give commands in, with two shards, and the same shards in a bucket."""
    monkeypatch.chdir(tmp_path)
    # on tensors this small, two threads on a busy machine wait for each other a thousand times longer than they work
    monkeypatch.setattr(os, "cpu_count", lambda: 1)
    (tmp_path / "corpus").mkdir()
    for name, shard in (("in", table()), ("more", table(60, first=1000))):
        pq.write_table(shard, f"corpus/{name}.parquet", row_group_size=100)
        bucket.put(f"corpus/{name}.parquet", (tmp_path / "corpus" / f"{name}.parquet").read_bytes())
    return tmp_path


@pytest.fixture
def remote_run(folder, bucket, capsys):
    """A finished run on the bucket."""
    assert run("select", bucket.url("corpus"), "--output", "elsewhere.parquet", *FAST, "--json") == 0
    return RunStore("runs").get(last_json(capsys)["run_id"])


def test_the_same_ids_as_from_the_disk(remote_run, folder, bucket, capsys):
    assert run("select", "corpus", "--output", "here.parquet", *FAST) == 0
    here, elsewhere = (pq.read_table(f"{name}.parquet") for name in ("here", "elsewhere"))
    assert here["chunk_id"].equals(elsewhere["chunk_id"]) and here["logit"].equals(elsewhere["logit"])
    assert set(elsewhere["source_file"].to_pylist()) <= {
        bucket.url("corpus/in.parquet"),
        bucket.url("corpus/more.parquet"),
    }


def test_the_folder_records_addresses_and_no_credentials(remote_run, bucket):
    assert remote_run.config.corpus.inputs == (bucket.url("corpus"),)
    assert remote_run.facts()["files"] == [bucket.url("corpus/in.parquet"), bucket.url("corpus/more.parquet")]
    assert set(remote_run.facts()["contents"]) == set(remote_run.facts()["files"])
    for path in remote_run.path.rglob("*"):
        content = path.read_bytes() if path.is_file() else b""
        assert not any(secret.encode() in content for secret in KEYS.values() if len(secret) > 4)
    words = remote_run.config.arguments()
    assert words[:2] == ["select", bucket.url("corpus")]


def test_its_rows_are_exported_and_checked(remote_run, folder, bucket, capsys):
    assert run("runs", "export", remote_run.id, "--rows", "rows.parquet", "--mask", "masks") == 0
    rows = pq.read_table("rows.parquet")
    everything = pa.concat_tables([pq.read_table("corpus/in.parquet"), pq.read_table("corpus/more.parquet")])
    chosen = set(pq.read_table("elsewhere.parquet")["chunk_id"].to_pylist())
    assert rows.equals(everything.filter(pa.array([value.as_py() in chosen for value in everything["chunk_id"]])))
    masks = sorted(path.name for path in (folder / "masks").iterdir())
    assert masks == ["in.mask.parquet", "more.mask.parquet"]
    assert sum(sum(pq.read_table(f"masks/{name}")["selected"].to_pylist()) for name in masks) == len(chosen)


def test_rows_of_an_object_written_anew_are_refused(remote_run, folder, bucket, capsys):
    shard = table()
    bucket.put(
        "corpus/in.parquet", shard.set_column(1, "quality_score", pa.array(shard["quality_score"].to_numpy() + 1))
    )
    assert run("runs", "export", remote_run.id, "--rows", "rows.parquet") == 2
    assert f"{bucket.url('corpus/in.parquet')} has changed since the run" in capsys.readouterr().err
    bucket.client.delete_object(Bucket=bucket.name, Key="corpus/in.parquet")
    assert run("runs", "export", remote_run.id, "--rows", "rows.parquet") == 2
    assert f"{bucket.url('corpus/in.parquet')} is gone since the run" in capsys.readouterr().err
    assert not (folder / "rows.parquet").exists()


def test_a_stopped_run_reads_them_again_and_ends_in_the_same_ids(folder, bucket, monkeypatch):
    selection = SelectionConfig.from_options(estimator="counterfactual", n_epochs=20, n_rollout=16, device="cpu")
    config = RunConfig(CorpusConfig((bucket.url("corpus"),)), selection)
    whole, stopped = (RunStore("runs").create(config) for _ in range(2))
    assert attempt(whole, Work(threads=1)).status.state == "done"
    outcome = attempt(stopped, Work.of(lambda: len(stopped.metrics().get("step", ())) >= 5, threads=1))
    assert outcome.status.state == "stopped" and (stopped.path / "checkpoint.npz").exists()
    for known in (shared_corpora()._slots, shared_corpora()._alive):  # as in a process of its own
        known.clear()
    fetched = []
    monkeypatch.setattr(RemoteFile, "read", lambda *args, read=RemoteFile.read: fetched.append(1) or read(*args))
    assert attempt(stopped, Work(threads=1)).status.state == "done" and fetched
    assert stopped.selection().equals(whole.selection())


def test_an_object_written_anew_while_the_run_goes_on_is_noted(folder, bucket, capsys, monkeypatch):
    from datamask.runs import stages

    input_stamps = stages.input_stamps

    def rewriting(*args):
        stamps, shard = input_stamps(*args), table()
        bucket.put("corpus/in.parquet", shard.append_column("text", pa.array(["other"] * len(shard))))
        return stamps

    monkeypatch.setattr(stages, "input_stamps", rewriting)
    assert run("select", bucket.url("corpus"), "--output", "out.parquet", *FAST, "--json") == 0
    name = last_json(capsys)["run_id"]
    assert run("runs", "export", name, "--rows", "rows.parquet") == 2
    assert "has changed since the run: it was written anew" in capsys.readouterr().err


def test_a_recipe_of_a_bucket_applies_to_it_as_to_the_disk(folder, bucket, capsys):
    words = ("--objective", "pairwise", "--select_ratio", "0.2", "--device", "cpu")
    assert run("select", bucket.url("corpus"), "--output", "elsewhere.parquet", *words, "--json") == 0
    run_id = last_json(capsys)["run_id"]
    assert run("recipe", run_id, "--output", "recipe.json") == 0
    for place, corpus in (("elsewhere", bucket.url("corpus")), ("here", "corpus")):
        assert run("apply", "recipe.json", corpus, "--output", place, "--select_ratio", "0.3") == 0
    for name in ("in", "more"):
        here, elsewhere = (pq.read_table(folder / place / f"{name}.ids.parquet") for place in ("here", "elsewhere"))
        assert here.num_rows and here.drop_columns("source_file").equals(elsewhere.drop_columns("source_file"))
    before = (folder / "elsewhere" / "in.ids.parquet").stat().st_mtime_ns
    assert run("apply", "recipe.json", bucket.url("corpus"), "--output", "elsewhere", "--select_ratio", "0.3") == 0
    assert (folder / "elsewhere" / "in.ids.parquet").stat().st_mtime_ns == before


def test_from_python(folder, bucket):
    corpus = open_corpus(CorpusConfig((bucket.url("corpus"),)))
    chosen = select(corpus, objective="pairwise", select_ratio=0.1, runs_dir=folder / "runs")
    assert len(chosen.ids) == 30 and bucket.url("corpus") in chosen.show()


def test_no_output_goes_elsewhere(folder, bucket, capsys):
    assert run("select", "corpus", "--output", bucket.url("out.parquet"), *FAST) == 2
    assert "--output must be a file of this machine" in capsys.readouterr().err
    run_id = RunStore("runs").create(RunConfig(CorpusConfig(("corpus",)))).id
    assert run("runs", "export", run_id, "--rows", bucket.url("rows.parquet")) == 2
    assert "--rows must be on this machine" in capsys.readouterr().err
    assert run("prepare", "--text-column", "text", "corpus", "--output", bucket.url("prepared")) == 2
    assert "--output must be a file or folder of this machine" in capsys.readouterr().err
    assert not (folder / "s3:").exists()


# -- behind the page ---------------------------------------------------------------------------------------------------


def test_an_opening_that_fails_says_so_and_can_be_started_again(folder, bucket, proxy, monkeypatch):
    monkeypatch.setattr(patience, "FIRST_PAUSE", 0.01)
    monkeypatch.setenv("DATAMASK_REMOTE_TRIES", "2")
    openings = Openings(folder / "runs")
    proxy.arm("cut", 0)
    failed = openings.start(CorpusConfig((bucket.url("corpus"),)), "corpus")
    failed.wait(120)
    assert not failed.ready and "cannot be read: it breaks off while it sends" in str(failed.job.error)
    proxy.heal()
    again = openings.start(failed.config, "corpus")
    again.wait(120)
    assert again.ready and len(again.corpus) == 300
    notes = "".join(path.read_text() for path in openings.folder.glob("*.json"))
    assert bucket.url("corpus") in notes and KEYS["AWS_SECRET_ACCESS_KEY"] not in notes


def test_a_page_asks_no_store_what_there_is_to_export(remote_run, monkeypatch):
    def asked(*args, **more):
        raise AssertionError("a store was asked")

    monkeypatch.setattr("datamask.storage.remote.ask", asked)
    shards = provenance.shards(remote_run)
    assert shards.present and not shards.outside and shards.bytes > provenance.SMALL
    facts = json.dumps(provenance.table(remote_run).to_dict())
    assert remote_run.config.corpus.inputs[0] in facts


def test_all_rows_of_a_bucket_in_mapped_files_are_those_of_the_disk(folder, bucket, capsys):
    words = ("--objective", "pairwise", "--scratch-dir", "scratch", "--rows", "60", "--json")
    ids = {}
    for name, source in (("here", "corpus"), ("elsewhere", bucket.url("corpus"))):
        assert run("select", source, "--output", f"{name}.parquet", "--device", "cpu", *words) == 0
        done = RunStore("runs").get(last_json(capsys)["run_id"])
        ids[name] = pq.read_table(f"{name}.parquet")
        assert done.whole["shards"] == 2 and not list((folder / "scratch").iterdir())
    assert ids["here"]["chunk_id"].equals(ids["elsewhere"]["chunk_id"])
    assert set(ids["elsewhere"]["source_file"].to_pylist()) == {
        bucket.url("corpus/in.parquet"),
        bucket.url("corpus/more.parquet"),
    }
    assert run("runs", "export", done.id, "--mask", "masks") == 0
    masks = sum(sum(pq.read_table(path)["selected"].to_pylist()) for path in (folder / "masks").iterdir())
    assert masks == len(ids["elsewhere"])


def test_reading_all_rows_that_the_store_breaks_off_leaves_a_run_to_go_on_with(folder, bucket, proxy, monkeypatch):
    """Its sample was read; then the store breaks off, and comes back."""
    monkeypatch.setattr(patience, "FIRST_PAUSE", 0.01)
    monkeypatch.setenv("DATAMASK_REMOTE_TRIES", "2")
    selection = SelectionConfig.from_options(objective="pairwise", device="cpu", scratch_dir=str(folder / "scratch"))
    started = RunStore("runs").create(RunConfig(CorpusConfig((bucket.url("corpus"),), rows=60), selection))
    monkeypatch.setattr("datamask.storage.remote.TAIL_BYTES", 8)  # else these files are kept whole
    open_sample = whole.open_sample

    def breaking(*args):
        sample = open_sample(*args)
        proxy.arm("cut", 0)
        return sample

    with monkeypatch.context() as patched:
        patched.setattr(whole, "open_sample", breaking)
        failed = attempt(started)
    assert failed.status.state == "failed" and "breaks off" in failed.status.error and not failed.faulty
    proxy.heal()
    assert attempt(started).status.state == "done"
    assert started.status().to_dict()["summary"]["n"] == 300 and not list((folder / "scratch").iterdir())
