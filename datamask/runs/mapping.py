"""Where the arrays of a run lie: in memory, or in mapped files (`datamask.places`), of which pages draw a sample."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

from datamask.config import CorpusConfig, RunConfig, SelectionConfig
from datamask.corpus.corpus import Corpus
from datamask.corpus.opening import fits_in_memory
from datamask.corpus.shared_corpora import shared_corpora
from datamask.errors import OptionError
from datamask.memory import ACROSS_A_NETWORK, IN_MEMORY, file_system, lies_in_memory
from datamask.polling import Poll, no_poll
from datamask.runs.folders import scratch_place
from datamask.runs.store import Run
from datamask.work.context import UNWATCHED, Work

SAMPLE_ROWS, SAMPLE_MEMBERS, LARGEST_SAMPLE = 20_000, 100, 200_000
"""Rows of the sample without --rows: the first, or enough to have the second of selected ones, at most the third."""


def sample_rows(config: SelectionConfig) -> int:
    """The size of the sample that pages draw of a run on mapped arrays, without --rows."""
    return min(max(SAMPLE_ROWS, math.ceil(SAMPLE_MEMBERS / config.select_ratio)), LARGEST_SAMPLE)


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


def place_sentence(folder: Path) -> str:
    """Where the mapped files lie, and what is wrong with that place."""
    sentence, kind = f"features and neighbor lists lie in files in {folder}", file_system(folder)
    if kind in IN_MEMORY:
        return f"{sentence}, which is in memory ({kind}), where files save none; --scratch_dir names a disk"
    if kind in ACROSS_A_NETWORK:
        return f"{sentence}, on a network file system ({kind}), which is slow; --scratch_dir names a local disk"
    return sentence


def corpus_of(run: Run, work: Work = UNWATCHED) -> Corpus:
    """The corpus of a run as pages draw it: of one on mapped arrays its sample.

    Raises:
        InputError, NoRoomError, RemoteError, Stopped: as `datamask.corpus.open_corpus`.
    """
    return shared_corpora().get(run.config.corpus, work, beside=run.config.selection.beside)


def selected_from(run: Run) -> CorpusConfig:
    """The corpus that a run selects from; on mapped arrays all rows, not only those of its sample."""
    return run.config.corpus if run.whole is None else replace(run.config.corpus, rows=None)


def all_rows_of(run: Run, work: Work = UNWATCHED) -> Corpus:
    """The corpus that a run on mapped arrays selects from.

    Raises:
        OptionError: as `maps_folder`. Others: as `corpus_of`.
    """
    into = maps_folder(run.config, run.path.parent, work.poll)
    return shared_corpora().get(selected_from(run), work, beside=run.config.selection.beside, into=into)
