"""`select(..., runs_dir=...)`: the run of the command line, the selection of memory, and where to look at it."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from datamask import CorpusConfig, cli, open_corpus, select, server_note
from datamask.errors import InputError, OptionError, RunStateError, Stopped
from datamask.runs import exports
from datamask.runs.store import RunStore
from tests.commands import TINY
from tests.making.pools import made_corpus

OPTIONS = {"objective": "pairwise", "select_ratio": 0.1, "lamb": 0.3, "device": "cpu"}


@pytest.fixture(autouse=True)
def one_thread(monkeypatch):
    monkeypatch.setattr(os, "cpu_count", lambda: 1)


@pytest.fixture(scope="module")
def corpus():
    return open_corpus(CorpusConfig((TINY,)))


@pytest.mark.parametrize("estimator", ["auto", "counterfactual"])
def test_it_selects_what_memory_and_the_command_line_select(corpus, tmp_path, estimator):
    options = {**OPTIONS, "estimator": estimator} | ({"n_epochs": 12} if estimator != "auto" else {})
    kept = select(corpus, **options, runs_dir=tmp_path / "runs")
    in_memory = select(corpus, **options)
    assert kept.ids.equals(in_memory.ids) and kept.summary["joint"] == in_memory.summary["joint"]
    words = [word for name, value in options.items() for word in (f"--{name}", str(value))]
    out = tmp_path / "out.parquet"
    assert cli.main(["select", TINY, "--output", str(out), "--runs_dir", str(tmp_path / "others"), *words]) == 0
    assert pq.read_table(out)["chunk_id"].to_pylist() == kept.ids.to_pylist()
    (run,) = RunStore(tmp_path / "runs").list()
    assert run.path == kept.run and run.status().state == "done"
    assert run.selection()["chunk_id"].to_pylist() == kept.ids.to_pylist()
    assert np.array_equal(run.rows()["selected"].to_numpy(zero_copy_only=False), kept.mask)
    assert run.config.corpus == CorpusConfig((TINY,)) and all(run.facts()["contents"].values())
    exports.filtered_rows(run, tmp_path / "rows.parquet")
    assert pq.read_metadata(tmp_path / "rows.parquet").num_rows == len(kept.ids)


def test_show_gives_the_address_of_the_run_or_the_command(corpus, tmp_path, monkeypatch):
    selection = select(corpus, **OPTIONS, estimator="top-quality", runs_dir=tmp_path / "my runs")
    sentence = selection.show()
    assert f"`datamask open {TINY} --runs '{tmp_path / 'my runs'}'` starts one" in sentence
    monkeypatch.setattr(server_note, "address_of", {tmp_path / "my runs": "http://127.0.0.1:8501/"}.get)
    assert selection.show() == f"http://127.0.0.1:8501/?run={selection.run.name}"
    with pytest.raises(RunStateError, match="in memory only"):
        select(corpus, **OPTIONS, estimator="top-quality").show()


def test_relative_paths_are_kept_from_the_root(tmp_path, monkeypatch):
    monkeypatch.chdir(Path(TINY).parent)
    selection = select(
        open_corpus(CorpusConfig(("tiny",))), **OPTIONS, estimator="top-quality", runs_dir=os.path.relpath(tmp_path)
    )
    assert RunStore(tmp_path).get(selection.run.name).config.corpus.inputs == (TINY,)


def test_a_stop_leaves_a_run_that_can_go_on(corpus, tmp_path):
    with pytest.raises(Stopped, match="resume"):
        select(corpus, **OPTIONS, estimator="counterfactual", runs_dir=tmp_path, should_stop=Late(200))
    (run,) = RunStore(tmp_path).list()
    assert run.status().resumable


def test_a_corpus_of_no_files_and_a_wrong_option_leave_nothing(corpus, tmp_path):
    with pytest.raises(InputError, match="not read from files"):
        select(made_corpus(40), **OPTIONS, runs_dir=tmp_path / "runs")
    with pytest.raises(OptionError):
        select(corpus, **{**OPTIONS, "device": "cuda:99"}, runs_dir=tmp_path / "runs")
    assert not (tmp_path / "runs").exists() or not RunStore(tmp_path / "runs").list()


class Late:
    """Asks to stop from the n-th question on."""

    def __init__(self, questions: int) -> None:
        self.left = questions

    def __call__(self) -> bool:
        self.left -= 1
        return self.left < 0
