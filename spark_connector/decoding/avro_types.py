"""Avro's types as Spark's, and what fastavro reads of each as what Arrow takes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from ..errors import SparkConnectorError

Convert = Callable[[Any], Any]


class AvroType(NamedTuple):
    """A type in SQL, and how its values are made fit for Arrow."""

    ddl: str
    convert: Convert | None
    """None where the value is taken as it is."""


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
    "date": "DATE",
    "timestamp-millis": "TIMESTAMP",
    "timestamp-micros": "TIMESTAMP",
    "local-timestamp-millis": "TIMESTAMP_NTZ",
    "local-timestamp-micros": "TIMESTAMP_NTZ",
}


def spark_type(schema: Any) -> AvroType:
    """The type of an Avro schema.

    Args:
        schema: as JSON says it: a name, a list of a union's, or an object.

    Raises:
        SparkConnectorError: Spark has no such type.
    """
    return _Types().of(schema, "the schema")


class _Types:
    """Named types may be used again by their name."""

    def __init__(self) -> None:
        self._named: dict[str, AvroType] = {}
        self._open: set[str] = set()

    def of(self, schema: Any, where: str) -> AvroType:
        if isinstance(schema, str):
            return self._by_name(schema, where)
        if isinstance(schema, list):
            return self._union(schema, where)
        if not isinstance(schema, dict) or "type" not in schema:
            raise SparkConnectorError(f"{where} is no Avro type: {schema!r}")
        kind = schema["type"]
        make = {
            "record": self._record,
            "enum": self._enum,
            "fixed": self._fixed,
            "array": self._array,
            "map": self._map,
        }.get(kind if isinstance(kind, str) else "")
        if make is not None:
            return make(schema, where)
        return self._logical(schema, where) or self.of(kind, where)

    def _by_name(self, name: str, where: str) -> AvroType:
        if name in PRIMITIVE_TYPES:
            return AvroType(PRIMITIVE_TYPES[name], None)
        if name in self._open:
            raise SparkConnectorError(f"{where} contains itself, which Spark has no type for")
        known = self._named.get(name)
        if known is None:
            raise SparkConnectorError(f"{where} is of an unknown type, {name!r}")
        return known

    def _union(self, schema: list[Any], where: str) -> AvroType:
        others = [each for each in schema if each != "null"]
        if len(others) != 1:
            raise SparkConnectorError(
                f"{where} is one of several types, which Spark has no type for; only a union of"
                " null and one other can be a column"
            )
        inner = self.of(others[0], where)
        convert = inner.convert
        if convert is None:
            return inner
        return AvroType(inner.ddl, lambda value: None if value is None else convert(value))

    def _record(self, schema: dict[str, Any], where: str) -> AvroType:
        name = self._full_name(schema)
        self._open.update((name, schema["name"]))
        fields = {
            field["name"]: self.of(field["type"], f"the field {field['name']!r}")
            for field in schema["fields"]
        }
        self._open.difference_update((name, schema["name"]))
        ddl = ", ".join(f"`{each}`: {kind.ddl}" for each, kind in fields.items())
        converts = {each: kind.convert for each, kind in fields.items() if kind.convert}

        def convert(value: Any) -> Any:
            return {
                each: converts[each](part) if each in converts else part
                for each, part in value.items()
            }

        return self._name(schema, AvroType(f"STRUCT<{ddl}>", convert if converts else None))

    def _enum(self, schema: dict[str, Any], where: str) -> AvroType:
        return self._name(schema, AvroType("STRING", None))

    def _fixed(self, schema: dict[str, Any], where: str) -> AvroType:
        return self._name(schema, self._logical(schema, where) or AvroType("BINARY", None))

    def _array(self, schema: dict[str, Any], where: str) -> AvroType:
        inner = self.of(schema["items"], f"an item of {where}")
        convert = inner.convert
        if convert is None:
            return AvroType(f"ARRAY<{inner.ddl}>", None)
        return AvroType(f"ARRAY<{inner.ddl}>", lambda value: [convert(each) for each in value])

    def _map(self, schema: dict[str, Any], where: str) -> AvroType:
        inner = self.of(schema["values"], f"a value of {where}")
        convert = inner.convert or _same
        return AvroType(
            f"MAP<STRING, {inner.ddl}>",
            lambda value: [(key, convert(each)) for key, each in value.items()],
        )

    def _logical(self, schema: dict[str, Any], where: str) -> AvroType | None:
        logical = schema.get("logicalType")
        if logical == "decimal":
            return AvroType(f"DECIMAL({schema['precision']}, {schema.get('scale', 0)})", None)
        if logical == "uuid":
            return AvroType("STRING", str)
        if logical in LOGICAL:
            return AvroType(LOGICAL[logical], None)
        if logical in ("time-millis", "time-micros", "duration"):
            raise SparkConnectorError(f"{where} is a {logical}, which Spark has no type for")
        return None

    def _name(self, schema: dict[str, Any], found: AvroType) -> AvroType:
        self._named[self._full_name(schema)] = self._named[schema["name"]] = found
        return found

    def _full_name(self, schema: dict[str, Any]) -> str:
        space = schema.get("namespace")
        return f"{space}.{schema['name']}" if space else str(schema["name"])


def _same(value: Any) -> Any:
    return value
