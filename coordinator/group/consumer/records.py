"""The records of a consumer group in `__consumer_offsets`: written, read and replayed.

The key's number says which kind it is: 3 the group with its epoch, 4 the group's topics (no longer
written; a tombstone deletes what an older Kafka left), 5 a member, 6 the target assignment's
epoch, 7 a member's target assignment, 8 what a member has, 16 a regular expression with the topics
it was found to match. Records may have been compacted: of each key the last is there, so what
comes first for a member may be what it owns, before what it said of itself. Source: Kafka's
`GroupCoordinatorRecordHelpers`, its message schemas as 4.3 writes them, and the `replay` methods
of `GroupMetadataManager`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from ....protocol import internal as schemas  # a schema is imported at its first use
from ....protocol.internal.versioned import CoordinatorRecord as DecodedRecord
from ....runtime.steps import Steps, sorted_in_steps
from ...log import CoordinatorRecord
from ..records import EncodedValue, coordinator_record, encode_value, read_of_kinds
from .group import NO_TARGET_EPOCH, ConsumerGroup
from .member import (
    LEAVE_EPOCH,
    NO_PARTITIONS,
    ClassicMemberMetadata,
    ClassicProtocol,
    ConsumerGroupMember,
    OwnedPartitions,
    ResolvedExpression,
    TargetAssignment,
)
from .states import MemberState


# -- the group ------------------------------------------------------------------------------
def group_epoch_record(group_id: str, epoch: int, metadata_hash: int) -> CoordinatorRecord:
    """Kind 3: the group's epoch, and the hash of its topics' metadata, a signed int64."""
    return coordinator_record(
        schemas.ConsumerGroupMetadataKey(group_id=group_id),
        schemas.ConsumerGroupMetadataValue(epoch=epoch, metadata_hash=metadata_hash),
    )


def group_epoch_tombstone(group_id: str) -> CoordinatorRecord:
    """Kind 3: the group is gone."""
    return coordinator_record(schemas.ConsumerGroupMetadataKey(group_id=group_id), None)


def topics_metadata_tombstone(group_id: str) -> CoordinatorRecord:
    """Kind 4: what Kafka 4.0 and before kept of the group's topics is gone."""
    return coordinator_record(schemas.ConsumerGroupPartitionMetadataKey(group_id=group_id), None)


def target_epoch_record(
    group_id: str, assignment_epoch: int, assignment_timestamp_ms: int
) -> CoordinatorRecord:
    """Kind 6: the group's epoch for which the target assignment was made, and when."""
    return coordinator_record(
        schemas.ConsumerGroupTargetAssignmentMetadataKey(group_id=group_id),
        schemas.ConsumerGroupTargetAssignmentMetadataValue(
            assignment_epoch=assignment_epoch, assignment_timestamp=assignment_timestamp_ms
        ),
    )


def target_epoch_tombstone(group_id: str) -> CoordinatorRecord:
    """Kind 6: the group has no target assignment any more."""
    return coordinator_record(
        schemas.ConsumerGroupTargetAssignmentMetadataKey(group_id=group_id), None
    )


def expression_record(
    group_id: str, expression: str, resolved: ResolvedExpression
) -> CoordinatorRecord:
    """Kind 16: the topics that a regular expression of some members matches."""
    return coordinator_record(
        schemas.ConsumerGroupRegularExpressionKey(group_id=group_id, regular_expression=expression),
        schemas.ConsumerGroupRegularExpressionValue(
            topics=sorted(resolved.topics),
            version=resolved.version,
            timestamp=resolved.timestamp_ms,
        ),
    )


def expression_tombstone(group_id: str, expression: str) -> CoordinatorRecord:
    """Kind 16: no member subscribes by that regular expression any more."""
    return coordinator_record(
        schemas.ConsumerGroupRegularExpressionKey(group_id=group_id, regular_expression=expression),
        None,
    )


# -- a member -------------------------------------------------------------------------------
def member_record(
    group_id: str, member: ConsumerGroupMember, encoded: bytes | None = None
) -> CoordinatorRecord:
    """Kind 5: what a member said of itself.

    Args:
        group_id: the group's id.
        member: the member.
        encoded: the value, if it was encoded before (`encode_member`).

    Raises:
        KafkaError: INVALID_REQUEST, something in it is longer than a record can hold.
    """
    return coordinator_record(
        schemas.ConsumerGroupMemberMetadataKey(group_id=group_id, member_id=member.member_id),
        _member_value(member, sorted(member.subscribed_topic_names))
        if encoded is None
        else encoded,
    )


def encode_member(member: ConsumerGroupMember) -> Steps[EncodedValue]:
    """The value of such a record, of a member that may subscribe to thousands of topics.

    Raises:
        KafkaError: INVALID_REQUEST, something in it is longer than a record can hold.
    """
    names = yield from sorted_in_steps(tuple(member.subscribed_topic_names))
    return (yield from encode_value(said_by(member), _member_value(member, names)))


def said_by(member: ConsumerGroupMember) -> ConsumerGroupMember:
    """What a member said of itself, and nothing else of it."""
    return ConsumerGroupMember(
        "",
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        rebalance_timeout_ms=member.rebalance_timeout_ms,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=member.subscribed_topic_names,
        subscribed_topic_regex=member.subscribed_topic_regex,
        server_assignor_name=member.server_assignor_name,
        classic_member_metadata=member.classic_member_metadata,
    )


def _member_value(
    member: ConsumerGroupMember, names: list[str]
) -> schemas.ConsumerGroupMemberMetadataValue:
    value_type = schemas.ConsumerGroupMemberMetadataValue
    classic = None
    if member.classic_member_metadata is not None:
        classic = value_type.ClassicMemberMetadata(
            session_timeout_ms=member.classic_member_metadata.session_timeout_ms,
            supported_protocols=[
                value_type.ClassicProtocol(name=protocol.name, metadata=protocol.metadata)
                for protocol in member.classic_member_metadata.supported_protocols
            ],
        )
    return value_type(
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=names,
        subscribed_topic_regex=member.subscribed_topic_regex,
        rebalance_timeout_ms=member.rebalance_timeout_ms,
        server_assignor=member.server_assignor_name,
        classic_member_metadata=classic,
    )


def member_tombstone(group_id: str, member_id: str) -> CoordinatorRecord:
    """Kind 5: the member is gone."""
    return coordinator_record(
        schemas.ConsumerGroupMemberMetadataKey(group_id=group_id, member_id=member_id), None
    )


def target_assignment_record(
    group_id: str, member_id: str, assignment: TargetAssignment
) -> CoordinatorRecord:
    """Kind 7: what a member shall have, by topic id."""
    value_type = schemas.ConsumerGroupTargetAssignmentMemberValue
    return coordinator_record(
        schemas.ConsumerGroupTargetAssignmentMemberKey(group_id=group_id, member_id=member_id),
        value_type(
            topic_partitions=[
                value_type.TopicPartition(topic_id=topic_id, partitions=sorted(partitions))
                for topic_id, partitions in sorted(assignment.items())
            ]
        ),
    )


def target_assignment_tombstone(group_id: str, member_id: str) -> CoordinatorRecord:
    """Kind 7: the member shall have nothing, as it is gone."""
    return coordinator_record(
        schemas.ConsumerGroupTargetAssignmentMemberKey(group_id=group_id, member_id=member_id),
        None,
    )


def current_assignment_record(group_id: str, member: ConsumerGroupMember) -> CoordinatorRecord:
    """Kind 8: what a member has, and what it has to give up."""
    return coordinator_record(
        schemas.ConsumerGroupCurrentMemberAssignmentKey(
            group_id=group_id, member_id=member.member_id
        ),
        schemas.ConsumerGroupCurrentMemberAssignmentValue(
            member_epoch=member.member_epoch,
            previous_member_epoch=member.previous_member_epoch,
            state=member.state,
            assigned_partitions=_with_epochs(member.assigned_partitions),
            partitions_pending_revocation=_with_epochs(member.partitions_pending_revocation),
        ),
    )


def current_assignment_tombstone(group_id: str, member_id: str) -> CoordinatorRecord:
    """Kind 8: the member has nothing, as it is gone."""
    return coordinator_record(
        schemas.ConsumerGroupCurrentMemberAssignmentKey(group_id=group_id, member_id=member_id),
        None,
    )


def member_tombstones(group_id: str, member_id: str) -> list[CoordinatorRecord]:
    """All that ends with a member, in Kafka's order: what it has, what it shall have, itself."""
    return [
        current_assignment_tombstone(group_id, member_id),
        target_assignment_tombstone(group_id, member_id),
        member_tombstone(group_id, member_id),
    ]


def group_tombstones(
    group_id: str, member_ids: Iterable[str], expressions: Iterable[str]
) -> list[CoordinatorRecord]:
    """All that ends with a group, in Kafka's order, its members first."""
    member_ids = tuple(member_ids)
    records = [current_assignment_tombstone(group_id, member_id) for member_id in member_ids]
    records += [target_assignment_tombstone(group_id, member_id) for member_id in member_ids]
    records.append(target_epoch_tombstone(group_id))
    records += [member_tombstone(group_id, member_id) for member_id in member_ids]
    records += [expression_tombstone(group_id, expression) for expression in expressions]
    records.append(topics_metadata_tombstone(group_id))
    records.append(group_epoch_tombstone(group_id))
    return records


def _with_epochs(
    partitions: OwnedPartitions,
) -> list[schemas.ConsumerGroupCurrentMemberAssignmentValue.TopicPartitions]:
    topic_partitions = schemas.ConsumerGroupCurrentMemberAssignmentValue.TopicPartitions
    result = []
    for topic_id, epochs in sorted(partitions.items()):
        numbers = sorted(epochs)
        result.append(
            topic_partitions(
                topic_id=topic_id,
                partitions=numbers,
                assignment_epochs=[epochs[number] for number in numbers],
            )
        )
    return result


# -- reading them back ----------------------------------------------------------------------

CONSUMER_GROUP_KINDS = frozenset((3, 4, 5, 6, 7, 8, 16))
"""The numbers that a consumer group's keys begin with."""


def read_record(key: bytes, value: bytes | None) -> DecodedRecord | None:
    """A record of a consumer group, whatever version of Kafka wrote it; None for other kinds.

    Args:
        key: the record's.
        value: the record's; None deletes what the key names.

    Raises:
        ProtocolError: key or value is cut short, of an unknown version, or nonsense.
    """
    return read_of_kinds(CONSUMER_GROUP_KINDS, key, value)


def ends_group(record: DecodedRecord) -> bool:
    """Whether nothing is left of the group after this record, but for its offsets."""
    return record.kind == "ConsumerGroupMetadata" and record.value is None


def replay(group: ConsumerGroup, record: DecodedRecord) -> None:
    """Let the group be what it is after this record; `ends_group` is for who keeps groups."""
    _REPLAYS[record.kind](group, record.key, record.value)


def _replay_group_epoch(
    group: ConsumerGroup,
    _key: schemas.ConsumerGroupMetadataKey,
    value: schemas.ConsumerGroupMetadataValue | None,
) -> None:
    group.epoch = 0 if value is None else value.epoch
    group.metadata_hash = 0 if value is None else value.metadata_hash


def _replay_topics_metadata(
    group: ConsumerGroup,
    _key: schemas.ConsumerGroupPartitionMetadataKey,
    value: schemas.ConsumerGroupPartitionMetadataValue | None,
) -> None:
    """Kafka 4.0 and before kept a group's topics so; it must be deleted with the group."""
    group.has_topics_record = value is not None


def _replay_member(
    group: ConsumerGroup,
    key: schemas.ConsumerGroupMemberMetadataKey,
    value: schemas.ConsumerGroupMemberMetadataValue | None,
) -> None:
    if value is None:
        group.remove_member(key.member_id)
        return
    classic = None
    if value.classic_member_metadata is not None:
        classic = ClassicMemberMetadata(
            value.classic_member_metadata.session_timeout_ms,
            tuple(
                ClassicProtocol(protocol.name, bytes(protocol.metadata))
                for protocol in value.classic_member_metadata.supported_protocols
            ),
        )
    group.put_member(
        _member(group, key.member_id)._replace(
            instance_id=value.instance_id,
            rack_id=value.rack_id,
            client_id=value.client_id,
            client_host=value.client_host,
            subscribed_topic_names=frozenset(value.subscribed_topic_names),
            subscribed_topic_regex=value.subscribed_topic_regex or "",
            rebalance_timeout_ms=value.rebalance_timeout_ms,
            server_assignor_name=value.server_assignor,
            classic_member_metadata=classic,
        )
    )


def _replay_target_epoch(
    group: ConsumerGroup,
    _key: schemas.ConsumerGroupTargetAssignmentMetadataKey,
    value: schemas.ConsumerGroupTargetAssignmentMetadataValue | None,
) -> None:
    group.target_epoch = NO_TARGET_EPOCH if value is None else value.assignment_epoch
    group.assignment_timestamp_ms = 0 if value is None else value.assignment_timestamp


def _replay_target_assignment(
    group: ConsumerGroup,
    key: schemas.ConsumerGroupTargetAssignmentMemberKey,
    value: schemas.ConsumerGroupTargetAssignmentMemberValue | None,
) -> None:
    if value is None:
        group.targets.pop(key.member_id, None)
    else:
        group.targets[key.member_id] = {
            entry.topic_id: frozenset(entry.partitions) for entry in value.topic_partitions
        }


def _replay_current_assignment(
    group: ConsumerGroup,
    key: schemas.ConsumerGroupCurrentMemberAssignmentKey,
    value: schemas.ConsumerGroupCurrentMemberAssignmentValue | None,
) -> None:
    if value is not None:
        group.put_member(
            _member(group, key.member_id)._replace(
                member_epoch=value.member_epoch,
                previous_member_epoch=value.previous_member_epoch,
                state=_member_state(value.state),
                assigned_partitions=_partition_epochs(
                    value.assigned_partitions, value.member_epoch
                ),
                partitions_pending_revocation=_partition_epochs(
                    value.partitions_pending_revocation, value.member_epoch
                ),
            )
        )
    elif key.member_id in group.members:
        group.put_member(
            group.members[key.member_id]._replace(
                member_epoch=LEAVE_EPOCH,
                previous_member_epoch=LEAVE_EPOCH,
                assigned_partitions=NO_PARTITIONS,
                partitions_pending_revocation=NO_PARTITIONS,
            )
        )


def _replay_expression(
    group: ConsumerGroup,
    key: schemas.ConsumerGroupRegularExpressionKey,
    value: schemas.ConsumerGroupRegularExpressionValue | None,
) -> None:
    if value is None:
        group.remove_expression(key.regular_expression)
    else:
        resolved = ResolvedExpression(frozenset(value.topics), value.version, value.timestamp)
        group.put_expression(key.regular_expression, resolved)


def _member(group: ConsumerGroup, member_id: str) -> ConsumerGroupMember:
    return group.members.get(member_id) or ConsumerGroupMember(member_id)


def _member_state(number: int) -> MemberState:
    try:
        return MemberState(number)
    except ValueError:
        return MemberState.UNKNOWN


def _partition_epochs(
    entries: list[schemas.ConsumerGroupCurrentMemberAssignmentValue.TopicPartitions],
    member_epoch: int,
) -> OwnedPartitions:
    """Kafka 4.2 and before kept no epochs: the member's own stands in for them, and for epochs
    that are not as many as the partitions."""
    result: dict[bytes, dict[int, int]] = {}
    for entry in entries:
        epochs = entry.assignment_epochs
        if epochs is None or len(epochs) != len(entry.partitions):
            epochs = [max(member_epoch, 0)] * len(entry.partitions)
        result[entry.topic_id] = dict(zip(entry.partitions, epochs, strict=True))
    return result


_REPLAYS: Mapping[str, Callable[[ConsumerGroup, Any, Any], None]] = {
    "ConsumerGroupMetadata": _replay_group_epoch,
    "ConsumerGroupPartitionMetadata": _replay_topics_metadata,
    "ConsumerGroupMemberMetadata": _replay_member,
    "ConsumerGroupTargetAssignmentMetadata": _replay_target_epoch,
    "ConsumerGroupTargetAssignmentMember": _replay_target_assignment,
    "ConsumerGroupCurrentMemberAssignment": _replay_current_assignment,
    "ConsumerGroupRegularExpression": _replay_expression,
}
