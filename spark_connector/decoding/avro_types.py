"""Avro's types as Spark's, as Spark's own `from_avro` has them where it has one."""

from __future__ import annotations

import datetime
from collections.abc import Iterable
from typing import Any

from ..errors import SparkConnectorError
from .column_types import ColumnType, Convert, array_of, map_of, nullable, struct_of

PRECISION_MAX = 38
"""Of Spark's decimals."""

PRIMITIVE_TYPES = {
    "boolean": "BOOLEAN",
    "int": "INT",
    "long": "BIGINT",
    "float": "FLOAT",
    "double": "DOUBLE",
    "bytes": "BINARY",
    "string": "STRING",
}
LOGICAL = {
    "date": ColumnType("DATE"),
    "timestamp-millis": ColumnType("TIMESTAMP"),
    "timestamp-micros": ColumnType("TIMESTAMP"),
    "local-timestamp-millis": ColumnType("TIMESTAMP_NTZ"),
    "local-timestamp-micros": ColumnType("TIMESTAMP_NTZ"),
    "uuid": ColumnType("STRING", str),
    # Spark has no time of the day; these are the numbers that Avro writes.
    "time-millis": ColumnType("INT", lambda time: _microseconds(time) // 1000),
    "time-micros": ColumnType("BIGINT", lambda time: _microseconds(time)),
}

WIDER = (({"int", "long"}, "long"), ({"float", "double"}, "double"))
"""Unions of these are the wider of both, as in `from_avro`."""

PYTHON_TYPES: dict[str, tuple[type, ...]] = {
    "boolean": (bool,),
    "int": (int,),
    "long": (int,),
    "float": (float,),
    "double": (float,),
    "bytes": (bytes,),
    "fixed": (bytes,),
    "string": (str,),
    "enum": (str,),
    "array": (list,),
    "map": (dict,),
    "record": (dict,),
    "error": (dict,),
}


def spark_type(schema: Any, references: Iterable[Any] = ()) -> ColumnType:
    """The type of an Avro schema.

    Args:
        schema: as JSON says it: a name, a list of a union's, or an object.
        references: other schemas whose names it uses, likewise; each behind those that it uses.

    Raises:
        SparkConnectorError: Spark has no such type.
    """
    types = _Types()
    for reference in references:
        types.of(reference, "a schema that it refers to")
    return types.of(schema, "the schema")


class _Types:
    """Named types may be used again by their name."""

    def __init__(self) -> None:
        self._named: dict[str, tuple[str, ColumnType]] = {}
        """The kind and the type of each."""
        self._open: set[str] = set()

    def of(self, schema: Any, where: str, space: str | None = None) -> ColumnType:
        """The type of a schema; `where` names it in sentences, `space` is the namespace."""
        if isinstance(schema, str):
            return self._by_name(schema, where, space)
        if isinstance(schema, list):
            return self._union(schema, where, space)
        if not isinstance(schema, dict) or "type" not in schema:
            raise SparkConnectorError(f"{where} is no Avro type: {schema!r}")
        kind = schema["type"]
        make = {
            "record": self._record,
            "error": self._record,
            "enum": self._enum,
            "fixed": self._fixed,
            "array": self._array,
            "map": self._map,
        }.get(kind if isinstance(kind, str) else "")
        if make is not None:
            return make(schema, where, space)
        return self._logical(schema, where) or self.of(kind, where, space)

    def _by_name(self, name: str, where: str, space: str | None) -> ColumnType:
        if name in PRIMITIVE_TYPES:
            return ColumnType(PRIMITIVE_TYPES[name])
        full = self._known_name(name, space)
        if full in self._open:
            raise SparkConnectorError(f"{where} contains itself, which Spark has no type for")
        if full not in self._named:
            raise SparkConnectorError(f"{where} is of an unknown type, {name!r}")
        return self._named[full][1]

    def _known_name(self, name: str, space: str | None) -> str:
        """A name without a dot is of the namespace it stands in."""
        full = name if "." in name or not space else f"{space}.{name}"
        return full if full in self._named or full in self._open else name

    def _union(self, schema: list[Any], where: str, space: str | None) -> ColumnType:
        others = [each for each in schema if each != "null"]
        if len(others) == 1:
            inner = self.of(others[0], where, space)
            return inner._replace(convert=inner.convert and _unnamed(inner.convert))
        for narrower, wider in WIDER:
            if all(isinstance(each, str) and each in narrower for each in others):
                return self.of(wider, where, space)
        branches = [
            _Branch(
                *self._kind_of(each, space), self.of(each, f"branch {number} of {where}", space)
            )
            for number, each in enumerate(others)
        ]
        return _union_type(branches)

    def _kind_of(self, schema: Any, space: str | None) -> tuple[str, str | None, bool]:
        """The kind of a type, its full name if it has one, and whether it has a logical type."""
        if isinstance(schema, str):
            full = self._known_name(schema, space)
            if schema in PRIMITIVE_TYPES or full not in self._named:
                return schema, None, False
            return self._named[full][0], full, False
        kind = schema["type"] if isinstance(schema["type"], str) else "other"
        name = self._full_name(schema, space) if "name" in schema else None
        return kind, name, "logicalType" in schema

    def _record(self, schema: dict[str, Any], where: str, space: str | None) -> ColumnType:
        name = self._full_name(schema, space)
        inner_space = name.rpartition(".")[0] or None
        self._open.add(name)
        fields = {
            field["name"]: self.of(field["type"], f"the field {field['name']!r}", inner_space)
            for field in schema["fields"]
        }
        self._open.discard(name)
        found = struct_of(fields)
        defaults = {each["name"] for each in schema["fields"] if _is_default_of_null(each)}
        if defaults:
            found = found._replace(revert=_without_nulls(found.revert, defaults))
        return self._name(schema, space, found)

    def _enum(self, schema: dict[str, Any], where: str, space: str | None) -> ColumnType:
        return self._name(schema, space, ColumnType("STRING"))

    def _fixed(self, schema: dict[str, Any], where: str, space: str | None) -> ColumnType:
        return self._name(schema, space, self._logical(schema, where) or ColumnType("BINARY"))

    def _array(self, schema: dict[str, Any], where: str, space: str | None) -> ColumnType:
        return array_of(self.of(schema["items"], f"an item of {where}", space))

    def _map(self, schema: dict[str, Any], where: str, space: str | None) -> ColumnType:
        return map_of(self.of(schema["values"], f"a value of {where}", space))

    def _logical(self, schema: dict[str, Any], where: str) -> ColumnType | None:
        logical = schema.get("logicalType")
        if logical == "decimal":
            precision, scale = schema["precision"], schema.get("scale", 0)
            if precision > PRECISION_MAX:
                raise SparkConnectorError(
                    f"{where} is a decimal of {precision} digits; Spark's have {PRECISION_MAX}"
                )
            return ColumnType(f"DECIMAL({precision}, {scale})")
        if logical == "duration":
            raise SparkConnectorError(f"{where} is a duration, which Spark has no type for")
        return LOGICAL.get(logical) if isinstance(logical, str) else None

    def _name(self, schema: dict[str, Any], space: str | None, found: ColumnType) -> ColumnType:
        self._named[self._full_name(schema, space)] = schema["type"], found
        return found

    def _full_name(self, schema: dict[str, Any], space: str | None) -> str:
        name = str(schema["name"])
        own = schema.get("namespace", space)
        return name if "." in name or not own else f"{own}.{name}"


class _Branch:
    """One of a union's types.

    Args:
        kind: its Avro type.
        name: of a named one, whole.
        is_logical: whether Python's type for it is another than Avro's.
        type: Spark's.
    """

    def __init__(self, kind: str, name: str | None, is_logical: bool, type: ColumnType) -> None:
        self.name = name
        self.type = type
        self._types = () if is_logical else PYTHON_TYPES.get(kind, ())

    def holds(self, value: Any) -> bool:
        """Whether a value without a name is one of this branch."""
        if isinstance(value, bool):
            return bool in self._types
        # What has no Python type of its own here (a datetime, a decimal) is of a logical type.
        if not self._types:
            return not isinstance(value, bool | int | float | bytes | str | list | dict)
        return isinstance(value, self._types)


def _union_type(branches: list[_Branch]) -> ColumnType:
    """A struct with a field of each branch, of which one is not null: `from_avro` calls them so."""
    names = [f"member{number}" for number in range(len(branches))]
    ddl = ", ".join(
        f"{name}: {branch.type.ddl}" for name, branch in zip(names, branches, strict=True)
    )

    def convert(value: Any) -> Any:
        given, value = value if isinstance(value, tuple) else (None, value)
        for name, branch in zip(names, branches, strict=True):
            if branch.name == given if given else branch.holds(value):
                return {name: nullable(branch.type.convert)(value)}
        raise ValueError(f"a value of type {type(value).__name__} is of no branch of its union")

    def revert(value: Any) -> Any:
        for name, branch in zip(names, branches, strict=True):
            if value[name] is not None:
                reverted = nullable(branch.type.revert)(value[name])
                return (branch.name, reverted) if branch.name else reverted
        return None

    return ColumnType(f"STRUCT<{ddl}>", convert, revert)


def _is_default_of_null(field: dict[str, Any]) -> bool:
    """Whether a null of a column stands for a field's default: the field cannot be null itself."""
    kind = field["type"]
    return "default" in field and kind != "null" and not (isinstance(kind, list) and "null" in kind)


def _without_nulls(revert: Convert | None, names: set[str]) -> Convert:
    whole = nullable(revert)
    return lambda value: {
        name: part for name, part in whole(value).items() if part is not None or name not in names
    }


def _unnamed(convert: Any) -> Any:
    """The branch of a union may come with its name; where there is but one, nobody asks for it."""
    return lambda value: convert(value[1] if isinstance(value, tuple) else value)


def _microseconds(time: datetime.time) -> int:
    seconds = (time.hour * 60 + time.minute) * 60 + time.second
    return seconds * 1_000_000 + time.microsecond
