"""kafka-python's definitions of Kafka's messages, and its values made of ours.

kafka-python brings a copy of Kafka's JSON definitions; its codecs are made from them when it
is imported. Both are read as they are installed.
"""

from __future__ import annotations

import importlib
import pkgutil
import re
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import kafka
import kafka.protocol as kafka_python
from kafka.protocol.api_data import ApiData
from kafka.protocol.api_message import ApiMessage
from kafka.protocol.schemas import load_json
from kafka.protocol.schemas.fields.codecs import BitField

from odradek.common.sentinels import ZERO_UUID
from odradek.protocol import internal, messages
from odradek.protocol.codec import types, wire
from odradek.protocol.codec.message import MessageType
from odradek.protocol.codec.types import Array, Field, ResolvedStruct, StructType
from odradek.protocol.codec.versions import NO_VERSIONS, format_versions, parse_versions

KINDS = {
    id(getattr(types, name)): name.rstrip("_")
    for name in (
        *("bool_", "int8", "int16", "uint16", "int32", "uint32", "int64", "float64"),
        *("uuid", "string", "bytes_", "records"),
    )
}


class FieldFacts(NamedTuple):
    """What a definition says of a field, as far as some versions go.

    Attributes:
        type: Kafka's name for it.
        versions: those that carry it.
        nullable: those in which it may be null.
        tag: its number, if it is a tagged field.
        default: where none is given.
        ignorable: whether other versions may lose it; None where there are no others.
    """

    type: str
    versions: str
    nullable: str
    tag: int | None
    default: Any
    ignorable: bool | None


def definitions() -> dict[str, dict[str, Any]]:
    """The JSON definitions that kafka-python has anywhere, by name."""
    folder = Path(kafka.__file__).parent
    packages = {path.stem: path.parent for path in folder.rglob("*.json")}
    return {
        name: load_json(name, package=".".join(("kafka", *parent.relative_to(folder).parts)))
        for name, parent in sorted(packages.items())
    }


def our_message(name: str) -> MessageType | None:
    """Our message of that name."""
    if name in messages.message_names():
        return getattr(messages, name)  # type: ignore[no-any-return]  # found by its name
    return internal.find_message(name) if name in internal.message_names() else None


def snake_case(name: str) -> str:
    """Kafka's name of a field as Python spells it."""
    return re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower()


def common_versions(ours: MessageType, definition: dict[str, Any]) -> range:
    """The versions that both have."""
    return shared(ours.versions, parse_versions(definition["validVersions"]))


def shared(one: range, other: range) -> range:
    """The versions in both ranges."""
    versions = range(max(one.start, other.start), min(one.stop, other.stop))
    return versions or NO_VERSIONS


def our_fields(struct: StructType, path: str, versions: range) -> Iterator[tuple[str, FieldFacts]]:
    """The fields of a struct and of those within it, by path, in the order of the wire."""
    for field in struct.fields:
        carried = shared(field.versions, versions)
        if not carried:
            continue
        field_path = f"{path}.{field.name}"
        inner = field.type.element if isinstance(field.type, Array) else field.type
        kind = inner.name if isinstance(inner, StructType) else KINDS[id(inner)]
        yield (
            field_path,
            FieldFacts(
                f"[]{kind}" if isinstance(field.type, Array) else kind,
                format_versions(carried),
                format_versions(shared(field.nullable, carried)),
                field.tag,
                _our_default(field),
                field.ignorable if carried != versions else None,
            ),
        )
        if isinstance(inner, StructType):
            yield from our_fields(inner, field_path, carried)


def _our_default(field: Field) -> Any:
    if isinstance(field.type, StructType):
        return field.default if field.default is None else {}
    return field.default_value()


def their_fields(
    fields: list[dict[str, Any]], path: str, versions: range
) -> Iterator[tuple[str, FieldFacts]]:
    """Likewise, of a list of fields in kafka-python's JSON."""
    for field in fields:
        carried = shared(parse_versions(field["versions"]), versions)
        if not carried:
            continue
        field_path = f"{path}.{snake_case(field['name'])}"
        nullable = parse_versions(field.get("nullableVersions", "none"))
        yield (
            field_path,
            FieldFacts(
                field["type"],
                format_versions(carried),
                format_versions(shared(nullable, carried)),
                field["tag"] if "taggedVersions" in field else None,
                _their_default(field),
                field.get("ignorable", False) if carried != versions else None,
            ),
        )
        yield from their_fields(field.get("fields", []), field_path, carried)


def _their_default(field: dict[str, Any]) -> Any:
    kind, text = field["type"], field.get("default", "")
    if text in ("null", None):
        return None
    if kind == "bool":
        return str(text).lower() == "true"
    if kind.startswith(("int", "uint")):
        return int(str(text or "0"), 0)
    plain = {"float64": 0.0, "string": text, "bytes": b"", "records": None, "uuid": bytes(16)}
    return plain[kind] if kind in plain else [] if kind.startswith("[]") else {}


def codecs() -> dict[str, Any]:
    """kafka-python's classes of messages, by name."""
    found: dict[str, Any] = {}
    for package in ("admin", "consumer", "metadata", "producer", "sasl"):
        root = importlib.import_module(f"{kafka_python.__name__}.{package}")
        names = [info.name for info in pkgutil.iter_modules(getattr(root, "__path__", []))]
        for module in (root, *(importlib.import_module(f"{root.__name__}.{n}") for n in names)):
            for name, value in vars(module).items():
                is_class = isinstance(value, type) and issubclass(value, ApiMessage | ApiData)
                if is_class and value not in (ApiMessage, ApiData):
                    found[name] = value
    return found


def their_encoding(theirs: Any, value: Any, version: int) -> bytes:
    """What kafka-python writes for a value of ours."""
    made = _their_struct(value, type(value).version(version), theirs._struct, version)
    if issubclass(theirs, ApiData):
        return bytes(made.encode(version=version, header=False))
    return bytes(made.encode(version=version))


def our_reading(theirs: Any, encoded: bytes, ours: MessageType, version: int) -> Any:
    """What kafka-python reads, as a value of ours."""
    if issubclass(theirs, ApiData):
        read = theirs.decode(encoded, version=version, header=False)
    else:
        read = theirs.decode(encoded, version=version)
    return _our_struct(read, ours.version(version), theirs._struct)


def _wire_fields(resolved: ResolvedStruct) -> Iterator[tuple[Any, bool]]:
    for subcon in resolved.subcons:
        if subcon.name == wire.TAGGED_FIELDS:
            for field in subcon.subcon.fields.values():
                yield field, True
        else:
            yield subcon, False


def _their_name(name: str, struct: Any) -> str:
    """kafka-python shortens the names of the fields that it reads as sets of bits."""
    return name if name in struct.fields else "authorized_operations"


def _their_struct(value: Any, resolved: ResolvedStruct, struct: Any, version: int) -> Any:
    declared = {field.name: field for field in resolved.declaration.fields}
    fields = {}
    for subcon, tagged in _wire_fields(resolved):
        content = getattr(value, subcon.name)
        if tagged and declared[subcon.name].is_default(content):
            continue
        name = _their_name(subcon.name, struct)
        fields[name] = _their_content(content, subcon.subcon, struct.fields[name], version)
    return struct(version=version, **fields)


def _their_content(content: Any, wire_type: Any, field: Any, version: int) -> Any:
    if isinstance(wire_type, wire.Presence):
        wire_type = wire_type.content
    if content is None:
        return None
    if isinstance(wire_type, wire.Repeated):
        inner = getattr(field, "array_of", field)
        return [_their_content(item, wire_type.element, inner, version) for item in content]
    if isinstance(wire_type, ResolvedStruct):
        return _their_struct(content, wire_type, field, version)
    if getattr(field, "_type", None) is BitField:
        return BitField.from_32_bit_field(  # type: ignore[union-attr]  # the library's types
            content & 0xFFFFFFFF
        )
    if field.type_str == "uuid":
        return uuid.UUID(bytes=content)
    return bytes(content) if isinstance(content, memoryview) else content


def _our_struct(read: Any, resolved: ResolvedStruct, struct: Any) -> Any:
    value = resolved.declaration()
    for subcon, tagged in _wire_fields(resolved):
        name = _their_name(subcon.name, struct)
        content = getattr(read, name)
        if tagged and content == struct.fields[name].default:
            continue  # It was not on the wire.
        setattr(value, subcon.name, _our_content(content, subcon.subcon, struct.fields[name]))
    return value


def _our_content(content: Any, wire_type: Any, field: Any) -> Any:
    if isinstance(wire_type, wire.Presence):
        wire_type = wire_type.content
    if getattr(field, "_type", None) is BitField:
        bits = {31} if content is None else content
        number = BitField.to_32_bit_field(bits)  # type: ignore[union-attr]  # the library's types
        return number - (1 << 32) if number >> 31 else number
    if content is None:
        # It reads the uuid of zeros as None, and writes None so.
        return ZERO_UUID if field.type_str == "uuid" else None
    if isinstance(wire_type, wire.Repeated):
        inner = getattr(field, "array_of", field)
        return [_our_content(item, wire_type.element, inner) for item in content]
    if isinstance(wire_type, ResolvedStruct):
        return _our_struct(content, wire_type, field)
    if isinstance(content, uuid.UUID):
        return content.bytes
    return bytes(content) if isinstance(content, memoryview) else content
