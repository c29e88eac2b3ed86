"""Features by a sentence-transformers model, with a tiny BERT of random weights that is made here."""

import json

import numpy as np
import pyarrow.parquet as pq
import pytest

from datamask.cli import main
from datamask.corpus.embedders import embedder_of
from datamask.corpus.embedders.contract import METADATA_KEY
from datamask.errors import OptionError
from tests.making.bert import random_bert

sentence_transformers = pytest.importorskip("sentence_transformers")

WORDS = ["data", "mask", "keeps", "rows", "of", "the", "corpus", "that", "differ"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A model whose author set a prompt for documents."""
    return random_bert(tmp_path_factory.mktemp("models") / "tiny", ["passage", ":", *WORDS], prompt="passage: ")


def test_the_features_are_those_of_the_library(folder):
    texts = ["the corpus", "", "rows that differ", "data mask keeps rows of the corpus " * 40]
    model = embedder_of(f"st:{folder}")
    expected = sentence_transformers.SentenceTransformer(str(folder)).encode(texts, prompt="passage: ")
    expected /= np.linalg.norm(expected, axis=1, keepdims=True)
    np.testing.assert_allclose(model.transform(texts), expected, atol=1e-6)
    assert (model.dim, model.kind, model.name) == (16, "st", "tiny with prompt 'passage: '")


def test_prepare_writes_them_and_names_the_model(folder, tmp_path, capsys):
    texts = [f"{WORDS[i % 9]} {WORDS[i // 9 % 9]} mask" for i in range(70)]
    (tmp_path / "in.jsonl").write_text(
        "".join(json.dumps({"id": str(i), "text": t}) + "\n" for i, t in enumerate(texts))
    )
    words = ["prepare", str(tmp_path / "in.jsonl"), "--output", str(tmp_path / "out.parquet"), "--json"]
    assert main([*words, "--embedder", f"st:{folder}", "--device", "cpu"]) == 0
    report = json.loads(capsys.readouterr().out.splitlines()[-1])
    table = pq.read_table(tmp_path / "out.parquet")
    features = np.array(table["feature_arr"].to_pylist(), np.float32)
    np.testing.assert_allclose(features, embedder_of(f"st:{folder}").transform(texts), atol=2e-3)
    facts = json.loads(table.schema.metadata[METADATA_KEY])
    assert facts["name"] == "tiny with prompt 'passage: '" and facts["digest"] == report["digest"]


def test_what_is_no_model_is_refused_in_one_sentence(tmp_path, monkeypatch):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    with pytest.raises(OptionError, match=r"st:none is neither a folder of this machine nor a model"):
        embedder_of("st:none")
    (tmp_path / "config.json").write_text("{}")
    with pytest.raises(OptionError, match=r"cannot be read as a sentence-transformers model"):
        embedder_of(f"st:{tmp_path}")
