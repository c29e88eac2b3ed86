"""Norms, unit length in place, the fingerprint, compaction."""

import hashlib

import numpy as np
import pyarrow as pa
import pytest

from datamask.corpus import checks
from datamask.corpus.checks import check_unique, compact, fingerprint, normalise, norms
from datamask.errors import InputError


def test_norms_of_ordinary_tiny_and_huge_rows():
    rng = np.random.default_rng(0)
    features = rng.normal(size=(5000, 7)).astype(np.float32)
    features[::5] *= np.float32(1e-30)  # squares underflow in float32
    features[1::5] *= np.float32(1e30)  # squares overflow
    features[2::50] = 0
    features[2501] = np.float32(1e-45)  # the smallest denormal
    features[7, 3], features[8, 0] = np.nan, -np.inf
    got = norms(features)
    exact = np.linalg.norm(features.astype(np.float64), axis=1)
    exact[~np.isfinite(exact)] = np.nan
    np.testing.assert_allclose(got, exact, rtol=1e-6)
    assert np.isnan(got[[7, 8]]).all() and (got[2::50] == 0).all() and got[2501] > 0


def test_normalise_gives_unit_rows_in_place_at_every_scale():
    rng = np.random.default_rng(1)
    features = rng.normal(size=(5000, 16)).astype(np.float32)
    features *= 10.0 ** rng.integers(-37, 37, 5000)[:, None].astype(np.float32)
    before = features.astype(np.float64)
    same = features
    normalise(features, norms(features))
    assert same is features
    np.testing.assert_allclose(features, before / np.linalg.norm(before, axis=1, keepdims=True), atol=2e-7)
    np.testing.assert_allclose(np.linalg.norm(features.astype(float), axis=1), 1, atol=5e-7)


def test_block_digests_are_of_the_values_before_and_rows_do_not_depend_on_their_block():
    features = np.random.default_rng(2).normal(size=(checks.BLOCK + 5, 3)).astype(np.float32)
    alone = features[checks.BLOCK :].copy()
    expected = [
        hashlib.blake2b(part.tobytes(), digest_size=32).digest()
        for part in (features[: checks.BLOCK], features[checks.BLOCK :])
    ]
    assert normalise(features, norms(features)) == expected
    normalise(alone, norms(alone))
    np.testing.assert_array_equal(alone, features[checks.BLOCK :])


def test_the_fingerprint_tells_every_part_and_the_order_apart():
    def of(ids=("a", "b"), quality=(1.0, 2.0), blocks=(b"x",), dim=3, lengths=None, kind=None):
        lengths = None if lengths is None else np.array(lengths)
        return fingerprint(pa.array(ids, kind), np.array(quality), list(blocks), dim, lengths)

    variants = [
        of(),
        of(ids=("b", "a")),
        of(ids=("ab", "")),
        of(quality=(2.0, 1.0)),
        of(blocks=(b"y",)),
        of(dim=4),
        of(lengths=(1.0, 2.0)),
        of(lengths=(2.0, 1.0)),
        of(ids=(1, 2)),
        of(ids=("1", "2")),
        of(ids=(12, 1)),
    ]
    assert len(set(variants)) == len(variants)
    assert of() == of(kind=pa.large_string()) and of(ids=(1, 2), kind=pa.int8()) == of(ids=(1, 2), kind=pa.uint64())
    sliced = fingerprint(pa.array(["z", "a", "b"]).slice(1), np.array([1.0, 2.0]), [b"x"], 3, None)
    assert sliced == of()
    assert all(character in "0123456789abcdef" for character in of()) and len(of()) == 32


def test_equal_hashes_alone_are_no_repeated_id(monkeypatch):
    monkeypatch.setattr(checks, "row_hash", lambda ids, seed: np.zeros(len(ids), np.uint64))
    check_unique(pa.array(["a", "b", "c"]), str, "id")
    with pytest.raises(InputError, match=r"holds 1 id more than once \('b'; 'b' is in 1 and 3\)"):
        check_unique(pa.array(["a", "b", "c", "b"]), str, "id")


def test_compact_moves_kept_rows_to_the_front_of_the_same_memory():
    features = np.arange(3 * checks.BLOCK * 2, dtype=np.float32).reshape(-1, 2)
    keep = np.random.default_rng(0).random(len(features)) < 0.7
    expected, before = features[keep].copy(), features.copy()
    owned = before.copy()
    result = compact(owned, keep)
    assert result is owned and result.flags.c_contiguous
    np.testing.assert_array_equal(result, expected)
