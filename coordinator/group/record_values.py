"""Reading the records of `__consumer_offsets` back, whatever version of Kafka wrote them."""

from __future__ import annotations

from ...common.sentinels import NO_EPOCH, ZERO_UUID
from ..record_reader import RecordFormatError, RecordReader
from .offsets.offsets import NO_EXPIRY, OffsetAndMetadata
from .records import (
    GROUP_KEY_VERSION,
    OFFSET_KEY_VERSION,
    TOPIC_ID_TAG,
    GroupKey,
    OffsetKey,
    StoredGroup,
    StoredMember,
)

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
