"""`which-lambda` from shards to its answer."""

from __future__ import annotations

import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from datamask.cli import main
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


def test_a_wrong_target_is_one_sentence(tmp_path, capsys):
    assert main(["which-lambda", "nowhere.parquet", "--target", "nothing"]) == 2
    assert "--target must be random, quality, COLUMN=VALUE or a file" in capsys.readouterr().err
