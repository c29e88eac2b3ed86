"""Where the arrays of a run lie: in memory, or in mapped files (`datamask.places`), of which pages draw a sample."""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import replace
from pathlib import Path

from datamask.config import CorpusConfig, SelectionConfig
from datamask.corpus.corpus import Corpus
from datamask.corpus.remote_listing import content_stamps
from datamask.corpus.shards import list_files
from datamask.corpus.shared_corpora import shared_corpora
from datamask.memory import ACROSS_A_NETWORK, IN_MEMORY, file_system
from datamask.polling import Poll
from datamask.runs.store import Run
from datamask.storage.address import path_of
from datamask.work.context import UNWATCHED, Work

SAMPLE_ROWS, SAMPLE_MEMBERS, LARGEST_SAMPLE = 20_000, 100, 200_000
"""Rows of the sample without --rows: the first, or enough to have the second of selected ones, at most the third."""


def sample_rows(config: SelectionConfig) -> int:
    """The size of the sample that pages draw of a run on mapped arrays, without --rows."""
    return min(max(SAMPLE_ROWS, math.ceil(SAMPLE_MEMBERS / config.select_ratio)), LARGEST_SAMPLE)


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


def open_selected_from(
    config: CorpusConfig, folder: str | None, work: Work = UNWATCHED, *, beside: Collection[str]
) -> Corpus:
    """The corpus that runs select from: that of the settings, or all of its rows in mapped files.

    Args:
        folder: for the files; None: there are none. beside: as of `datamask.corpus.opening.read_corpus`.

    Raises:
        As `corpus_of`.
    """
    if folder is None:
        return shared_corpora().get(config, work, beside=beside)
    return shared_corpora().get(replace(config, rows=None), work, beside=beside, into=Path(folder))


def input_stamps(corpus: CorpusConfig, poll: Poll) -> dict[str, str]:
    """By what the contents of the input files are known, by path; to be taken before they are opened.

    Raises:
        InputError: a file cannot be read. RemoteError: a store does not answer. Stopped: from `poll`.
    """
    files = list_files(corpus.inputs, poll=poll, split=corpus.split)
    return content_stamps([str(path_of(path)) for path in files], poll)
