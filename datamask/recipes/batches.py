"""Rows of shards under a recipe, batch by batch: which are kept, their scores, and what is wrong with them.

Batches come on the road on which opening reads them (`datamask.corpus.readers`): validated in full, sized by bytes, and
of the needed columns alone. What opening refuses or drops is refused or dropped here too.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from datamask.corpus.columns import ID_NAMES, IS_ROLE, WANTS
from datamask.corpus.readers import Wanted
from datamask.corpus.readers.ids import plain
from datamask.corpus.readers.kinds import is_packed
from datamask.corpus.readers.shard import Shard, counted_batches
from datamask.corpus.reading import refuse_rounded
from datamask.corpus.refused_rows import first_complaint, valid_rows
from datamask.corpus.row_plan import column_id_field
from datamask.corpus.row_reader import RowReader
from datamask.corpus.shards import Source
from datamask.errors import InputError
from datamask.parquet import BATCH_BYTES, BATCH_ROWS
from datamask.polling import Poll, no_poll
from datamask.quotas import NO_VALUE
from datamask.recipes.quality import total
from datamask.recipes.recipe import Recipe
from datamask.recipes.scoring import Scorer
from datamask.tables import score_name


@dataclass(frozen=True)
class Judged:
    """A batch of n rows under a recipe.

    Attributes:
        kept, valid: bool ``(n,)``; rows that are not valid are never kept.
        score, quality: float64 ``(n,)``, NaN where they cannot be told.
        lengths: float64 ``(n,)``, tokens; None where the recipe counts rows.
        ids: the ids, of one type in all shards; None where nobody needs them.
        units: float64 ``(n, d)``, features of unit length; None where nobody wants them or the rule needs none.
        dropped: reason -> how many rows are not valid for it.
    """

    kept: np.ndarray
    valid: np.ndarray
    score: np.ndarray
    quality: np.ndarray
    lengths: np.ndarray | None
    ids: pa.Array | None
    units: np.ndarray | None
    dropped: dict[str, int]

    @property
    def amounts(self) -> np.ndarray:
        """What the recipe's share counts, of the valid rows: rows, or tokens; float64 ``(n,)``."""
        return self.valid.astype(np.float64) if self.lengths is None else np.where(self.valid, self.lengths, 0.0)


class Judge:
    """Applies one recipe to batches of one source. Safe to use from several threads."""

    def __init__(
        self,
        recipe: Recipe,
        source: Source,
        *,
        drop_invalid: bool = False,
        with_ids: bool = False,
        id_column: str | None = None,
        feature_column: str | None = None,
        feature_bits: bool = False,
    ) -> None:
        """
        Args:
            drop_invalid: leave out rows with null, infinite or zero values, and count them, instead of refusing them.
            with_ids: whether the ids are wanted.
            id_column, feature_column: where the shards call them otherwise than the recipe does.
            feature_bits: features are packed bits.

        Raises:
            InputError: a shard lacks a column, or has one of the wrong type.
        """
        self.recipe, self.source, self.drop_invalid = recipe, source, drop_invalid
        self._scorer = Scorer(recipe.rule, recipe.features.center)
        self.id_column = id_column or recipe.id_column
        self.feature_column = feature_column or recipe.features.column
        self.feature_bits = feature_bits
        self._length = recipe.length_column if recipe.of == "tokens" else None
        self._qualities = [column.name for column in recipe.quality]
        self._named = bool(recipe.always or recipe.never)
        self.with_ids = with_ids or self._named
        self._group = recipe.thresholds.column
        self.score_column = score_name(name for shard in source.shards for name in shard.schema.names)
        # what ids are called that `select` made, since there were none
        self.made_ids = self.id_column.endswith(ID_NAMES[0]) and not any(
            self.id_column in shard.schema.names for shard in source.shards
        )
        for shard in source.shards:
            if shard.rows:
                self._check_shard(shard)
        refuse_rounded(source, self._qualities)
        self.id_field = column_id_field(source, self.id_column, self.made_ids) if self.with_ids else None
        self.id_type = None if self.id_field is None else self.id_field.type
        self._reader = RowReader(
            source,
            self.id_column if self.with_ids else None,
            self.id_type,
            self.feature_column if recipe.rule.needs_features else None,
            recipe.features.dim,
            self._qualities,
            self._length,
            made_ids=self.made_ids,
            bits=feature_bits,
        )
        self._always, self._never = (self._id_list(ids) for ids in (recipe.always, recipe.never))
        names = list(recipe.thresholds.groups)
        self._group_names = pa.array(names, pa.string())
        taus = [recipe.thresholds.tau, *(recipe.thresholds.groups[name] for name in names)]
        self._taus = np.array([np.inf if tau is None else tau for tau in taus])

    def under(self, recipe: Recipe) -> Judge:
        """Return the same shards and settings under another recipe."""
        return Judge(
            recipe,
            self.source,
            drop_invalid=self.drop_invalid,
            id_column=self.id_column,
            feature_column=self.feature_column,
            feature_bits=self.feature_bits,
            with_ids=self.with_ids,
        )

    @property
    def columns(self) -> list[str]:
        """The columns that are needed."""
        return list(dict.fromkeys([*([] if self._group is None else [self._group]), *self._reader.columns]))

    def __call__(self, shard: int, first: int, batch: pa.RecordBatch) -> Judged:
        """Judge rows.

        Args:
            shard: the place of the shard in the source. first: the row of it that the batch begins with.

        Raises:
            InputError: a row has an empty id, features of another length, or values that cannot be used.
        """
        rows = self.source.span(shard, first, batch.num_rows)
        numbers = self._reader.read(rows, batch)
        quality = total(self.recipe.quality, numbers.quality)
        scores, norms = self._scorer.of_rows(quality, numbers.features, numbers.lengths)
        refused = self._reader.refused(numbers, np.isfinite(quality), norms)
        valid, dropped = valid_rows(
            refused, len(rows), None if self.drop_invalid else lambda: first_complaint(refused, rows, self.source.place)
        )
        ids = self._reader.ids(rows, batch) if self.with_ids else None
        with np.errstate(invalid="ignore"):
            kept = scores >= self._needed(batch)
            if self.recipe.thresholds.least_quality is not None:
                kept &= quality >= self.recipe.thresholds.least_quality
        if ids is not None and self._named:
            kept |= pc.is_in(ids, value_set=self._always).to_numpy(zero_copy_only=False)
            kept &= ~pc.is_in(ids, value_set=self._never).to_numpy(zero_copy_only=False)
        return Judged(kept & valid, valid, scores, quality, numbers.lengths, ids, None, dropped)

    def _needed(self, batch: pa.RecordBatch) -> np.ndarray | float:
        """The threshold of every row."""
        if self._group is None:
            return float(self._taus[0])
        values = pc.fill_null(plain(batch.column(self._group)).cast(pa.string()), NO_VALUE)
        places = pc.fill_null(pc.index_in(values, value_set=self._group_names), -1).to_numpy(zero_copy_only=False)
        needed: np.ndarray = self._taus[places + 1]
        return needed

    def _id_list(self, ids: tuple[str | int, ...]) -> pa.Array:
        """The ids as the shards have them."""
        try:
            return pa.array(list(ids)).cast(self.id_type) if ids else pa.array([], self.id_type or pa.string())
        except (pa.ArrowException, OverflowError) as error:
            raise InputError(
                f"the recipe names ids such as {ids[0]!r}, and column {self.id_column!r} of "
                f"{self.source.first().path} is {self.id_type}; choose another column with --id_column"
            ) from error

    def _check_shard(self, shard: Shard) -> None:
        roles = [(name, "quality", "") for name in self._qualities]
        roles += [(self.feature_column, "feature", "; choose another column with --feature_column")] * (
            self.recipe.rule.needs_features
        )
        roles += [] if self._length is None else [(self._length, "length", "")]
        roles += [(self.id_column, "id", "; choose another column with --id_column")] * (
            self.with_ids and not self.made_ids
        )
        for name, role, way_out in roles:
            count = shard.schema.names.count(name)
            fits = is_packed if role == "feature" and self.feature_bits else IS_ROLE[role]
            if count != 1 or not fits(shard.schema.field(name).type):
                came = f"{count} such columns" if count != 1 else f"one of {shard.schema.field(name).type}"
                raise InputError(
                    f"{shard.path} must have a column {name!r} ({role}), {WANTS[role]}, as the recipe asks, got {came}"
                    f"{way_out}"
                )
        if self._group is not None and shard.schema.names.count(self._group) != 1:
            raise InputError(
                f"{shard.path} has {shard.schema.names.count(self._group)} columns {self._group!r}, by which the "
                "recipe's quotas tell groups apart; it needs one"
            )


def shard_batches(
    shard: Shard, columns: list[str] | None, row_bytes: float, poll: Poll = no_poll
) -> Iterator[tuple[int, pa.RecordBatch]]:
    """The first row and the rows of every batch of a shard, in order.

    Args:
        columns: these; None: all. row_bytes: of one row decoded, about.
        poll: called before every batch, and while a file elsewhere is waited for.

    Raises:
        InputError: the file is damaged further in, or was changed since it was looked at. RemoteError: its store does
            not answer. Stopped: from `poll`.
    """
    most = int(np.clip(BATCH_BYTES // max(row_bytes, 1), 1, BATCH_ROWS))
    yield from counted_batches(shard, Wanted(columns, most_rows=most, poll=poll), shard.rows)
