"""Parquet, by the one road of `datamask.parquet`. A look reads the footer alone."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from datamask.corpus.readers.contract import FileFacts, Reader, Wanted
from datamask.errors import DatamaskError, InputError, NoRoomError
from datamask.parquet import UNREADABLE, open_parquet, read_batches, reason, unfit
from datamask.polling import Poll, no_poll

MOST_ROWS = 2**40
"""A footer that claims more rows in one row group is damaged."""


def look(path: str, poll: Poll = no_poll, most_bytes: int | None = None) -> FileFacts:
    """The facts by the footer, which tells of all rows.

    Raises:
        InputError: not parquet, cut short, or not readable.
    """
    try:
        with open_parquet(path, poll=poll) as file:
            footer = file.metadata
            groups = tuple(footer.row_group(i).num_rows for i in range(footer.num_row_groups))
            if not all(0 <= rows <= MOST_ROWS for rows in groups) or sum(groups) != footer.num_rows:
                raise pa.ArrowInvalid(f"its footer speaks of {footer.num_rows:,} rows, in row groups of other sizes")
            file.schema_arrow.remove_metadata().to_string()  # in a damaged footer, names may be no text
            # from whole row groups: asking for a single column chunk ends the process where the footer is damaged
            filled = [index for index, rows in enumerate(groups) if rows][:8]
            total = sum(footer.row_group(index).total_byte_size for index in filled)
            rows = sum(groups[index] for index in filled)
            return FileFacts(file.schema_arrow, groups, total // rows if rows else 0, footer)
    except (FileNotFoundError, DatamaskError):
        raise
    except MemoryError as error:
        raise NoRoomError(f"{path} {unfit(error)}") from error
    except UNREADABLE as error:
        # the library's usual words say the same once more, in terms of the format
        details = "" if "magic bytes" in reason(error) else f": {reason(error)}"
        raise InputError(f"{path} is not a parquet file, or was cut short{details}") from error


def batches(path: str, facts: FileFacts, wanted: Wanted) -> Iterator[pa.RecordBatch]:
    """Yield rows of the file, as `contract.Reader.batches`."""
    with open_parquet(path, facts.inside, columns=wanted.columns, poll=wanted.poll) as file:
        yield from read_batches(path, file, **vars(wanted))


PARQUET = Reader("parquet", (".parquet",), look, batches, magic=b"PAR1", group="row group")
