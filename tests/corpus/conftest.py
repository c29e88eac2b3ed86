"""Small corpora for the tests of this wing, made without reading a file."""

import numpy as np
import pyarrow as pa
import pytest

from datamask.corpus import Corpus, Provenance


def unit(rows):
    """Rows divided by their norm, float32."""
    rows = np.asarray(rows, np.float64)
    return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)


@pytest.fixture(scope="session")
def make_corpus():
    """Build a corpus from features; ids count up, quality is as given or random."""

    def make(features, quality=None, fingerprint="f" * 32):
        n = len(features)
        quality = np.random.default_rng(0).uniform(size=n) if quality is None else np.asarray(quality, float)
        return Corpus(
            pa.array(np.arange(n)),
            quality,
            unit(features),
            None,
            pa.table({"none": pa.nulls(n)}).select([]),
            np.zeros(n, np.int32),
            np.arange(n),
            fingerprint,
            Provenance(("memory.parquet",), n, n, {"id": "id", "feature": "f", "quality": ["q"]}),
        )

    return make
