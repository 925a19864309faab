"""Replaying a consumer group's records: the group becomes what they say, one by one.

Records may have been compacted: of each key the last is there, so what comes first for a
member may be what it owns, before what it said of itself. Source: the `replay` methods of
Kafka's `GroupMetadataManager`.
"""

from __future__ import annotations

from ..group import NO_TARGET_EPOCH, ConsumerGroup
from ..member import LEAVE_EPOCH, NO_PARTITIONS, ConsumerGroupMember
from .record_values import (
    ConsumerGroupRecord,
    GroupEpoch,
    Member,
    MemberAssignment,
    RegularExpression,
    TargetAssignment,
    TargetEpoch,
    TopicsMetadata,
)


def ends_group(record: ConsumerGroupRecord) -> bool:
    """Whether nothing is left of the group after this record, but for its offsets."""
    return isinstance(record, GroupEpoch) and record.epoch is None


def is_tombstone(record: ConsumerGroupRecord) -> bool:
    """Whether the record deletes something; of a group that is not known it says nothing."""
    match record:
        case GroupEpoch():
            return record.epoch is None
        case TopicsMetadata():
            return not record.is_there
        case Member():
            return record.metadata is None
        case TargetEpoch():
            return record.assignment_epoch is None
        case TargetAssignment():
            return record.partitions is None
        case MemberAssignment():
            return record.current is None
        case RegularExpression():
            return record.resolved is None


def replay(group: ConsumerGroup, record: ConsumerGroupRecord) -> None:
    """Let the group be what it is after this record; `ends_group` is for who keeps groups."""
    match record:
        case GroupEpoch():
            group.epoch = record.epoch or 0
            group.metadata_hash = record.metadata_hash
        case TopicsMetadata():
            group.has_topics_record = record.is_there
        case Member():
            _replay_member(group, record)
        case TargetEpoch():
            _replay_target_epoch(group, record)
        case TargetAssignment():
            if record.partitions is None:
                group.targets.pop(record.member_id, None)
            else:
                group.targets[record.member_id] = record.partitions
        case MemberAssignment():
            _replay_assignment(group, record)
        case RegularExpression():
            if record.resolved is None:
                group.remove_expression(record.expression)
            else:
                group.put_expression(record.expression, record.resolved)


def _replay_member(group: ConsumerGroup, record: Member) -> None:
    if record.metadata is None:
        group.remove_member(record.member_id)
        return
    member = group.members.get(record.member_id) or ConsumerGroupMember(record.member_id)
    group.put_member(record.metadata.applied_to(member))


def _replay_assignment(group: ConsumerGroup, record: MemberAssignment) -> None:
    member = group.members.get(record.member_id)
    if record.current is not None:
        member = member or ConsumerGroupMember(record.member_id)
        group.put_member(record.current.applied_to(member))
    elif member is not None:
        group.put_member(
            member._replace(
                member_epoch=LEAVE_EPOCH,
                previous_member_epoch=LEAVE_EPOCH,
                assigned_partitions=NO_PARTITIONS,
                partitions_pending_revocation=NO_PARTITIONS,
            )
        )


def _replay_target_epoch(group: ConsumerGroup, record: TargetEpoch) -> None:
    epoch = record.assignment_epoch
    group.target_epoch = NO_TARGET_EPOCH if epoch is None else epoch
    group.assignment_timestamp_ms = record.assignment_timestamp_ms
