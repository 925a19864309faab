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
    ConsumerGroupRecord,
    GroupEpoch,
    Member,
    MemberAssignment,
    MemberTarget,
    RegularExpression,
    TargetEpoch,
    TopicsMetadata,
    ends_group,
    is_tombstone,
    read_record,
    replay,
)
from odradek.coordinator.group.consumer.states import ConsumerGroupState, MemberState
from odradek.coordinator.group.consumer.topics import Topic, group_hash, topic_hash
from odradek.coordinator.log import CoordinatorRecord
from odradek.coordinator.record_reader import RecordFormatError

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


def read_all(kafkas: list[CoordinatorRecord]) -> list[ConsumerGroupRecord]:
    found = [read_record(key, value) for key, value in kafkas]
    return [record for record in found if record is not None]


def written(record: ConsumerGroupRecord) -> CoordinatorRecord:
    """The record as we write it."""
    group_id = record.group_id
    match record:
        case GroupEpoch(epoch=None):
            return records.group_epoch_tombstone(group_id)
        case GroupEpoch(epoch=int() as epoch):
            return records.group_epoch_record(group_id, epoch, record.metadata_hash)
        case TopicsMetadata():
            assert not record.is_there
            return records.topics_metadata_tombstone(group_id)
        case Member(metadata=None):
            return records.member_tombstone(group_id, record.member_id)
        case Member():
            member = record.metadata.applied_to(ConsumerGroupMember(record.member_id))
            return records.member_record(group_id, member)
        case TargetEpoch(assignment_epoch=None):
            return records.target_epoch_tombstone(group_id)
        case TargetEpoch(assignment_epoch=int() as epoch):
            return records.target_epoch_record(group_id, epoch, record.assignment_timestamp_ms)
        case MemberTarget(partitions=None):
            return records.target_assignment_tombstone(group_id, record.member_id)
        case MemberTarget():
            return records.target_assignment_record(group_id, record.member_id, record.partitions)
        case MemberAssignment(current=None):
            return records.current_assignment_tombstone(group_id, record.member_id)
        case MemberAssignment():
            member = record.current.applied_to(ConsumerGroupMember(record.member_id))
            return records.current_assignment_record(group_id, member)
        case RegularExpression(resolved=None):
            return records.expression_tombstone(group_id, record.expression)
        case RegularExpression():
            return records.expression_record(group_id, record.expression, record.resolved)


def test_what_kafka_wrote_is_written_again_byte_for_byte(kafkas: list[CoordinatorRecord]) -> None:
    read = [(record, read_record(record.key, record.value)) for record in kafkas]
    kinds = {type(found) for _, found in read if found is not None}
    assert kinds == {
        GroupEpoch,
        TopicsMetadata,
        Member,
        TargetEpoch,
        MemberTarget,
        MemberAssignment,
        RegularExpression,
    }
    for record, found in read:
        if found is None:
            continue
        ours = written(found)
        if isinstance(found, MemberTarget | MemberAssignment) and record.value is not None:
            # Kafka's partitions stand in a hash table's order, ours ascend.
            assert (ours.key, sorted(ours.value or b"")) == (record.key, sorted(record.value))
            assert read_record(*ours) == found
        else:
            assert ours == record


def test_the_metadata_hash_is_what_kafka_kept(kafkas: list[CoordinatorRecord]) -> None:
    read = read_all(kafkas)
    (topic_id,) = {
        topic_id
        for record in read
        if isinstance(record, MemberTarget)
        for topic_id in record.partitions or ()
    }
    hashes = {record.metadata_hash for record in read if isinstance(record, GroupEpoch)} - {0}
    topic = Topic("g2-abc", topic_id, ((),) * 6)
    assert hashes == {group_hash({"g2-abc": topic_hash(topic)})}


def test_a_regular_expression_is_read_with_its_topics(kafkas: list[CoordinatorRecord]) -> None:
    resolved = [
        record.resolved
        for record in read_all(kafkas)
        if isinstance(record, RegularExpression) and record.resolved is not None
    ]
    assert [found.topics for found in resolved] == [{"g2-abc"}]


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
        assert not is_tombstone(found)
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
        assert is_tombstone(found) == (record.value is None)
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
    found = read_record(record.key, record.value.replace(tagged, b"\x00"))
    assert isinstance(found, MemberAssignment)
    assert found.current is not None
    assert found.current.assigned_partitions == {T1: {0: 7}}


def test_a_state_of_a_newer_kafka_is_read_as_unknown() -> None:
    record = records.current_assignment_record(GROUP, MEMBER)
    assert record.value is not None
    state_at = 2 + 4 + 4
    changed = record.value[:state_at] + b"\x55" + record.value[state_at + 1 :]
    found = read_record(record.key, changed)
    assert isinstance(found, MemberAssignment)
    assert found.current is not None
    assert found.current.state is MemberState.UNKNOWN


def test_records_of_other_groups_are_none_of_these() -> None:
    assert read_record(b"\x00\x01\x00\x01g\x00\x01t\x00\x00\x00\x00", None) is None
    assert read_record(b"\x00\x0a\x00\x01g", None) is None
    assert read_record(b"\x00", None) is None


@pytest.mark.parametrize("cut", [3, 10, 25])
def test_a_record_that_is_cut_short_is_told_apart(cut: int) -> None:
    record = records.member_record(GROUP, MEMBER)
    assert record.value is not None
    with pytest.raises(RecordFormatError):
        read_record(record.key, record.value[:cut])
    with pytest.raises(RecordFormatError):
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
