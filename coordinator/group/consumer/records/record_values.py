"""Reading a consumer group's records back, whatever version of Kafka wrote them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from .....protocol import internal as schemas  # a schema is imported at its first use
from .....protocol.errors import ProtocolError
from .....protocol.internal.versioned import CONSUMER_OFFSETS, decode_record
from ....record_reader import RecordFormatError
from ..member import ClassicMemberMetadata, ClassicProtocol, ConsumerGroupMember, OwnedPartitions
from ..states import MemberState
from .records import ResolvedExpression

CONSUMER_GROUP_KINDS = frozenset((3, 4, 5, 6, 7, 8, 16))
"""The numbers that a consumer group's keys begin with."""


class MemberMetadata(NamedTuple):
    """What a member said of itself; the fields are those of `ConsumerGroupMember`."""

    instance_id: str | None
    rack_id: str | None
    client_id: str
    client_host: str
    subscribed_topic_names: frozenset[str]
    subscribed_topic_regex: str
    rebalance_timeout_ms: int
    server_assignor_name: str | None
    classic_member_metadata: ClassicMemberMetadata | None

    def applied_to(self, member: ConsumerGroupMember) -> ConsumerGroupMember:
        """The member with this said of itself."""
        return member._replace(**self._asdict())


class CurrentAssignment(NamedTuple):
    """What a member has, and what it has to give up; the fields are `ConsumerGroupMember`'s."""

    member_epoch: int
    previous_member_epoch: int
    state: MemberState
    assigned_partitions: OwnedPartitions
    partitions_pending_revocation: OwnedPartitions

    def applied_to(self, member: ConsumerGroupMember) -> ConsumerGroupMember:
        """The member with this assigned."""
        return member._replace(**self._asdict())


class GroupEpoch(NamedTuple):
    """Kind 3. `epoch` is None where the group is gone; the hash is 0 if none was kept."""

    group_id: str
    epoch: int | None
    metadata_hash: int = 0


class TopicsMetadata(NamedTuple):
    """Kind 4. Kafka 4.0 and before kept a group's topics so; all that counts is that it is there,
    as it must be deleted with the group."""

    group_id: str
    is_there: bool


class Member(NamedTuple):
    """Kind 5. `metadata` is None where the member is gone."""

    group_id: str
    member_id: str
    metadata: MemberMetadata | None


class TargetEpoch(NamedTuple):
    """Kind 6. `assignment_epoch` is None where there is no target assignment any more; the
    timestamp is 0 where none was kept."""

    group_id: str
    assignment_epoch: int | None
    assignment_timestamp_ms: int = 0


class TargetAssignment(NamedTuple):
    """Kind 7. `partitions`, by topic id, is None where the member is gone."""

    group_id: str
    member_id: str
    partitions: dict[bytes, frozenset[int]] | None


class MemberAssignment(NamedTuple):
    """Kind 8. `current` is None where the member is gone."""

    group_id: str
    member_id: str
    current: CurrentAssignment | None


class RegularExpression(NamedTuple):
    """Kind 16. `resolved` is None where nobody subscribes by it any more."""

    group_id: str
    expression: str
    resolved: ResolvedExpression | None


ConsumerGroupRecord = (
    GroupEpoch
    | TopicsMetadata
    | Member
    | TargetEpoch
    | TargetAssignment
    | MemberAssignment
    | RegularExpression
)


def read_record(key: bytes, value: bytes | None) -> ConsumerGroupRecord | None:
    """A record of a consumer group; None for records of other kinds.

    Args:
        key: the record's.
        value: the record's; None deletes what the key names.

    Raises:
        RecordFormatError: key or value is cut short, of an unknown version, or nonsense.
    """
    if len(key) < 2 or int.from_bytes(key[:2], "big") not in CONSUMER_GROUP_KINDS:
        return None
    try:
        record = decode_record(CONSUMER_OFFSETS, key, value)
    except ProtocolError as error:
        raise RecordFormatError(str(error)) from None
    assert record is not None
    return _READERS[record.kind](record.key, record.value)


def _group_epoch(
    key: schemas.ConsumerGroupMetadataKey, value: schemas.ConsumerGroupMetadataValue | None
) -> GroupEpoch:
    if value is None:
        return GroupEpoch(key.group_id, None)
    return GroupEpoch(key.group_id, value.epoch, value.metadata_hash)


def _topics_metadata(
    key: schemas.ConsumerGroupPartitionMetadataKey,
    value: schemas.ConsumerGroupPartitionMetadataValue | None,
) -> TopicsMetadata:
    return TopicsMetadata(key.group_id, value is not None)


def _member(
    key: schemas.ConsumerGroupMemberMetadataKey,
    value: schemas.ConsumerGroupMemberMetadataValue | None,
) -> Member:
    if value is None:
        return Member(key.group_id, key.member_id, None)
    classic = None
    if value.classic_member_metadata is not None:
        classic = ClassicMemberMetadata(
            value.classic_member_metadata.session_timeout_ms,
            tuple(
                ClassicProtocol(protocol.name, bytes(protocol.metadata))
                for protocol in value.classic_member_metadata.supported_protocols
            ),
        )
    metadata = MemberMetadata(
        value.instance_id,
        value.rack_id,
        value.client_id,
        value.client_host,
        frozenset(value.subscribed_topic_names),
        value.subscribed_topic_regex or "",
        value.rebalance_timeout_ms,
        value.server_assignor,
        classic,
    )
    return Member(key.group_id, key.member_id, metadata)


def _target_epoch(
    key: schemas.ConsumerGroupTargetAssignmentMetadataKey,
    value: schemas.ConsumerGroupTargetAssignmentMetadataValue | None,
) -> TargetEpoch:
    if value is None:
        return TargetEpoch(key.group_id, None)
    return TargetEpoch(key.group_id, value.assignment_epoch, value.assignment_timestamp)


def _target_assignment(
    key: schemas.ConsumerGroupTargetAssignmentMemberKey,
    value: schemas.ConsumerGroupTargetAssignmentMemberValue | None,
) -> TargetAssignment:
    partitions = None
    if value is not None:
        partitions = {
            entry.topic_id: frozenset(entry.partitions) for entry in value.topic_partitions
        }
    return TargetAssignment(key.group_id, key.member_id, partitions)


def _member_assignment(
    key: schemas.ConsumerGroupCurrentMemberAssignmentKey,
    value: schemas.ConsumerGroupCurrentMemberAssignmentValue | None,
) -> MemberAssignment:
    current = None
    if value is not None:
        current = CurrentAssignment(
            value.member_epoch,
            value.previous_member_epoch,
            _member_state(value.state),
            _partition_epochs(value.assigned_partitions, value.member_epoch),
            _partition_epochs(value.partitions_pending_revocation, value.member_epoch),
        )
    return MemberAssignment(key.group_id, key.member_id, current)


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


def _regular_expression(
    key: schemas.ConsumerGroupRegularExpressionKey,
    value: schemas.ConsumerGroupRegularExpressionValue | None,
) -> RegularExpression:
    resolved = None
    if value is not None:
        resolved = ResolvedExpression(frozenset(value.topics), value.version, value.timestamp)
    return RegularExpression(key.group_id, key.regular_expression, resolved)


_READERS: Mapping[str, Callable[[Any, Any], ConsumerGroupRecord]] = {
    "ConsumerGroupMetadata": _group_epoch,
    "ConsumerGroupPartitionMetadata": _topics_metadata,
    "ConsumerGroupMemberMetadata": _member,
    "ConsumerGroupTargetAssignmentMetadata": _target_epoch,
    "ConsumerGroupTargetAssignmentMember": _target_assignment,
    "ConsumerGroupCurrentMemberAssignment": _member_assignment,
    "ConsumerGroupRegularExpression": _regular_expression,
}
