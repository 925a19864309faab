"""Protobuf's types as Spark's, as Spark's own `from_protobuf` has them where it has one."""

from __future__ import annotations

from typing import Any

from ...schemas.protobuf import DURATION, JSON_LIKE, TIMESTAMP, WRAPPERS, is_map
from ..errors import SparkConnectorError
from .column_types import JSON_TEXT, ColumnType, array_of, map_of, struct_of

SCALARS = {
    "TYPE_BOOL": "BOOLEAN",
    "TYPE_INT32": "INT",
    "TYPE_SINT32": "INT",
    "TYPE_SFIXED32": "INT",
    # Spark has no unsigned numbers; these have room for all of them.
    "TYPE_UINT32": "BIGINT",
    "TYPE_FIXED32": "BIGINT",
    "TYPE_INT64": "BIGINT",
    "TYPE_SINT64": "BIGINT",
    "TYPE_SFIXED64": "BIGINT",
    "TYPE_UINT64": "DECIMAL(20, 0)",
    "TYPE_FIXED64": "DECIMAL(20, 0)",
    "TYPE_FLOAT": "FLOAT",
    "TYPE_DOUBLE": "DOUBLE",
    "TYPE_STRING": "STRING",
    "TYPE_BYTES": "BINARY",
    "TYPE_ENUM": "STRING",
}
UNSIGNED_64 = {"TYPE_UINT64", "TYPE_FIXED64"}


def spark_type(descriptor: Any) -> ColumnType:
    """The type of a message.

    Args:
        descriptor: the message's.

    Raises:
        SparkConnectorError: Spark has no such type.
    """
    return _message(descriptor, ())


def _message(descriptor: Any, outer: tuple[str, ...]) -> ColumnType:
    name = descriptor.full_name
    if name in outer:
        raise SparkConnectorError(
            f"the message {name} contains itself, which Spark has no type for"
        )
    if name == TIMESTAMP:
        return ColumnType("TIMESTAMP")
    if name == DURATION:
        return ColumnType("INTERVAL DAY TO SECOND")
    if name in WRAPPERS:
        return _single(descriptor.fields_by_name["value"], outer)
    if name in JSON_LIKE:
        return JSON_TEXT
    return struct_of({field.name: _field(field, (*outer, name)) for field in descriptor.fields})


def _field(field: Any, outer: tuple[str, ...]) -> ColumnType:
    if is_map(field):
        parts = field.message_type.fields_by_name
        return map_of(_single(parts["value"], outer), _single(parts["key"], outer))
    return array_of(_single(field, outer)) if field.is_repeated else _single(field, outer)


def _single(field: Any, outer: tuple[str, ...]) -> ColumnType:
    if field.message_type is not None:
        return _message(field.message_type, outer)
    from google.protobuf.descriptor_pb2 import FieldDescriptorProto

    kind = FieldDescriptorProto.Type.Name(field.type)
    return ColumnType(SCALARS[kind], revert=int if kind in UNSIGNED_64 else None)
