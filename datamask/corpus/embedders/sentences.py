"""Embeddings by a model of the library sentence-transformers (https://sbert.net), as most published ones are.

The features are those of ``SentenceTransformer(NAME_OR_PATH).encode(texts)`` with the prompt, if any, that the model's
author set for documents. A folder of this machine is read as it is; another name is that of a model on the Hugging Face
Hub, of which configuration, tokenizer and safetensors are downloaded once. No code of a model is run.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from datamask.corpus.embedders.contract import digest_of, unit_rows
from datamask.errors import OptionError
from datamask.files import user_path

READ = ("*.json", "*.txt", "*.model", "*.safetensors")
"""Files of a model; formats that can run code when they are read are not among them."""

BATCHES = {"cpu": 64, "mps": 256, "cuda": 1024}
"""Texts given at a time, by device: about a second. The library sorts them by length and fills its own batches."""

PROMPTS = ("document", "passage")
"""Names under which authors store the prompt for what is searched, not searched for."""


class SentenceModel:
    """A sentence-transformers model; keeps the `Embedder` contract.

    Args:
        name: folder of this machine, or name on the hub, such as ``intfloat/multilingual-e5-small``.
        device: as torch names it; None: a GPU where there is one. A GPU computes in float16.

    Attributes:
        prompt: put before each text; empty: none.

    Raises:
        OptionError: there is no such model, it cannot be read, or the library is not installed.
    """

    kind = "st"

    def __init__(self, name: str | Path, device: str | None = None) -> None:
        folder = _folder(str(name))
        self._model = _load(folder, device)
        self.prompt = next((self._model.prompts[each] for each in PROMPTS if self._model.prompts.get(each)), "")
        self.name = (folder.resolve().name if user_path(name).is_dir() else str(name)) + (
            f" with prompt {self.prompt!r}" if self.prompt else ""
        )
        self.dim = int(self._model.get_embedding_dimension())
        self.batch = BATCHES.get(self._model.device.type, BATCHES["cpu"])
        self.digest = digest_of(folder, [str(path.relative_to(folder)) for path in model_files(folder)])

    def transform(self, texts: Sequence[str]) -> np.ndarray:
        """Return features of `texts`, float32 ``(n, d)`` of unit norm."""
        features = self._model.encode(list(texts), prompt=self.prompt or None, show_progress_bar=False)
        return unit_rows(features)


def is_sentence_model(folder: Path) -> bool:
    """Whether a folder holds a model of this library, and not one of model2vec, which may be saved for both."""
    config = folder / "config.json"
    static = config.is_file() and b'"model2vec"' in config.read_bytes()
    return (folder / "modules.json").is_file() and not static


def model_files(folder: Path) -> list[Path]:
    """What of a model's folder is read."""
    return sorted(path for pattern in READ for path in folder.rglob(pattern))


def _folder(name: str) -> Path:
    """The folder of the model, downloaded where it is none of this machine."""
    folder = user_path(name)
    if folder.is_dir():
        return folder
    try:
        from huggingface_hub import snapshot_download

        return Path(snapshot_download(name, allow_patterns=list(READ)))
    except Exception as error:  # no name, no network, no such model, or the library is not installed: no common type
        raise OptionError(
            f"--embedder st:{name} is neither a folder of this machine nor a model that can be downloaded: {error}"
        ) from error


def _load(folder: Path, device: str | None) -> Any:
    try:
        import torch
        from sentence_transformers import SentenceTransformer
        from transformers.utils import logging
    except ImportError as error:
        raise OptionError(
            "--embedder st needs the package sentence-transformers, which is not installed: "
            'pip install "datamask[embed]" (or pip install sentence-transformers)'
        ) from error
    logging.disable_progress_bar()  # `prepare` has its own
    half = device.startswith("cuda") if device else torch.cuda.is_available()
    options = {"use_safetensors": True, "dtype": torch.float16 if half else torch.float32}
    try:
        return SentenceTransformer(str(folder), device=device, model_kwargs=options, local_files_only=True)
    except Exception as error:  # the libraries that read these files have no common type
        raise OptionError(f"{folder} cannot be read as a sentence-transformers model: {error}") from error
