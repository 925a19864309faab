"""Columns of Spark for values: their types, and what lies between Python's objects and Arrow."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

Convert = Callable[[Any], Any]


class ColumnType(NamedTuple):
    """A type in SQL, and how its values are made fit for Arrow, and for the codec again.

    Neither is called with None, which is null everywhere.
    """

    ddl: str
    convert: Convert | None = None
    """None where the value is taken as it is."""
    revert: Convert | None = None
    """Likewise."""


JSON_TEXT = ColumnType("STRING", json.dumps, json.loads)
"""For what Spark has no type for."""


def array_of(item: ColumnType) -> ColumnType:
    """Lists."""
    return ColumnType(
        f"ARRAY<{item.ddl}>",
        item.convert and _each(nullable(item.convert)),
        item.revert and _each(nullable(item.revert)),
    )


def map_of(value: ColumnType, key: ColumnType | None = None) -> ColumnType:
    """Dictionaries; pairs to Arrow."""
    key = key or ColumnType("STRING")
    convert, revert = nullable(value.convert), nullable(value.revert)
    return ColumnType(
        f"MAP<{key.ddl}, {value.ddl}>",
        lambda entries: [(name, convert(each)) for name, each in entries.items()],
        lambda entries: {name: revert(each) for name, each in entries},
    )


def struct_of(fields: Mapping[str, ColumnType]) -> ColumnType:
    """Dictionaries with these keys."""
    ddl = ", ".join(f"{quoted(name)}: {kind.ddl}" for name, kind in fields.items())
    return ColumnType(
        f"STRUCT<{ddl}>",
        _parts({name: kind.convert for name, kind in fields.items()}),
        _parts({name: kind.revert for name, kind in fields.items()}),
    )


def nullable(convert: Convert | None) -> Convert:
    """The same for what may be None."""
    if convert is None:
        return lambda value: value
    return lambda value: None if value is None else convert(value)


def quoted(name: str) -> str:
    """A name as Spark's SQL takes any."""
    return f"`{name.replace('`', '``')}`"


def _each(convert: Convert) -> Convert:
    return lambda items: [convert(each) for each in items]


def _parts(converts: Mapping[str, Convert | None]) -> Convert | None:
    made = {name: nullable(convert) for name, convert in converts.items() if convert}
    if not made:
        return None
    return lambda value: {
        name: made[name](part) if name in made else part for name, part in value.items()
    }
