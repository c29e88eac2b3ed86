"""Features by a function of your own, ``MODULE:FUNCTION``: a list of n texts to an array ``(n, d)``.

    # mymodels.py, in the folder you are in or where Python looks
    from sentence_transformers import SentenceTransformer
    model = SentenceTransformer("/models/all-MiniLM-L6-v2")

    def embed(texts):
        return model.encode(texts)

What it returns is checked at every call. Importing it runs its code, so only names typed by a person are loaded.
"""

from __future__ import annotations

import hashlib
import importlib
import re
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType

import numpy as np

from datamask.corpus.embedders.contract import unit_rows
from datamask.errors import DatamaskError, InputError, OptionError
from datamask.process import import_from_working_folder

FUNCTION_NAME = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*:[^\W\d]\w*")

NOT_REAL = "cmMUS"
"""Kinds of arrays that NumPy would turn into numbers all the same: complex ones, times and text."""

PROBE = "A text that says how wide the features are."


class FunctionEmbedder:
    """A function as an embedder; keeps the `Embedder` contract. It is called once with `PROBE` to know d.

    The digest is that of the file of its module: what the function reads besides is not in it.

    Args:
        name: ``module:function``.

    Raises:
        OptionError: it cannot be imported or called. InputError: what it returns is no array ``(n, d)``.
    """

    kind = "function"
    batch = 64

    def __init__(self, name: str) -> None:
        import_from_working_folder()
        module_name, _, function_name = name.partition(":")
        try:
            module = importlib.import_module(module_name)
        except (Exception, SystemExit) as error:  # code of other people raises anything
            raise OptionError(
                f"--embedder {name}: {module_name} cannot be imported ({type(error).__name__}: {error}); "
                "it is looked for where Python looks, and in the folder you are in"
            ) from error
        function = getattr(module, function_name, None)
        if not callable(function):
            raise OptionError(f"--embedder {name}: {module_name} must have a function {function_name}")
        self.name, self._function = name, function
        self.digest = hashlib.sha256(_source(module) or name.encode()).hexdigest()
        self.dim = self._checked([PROBE]).shape[1]

    def transform(self, texts: Sequence[str]) -> np.ndarray:
        """Return features of `texts`, float32 ``(n, d)`` of unit norm.

        Raises:
            InputError: the function fails, or returns no finite array ``(n, d)`` of the width of its first answer.
        """
        features = self._checked(list(texts))
        if features.shape[1] != self.dim:
            raise InputError(
                f"--embedder {self.name} must return the same width at every call, got {self.dim} and then "
                f"{features.shape[1]} columns"
            )
        return unit_rows(features)

    def _checked(self, texts: list[str]) -> np.ndarray:
        """What the function returns for `texts`, float64 ``(n, d)``."""
        try:
            returned = self._function(texts)
        except DatamaskError:
            raise
        except (Exception, SystemExit) as error:  # as above
            raise InputError(
                f"--embedder {self.name} failed on {len(texts):,} texts ({type(error).__name__}: {error})"
            ) from error
        expected = f"--embedder {self.name} must return an array of {len(texts):,} rows, one a text"
        try:
            array = np.asanyarray(returned)
            if isinstance(array, np.ma.MaskedArray) or array.dtype.kind in NOT_REAL:
                raise TypeError(f"{type(array).__name__} of {array.dtype}")
            features = np.asarray(array, dtype=np.float64)
        except (TypeError, ValueError, RuntimeError) as error:  # ragged lists; tensors of a GPU or with gradients
            raise InputError(f"{expected}, got what cannot be read as real numbers: {error}") from error
        if features.ndim != 2 or len(features) != len(texts) or features.shape[1] == 0:
            raise InputError(f"{expected}, got the shape {features.shape}")
        if not np.isfinite(features).all():
            row = int(np.flatnonzero(~np.isfinite(features).all(axis=1))[0])
            raise InputError(f"--embedder {self.name} must return finite numbers, got NaN or infinity in row {row}")
        return features


def _source(module: ModuleType) -> bytes:
    """The file of a module; nothing where it has none of its own."""
    try:
        return Path(module.__file__ or "").read_bytes()
    except (OSError, AttributeError):
        return b""
