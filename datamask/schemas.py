"""Schemas of JSON records: the type of every entry that somebody reads, and the one check of a record against them.

A schema is a `ValueType`; a mapping of names to schemas; a list of one schema, that of every item; or a tuple of
alternatives. Entries without a schema pass, and so do missing ones, unless the schema is `Complete`: records grow from
version to version.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

LATEST = 253370764800.0
"""Seconds since 1970 at the end of the year 9998: later times no calendar can show."""

EVERY = "*"
"""The name, in a schema, of all entries that have no line of their own."""


@dataclass(frozen=True)
class ValueType:
    """A type of value, in words, and what is of it."""

    words: str
    fits: Callable[[Any], bool]

    def __or__(self, other: ValueType) -> ValueType:
        return ValueType(f"{self.words} or {other.words}", lambda value: self.fits(value) or other.fits(value))


class Complete(dict[str, Any]):
    """A schema none of whose entries may be missing."""


Schema = Mapping[str, Any]


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


NONE = ValueType("null", lambda value: value is None)
FLAG = ValueType("true or false", lambda value: isinstance(value, bool))
TEXT = ValueType("text", lambda value: isinstance(value, str))
TEXTS = ValueType("a list of texts", lambda value: isinstance(value, list) and all(isinstance(v, str) for v in value))
COUNT = ValueType("a whole number from 0", lambda value: _is_number(value) and isinstance(value, int) and value >= 0)
NUMBER = ValueType("a number", _is_number)
TIME = ValueType("seconds since 1970 up to the year 9998", lambda value: _is_number(value) and 0 <= value < LATEST)


def accepts_none(schema: Any) -> bool:
    """Return whether null fits a schema."""
    if isinstance(schema, tuple):
        return any(accepts_none(alternative) for alternative in schema)
    return isinstance(schema, ValueType) and schema.fits(None)


def check(value: Any, schema: Any, name: str = "") -> None:
    """Refuse a value that is not of its schema.

    Args:
        schema: a `ValueType`; a mapping of names to schemas; a list of one schema, that of every item; a tuple of
            alternatives, of which the first says what is expected.
        name: of the value, for the sentence.

    Raises:
        ValueError: a sentence that names the entry, what was expected and what came.
    """
    if isinstance(schema, tuple):
        if not any(isinstance(other, ValueType) and other.fits(value) for other in schema[1:]):
            check(value, schema[0], name)
    elif isinstance(schema, ValueType):
        _require(schema.fits(value), name, schema.words, value)
    elif isinstance(schema, list):
        _require(isinstance(value, list), name, "a list", value)
        for place, member in enumerate(value):
            check(member, schema[0], f"{name}[{place}]")
    else:
        _require(isinstance(value, dict), name, "an object", value)
        missing = [key for key in schema if key not in value] if isinstance(schema, Complete) else ()
        _require(not missing, name, f"an object with {', '.join(missing)}", value)
        for key, entry in value.items():
            if (kind := schema.get(key, schema.get(EVERY))) is not None:
                check(entry, kind, f"{name}.{key}" if name else key)


def _require(holds: bool, name: str, expected: str, value: Any) -> None:
    if not holds:
        came = repr(value)
        raise ValueError(f"{name or 'it'} must be {expected}, got {came if len(came) <= 60 else came[:57] + '...'}")


# -- values that are stored as records ----------------------------------------------------------------------------


def stored(schema: Any, name: str = "", of: Any = None, default: Any = None) -> Any:
    """Return a dataclass field that a record holds as an entry.

    Args:
        schema: of the entry.
        name: of the entry, where it is not that of the field.
        of: makes the value of the entry, where that is not the entry itself.
        default: of the field, where the record has no such entry.
    """
    return field(default=default, metadata={"schema": schema, "name": name, "of": of})


def grouped(part: type[Any]) -> Any:
    """Return a dataclass field of class `part`, whose own fields the record holds as entries of its own."""
    return field(default_factory=part, metadata={"part": part})


Value = TypeVar("Value", bound="DataclassInstance")


def schema_of(cls: type[DataclassInstance]) -> dict[str, Any]:
    """Return the schema of a record of `cls`, by the names of its entries."""
    schema: dict[str, Any] = {}
    for each in fields(cls):
        if "part" in each.metadata:
            schema |= schema_of(each.metadata["part"])
        elif "schema" in each.metadata:
            schema[each.metadata["name"] or each.name] = each.metadata["schema"]
    return schema


def decode(cls: type[Value], record: Mapping[str, Any]) -> Value:
    """Return the value that a checked record holds; an entry that is missing or null leaves its field's default."""
    made = {}
    for each in fields(cls):
        if "part" in each.metadata:
            made[each.name] = decode(each.metadata["part"], record)
        elif "schema" in each.metadata and (entry := record.get(each.metadata["name"] or each.name)) is not None:
            made[each.name] = entry if each.metadata["of"] is None else each.metadata["of"](entry)
    return cls(**made)


def encode(value: DataclassInstance) -> dict[str, Any]:
    """Return the record of a value: its entries in the order of its fields, nulls included."""
    record: dict[str, Any] = {}
    for each in fields(value):
        held = getattr(value, each.name)
        if "part" in each.metadata:
            record |= encode(held)
        elif "schema" in each.metadata:
            record[each.metadata["name"] or each.name] = _plain(held)
    return record


def _plain(held: Any) -> Any:
    if hasattr(held, "to_dict"):
        return held.to_dict()
    if isinstance(held, Mapping):
        return {name: _plain(entry) for name, entry in held.items()}
    return list(held) if isinstance(held, tuple) else held
