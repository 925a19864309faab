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
from collections.abc import Collection, Mapping
from typing import NamedTuple

from ...common.errors import ErrorCode, KafkaError
from ...common.sentinels import ZERO_UUID
from ...protocol import internal as schemas  # a schema is imported at its first use
from ...protocol.codec.layout import STRING_BYTES_MAX
from ...protocol.codec.message import Message
from ...protocol.errors import EncodeError
from ...protocol.internal import find_message
from ...protocol.internal.versioned import (
    CONSUMER_OFFSETS,
    decode_record,
    decode_versioned,
    encode_record,
    encode_versioned,
    encode_versioned_in_steps,
)
from ...protocol.internal.versioned import CoordinatorRecord as DecodedRecord
from ...protocol.varints import encode_unsigned_varint
from ...runtime.steps import Steps
from ..log import CoordinatorRecord
from .classic.group import ClassicGroup
from .offsets import NO_EXPIRY, AppendedAt, OffsetAndMetadata

OFFSET_KEY_VERSION = 1
GROUP_KEY_VERSION = 2
OFFSET_VALUE_VERSION = 4
OFFSET_VALUE_VERSION_WITH_EXPIRY = 1
GROUP_VALUE_VERSION = 3
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
            encode_unsigned_varint(len(metadata) + 1),
            metadata,
            _pack_int64(position.commit_timestamp_ms),
            tags,
        )
    )


def group_key(group_id: str) -> bytes:
    """GroupMetadataKey, version 2."""
    return _pack_int16(GROUP_KEY_VERSION) + _string(group_id)


def group_value(stored: StoredGroup) -> bytes:
    """GroupMetadataValue, version 3.

    Raises:
        KafkaError: a string is longer than a record can hold.
    """
    value = schemas.GroupMetadataValue(
        protocol_type=stored.protocol_type,
        generation=stored.generation_id,
        protocol=stored.protocol_name,
        leader=stored.leader_id,
        current_state_timestamp=stored.state_timestamp_ms,
        members=[
            schemas.GroupMetadataValue.MemberMetadata(
                member_id=member.member_id,
                group_instance_id=member.group_instance_id,
                client_id=member.client_id,
                client_host=member.client_host,
                rebalance_timeout=member.rebalance_timeout_ms,
                session_timeout=member.session_timeout_ms,
                subscription=member.subscription,
                assignment=member.assignment,
            )
            for member in stored.members
        ],
    )
    try:
        return encode_versioned(value, GROUP_VALUE_VERSION)
    except EncodeError as error:
        raise KafkaError(ErrorCode.INVALID_REQUEST, str(error)) from None


NAMES_AT_ONCE = 500
"""So many are put in order and encoded in a fraction of a millisecond."""


class EncodedValue(NamedTuple):
    """A record's long value, encoded in steps before it is known whether it will be written.

    Attributes:
        of: what it says: it is written if that is what is to be written then.
        value: its bytes, with their version.
    """

    of: object
    value: bytes


def encode_value(of: object, value: Message) -> Steps[EncodedValue]:
    """Encode a value as work that yields after each element of an array.

    Args:
        of: what it says.
        value: its message.

    Raises:
        KafkaError: INVALID_REQUEST, something in it is longer than a record can hold.
    """
    try:
        return EncodedValue(of, (yield from encode_versioned_in_steps(value, 0)))
    except EncodeError as error:
        raise KafkaError(ErrorCode.INVALID_REQUEST, str(error)) from None


def coordinator_record(key: Message, value: Message | bytes | None) -> CoordinatorRecord:
    """A record of whatever kind; None deletes what the key names.

    Args:
        key: the key's message.
        value: the value's, or its bytes where they are encoded already.

    Raises:
        KafkaError: INVALID_REQUEST, something in it is longer than a record can hold.
    """
    try:
        return CoordinatorRecord(*encode_record(CONSUMER_OFFSETS, key, value))
    except EncodeError as error:
        raise KafkaError(ErrorCode.INVALID_REQUEST, str(error)) from None


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


# -- reading them back, whatever version of Kafka wrote them ----------------------------------


def read_of_kinds(kinds: Collection[int], key: bytes, value: bytes | None) -> DecodedRecord | None:
    """A record of some kinds, whatever version of Kafka wrote it; None for others.

    Args:
        kinds: the numbers that their keys begin with.
        key: the record's.
        value: the record's; None deletes what the key names.

    Raises:
        ProtocolError: key or value is cut short, of an unknown version, or nonsense.
    """
    if len(key) < 2 or int.from_bytes(key[:2], "big") not in kinds:
        return None
    return decode_record(CONSUMER_OFFSETS, key, value)


def read_key(key: bytes) -> OffsetKey | GroupKey | None:
    """What a record is about; None for records of other group types.

    Raises:
        ProtocolError: the key is cut short or says nonsense.
    """
    if int.from_bytes(key[:2], "big") > GROUP_KEY_VERSION:
        return None
    record = decode_record(CONSUMER_OFFSETS, key, None)
    assert record is not None
    read = record.key
    if record.kind == "GroupMetadata":
        return GroupKey(read.group)
    return OffsetKey(read.group, read.topic, read.partition)


def read_offset_value(value: bytes, record_offset: int) -> OffsetAndMetadata:
    """A committed offset.

    Raises:
        ProtocolError: the version is unknown, or the value is cut short.
    """
    read, _ = decode_versioned(find_message("OffsetCommitValue"), value)
    return OffsetAndMetadata(
        read.offset,
        read.leader_epoch,
        read.metadata,
        read.commit_timestamp,
        read.expire_timestamp,
        read.topic_id,
        AppendedAt(record_offset),
    )


def read_group_value(value: bytes) -> StoredGroup:
    """A classic group.

    Raises:
        ProtocolError: the version is unknown, or the value is cut short.
    """
    read, _ = decode_versioned(find_message("GroupMetadataValue"), value)
    members = tuple(
        StoredMember(
            member.member_id,
            member.group_instance_id,
            member.client_id,
            member.client_host,
            # Version 0 has no rebalance timeout.
            member.session_timeout if member.rebalance_timeout == -1 else member.rebalance_timeout,
            member.session_timeout,
            bytes(member.subscription),
            bytes(member.assignment),
        )
        for member in read.members
    )
    return StoredGroup(
        read.protocol_type,
        read.generation,
        read.protocol,
        read.leader,
        read.current_state_timestamp,
        members,
    )
