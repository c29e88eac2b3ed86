"""Settings that name files from the root of the file system, so that a run can be resumed from any folder."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from datamask.config import CorpusConfig, RunConfig
from datamask.files import user_path
from datamask.options import CORPUS_OPTIONS, OPTIONS, Folder, IdFile, InputPaths
from datamask.storage.address import is_address


def rooted(config: RunConfig) -> RunConfig:
    """The same run with absolute paths, so that it can be resumed from any folder."""

    def absolute(path: str | None) -> str | None:
        return None if path is None else str(user_path(path).absolute())

    paths: dict[str, Any] = {
        name: absolute(getattr(config.selection, name))
        for name, option in OPTIONS.items()
        if isinstance(option.kind, (IdFile, Folder))
    }
    return replace(config, corpus=absolute_corpus(config.corpus), selection=replace(config.selection, **paths))


def absolute_corpus(config: CorpusConfig) -> CorpusConfig:
    """The same corpus with absolute paths."""

    def absolute(paths: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(path if is_address(path) else str(user_path(path).absolute()) for path in paths)

    paths: dict[str, Any] = {
        name: absolute(getattr(config, name))
        for name, option in CORPUS_OPTIONS.items()
        if isinstance(option.kind, InputPaths)
    }
    return replace(config, **paths)
