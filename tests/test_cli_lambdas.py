"""`which-lambda` is another name of `ablate`: it takes what it took, and its stored answers stay visible."""

from __future__ import annotations

import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from datamask.analyses.ablation.command import question_of
from datamask.cli import main
from datamask.cli.parser import parse
from datamask.config.target import Target
from datamask.runs import lambda_answers
from tests.making.answers import keep_answer, made_answer
from tests.making.planted import language


def shard_of(path, n: int, text: bool = True) -> np.ndarray:
    """Write rows in one file; returns their features."""
    rng = np.random.default_rng(1)
    features = rng.normal(size=(n, 24)).astype("f4")
    table = {
        "chunk_id": np.arange(n),
        "quality_score": rng.normal(size=n),
        "feature_arr": pa.FixedSizeListArray.from_arrays(pa.array(features.ravel()), 24),
        **({"text": language(rng, n, "w", 60)} if text else {}),
    }
    pq.write_table(pa.table(table), path)
    return features


def test_every_option_that_it_took_is_taken(tmp_path, capsys):
    shard_of(tmp_path / "in.parquet", 1500)
    words = ["which-lambda", str(tmp_path / "in.parquet"), "--objectives", "pairwise", "--lambdas", "0,1"]
    words += ["--ratios", "0.2,0.3", "--words", "2000", "--judge", "bigram", "--seed", "1", "--device", "cpu"]
    words += ["--runs-dir", str(tmp_path / "runs"), "--output", str(tmp_path / "out.json")]
    quick = ["--methods", "top-quality", "--seeds", "6"]
    assert main([*words, *quick, "--json"]) == 0
    found = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert [each["question"]["ratio"] for each in found["results"]] == [0.2, 0.3]
    assert json.loads((tmp_path / "out.json").read_text())["results"][0]["losses"] == found["results"][0]["losses"]
    assert [method["name"] for method in found["results"][0]["methods"]] == ["random", "top-quality", "pairwise-0"]
    # selected before, so that only what is said is new
    assert main([*words, *quick]) == 0
    assert capsys.readouterr().out.startswith(found["results"][0]["headline"])


def test_its_defaults_are_those_that_it_had():
    options = parse(["which-lambda", "x.parquet"])
    question, _ = question_of(options, options.select_ratio)
    assert (question.objectives, question.target) == (("facility", "pairwise"), Target())
    # 1 is top quality, a method of its own
    assert question.lambdas == (0.0, 0.05, 0.1, 0.2, 0.35, 0.5, 0.7, 0.85) and question.ratio == 0.1
    assert options.ratios is None and options.judge == "bigram"


def test_its_help_names_its_own_defaults_and_that_of_ablate_names_others(capsys):
    shown = {}
    for command in ("which-lambda", "ablate"):
        with pytest.raises(SystemExit):
            parse([command, "--help"])
        shown[command] = " ".join(capsys.readouterr().out.split())
    assert "(0,0.05,0.1,0.2,0.35,0.5,0.7,0.85,1); 1 is top-quality" in shown["which-lambda"]
    assert "(0,0.35,0.5,0.7,0.85); 1 is top-quality" in shown["ablate"]
    for command, ratio in (("which-lambda", 0.1), ("ablate", 0.3)):
        assert f"share of the rows to select ({ratio})" in shown[command]


def test_examples_score_and_evaluate_from_the_command_line(tmp_path, capsys):
    features = shard_of(tmp_path / "in.parquet", 1200, text=False)
    liked = np.argsort(-features[:, 0])[:240]
    (tmp_path / "liked.txt").write_text("\n".join(map(str, liked)))
    pq.write_table(pq.read_table(tmp_path / "in.parquet").take(pa.array(liked)), tmp_path / "liked.parquet")
    words = ["which-lambda", str(tmp_path / "in.parquet"), "--objectives", "pairwise", "--lambdas", "0,1"]
    words += ["--ratios", "0.2", "--methods", "top-quality", "--runs-dir", str(tmp_path / "runs"), "--device", "cpu"]
    answers = []
    for target in ("ids:liked.txt", "features:liked.parquet"):
        kind, _, name = target.partition(":")
        assert main([*words, "--target", f"{kind}:{tmp_path / name}", "--json"]) == 0
        answers.append(json.loads(capsys.readouterr().out.splitlines()[-1]))
    by_ids, by_features = answers
    assert np.allclose(by_ids["losses"], by_features["losses"], atol=1e-6) and by_ids["key"] != by_features["key"]
    assert by_ids["judge"] == "features" and "120 steer" in " ".join(by_ids["notes"])
    (tmp_path / "liked.txt").write_text("\n".join(map(str, range(1100, 1230))))
    assert main([*words, "--target", f"ids:{tmp_path / 'liked.txt'}"]) == 2
    assert "30 of its 130 ids are not in the corpus of 1,200 rows, such as '1200'" in capsys.readouterr().err


def test_answers_that_were_stored_stay_visible(tmp_path):
    made = made_answer("f")
    keep_answer(tmp_path, made)
    (kept,) = lambda_answers.answers(tmp_path, "f")
    assert kept["headline"] == made["headline"]


def test_a_wrong_target_or_option_is_one_sentence(capsys):
    for options, said in (
        (["--target", "nothing"], "--target must be random, quality, COLUMN=VALUE or a file"),
        (["--train-bytes", "5000"], "--train_bytes belongs to --judge transformer"),
        (["--ratios", "x"], "--ratios must be numbers"),
    ):
        assert main(["which-lambda", "nowhere.parquet", *options]) == 2
        assert said in capsys.readouterr().err
