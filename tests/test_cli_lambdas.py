"""`which-lambda` from shards to its answer."""

from __future__ import annotations

import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from datamask.cli import main
from datamask.evaluation.lambdas import proxy_models, trial
from datamask.evaluation.lambdas.transformer import Size
from datamask.runs import lambda_answers


def test_which_lambda_from_shard_to_answer(tmp_path, capsys):
    rng, n = np.random.default_rng(0), 700
    pq.write_table(
        pa.table(
            {
                "chunk_id": np.arange(n),
                "quality_score": rng.normal(size=n),
                "feature_arr": pa.FixedSizeListArray.from_arrays(pa.array(rng.normal(size=n * 6).astype("f4")), 6),
                "text": [" ".join(f"w{w}" for w in rng.zipf(1.5, 20) % 90) for _ in range(n)],
            }
        ),
        tmp_path / "in.parquet",
    )
    words = [
        "which-lambda",
        str(tmp_path / "in.parquet"),
        "--objectives",
        "pairwise",
        "--lambdas",
        "0,1",
        "--ratios",
        "0.2",
        "--runs-dir",
        str(tmp_path / "runs"),
        "--output",
        str(tmp_path / "out.json"),
        "--device",
        "cpu",
    ]
    assert main([*words, "--json"]) == 0
    found = json.loads(capsys.readouterr().out.splitlines()[-1])
    written = json.loads((tmp_path / "out.json").read_text())
    assert found["headline"] == written["headline"] and found["rows"] == n
    (kept,) = lambda_answers.answers(tmp_path / "runs" / ".cache", found["fingerprint"])
    assert kept["key"] == found["key"] and [len(one["curves"][0]["points"]) for one in kept["measures"]] == [2, 2]
    assert main(words) == 0
    shown = capsys.readouterr().out
    assert shown.startswith(found["headline"]) and "LEVEL WITH BEST" in shown


def test_examples_steer_and_judge_from_the_command_line(tmp_path, capsys):
    rng, n = np.random.default_rng(1), 1200
    features = rng.normal(size=(n, 6)).astype("f4")
    shard = pa.table(
        {
            "chunk_id": np.arange(n),
            "quality_score": rng.normal(size=n),
            "feature_arr": pa.FixedSizeListArray.from_arrays(pa.array(features.ravel()), 6),
        }
    )
    pq.write_table(shard, tmp_path / "in.parquet")
    liked = np.argsort(-features[:, 0])[:240]
    (tmp_path / "liked.txt").write_text("\n".join(map(str, liked)))
    pq.write_table(shard.take(pa.array(liked)), tmp_path / "liked.parquet")
    words = ["which-lambda", str(tmp_path / "in.parquet"), "--objectives", "pairwise", "--lambdas", "0,1"]
    words += ["--ratios", "0.2", "--runs-dir", str(tmp_path / "runs"), "--device", "cpu", "--target"]
    answers = []
    for target in ("ids:liked.txt", "features:liked.parquet"):
        kind, _, name = target.partition(":")
        assert main([*words, f"{kind}:{tmp_path / name}", "--json"]) == 0
        answers.append(json.loads(capsys.readouterr().out.splitlines()[-1]))
    by_ids, by_features = answers
    points = [[point["difference"] for point in one["measures"][0]["curves"][0]["points"]] for one in answers]
    assert points[0] == pytest.approx(points[1], abs=1e-6) and by_ids["key"] != by_features["key"]
    assert by_ids["target"]["examples"] == 240 and by_ids["target"]["near_copies"] >= 240
    assert main([*words, f"ids:{tmp_path / 'liked.txt'}"]) == 0
    shown = capsys.readouterr().out
    assert "120 steer" in shown and "words of each selection" not in shown
    (tmp_path / "liked.txt").write_text("\n".join(map(str, range(n - 100, n + 30))))
    assert main([*words, f"ids:{tmp_path / 'liked.txt'}"]) == 2
    assert "30 of its 130 ids are not in the corpus of 1,200 rows, such as '1200'" in capsys.readouterr().err


def test_a_transformer_judges_from_the_command_line(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(trial, "SMALL", Size(layers=1, width=8, heads=1, context=64, batch=64))
    monkeypatch.setattr(proxy_models, "ASKED_BYTES", 1_000)
    rng, n = np.random.default_rng(2), 700
    table = {
        "chunk_id": np.arange(n),
        "quality_score": rng.normal(size=n),
        "feature_arr": pa.FixedSizeListArray.from_arrays(pa.array(rng.normal(size=n * 6).astype("f4")), 6),
        "text": [" ".join(f"w{w}" for w in rng.zipf(1.5, 20) % 90) for _ in range(n)],
    }
    pq.write_table(pa.table(table), tmp_path / "in.parquet")
    words = ["which-lambda", str(tmp_path / "in.parquet"), "--objectives", "pairwise", "--lambdas", "0,1"]
    words += ["--ratios", "0.2", "--runs-dir", str(tmp_path / "runs"), "--device", "cpu"]
    assert main([*words, "--judge", "transformer", "--train-bytes", "5000"]) == 0
    shown = capsys.readouterr().out
    assert "nats per byte" in shown and "5,000 bytes of each selection trained on (transformer)" in shown
    assert main([*words, "--train-bytes", "5000"]) == 2
    assert "--train-bytes belongs to --judge transformer" in capsys.readouterr().err


def test_a_wrong_target_is_one_sentence(tmp_path, capsys):
    assert main(["which-lambda", "nowhere.parquet", "--target", "nothing"]) == 2
    assert "--target must be random, quality, COLUMN=VALUE or a file" in capsys.readouterr().err
