"""JSON lines: one object per line, each key a column, lists of numbers features. Plain, gzip or zstd.

A look reads the whole file: only then is known how many rows there are and of what type each column is. A key that
some lines lack is null there; a column that holds whole numbers here and others there is of float64, and lists of
numbers are of float64 always, since JSON does not tell 1 from 1.0. Texts stay texts, also those that look like dates.
Objects are structs, whose fields `leaves` names.

A column that holds numbers in some lines and texts in others is refused: it may be what a corpus is selected by. A
field inside of an object is not worth that: it is left out, with a note, and so is a column with objects in some lines
and other values in others.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from itertools import islice

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json
import pyarrow.types as pt

from datamask.corpus.readers import text
from datamask.corpus.readers.contract import FileFacts, Reader, Skipped, Wanted
from datamask.corpus.readers.leaves import Path, fields_in_lists, leaves, schema_of
from datamask.corpus.readers.text import Piece
from datamask.errors import InputError
from datamask.polling import Poll, no_poll

CELLS = 10_000_000
"""Rows times columns that are parsed at once: pyarrow keeps a place for each, also where every line has other keys.
A field of an object counts as a column."""

LINE_CELLS = CELLS * 3 // 2
"""The same of one line, since a line cannot be cut: some 400 MB."""

KEY_CELLS = 100
"""A column takes as much memory as so many cells."""

MOST_LEAVES = 1_000
"""Fields of one column. Objects with more hold data in their keys."""

_CHANGED = re.compile(r"Column\((.*)\) changed from (\w+) to (\w+) in row (\d+)")
_SEVERAL = {"object": "objects", "array": "lists", "string": "texts", "number": "numbers", "boolean": "true or false"}
_KINDS = {dict: "an object", list: "a list", str: "a text", bool: "true or false", type(None): "null"}


class MixedKinds(InputError):
    """A column, or a field of one, that holds values of several kinds.

    Attributes:
        keys: the path from the column down to the field, lists left out.
        kinds: what it holds.
    """

    def __init__(self, path: str, name: str, before: object, after: object, line: int) -> None:
        keys = name.split("/[]")[0].split("/")
        super().__init__(
            f"column {'.'.join(keys)!r} of {path} holds {after} in line {line:,} and {before} before; write one kind "
            "of value into it, or leave it out"
        )
        self.keys, self.kinds = tuple(keys), (str(before), str(after))


class _Types:
    """The types of the columns by what was seen so far, and the fields that have none.

    Attributes:
        kinds: name of a column -> its type. left_out: path of a field -> why, as the end of a sentence about it.
    """

    def __init__(self, path: str) -> None:
        self.path, self.kinds, self.left_out = path, dict[str, pa.DataType](), dict[Path, str]()

    def add(self, part: Piece) -> pa.Table:
        """Take in the types of one part, and return it as a table.

        Raises:
            InputError: as `_parsed`, and where a column has no type, or there are too many.
        """
        table = self._inferred(part)
        for field in table.schema:
            name, before = field.name, self.kinds.get(field.name)
            if (name,) in self.left_out:
                continue
            kind = self._joined(before, field.type, (name,))
            if kind is not None:
                self.kinds[name] = kind
            elif pt.is_struct(field.type) or pt.is_struct(before):
                self.left_out[name,] = "holds objects in some lines and other values in others"
            else:
                raise MixedKinds(self.path, name, before, field.type, part.number)
        fields = 0
        for name, kind in self.kinds.items():
            count = sum(1 for _ in islice(leaves([pa.field(name, kind)]), MOST_LEAVES + 1))
            if count > MOST_LEAVES:
                self.left_out.setdefault((name,), f"has more than {MOST_LEAVES:,} different fields")
            fields += count if (name,) not in self.left_out else 0
        if fields > text.MOST_COLUMNS:
            raise InputError(
                f"{self.path} has more than {text.MOST_COLUMNS:,} different keys by line {part.number:,}; every key is "
                "a column, so write data that differ from line to line as one text"
            )
        return table

    def schema(self) -> pa.Schema:
        """The columns of all that was seen."""
        fields = (self._stored((name,), kind) for name, kind in self.kinds.items())
        return pa.schema([field for field in fields if field is not None])

    def _inferred(self, part: Piece) -> pa.Table:
        gone: frozenset[Path] = frozenset()
        while True:
            try:
                return _parsed(self.path, part, None)
            except MixedKinds as error:
                keys = error.keys
                if keys in gone:
                    # it is still there, since a key with a slash looks like two: the column is left out
                    del self.left_out[keys]
                    keys = keys[:1]
                if keys in gone or (len(error.keys) == 1 and "object" not in error.kinds):
                    raise
                before, after = (_SEVERAL.get(kind, kind) for kind in error.kinds)
                self.left_out.setdefault(keys, f"holds {after} in some lines and {before} in others")
                gone = frozenset(self.left_out)
                kept = (_line_without(line, gone) for line in part.content.split(b"\n"))
                part = part._replace(content=b"\n".join(kept))

    def _joined(self, before: pa.DataType | None, now: pa.DataType, path: Path) -> pa.DataType | None:
        """One type for what was seen of a column before (None: nothing) and now; None: there is none."""
        if before is None or before == now:
            return now
        if pt.is_struct(before) and pt.is_struct(now):
            fields: dict[str, pa.DataType] = {field.name: field.type for field in before}
            for field in now:
                inside = (*path, field.name)
                kind = self._joined(fields.get(field.name), field.type, inside)
                if kind is None:
                    why = f"holds {field.type} in some lines and {fields[field.name]} in others"
                    self.left_out.setdefault(inside, why)
                else:
                    fields[field.name] = kind
            return pa.struct(list(fields.items()))
        pair = [before, now]
        for kinds in (pair, [pa.string() if pt.is_timestamp(kind) else kind for kind in pair]):
            try:
                schemas = [pa.schema([("x", kind)]) for kind in kinds]
                return pa.unify_schemas(schemas, promote_options="permissive").field(0).type
            except (pa.ArrowInvalid, pa.ArrowTypeError):
                continue
        return None

    def _stored(self, path: Path, kind: pa.DataType) -> pa.Field | None:
        """The column that holds values which pyarrow takes for `kind`; None: nothing is left of it."""
        if path in self.left_out:
            return None
        if pt.is_struct(kind):
            fields = (self._stored((*path, field.name), field.type) for field in kind)
            kind = pa.struct([field for field in fields if field is not None])
            return pa.field(path[-1], kind) if len(kind) else None
        if pt.is_list(kind) and pt.is_integer(kind.value_type):
            kind = pa.list_(pa.float64())
        # JSON has no dates; an id may look like one
        return pa.field(path[-1], pa.string() if pt.is_timestamp(kind) else kind)


def look(path: str, poll: Poll = no_poll, most_bytes: int | None = None, skip: bool = False) -> FileFacts:
    """Return columns and rows, by reading the file to its end, or its first bytes.

    Args:
        skip: skip lines that cannot be read, and note them.

    Raises:
        InputError: a line that is no JSON object, or a column of several kinds.
        Stopped: from `poll`.
    """
    types, rounded, skipped = _Types(path), set[str](), Skipped() if skip else None
    rows = total = bytes_read = 0
    complete = True
    for part in _parts(path, poll, None, skipped):
        poll()
        if most_bytes is not None and bytes_read > most_bytes:
            complete = False
            break
        bytes_read += len(part.content)
        try:
            table = types.add(part)
        except InputError as error:
            if skipped is None or isinstance(error, MixedKinds):
                raise
            table = types.add(part._replace(content=_readable(path, part, skipped)))
        rows, total = rows + table.num_rows, total + table.nbytes
        for keys, field in leaves(list(table.schema)):
            if ".".join(keys) not in rounded and (pt.is_integer(field.type) or pt.is_float64(field.type)):
                column = table[keys[0]] if len(keys) == 1 else pc.struct_field(table[keys[0]], list(keys[1:]))
                if _rounds(column, keys[-1], part.content):
                    rounded.add(".".join(keys))
    schema = types.schema()
    floats = {".".join(keys) for keys, field in leaves(list(schema)) if field.type == pa.float64()}
    return FileFacts(
        schema,
        (rows,) if rows else (),
        total / max(rows, 1),
        complete=complete,
        rounded=frozenset(rounded & floats),
        left_out={".".join(keys): why for keys, why in types.left_out.items()},
        skipped=skipped,
    )


def batches(path: str, facts: FileFacts, wanted: Wanted) -> Iterator[pa.RecordBatch]:
    """Yield the rows of the file, as `contract.Reader.batches`."""
    schema = facts.schema if wanted.columns is None else schema_of(facts.schema, wanted.columns)
    skipped = facts.skipped
    for part in _parts(path, wanted.poll, schema, skipped):
        if skipped is not None and not skipped.lines.isdisjoint(range(part.number, part.number + part.lines)):
            part = part._replace(content=text.without_lines(part, skipped.lines))
        for batch in _parsed(path, part, schema).combine_chunks().to_batches(wanted.most_rows):
            batch.validate(full=True)
            yield batch


def _readable(path: str, part: Piece, skipped: Skipped) -> bytes:
    """A part in which the lines that cannot be read are empty; they are noted."""
    try:
        _parsed(path, part, None)
    except MixedKinds:
        pass
    except InputError as error:
        halves = text.halves(part)
        if len(halves) > 1:
            return b"".join(_readable(path, half, skipped) for half in halves)
        skipped.add(part.number, str(error))
        return b"\n" if part.content.endswith(b"\n") else b""
    return part.content


def _parts(path: str, poll: Poll, schema: pa.Schema | None, skipped: Skipped | None) -> Iterator[Piece]:
    """Pieces of the file that pyarrow parses in bounded memory.

    Args:
        poll: called while a file elsewhere is waited for.
        schema: of what is made of them; None: each key may be a column, or a field of every object.
        skipped: as of `text.lines`.
    """
    columns = 0 if schema is None else sum(1 for _ in leaves(list(schema)))
    inside = 0 if schema is None else sum(fields_in_lists(field.type) for field in schema)

    def cells(content: bytes) -> int:
        """Places that pyarrow keeps for it, at most: texts may look like objects and keys."""
        objects = content.count(b"{") + content.count(b"null") if inside or schema is None else 0
        if schema is not None:
            return (content.count(b"\n") + 1) * columns + objects * inside
        keys = content.count(b":")  # mostly there are more colons than columns
        return max(objects * keys // 2, KEY_CELLS * keys)

    for piece in text.lines(path, poll, skipped):
        deep = text.too_deep(piece.content) if schema is None else None
        if deep is not None:
            raise InputError(
                f"{path} line {piece.number + deep:,} nests values more than {text.DEEPEST} deep; write what lies "
                "deeper as text"
            )
        waiting = [piece]
        while waiting:
            part = waiting.pop()
            if cells(part.content) > CELLS:
                parts = text.halves(part)
                if len(parts) > 1:
                    waiting += reversed(parts)
                    continue
                if cells(text.without_texts(part.content)) > LINE_CELLS:
                    raise InputError(
                        f"{path} line {part.number:,} has more keys, or objects in lists, than fit in memory; every "
                        "key is a column, so write such data as text"
                    )
            yield part


def _parsed(path: str, part: Piece, schema: pa.Schema | None) -> pa.Table:
    """One part as a table; with a schema its columns alone.

    Raises:
        InputError: a line that is no object, or not what the schema says.
    """
    if not part.content.strip():
        return pa.table({}) if schema is None else schema.empty_table()
    options = {} if schema is None else {"explicit_schema": schema, "unexpected_field_behavior": "ignore"}
    try:
        table = _table(part.content, **options)
    except (pa.ArrowException, ValueError) as error:
        raise _refusal(path, part, str(error)) from error
    # pyarrow takes several objects on a line, or one on several, for as many rows
    if table.num_rows != part.lines and table.num_rows != len(_filled(part)):
        raise _refusal(path, part, "its lines and its objects are not as many")
    return table


def _filled(part: Piece) -> list[tuple[int, bytes]]:
    """The lines that hold anything, by their numbers."""
    return [pair for pair in enumerate(part.content.split(b"\n"), part.number) if pair[1].strip()]


def _refusal(path: str, part: Piece, why: str) -> InputError:
    """The sentence for a part that cannot be parsed: the first line that is no object, else what the library says."""
    filled, such_as = _filled(part), 'object such as {"id": "a", "text": "..."}'
    for line, content in filled:
        try:
            value = json.loads(content)
        except json.JSONDecodeError as error:
            fault = f", column {error.colno:,} is not JSON ({error.msg}); every line must hold one whole {such_as}"
        except (ValueError, RecursionError) as error:
            fault = f" cannot be read ({error}); every line must hold one object of ordinary numbers, texts and lists"
        else:
            if isinstance(value, dict):
                continue
            fault = f" holds {_KINDS.get(type(value), 'a number')}, but every line must hold one {such_as}"
        return InputError(f"{path} line {line:,}{fault}")
    if changed := _CHANGED.search(why):
        name, before, after, row = changed.groups()
        line = filled[int(row)][0] if int(row) < len(filled) else part.number
        return MixedKinds(path, name.strip("/"), before, after, line)
    reason = (why.splitlines() or ["no reason given"])[0]
    return InputError(f"{path} cannot be read as JSON lines, from line {part.number:,} on: {reason[:200]}")


def _line_without(line: bytes, paths: Iterable[Path]) -> bytes:
    """A line of JSON without these fields."""
    if not line.strip():
        return line
    row = json.loads(line)
    for *above, last in paths:
        place = row
        for name in above:
            place = place.get(name) if isinstance(place, dict) else None
        if isinstance(place, dict):
            place.pop(last, None)
    return json.dumps(row).encode()


def _rounds(column: pa.ChunkedArray, name: str, part: bytes) -> bool:
    """Whether float64 cannot hold one of the whole numbers that a part spells under this key."""
    ends = pc.min_max(column)
    least, most = ends["min"].as_py(), ends["max"].as_py()
    if least is None or -(2**53) < least <= most < 2**53:
        return False
    if pt.is_integer(column.type):
        return any(text.rounds(str(number)) for number in column.drop_null().to_pylist())
    # pyarrow has rounded them already, so they are read again; a quote inside of a text has a backslash before it
    spelled = rb'"%s"\s*:\s*(%s)\s*[,}]' % (re.escape(name.encode()), text.MANY_DIGITS.encode())
    return any(text.rounds(match[1].decode()) for match in re.finditer(spelled, part))


def _table(content: bytes, **options: object) -> pa.Table:
    return pa.json.read_json(
        pa.BufferReader(content),
        pa.json.ReadOptions(use_threads=False, block_size=len(content) + 1),
        pa.json.ParseOptions(**options),
    )


def lists_of(values: pa.Array) -> pa.Array:
    """Return texts that are JSON lists of numbers as list<double>; null stays null.

    Raises:
        ArrowInvalid: another text.
    """
    plain = pc.replace_substring_regex(pc.fill_null(values, "null"), r"[\r\n]+", " ")
    objects = pc.binary_join_element_wise('{"v":', plain, "}", "").cast(pa.string())
    document = pc.binary_join(pa.ListArray.from_arrays([0, len(objects)], objects), "\n")
    content = document[0].as_py().encode()
    table = _table(content, explicit_schema=pa.schema([("v", pa.list_(pa.float64()))]))
    if table.num_rows != len(values):
        raise pa.ArrowInvalid("not as many lists as texts")
    return table["v"].combine_chunks()


JSON_LINES = Reader(
    "JSON lines", text.endings(".jsonl", ".ndjson"), look, batches, named=text.endings(".json"), skips=True
)
