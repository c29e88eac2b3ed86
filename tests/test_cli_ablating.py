"""`ablate` from shards to its result."""

from __future__ import annotations

import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from datamask.ablation.question import AblationQuestion
from datamask.analyses.ablation.command import text_of
from datamask.analyses.ablation.compute import kept_study, proxy_models
from datamask.analyses.ablation.compute import sources as trial
from datamask.analyses.ablation.compute.meters import asked_bytes
from datamask.analyses.ablation.compute.transformer import Size
from datamask.cli import main
from datamask.runs import ablation_results
from tests.making.ablations import ROBUST, made_result
from tests.making.planted import language
from tests.making.raw_cache import RawCache

QUICK = ["--methods", "top-quality", "--objectives", "pairwise", "--lambdas", "0,0.5", "--seeds", "6"]


@pytest.fixture(scope="module")
def shard(tmp_path_factory):
    """1,500 rows of texts, quality, features and a label."""
    rng, n = np.random.default_rng(0), 1500
    path = tmp_path_factory.mktemp("shards") / "in.parquet"
    kind = rng.integers(0, 3, n)
    table = {
        "chunk_id": np.arange(n),
        "quality_score": rng.normal(size=n),
        "feature_arr": pa.FixedSizeListArray.from_arrays(pa.array(rng.normal(size=n * 24).astype("f4")), 24),
        "text": language(rng, n, "w", 60),
        "kind": [f"k{each}" for each in kind],
    }
    pq.write_table(pa.table(table), path)
    return path


def test_ablate_from_shard_to_stored_result(shard, tmp_path, capsys, monkeypatch):
    words = ["ablate", str(shard), "--label", "kind", *QUICK, "--runs-dir", str(tmp_path / "runs"), "--device", "cpu"]
    assert main([*words, "--json", "--output", str(tmp_path / "out.json")]) == 0
    shown = capsys.readouterr()
    found, written = json.loads(shown.out.splitlines()[-1]), json.loads((tmp_path / "out.json").read_text())
    assert "Provisional: 3 of 6 seeds are done." in shown.err
    assert found["losses"] == written["losses"] and len(written["losses"]) == 6
    (kept,) = ablation_results.results(tmp_path / "runs" / ".kept", found["fingerprint"])
    assert kept.question.key == found["key"] and not kept.provisional
    assert sorted(target.name for target in kept.targets) == ["k0", "k1", "k2", "pool"]
    monkeypatch.setattr(kept_study, "ablate", lambda *_, **__: pytest.fail("the result is stored"))
    assert main(words) == 0
    said = capsys.readouterr().out
    assert said.startswith(found["headline"]) and "LARGEST REGRET" in said and "hard to beat on held-out text" in said


def test_a_damaged_or_foreign_result_is_not_shown(shard, tmp_path, capsys):
    words = ["ablate", str(shard), "--target", "kind=k1", *QUICK, "--runs-dir", str(tmp_path / "runs")]
    assert main([*words, "--device", "cpu", "--json"]) == 0
    found = json.loads(capsys.readouterr().out.splitlines()[-1])
    cache_dir = tmp_path / "runs" / ".kept"
    entry = ablation_results.stored_result(cache_dir, found["fingerprint"], found["key"]).entry
    assert ablation_results.load(cache_dir, found["fingerprint"], "../../secret") is None
    RawCache(cache_dir).keep(entry, {**found, "losses": [[["x"]]]})
    assert ablation_results.results(cache_dir, found["fingerprint"]) == []


def test_confirm_says_its_minutes_first_and_ranks_by_a_second_model(shard, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(trial, "SMALL", Size(layers=1, width=8, heads=1, context=64, batch=64))
    monkeypatch.setattr(proxy_models, "ASKED_BYTES", 1_000)
    words = [
        "ablate",
        str(shard),
        "--target",
        "random",
        *QUICK,
        "--runs-dir",
        str(tmp_path / "runs"),
        "--device",
        "cpu",
    ]
    assert main([*words, "--confirm", "--json"]) == 0
    shown = capsys.readouterr()
    found = json.loads(shown.out.splitlines()[-1])
    assert shown.err.index("Confirming with the transformer takes about") < shown.err.rindex("seed 3 of 3")
    assert -1 <= found["agreement"] <= 1
    assert asked_bytes(1) == asked_bytes(4) == 1_000 and asked_bytes(20) == 5_000
    stored = ablation_results.results(tmp_path / "runs" / ".kept", found["fingerprint"])
    assert sorted((each.judge, each.seeds, each.provisional) for each in stored) == [
        ("bigram", 6, False),
        ("transformer", 3, True),
    ]
    assert main([*words, "--judge", "transformer", "--confirm"]) == 2
    assert "--confirm runs the second proxy model" in capsys.readouterr().err


def test_confirm_without_texts_is_refused_before_anything_is_computed(shard, tmp_path, capsys):
    table = pq.read_table(shard)
    bare, wanted = tmp_path / "bare.parquet", tmp_path / "wanted.parquet"
    pq.write_table(table.drop_columns(["text"]), bare)
    pq.write_table(table.select(["feature_arr"]).slice(0, 200), wanted)
    words = [*QUICK, "--runs-dir", str(tmp_path / "runs"), "--device", "cpu", "--confirm"]
    for start, lacking in (
        ([str(bare)], "the corpus has none"),
        ([str(shard), "--target", f"features:{wanted}"], "the examples have none"),
    ):
        assert main(["ablate", *start, *words]) == 2
        shown = capsys.readouterr()
        assert lacking in shown.err and "Provisional" not in shown.err and "selecting" not in shown.err


def test_examples_score_and_evaluate_from_the_command_line(shard, tmp_path, capsys):
    table = pq.read_table(shard).slice(0, 1200).drop_columns(["text"])
    pq.write_table(table, tmp_path / "in.parquet")
    liked = np.argsort([-row[0] for row in table["feature_arr"].to_pylist()])[:240]
    (tmp_path / "liked.txt").write_text("\n".join(map(str, liked)))
    pq.write_table(table.take(pa.array(liked)), tmp_path / "liked.parquet")
    words = ["ablate", str(tmp_path / "in.parquet"), *QUICK, "--runs-dir", str(tmp_path / "runs"), "--device", "cpu"]
    answers = []
    for target in (f"ids:{tmp_path / 'liked.txt'}", f"features:{tmp_path / 'liked.parquet'}"):
        assert main([*words, "--select_ratio", "0.2", "--target", target, "--json"]) == 0
        answers.append(json.loads(capsys.readouterr().out.splitlines()[-1]))
    by_ids, by_features = answers
    assert np.allclose(by_ids["losses"], by_features["losses"], atol=1e-6) and by_ids["key"] != by_features["key"]
    assert by_ids["judge"] == "features" and "120 steer" in " ".join(by_ids["notes"])
    assert by_ids["question"]["ratio"] == 0.2
    (tmp_path / "liked.txt").write_text("\n".join(map(str, range(1100, 1230))))
    assert main([*words, "--target", f"ids:{tmp_path / 'liked.txt'}"]) == 2
    assert "30 of its 130 ids are not in the corpus of 1,200 rows, such as '1200'" in capsys.readouterr().err


def test_the_best_simple_baseline_is_not_compared_with_itself():
    result = made_result(ROBUST[:, :1])
    row = next(line for line in text_of(result).splitlines() if line.startswith("Top quality"))
    assert result.comparisons.best_simple == (1,) and row.split()[-2:] == ["the", "best"]
    # next to random alone
    assert row.count(" to ") == 1


def test_options_become_a_question_and_wrong_ones_a_sentence(capsys):
    from datamask.analyses.ablation.command import question_of
    from datamask.cli.parser import parse

    question, texts = question_of(parse(["ablate", "x.parquet"]))
    assert question == AblationQuestion() and texts == []
    question, _ = question_of(parse(["ablate", "x.parquet", "--target", "high:stars", "--seed-rows", "500"]))
    assert (question.target.kind, question.target.column, question.rows) == ("score", "stars", 500)
    for options, said in (
        (["--seeds", "3"], "--seeds must be at least 6"),
        (["--methods", "best"], "--methods must be of"),
        (["--target", "nothing"], "--target must be random"),
    ):
        assert main(["ablate", "nowhere.parquet", *options]) == 2
        assert said in capsys.readouterr().err
