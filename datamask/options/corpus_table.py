"""The table of a corpus: every option that says which rows it has, in the order in which a command line names them."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass

from datamask.options.kinds import Flag, InputPaths, QualityColumns, Text, Whole
from datamask.options.option import Control, option, options_of
from datamask.options.quality_columns import QualityColumn

ROWS = "Rows and columns"
BY_NAME_OR_TYPE = "found by name, then by type"


@dataclass(frozen=True)
class CorpusOptions:
    """Which rows make the corpus; None and nothing: not given."""

    inputs: tuple[str, ...] = option(
        InputPaths(least=1),
        "Files, folders or globs",
        "files, folders or globs, also on s3://, gs://, https:// and hf://",
        "INPUT",
        ROWS,
        common=True,
        required=True,
        flags=("--input",),
    )
    _: KW_ONLY
    id_column: str | None = option(
        Text(),
        "Id",
        "column with the ids",
        "NAME",
        ROWS,
        listed="Id column",
        unset=BY_NAME_OR_TYPE,
        help="A unique integer or string. Exports contain these ids.",
    )
    feature_column: str | None = option(
        Text(),
        "Features",
        "column with the embeddings",
        "NAME",
        ROWS,
        listed="Feature column",
        unset=BY_NAME_OR_TYPE,
        help="One list of numbers per row, all of one length.",
    )
    length_column: str | None = option(
        Text(),
        "Length",
        "column with the tokens of each row",
        "NAME",
        ROWS,
        listed="Length column",
        unset="found by name",
        help="Tokens or characters per row, if known.",
    )
    quality_columns: tuple[QualityColumn, ...] = option(
        QualityColumns(),
        "Quality",
        "column with a quality score; repeatable, and several are added",
        "NAME[:WEIGHT[:raw|z|rank]]",
        ROWS,
        common=True,
        listed="Quality columns",
        default=(),
        unset=BY_NAME_OR_TYPE,
        flags=("--quality_column",),
        help="Higher is better. Several columns are added.",
    )
    quality_within: str | None = option(
        Text(),
        "Compare scores within",
        "column within whose values the quality is ranked, such as language",
        "NAME",
        ROWS,
        listed="Quality ranked within",
        unset="all rows",
        help="Ranks the score within each value of this column: languages with lower scores keep as large a share.",
    )
    features: tuple[str, ...] = option(
        InputPaths(),
        "Feature shards",
        "shards with the features, matched by id or by position",
        "INPUT",
        ROWS,
        default=(),
        help="Joined by id, or by position if the files have no id.",
    )
    scores: tuple[str, ...] = option(
        InputPaths(),
        "Score shards",
        "shards with the quality, matched by id or by position",
        "INPUT",
        ROWS,
        default=(),
        help="Joined by id, or by position if the files have no id.",
    )
    rows: int | None = option(
        Whole(2),
        "Rows to open",
        "open a uniform sample of this many rows",
        "N",
        ROWS,
        common=True,
        listed="Rows at most",
        unset="all that fit",
        control=Control({"min_value": 2, "step": 1000}, more=False),
        help="A uniform sample of this many rows. The default fits into a quarter of this machine's memory.",
    )
    seed: int = option(
        Whole(0, 2**63 - 1, "2^63 - 1"),
        "Seed of the row sample",
        "seed of that sample",
        "N",
        ROWS,
        default=0,
        unset="same as --seed",
        flags=("--row_seed",),
    )
    drop_invalid: bool = option(
        Flag(),
        "Skip invalid rows",
        "skip rows whose features or scores are missing, infinite, all zero or of another length",
        "",
        ROWS,
        default=False,
        listed="Invalid rows skipped",
        control=Control(),
        help="Otherwise one row with missing, infinite or all-zero values stops the opening.",
    )
    make_ids: bool = option(
        Flag(),
        "Make ids",
        "make ids of file and row, where no column has ids that can be used",
        "",
        ROWS,
        default=False,
        listed="Ids made",
        control=Control(),
        help="Ids such as shard-3:17, the name of a file and the number of a row.",
    )
    feature_bits: bool = option(
        Flag(),
        "Features are bits",
        "features are packed bits, as bytes or lists of 8-bit integers",
        "",
        ROWS,
        default=False,
        listed="Features as bits",
    )
    split: str | None = option(
        Text(),
        "Split",
        "split to read of a folder that has several, such as test, or all of them: all",
        "NAME",
        ROWS,
        unset="train",
    )


CORPUS_OPTIONS = options_of(CorpusOptions)
"""Every option of a corpus by its name."""
