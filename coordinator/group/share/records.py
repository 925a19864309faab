"""The records of a share group in `__consumer_offsets`: written, read and replayed.

The key's number says which kind it is: 10 a member, 11 the group with its epoch, 12 the target
assignment's epoch, 13 a member's target, 14 what a member has, 15 which share partitions are
initialized. Source: Kafka's GroupCoordinatorRecordHelpers and its message schemas as 4.3 writes
them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from ....protocol import internal as schemas
from ....protocol.internal.versioned import CONSUMER_OFFSETS
from ....protocol.internal.versioned import CoordinatorRecord as DecodedRecord
from ....runtime.steps import Steps, sorted_in_steps
from ...log import CoordinatorRecord
from ..consumer.group_write import Write, without
from ..records import EncodedValue, coordinator_record, encode_value, read_of_kinds
from .share_group import (
    NO_ASSIGNMENT,
    ShareAssignment,
    SharedTopic,
    ShareGroup,
    ShareGroupImage,
    ShareMember,
)

SHARE_GROUP_KINDS = frozenset(
    number for number, kind in CONSUMER_OFFSETS.items() if kind.startswith("ShareGroup")
)
"""The numbers that a share group's keys begin with."""


class ShareGroupWrite(Write[ShareGroup]):
    """What changes in one share group."""

    __slots__ = ()

    def put_epoch(self, epoch: int, metadata_hash: int) -> None:
        """Count the group's epoch up."""
        group = self.group
        self.add(
            coordinator_record(
                schemas.ShareGroupMetadataKey(group_id=group.group_id),
                schemas.ShareGroupMetadataValue(epoch=epoch, metadata_hash=metadata_hash),
            )
        )
        group.now = group.now._replace(epoch=epoch, metadata_hash=metadata_hash)

    def put_target_epoch(self, epoch: int, now_ms: int) -> None:
        """The targets are of this epoch now."""
        group = self.group
        self.add(
            coordinator_record(
                schemas.ShareGroupTargetAssignmentMetadataKey(group_id=group.group_id),
                schemas.ShareGroupTargetAssignmentMetadataValue(
                    assignment_epoch=epoch, assignment_timestamp=now_ms
                ),
            )
        )
        group.now = group.now._replace(target_epoch=epoch, assignment_timestamp_ms=now_ms)

    def put_target(self, member_id: str, target: ShareAssignment) -> None:
        """What a member is to read has changed."""
        group = self.group
        value = schemas.ShareGroupTargetAssignmentMemberValue
        self.add(
            coordinator_record(
                schemas.ShareGroupTargetAssignmentMemberKey(
                    group_id=group.group_id, member_id=member_id
                ),
                value(
                    topic_partitions=[
                        value.TopicPartition(topic_id=topic_id, partitions=sorted(partitions))
                        for topic_id, partitions in sorted(target.items())
                    ]
                ),
            )
        )
        group.now = group.now._replace(targets={**group.now.targets, member_id: target})

    def put_metadata(self, member: ShareMember) -> None:
        """What a member said of itself is new or has changed."""
        encoded = self.encoded_of(_said_by(member))
        self.add(
            coordinator_record(
                schemas.ShareGroupMemberMetadataKey(
                    group_id=self.group.group_id, member_id=member.member_id
                ),
                _member_value(member, sorted(member.subscribed_topic_names))
                if encoded is None
                else encoded,
            )
        )
        self._put(member)

    def put_current(self, member: ShareMember) -> None:
        """What a member has, or its epoch, has changed."""
        value = schemas.ShareGroupCurrentMemberAssignmentValue
        self.add(
            coordinator_record(
                schemas.ShareGroupCurrentMemberAssignmentKey(
                    group_id=self.group.group_id, member_id=member.member_id
                ),
                value(
                    member_epoch=member.member_epoch,
                    previous_member_epoch=member.previous_member_epoch,
                    assigned_partitions=[
                        value.TopicPartitions(topic_id=topic_id, partitions=sorted(partitions))
                        for topic_id, partitions in sorted(member.assigned.items())
                    ],
                ),
            )
        )
        self._put(member)

    def remove_member(self, member_id: str) -> None:
        """A member is gone."""
        group = self.group
        for record in _member_tombstones(group.group_id, member_id):
            self.add(record)
        group.now = group.now._replace(
            members=without(group.now.members, member_id),
            targets=without(group.now.targets, member_id),
        )

    def put_share_partitions(
        self,
        initializing: Mapping[bytes, SharedTopic],
        initialized: Mapping[bytes, SharedTopic],
        deleting: Mapping[bytes, str],
    ) -> None:
        """Which share partitions the share coordinator has begun, or is to begin or delete."""
        group = self.group
        value = schemas.ShareGroupStatePartitionMetadataValue

        def topics(
            shared: Mapping[bytes, SharedTopic],
        ) -> list[schemas.ShareGroupStatePartitionMetadataValue.TopicPartitionsInfo]:
            return [
                value.TopicPartitionsInfo(
                    topic_id=topic_id, topic_name=topic.name, partitions=sorted(topic.partitions)
                )
                for topic_id, topic in sorted(shared.items())
            ]

        self.add(
            coordinator_record(
                schemas.ShareGroupStatePartitionMetadataKey(group_id=group.group_id),
                value(
                    initializing_topics=topics(initializing),
                    initialized_topics=topics(initialized),
                    deleting_topics=[
                        value.TopicInfo(topic_id=topic_id, topic_name=name)
                        for topic_id, name in sorted(deleting.items())
                    ],
                ),
            )
        )
        group.now = group.now._replace(
            initializing=dict(initializing), initialized=dict(initialized), deleting=dict(deleting)
        )

    def remove_group(self) -> None:
        """End the group, with all members that it has."""
        group = self.group
        for member_id in group.now.members:
            for record in _member_tombstones(group.group_id, member_id):
                self.add(record)
        for key in (
            schemas.ShareGroupTargetAssignmentMetadataKey(group_id=group.group_id),
            schemas.ShareGroupStatePartitionMetadataKey(group_id=group.group_id),
            schemas.ShareGroupMetadataKey(group_id=group.group_id),
        ):
            self.add(coordinator_record(key, None))
        group.now = ShareGroupImage()

    def _put(self, member: ShareMember) -> None:
        group = self.group
        group.now = group.now._replace(members={**group.now.members, member.member_id: member})


def encode_member(member: ShareMember) -> Steps[EncodedValue]:
    """The value of the record of what a member said, which may be thousands of topics.

    Raises:
        KafkaError: INVALID_REQUEST, something in it is longer than a record can hold.
    """
    names = yield from sorted_in_steps(tuple(member.subscribed_topic_names))
    return (yield from encode_value(_said_by(member), _member_value(member, names)))


def _said_by(member: ShareMember) -> ShareMember:
    """What a member said of itself, and nothing else of it."""
    return ShareMember(
        "",
        rack_id=member.rack_id,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=member.subscribed_topic_names,
    )


def _member_value(member: ShareMember, names: list[str]) -> schemas.ShareGroupMemberMetadataValue:
    return schemas.ShareGroupMemberMetadataValue(
        rack_id=member.rack_id,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=names,
    )


def _member_tombstones(group_id: str, member_id: str) -> list[CoordinatorRecord]:
    return [
        coordinator_record(key, None)
        for key in (
            schemas.ShareGroupCurrentMemberAssignmentKey(group_id=group_id, member_id=member_id),
            schemas.ShareGroupTargetAssignmentMemberKey(group_id=group_id, member_id=member_id),
            schemas.ShareGroupMemberMetadataKey(group_id=group_id, member_id=member_id),
        )
    ]


# -- reading them back ----------------------------------------------------------------------


def read_share_record(key: bytes, value: bytes | None) -> DecodedRecord | None:
    """A record of a share group; None for other kinds.

    Raises:
        ProtocolError: key or value is cut short, of an unknown version, or nonsense.
    """
    return read_of_kinds(SHARE_GROUP_KINDS, key, value)


def ends_share_group(record: DecodedRecord) -> bool:
    """Whether nothing is left of the group after this record."""
    return record.kind == "ShareGroupMetadata" and record.value is None


def replay_share_record(group: ShareGroup, record: DecodedRecord) -> None:
    """Let the group be what it is after this record; `ends_share_group` is for who keeps groups."""
    group.now = _REPLAYS[record.kind](group.now, record.key, record.value)


def _replay_epoch(
    now: ShareGroupImage,
    _key: schemas.ShareGroupMetadataKey,
    value: schemas.ShareGroupMetadataValue | None,
) -> ShareGroupImage:
    if value is None:
        return ShareGroupImage()
    return now._replace(epoch=value.epoch, metadata_hash=value.metadata_hash)


def _replay_member(
    now: ShareGroupImage,
    key: schemas.ShareGroupMemberMetadataKey,
    value: schemas.ShareGroupMemberMetadataValue | None,
) -> ShareGroupImage:
    if value is None:
        return now._replace(members=without(now.members, key.member_id))
    member = _member(now, key.member_id)._replace(
        rack_id=value.rack_id,
        client_id=value.client_id,
        client_host=value.client_host,
        subscribed_topic_names=frozenset(value.subscribed_topic_names),
    )
    return now._replace(members={**now.members, key.member_id: member})


def _replay_target_epoch(
    now: ShareGroupImage,
    _key: schemas.ShareGroupTargetAssignmentMetadataKey,
    value: schemas.ShareGroupTargetAssignmentMetadataValue | None,
) -> ShareGroupImage:
    if value is None:
        return now._replace(target_epoch=0, assignment_timestamp_ms=0)
    return now._replace(
        target_epoch=value.assignment_epoch, assignment_timestamp_ms=value.assignment_timestamp
    )


def _replay_target(
    now: ShareGroupImage,
    key: schemas.ShareGroupTargetAssignmentMemberKey,
    value: schemas.ShareGroupTargetAssignmentMemberValue | None,
) -> ShareGroupImage:
    if value is None:
        return now._replace(targets=without(now.targets, key.member_id))
    target = {entry.topic_id: frozenset(entry.partitions) for entry in value.topic_partitions}
    return now._replace(targets={**now.targets, key.member_id: target})


def _replay_current(
    now: ShareGroupImage,
    key: schemas.ShareGroupCurrentMemberAssignmentKey,
    value: schemas.ShareGroupCurrentMemberAssignmentValue | None,
) -> ShareGroupImage:
    if value is None:
        if key.member_id not in now.members:
            return now
        member = now.members[key.member_id]._replace(
            member_epoch=-1, previous_member_epoch=-1, assigned=NO_ASSIGNMENT
        )
    else:
        member = _member(now, key.member_id)._replace(
            member_epoch=value.member_epoch,
            previous_member_epoch=value.previous_member_epoch,
            assigned={
                entry.topic_id: frozenset(entry.partitions) for entry in value.assigned_partitions
            },
        )
    return now._replace(members={**now.members, key.member_id: member})


def _replay_share_partitions(
    now: ShareGroupImage,
    _key: schemas.ShareGroupStatePartitionMetadataKey,
    value: schemas.ShareGroupStatePartitionMetadataValue | None,
) -> ShareGroupImage:
    if value is None:
        return now._replace(initializing={}, initialized={}, deleting={})
    return now._replace(
        initializing=_shared(value.initializing_topics),
        initialized=_shared(value.initialized_topics),
        deleting={topic.topic_id: topic.topic_name for topic in value.deleting_topics},
    )


def _shared(
    topics: Iterable[schemas.ShareGroupStatePartitionMetadataValue.TopicPartitionsInfo],
) -> dict[bytes, SharedTopic]:
    return {
        topic.topic_id: SharedTopic(topic.topic_name, frozenset(topic.partitions))
        for topic in topics
    }


def _member(now: ShareGroupImage, member_id: str) -> ShareMember:
    return now.members.get(member_id) or ShareMember(member_id)


_REPLAYS: dict[str, Callable[..., ShareGroupImage]] = {
    "ShareGroupMetadata": _replay_epoch,
    "ShareGroupMemberMetadata": _replay_member,
    "ShareGroupTargetAssignmentMetadata": _replay_target_epoch,
    "ShareGroupTargetAssignmentMember": _replay_target,
    "ShareGroupCurrentMemberAssignment": _replay_current,
    "ShareGroupStatePartitionMetadata": _replay_share_partitions,
}
