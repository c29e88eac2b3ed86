"""Static embeddings: a text's features are the mean of its tokens' vectors (https://github.com/MinishLab/model2vec).

Read by the library model2vec, so that the features are those of ``StaticModel.from_pretrained(PATH).encode(texts)``,
which by default looks at the first 512 tokens of a text. The folder must be there: nothing is downloaded.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from datamask.corpus.embedders.contract import digest_of, unit_rows
from datamask.errors import OptionError
from datamask.files import user_path
from datamask.storage.address import is_address

FILES = ("config.json", "model.safetensors", "tokenizer.json")
"""What a published model consists of; other files of its folder are not looked at."""

UNSAFE = (".bin", ".pt", ".pth", ".pkl", ".pickle", ".ckpt", ".joblib")
"""Endings of formats that can run code when they are read."""


class Model2Vec:
    """A model2vec model in a folder of this machine; keeps the `Embedder` contract.

    Args:
        path: of the folder, with `FILES` in it.

    Raises:
        OptionError: the folder is not there, lacks a file, holds no model, or the library is not installed.
    """

    kind = "model2vec"
    batch = 256

    def __init__(self, path: str | Path) -> None:
        folder = model_folder(path)
        self.name = folder.resolve().name
        self._model = _load(folder)
        self.dim = int(self._model.dim)
        self.digest = digest_of(folder, FILES)

    def transform(self, texts: Sequence[str]) -> np.ndarray:
        """Return features of `texts`, float32 ``(n, d)`` of unit norm; all zero where the model knows no token."""
        return unit_rows(self._model.encode(list(texts), use_multiprocessing=False))


def model_folder(path: str | Path) -> Path:
    """Return the folder, provided it holds what a model consists of; nothing in it is read.

    Raises:
        OptionError: it is no folder of this machine, or lacks a file.
    """
    option = f"--embedder model2vec:{path}"
    folder = user_path(path)
    if is_address(path) or not folder.is_dir():
        raise OptionError(
            f"{option} must name a folder of this machine with {', '.join(FILES)}; nothing is downloaded, so fetch the "
            "model first"
        )
    if missing := [name for name in FILES if not (folder / name).is_file()]:
        found = sorted(file.name for file in folder.iterdir() if file.suffix in UNSAFE)
        unsafe = f"; {found[0]} is not read, since reading it can run code" if found else ""
        raise OptionError(f"{option} lacks {', '.join(missing)}{unsafe}; save the model with save_pretrained")
    return folder


def _load(folder: Path) -> Any:
    """The library's model, whose vectors, weights and tokens fit each other."""
    try:
        from model2vec import StaticModel
    except ImportError as error:
        raise OptionError(
            "--embedder model2vec needs the package model2vec, which is not installed: "
            'pip install "datamask[model2vec]" (or pip install model2vec)'
        ) from error
    try:
        model = StaticModel.from_pretrained(folder, force_download=False)
        vectors, weights, mapping = model.embedding, model.weights, model.token_mapping
        last = max(model.tokenizer.get_vocab().values())
        fitting = vectors.ndim == 2 and vectors.size > 0 and bool(np.isfinite(vectors).all())
        fitting &= len(vectors if mapping is None else mapping) > last
        fitting &= weights is None or (len(weights) > last and bool(np.isfinite(weights).all()))
        fitting &= mapping is None or 0 <= mapping.min() <= mapping.max() < len(vectors)
    except Exception as error:  # the libraries that read these files have no common type
        raise OptionError(f"{folder} cannot be read as a model2vec model: {error}") from error
    if not fitting:
        raise OptionError(f"{folder} is no model2vec model: its vectors do not fit its tokens, or are not finite")
    return model
