"""The files of a cache by their entries, whatever they hold: what tests look at and damage."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from datamask.work.cache import Cache
from datamask.work.kept import Kept
from datamask.work.result_file import Content, Entry

T = TypeVar("T")


class RawCache(Cache):
    """A cache whose results are plain contents."""

    def at(self, entry: Entry, **options: bool) -> Kept[Content]:
        return Kept(self.root, entry, lambda content: content, lambda content: content, **options)

    def path(self, entry: Entry) -> Path:
        return self.at(entry).path

    def find(self, entry: Entry, read: Callable[[Content], T]) -> T | None:
        return Kept(self.root, entry, read, lambda result: Content()).find()

    def keep(
        self,
        entry: Entry,
        value: Mapping[str, Any] | None = None,
        arrays: Mapping[str, np.ndarray] | None = None,
        **options: bool,
    ) -> bool:
        return self.at(entry, **options).keep(Content(dict(value or {}), dict(arrays or {})))

    def lock(self, entry: Entry) -> AbstractContextManager[None]:
        return self.at(entry).lock()

    def drop(self, entry: Entry) -> None:
        self.at(entry).drop()

    def keys(self, entry: Entry) -> list[str]:
        return self.at(entry).keys()
