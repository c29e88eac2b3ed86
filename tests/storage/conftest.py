"""Fixtures of tests that read from stores elsewhere."""

from __future__ import annotations

import pytest

from tests.storage.elsewhere import Bucket, Proxy, environment, moto_server


@pytest.fixture(scope="session")
def server():
    """The port of a server of S3."""
    with moto_server() as port:
        yield port


@pytest.fixture
def bucket(server, monkeypatch):
    """An empty bucket, which this process can read."""
    for name, value in environment(server).items():
        monkeypatch.setenv(name, value)
    return Bucket(server)


@pytest.fixture
def proxy(bucket, monkeypatch):
    """A proxy before the bucket's server, through which this process reads; a store may be silent for a second."""
    passing = Proxy(bucket.port)
    for name, value in {**environment(passing.port), "DATAMASK_REMOTE_SECONDS": "1"}.items():
        monkeypatch.setenv(name, value)
    yield passing
    passing.close()
