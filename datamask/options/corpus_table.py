"""The table of a corpus: every option that says which rows it has, in the order in which a command line names them."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass

from datamask.options.kinds import Flag, InputPaths, QualityColumns, Text, Whole
from datamask.options.option import Control, option, options_of
from datamask.options.quality_columns import QualityColumn

ROWS = "which rows and columns"
BY_NAME_OR_TYPE = "found by name, then by type"


@dataclass(frozen=True)
class CorpusOptions:
    """Which rows make the corpus; None and nothing: not given."""

    inputs: tuple[str, ...] = option(
        InputPaths(least=1),
        "Files, folders or globs",
        "files, folders or globs; also s3://, gs://, https://, hf://",
        "INPUT",
        ROWS,
        required=True,
        flags=("--input",),
    )
    _: KW_ONLY
    id_column: str | None = option(
        Text(),
        "Id",
        "",
        "NAME",
        ROWS,
        listed="Id column",
        unset=BY_NAME_OR_TYPE,
        help="Names each sample; unique, integers or strings. These ids are what you take home.",
    )
    feature_column: str | None = option(
        Text(),
        "Features",
        "",
        "NAME",
        ROWS,
        listed="Feature column",
        unset=BY_NAME_OR_TYPE,
        help="The embedding: one list of numbers per sample, all of one length.",
    )
    length_column: str | None = option(
        Text(),
        "Length",
        "tokens per row, counted wherever rows are",
        "NAME",
        ROWS,
        listed="Length column",
        unset="found by name",
        help="Tokens or characters per sample, if known; then every count also says how many tokens.",
    )
    quality_columns: tuple[QualityColumn, ...] = option(
        QualityColumns(),
        "Quality",
        "may be given several times; they add up",
        "NAME[:WEIGHT[:raw|z|rank]]",
        ROWS,
        listed="Quality columns",
        default=(),
        unset=BY_NAME_OR_TYPE,
        flags=("--quality_column",),
        help="One or more score columns; higher is better. Several are added up.",
    )
    features: tuple[str, ...] = option(
        InputPaths(),
        "Feature shards",
        "shards that hold the features, by id or row",
        "INPUT",
        ROWS,
        default=(),
        help="Files that hold the feature column, if the shards do not. Joined by id, or by position where they "
        "have no id.",
    )
    scores: tuple[str, ...] = option(
        InputPaths(),
        "Score shards",
        "shards that hold the quality, by id or row",
        "INPUT",
        ROWS,
        default=(),
        help="Files that hold the quality columns, if the shards do not. Joined in the same way.",
    )
    rows: int | None = option(
        Whole(2),
        "Rows to open",
        "a uniform sample of so many rows",
        "N",
        ROWS,
        listed="Rows at most",
        unset="all that fit",
        help="How many rows to open at once. From a larger corpus a uniform sample is drawn, the same on every "
        "machine, and every number then says n of N. The proposal fits in a quarter of this machine's memory.",
    )
    seed: int = option(
        Whole(0, 2**63 - 1, "2^63 - 1"),
        "Seed of the row sample",
        "of that sample",
        "N",
        ROWS,
        default=0,
        unset="as --seed",
        flags=("--row_seed",),
    )
    drop_invalid: bool = option(
        Flag(),
        "Drop invalid rows (else refuse)",
        "drop rows with NaN, infinite, null or zero features",
        "",
        ROWS,
        default=False,
        listed="Invalid rows dropped",
        control=Control(),
        help="Leave out rows with missing, infinite or all-zero values, and count them. Otherwise one such row "
        "refuses the whole corpus, so that nothing goes missing unnoticed.",
    )


CORPUS_OPTIONS = options_of(CorpusOptions)
"""Every option of a corpus by its name."""
