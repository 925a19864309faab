"""The records of `__transaction_state`, in Kafka's format.

The key is the transactional id (version 0), the value all that is kept of it; none is a
tombstone. Values are of version 0 while the cluster's `transaction.version` is 0, and of
the flexible version 1 from then on. `protocol/internal/transactions.py` declares both; what
is written for each transaction twice and more is packed by hand here, and a test compares.
Source: TransactionLogKey.json, TransactionLogValue.json, Kafka's TransactionLog.
"""

from __future__ import annotations

import struct

from ...common.errors import ErrorCode, KafkaError
from ...common.sentinels import NO_PRODUCER_EPOCH, NO_PRODUCER_ID
from ...common.topic_partition import TopicPartition
from ...protocol.codec.layout import STRING_BYTES_MAX
from ...protocol.errors import ProtocolError
from ...protocol.internal import find_message
from ...protocol.internal.versioned import TRANSACTION_STATE, decode_record, decode_versioned
from ...protocol.varints import encode_unsigned_varint
from ..log import CoordinatorRecord
from .states import TransactionState
from .transaction import NO_TOPIC_PARTITIONS, Transaction

KEY_VERSION = 0
STORED_STATES = range(TransactionState.EMPTY, TransactionState.COMPLETE_ABORT + 1)
"""Of the other two only the changes to them are known, never the states themselves."""

PREVIOUS_PRODUCER_ID_TAG = 0
NEXT_PRODUCER_ID_TAG = 1
CLIENT_VERSION_TAG = 2
_pack_key = struct.Struct(">hh").pack
_pack_head = struct.Struct(">hqhib").pack
_pack_times = struct.Struct(">qq").pack
_pack_int16 = struct.Struct(">h").pack
_pack_int32 = struct.Struct(">i").pack
_pack_int64_field = struct.Struct(">BBq").pack
_pack_int16_field = struct.Struct(">BBh").pack
_INT16_BYTES, _INT64_BYTES = 2, 8


def transaction_record(
    transactional_id: str, transaction: Transaction, transaction_version: int
) -> CoordinatorRecord:
    """What is kept of a transactional id.

    Args:
        transaction_version: what the cluster has finalized; decides the format.

    Raises:
        KafkaError: the id is longer than a key can hold.
    """
    value = transaction_value(transaction, is_flexible=transaction_version >= 1)
    return CoordinatorRecord(transaction_key(transactional_id), value)


def tombstone(transactional_id: str) -> CoordinatorRecord:
    """The end of a transactional id."""
    return CoordinatorRecord(transaction_key(transactional_id), None)


def transaction_key(transactional_id: str) -> bytes:
    """TransactionLogKey, version 0.

    Raises:
        KafkaError: the id is longer than a key can hold.
    """
    encoded = transactional_id.encode()
    if len(encoded) > STRING_BYTES_MAX:
        raise KafkaError(
            ErrorCode.INVALID_REQUEST,
            f"a transactional id of {len(encoded)} bytes is longer than the "
            f"{STRING_BYTES_MAX} that can be stored",
        )
    return _pack_key(KEY_VERSION, len(encoded)) + encoded


def transaction_value(transaction: Transaction, *, is_flexible: bool) -> bytes:
    """TransactionLogValue, version 0 or 1."""
    parts = [
        _pack_head(
            1 if is_flexible else 0,
            transaction.producer_id,
            transaction.producer_epoch,
            transaction.timeout_ms,
            transaction.state,
        )
    ]
    if transaction.state is TransactionState.EMPTY:
        parts.append(b"\x00" if is_flexible else b"\xff\xff\xff\xff")
    elif is_flexible:
        _add_flexible_partitions(parts, transaction.partitions)
    else:
        _add_partitions(parts, transaction.partitions)
    parts.append(_pack_times(transaction.last_update_ms, transaction.start_ms))
    if is_flexible:
        parts.append(_tagged_fields(transaction))
    return b"".join(parts)


def _by_topic(partitions: frozenset[TopicPartition]) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for topic, partition in partitions:
        found.setdefault(topic, []).append(partition)
    return found


def _add_partitions(parts: list[bytes], partitions: frozenset[TopicPartition]) -> None:
    topics = _by_topic(partitions)
    parts.append(_pack_int32(len(topics)))
    for topic, numbers in topics.items():
        name = topic.encode()
        parts += (_pack_int16(len(name)), name, _pack_int32(len(numbers)))
        parts.append(struct.pack(f">{len(numbers)}i", *numbers))


def _add_flexible_partitions(parts: list[bytes], partitions: frozenset[TopicPartition]) -> None:
    topics = _by_topic(partitions)
    parts.append(encode_unsigned_varint(len(topics) + 1))
    for topic, numbers in topics.items():
        name = topic.encode()
        parts += (
            encode_unsigned_varint(len(name) + 1),
            name,
            encode_unsigned_varint(len(numbers) + 1),
        )
        parts.append(struct.pack(f">{len(numbers)}ix", *numbers))  # x: no tagged fields


def _tagged_fields(transaction: Transaction) -> bytes:
    fields = []
    for tag, producer_id in (
        (PREVIOUS_PRODUCER_ID_TAG, transaction.previous_producer_id),
        (NEXT_PRODUCER_ID_TAG, transaction.next_producer_id),
    ):
        if producer_id != NO_PRODUCER_ID:
            fields.append(_pack_int64_field(tag, _INT64_BYTES, producer_id))
    if transaction.client_version:
        fields.append(
            _pack_int16_field(CLIENT_VERSION_TAG, _INT16_BYTES, transaction.client_version)
        )
    return bytes((len(fields),)) + b"".join(fields)


def read_key(key: bytes) -> str | None:
    """The transactional id; None for a kind of record that is not known.

    Raises:
        ProtocolError: the key is cut short, or not text.
    """
    record = decode_record(TRANSACTION_STATE, key, None)
    return None if record is None else record.key.transactional_id


def read_value(value: bytes) -> Transaction:
    """What a value says of a transactional id.

    Raises:
        ProtocolError: it is cut short, or of a version or state that is not known.
    """
    read, _ = decode_versioned(find_message("TransactionLogValue"), value)
    number = read.transaction_status & 0xFF
    if number not in STORED_STATES:
        raise ProtocolError(f"no transactional id is stored in a state of number {number}")
    state = TransactionState(number)
    partitions = NO_TOPIC_PARTITIONS
    if state is not TransactionState.EMPTY:
        partitions = frozenset(
            TopicPartition(entry.topic, partition)
            for entry in read.transaction_partitions or ()
            for partition in entry.partition_ids
        )
    return Transaction(
        producer_id=read.producer_id,
        timeout_ms=read.transaction_timeout_ms,
        last_update_ms=read.transaction_last_update_timestamp_ms,
        producer_epoch=read.producer_epoch,
        last_producer_epoch=NO_PRODUCER_EPOCH,
        state=state,
        partitions=partitions,
        start_ms=read.transaction_start_timestamp_ms,
        previous_producer_id=read.previous_producer_id,
        next_producer_id=read.next_producer_id,
        client_version=read.client_transaction_version,
    )
