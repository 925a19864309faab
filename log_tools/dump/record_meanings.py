"""What records mean that are not users': control records, and those of internal topics."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...common.errors import KafkaError
from ...protocol.codec.types import Array, Struct, StructType, uuid
from ...protocol.errors import ProtocolError
from ...protocol.internal import find_message
from ...protocol.internal.versioned import (
    CONSUMER_OFFSETS,
    TRANSACTION_STATE,
    decode_record,
    decode_versioned,
)
from ...protocol.records.control import CONTROL_KEY
from ...protocol.records.records import Record
from ...runtime.rng import uuid_to_text

DECODERS: Mapping[str, Mapping[int, str]] = {
    "offsets": CONSUMER_OFFSETS,
    "transactions": TRANSACTION_STATE,
}
"""The kinds of records in an internal topic, by what the topic keeps."""

CONTROL_TYPES: Mapping[int, tuple[str, str]] = {
    0: ("ABORT", "EndTxnMarker"),
    1: ("COMMIT", "EndTxnMarker"),
    2: ("LEADER_CHANGE", "LeaderChangeMessage"),
    3: ("SNAPSHOT_HEADER", "SnapshotHeaderRecord"),
    4: ("SNAPSHOT_FOOTER", "SnapshotFooterRecord"),
    5: ("KRAFT_VERSION", "KRaftVersionRecord"),
    6: ("KRAFT_VOTERS", "VotersRecord"),
}
"""Of a control record: the number in its key, its name, and its value's schema (KIP-98,
KIP-595, KIP-630, KIP-853)."""

CONSUMER_PROTOCOL = "consumer"
MEMBER_FIELDS = {
    "subscription": "ConsumerProtocolSubscription",
    "assignment": "ConsumerProtocolAssignment",
}
"""Bytes in the metadata of a classic group of consumers, and their schemas."""

KEY_VERSION = 0
"""Of the schemas of keys, which have a number of their own in front for their kind."""

MARKER_TYPES = frozenset({0, 1})
"""Their values have the version in front; KRaft's have it as a field."""


def decode_control(record: Record) -> dict[str, Any]:
    """A control record's type and what its value says, or why it cannot be decoded."""
    if record.key is None or len(record.key) < CONTROL_KEY.size:
        return {"problem": "a control record without a whole key"}
    _, number = CONTROL_KEY.unpack_from(record.key)
    if number not in CONTROL_TYPES:
        return {"type": number}
    name, schema = CONTROL_TYPES[number]
    value = record.value or b""
    message = find_message(schema)
    # both layouts begin with the version, which the schema of a marker leaves out
    version = int.from_bytes(value[:2], "big", signed=True)
    try:
        version = min(max(version, message.versions[0]), message.versions[-1])
        start = 2 if number in MARKER_TYPES else 0
        decoded, _ = message.decoder(version)(value, start)
    except (ProtocolError, KafkaError) as error:
        return {"type": name, "problem": str(error)}
    return {"type": name, **_plain_struct(decoded, version)}


def decode_internal(decoder: str, record: Record) -> dict[str, Any]:
    """A record of an internal topic as plain values, or why they cannot be decoded.

    Args:
        decoder: one of `DECODERS`.
        record: any.
    """
    if record.key is None:
        return {"problem": "no key"}
    try:
        found = decode_record(DECODERS[decoder], record.key, record.value)
    except (ProtocolError, KafkaError) as error:
        return {"problem": str(error)}
    if found is None:
        return {"problem": "a kind of record that is not known"}
    value = None
    if found.value is not None and found.version is not None:
        value = _plain_struct(found.value, found.version)
    if value is not None and value.get("protocol_type") == CONSUMER_PROTOCOL:
        for member in value["members"]:
            _decode_member(member)
    return {
        "type": found.kind,
        "version": found.version,
        "key": _plain_struct(found.key, KEY_VERSION),
        "value": value,
    }


def _decode_member(member: dict[str, Any]) -> None:
    """The metadata of a classic group's member, if it is a consumer."""
    for name, schema in MEMBER_FIELDS.items():
        try:
            decoded, version = decode_versioned(
                find_message(schema), member[name] or b"", newer_as_newest=True
            )
        except ProtocolError:
            continue  # it stays bytes
        member[name] = _plain_struct(decoded, version)


def _plain_struct(value: Struct, version: int) -> dict[str, Any]:
    """The fields that the version has, by name."""
    return {
        field.name: _plain(field.type, getattr(value, field.name), version)
        for field in type(value).fields
        if version in field.versions
    }


def _plain(kind: Any, value: Any, version: int) -> Any:
    if value is None:
        return None
    if isinstance(kind, Array):
        return [_plain(kind.element, each, version) for each in value]
    if isinstance(kind, StructType):
        return _plain_struct(value, version)
    if kind is uuid:
        return uuid_to_text(bytes(value))
    return bytes(value) if isinstance(value, memoryview | bytearray) else value
