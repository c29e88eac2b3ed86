"""The threshold for a share of new rows: against numpy's quantile, with ties, tokens, many shards, and after a kill."""

from __future__ import annotations

import itertools
import json
import signal
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from datamask.cli import main
from datamask.corpus.shards import open_source
from datamask.errors import InputError, OptionError, Stopped
from datamask.recipes import read_recipe, share_cut, write_recipe
from datamask.recipes.batches import Judge
from datamask.recipes.recipe import ScoreRule, Thresholds
from datamask.recipes.share_cut import check_cuttable, cut_at_share
from datamask.work.context import Work
from tests.making.derivable_runs import shard
from tests.making.run_folders import ROOT, wait_for
from tests.recipes.test_apply import RECIPES, _with, made
from tests.recipes.test_killed_apply import KILLED

ALONE = {"rule": ScoreRule(1.0)}
"""The score is the quality."""


def judge_of(folder, recipe, **options):
    return Judge(recipe, open_source("input", [str(folder)]), **options)


def written(folder, scores, shards=1, tokens=None):
    """Rows with these qualities in so many shards, and their tokens."""
    folder.mkdir()
    table = shard(len(scores), 1)
    table = table.set_column(table.column_names.index("quality_score"), "quality_score", pa.array(scores))
    if tokens is not None:
        table = table.set_column(table.column_names.index("n_tokens"), "n_tokens", pa.array(tokens))
    ends = np.linspace(0, len(scores), shards + 1).astype(int)
    for place, (low, high) in enumerate(itertools.pairwise(ends)):
        pq.write_table(table.slice(low, high - low), folder / f"{place}.parquet")
    return folder


RNG = np.random.default_rng(0)
SCORES = {
    "normal": RNG.normal(size=3001),
    "sorted": np.sort(RNG.normal(size=3001)),
    "long tails": np.sort(RNG.standard_cauchy(3001) ** 5),
    "huge": 1.7e308 * RNG.uniform(-1.0, 1.0, 3001),
    "far from the first rows": np.concatenate([RNG.normal(size=1500), 1e9 + RNG.normal(size=1501)]),
    "neighbors in float64": np.frombuffer((np.float64(1.0).view(np.int64) + np.arange(3001)).tobytes()),
}


@pytest.mark.parametrize("name", SCORES)
@pytest.mark.parametrize("shards", [1, 4])
def test_the_share_is_that_of_numpys_quantile(name, shards, tmp_path):
    scores = SCORES[name]
    folder = written(tmp_path / "in", scores, shards)
    for share in (0.0005, 0.1, 0.3, 0.77, 0.9999):
        cut = cut_at_share(judge_of(folder, made(**ALONE)), share)
        kept = int((scores >= cut.thresholds.tau).sum())
        exact = int((scores >= np.quantile(scores, 1 - share, method="nearest")).sum())
        assert abs(kept - exact) <= 1 and abs(kept - share * len(scores)) <= max(0.5, 1e-4 * len(scores))
        assert cut.all_rows == {"rows": 3001, "kept": kept, "share_kept": kept / 3001} and cut.share == share
        assert cut.share_kept == kept / 3001


def test_one_pass_is_enough_for_many_ordinary_rows(tmp_path, monkeypatch):
    scores = np.random.default_rng(1).normal(size=200_000)
    folder, passes = written(tmp_path / "in", scores, 3), []
    counted = share_cut._counted
    monkeypatch.setattr(share_cut, "_counted", lambda *given: passes.append(1) or counted(*given))
    cut = cut_at_share(judge_of(folder, made(**ALONE)), 0.1)
    assert len(passes) == 1 and abs((scores >= cut.thresholds.tau).mean() - 0.1) <= 1e-4


@pytest.mark.parametrize("first", [-9.0, 0.0, 2.5, 9.0])
def test_a_first_guess_far_off_is_mended_by_another_pass(first, tmp_path, monkeypatch):
    monkeypatch.setattr(share_cut, "_first_edges", lambda *given: np.array([first]))
    folder = written(tmp_path / "in", np.array([1.0, 3.0, -5.0, 2.0]))
    for share, kept in ((0.9, 4), (0.7, 3), (0.2, 1)):
        assert cut_at_share(judge_of(folder, made(**ALONE)), share).all_rows["kept"] == kept


@pytest.mark.parametrize("share, kept", [(0.1, 0.2), (0.16, 0.2), (0.3, 0.2), (0.4, 0.6), (0.99, 1.0)])
def test_rows_of_one_score_stay_together_and_the_nearest_share_is_kept(share, kept, tmp_path):
    """A fifth of the rows score 3, two fifths 2, two fifths 1."""
    scores = np.repeat([3.0, 2.0, 2.0, 1.0, 1.0], 100)[np.random.default_rng(2).permutation(500)]
    cut = cut_at_share(judge_of(written(tmp_path / "in", scores, 3), made(**ALONE)), share)
    assert (scores >= cut.thresholds.tau).mean() == cut.all_rows["share_kept"] == kept


def test_a_token_budget_weighs_tokens(tmp_path):
    rng = np.random.default_rng(3)
    scores, tokens = rng.normal(size=4000), rng.integers(1, 2000, 4000)
    recipe = made(**RECIPES["tokens"] | {"rule": ScoreRule(1.0)})
    cut = cut_at_share(judge_of(written(tmp_path / "in", scores, 3, tokens), recipe), 0.25)
    falling = np.argsort(-scores)
    behind = np.cumsum(tokens[falling]) / tokens.sum()
    kept = tokens[scores >= cut.thresholds.tau].sum() / tokens.sum()
    assert abs(kept - 0.25) <= max(1e-4, np.abs(behind - 0.25).min())
    assert (
        cut.all_rows["share_kept"] == pytest.approx(kept) and abs((scores >= cut.thresholds.tau).mean() - 0.25) > 1e-3
    )


def test_rows_without_tokens_are_refused(tmp_path):
    recipe = made(**RECIPES["tokens"] | {"rule": ScoreRule(1.0)})
    shards = written(tmp_path / "in", np.arange(40.0), tokens=np.zeros(40, int))
    with pytest.raises(InputError, match="have no tokens"):
        cut_at_share(judge_of(shards, recipe), 0.5)


def test_invalid_rows_do_not_count_and_rows_of_too_low_quality_are_never_kept(tmp_path):
    scores = np.random.default_rng(4).normal(size=400)
    (tmp_path / "in").mkdir()
    table = shard(400, 1)
    table = table.set_column(table.column_names.index("quality_score"), "quality_score", pa.array(scores))
    pq.write_table(_with(table, "quality_score", 7, float("nan")), tmp_path / "in" / "a.parquet")
    with pytest.raises(InputError, match=r"row 7 has NaN or infinite quality.*--drop_invalid"):
        cut_at_share(judge_of(tmp_path / "in", made(**ALONE)), 0.3)
    cut = cut_at_share(judge_of(tmp_path / "in", made(**ALONE), drop_invalid=True), 0.3)
    assert cut.all_rows["rows"] == 399 and cut.all_rows["kept"] == 120
    pruned = made(**ALONE, thresholds=Thresholds(0.0, least_quality=1.0))
    cut = cut_at_share(judge_of(tmp_path / "in", pruned, drop_invalid=True), 0.9)
    assert cut.all_rows["kept"] == (np.delete(scores, 7) >= 1.0).sum()


def test_what_has_no_single_threshold_is_refused(tmp_path):
    for which in ("groups", "lists"):
        with pytest.raises(OptionError, match="quotas, pinned, banned or given rows; make it of a run without them"):
            check_cuttable(made(**RECIPES[which]), 0.3)
    for share in (0.0, 1.0, -1.0, float("nan")):
        with pytest.raises(OptionError, match="--select_ratio must be above 0 and below 1"):
            check_cuttable(made(), share)
    with pytest.raises(InputError, match="have the same score"):
        cut_at_share(judge_of(written(tmp_path / "in", np.ones(50)), made(**ALONE)), 0.3)


def test_a_stop_is_heard(tmp_path):
    with pytest.raises(Stopped):
        cut_at_share(judge_of(written(tmp_path / "in", np.arange(50.0)), made()), 0.3, Work.of(lambda: True))


def test_the_command_says_what_it_kept_and_repeats_itself_after_a_kill(tmp_path, capsys):
    folder, output, hangs = tmp_path / "in", tmp_path / "out", tmp_path / "hangs"
    folder.mkdir()
    for number, name in enumerate("abc"):
        pq.write_table(shard(200, number), folder / f"{name}.parquet", row_group_size=50)
    recipe = str(tmp_path / "recipe.json")
    write_recipe(made(), recipe)
    words = ["apply", recipe, str(folder), "--select_ratio", "0.2"]
    assert main([*words, "--output", str(tmp_path / "whole"), "--json"]) == 0
    said = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert (said["kept"], said["share_kept"], said["select_ratio"]) == (120, 0.2, 0.2)
    assert read_recipe(tmp_path / "whole" / "recipe.json").all_rows["kept"] == 120
    # the rows of the last shard are judged once by the pass that counts, and the second time it hangs
    kill = KILLED.replace(
        "if place == 2 and first:", "if place == 2 and first and (Path(sys.argv[3]) / 'recipe.json').exists():"
    )
    kill = kill.replace("sys.argv[3]])", 'sys.argv[3], "--select_ratio", "0.2"])')
    child = subprocess.Popen(
        [sys.executable, "-c", kill, recipe, str(folder), str(output), str(hangs)], cwd=ROOT, stderr=subprocess.DEVNULL
    )
    try:
        wait_for(lambda: hangs.exists() and all((output / f"{name}.ids.parquet").exists() for name in "ab"))
    finally:
        child.send_signal(signal.SIGKILL)
        child.wait()
    assert main([*words, "--output", str(output)]) == 0
    printed = capsys.readouterr().out
    assert "Asked for 20 %: off by 0 % of the rows." in printed and "had finished: 2 of 3" in printed
    for name in "abc":
        one, two = (pq.read_table(place / f"{name}.ids.parquet") for place in (output, tmp_path / "whole"))
        assert one.equals(two)
    assert main([*words[:2], str(folder / "a.parquet"), *words[3:], "--output", str(output)]) == 2
    assert "one cut for other shards" in capsys.readouterr().err
    write_recipe(replace(made(), **RECIPES["groups"]), recipe)
    assert main([*words, "--output", str(tmp_path / "none")]) == 2
    assert "or apply it without --select_ratio" in capsys.readouterr().err
