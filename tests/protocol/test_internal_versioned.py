"""Records of internal topics, and other messages that have their version before them."""

from __future__ import annotations

import struct
import subprocess
import sys

import pytest
from kafka.protocol.consumer.metadata import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
)

from odradek.coordinator.group import records
from odradek.coordinator.group import records as record_values
from odradek.coordinator.group.offsets import AppendedAt, OffsetAndMetadata
from odradek.protocol import EncodeError, ProtocolError, UnsupportedVersionError, internal
from odradek.protocol.internal import versioned
from odradek.protocol.records.control import ControlRecordType, parse_end_transaction_marker
from odradek.protocol.records.records import Record
from odradek.runtime.steps import run_at_once

KIND_TABLES = (versioned.CONSUMER_OFFSETS, versioned.TRANSACTION_STATE, versioned.SHARE_GROUP_STATE)
KEY_VALUE = ("Key", "Value")


def test_every_kind_of_record_has_the_schemas_of_its_key_and_value() -> None:
    named = [kind + side for kinds in KIND_TABLES for kind in kinds.values() for side in KEY_VALUE]
    of_modules = [name for name in internal.message_names() if name.endswith(KEY_VALUE)]
    assert sorted(named) == sorted(of_modules)


def test_a_committed_offset_is_what_the_group_coordinator_writes() -> None:
    position = OffsetAndMetadata(
        42, 7, "my metadata", 1_700_000_000_000, -1, bytes(range(16)), AppendedAt(0)
    )
    key = internal.OffsetCommitKey(group="g", topic="t", partition=3)
    value = internal.OffsetCommitValue(
        offset=42,
        leader_epoch=7,
        metadata="my metadata",
        commit_timestamp=1_700_000_000_000,
        topic_id=bytes(range(16)),
    )
    written = records.offset_record("g", "t", 3, position)
    assert versioned.encode_record(versioned.CONSUMER_OFFSETS, key, value, 4) == written
    encoded = run_at_once(versioned.encode_versioned_in_steps(value, 4))
    assert versioned.encode_record(versioned.CONSUMER_OFFSETS, key, encoded) == written
    read = versioned.decode_record(versioned.CONSUMER_OFFSETS, written.key, written.value)
    assert read == ("OffsetCommit", key, value, 4)


def test_an_offset_with_an_expiry_is_what_the_group_coordinator_writes() -> None:
    position = OffsetAndMetadata(42, -1, "", 1000, 2000, bytes(16), AppendedAt(0))
    value = internal.OffsetCommitValue(offset=42, commit_timestamp=1000, expire_timestamp=2000)
    assert versioned.encode_versioned(value, 1) == records.offset_value(position)


@pytest.mark.parametrize("version", range(5))
def test_the_group_coordinator_reads_a_group_of_any_version(version: int) -> None:
    member = internal.GroupMetadataValue.MemberMetadata(
        member_id="m",
        client_id="c",
        client_host="/127.0.0.1",
        session_timeout=10_000,
        rebalance_timeout=30_000,
        subscription=b"subscription",
        assignment=b"assignment",
    )
    value = internal.GroupMetadataValue(
        protocol_type="consumer", generation=5, protocol="range", leader="m", members=[member]
    )
    stored = record_values.read_group_value(versioned.encode_versioned(value, version))
    assert (stored.generation_id, stored.leader_id) == (5, "m")
    rebalance_timeout_ms = 30_000 if version > 0 else 10_000
    assert stored.members == (
        records.StoredMember(
            *("m", None, "c", "/127.0.0.1", rebalance_timeout_ms, 10_000),
            *(b"subscription", b"assignment"),
        ),
    )


def test_a_deleted_record_has_a_key_alone() -> None:
    key = internal.ConsumerGroupMemberMetadataKey(group_id="g", member_id="m")
    encoded, value = versioned.encode_record(versioned.CONSUMER_OFFSETS, key, None)
    assert encoded == b"\x00\x05\x00\x01g\x00\x01m"
    assert value is None
    read = versioned.decode_record(versioned.CONSUMER_OFFSETS, encoded, None)
    assert read == ("ConsumerGroupMemberMetadata", key, None, None)


def test_the_same_number_means_another_record_in_another_topic() -> None:
    key = internal.TransactionLogKey(transactional_id="tx")
    value = internal.TransactionLogValue(
        producer_id=9,
        producer_epoch=1,
        transaction_timeout_ms=60_000,
        transaction_status=1,
        transaction_partitions=[
            internal.TransactionLogValue.PartitionsSchema(topic="t", partition_ids=[0, 2])
        ],
    )
    encoded = versioned.encode_record(versioned.TRANSACTION_STATE, key, value, 1)
    assert encoded[0] == b"\x00\x00\x00\x02tx"
    assert versioned.decode_record(versioned.TRANSACTION_STATE, *encoded) == (
        *("TransactionLog", key, value, 1),
    )


def test_a_record_of_an_unknown_kind_is_passed_over() -> None:
    assert versioned.decode_record(versioned.CONSUMER_OFFSETS, b"\x00\x09\x00\x01g", b"") is None


def test_key_and_value_must_belong_together() -> None:
    key = internal.OffsetCommitKey(group="g", topic="t")
    with pytest.raises(ValueError, match="OffsetCommitKey has no GroupMetadataValue"):
        versioned.encode_record(versioned.CONSUMER_OFFSETS, key, internal.GroupMetadataValue())
    with pytest.raises(ValueError, match="no record of this topic has a OffsetCommitKey"):
        versioned.encode_record(versioned.TRANSACTION_STATE, key, None)


@pytest.mark.parametrize("encoded", [b"", b"\x00", b"\x00\x01", b"\x00\x01\x00\x05grou"])
def test_a_key_that_is_cut_off_is_refused(encoded: bytes) -> None:
    with pytest.raises(ProtocolError):
        versioned.decode_record(versioned.CONSUMER_OFFSETS, encoded, None)


@pytest.mark.parametrize("version", [-1, 5])
def test_a_value_of_a_version_that_there_is_not_is_refused(version: int) -> None:
    encoded = struct.pack(">h", version) + bytes(50)
    with pytest.raises(ProtocolError, match=f"OffsetCommitValue has versions 0-4, not {version}"):
        versioned.decode_versioned(internal.OffsetCommitValue, encoded)
    with pytest.raises(UnsupportedVersionError):
        versioned.encode_versioned(internal.OffsetCommitValue(), version)


def test_a_value_that_the_version_cannot_carry_is_refused() -> None:
    value = internal.TransactionLogValue(next_producer_id=5)
    with pytest.raises(EncodeError, match=r"TransactionLogValue\.next_producer_id is not in v0"):
        versioned.encode_versioned(value, 0)


@pytest.mark.parametrize("version", range(4))
def test_a_subscription_is_kafka_pythons_bytes(version: int) -> None:
    ours = internal.ConsumerProtocolSubscription(
        topics=["a", "b"],
        user_data=b"sticky",
        owned_partitions=[
            internal.ConsumerProtocolSubscription.TopicPartition(topic="a", partitions=[1])
        ],
        generation_id=4,
        rack_id="r",
    )
    owned = ConsumerProtocolSubscription.TopicPartition(topic="a", partitions=[1])
    theirs = ConsumerProtocolSubscription(
        version=version,
        topics=["a", "b"],
        user_data=b"sticky",
        owned_partitions=[owned],
        generation_id=4,
        rack_id="r",
    )
    assert versioned.encode_versioned(ours, version) == theirs.encode()


def test_what_a_newer_member_says_is_read_as_far_as_it_is_known() -> None:
    theirs = ConsumerProtocolAssignment(version=3, assigned_partitions=[], user_data=b"u")
    encoded = struct.pack(">h", 9) + theirs.encode()[2:] + b"more"
    message = internal.ConsumerProtocolAssignment
    assignment, version = versioned.decode_versioned(message, encoded, newer_as_newest=True)
    assert (assignment.user_data, version) == (b"u", 3)
    with pytest.raises(ProtocolError, match="not 9"):
        versioned.decode_versioned(message, encoded)


@pytest.mark.parametrize("kind", ControlRecordType)
def test_a_transaction_marker_is_what_logs_read(kind: ControlRecordType) -> None:
    key = versioned.encode_versioned(internal.ControlRecordTypeSchema(type=kind), 0)
    value = versioned.encode_versioned(internal.EndTxnMarker(coordinator_epoch=12), 0)
    assert parse_end_transaction_marker(Record(0, 0, key, value, [])) == (kind, 12)


def test_importing_the_package_imports_no_schema() -> None:
    code = (
        "import sys, odradek.protocol.internal as internal; "
        "prefix = 'odradek.protocol.internal.'; "
        "assert not [name for name in sys.modules if name.startswith(prefix)]; "
        "internal.EndTxnMarker; "
        "found = [name for name in sys.modules if name.startswith(prefix)]; "
        "assert found == [prefix + 'control_records'], found"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
