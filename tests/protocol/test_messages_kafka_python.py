"""Our schemas and codecs against kafka-python's, as they are installed.

Definitions are compared field by field, bytes on generated values, both ways: what it
writes for a value is what we write, and what it reads of ours is the value.
"""

from __future__ import annotations

import importlib
import pkgutil
import re
import uuid
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import kafka
import kafka.protocol as kafka_python
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from kafka.protocol.api_data import ApiData
from kafka.protocol.api_message import ApiMessage
from kafka.protocol.schemas import load_json
from kafka.protocol.schemas.fields.codecs import BitField
from support.random_messages import random_value

from odradek.common.sentinels import ZERO_UUID
from odradek.protocol import internal, messages
from odradek.protocol.codec import types, wire
from odradek.protocol.codec.message import MessageType
from odradek.protocol.codec.types import Array, Field, StructType
from odradek.protocol.codec.versions import NO_VERSIONS, format_versions, parse_versions
from odradek.protocol.codec.wire import ResolvedStruct

Strategy = Callable[[ResolvedStruct], st.SearchStrategy[Any]]

THEIR_OWN = {"StickyAssignorUserData": "Kafka's assignor writes these bytes by hand"}
"""Definitions of kafka-python that are not among Kafka's."""

NULL_BY_DEFAULT = "error_message"
"""In Kafka's definitions "" is the default of these nullable fields, which its handlers always
set, to null mostly. Ours is null, so that a handler may leave a message out."""

OLDER_VERSIONS = {
    "AlterReplicaLogDirs": "0",
    "CreateAcls": "0",
    "CreateTopics": "0-1",
    "DeleteAcls": "0",
    "DeleteTopics": "0",
    "DescribeAcls": "0",
    "DescribeConfigs": "0",
    "DescribeLogDirs": "0",
    "Fetch": "0-3",
    "ListOffsets": "0",
    "OffsetCommit": "0-1",
    "OffsetFetch": "0",
    "OffsetForLeaderEpoch": "0-1",
    "Produce": "0-2",
    "WriteTxnMarkers": "0",
}
"""Versions of requests and responses that ended with Kafka 4.0 (KIP-896), which kafka-python
defines no more and which Kafka up to 3.9 speaks; Kafka 3.9.1's classes vouch for them."""

OTHER_VERSIONS = {"RequestHeader": "0"}
"""The same, for what is neither: ControlledShutdown v0 has this header."""

UNREAD = {
    "ApiVersionsResponse": "an error in the answer makes it version 0, whatever was requested",
}
"""Messages that kafka-python reads otherwise than its own definition says."""

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


DEFINITIONS = definitions()
SHARED = sorted(DEFINITIONS.keys() - THEIR_OWN.keys())

CODECS = codecs()


@cache
def expected_differences(name: str) -> str:
    """The versions that we have and kafka-python has not."""
    base = name.removesuffix("Request").removesuffix("Response")
    return OTHER_VERSIONS.get(name) or OLDER_VERSIONS.get(base, "none")


def test_every_definition_of_kafka_python_is_declared_here() -> None:
    assert {name for name in DEFINITIONS if our_message(name) is None} == THEIR_OWN.keys()
    assert len(DEFINITIONS) == 109
    assert {name for name in CODECS if name not in DEFINITIONS} == set()
    headers = {"RequestHeader", "ResponseHeader"}  # see test_headers.py
    assert DEFINITIONS.keys() - CODECS.keys() == THEIR_OWN.keys() | headers


@pytest.mark.parametrize("name", SHARED)
def test_keys_versions_and_flexibility_are_kafka_pythons(name: str) -> None:
    ours, theirs = our_message(name), DEFINITIONS[name]
    assert ours is not None
    assert ours.api_key == theirs.get("apiKey")
    common = common_versions(ours, theirs)
    assert common == parse_versions(theirs["validVersions"])
    more = [version for version in ours.versions if version not in common]
    assert more == list(parse_versions(expected_differences(name)))
    flexible = parse_versions(theirs["flexibleVersions"])
    for version in common:
        assert (version in ours.flexible) == (version in flexible), version


@pytest.mark.parametrize("name", SHARED)
def test_every_field_is_kafka_pythons(name: str) -> None:
    ours, theirs = our_message(name), DEFINITIONS[name]
    assert ours is not None
    common = common_versions(ours, theirs)
    our_facts = list(our_fields(ours, name, common))
    their_facts = list(their_fields(theirs["fields"], name, common))
    assert len(dict(our_facts)) == len(our_facts)
    assert [path for path, _ in our_facts] == [path for path, _ in their_facts]
    for (path, our_fact), (_, their_fact) in zip(our_facts, their_facts, strict=True):
        if path.endswith(NULL_BY_DEFAULT) and our_fact.nullable != "none":
            assert (our_fact.default, their_fact.default) in ((None, ""), (None, None))
            their_fact = their_fact._replace(default=None)
        assert our_fact == their_fact, path


def pairs() -> list[Any]:
    """Every message that both have codecs for, and the versions."""
    found = []
    for name, theirs in sorted(CODECS.items()):
        ours = our_message(name)
        if ours is not None:
            versions = common_versions(ours, DEFINITIONS[name])
            found.append(pytest.param(ours, theirs, versions, id=name))
    return found


def without_unknown_tags(value: Any) -> Any:
    """The value as it was, with what kafka-python does not write taken out."""
    if hasattr(value, "unknown_tags"):
        value.unknown_tags = None
        for name in type(value).__slots__:
            without_unknown_tags(getattr(value, name))
    elif isinstance(value, list):
        for element in value:
            without_unknown_tags(element)
    return value


def check_both_ways(ours: MessageType, theirs: Any, version: int, value: Any) -> None:
    """See that kafka-python writes and reads a value as we do."""
    value = without_unknown_tags(value)
    if ours.name in UNREAD:
        value.error_code = 0
    encoded = b"".join(ours.encoder(version)(value))
    assert their_encoding(theirs, value, version) == encoded
    assert our_reading(theirs, encoded, ours, version) == value
    assert ours.decoder(version)(encoded, 0) == (value, len(encoded))


@pytest.mark.parametrize(("ours", "theirs", "versions"), pairs())
def test_kafka_python_reads_and_writes_the_same_bytes(
    ours: MessageType, theirs: Any, versions: range
) -> None:
    rng = Random(ours.name)
    for version in versions:
        check_both_ways(ours, theirs, version, random_value(ours.version(version), rng))


def checked(examples: int) -> Callable[..., Any]:
    """A test of so many generated values for each message."""

    @pytest.mark.parametrize(("ours", "theirs", "versions"), pairs())
    @given(data=st.data())
    @settings(max_examples=examples, deadline=None, suppress_health_check=[HealthCheck.too_slow])
    def test(
        ours: MessageType,
        theirs: Any,
        versions: range,
        value_strategy: Strategy,
        data: st.DataObject,
    ) -> None:
        version = data.draw(st.sampled_from(versions))
        value = data.draw(value_strategy(ours.version(version)))
        check_both_ways(ours, theirs, version, value)

    return test


test_kafka_python_reads_and_writes_generated_values_alike = pytest.mark.slow(checked(examples=16))

test_kafka_python_reads_and_writes_many_values_alike = pytest.mark.soak(checked(examples=500))
