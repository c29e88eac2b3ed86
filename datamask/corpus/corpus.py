"""The corpus: what every other wing works on. One contiguous feature array, one table of metadata, one fingerprint."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import NotRequired, TypedDict
from uuid import uuid4

import numpy as np
import pyarrow as pa

from datamask.config import CorpusConfig
from datamask.corpus.column_kinds import Column, metadata_columns
from datamask.corpus.sampling import hash_under, row_hash
from datamask.corpus.text_file import bytes_in_memory
from datamask.places import MEMORY, Place


class ColumnNames(TypedDict):
    """Role -> column name, as the facts of runs keep it; ``falling``: quality columns where less is better."""

    id: str
    feature: str
    quality: list[str]
    length: NotRequired[str | None]
    text: NotRequired[str | None]
    falling: NotRequired[list[str]]


@dataclass(frozen=True)
class Provenance:
    """Where the rows came from and what was left out, for the sentence "n of N".

    Attributes:
        files: the shards, in reading order.
        total_rows: rows in all shards together; rows_read: after the uniform sample; the corpus holds those that
            were also valid.
        columns: role -> column name, roles ``id``, ``feature``, ``quality`` (a list), ``length``, ``text``, and
            ``falling``, the quality columns with a negative weight, where there are some.
        dropped: reason -> count of rows dropped (``--drop_invalid``) or unmatched by a join.
        notes: sentences a person should read, such as which columns were guessed.
        config: what was opened, as it was asked for; None for a corpus that came from no files.
        unread: further columns of the files, which this corpus has not read.
        id_field: of the ids; it says which type they have in the files (`datamask.tables.id_field`).
    """

    files: tuple[str, ...]
    total_rows: int
    rows_read: int
    columns: ColumnNames
    dropped: dict[str, int] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    config: CorpusConfig | None = None
    unread: tuple[str, ...] = ()
    id_field: pa.Field | None = None


@dataclass(frozen=True)
class Corpus:
    """N valid rows in input order, as `open_corpus` returns them.

    Attributes:
        ids: pyarrow array of length N, the id column's own type, unique and without nulls.
        quality: float64 ``(N,)``, the weighted sum of the quality columns.
        features: float32 ``(N, d)``, C-contiguous, read-only, every row of unit L2 norm.
        lengths: float64 ``(N,)``, tokens of each row, or None.
        metadata: pyarrow table of N rows: every other column, texts included, and the single quality columns if there
            are several. The texts lie in a mapped file. A run reads those alone that it needs.
        source_file: int32 ``(N,)``, index into ``provenance.files``.
        source_row: int64 ``(N,)``, row in that file.
        fingerprint: hex digest of ids, quality, features and lengths of exactly these rows in this order.
        provenance: the files and columns they came from, with notes.
        norms: float64 ``(N,)``, the L2 norm of every feature row as read; None: all 1.
        place: where the features lie, and all that is as large and is made of them.
        identity: name of this object in this process. The fingerprint leaves out metadata, this does not.

    Examples:
        >>> from datamask import CorpusConfig, open_corpus
        >>> corpus = open_corpus(CorpusConfig(["sample_data/tiny"]))
        >>> len(corpus.ids) == len(corpus.quality) == len(corpus)
        True
    """

    ids: pa.Array
    quality: np.ndarray
    features: np.ndarray
    lengths: np.ndarray | None
    metadata: pa.Table
    source_file: np.ndarray
    source_row: np.ndarray
    fingerprint: str
    provenance: Provenance
    norms: np.ndarray | None = None
    place: Place = MEMORY
    identity: str = field(init=False, repr=False, compare=False, default_factory=lambda: uuid4().hex)

    def __len__(self) -> int:
        return len(self.quality)

    @property
    def nbytes(self) -> int:
        """Bytes of memory that it holds: all but what lies in mapped files, as the texts do."""
        arrays = (self.quality, self.lengths, self.norms, self.source_file, self.source_row)
        held = self.place.memory(self.features.nbytes) + sum(array.nbytes for array in arrays if array is not None)
        return held + int(self.ids.nbytes) + bytes_in_memory(self.metadata, self.provenance.columns.get("text"))

    @property
    def dim(self) -> int:
        """d, the number of feature dimensions."""
        return int(self.features.shape[1])

    @property
    def id_field(self) -> pa.Field:
        """The field of a column with the ids."""
        return self.provenance.id_field or pa.field(self.provenance.columns["id"], self.ids.type)

    @property
    def input_columns(self) -> tuple[str, ...]:
        """The columns of the shards: those with a role, the metadata, and what was not read."""
        roles = self.provenance.columns
        named = [roles.get("id"), roles.get("feature"), roles.get("length"), *roles.get("quality", [])]
        return (*filter(None, named), *self.metadata.column_names, *self.provenance.unread)

    @property
    def texts(self) -> pa.ChunkedArray | None:
        """The text column as strings ``(N,)``; None where the shards brought none."""
        name = self.provenance.columns.get("text")
        if not name or name not in self.metadata.column_names:
            return None
        return self.metadata[name].cast(pa.string())

    def hashes(self, seed: int = 0) -> np.ndarray:
        """The hash of every row's id with a seed, uint64 ``(N,)``: the same in any order of the rows."""
        return hash_under(self._hashes, seed)

    @cached_property
    def _hashes(self) -> np.ndarray:
        return row_hash(self.ids, 0)

    @cached_property
    def metadata_columns(self) -> dict[str, Column]:
        """What each metadata column is (a number, a class or neither), by its name; counted at the first question."""
        return metadata_columns(self.metadata, self.provenance.columns.get("text"))
