"""The one reader of rows, for opening and recipes: a batch as numbers and ids, and which rows are refused."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from datamask.corpus import decode
from datamask.corpus.readers.ids import id_values
from datamask.corpus.shards import Source
from datamask.errors import InputError


@dataclass
class RowNumbers:
    """The numbers of n rows as they are stored, before any row is refused.

    Attributes:
        features: ``(n, d)``, any float type; ``(n, 0)`` where the reader leaves them out. no_features, other_length:
            bool ``(n,)``, where the stored value is null, and where it has not d numbers.
        quality: float64 ``(Q, n)``, a column each. no_quality: bool ``(n,)``, where one of them is null.
        lengths: float64 ``(n,)``, tokens; None where the reader leaves them out.
    """

    features: np.ndarray
    no_features: np.ndarray
    other_length: np.ndarray
    quality: np.ndarray
    no_quality: np.ndarray
    lengths: np.ndarray | None


@dataclass(frozen=True)
class RowReader:
    """Reads batches of one source: the columns that are named, and no other.

    Attributes:
        source: the shards.
        id, id_type: of the ids, of one type in all shards. feature, dim: of the features. quality: several columns.
        length: of the tokens. metadata: columns that come along as they are. text: of the texts, in the type of
            all shards. Each may be left out.
        made_ids: there is no id column; ids are the names of the files and the numbers of the rows.
        bits: features are packed bits.
    """

    source: Source
    id: str | None = None
    id_type: pa.DataType | None = None
    feature: str | None = None
    dim: int = 0
    quality: Sequence[str] = ()
    length: str | None = None
    metadata: Sequence[str] = ()
    text: pa.Field | None = None
    made_ids: bool = False
    bits: bool = False

    @property
    def columns(self) -> list[str]:
        """The columns that are read."""
        text = None if self.text is None else self.text.name
        named = [None if self.made_ids else self.id, self.feature, self.length, *self.quality, *self.metadata, text]
        return list(dict.fromkeys(name for name in named if name is not None))

    def read(self, rows: Sequence[int] | np.ndarray, batch: pa.RecordBatch) -> RowNumbers:
        """Return the numbers of a batch.

        Args:
            rows: where the rows of the batch stand in the source, for errors.

        Raises:
            InputError: features as texts that are no lists.
        """
        none = np.zeros(batch.num_rows, bool)
        features, no_features, other_length = np.empty((batch.num_rows, 0)), None, None
        if self.feature is not None:
            try:
                column = batch.column(self.feature)
                column = decode.unpacked(column) if self.bits else column
                features, no_features, other_length = decode.feature_rows(column, self.dim)
            except pa.ArrowInvalid as error:
                raise InputError(
                    f"column {self.feature!r} holds texts that are no lists of numbers, in the rows from "
                    f"{self.source.place(int(rows[0]))} on; write lists such as [0.1, 0.2], or name another column "
                    "with --feature_column"
                ) from error
        quality = [decode.numbers(batch.column(name)) for name in self.quality]
        return RowNumbers(
            features,
            none if no_features is None else no_features,
            none if other_length is None else other_length,
            np.array([values for values, _ in quality]).reshape(len(quality), batch.num_rows),
            np.any([none, *(null for _, null in quality)], axis=0),
            None if self.length is None else decode.numbers(batch.column(self.length))[0],
        )

    def ids(self, rows: Sequence[int] | np.ndarray, batch: pa.RecordBatch) -> pa.Array:
        """Return the ids of a batch.

        Args:
            rows: where the rows of the batch stand in the source, for errors.

        Raises:
            InputError: one is null.
        """
        if self.made_ids:
            return self.source.made_ids(np.asarray(rows))
        assert self.id is not None
        ids = id_values(batch.column(self.id), self.id_type)
        if ids.null_count:
            row = int(np.argmax(np.asarray(ids.is_null())))
            raise InputError(
                f"{self.source.place(int(rows[row]))} has a null in the id column {self.id!r}; every row needs an id, "
                "so repair it, choose another column with --id_column, or have ids made with --make_ids"
            )
        return ids

    def refused(
        self, numbers: RowNumbers, finite_quality: np.ndarray, norms: np.ndarray | float = 1.0
    ) -> dict[str, np.ndarray]:
        """Return the rows that cannot be used, by reason: the one list of reasons. A row may have several.

        Args:
            finite_quality: bool ``(n,)``, where the quality of a row is a number, in each column and together.
            norms: float64 ``(n,)``, of the features: NaN where a value is NaN or infinite, 0 where all are zero, -1
                where they equal the mean that is subtracted. 1: rows are not judged by them yet.

        Returns:
            Reason -> bool ``(n,)``, of those reasons that some row has.
        """
        features = f"features in column {self.feature!r}"
        quality = f"quality in column {', '.join(map(repr, self.quality))}"
        masks = {
            f"null {features}": numbers.no_features,
            f"{features} of another length than {self.dim}": numbers.other_length,
            f"NaN or infinite {features}": np.isnan(norms) & ~numbers.no_features & ~numbers.other_length,
            f"all-zero {features}": np.equal(norms, 0),
            f"{features} that equal the mean that is subtracted from them": np.less(norms, 0),
            f"null {quality}": numbers.no_quality,
            f"NaN or infinite {quality}": ~finite_quality & ~numbers.no_quality,
        }
        if numbers.lengths is not None:
            counts = np.isfinite(numbers.lengths) & (np.nan_to_num(numbers.lengths) >= 0)
            masks[f"null, infinite or negative length in column {self.length!r}"] = ~counts
        return {reason: mask for reason, mask in masks.items() if mask.any()}
