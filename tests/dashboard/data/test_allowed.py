"""What a server allows for its own life: the paths of its command line, and nothing beside them."""

from __future__ import annotations

from pathlib import Path

import pytest

from datamask.config import CorpusConfig
from datamask.dashboard.data.allowed import Allowed
from datamask.dashboard.data.inputs import check_roots, confined_config, named_paths
from datamask.errors import InputError
from tests.making.runs import write_shard


@pytest.fixture
def folder(tmp_path) -> Path:
    """``corpus/`` with a shard, beside ``other/`` with another."""
    for name in ("corpus", "other"):
        (tmp_path / name).mkdir()
        write_shard(tmp_path / name / "shard.parquet")
    return tmp_path


@pytest.mark.parametrize(
    "text, allowed", [("corpus", "corpus"), ("corpus/*.parquet", "corpus"), ("corpus/shard.parquet",) * 2]
)
def test_what_the_command_line_names_may_be_read_and_nothing_beside_it(folder, monkeypatch, text, allowed):
    monkeypatch.chdir(folder)
    server = Allowed()
    server.open_first(CorpusConfig((text,)), ())
    assert server.paths == (folder / allowed,) and server.corpus == CorpusConfig((str(folder / text),))
    check_roots(server.corpus, server.paths)
    for outside in ("other", "other/shard.parquet", "corpus/../other", "*/shard.parquet", "/"):
        with pytest.raises(InputError):
            confined_config(CorpusConfig((outside,)), server.paths)


def test_shards_of_features_and_scores_are_named_too(folder):
    config = CorpusConfig((str(folder / "corpus"),), features=(str(folder / "other"),), scores=(str(folder / "other"),))
    assert named_paths(config) == (folder / "corpus", folder / "other")


def test_a_link_out_of_the_named_folder_is_followed_below_the_roots_only(folder):
    (folder / "corpus" / "link.parquet").symlink_to(folder / "other" / "shard.parquet")
    server, config = Allowed(), CorpusConfig((str(folder / "corpus"),))
    with pytest.raises(InputError, match="outside the folders"):
        server.open_first(config, ())
    assert server.corpus is None and server.paths == ()
    server.open_first(config, (folder / "other",))
    assert server.paths == (folder / "corpus",)


def test_a_path_that_is_not_there_allows_nothing(folder):
    server = Allowed()
    with pytest.raises(InputError, match="does not exist"):
        server.open_first(CorpusConfig((str(folder / "corpus"), str(folder / "nothing"))), ())
    assert server.corpus is None and server.paths == ()
