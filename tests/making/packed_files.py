"""Compressed bytes, by the ending of a file's name."""

import gzip
from pathlib import Path

import pyarrow as pa


def packed(path: Path, content: bytes) -> bytes:
    """Return the content as a file of this name holds it: gzip for ``.gz``, zstd for ``.zst``, else as it is."""
    if path.suffix == ".gz":
        return gzip.compress(content, 1)
    return zstd(content) if path.suffix == ".zst" else content


def zstd(content: bytes) -> bytes:
    """Return one frame with its length and no checksum, as a stream writes it."""
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, "zstd") as stream:
        stream.write(content)
    return sink.getvalue().to_pybytes()
