"""Addresses on the dashboard: refused unless the operator named what they lie below; nothing is asked of a store."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from datamask.config import CorpusConfig
from datamask.dashboard.data.allowed import Allowed
from datamask.dashboard.data.inputs import Outside, check_roots, confined_config, named_paths, outside_paths
from datamask.errors import InputError
from datamask.files import OutsideRoots
from datamask.storage import remote
from datamask.storage.address import Address, split_roots
from tests.making.runs import write_shard

ROOT = "s3://bucket/shards"


@pytest.fixture(autouse=True)
def no_store(monkeypatch):
    """Whoever asks a store fails the test."""

    def asked(*args, **more):
        raise AssertionError("a store was asked")

    monkeypatch.setattr(remote, "ask", asked)


@pytest.mark.parametrize("text", [ROOT, f"{ROOT}/", f"{ROOT}/a.parquet", f"{ROOT}/*/x-?.parquet", f"{ROOT}/**"])
def test_what_lies_below_an_allowed_address_passes_unseen(tmp_path, text):
    config = CorpusConfig((text,))
    assert confined_config(config, [tmp_path, ROOT]).inputs == (text.rstrip("/"),)
    check_roots(config, [tmp_path, ROOT])
    assert outside_paths(config, [ROOT]) == ()


@pytest.mark.parametrize(
    "text",
    [
        "s3://bucket",
        "s3://bucket/shards-of-others/a.parquet",
        "s3://bucket/*/a.parquet",
        "s3://other/shards/a.parquet",
        "gs://bucket/shards/a.parquet",
        f"{ROOT}/../secret.parquet",
        f"{ROOT}/a.parquet?endpoint_override=169.254.169.254",
        f"{ROOT}/a.parquet?anonymous=true",
        "http://169.254.169.254/latest/meta-data",
        "https://localhost:8501/_stcore/health",
        "file:///etc/passwd",
        "hf://datasets/user/name/a.parquet",
    ],
)
def test_every_other_address_is_refused_unseen(tmp_path, text):
    for roots in ([], [tmp_path], [tmp_path, ROOT]):
        for config in (CorpusConfig((text,)), CorpusConfig((f"{ROOT}/a.parquet",), features=(text,))):
            with pytest.raises(InputError):
                confined_config(config, roots)
            with pytest.raises(Outside):
                check_roots(config, roots)


def test_an_address_allows_nothing_of_the_disk_and_a_folder_no_address(tmp_path, monkeypatch):
    write_shard(tmp_path / "a.parquet")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(OutsideRoots, match="outside the folders"):
        confined_config(CorpusConfig(("a.parquet",)), [ROOT])
    with pytest.raises(OutsideRoots, match=r"below no address that this server may read \(none\).*DATAMASK_ROOTS"):
        confined_config(CorpusConfig((ROOT,)), ["/", tmp_path])


def test_what_the_command_line_names_may_be_read_and_nothing_beside_it():
    server = Allowed()
    server.open_first(CorpusConfig((f"{ROOT}/*.parquet?region=eu-west-1",)), ())
    assert server.paths == (Address("s3", "bucket", "shards", "region=eu-west-1"),)
    check_roots(server.corpus, server.paths)
    for text in (f"{ROOT}/a.parquet", "s3://bucket/a.parquet?region=eu-west-1"):
        with pytest.raises(InputError):
            confined_config(CorpusConfig((text,)), server.paths)


def test_the_one_time_code_allows_the_folder_of_an_address_too():
    config, server = CorpusConfig((f"{ROOT}/*/a.parquet",)), Allowed()
    assert named_paths(config) == outside_paths(config, ["/"]) == (Address.parse(ROOT),)
    server.allow(named_paths(config))
    check_roots(config, server.paths)


@pytest.mark.parametrize(
    "text, roots",
    [
        ("/a:/b", ["/a", "/b"]),
        ("/a:s3://bucket/x:/b", ["/a", "s3://bucket/x", "/b"]),
        ("s3://bucket:gs://other/x", ["s3://bucket", "gs://other/x"]),
        ("https://host:8443/x:/b", ["https://host:8443/x", "/b"]),
        ("https://host:8443:~/b", ["https://host:8443", "~/b"]),
        (":/a::", ["/a"]),
        ("", []),
    ],
)
def test_the_colons_of_an_address_separate_nothing(text, roots):
    assert split_roots(text) == roots


def test_roots_of_the_environment(tmp_path, monkeypatch, caplog):
    from datamask.dashboard.shell import session

    monkeypatch.setenv("DATAMASK_ROOTS", f"{tmp_path}:{ROOT}:s3://user:hunter2@bucket:ftp://host/x")
    with caplog.at_level(logging.WARNING):
        roots = session.roots()
    assert roots[:2] == (tmp_path.resolve(), Address.parse(ROOT))
    assert not any("hunter2" in str(root) for root in roots) and "hunter2" not in caplog.text
    assert "DATAMASK_ROOTS" in caplog.text
    monkeypatch.setenv("DATAMASK_ROOTS", "s3://user:hunter2@bucket")
    assert session.roots() == () or Path.cwd() not in session.roots()
