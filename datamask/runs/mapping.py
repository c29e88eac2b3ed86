"""Where the arrays of a run lie: in memory, or in mapped files (`datamask.places`)."""

from __future__ import annotations

from pathlib import Path

from datamask.config import RunConfig
from datamask.corpus.corpus import Corpus
from datamask.corpus.opening import fits_in_memory
from datamask.corpus.shared_corpora import shared_corpora
from datamask.errors import OptionError
from datamask.memory import lies_in_memory
from datamask.polling import Poll, no_poll
from datamask.runs.folders import scratch_place
from datamask.runs.store import Run
from datamask.work.context import UNWATCHED, Work


def is_mapped(config: RunConfig, poll: Poll = no_poll) -> bool:
    """Whether arrays of all rows lie in files: a folder for them is named, or all rows are wanted and do not fit.

    Raises:
        InputError, RemoteError, Stopped: as `datamask.corpus.open_corpus`.
    """
    selection = config.selection
    if selection.scratch_dir is not None:
        return True
    return selection.all_rows and not fits_in_memory(config.corpus, poll)


def maps_folder(config: RunConfig, root: Path, poll: Poll = no_poll) -> Path | None:
    """The folder of these files; None: the arrays are in memory.

    Args:
        root: the folder of the runs.

    Raises:
        OptionError: no folder is named, and the one beside the runs saves no memory. Others: as `is_mapped`.
    """
    if not is_mapped(config, poll):
        return None
    folder = scratch_place(config.selection, root)
    if config.selection.scratch_dir is None and lies_in_memory(folder):
        raise OptionError(f"{folder} lies in memory (tmpfs), where files save none; name a disk with --scratch_dir")
    return folder


def corpus_of(run: Run, work: Work = UNWATCHED) -> Corpus:
    """The corpus of a run, opened as the run opened it: the rows of its sample, where it began with one.

    Raises:
        InputError, NoRoomError, RemoteError, Stopped: as `datamask.corpus.open_corpus`. OptionError: as `maps_folder`.
    """
    config = run.config
    into = maps_folder(config, run.path.parent, work.poll) if run.whole is None else None
    return shared_corpora().get(config.corpus, work, beside=config.selection.beside, into=into)
