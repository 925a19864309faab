"""The records of consumer groups: read what Kafka 4.3.1 wrote, and write the same bytes."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.memory_log import MemoryLog

from odradek.coordinator.group.consumer import records
from odradek.coordinator.group.consumer.group import ConsumerGroup
from odradek.coordinator.group.consumer.member import (
    ClassicMemberMetadata,
    ClassicProtocol,
    ConsumerGroupMember,
    ResolvedExpression,
)
from odradek.coordinator.group.consumer.records import (
    ends_group,
    read_record,
    replay,
)
from odradek.coordinator.group.consumer.states import ConsumerGroupState, MemberState
from odradek.coordinator.group.consumer.topics import TopicMetadata, group_hash, topic_hash
from odradek.coordinator.log import CoordinatorRecord
from odradek.protocol.errors import ProtocolError
from odradek.protocol.internal.versioned import CONSUMER_OFFSETS
from odradek.protocol.internal.versioned import CoordinatorRecord as DecodedRecord

GROUP = "g2-recordt"
T1, T2 = b"\x01" * 16, b"\x02" * 16

MEMBER = ConsumerGroupMember(
    "m1",
    7,
    6,
    MemberState.UNREVOKED_PARTITIONS,
    "instance",
    "rack",
    45_000,
    "client",
    "/10.0.0.1",
    frozenset({"b", "a"}),
    "x.*",
    "range",
    {T2: {3: 7, 1: 5}, T1: {0: 2}},
    {T1: {9: 4}},
    ClassicMemberMetadata(6_000, (ClassicProtocol("range", b"\x00\x01"),)),
)


@pytest.fixture
def kafkas(data: Path) -> list[CoordinatorRecord]:
    """All records of the file, those of the classic group too."""
    lines = (data / "consumer-group-4.3.1.txt").read_text().splitlines()
    pairs = [line.split() for line in lines if not line.startswith("#")]
    return [
        CoordinatorRecord(bytes.fromhex(key), None if value == "-" else bytes.fromhex(value))
        for key, value in pairs
    ]


def read_all(kafkas: list[CoordinatorRecord]) -> list[DecodedRecord]:
    found = [read_record(key, value) for key, value in kafkas]
    return [record for record in found if record is not None]


def replayed(*found: DecodedRecord | None) -> ConsumerGroup:
    """A group after these records."""
    group = ConsumerGroup(GROUP, 0)
    for record in found:
        assert record is not None
        replay(group, record)
    return group


def written(found: DecodedRecord) -> CoordinatorRecord:
    """The record as we write it of a group that was made by it alone."""
    group, key, is_end = replayed(found), found.key, found.value is None
    group_id = key.group_id
    match found.kind.removeprefix("ConsumerGroup"):
        case "Metadata":
            if is_end:
                return records.group_epoch_tombstone(group_id)
            return records.group_epoch_record(group_id, group.epoch, group.metadata_hash)
        case "PartitionMetadata":
            assert is_end
            assert not group.has_topics_record
            return records.topics_metadata_tombstone(group_id)
        case "MemberMetadata":
            if is_end:
                return records.member_tombstone(group_id, key.member_id)
            return records.member_record(group_id, group.members[key.member_id])
        case "TargetAssignmentMetadata":
            if is_end:
                return records.target_epoch_tombstone(group_id)
            at_ms = group.assignment_timestamp_ms
            return records.target_epoch_record(group_id, group.target_epoch, at_ms)
        case "TargetAssignmentMember":
            if is_end:
                return records.target_assignment_tombstone(group_id, key.member_id)
            target = group.targets[key.member_id]
            return records.target_assignment_record(group_id, key.member_id, target)
        case "CurrentMemberAssignment":
            if is_end:
                return records.current_assignment_tombstone(group_id, key.member_id)
            return records.current_assignment_record(group_id, group.members[key.member_id])
        case _:
            if is_end:
                return records.expression_tombstone(group_id, key.regular_expression)
            resolved = group.expressions[key.regular_expression]
            return records.expression_record(group_id, key.regular_expression, resolved)


def test_what_kafka_wrote_is_written_again_byte_for_byte(kafkas: list[CoordinatorRecord]) -> None:
    read = [(record, read_record(record.key, record.value)) for record in kafkas]
    kinds = {found.kind for _, found in read if found is not None}
    assert kinds == {CONSUMER_OFFSETS[number] for number in records.CONSUMER_GROUP_KINDS}
    for record, found in read:
        if found is None:
            continue
        ours = written(found)
        if found.kind.endswith(("AssignmentMember", "MemberAssignment")) and record.value:
            # Kafka's partitions stand in a hash table's order, ours ascend.
            assert (ours.key, sorted(ours.value or b"")) == (record.key, sorted(record.value))
            again, group = replayed(read_record(*ours)), replayed(found)
            assert (again.members, again.targets) == (group.members, group.targets)
        else:
            assert ours == record


def test_the_metadata_hash_is_what_kafka_kept(kafkas: list[CoordinatorRecord]) -> None:
    groups = [replayed(found) for found in read_all(kafkas)]
    (topic_id,) = {
        topic_id for group in groups for target in group.targets.values() for topic_id in target
    }
    hashes = {group.metadata_hash for group in groups} - {0}
    topic = TopicMetadata("g2-abc", topic_id, ((),) * 6)
    assert hashes == {group_hash({"g2-abc": topic_hash(topic)})}


def test_a_regular_expression_is_read_with_its_topics(kafkas: list[CoordinatorRecord]) -> None:
    expressions = [
        resolved for found in read_all(kafkas) for resolved in replayed(found).expressions.values()
    ]
    assert [resolved.topics for resolved in expressions] == [{"g2-abc"}]


def test_replaying_goes_through_the_upgrade_and_ends_with_the_downgrade(
    kafkas: list[CoordinatorRecord],
) -> None:
    group = ConsumerGroup(GROUP, 0)
    clients: list[set[str]] = []
    ended = False
    for record in read_all(kafkas):
        replay(group, record)
        ended = ends_group(record)
        names = {member.client_id for member in group.members.values()}
        if not clients or names != clients[-1]:
            clients.append(names)
    assert ended
    assert {"classic", "new", "regex"} in clients
    assert clients[-1] == set()
    assert (group.targets, group.expressions, group.owners) == ({}, {}, {})


def test_a_member_is_replayed_as_it_was_written() -> None:
    group = ConsumerGroup(GROUP, 0)
    for record in (
        records.current_assignment_record(GROUP, MEMBER),
        records.member_record(GROUP, MEMBER),
        records.target_assignment_record(GROUP, "m1", {T1: frozenset({0, 9})}),
        records.target_epoch_record(GROUP, 8, 1234),
        records.group_epoch_record(GROUP, 9, -5),
        records.expression_record(GROUP, "x.*", ResolvedExpression(frozenset({"xy"}), 3, 4)),
    ):
        found = read_record(record.key, record.value)
        assert found is not None
        assert found.value is not None
        replay(group, found)
    assert group.members == {"m1": MEMBER}
    assert group.static_members == {"instance": "m1"}
    assert group.targets == {"m1": {T1: {0, 9}}}
    assert (group.epoch, group.metadata_hash) == (9, -5)
    assert (group.target_epoch, group.assignment_timestamp_ms) == (8, 1234)
    assert group.subscribed_topics == {"a", "b", "xy"}
    group.refresh_state(loading=True)
    assert group.state is ConsumerGroupState.ASSIGNING


def test_tombstones_take_back_all_that_records_said() -> None:
    group = ConsumerGroup(GROUP, 0)
    before = group.image()
    kept = [
        records.member_record(GROUP, MEMBER),
        records.current_assignment_record(GROUP, MEMBER),
        records.target_assignment_record(GROUP, "m1", {T1: frozenset({0})}),
        records.expression_record(GROUP, "x.*", ResolvedExpression(frozenset({"xy"}), 3, 4)),
    ]
    tombstones = records.group_tombstones(GROUP, ["m1"], ["x.*"])
    for record in [*kept, *tombstones]:
        found = read_record(record.key, record.value)
        assert found is not None
        assert (found.value is None) == (record.value is None)
        replay(group, found)
    after = group.image()
    assert after._replace(target_epoch=before.target_epoch, epoch=before.epoch) == before


def test_partitions_without_epochs_get_the_members_own() -> None:
    """Kafka 4.2 and before did not write epochs of partitions."""
    bare = MEMBER._replace(assigned_partitions={T1: {0: 0}}, partitions_pending_revocation={})
    record = records.current_assignment_record(GROUP, bare)
    assert record.value is not None
    tagged = b"\x01\x00\x05\x02\x00\x00\x00\x00"  # one tag: number 0, five bytes, one epoch
    assert tagged in record.value
    group = replayed(read_record(record.key, record.value.replace(tagged, b"\x00")))
    assert group.members["m1"].assigned_partitions == {T1: {0: 7}}


def test_a_state_of_a_newer_kafka_is_read_as_unknown() -> None:
    record = records.current_assignment_record(GROUP, MEMBER)
    assert record.value is not None
    state_at = 2 + 4 + 4
    changed = record.value[:state_at] + b"\x55" + record.value[state_at + 1 :]
    group = replayed(read_record(record.key, changed))
    assert group.members["m1"].state is MemberState.UNKNOWN


def test_records_of_other_groups_are_none_of_these() -> None:
    assert read_record(b"\x00\x01\x00\x01g\x00\x01t\x00\x00\x00\x00", None) is None
    assert read_record(b"\x00\x0a\x00\x01g", None) is None
    assert read_record(b"\x00", None) is None


@pytest.mark.parametrize("cut", [3, 10, 25])
def test_a_record_that_is_cut_short_is_distinguished(cut: int) -> None:
    record = records.member_record(GROUP, MEMBER)
    assert record.value is not None
    with pytest.raises(ProtocolError):
        read_record(record.key, record.value[:cut])
    with pytest.raises(ProtocolError):
        read_record(record.key, b"\x00\x07" + record.value[2:])


def test_a_log_that_kafka_wrote_loads_as_the_classic_group_it_ended_as(
    kafkas: list[CoordinatorRecord], make_bench, memory_log: MemoryLog
) -> None:
    bench = make_bench()
    partition = bench.coordinator.partition_for(GROUP)
    bench.log.put(partition, [tuple(record) for record in kafkas])
    bench.restart()
    assert [group.group_id for group in bench.coordinator.groups] == [GROUP]
    assert bench.coordinator.consumer_groups == []
    assert bench.state(GROUP) == "Empty"
