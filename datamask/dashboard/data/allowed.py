"""What one server may read besides what its environment says: for as long as it runs, and for all its visitors.

Folders come here by two roads, both of the person who started it: the paths of its command line, and the one-time code
that it prints in its terminal (`datamask.dashboard.server.codes`).
"""

from __future__ import annotations

import threading
from collections.abc import Iterable

from datamask.config import CorpusConfig
from datamask.files import RealRoots
from datamask.process import held
from datamask.storage.address import FilePath


class Allowed:
    """Paths that were allowed, and the corpus that the command line named. Thread-safe.

    Attributes:
        corpus: what the command line named, checked by `open_first`; whoever names no corpus is shown this one.
        asked: the same before it was checked, left by `datamask open` for the server that it is about to start.
    """

    def __init__(self) -> None:
        self.corpus: CorpusConfig | None = None
        self.asked: CorpusConfig | None = None
        self._lock = threading.Lock()
        self._paths: tuple[FilePath, ...] = ()

    @property
    def paths(self) -> tuple[FilePath, ...]:
        """Folders whose files may be read, and single files, links resolved; and addresses."""
        return self._paths

    def allow(self, paths: Iterable[FilePath]) -> None:
        """Allow these folders and files from now on, and what lies below these addresses."""
        with self._lock:
            self._paths = tuple(dict.fromkeys((*self._paths, *RealRoots.of(paths))))

    def open_first(self, config: CorpusConfig, roots: Iterable[FilePath]) -> None:
        """Allow what a corpus names, and make it the one that visitors are shown first.

        Args:
            roots: what may be read besides: a link in a named folder may lead there.

        Raises:
            InputError: a path does not exist, matches nothing, or leads elsewhere by a link; nothing is allowed then.
        """
        from datamask.dashboard.data.inputs import confined_config, named_paths

        named = named_paths(config)
        self.corpus = confined_config(config, (*roots, *named))
        self.allow(named)


def allowed() -> Allowed:
    """The process's `Allowed`."""
    return held("allowed paths", Allowed)
