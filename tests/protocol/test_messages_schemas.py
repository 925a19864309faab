"""The declared schemas against those of Kafka 4.3.1, field by field and version by version."""

from __future__ import annotations

import base64
from collections.abc import Callable
from pathlib import Path
from typing import Any

import construct

from odradek.protocol import ApiKey, messages, wire
from odradek.protocol.message import Message
from odradek.protocol.types import Field, ResolvedStruct, Struct

Rows = Callable[[str], list[list[str]]]

DATA = Path(__file__).parent / "data"
FIXED = {
    id(construct.Flag): "boolean",
    id(construct.Int8sb): "int8",
    id(construct.Int16sb): "int16",
    id(construct.Int16ub): "uint16",
    id(construct.Int32sb): "int32",
    id(construct.Int32ub): "uint32",
    id(construct.Int64sb): "int64",
    id(construct.Float64b): "float64",
}
SIZED = {wire.Text: "string", wire.Blob: "bytes", wire.RecordsBlob: "records"}


def described(wire_type: construct.Construct) -> str:
    """A resolved type in the notation of the data file."""
    if isinstance(wire_type, construct.Renamed):
        content = described(wire_type.subcon)
        return content if wire_type.name == wire.TAGGED_FIELDS else f"{wire_type.name}:{content}"
    if isinstance(wire_type, ResolvedStruct):
        return f"({' '.join(described(subcon) for subcon in wire_type.subcons)})"
    if isinstance(wire_type, wire.TaggedFields):
        fields = sorted(wire_type.fields.items())
        return f"<{' '.join(f'{tag}:{described(field)}' for tag, field in fields)}>"
    if isinstance(wire_type, wire.Presence):
        return f"nullable_{described(wire_type.content)}"
    if isinstance(wire_type, wire.Sized):
        compact = "compact_" if wire_type.length is wire.COMPACT_LENGTH else ""
        nullable = "nullable_" if wire_type.nullable else ""
        if isinstance(wire_type, wire.Repeated):
            return f"{compact}{nullable}[{described(wire_type.element)}]"
        return f"{compact}{nullable}{SIZED[type(wire_type)]}"
    return "uuid" if isinstance(wire_type, construct.Bytes) else FIXED[id(wire_type)]


def declared_struct(name: str) -> Struct:
    """The struct that the data file calls "FetchRequest.FetchTopic"."""
    message_name, _, struct_name = name.partition(".")
    message: Message = getattr(messages, message_name)
    if not struct_name:
        return message
    return next(struct for struct in message.structs() if struct.name == struct_name)


def described_default(field: Field) -> str:
    """A default as the data file writes it."""
    default: Any = field.default_value()
    if default is None:
        return "null"
    if isinstance(default, bool):
        return str(default).lower()
    if isinstance(default, bytes) and len(default) == 16:
        return base64.urlsafe_b64encode(default).decode().rstrip("=")
    if isinstance(default, bytes):
        return f"b{len(default)}"
    if isinstance(default, list):
        return "[]"
    return str(default) if isinstance(default, int | float | str) else "{}"


def test_every_field_of_every_version_is_kafkas(kafka_rows: Rows) -> None:
    rows = kafka_rows("kafka-4.3.1-schemas.tsv")
    assert len(rows) > 300
    for name, versions, expected in rows:
        first, last = map(int, versions.split("-"))
        for version in range(first, last + 1):
            assert described(getattr(messages, name).version(version)) == expected, (name, version)


def test_defaults_and_what_may_be_lost_are_kafkas(kafka_rows: Rows) -> None:
    for name, *fields in kafka_rows("kafka-4.3.1-defaults.tsv"):
        struct = declared_struct(name)
        assert [field.name for field in struct.fields] == [f.partition("=")[0] for f in fields]
        for field, row in zip(struct.fields, fields, strict=True):
            default = row.partition("=")[2]
            if default[-1:] in ("!", "?"):
                assert field.ignorable is (default[-1] == "!"), (name, field.name)
                default = default[:-1]
            # Kafka's handlers always set a message, to null mostly; ours may leave it out.
            if field.name.endswith("error_message") and default == "":
                default = "null"
            assert described_default(field) == default, (name, field.name)


def test_versions_are_those_that_kafka_advertises() -> None:
    lines = (DATA / "kafka-4.3.1-api-versions.txt").read_text().splitlines()
    renamed = {"ListClientMetricsResources": "ListConfigResources"}
    for api_key, name, versions in (line.split() for line in lines if line):
        first, last = map(int, versions.split("-"))
        request = messages.request_message(int(api_key))
        response = messages.response_message(int(api_key))
        assert request.name == renamed.get(name, name) + "Request"
        assert request.versions == response.versions
        # Produce 0-2 is advertised for old clients' sake, but refused (KIP-896).
        if request.name == "ProduceRequest":
            first = 3
        assert request.versions[0] == first
        # Versions that are not stable yet are declared, and not advertised.
        assert last in (request.versions[-1], request.versions[-1] - 1)


def test_requests_and_responses_agree_on_key_versions_and_flexibility() -> None:
    for api_key in ApiKey:
        request = messages.request_message(api_key)
        response = messages.response_message(api_key)
        assert request.api_key == response.api_key == api_key
        assert request.versions == response.versions
        assert request.flexible == response.flexible


def test_structs_of_a_message_have_names_of_their_own() -> None:
    for name in messages.message_names():
        message: Message = getattr(messages, name)
        by_name: dict[str, Struct] = {}
        pending: list[Struct] = [message]
        while pending:
            for field in pending.pop().fields:
                inner = getattr(field.type, "element", field.type)
                if isinstance(inner, Struct):
                    assert by_name.setdefault(inner.name, inner) is inner, (name, inner.name)
                    pending.append(inner)
