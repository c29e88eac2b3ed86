"""Which rows make the corpus: the options of a corpus, checked, and kept in run folders."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from datamask.options import CORPUS_OPTIONS, CorpusOptions, InputPaths, check_options, restored_options


@dataclass(frozen=True)
class CorpusConfig(CorpusOptions):
    """Which rows make the corpus: the options of `datamask.options.corpus_table`; all but the inputs by name.

    Attributes:
        inputs: files, folders or globs, of this machine or elsewhere (``s3://...``).
        id_column, feature_column, length_column: column names; None: found by the paper's names, then by type.
        quality_columns: summed with their weights; empty: found by name, then by type.
        features, scores: side shards holding the feature or quality column, joined by id, else by row position.
        rows: size of a uniform sample by hash of (id, seed); None: all rows.
        drop_invalid: drop rows with NaN, infinite, null or all-zero features or quality instead of refusing them.
        seed: of the row sample (`--row_seed`; on the command line it follows `--seed` unless given).

    Raises:
        OptionError: an option is not of its kind.
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
