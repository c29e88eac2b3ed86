"""Solved by passes over scratch: exactly S rows, worth what memory finds, under a bound that no subset exceeds."""

from __future__ import annotations

import itertools
import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from datamask.config import CorpusConfig, RunConfig, SelectionConfig
from datamask.errors import InputError, Stopped
from datamask.out_of_core.feature_moments import FeatureMoments
from datamask.out_of_core.rounding import rounded
from datamask.out_of_core.row_rules import RowRules
from datamask.out_of_core.scratch import FORMAT, Scratch
from datamask.out_of_core.scratch_writing import write_scratch
from datamask.out_of_core.streamed_dual import MOST_PASSES, SHARES, Pilot, _Limits, memory_bytes, solve, top_rows
from datamask.out_of_core.whole_corpus import WholeCorpus
from datamask.recipes.recipe import Thresholds, write_recipe
from datamask.recipes.scoring import Scorer
from datamask.recipes.stepping import between, rule_of, slope_along
from datamask.recipes.weights import Weights
from datamask.runs.execute import execute
from datamask.runs.recipe import recipe_of
from datamask.runs.store import RunStore
from datamask.work.context import Work
from tests.making.derivable_runs import shard
from tests.making.run_folders import ROOT
from tests.making.shards import forget_dual
from tests.recipes.test_stepping import KINDS, _any_recipe, _value, _written

BLOCK = 4096


def _rules(rows, pinned, banned, given=()) -> RowRules:
    """The rules that name these of so many rows."""
    return RowRules(*(np.isin(np.arange(rows), each) for each in (pinned, banned, given)))


def _scratch(tmp_path, tables) -> Scratch:
    return write_scratch(WholeCorpus.open(CorpusConfig((_written(tmp_path, tables),))), tmp_path / "scratch")


@pytest.mark.parametrize("kind", KINDS)
def test_of_few_rows_the_best_of_all_subsets_is_met_and_never_above_the_bound(kind, tmp_path):
    """Every subset of three sizes of 12 rows, beginning at rules drawn at random."""
    rng = np.random.default_rng(5)
    reached = []
    for case in range(2):
        (tmp_path / str(case)).mkdir()
        table = shard(12, 70 + case, d=3)
        scratch = _scratch(tmp_path / str(case), [table.slice(0, 5), table.slice(5)])
        x, q = scratch.features(0, 12).astype(np.float64), scratch.quality
        recipe = _any_recipe(rng, 3, **KINDS[kind])
        for size in (2, 4, 7):
            dual = solve(scratch, recipe, size, block_rows=BLOCK)
            members = dual.selected(12)
            assert members.sum() == size
            assert dual.value == pytest.approx(_value(recipe, x, q, members), abs=1e-6)
            best = max(
                _value(recipe, x, q, np.isin(np.arange(12), subset))
                for subset in itertools.combinations(range(12), size)
            )
            assert dual.bound >= best - 1e-9 and dual.value <= best + 1e-6
            reached.append(best - dual.value <= 1e-6)
            forget_dual(scratch)
    assert np.mean(reached) >= 0.5


@pytest.mark.parametrize("kind", KINDS)
def test_pins_and_bans_hold_and_the_bound_is_that_of_the_subsets_that_obey_them(kind, tmp_path):
    """Every subset of 11 rows that has the pinned ones and none of the banned ones."""
    rng = np.random.default_rng(8)
    reached = []
    for case in range(2):
        (tmp_path / str(case)).mkdir()
        scratch = _scratch(tmp_path / str(case), [shard(11, 80 + case, d=3)])
        x, q = scratch.features(0, 11).astype(np.float64), scratch.quality
        recipe = _any_recipe(rng, 3, **KINDS[kind])
        for size, pinned, banned in ((4, 2, 0), (4, 0, 3), (5, 2, 2), (3, 2, 1)):
            named = rng.permutation(11)
            rules = _rules(11, named[1:pinned], named[pinned : pinned + banned], named[: min(pinned, 1)])
            dual = solve(scratch, recipe, size, block_rows=BLOCK, rules=rules)
            members = dual.selected(11)
            assert members.sum() == size and members[rules.always].all() and not members[rules.banned].any()
            assert dual.value == pytest.approx(_value(recipe, x, q, members), abs=1e-6)
            subsets = (np.isin(np.arange(11), subset) for subset in itertools.combinations(range(11), size))
            best = max(
                _value(recipe, x, q, subset)
                for subset in subsets
                if subset[rules.always].all() and not subset[rules.banned].any()
            )
            assert dual.proved and dual.bound >= best - 1e-9 and dual.value <= best + 1e-6
            reached.append(best - dual.value <= 1e-6)
            forget_dual(scratch)
    assert np.mean(reached) >= 0.5


def test_rules_that_leave_nothing_to_choose_are_refused_and_others_are_another_solution(three_thousand):
    scratch, recipe = three_thousand, _any_recipe(np.random.default_rng(3), 8)
    some = np.arange(40)
    for rules, words in (
        (_rules(3_000, some, ()), "to choose 0 from"),
        (_rules(3_000, (), np.arange(2_960)), "leaves 40 of 3,000 to choose 40 from"),
    ):
        with pytest.raises(InputError, match=words):
            solve(scratch, recipe, 40, block_rows=BLOCK, rules=rules)
    forget_dual(scratch)
    free = solve(scratch, recipe, 600, block_rows=BLOCK)
    bound = free.bound
    members = np.flatnonzero(free.selected(3_000))
    # what the optimum has and lacks anyway costs nothing; what it has not costs some
    same = solve(scratch, recipe, 600, block_rows=BLOCK, rules=_rules(3_000, members[:50], ()))
    assert abs(same.value - free.value) <= 1e-5 and same.gap <= 1e-5
    worse = solve(scratch, recipe, 600, block_rows=BLOCK, rules=_rules(3_000, (), members[:300]))
    assert worse.gap <= 1e-5 and worse.bound < bound and not worse.selected(3_000)[members[:300]].any()


@pytest.fixture(scope="module")
def learned(tmp_path_factory):
    """20,000 rows as a scratch, the same rows as a corpus in memory, and recipes learned on 1,000 of them."""
    root = tmp_path_factory.mktemp("dual")
    scratch = _scratch(root, [shard(4000, seed, d=8) for seed in range(5)])
    kept = np.concatenate([np.fromfile(path, np.float16) for path in sorted(scratch.folder.glob("*.features"))])
    features = pa.FixedSizeListArray.from_arrays(pa.array(kept), 8)
    same = pa.table({"id": np.arange(scratch.rows), "quality_score": scratch.quality, "feature_arr": features})
    pq.write_table(same, root / "same.parquet")
    recipes = {}
    for name, options in {
        "pairwise": {"objective": "pairwise"},
        "raw": {"objective": "pairwise", "scale": "raw", "lamb": 0.05},
        "disf_fixed": {"objective": "disf_fixed"},
        "sum": {"objective": "pairwise:1,disf_fixed:1"},
        "quality": {"objective": "pairwise", "lamb": 1.0},
    }.items():
        recipes[name] = recipe_of(_run(root, root / "same.parquet", rows=1000, select_ratio=0.2, **options))
    return root, scratch, recipes


def _run(root, path, rows=None, **options):
    selection = SelectionConfig.from_options(device="cpu", **options)
    run = RunStore(root / "runs").create(RunConfig(CorpusConfig((str(path),), rows=rows), selection))
    execute(run)
    return run


@pytest.mark.parametrize("kind", ["pairwise", "raw", "disf_fixed", "sum", "quality"])
def test_bound_and_value_meet_within_twelve_passes(kind, learned):
    _root, scratch, recipes = learned
    forget_dual(scratch)
    told = []
    dual = solve(scratch, recipes[kind], 4000, block_rows=BLOCK, on_pass=lambda dual: told.append(dual.passes[-1]))
    assert len(told) == len(dual.passes) <= MOST_PASSES
    assert dual.selected(scratch.rows).sum() == 4000
    assert dual.gap <= (1e-5 if kind != "quality" else 1e-12) and dual.bound >= dual.value
    assert dual.bound == min(one["upper_bound"] for one in told) and dual.value == max(one["value"] for one in told)
    # what it says of the value is so, by the definitions
    recipe, members = recipes[kind], dual.selected(scratch.rows)
    x, q = scratch.features(0, scratch.rows).astype(np.float64)[members], scratch.quality[members]
    raw = {"quality": q.mean(), "pairwise": -((x.sum(0) ** 2).sum() - 4000) / (4000 * 3999)}
    if recipe.rule.moment is not None:
        y = (x - recipe.rule.mean) * recipe.rule.inverse_sd
        moment = y.T @ y / 4000
        np.fill_diagonal(moment, 0.0)
        raw["disf_fixed"] = -(moment**2).sum() / 56
    value = 0.0
    terms = [("quality", recipe.lamb), *((name, (1 - recipe.lamb) * weight) for name, weight in recipe.terms)]
    for name, weight in terms if recipe.lamb < 1 else terms[:1]:
        ends = recipe.anchors["quality"] if name == "quality" else recipe.anchors["diversity"][name]
        on_scale = (
            raw[name] if recipe.scale == "raw" else (raw[name] - ends["random"]) / (ends["best"] - ends["random"])
        )
        value += weight * on_scale
        assert dual.raw[name] == pytest.approx(raw[name], abs=1e-7)
    assert dual.value == pytest.approx(value, abs=1e-6)


@pytest.fixture(scope="module")
def three_thousand(tmp_path_factory) -> Scratch:
    return _scratch(tmp_path_factory.mktemp("starts"), [shard(1500, seed, d=8) for seed in (1, 2)])


@pytest.mark.parametrize("kind", ["pairwise", "pairwise alone", "raw", "disf_fixed", "sum"])
def test_rules_that_nobody_solved_for_lead_to_the_bound_as_well(kind, three_thousand):
    """Steps that lead too far are shortened; what is left of 3,000 rows is whole rows in the place of shares."""
    scratch = three_thousand
    for seed in (3, 4, 6):
        forget_dual(scratch)
        dual = solve(scratch, _any_recipe(np.random.default_rng(seed), 8, **KINDS[kind]), 600, block_rows=BLOCK)
        assert dual.gap <= 1e-5 and len(dual.passes) <= MOST_PASSES


def test_a_step_is_cut_to_where_the_dual_of_all_rows_is_least_about(three_thousand):
    """Here the pilot rows are all rows, so the share is the best of those that are tried."""
    scratch, size = three_thousand, 600
    x, q = scratch.features(0, scratch.rows).astype(np.float64), scratch.quality
    pilot, limits = Pilot(scratch), _Limits.of(scratch.rows, size, None)
    for seed, kind in enumerate(("pairwise", "disf_fixed", "sum")):
        rng = np.random.default_rng(seed)
        recipe, other = (_any_recipe(rng, 8, **KINDS[kind]) for _ in range(2))
        weights = Weights.of(recipe)
        start, far = (rule_of(each, weights, size) for each in (recipe, other))

        def dual_at(share, weights=weights, start=start, far=far):
            rule = between(start, far, share)
            scores = np.sort(Scorer(rule)(q, x))[-size:]
            return scores.mean() + weights.beside_scores(rule, size), scores[0]

        slope = (dual_at(1e-6)[0] - dual_at(0.0)[0]) / 1e-6
        share, moved = pilot.along(start, far, slope, limits, weights)
        assert dual_at(share)[0] <= min(dual_at(other)[0] for other in SHARES) + 1e-4 * abs(slope)
        assert moved == pytest.approx(dual_at(share)[1] - dual_at(0.0)[1], abs=0.01 * scratch.quality.std())


def test_the_slope_along_a_step_is_that_of_the_dual(three_thousand):
    scratch, size, h = three_thousand, 600, 1e-7
    x, q = scratch.features(0, scratch.rows).astype(np.float64), scratch.quality
    for seed, kind in enumerate(("pairwise", "disf_fixed", "sum")):
        rng = np.random.default_rng(seed)
        recipe, other = (_any_recipe(rng, 8, **KINDS[kind]) for _ in range(2))
        weights = Weights.of(recipe)
        start, end = (rule_of(each, weights, size) for each in (recipe, other))

        def dual_at(share, recipe=recipe, weights=weights, start=start, end=end):
            rule = between(start, end, share)
            scores = Scorer(rule)(q, x)
            top = np.argsort(-scores)[:size]
            return scores[top].mean() + weights.beside_scores(rule, size), rule, top

        for share in (0.0, 0.4, 0.9):
            _bound, rule, top = dual_at(share)
            moment = None
            if rule.moment is not None:
                y = (x[top] - rule.mean) * rule.inverse_sd
                moment = y.T @ y / size
                np.fill_diagonal(moment, 0.0)
            slope = slope_along(rule, end, x[top].mean(axis=0), moment, weights.crowding(size))
            numeric = (1.0 - share) * (dual_at(share + h)[0] - dual_at(share - h)[0]) / (2 * h)
            assert slope == pytest.approx(numeric, rel=1e-4)


def test_it_is_worth_what_the_same_rows_are_in_memory(learned):
    """On the raw scale, which needs no anchors, both solve one problem."""
    root, scratch, recipes = learned
    forget_dual(scratch)
    dual = solve(scratch, recipes["raw"], 4000, block_rows=BLOCK)
    run = _run(root, root / "same.parquet", objective="pairwise", scale="raw", lamb=0.05, select_ratio=0.2)
    summary = run.status().to_dict()["summary"]
    scale = 0.05 * scratch.quality.std()
    assert summary["joint"] == pytest.approx(dual.value, abs=1e-6 * max(scale, 1.0))
    assert dual.bound >= summary["joint"] - 1e-9
    same = run.rows()["selected"].to_numpy() == dual.selected(scratch.rows)
    assert same.mean() >= 0.999


def test_a_stopped_solution_goes_on_behind_its_last_whole_pass(learned):
    _root, scratch, recipes = learned
    forget_dual(scratch)
    recipe, whole = recipes["disf_fixed"], []
    unbroken = solve(scratch, recipe, 4000, block_rows=BLOCK, on_pass=lambda dual: whole.append(len(dual.passes)))
    forget_dual(scratch)
    seen = []
    with pytest.raises(Stopped):
        solve(
            scratch,
            recipe,
            4000,
            Work.of(lambda: len(seen) == 2),
            block_rows=BLOCK,
            on_pass=lambda dual: seen.append(len(dual.passes)),
        )
    assert seen == [1, 2]
    again = []
    dual = solve(scratch, recipe, 4000, block_rows=BLOCK, on_pass=lambda dual: again.append(dual.passes[-1]["value"]))
    assert again[:2] == [one["value"] for one in dual.passes[:2]] and len(again) == len(dual.passes)
    assert dual.passes == unbroken.passes and np.array_equal(dual.packed, unbroken.packed)
    # what is damaged is done again
    (state,) = (scratch.folder / "dual").iterdir()
    for content in (b"", b"PK", state.read_bytes()[:900]):
        state.write_bytes(content)
        passes = []
        solve(
            scratch,
            recipe,
            4000,
            block_rows=BLOCK,
            on_pass=lambda dual, passes=passes: passes.append(dual.passes[-1]["value"]),
        )
        assert passes == again
    # another size, or another rule, is another solution
    assert solve(scratch, recipe, 3000, block_rows=BLOCK).selected(scratch.rows).sum() == 3000


def test_a_stop_during_swaps_changes_nothing_of_what_comes_out(learned, monkeypatch):
    """Half of the swaps of a pass are no pass: it is done again as a whole."""
    _root, scratch, recipes = learned
    forget_dual(scratch)
    unbroken = solve(scratch, recipes["sum"], 4000, block_rows=BLOCK)
    assert all(one_pass["swaps"] > 0 for one_pass in unbroken.passes)
    for wanted in range(1, len(unbroken.passes) + 1):
        forget_dual(scratch)
        begun, swapping = [], []

        def watched(*given, begun=begun, swapping=swapping):
            begun.append(True)
            swapping.append(True)
            try:
                return rounded(*given)
            finally:
                swapping.clear()

        monkeypatch.setattr("datamask.out_of_core.streamed_dual.rounded", watched)
        with pytest.raises(Stopped):
            solve(
                scratch,
                recipes["sum"],
                4000,
                Work.of(lambda begun=begun, swapping=swapping, wanted=wanted: bool(swapping) and len(begun) == wanted),
                block_rows=BLOCK,
            )
        monkeypatch.undo()
        dual = solve(scratch, recipes["sum"], 4000, block_rows=BLOCK)
        assert dual.passes == unbroken.passes and np.array_equal(dual.packed, unbroken.packed)


def test_the_same_to_the_last_bit_with_any_number_of_threads(learned, monkeypatch):
    _root, scratch, recipes = learned
    outcomes = []
    for threads in (1, 4, 3):
        monkeypatch.setattr("datamask.corpus.threads.thread_count", lambda tasks, threads=threads: min(threads, tasks))
        forget_dual(scratch)
        dual = solve(scratch, recipes["sum"], 4000, block_rows=BLOCK)
        outcomes.append((dual.packed.tobytes(), dual.passes, dual.rule.direction.tobytes(), dual.rule.moment.tobytes()))
    assert outcomes[0] == outcomes[1] == outcomes[2]


def test_a_fault_in_one_thread_ends_all_of_them(learned, monkeypatch):
    _root, scratch, recipes = learned
    forget_dual(scratch)
    features = Scratch.features

    def failing(self, low, high):
        if low > 5000:
            raise ZeroDivisionError
        return features(self, low, high)

    monkeypatch.setattr("datamask.corpus.threads.thread_count", lambda tasks: 4)
    monkeypatch.setattr(Scratch, "features", failing)
    with pytest.raises(ZeroDivisionError):
        solve(scratch, recipes["pairwise"], 4000, block_rows=BLOCK)


def test_equal_rows_are_cut_by_their_ids(tmp_path):
    table = shard(2, 0, d=4)
    alike = pa.concat_tables([table.slice(0, 1)] * 50 + [table.slice(1, 1)] * 50)
    alike = alike.set_column(0, "id", pa.array([f"row {row}" for row in range(100)]))
    scratch = _scratch(tmp_path, [alike.slice(0, 30), alike.slice(30)])
    recipe = _any_recipe(np.random.default_rng(1), 4, lamb=1.0)
    better = scratch.quality == scratch.quality.max()
    for size in (20, 50, 70):
        dual = solve(scratch, recipe, size, block_rows=BLOCK)
        members = dual.selected(100)
        assert members.sum() == size and (members & better).sum() == min(size, 50)
        assert dual.gap <= 1e-12
    hashes = scratch.id_hash_at(np.arange(100))
    _tau, members = top_rows(better.astype(np.float64), 20, scratch)
    assert hashes[members].max() < hashes[better & ~members].min()
    for kind in ("quality", "pairwise"):
        (tmp_path / "one" / kind).mkdir(parents=True)
    for kind in ("quality", "pairwise"):
        one = _scratch(tmp_path / "one" / kind, [alike.slice(0, 50)])
        dual = solve(one, _any_recipe(np.random.default_rng(1), 4, **KINDS[kind]), 20, block_rows=BLOCK)
        assert dual.selected(50).sum() == 20 and dual.gap <= 1e-5
    for size in (1, 100):
        with pytest.raises(InputError, match="from 2 to 99"):
            solve(scratch, recipe, size, block_rows=BLOCK)


def test_a_threshold_expected_far_off_costs_a_pass_and_nothing_else(learned):
    _root, scratch, recipes = learned
    for far in (-50.0, 50.0):
        forget_dual(scratch)
        dual = solve(scratch, replace(recipes["pairwise"], thresholds=Thresholds(far)), 4000, block_rows=BLOCK)
        assert dual.gap <= 1e-5


MEASURED = """
import json, sys, threading, time
from pathlib import Path
import numpy as np
from datamask.out_of_core import streamed_dual
from datamask.out_of_core.scratch import open_scratch
from datamask.recipes.recipe import read_recipe

def anonymous():
    lines = Path("/proc/self/status").read_text().splitlines()
    return 1024 * int(next(line for line in lines if line.startswith("RssAnon")).split()[1])

scratch, recipe = open_scratch(sys.argv[1]), read_recipe(sys.argv[2])
streamed_dual.MOST_PASSES = 2
before, peak, over = anonymous(), 0, threading.Event()

def watch():
    global peak
    while not over.is_set():
        peak = max(peak, anonymous())
        time.sleep(0.002)

watcher = threading.Thread(target=watch, daemon=True)
watcher.start()
dual = streamed_dual.solve(scratch, recipe, scratch.rows // 10, block_rows=4096)
over.set()
watcher.join()
print(json.dumps([before, peak, len(dual.passes), int(dual.selected(scratch.rows).sum())]))
"""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="reads Linux's own account of memory")
def test_memory_is_what_was_said_and_less_than_the_features_take(tmp_path):
    rows, dim = 700_000, 64
    rng = np.random.default_rng(0)
    place = tmp_path / "scratch"
    place.mkdir()
    rows_of = rng.standard_normal((rows, dim), np.float32)
    rows_of += rng.normal(size=dim).astype(np.float32)
    rows_of /= np.linalg.norm(rows_of, axis=1, keepdims=True)
    rows_of.astype(np.float16).tofile(place / "000000.features")
    rng.normal(size=rows).tofile(place / "000000.quality")
    np.arange(rows, dtype=np.uint64).tofile(place / "000000.id_hash")
    del rows_of
    record = {"format": FORMAT, "dim": dim, "rows": [rows], "files": ["a"], "lengths": False, "dropped": {}}
    moments = FeatureMoments(rows, np.zeros(dim), np.ones(dim)).to_dict()
    (place / "scratch.json").write_text(json.dumps(record | {"digest": "d", "moments": moments}))
    recipe = _any_recipe(rng, dim)
    rule = replace(recipe.rule, direction=np.full(dim, 0.1))
    write_recipe(replace(recipe, rule=rule), tmp_path / "recipe.json")
    done = subprocess.run(
        [sys.executable, "-c", MEASURED, str(place), str(tmp_path / "recipe.json")],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    before, peak, passes, selected = json.loads(done.stdout)
    assert passes == 2 and selected == rows // 10
    assert peak <= memory_bytes(rows, dim, 4096)
    # what grows with the rows stays below what their features would take, in float32 or as they are kept
    assert peak - before <= 40 * rows + 60_000_000 < 2 * rows * dim
