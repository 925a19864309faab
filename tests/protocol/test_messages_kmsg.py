"""Our codecs against messages that franz-go's kmsg wrote: the same values, the same bytes.

kmsg has definitions and a generator of its own. What it tells about a message are the values
of the leaves in the order of the wire, so names play no part.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any

import pytest
from construct import Construct
from support.kmsg_vectors import SEEDS, Vector, kept_vectors

from odradek.protocol import ApiKey, ProtocolError, messages
from odradek.protocol.codec.message import MessageType
from odradek.protocol.codec.types import UNKNOWN_TAGS
from odradek.protocol.codec.wire import TAGGED_FIELDS, Presence, Repeated, ResolvedStruct

SIDES = {"request": messages.request_message, "response": messages.response_message}

NOT_IN_KMSG = {("request", ApiKey.INIT_PRODUCER_ID, 6), ("response", ApiKey.INIT_PRODUCER_ID, 6)}
"""KIP-939's version, which no client uses yet."""

EARLY_TAGS = {
    "ProduceResponse": {9},  # Kafka has node_endpoints from 10
    "FetchRequest": {12, 13, 14, 15, 16, 17},  # replica_state 15, directory id 17, watermark 18
    "FetchResponse": {12, 13, 14, 15},  # node_endpoints 16
    "VoteResponse": {0},  # node_endpoints 1
    "FetchSnapshotRequest": {0},  # replica_directory_id 1
    "FetchSnapshotResponse": {0},  # node_endpoints 1
    "BrokerHeartbeatRequest": {0, 1},  # offline_log_dirs 1, cordoned_log_dirs 2
}
"""Versions at which kmsg writes tagged fields that Kafka has from a later one on, while Kafka
itself refuses to: they come out of our decoder as unknown tags, and go back as such."""

LACKING = {"UpdateMetadataRequest": {8}}
"""Versions of which kmsg does not know a tagged field (UpdateMetadataRequest.type)."""

WRONG = {
    "StopReplicaRequest": {4},  # has the controller's epoch before is_kraft_controller
    "ShareFetchResponse": {2},  # lets records be null, which Kafka 4.3.1 refuses
}
"""Versions at which Kafka 4.3.1's or 3.9.1's own classes say otherwise than kmsg does. Those
are the reference (see `tests/interop/test_java_schemas.py`), so kmsg's vectors are put aside."""


def message_of(vector: Vector) -> MessageType:
    return SIDES[vector.side](vector.api_key)


def leaves(value: Any, wire_type: Construct) -> Iterator[str]:
    """The tokens of a value, in the notation of `tests/interop/go_vectors/printer.go`."""
    if isinstance(wire_type, ResolvedStruct):
        yield from struct_leaves(value, wire_type)
    elif value is None:
        yield "-"
    elif isinstance(wire_type, Presence):
        yield "+"
        yield from leaves(value, wire_type.content)
    elif isinstance(wire_type, Repeated):
        yield f"[{len(value)}"
        for element in value:
            yield from leaves(element, wire_type.element)
    elif isinstance(value, bool):
        yield "true" if value else "false"
    elif isinstance(value, float):
        yield f"f{struct.unpack('>Q', struct.pack('>d', value))[0]:x}"
    elif isinstance(value, str):
        yield f"s{value.encode().hex()}"
    elif isinstance(value, bytes | memoryview):
        yield f"b{value.hex()}"
    else:
        yield str(value)


def struct_leaves(value: Any, resolved: ResolvedStruct) -> Iterator[str]:
    for subcon in resolved.subcons:
        if subcon.name != TAGGED_FIELDS:
            yield from leaves(getattr(value, subcon.name), subcon.subcon)
            continue
        for _, field in sorted(subcon.subcon.fields.items()):
            yield from leaves(getattr(value, field.name), field.subcon)
        for tag, content in sorted((getattr(value, UNKNOWN_TAGS) or {}).items()):
            yield f"t{tag}"
            yield f"b{content.hex()}"


@pytest.fixture(scope="module")
def vectors() -> list[Vector]:
    return list(kept_vectors())


def listed(vector: Vector, table: dict[str, set[int]]) -> bool:
    return vector.version in table.get(message_of(vector).name, ())


def test_values_and_bytes_are_those_of_kmsg(vectors: list[Vector]) -> None:
    for vector in vectors:
        if listed(vector, WRONG):
            continue
        message = message_of(vector)
        name = f"{message.name} v{vector.version}, seed {vector.seed}"
        value, position = message.decoder(vector.version)(vector.body, 0)
        assert position == len(vector.body), name
        assert b"".join(message.encoder(vector.version)(value)) == vector.body, name
        if not listed(vector, EARLY_TAGS) and not listed(vector, LACKING):
            assert list(leaves(value, message.version(vector.version))) == vector.tokens, name


def test_kmsgs_departures_from_kafka_are_still_there(vectors: list[Vector]) -> None:
    """A newer kmsg may have mended them; then the tables above are too long."""
    departing: dict[str, set[int]] = {}
    for vector in vectors:
        message = message_of(vector)
        try:
            value, _ = message.decoder(vector.version)(vector.body, 0)
            tokens = list(leaves(value, message.version(vector.version)))
        except ProtocolError:
            tokens = []
        if tokens != vector.tokens:
            departing.setdefault(message.name, set()).add(vector.version)
    assert departing == {**EARLY_TAGS, **LACKING, **WRONG}


def test_the_vectors_cover_every_message_and_version_that_kmsg_has(vectors: list[Vector]) -> None:
    counts: dict[tuple[str, int, int], int] = {}
    for vector in vectors:
        place = vector.side, vector.api_key, vector.version
        counts[place] = counts.get(place, 0) + 1
    assert set(counts.values()) == {SEEDS}
    ours = {
        (side, key, version)
        for key in ApiKey
        for side, find in SIDES.items()
        for version in find(key).versions
    }
    assert ours - counts.keys() == NOT_IN_KMSG
    assert counts.keys() <= ours
