"""Which rows make the corpus: the options of a corpus, checked, and kept in run folders."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from datamask.options import CORPUS_OPTIONS, CorpusOptions, InputPaths, check_options, restored_options


@dataclass(frozen=True)
class CorpusConfig(CorpusOptions):
    """The settings of a corpus: files and columns. Give all but `inputs` by name.

    Attributes:
        inputs: files, folders or globs, local or remote (``s3://...``).
        id_column: name of the column with the ids. None: found by name, then by type.
        feature_column: name of the column with the embeddings. None: found by name, then by type.
        length_column: name of the column with the tokens of each row. None: found by name.
        quality_columns: columns that are added up with their weights. Empty: found by name, then by type.
        quality_within: column within whose values the quality is ranked, such as a language. None: it is as it is.
        features: other shards with the feature column, matched by id, else by position.
        scores: other shards with the quality columns, matched in the same way.
        rows: size of a uniform sample by hash of (id, seed). None: all rows.
        drop_invalid: skip and count rows with missing, infinite or all-zero values, with features of another length, or
            without a row in `features` or `scores`, instead of refusing them.
        seed: seed of the row sample (`--row_seed`; on the command line the default is `--seed`).
        make_ids: make ids of file and row instead of reading a column.
        feature_bits: features are packed bits: bytes, or lists of 8-bit integers. Each bit is -1 or 1.
        split: split that is read of a folder with several (``train-*``, ``test-*``), or ``all``. None: train.

    Raises:
        OptionError: an option has a value of the wrong kind.

    Examples:
        >>> from datamask import CorpusConfig
        >>> CorpusConfig(["shards/"], quality_columns=("edu:0.5:z",), rows=10_000).rows
        10000
    """

    def __post_init__(self) -> None:
        check_options(self, CORPUS_OPTIONS)

    @property
    def paths(self) -> dict[str, tuple[str, ...]]:
        """Files, folders and globs that are read, by the option's word: ``input``, ``features`` and ``scores``."""
        return {
            option.word: getattr(self, name)
            for name, option in CORPUS_OPTIONS.items()
            if isinstance(option.kind, InputPaths)
        }

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> CorpusConfig:
        return cls(**restored_options(data, CORPUS_OPTIONS))
