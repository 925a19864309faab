"""The records of a consumer group in `__consumer_offsets`: one function for each kind.

The key's number says which kind it is: 3 the group with its epoch, 4 the group's topics (no
longer written; a tombstone deletes what an older Kafka left), 5 a member, 6 the target
assignment's epoch, 7 a member's target assignment, 8 what a member has, 16 a regular
expression with the topics it was found to match. `record_values.py` reads them back. Source:
Kafka's `GroupCoordinatorRecordHelpers` and its message schemas, as 4.3 writes them.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from .....common.errors import ErrorCode, KafkaError
from .....protocol import internal as schemas  # a schema is imported at its first use
from .....protocol.codec.values import MessageValue
from .....protocol.errors import EncodeError
from .....protocol.internal.versioned import CONSUMER_OFFSETS, encode_record
from ....log import CoordinatorRecord
from ..member import ConsumerGroupMember, OwnedPartitions, TargetAssignment


class ResolvedExpression(NamedTuple):
    """The topics that a regular expression was found to match.

    Attributes:
        version: of the cluster's metadata that was looked at.
        timestamp_ms: wall time of it.
    """

    topics: frozenset[str]
    version: int
    timestamp_ms: int


# -- the group ------------------------------------------------------------------------------


def group_epoch_record(group_id: str, epoch: int, metadata_hash: int) -> CoordinatorRecord:
    """Kind 3: the group's epoch, and the hash of its topics' metadata, a signed int64."""
    return _record(
        schemas.ConsumerGroupMetadataKey(group_id=group_id),
        schemas.ConsumerGroupMetadataValue(epoch=epoch, metadata_hash=metadata_hash),
    )


def group_epoch_tombstone(group_id: str) -> CoordinatorRecord:
    """Kind 3: the group is gone."""
    return _record(schemas.ConsumerGroupMetadataKey(group_id=group_id), None)


def topics_metadata_tombstone(group_id: str) -> CoordinatorRecord:
    """Kind 4: what Kafka 4.0 and before kept of the group's topics is gone."""
    return _record(schemas.ConsumerGroupPartitionMetadataKey(group_id=group_id), None)


def target_epoch_record(
    group_id: str, assignment_epoch: int, assignment_timestamp_ms: int
) -> CoordinatorRecord:
    """Kind 6: the group's epoch for which the target assignment was made, and when."""
    return _record(
        schemas.ConsumerGroupTargetAssignmentMetadataKey(group_id=group_id),
        schemas.ConsumerGroupTargetAssignmentMetadataValue(
            assignment_epoch=assignment_epoch, assignment_timestamp=assignment_timestamp_ms
        ),
    )


def target_epoch_tombstone(group_id: str) -> CoordinatorRecord:
    """Kind 6: the group has no target assignment any more."""
    return _record(schemas.ConsumerGroupTargetAssignmentMetadataKey(group_id=group_id), None)


def expression_record(
    group_id: str, expression: str, resolved: ResolvedExpression
) -> CoordinatorRecord:
    """Kind 16: the topics that a regular expression of some members matches."""
    return _record(
        schemas.ConsumerGroupRegularExpressionKey(group_id=group_id, regular_expression=expression),
        schemas.ConsumerGroupRegularExpressionValue(
            topics=sorted(resolved.topics),
            version=resolved.version,
            timestamp=resolved.timestamp_ms,
        ),
    )


def expression_tombstone(group_id: str, expression: str) -> CoordinatorRecord:
    """Kind 16: no member subscribes by that regular expression any more."""
    return _record(
        schemas.ConsumerGroupRegularExpressionKey(group_id=group_id, regular_expression=expression),
        None,
    )


# -- a member -------------------------------------------------------------------------------


def member_record(group_id: str, member: ConsumerGroupMember) -> CoordinatorRecord:
    """Kind 5: what a member said of itself.

    Raises:
        KafkaError: INVALID_REQUEST, something in it is longer than a record can hold.
    """
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
    return _record(
        schemas.ConsumerGroupMemberMetadataKey(group_id=group_id, member_id=member.member_id),
        value_type(
            instance_id=member.instance_id,
            rack_id=member.rack_id,
            client_id=member.client_id,
            client_host=member.client_host,
            subscribed_topic_names=sorted(member.subscribed_topic_names),
            subscribed_topic_regex=member.subscribed_topic_regex,
            rebalance_timeout_ms=member.rebalance_timeout_ms,
            server_assignor=member.server_assignor_name,
            classic_member_metadata=classic,
        ),
    )


def member_tombstone(group_id: str, member_id: str) -> CoordinatorRecord:
    """Kind 5: the member is gone."""
    return _record(
        schemas.ConsumerGroupMemberMetadataKey(group_id=group_id, member_id=member_id), None
    )


def target_assignment_record(
    group_id: str, member_id: str, assignment: TargetAssignment
) -> CoordinatorRecord:
    """Kind 7: what a member shall have, by topic id."""
    value_type = schemas.ConsumerGroupTargetAssignmentMemberValue
    return _record(
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
    return _record(
        schemas.ConsumerGroupTargetAssignmentMemberKey(group_id=group_id, member_id=member_id),
        None,
    )


def current_assignment_record(group_id: str, member: ConsumerGroupMember) -> CoordinatorRecord:
    """Kind 8: what a member has, and what it is asked to give up."""
    return _record(
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
    return _record(
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


def _record(key: MessageValue, value: MessageValue | None) -> CoordinatorRecord:
    try:
        return CoordinatorRecord(*encode_record(CONSUMER_OFFSETS, key, value))
    except EncodeError as error:
        raise KafkaError(ErrorCode.INVALID_REQUEST, str(error)) from None
