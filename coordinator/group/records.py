"""The records of `__consumer_offsets`, in Kafka's format: one key and one value for each kind.

Keys and values begin with an int16 version. The key's says which kind of record it is:
0 and 1 a committed offset, 2 a classic group; higher ones belong to other group types and
are passed over. A value of None is a tombstone. Written are the versions that Kafka 4.3
writes: OffsetCommitValue 4 (1 where the commit has an expiry of its own),
GroupMetadataValue 3; all versions are read. Source: OffsetCommitKey/Value.json,
GroupMetadataKey/Value.json.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import NamedTuple

from ...common.errors import ErrorCode, KafkaError
from ...common.sentinels import NO_EPOCH, ZERO_UUID
from ...protocol.codec.wire import STRING_BYTES_MAX
from ..log import CoordinatorRecord
from ..record_reader import RecordFormatError, RecordReader
from .classic.group import ClassicGroup
from .offsets import NO_EXPIRY, OffsetAndMetadata

OFFSET_KEY_VERSION = 1
GROUP_KEY_VERSION = 2
OFFSET_VALUE_VERSION = 4
OFFSET_VALUE_VERSION_WITH_EXPIRY = 1
GROUP_VALUE_VERSION = 3
TOPIC_ID_TAG = 0
_pack_int16 = struct.Struct(">h").pack
_pack_int32 = struct.Struct(">i").pack
_pack_int64 = struct.Struct(">q").pack
_pack_offset = struct.Struct(">hqi").pack


class OffsetKey(NamedTuple):
    """The key of a committed offset."""

    group_id: str
    topic: str
    partition: int


class GroupKey(NamedTuple):
    """The key of a classic group."""

    group_id: str


class StoredMember(NamedTuple):
    """A member as a group's record keeps it."""

    member_id: str
    group_instance_id: str | None
    client_id: str
    client_host: str
    rebalance_timeout_ms: int
    session_timeout_ms: int
    subscription: bytes
    assignment: bytes


class StoredGroup(NamedTuple):
    """A group as its record keeps it: a generation with its assignment, or an empty group."""

    protocol_type: str
    generation_id: int
    protocol_name: str | None
    leader_id: str | None
    state_timestamp_ms: int
    members: tuple[StoredMember, ...]


def offset_record(
    group_id: str, topic: str, partition: int, position: OffsetAndMetadata
) -> CoordinatorRecord:
    """A committed offset.

    Raises:
        KafkaError: a string is longer than a record can hold.
    """
    return CoordinatorRecord(offset_key(group_id, topic, partition), offset_value(position))


def offset_tombstone(group_id: str, topic: str, partition: int) -> CoordinatorRecord:
    """The end of a committed offset."""
    return CoordinatorRecord(offset_key(group_id, topic, partition), None)


def group_tombstone(group_id: str) -> CoordinatorRecord:
    """The end of a group."""
    return CoordinatorRecord(group_key(group_id), None)


def group_record(group: ClassicGroup, assignments: Mapping[str, bytes]) -> CoordinatorRecord:
    """A group as it stands, with the assignments that its members are about to get.

    Raises:
        KafkaError: a string is longer than a record can hold.
    """
    protocol_name = group.protocol_name
    members = tuple(
        StoredMember(
            member.member_id,
            member.group_instance_id,
            member.client_id,
            member.client_host,
            member.rebalance_timeout_ms,
            member.session_timeout_ms,
            member.metadata(protocol_name) if protocol_name is not None else b"",
            assignments.get(member.member_id, b""),
        )
        for member in group.members.values()
    )
    stored = StoredGroup(
        group.protocol_type or "",
        group.generation_id,
        protocol_name,
        group.leader_id,
        group.state_timestamp_ms,
        members,
    )
    return CoordinatorRecord(group_key(group.group_id), group_value(stored))


def offset_key(group_id: str, topic: str, partition: int) -> bytes:
    """OffsetCommitKey, version 1."""
    return b"".join(
        (
            _pack_int16(OFFSET_KEY_VERSION),
            _string(group_id),
            _string(topic),
            _pack_int32(partition),
        )
    )


def offset_value(position: OffsetAndMetadata) -> bytes:
    """OffsetCommitValue: version 1 where the commit brought its own expiry, else version 4."""
    if position.expire_timestamp_ms != NO_EXPIRY:
        return b"".join(
            (
                _pack_int16(OFFSET_VALUE_VERSION_WITH_EXPIRY),
                _pack_int64(position.offset),
                _string(position.metadata),
                _pack_int64(position.commit_timestamp_ms),
                _pack_int64(position.expire_timestamp_ms),
            )
        )
    metadata = _encoded(position.metadata)
    tags = b"\x00"
    if position.topic_id != ZERO_UUID:
        tags = b"\x01\x00\x10" + position.topic_id
    return b"".join(
        (
            _pack_offset(OFFSET_VALUE_VERSION, position.offset, position.leader_epoch),
            _unsigned_varint(len(metadata) + 1),
            metadata,
            _pack_int64(position.commit_timestamp_ms),
            tags,
        )
    )


def group_key(group_id: str) -> bytes:
    """GroupMetadataKey, version 2."""
    return _pack_int16(GROUP_KEY_VERSION) + _string(group_id)


def group_value(stored: StoredGroup) -> bytes:
    """GroupMetadataValue, version 3."""
    parts = [
        _pack_int16(GROUP_VALUE_VERSION),
        _string(stored.protocol_type),
        _pack_int32(stored.generation_id),
        _nullable_string(stored.protocol_name),
        _nullable_string(stored.leader_id),
        _pack_int64(stored.state_timestamp_ms),
        _pack_int32(len(stored.members)),
    ]
    for member in stored.members:
        parts += (
            _string(member.member_id),
            _nullable_string(member.group_instance_id),
            _string(member.client_id),
            _string(member.client_host),
            _pack_int32(member.rebalance_timeout_ms),
            _pack_int32(member.session_timeout_ms),
            _pack_int32(len(member.subscription)),
            member.subscription,
            _pack_int32(len(member.assignment)),
            member.assignment,
        )
    return b"".join(parts)


def fits_string(text: str) -> bool:
    """Whether a record can hold the string."""
    # A character takes four bytes at most, so most strings need no encoding to tell.
    return len(text) * 4 <= STRING_BYTES_MAX or len(text.encode()) <= STRING_BYTES_MAX


def _encoded(text: str) -> bytes:
    encoded = text.encode()
    if len(encoded) > STRING_BYTES_MAX:
        raise KafkaError(
            ErrorCode.INVALID_REQUEST,
            f"a string of {len(encoded)} bytes is longer than the {STRING_BYTES_MAX} "
            "that can be stored",
        )
    return encoded


def _string(text: str) -> bytes:
    encoded = _encoded(text)
    return _pack_int16(len(encoded)) + encoded


def _nullable_string(text: str | None) -> bytes:
    return b"\xff\xff" if text is None else _string(text)


def _unsigned_varint(number: int) -> bytes:
    if number < 0x80:
        return bytes((number,))
    encoded = bytearray()
    while number >= 0x80:
        encoded.append(number & 0x7F | 0x80)
        number >>= 7
    encoded.append(number)
    return bytes(encoded)


OFFSET_VALUE_VERSIONS = range(5)
GROUP_VALUE_VERSIONS = range(5)


def read_key(key: bytes) -> OffsetKey | GroupKey | None:
    """What a record is about; None for records of other group types.

    Raises:
        RecordFormatError: the key is cut short or says nonsense.
    """
    reader = RecordReader(key)
    version = reader.int16()
    if version in (0, OFFSET_KEY_VERSION):
        return OffsetKey(reader.string(), reader.string(), reader.int32())
    if version == GROUP_KEY_VERSION:
        return GroupKey(reader.string())
    return None


def read_offset_value(value: bytes, record_offset: int) -> OffsetAndMetadata:
    """A committed offset, of any version that Kafka ever wrote.

    Raises:
        RecordFormatError: the version is unknown, or the value is cut short.
    """
    reader = RecordReader(value)
    version = reader.version(OFFSET_VALUE_VERSIONS)
    reader.flexible = version >= 4
    offset = reader.int64()
    leader_epoch = reader.int32() if version >= 3 else NO_EPOCH
    metadata = reader.string()
    commit_timestamp_ms = reader.int64()
    expire_timestamp_ms = reader.int64() if version == 1 else NO_EXPIRY
    topic_id = ZERO_UUID
    if reader.flexible:
        topic_id = reader.tagged_fields().get(TOPIC_ID_TAG, ZERO_UUID)
        if len(topic_id) != len(ZERO_UUID):
            raise RecordFormatError(f"a topic id of {len(topic_id)} bytes")
    return OffsetAndMetadata(
        offset,
        leader_epoch,
        metadata,
        commit_timestamp_ms,
        expire_timestamp_ms,
        topic_id,
        record_offset,
    )


def read_group_value(value: bytes) -> StoredGroup:
    """A classic group, of any version that Kafka ever wrote.

    Raises:
        RecordFormatError: the version is unknown, or the value is cut short.
    """
    reader = RecordReader(value)
    version = reader.version(GROUP_VALUE_VERSIONS)
    reader.flexible = version >= 4
    protocol_type = reader.string()
    generation_id = reader.int32()
    protocol_name = reader.nullable_string()
    leader_id = reader.nullable_string()
    state_timestamp_ms = reader.int64() if version >= 2 else -1
    members = tuple(_read_member(reader, version) for _ in range(reader.array_length()))
    if reader.flexible:
        reader.tagged_fields()
    return StoredGroup(
        protocol_type, generation_id, protocol_name, leader_id, state_timestamp_ms, members
    )


def _read_member(reader: RecordReader, version: int) -> StoredMember:
    member_id = reader.string()
    group_instance_id = reader.nullable_string() if version >= 3 else None
    client_id = reader.string()
    client_host = reader.string()
    rebalance_timeout_ms = reader.int32() if version >= 1 else -1
    session_timeout_ms = reader.int32()
    subscription = reader.sized_bytes()
    assignment = reader.sized_bytes()
    if reader.flexible:
        reader.tagged_fields()
    if rebalance_timeout_ms == -1:
        rebalance_timeout_ms = session_timeout_ms
    return StoredMember(
        member_id,
        group_instance_id,
        client_id,
        client_host,
        rebalance_timeout_ms,
        session_timeout_ms,
        subscription,
        assignment,
    )
