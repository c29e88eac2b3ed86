"""Addresses as text: their parts, what may stand in them, and that no secret leaves them."""

from __future__ import annotations

import pytest

from datamask.config import CorpusConfig
from datamask.errors import InputError, OptionError
from datamask.storage.address import Address, file_name, harmless, has_secret, is_address, path_of

SECRETS = (
    "s3://USER:hunter2@bucket/x.parquet",
    "s3://USER:hunt/er2+hunter2@bucket/x.parquet",
    "s3://hunter2@bucket/x.parquet",
    "s3://bucket/x.parquet?secret_key=hunter2",
    "s3://bucket/x.parquet?endpoint_override=user:hunter2@host",
    "gs://bucket/x.parquet?access_token=hunter2",
    "https://user:hunter2@host/x.parquet",
    "https://user:hunter2@host:8080/x.parquet?download=true",
    "https://host/x.parquet?X-Amz-Credential=A&X-Amz-Signature=hunter2",
    "https://host/x.parquet?se=2026&sp=r&sig=hunter2",
    "https://host?Key-Pair-Id=a;Policy=hunter2",
    f"https://host/x.parquet?a=hunter2{'x' * 40}",
    "https://host/x.parquet#access_token=hunter2",
    "ftp://user:hunter2@host/x.parquet",
)


@pytest.mark.parametrize("text", SECRETS)
def test_an_address_with_a_secret_is_refused_without_telling_it(text):
    assert has_secret(text)
    for options in ({"inputs": (text,)}, {"inputs": ("a.parquet",), "features": (text,)}):
        with pytest.raises(OptionError) as caught:
            CorpusConfig(**options)
        assert "hunter2" not in str(caught.value) and "must hold no secret" in str(caught.value)
        assert str(caught.value).startswith(f"--{'features' if 'features' in options else 'input'} {text[:5]}")


@pytest.mark.parametrize("text", SECRETS)
def test_no_sentence_of_a_library_tells_it(text):
    for around in ("{}", "403, message='Forbidden', url='{}'", "<{}> is gone; see {} or (https://host/a)"):
        assert "hunter2" not in harmless(around.replace("{}", text))


@pytest.mark.parametrize(
    "text, parts, query",
    [
        ("s3://bucket/a/part-?.parquet", ("s3://bucket", "a", "part-?.parquet"), ""),
        ("s3://bucket/a b/ä#+%20.parquet/", ("s3://bucket", "a b", "ä#+%20.parquet"), ""),
        ("s3://bucket?region=eu-west-1&anonymous=true", ("s3://bucket",), "region=eu-west-1&anonymous=true"),
        ("s3://bucket/*/x?.parquet?region=eu-west-1", ("s3://bucket", "*", "x?.parquet"), "region=eu-west-1"),
        ("GS://bucket/a", ("gs://bucket", "a"), ""),
        ("https://Host:8080/a@b/x.parquet?download=true", ("https://host:8080", "a@b", "x.parquet"), "download=true"),
        (
            "hf://datasets/user/name@refs%2Fmain/*.parquet",
            ("hf://datasets", "user", "name@refs%2Fmain", "*.parquet"),
            "",
        ),
    ],
)
def test_parts(text, parts, query):
    address = Address.parse(text)
    assert (address.parts, address.query) == (parts, query) and not has_secret(text) and harmless(text) == text
    assert Address.parse(str(address)) == address and address.name == parts[-1].removeprefix(f"{address.scheme}://")
    assert is_address(text) and path_of(text) == address


@pytest.mark.parametrize(
    "text, words",
    [
        ("ftp://host/x.parquet", "an address that cannot be read"),
        ("s3://", "no whole address"),
        ("s3:///x.parquet", "no whole address"),
        ("s3://bucket/a//x.parquet", "no whole address"),
        ("s3://bucket/a/../x.parquet", "no whole address"),
        ("https://host/a/%2e%2e/x.parquet", "no whole address"),
        ("https://host/a/..%2f..%2fx.parquet", "no whole address"),
        ("https://host/a/..\\x.parquet", "no whole address"),
        ("s3://bucket/x.parquet?colour=red", "'colour' in its query, but that of s3:// may name anonymous"),
        ("hf://datasets/a/b?region=x", "'region' in its query, but that of hf:// may name nothing"),
    ],
)
def test_what_is_no_address_of_a_file(text, words):
    with pytest.raises(InputError, match=words.replace("?", r"\?")):
        Address.parse(text)


@pytest.mark.parametrize(
    "text, root, below",
    [
        ("s3://bucket/a/x.parquet", "s3://bucket/a", True),
        ("s3://bucket/a", "s3://bucket/a/", True),
        ("s3://bucket/a/*.parquet", "s3://bucket", True),
        ("s3://bucket/ab/x.parquet", "s3://bucket/a", False),
        ("s3://bucket", "s3://bucket/a", False),
        ("s3://bucket/*/x.parquet", "s3://bucket/a", False),
        ("s3://bucket2/a", "s3://bucket/a", False),
        ("gs://bucket/a", "s3://bucket/a", False),
        ("s3://bucket/a/x.parquet?endpoint_override=evil", "s3://bucket/a", False),
        ("s3://bucket/a/x.parquet", "s3://bucket/a?endpoint_override=mine", False),
        ("s3://bucket/a/x.parquet?anonymous=1&region=r", "s3://bucket/a?region=r&anonymous=1", True),
        ("https://host:8080/a/x", "https://host/a", False),
        ("https://HOST/a/x", "https://host/a", True),
        ("http://host/a/x", "https://host/a", False),
    ],
)
def test_below(text, root, below):
    assert Address.parse(text).below(Address.parse(root)) == below


def test_paths_of_the_disk_are_none():
    for text in ("a/b.parquet", "/a://b", "C:/x", "~/x", "a:b/*.parquet"):
        assert is_address(text) == ("://" in text) and not has_secret(text.replace("://", ":/"))
    assert file_name("a/b.parquet?x=1") == "a/b.parquet?x=1"


def test_an_ending_is_read_before_the_query():
    for text in ("https://host/a/x.csv?download=true", "s3://bucket/x.csv?region=r", "s3://u:p@bucket/x.csv"):
        assert file_name(text).endswith("/x.csv")
    assert file_name("s3://bucket/x?.csv").endswith("/x?.csv")
