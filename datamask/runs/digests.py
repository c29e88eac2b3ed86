"""When a run ends: a digest of what its selected rows hold, shard by shard, and whether that is what the run read."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable

import pyarrow as pa

from datamask.config import CorpusConfig
from datamask.corpus.corpus import Corpus
from datamask.corpus.opening import read_corpus
from datamask.corpus.remote_listing import file_stamps
from datamask.corpus.threads import in_threads
from datamask.errors import InputError
from datamask.polling import Poll, no_poll, poll_of
from datamask.runs.contents import UNSETTLED, Digest, ShardRows, selected_rows
from datamask.storage.address import path_of
from datamask.work.context import Work

log = logging.getLogger(__name__)

Stamps = dict[str, tuple[int, ...]]
"""Path -> size, times of the last change of contents and of the file's record, and its number on the disk; of an
address, size and what its store says of the contents. Nothing: it is not there."""


def stamps(files: Iterable[str], poll: Poll = no_poll) -> Stamps:
    """By what the system, or a store, knows the input files; taken before they are opened.

    Raises:
        RemoteError: a store refuses to tell, or does not answer. Stopped: from `poll`.
    """
    names = [str(path_of(path)) for path in files]
    return {
        name: () if isinstance(stamp, OSError) else stamp
        for name, stamp in zip(names, file_stamps(names, poll), strict=True)
    }


def _only_touched(opened: tuple[int, ...], now: tuple[int, ...]) -> bool:
    """Whether a stamp differs in the time of the file's record alone: other rights, another name, or times put back."""
    return len(opened) == len(now) and [a == b for a, b in zip(opened, now)] == [True, True, False, True]


def still_same(config: CorpusConfig, corpus: Corpus, poll: Poll) -> bool:
    """Whether the files hold what `corpus` was read from: they are read once more.

    Raises:
        Stopped: from `poll`.
    """
    try:
        beside = corpus.metadata.column_names if corpus.provenance.unread else None
        most, into = corpus.provenance.rows_read, corpus.place.folder
        reread = read_corpus(config, Work(poll), row_limit=most, beside=beside, into=into)
    except InputError:
        return False
    return reread.fingerprint == corpus.fingerprint and _digest(reread.metadata) == _digest(corpus.metadata)


def _digest(rows: pa.Table) -> str:
    digest = Digest()
    digest.add(rows)
    return digest.text()


def digests(
    shards: Iterable[ShardRows],
    opened: Stamps,
    poll: Poll,
    progress: Callable[[float], None] = lambda share: None,
    same: Callable[[], bool] = lambda: False,
) -> dict[str, str | None]:
    """A digest of the contents of the selected rows, by file, None where there is no telling; files without selected
    rows are left out.

    Args:
        opened: stamps of the files from before they were opened: what has another now was read as something else.
            Those of files that were only touched are brought up to date.
        progress: called with a share from 0 to 1.
        same: asked once, where a file's stamp differs by its record alone, which `chmod` and a hard link change and an
            overwriting that puts the times back does too: whether the files hold what was read (`still_same`).

    Raises:
        Stopped: from `poll`.
    """
    shards = [shard for shard in shards if shard.selected.any()]
    total, done, stop = sum(int(shard.selected.sum()) for shard in shards), [0] * len(shards), threading.Event()
    before = stamps(str(shard.path) for shard in shards)

    def digested(place: int) -> str | None:
        digest = Digest()
        try:
            for rows in selected_rows(shards[place], poll_of(stop.is_set)):
                digest.add(rows)
                done[place] += rows.num_rows
            return digest.text()
        except InputError:  # the run is right about what it read; an export will say that it is there no longer
            return UNSETTLED
        except pa.ArrowException as error:  # a type that pyarrow reads and cannot take rows of
            log.warning("what the selected rows of %s hold cannot be noted: %s", shards[place].path, error)
            return None

    def tick() -> None:
        poll()
        progress(sum(done) / max(total, 1))

    poll()
    texts = in_threads(digested, len(shards), stop=stop, tick=tick)  # nearly all of it is pyarrow's decoding
    by_path = {str(shard.path): text for shard, text in zip(shards, texts)}
    now = stamps(by_path)
    touched = [path for path in by_path if now[path] == before[path] and _only_touched(opened.get(path, ()), now[path])]
    if touched and same():
        opened.update((path, now[path]) for path in touched)
        now = stamps(by_path)
    return {
        path: UNSETTLED if path in opened and now[path] != opened[path] else digest for path, digest in by_path.items()
    }
