"""Selections along λ that are kept on disk: those that a session solved, of this problem alone, or none."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from datamask.config import CorpusConfig, SelectionConfig
from datamask.corpus import open_corpus
from datamask.dashboard.tradeoff import kept_points, lambda_point, live
from datamask.dashboard.tradeoff.lambda_point import LambdaPoint
from datamask.evaluation.live import GRID
from tests.making.runs import write_shard

TINY = str(Path(__file__).parents[3] / "sample_data" / "tiny")
LONG = 120.0
FIELDS = ("lamb", "quality", "diversity", "joint", "gap", "exact", "solved_at", "rows", "quick", "run", "run_id")

pytestmark = pytest.mark.usefixtures("live_of_its_own")


@pytest.fixture(scope="module")
def corpus():
    return open_corpus(CorpusConfig((TINY,)))


def options(**given):
    return SelectionConfig.from_options(**{"objective": "pairwise", "estimator": "relaxed", **given})


def solve(corpus, settings, cache_dir):
    """What a session of its own has solved in the end."""
    session = live.session(corpus, settings, cache_dir)
    session.wait(LONG)
    assert session.ready, session.error
    live._holder().sessions.clear()
    return [lambda_point.of_solved(solved) for solved in session.solved[1]]


def same(points, others):
    assert len(points) == len(others)
    for point, other in zip(points, others, strict=True):
        assert [getattr(point, name) for name in FIELDS] == [getattr(other, name) for name in FIELDS]
        assert point.bits.dtype == other.bits.dtype and point.bits.tobytes() == other.bits.tobytes()


@pytest.fixture
def file(corpus, tmp_path):
    """The file of the points of one problem, solved and kept."""
    solve(corpus, options(), tmp_path)
    return kept_points.stored_points(
        corpus.fingerprint, kept_points.key_of(corpus, options()), len(corpus), tmp_path
    ).path


@pytest.mark.parametrize("objective", ["pairwise", "facility"])
def test_what_is_kept_is_what_a_session_solves(corpus, tmp_path, objective):
    solved = solve(corpus, options(objective=objective), tmp_path / "one")
    kept = kept_points.of_problem(corpus, options(objective=objective, lamb=0.3), tmp_path / "one")
    assert [point.lamb for point in kept] == sorted(GRID) and all(point.mask.sum() == 360 for point in kept)
    same(kept, solved)
    same(kept, solve(corpus, options(objective=objective), tmp_path / "another"))


def test_points_are_of_one_problem_on_one_corpus(corpus, file, tmp_path):
    assert kept_points.of_problem(corpus, options(), tmp_path)
    pins = tmp_path / "pins.txt"
    pins.write_text(corpus.ids[0].as_py())
    others = [{"objective": "facility"}, {"select_ratio": 0.2}, {"prune": 0.1}, {"seed": 1}, {"pin": str(pins)}]
    for other in others:
        assert kept_points.of_problem(corpus, options(**other), tmp_path) == ()
    another = open_corpus(write_shard(tmp_path / "another.parquet", len(corpus)))
    assert kept_points.of_problem(another, options(), tmp_path) == ()


def test_other_ids_in_a_file_of_rules_are_another_problem(corpus, tmp_path):
    pins = tmp_path / "pins.txt"
    pins.write_text("\n".join(corpus.ids.to_pylist()[:3]))
    settings = options(pin=str(pins))
    solve(corpus, settings, tmp_path)
    assert all(point.mask[:3].all() for point in kept_points.of_problem(corpus, settings, tmp_path))
    pins.write_text("\n".join(corpus.ids.to_pylist()[:7]))
    assert kept_points.of_problem(corpus, settings, tmp_path) == ()


@pytest.mark.parametrize("name", ["VERSION", "ANCHOR_VERSION", "GRAPH_VERSION"])
def test_points_of_another_version_are_not_found(corpus, file, tmp_path, monkeypatch, name):
    monkeypatch.setattr(kept_points, name, getattr(kept_points, name) + 1)
    assert kept_points.of_problem(corpus, options(), tmp_path) == ()


def test_a_damaged_file_is_no_file_and_its_points_are_solved_anew(corpus, file, tmp_path, caplog):
    before = kept_points.of_problem(corpus, options(), tmp_path)
    whole = file.read_bytes()
    file.write_bytes(whole[:900] + bytes([whole[900] ^ 1]) + whole[901:])
    assert kept_points.of_problem(corpus, options(), tmp_path) == () and "digest" in caplog.text
    solve(corpus, options(), tmp_path)
    same(kept_points.of_problem(corpus, options(), tmp_path), before)


def test_points_that_select_rows_beyond_the_last_one_are_refused(tmp_path):
    every = LambdaPoint(0.5, 0.5, 0.5, 0.5, 0.0, True, None, np.full(2, 255, np.uint8), 16)
    kept_points.keep([every], "corpus", "problem", tmp_path)
    assert kept_points.find("corpus", "problem", 16, tmp_path)
    assert kept_points.find("corpus", "problem", 13, tmp_path) == ()


def test_what_was_once_kept_stays(corpus, file, tmp_path):
    before = file.read_bytes()
    points = kept_points.of_problem(corpus, options(), tmp_path)
    kept_points.keep(points[:3], corpus.fingerprint, kept_points.key_of(corpus, options()), tmp_path)
    assert file.read_bytes() == before


def test_a_folder_that_cannot_be_written_keeps_nothing_and_the_session_is_ready(corpus, tmp_path, caplog):
    (tmp_path / "cache").write_text("a file where a folder is expected")
    assert len(solve(corpus, options(), tmp_path / "cache")) == len(GRID)
    assert kept_points.of_problem(corpus, options(), tmp_path / "cache") == ()
