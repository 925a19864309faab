"""Messages with their version before them, and the records of coordinators made of such.

A value begins with an int16, its version. A key begins with one too; there it says what
kind of record it is, and so which schemas belong to key and value. Source: Kafka's
`MessageUtil.toVersionPrefixedByteBuffer`, `CoordinatorRecordType` of each coordinator.
"""

from __future__ import annotations

import struct
from collections.abc import Generator, Mapping
from typing import Any, NamedTuple

from ..codec.message import Message, MessageType
from ..codec.versions import format_versions
from ..errors import ProtocolError
from ..varints import Buffer
from . import find_message

CONSUMER_OFFSETS: Mapping[int, str] = {
    0: "LegacyOffsetCommit",
    1: "OffsetCommit",
    2: "GroupMetadata",
    3: "ConsumerGroupMetadata",
    4: "ConsumerGroupPartitionMetadata",
    5: "ConsumerGroupMemberMetadata",
    6: "ConsumerGroupTargetAssignmentMetadata",
    7: "ConsumerGroupTargetAssignmentMember",
    8: "ConsumerGroupCurrentMemberAssignment",
    10: "ShareGroupMemberMetadata",
    11: "ShareGroupMetadata",
    12: "ShareGroupTargetAssignmentMetadata",
    13: "ShareGroupTargetAssignmentMember",
    14: "ShareGroupCurrentMemberAssignment",
    15: "ShareGroupStatePartitionMetadata",
    16: "ConsumerGroupRegularExpression",
    17: "StreamsGroupMetadata",
    19: "StreamsGroupMemberMetadata",
    20: "StreamsGroupTargetAssignmentMetadata",
    21: "StreamsGroupTargetAssignmentMember",
    22: "StreamsGroupCurrentMemberAssignment",
    23: "StreamsGroupTopology",
}
"""The kinds of records in `__consumer_offsets`, by the number that begins the key."""

TRANSACTION_STATE: Mapping[int, str] = {0: "TransactionLog"}
"""The kind of record in `__transaction_state`."""

SHARE_GROUP_STATE: Mapping[int, str] = {0: "ShareSnapshot", 1: "ShareUpdate"}
"""The kinds of records in `__share_group_state`."""

_version = struct.Struct(">h")


class CoordinatorRecord(NamedTuple):
    """One record of an internal topic.

    Attributes:
        kind: its name, such as "OffsetCommit".
        key: the key's message.
        value: the value's message; None deletes what the key names.
        version: the value's version; None where there is no value.
    """

    kind: str
    key: Any
    value: Any
    version: int | None


def encode_versioned(value: Message, version: int) -> bytes:
    """A message's bytes with its version before them.

    Raises:
        EncodeError: the version cannot carry what the message holds.
        UnsupportedVersionError: the message has no such version.
    """
    return b"".join((_version.pack(version), *type(value).encoder(version)(value)))


def encode_versioned_in_steps(value: Message, version: int) -> Generator[None, None, bytes]:
    """The same, as work that yields after each element of an array."""
    buffers = yield from type(value).stepwise_encoder(version)(value)
    return b"".join((_version.pack(version), *buffers))


def decode_versioned(
    message: MessageType, data: Buffer, *, newer_as_newest: bool = False
) -> tuple[Any, int]:
    """A message, and its version, which goes before it.

    Args:
        message: the schema.
        data: all of the bytes; what trails the message is ignored, as Kafka does.
        newer_as_newest: read versions that came later as the newest one known here, as
            members of a group must (`ConsumerProtocol`).

    Raises:
        ProtocolError: the bytes are no such message, or of a version that it has not.
    """
    version = _number_before(data)
    if newer_as_newest:
        version = min(version, message.versions[-1])
    if version not in message.versions:
        versions = format_versions(message.versions)
        raise ProtocolError(f"{message.name} has versions {versions}, not {version}")
    return message.decoder(version)(data, _version.size)[0], version


def encode_record(
    kinds: Mapping[int, str], key: Message, value: Message | bytes | None, version: int = 0
) -> tuple[bytes, bytes | None]:
    """Key and value of a record.

    Args:
        kinds: of the topic's records, such as `CONSUMER_OFFSETS`.
        key: the key's message.
        value: the value's, or None to delete what the key names; its bytes, with the version,
            where they are encoded already.
        version: the value's.

    Raises:
        EncodeError: the version cannot carry what the value holds.
        UnsupportedVersionError: the value has no such version.
        ValueError: the topic has no such record.
    """
    numbers = {kind + "Key": number for number, kind in kinds.items()}
    number = numbers.get(type(key).name)
    if number is None:
        raise ValueError(f"no record of this topic has a {type(key).name}")
    kind = kinds[number]
    encoded_key = b"".join((_version.pack(number), *type(key).encoder(0)(key)))
    if value is None or isinstance(value, bytes):
        return encoded_key, value
    if type(value).name != kind + "Value":
        raise ValueError(f"a {type(key).name} has no {type(value).name}")
    return encoded_key, encode_versioned(value, version)


def decode_record(
    kinds: Mapping[int, str], key: Buffer, value: Buffer | None
) -> CoordinatorRecord | None:
    """The record with this key and value; None if it is of a kind unknown here.

    Args:
        kinds: of the topic's records, such as `CONSUMER_OFFSETS`.
        key: the record's.
        value: the record's, or None.

    Raises:
        ProtocolError: the bytes are no such record, or of a version that it has not.
    """
    kind = kinds.get(_number_before(key))
    if kind is None:
        return None
    decoded_key = find_message(kind + "Key").decoder(0)(key, _version.size)[0]
    if value is None:
        return CoordinatorRecord(kind, decoded_key, None, None)
    decoded_value, version = decode_versioned(find_message(kind + "Value"), value)
    return CoordinatorRecord(kind, decoded_key, decoded_value, version)


def _number_before(data: Buffer) -> int:
    if len(data) < _version.size:
        raise ProtocolError(f"{len(data)} bytes have no version before them")
    number: int = _version.unpack_from(data)[0]
    return number
