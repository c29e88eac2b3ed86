"""From question to answer on corpora whose answer is known; ten seeds of both in `benchmarks/which_lambda.py`."""

from __future__ import annotations

import json

import pytest

from datamask.config.lambda_question import LambdaQuestion, Target
from datamask.errors import InputError, Stopped
from datamask.evaluation.lambdas import which_lambda
from tests.evaluation.lambdas.planted import noise_corpus, planted_corpus
from tests.evaluation.made import made_corpus


@pytest.mark.parametrize("seed", [3, 4])
def test_a_planted_lambda_is_found(seed, tmp_path):
    corpus, _, texts = planted_corpus(seed, n=2000)
    question = LambdaQuestion(("pairwise",), lambdas=(0.0, 0.2, 0.5, 0.8, 1.0), target=Target.own(texts))
    shares: list[float] = []
    answer = which_lambda(corpus, question, tmp_path, texts=texts, progress=lambda share, what: shares.append(share))
    assert shares == sorted(shares) and shares[-1] == 1
    curve = answer["measures"][0]["curves"][0]
    assert curve["verdict"] == "helps" and curve["recommended"] == [[0.8, 0.8]]
    assert "Pair-wise similarity helps" in answer["headline"] and "0.8" in answer["headline"]
    assert answer["target"]["texts"] == len(texts) and json.loads(json.dumps(answer)) == answer
    # the same words for all, quality alone is where the curve ends
    assert answer["measures"][0]["named"][0]["value"] == curve["points"][-1]["value"]


@pytest.mark.parametrize("seed", [3, 4])
def test_where_there_is_no_difference_none_is_found(seed, tmp_path):
    question = LambdaQuestion(("pairwise",), lambdas=(0.0, 0.5, 1.0))
    answer = which_lambda(noise_corpus(seed, n=1500), question, tmp_path)
    curve = answer["measures"][0]["curves"][0]
    assert curve["verdict"] == "level" and curve["recommended"] == []
    assert "cannot be told apart from a random selection" in answer["headline"]


def test_a_circular_target_recommends_nothing(tmp_path):
    question = LambdaQuestion(("pairwise",), lambdas=(0.0, 1.0), ratios=(0.2,), target=Target("quality"))
    answer = which_lambda(made_corpus(), question, tmp_path)
    assert answer["target"]["circular"] and "circular" in answer["headline"]
    assert all(curve["recommended"] == [] for measure in answer["measures"] for curve in measure["curves"])


def test_what_is_missing_is_said_and_stopping_stops(tmp_path):
    with pytest.raises(InputError, match="no text column"):
        which_lambda(made_corpus(texts=False), LambdaQuestion(), tmp_path)
    with pytest.raises(InputError, match=r"words to train on, 1,000 are needed"):
        which_lambda(made_corpus(), LambdaQuestion(("pairwise",), (0.01,), (0.0, 1.0)), tmp_path)

    def poll():
        raise Stopped("enough")

    with pytest.raises(Stopped):
        which_lambda(made_corpus(), LambdaQuestion(), tmp_path, poll=poll)
