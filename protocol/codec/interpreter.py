"""Between values and the containers that plain constructs parse to and build from."""

from __future__ import annotations

from typing import Any

from construct import Construct, ConstructError, Container, Renamed

from ..errors import EncodeError, ProtocolError
from ..varints import Buffer
from .types import UNKNOWN_TAGS, Struct, StructType
from .wire import (
    TAGGED_FIELDS,
    UNKNOWN,
    Presence,
    RecordsBlob,
    Repeated,
    ResolvedStruct,
    TaggedFields,
)


def parse(data: Buffer, resolved: ResolvedStruct) -> Struct:
    """The value in some bytes.

    Raises:
        ProtocolError: the bytes are no such message.
    """
    try:
        return value_of(resolved.parse(data), resolved)
    except ConstructError as error:
        raise ProtocolError(str(error)) from error


def build(value: Any, resolved: ResolvedStruct) -> bytes:
    """A value's bytes.

    Raises:
        EncodeError: the version cannot carry what the value holds.
    """
    try:
        encoded: bytes = resolved.build(container_of(value, resolved))
    except ConstructError as error:
        raise EncodeError(str(error)) from error
    return encoded


def value_of(container: Any, resolved: ResolvedStruct) -> Struct:
    """The value for a parsed container; what the version lacks has its default."""
    declaration: StructType = resolved.declaration
    value: Struct = declaration()
    for subcon in resolved.subcons:
        if subcon.name == TAGGED_FIELDS:
            tagged = container[TAGGED_FIELDS]
            for field in _tagged_fields(resolved).values():
                if field.name in tagged:
                    setattr(value, field.name, _to_value(tagged[field.name], field.subcon))
            setattr(value, UNKNOWN_TAGS, tagged[UNKNOWN])
        else:
            setattr(value, subcon.name, _to_value(container[subcon.name], subcon.subcon))
    return value


def container_of(value: Any, resolved: ResolvedStruct) -> Container:
    """The container that builds a value's bytes.

    Raises:
        EncodeError: a field that is set has no place in this version.
    """
    check_carriable(value, resolved)
    container = Container()
    for subcon in resolved.subcons:
        if subcon.name == TAGGED_FIELDS:
            container[TAGGED_FIELDS] = _tagged_container(value, resolved)
        else:
            container[subcon.name] = _from_value(getattr(value, subcon.name), subcon.subcon)
    return container


def check_carriable(value: Any, resolved: ResolvedStruct) -> None:
    """See that nothing is set which this version cannot carry and which must not be lost.

    Raises:
        EncodeError: it names the field.
    """
    declaration: StructType = resolved.declaration
    for field in declaration.fields:
        absent = resolved.version not in field.versions
        if absent and not field.ignorable and not field.is_default(getattr(value, field.name)):
            raise EncodeError(f"{declaration.name}.{field.name} is not in v{resolved.version}")
    flexible = any(subcon.name == TAGGED_FIELDS for subcon in resolved.subcons)
    if not flexible and getattr(value, UNKNOWN_TAGS, None):
        raise EncodeError(f"{declaration.name} has no tagged fields in v{resolved.version}")


def _tagged_fields(resolved: ResolvedStruct) -> dict[int, Renamed]:
    tagged: TaggedFields = resolved.subcons[-1].subcon
    return tagged.fields


def _tagged_container(value: Any, resolved: ResolvedStruct) -> Container:
    tagged = Container()
    fields = {field.name: field for field in resolved.declaration.fields}
    for subcon in _tagged_fields(resolved).values():
        content = getattr(value, subcon.name)
        if not fields[subcon.name].is_default(content):
            tagged[subcon.name] = _from_value(content, subcon.subcon)
    tagged[UNKNOWN] = getattr(value, UNKNOWN_TAGS, None)
    return tagged


def _to_value(parsed: Any, wire_type: Construct) -> Any:
    if parsed is None:
        return None
    if isinstance(wire_type, Presence):
        return _to_value(parsed, wire_type.content)
    if isinstance(wire_type, Repeated):
        return [_to_value(element, wire_type.element) for element in parsed]
    if isinstance(wire_type, ResolvedStruct):
        return value_of(parsed, wire_type)
    if isinstance(wire_type, RecordsBlob):
        return memoryview(parsed)
    return parsed


def _from_value(value: Any, wire_type: Construct) -> Any:
    if value is None:
        return None
    if isinstance(wire_type, Presence):
        return _from_value(value, wire_type.content)
    if isinstance(wire_type, Repeated):
        return [_from_value(element, wire_type.element) for element in value]
    if isinstance(wire_type, ResolvedStruct):
        return container_of(value, wire_type)
    return value
