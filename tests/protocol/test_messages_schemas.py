"""The declared schemas against those of Kafka, field by field and version by version.

Kafka 4.3.1's are the reference; Kafka 3.9.1's for what 4.3.1 has no more: the messages of a
controller with ZooKeeper, and versions that only older clients and brokers speak.
"""

from __future__ import annotations

import base64
from collections.abc import Callable
from pathlib import Path
from typing import Any

import construct
import pytest

from odradek.protocol import ApiKey, internal, messages
from odradek.protocol.codec import wire
from odradek.protocol.codec.message import MessageType
from odradek.protocol.codec.types import Field, StructType
from odradek.protocol.codec.wire import ResolvedStruct

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


def declared_message(name: str) -> MessageType:
    """A request, a response, or a message without an API key."""
    found: MessageType = getattr(messages if name in messages.message_names() else internal, name)
    return found


def declared_struct(name: str) -> StructType:
    """The struct that the data file calls "FetchRequest.FetchTopic"."""
    message_name, _, struct_name = name.partition(".")
    message = declared_message(message_name)
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


@pytest.mark.parametrize(
    ("file", "count"),
    [
        ("kafka-4.3.1-schemas.tsv", 408),
        ("kafka-3.9.1-schemas.tsv", 84),
        ("kafka-4.3.1-internal-schemas.tsv", 78),
    ],
)
def test_every_field_of_every_version_is_kafkas(kafka_rows: Rows, file: str, count: int) -> None:
    rows = kafka_rows(file)
    assert len(rows) == count
    for name, versions, expected in rows:
        first, last = map(int, versions.split("-"))
        for version in range(first, last + 1):
            assert described(declared_message(name).version(version)) == expected, (name, version)


def test_no_version_is_declared_that_kafka_does_not_have(kafka_rows: Rows) -> None:
    kafkas: dict[str, set[int]] = {}
    for file in (
        "kafka-4.3.1-schemas.tsv",
        "kafka-3.9.1-schemas.tsv",
        "kafka-4.3.1-internal-schemas.tsv",
    ):
        for name, versions, _ in kafka_rows(file):
            first, last = map(int, versions.split("-"))
            kafkas.setdefault(name, set()).update(range(first, last + 1))
    assert kafkas.keys() == {*messages.message_names(), *internal.message_names()}
    for name, versions in kafkas.items():
        assert set(declared_message(name).versions) == versions, name


def kafkas_defaults(kafka_rows: Rows) -> dict[str, dict[str, tuple[str, str]]]:
    """StructType to field to default and "!", "?" or nothing; Kafka 3.9.1 adds what is gone."""
    structs: dict[str, dict[str, tuple[str, str]]] = {}
    for file in (
        "kafka-4.3.1-defaults.tsv",
        "kafka-4.3.1-internal-defaults.tsv",
        "kafka-3.9.1-defaults.tsv",
    ):
        for name, *fields in kafka_rows(file):
            known = structs.setdefault(name, {})
            for field, default in (row.split("=", 1) for row in fields):
                lost = default[-1:] if default[-1:] in ("!", "?") else ""
                known_default, known_lost = known.get(field, ("", ""))
                assert field not in known or known_default == default.rstrip("!?"), (name, field)
                assert not (known_lost and lost) or known_lost == lost, (name, field)
                known[field] = (default.rstrip("!?"), known_lost or lost)
    return structs


def test_defaults_and_what_may_be_lost_are_kafkas(kafka_rows: Rows) -> None:
    structs = kafkas_defaults(kafka_rows)
    declared = {
        f"{message.name}.{struct.name}" if struct is not message else message.name
        for message in map(declared_message, [*messages.message_names(), *internal.message_names()])
        for struct in (message, *message.structs())
    }
    assert structs.keys() == declared
    for name, fields in structs.items():
        struct = declared_struct(name)
        assert {field.name for field in struct.fields} == fields.keys(), name
        for field in struct.fields:
            default, lost = fields[field.name]
            assert not lost or field.ignorable is (lost == "!"), (name, field.name)
            # Kafka's handlers always set a message, to null mostly; ours may leave it out.
            if field.name.endswith("error_message") and default == "":
                default = "null"
            assert described_default(field) == default, (name, field.name)


def test_versions_are_those_that_kafka_advertises(kafka_rows: Rows) -> None:
    lines = (DATA / "kafka-4.3.1-api-versions.txt").read_text().splitlines()
    renamed = {"ListClientMetricsResources": "ListConfigResources"}
    for api_key, name, versions in (line.split() for line in lines if line):
        first, last = map(int, versions.split("-"))
        request = messages.request_message(int(api_key))
        assert request.name == renamed.get(name, name) + "Request"
        # Versions that are gone, or not stable yet, are declared and not advertised.
        assert request.versions[0] <= first
        assert last in (request.versions[-1], request.versions[-1] - 1)


def test_requests_and_responses_agree_on_key_versions_and_flexibility() -> None:
    for api_key in ApiKey:
        request = messages.request_message(api_key)
        response = messages.response_message(api_key)
        assert request.api_key == response.api_key == api_key
        assert request.versions == response.versions
        assert request.flexible == response.flexible


def test_structs_of_a_message_have_names_of_their_own() -> None:
    for name in (*messages.message_names(), *internal.message_names()):
        message = declared_message(name)
        by_name: dict[str, StructType] = {}
        pending: list[StructType] = [message]
        while pending:
            for field in pending.pop().fields:
                inner = getattr(field.type, "element", field.type)
                if isinstance(inner, StructType):
                    assert by_name.setdefault(inner.name, inner) is inner, (name, inner.name)
                    pending.append(inner)
