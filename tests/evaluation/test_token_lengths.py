"""Who counts tokens says so where a corpus has none."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from datamask.errors import InputError
from datamask.evaluation.pool import Pool
from datamask.evaluation.references import reference_rows
from datamask.evaluation.token_lengths import token_lengths
from tests.making.pools import corpus_of, made_corpus


def test_a_corpus_with_lengths_gives_them():
    corpus = made_corpus(50)
    assert token_lengths(corpus) is corpus.lengths


def test_a_corpus_without_lengths_is_refused_in_one_sentence(tmp_path):
    corpus = corpus_of(np.random.default_rng(0).normal(size=(20, 4)))
    with pytest.raises(InputError, match="--length_column"):
        reference_rows(corpus, 5, tokens=100.0)
    with pytest.raises(InputError, match="--length_column"):
        Pool(corpus, torch.device("cpu"), tmp_path).quality_under(100.0)
