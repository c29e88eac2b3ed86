"""Embedders: a static model against its definition in float64, a function's answers checked, names refused."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from datamask.corpus.embedders import embedder_of
from datamask.corpus.embedders.contract import (
    METADATA_KEY,
    digest_of,
    embedder_note,
    metadata_of,
    tfidf_metadata,
    unit_rows,
)
from datamask.corpus.embedders.model2vec import Model2Vec
from datamask.errors import InputError, OptionError
from tests.corpus.embedders.tiny import WORDS, write_model

ROOT = Path(__file__).parents[3]

TEXTS = ["river stone", "cloud cloud engine", "violin", "market unknown river", "nothing of it", ""]


@pytest.fixture
def save_model(tmp_path):
    """Write a model2vec folder: `save(vectors, name=..., normalize=..., **other tensors)`."""

    def save(vectors, *, name="tiny", **options):
        return write_model(tmp_path / name, vectors, **options)

    return save


def defined(texts, vectors, weights=None, mapping=None):
    """Mean of the token vectors times their weights, scaled to unit norm, in float64; zeros without a known token."""
    rows = np.zeros((len(texts), vectors.shape[1]))
    for row, text in enumerate(texts):
        tokens = [WORDS.index(word) for word in text.split() if word in WORDS[1:]]
        if tokens:
            places = tokens if mapping is None else mapping[tokens]
            scale = np.ones(len(tokens)) if weights is None else weights[tokens]
            rows[row] = (vectors[places].astype(np.float64) * scale[:, None]).mean(axis=0)
            rows[row] /= np.linalg.norm(rows[row])
    return rows


@pytest.mark.parametrize("kind", [np.int8, np.float16, np.float32])
@pytest.mark.parametrize("normalize", [True, False])
def test_a_static_model_is_the_mean_of_its_token_vectors(save_model, kind, normalize):
    vectors = np.random.default_rng(0).integers(-127, 128, (len(WORDS), 5)).astype(kind)
    embedder = Model2Vec(save_model(vectors, normalize=normalize))
    np.testing.assert_allclose(
        embedder.transform(TEXTS), defined(TEXTS, vectors), atol=1e-3 if kind is np.float16 else 1e-6
    )
    assert (embedder.dim, embedder.name, embedder.kind) == (5, "tiny", "model2vec")


def test_weights_and_a_mapping_of_tokens_count(save_model):
    rng = np.random.default_rng(1)
    vectors, weights = rng.normal(size=(3, 4)).astype(np.float32), rng.uniform(0.1, 2, len(WORDS))
    mapping = rng.integers(0, 3, len(WORDS))
    embedder = Model2Vec(save_model(vectors, weights=weights, mapping=mapping))
    np.testing.assert_allclose(embedder.transform(TEXTS), defined(TEXTS, vectors, weights, mapping), atol=1e-6)


def test_the_digest_is_that_of_the_files(save_model):
    vectors = np.ones((len(WORDS), 3), np.float32)
    first, again = Model2Vec(save_model(vectors)), Model2Vec(save_model(vectors, name="again"))
    other = Model2Vec(save_model(vectors, name="other", normalize=False))
    assert first.digest == again.digest != other.digest and len(first.digest) == 64
    with pytest.raises(OptionError, match=r"gone\.json cannot be read: No such file"):
        digest_of(Path(), ["gone.json"])


def test_nothing_is_downloaded(save_model, monkeypatch):
    import huggingface_hub

    def download(*_, **__):
        raise AssertionError("a model was asked for on the network")

    monkeypatch.setattr(huggingface_hub, "snapshot_download", download)
    for name in ("minishlab/potion-base-8M", "https://huggingface.co/minishlab/potion-base-8M", "missing"):
        with pytest.raises(OptionError, match=r"must name a folder of this machine .* nothing is downloaded"):
            embedder_of(f"model2vec:{name}")


def test_a_folder_that_is_no_model_is_one_sentence(save_model, tmp_path):
    vectors = np.ones((len(WORDS), 3), np.float32)
    pickled = save_model(vectors, name="pickled")
    (pickled / "model.safetensors").rename(pickled / "pytorch_model.bin")
    damaged = save_model(vectors, name="damaged")
    (damaged / "model.safetensors").write_bytes(b"no tensors")
    infinite = save_model(np.full((len(WORDS), 3), np.inf, np.float32), name="infinite")
    outside = save_model(vectors, name="outside", mapping=np.full(len(WORDS), 99))
    for folder, said in (
        (pickled, "lacks model.safetensors; pytorch_model.bin is not read, since reading it can run code"),
        (damaged, "cannot be read as a model2vec model"),
        (infinite, "do not fit its tokens, or are not finite"),
        (outside, "do not fit its tokens, or are not finite"),
        (save_model(vectors[:3], name="short"), "does not match number of vectors"),
    ):
        with pytest.raises(OptionError, match=said):
            Model2Vec(folder)


def test_a_missing_library_names_the_command_that_installs_it(save_model, monkeypatch):
    folder = save_model(np.ones((len(WORDS), 3), np.float32))
    monkeypatch.setitem(sys.modules, "model2vec", None)
    with pytest.raises(OptionError, match=r'pip install "datamask\[model2vec\]"'):
        Model2Vec(folder)


FUNCTIONS = """
import numpy as np
calls = 0
def letters(texts):
    return [[text.count("a"), text.count("e"), 1] for text in texts]
def one_row(texts):
    return np.ones((1, 3)) if len(texts) > 1 else np.ones((len(texts), 3))
def flat(texts):
    return np.ones(len(texts))
def ragged(texts):
    return [[1.0] * (k + 1) for k in range(len(texts) + 1)]
def infinite(texts):
    return np.where(np.arange(len(texts)) == 1, np.nan, 1.0)[:, None] * np.ones((1, 2))
def wider(texts):
    global calls
    calls += 1
    return np.ones((len(texts), calls))
def failing(texts):
    raise KeyError("model")
def leaving(texts):
    raise SystemExit(3)
def complex_ones(texts):
    return np.ones((len(texts), 2)) * 1j
def masked(texts):
    return np.ma.masked_less(np.ones((len(texts), 2)), 2)
def dates(texts):
    return np.full((len(texts), 2), "2026-01-01", "datetime64[D]")
def words(texts):
    return [["1", "2"]] * len(texts)
constant = 3
"""


@pytest.fixture
def functions(tmp_path, monkeypatch):
    (tmp_path / "my_embedders.py").write_text(FUNCTIONS)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path, str(tmp_path)])
    yield "my_embedders"
    sys.modules.pop("my_embedders", None)


def test_a_function_is_called_and_scaled(functions):
    embedder = embedder_of(f"{functions}:letters")
    texts = ["banana", "tree", "xyz"]
    expected = np.array([[3, 0, 1], [0, 2, 1], [0, 0, 1]], float)
    np.testing.assert_allclose(embedder.transform(texts), unit_rows(expected), atol=1e-7)
    assert (embedder.dim, embedder.name, embedder.kind) == (3, "my_embedders:letters", "function")


@pytest.mark.parametrize(
    "function, said",
    [
        ("one_row", r"my_embedders:one_row must return an array of 2 rows, one a text, got the shape \(1, 3\)"),
        ("flat", r"my_embedders:flat must return an array of 1 rows, one a text, got the shape \(1,\)"),
        ("ragged", "my_embedders:ragged must return an array of 1 rows, one a text, got what cannot be read as real"),
        ("infinite", "my_embedders:infinite must return finite numbers, got NaN or infinity in row 1"),
        ("wider", "my_embedders:wider must return the same width at every call, got 1 and then 2 columns"),
        ("failing", r"my_embedders:failing failed on 1 texts \(KeyError: 'model'\)"),
        ("leaving", r"my_embedders:leaving failed on 1 texts \(SystemExit: 3\)"),
        ("complex_ones", "my_embedders:complex_ones must .* as real numbers: ndarray of complex128"),
        ("masked", "my_embedders:masked must .* as real numbers: MaskedArray of float64"),
        ("dates", "my_embedders:dates must .* as real numbers: ndarray of datetime64"),
        ("words", "my_embedders:words must .* as real numbers: ndarray of <U1"),
        ("constant", "my_embedders must have a function constant"),
        ("missing", "my_embedders must have a function missing"),
    ],
)
def test_what_a_function_returns_is_checked(functions, function, said):
    with pytest.raises(InputError, match=said):
        embedder_of(f"{functions}:{function}").transform(["one", "two"])


@pytest.mark.parametrize("code", ["raise SystemExit(3)", "def embed(texts): raise SystemExit(3)"])
def test_an_embedder_that_leaves_python_is_a_sentence(tmp_path, code):
    (tmp_path / "leaving.py").write_text(code)
    (tmp_path / "in.jsonl").write_text('{"text": "pear"}\n')
    command = [
        sys.executable,
        "-m",
        "datamask",
        "prepare",
        "in.jsonl",
        "--output",
        "out",
        "--embedder",
        "leaving:embed",
    ]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=240)
    assert done.returncode == 2 and "SystemExit: 3" in done.stderr.splitlines()[-1]
    assert "Traceback" not in done.stderr and not (tmp_path / "out").exists()


@pytest.mark.parametrize("name", ["", "tf-idf", "model", "a:b:c", "../x:y", "os.path", ":embed", "module:"])
def test_a_name_of_no_kind_is_refused(name):
    with pytest.raises(
        OptionError, match="--embedder must be tfidf, model2vec:PATH, st:NAME_OR_PATH or MODULE:FUNCTION"
    ):
        embedder_of(name)


def test_a_module_that_is_not_there_is_named():
    with pytest.raises(OptionError, match="no_such_module_1 cannot be imported"):
        embedder_of("no_such_module_1:embed")


def test_rows_of_any_size_become_unit_rows():
    rows = unit_rows(np.array([[3e200, 4e200], [3e-200, 4e-200], [0, 0]]))
    np.testing.assert_allclose(rows, [[0.6, 0.8], [0.6, 0.8], [0, 0]], atol=1e-7)


def test_the_note_of_a_shard_says_who_made_its_features(save_model):
    embedder = Model2Vec(save_model(np.ones((len(WORDS), 3), np.float32)))
    note = embedder_note({METADATA_KEY: metadata_of(embedder)})
    assert note == "Features by tiny (model2vec)."
    tfidf = {METADATA_KEY: tfidf_metadata(256, 4096)}
    assert embedder_note(tfidf) == "Features by TF-IDF (fitted on 4,096 texts)."
    endless = {METADATA_KEY: tfidf[METADATA_KEY].replace(b"4096", b"1e999")}
    for metadata in (None, {}, endless, {METADATA_KEY: b"\xff"}, {METADATA_KEY: b"[]"}, {METADATA_KEY: b"{}"}):
        assert embedder_note(metadata) is None
