"""The records of a streams group in `__consumer_offsets`: written, read and replayed.

The key's number says which kind it is: 17 the group with its epoch, 19 a member, 20 the target
assignment's epoch, 21 a member's target, 22 what a member has, 23 the topology. Source: Kafka's
StreamsCoordinatorRecordHelpers and its message schemas as 4.3 writes them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from ....common.errors import KafkaError
from ....protocol import internal as schemas
from ....protocol.errors import ProtocolError
from ....protocol.internal.versioned import CONSUMER_OFFSETS
from ....protocol.internal.versioned import CoordinatorRecord as DecodedRecord
from ....runtime.steps import Steps, map_in_steps, map_steps, run_at_once
from ...log import CoordinatorRecord
from ..consumer.group_write import Write, without
from ..records import EncodedValue, coordinator_record, encode_value, read_of_kinds
from .group import NO_TARGET_EPOCH, StreamsGroup, StreamsGroupImage
from .member import StreamsMember, UserEndpoint
from .states import StreamsMemberState
from .tasks import NOTHING_OWNED, OwnedTasks, Tasks, TaskSets, task_sets
from .topology import InternalTopic, Subtopology, Topology, read_topology

STREAMS_GROUP_KINDS = frozenset(
    number for number, kind in CONSUMER_OFFSETS.items() if kind.startswith("StreamsGroup")
)
"""The numbers that a streams group's keys begin with."""


class StreamsGroupWrite(Write[StreamsGroup]):
    """What changes in one streams group."""

    __slots__ = ()

    def put_epoch(
        self,
        epoch: int,
        metadata_hash: int,
        validated_topology_epoch: int,
        assignor_settings: Mapping[str, str],
    ) -> None:
        """Count the group's epoch up."""
        group = self.group
        value = schemas.StreamsGroupMetadataValue
        self.add(
            coordinator_record(
                schemas.StreamsGroupMetadataKey(group_id=group.group_id),
                value(
                    epoch=epoch,
                    metadata_hash=metadata_hash,
                    validated_topology_epoch=validated_topology_epoch,
                    last_assignment_configs=[
                        value.LastAssignmentConfig(key=name, value=text)
                        for name, text in sorted(assignor_settings.items())
                    ],
                ),
            )
        )
        group.now = group.now._replace(
            epoch=epoch,
            metadata_hash=metadata_hash,
            validated_topology_epoch=validated_topology_epoch,
            assignor_settings=dict(assignor_settings),
        )

    def put_topology(self, topology: Topology) -> None:
        """The first member has told the topology."""
        group = self.group
        encoded = self.encoded_of(topology)
        self.add(
            coordinator_record(
                schemas.StreamsGroupTopologyKey(group_id=group.group_id),
                run_at_once(_topology_value(topology)) if encoded is None else encoded,
            )
        )
        group.now = group.now._replace(topology=topology)

    def put_targets(self, epoch: int, targets: Mapping[str, Tasks], now_ms: int) -> None:
        """The targets are these now, of this epoch; only those that are others are written."""
        group = self.group
        before = group.now.targets
        for member_id, target in targets.items():
            if before.get(member_id) != target:
                self.add(
                    coordinator_record(
                        schemas.StreamsGroupTargetAssignmentMemberKey(
                            group_id=group.group_id, member_id=member_id
                        ),
                        _target_value(target),
                    )
                )
        self.add(
            coordinator_record(
                schemas.StreamsGroupTargetAssignmentMetadataKey(group_id=group.group_id),
                schemas.StreamsGroupTargetAssignmentMetadataValue(
                    assignment_epoch=epoch, assignment_timestamp=now_ms
                ),
            )
        )
        group.now = group.now._replace(
            targets={**before, **targets}, target_epoch=epoch, assignment_timestamp_ms=now_ms
        )

    def put_metadata(self, member: StreamsMember) -> None:
        """What a member said of itself is new or has changed."""
        encoded = self.encoded_of(said_by(member))
        self.add(
            coordinator_record(
                schemas.StreamsGroupMemberMetadataKey(
                    group_id=self.group.group_id, member_id=member.member_id
                ),
                run_at_once(_member_value(member)) if encoded is None else encoded,
            )
        )
        self._put(member)

    def put_current(self, member: StreamsMember) -> None:
        """What a member has, or its epoch, has changed."""
        value = schemas.StreamsGroupCurrentMemberAssignmentValue
        assigned, pending = member.assigned, member.pending_revocation
        self.add(
            coordinator_record(
                schemas.StreamsGroupCurrentMemberAssignmentKey(
                    group_id=self.group.group_id, member_id=member.member_id
                ),
                value(
                    member_epoch=member.member_epoch,
                    previous_member_epoch=member.previous_member_epoch,
                    state=member.state,
                    active_tasks=_with_epochs(assigned),
                    standby_tasks=_without_epochs(assigned.standby),
                    warmup_tasks=_without_epochs(assigned.warmup),
                    active_tasks_pending_revocation=_with_epochs(pending),
                    standby_tasks_pending_revocation=_without_epochs(pending.standby),
                    warmup_tasks_pending_revocation=_without_epochs(pending.warmup),
                ),
            )
        )
        self._put(member)

    def remove_member(self, member_id: str) -> None:
        """A member is gone."""
        group = self.group
        for key in (
            schemas.StreamsGroupCurrentMemberAssignmentKey,
            schemas.StreamsGroupTargetAssignmentMemberKey,
            schemas.StreamsGroupMemberMetadataKey,
        ):
            self.add(coordinator_record(key(group_id=group.group_id, member_id=member_id), None))
        group.now = group.now._replace(
            members=without(group.now.members, member_id),
            targets=without(group.now.targets, member_id),
        )

    def remove_group(self) -> None:
        """End a group without members."""
        for record in group_tombstones(self.group.group_id):
            self.add(record)
        self.group.now = StreamsGroupImage()

    def _put(self, member: StreamsMember) -> None:
        group = self.group
        group.now = group.now._replace(members={**group.now.members, member.member_id: member})


def group_tombstones(group_id: str) -> list[CoordinatorRecord]:
    """All that ends with a group that has no members, in Kafka's order."""
    return [
        coordinator_record(key(group_id=group_id), None)
        for key in (
            schemas.StreamsGroupTargetAssignmentMetadataKey,
            schemas.StreamsGroupMetadataKey,
            schemas.StreamsGroupTopologyKey,
        )
    ]


def encode_topology(topology: Topology) -> Steps[EncodedValue]:
    """The value of the record of a topology, which may have tens of thousands of topics.

    Raises:
        KafkaError: INVALID_REQUEST, something in it is longer than a record can hold.
    """
    return (yield from encode_value(topology, (yield from _topology_value(topology))))


def encode_member(member: StreamsMember) -> Steps[EncodedValue]:
    """The value of the record of what a member said, which may have thousands of tags.

    Raises:
        KafkaError: INVALID_REQUEST, something in it is longer than a record can hold.
    """
    return (yield from encode_value(said_by(member), (yield from _member_value(member))))


def said_by(member: StreamsMember) -> StreamsMember:
    """What a member said of itself, and nothing else of it."""
    return member._replace(
        member_id="",
        member_epoch=0,
        previous_member_epoch=0,
        state=StreamsMemberState.STABLE,
        assigned=NOTHING_OWNED,
        pending_revocation=NOTHING_OWNED,
    )


def _member_value(member: StreamsMember) -> Steps[schemas.StreamsGroupMemberMetadataValue]:
    value = schemas.StreamsGroupMemberMetadataValue
    endpoint = member.user_endpoint
    return value(
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        client_id=member.client_id,
        client_host=member.client_host,
        rebalance_timeout_ms=member.rebalance_timeout_ms,
        topology_epoch=member.topology_epoch,
        process_id=member.process_id,
        user_endpoint=None
        if endpoint is None
        else value.Endpoint(host=endpoint.host, port=endpoint.port),
        client_tags=(
            yield from map_in_steps(
                lambda tag: value.KeyValue(key=tag[0], value=tag[1]), member.client_tags
            )
        ),
    )


def _topology_value(topology: Topology) -> Steps[schemas.StreamsGroupTopologyValue]:
    value = schemas.StreamsGroupTopologyValue
    subtopologies = yield from map_steps(_subtopology_value, topology.subtopologies.values())
    return value(epoch=topology.epoch, subtopologies=subtopologies)


def _subtopology_value(
    subtopology: Subtopology,
) -> Steps[schemas.StreamsGroupTopologyValue.Subtopology]:
    value = schemas.StreamsGroupTopologyValue
    return value.Subtopology(
        subtopology_id=subtopology.subtopology_id,
        source_topics=list(subtopology.source_topics),
        source_topic_regex=list(subtopology.source_topic_regex),
        state_changelog_topics=(yield from map_steps(_topic_info, subtopology.changelog_topics)),
        repartition_sink_topics=list(subtopology.repartition_sink_topics),
        repartition_source_topics=(
            yield from map_steps(_topic_info, subtopology.repartition_source_topics)
        ),
        copartition_groups=(
            yield from map_in_steps(
                lambda group: value.CopartitionGroup(
                    source_topics=list(group.source_topics),
                    source_topic_regex=list(group.source_topic_regex),
                    repartition_source_topics=list(group.repartition_source_topics),
                ),
                subtopology.copartition_groups,
            )
        ),
    )


def _topic_info(topic: InternalTopic) -> Steps[schemas.StreamsGroupTopologyValue.TopicInfo]:
    value = schemas.StreamsGroupTopologyValue
    configs = yield from map_in_steps(
        lambda config: value.TopicConfig(key=config[0], value=config[1]), topic.configs
    )
    return value.TopicInfo(
        name=topic.name,
        partitions=topic.partitions,
        replication_factor=topic.replication_factor,
        topic_configs=configs,
    )


def _target_value(target: Tasks) -> schemas.StreamsGroupTargetAssignmentMemberValue:
    value = schemas.StreamsGroupTargetAssignmentMemberValue

    def task_ids(
        tasks: TaskSets,
    ) -> list[schemas.StreamsGroupTargetAssignmentMemberValue.TaskIds]:
        return [
            value.TaskIds(subtopology_id=subtopology_id, partitions=sorted(numbers))
            for subtopology_id, numbers in sorted(tasks.items())
        ]

    return value(
        active_tasks=task_ids(target.active),
        standby_tasks=task_ids(target.standby),
        warmup_tasks=task_ids(target.warmup),
    )


def _with_epochs(
    owned: OwnedTasks,
) -> list[schemas.StreamsGroupCurrentMemberAssignmentValue.TaskIds]:
    return [
        schemas.StreamsGroupCurrentMemberAssignmentValue.TaskIds(
            subtopology_id=subtopology_id,
            partitions=sorted(epochs),
            assignment_epochs=[epochs[number] for number in sorted(epochs)],
        )
        for subtopology_id, epochs in sorted(owned.active.items())
    ]


def _without_epochs(
    tasks: TaskSets,
) -> list[schemas.StreamsGroupCurrentMemberAssignmentValue.TaskIds]:
    return [
        schemas.StreamsGroupCurrentMemberAssignmentValue.TaskIds(
            subtopology_id=subtopology_id, partitions=sorted(numbers), assignment_epochs=None
        )
        for subtopology_id, numbers in sorted(tasks.items())
    ]


# -- reading them back ----------------------------------------------------------------------


def read_streams_record(key: bytes, value: bytes | None) -> DecodedRecord | None:
    """A record of a streams group; None for other kinds.

    Raises:
        ProtocolError: key or value is cut short, of an unknown version, or nonsense.
    """
    return read_of_kinds(STREAMS_GROUP_KINDS, key, value)


def ends_streams_group(record: DecodedRecord) -> bool:
    """Whether nothing is left of the group after this record, but for its offsets."""
    return record.kind == "StreamsGroupMetadata" and record.value is None


def replay_streams_record(group: StreamsGroup, record: DecodedRecord) -> None:
    """Let the group be what it is after this record; `ends_streams_group` is for who keeps groups.

    Raises:
        ProtocolError: the record contradicts itself.
    """
    try:
        group.now = _REPLAYS[record.kind](group.now, record.key, record.value)
    except KafkaError as error:
        raise ProtocolError(str(error)) from None


def _replay_epoch(
    now: StreamsGroupImage,
    _key: schemas.StreamsGroupMetadataKey,
    value: schemas.StreamsGroupMetadataValue | None,
) -> StreamsGroupImage:
    if value is None:
        return StreamsGroupImage()
    return now._replace(
        epoch=value.epoch,
        metadata_hash=value.metadata_hash,
        validated_topology_epoch=value.validated_topology_epoch,
        assignor_settings={each.key: each.value for each in value.last_assignment_configs or ()},
    )


def _replay_topology(
    now: StreamsGroupImage,
    _key: schemas.StreamsGroupTopologyKey,
    value: schemas.StreamsGroupTopologyValue | None,
) -> StreamsGroupImage:
    return now._replace(topology=None if value is None else run_at_once(read_topology(value)))


def _replay_member(
    now: StreamsGroupImage,
    key: schemas.StreamsGroupMemberMetadataKey,
    value: schemas.StreamsGroupMemberMetadataValue | None,
) -> StreamsGroupImage:
    if value is None:
        return now._replace(members=without(now.members, key.member_id))
    endpoint = value.user_endpoint
    member = _member(now, key.member_id)._replace(
        instance_id=value.instance_id,
        rack_id=value.rack_id,
        client_id=value.client_id,
        client_host=value.client_host,
        rebalance_timeout_ms=value.rebalance_timeout_ms,
        topology_epoch=value.topology_epoch,
        process_id=value.process_id,
        user_endpoint=None if endpoint is None else UserEndpoint(endpoint.host, endpoint.port),
        client_tags=tuple(sorted((tag.key, tag.value) for tag in value.client_tags)),
    )
    return now._replace(members={**now.members, key.member_id: member})


def _replay_target_epoch(
    now: StreamsGroupImage,
    _key: schemas.StreamsGroupTargetAssignmentMetadataKey,
    value: schemas.StreamsGroupTargetAssignmentMetadataValue | None,
) -> StreamsGroupImage:
    if value is None:
        return now._replace(target_epoch=NO_TARGET_EPOCH, assignment_timestamp_ms=0)
    return now._replace(
        target_epoch=value.assignment_epoch, assignment_timestamp_ms=value.assignment_timestamp
    )


def _replay_target(
    now: StreamsGroupImage,
    key: schemas.StreamsGroupTargetAssignmentMemberKey,
    value: schemas.StreamsGroupTargetAssignmentMemberValue | None,
) -> StreamsGroupImage:
    if value is None:
        return now._replace(targets=without(now.targets, key.member_id))
    target = Tasks(
        _read_tasks(value.active_tasks),
        _read_tasks(value.standby_tasks),
        _read_tasks(value.warmup_tasks),
    )
    return now._replace(targets={**now.targets, key.member_id: target})


def _replay_current(
    now: StreamsGroupImage,
    key: schemas.StreamsGroupCurrentMemberAssignmentKey,
    value: schemas.StreamsGroupCurrentMemberAssignmentValue | None,
) -> StreamsGroupImage:
    if value is None:
        if key.member_id not in now.members:
            return now
        member = now.members[key.member_id]._replace(
            member_epoch=-1,
            previous_member_epoch=-1,
            assigned=NOTHING_OWNED,
            pending_revocation=NOTHING_OWNED,
        )
    else:
        member = _member(now, key.member_id)._replace(
            member_epoch=value.member_epoch,
            previous_member_epoch=value.previous_member_epoch,
            state=_member_state(value.state),
            assigned=OwnedTasks(
                _read_epochs(value.active_tasks, value.member_epoch),
                _read_tasks(value.standby_tasks),
                _read_tasks(value.warmup_tasks),
            ),
            pending_revocation=OwnedTasks(
                _read_epochs(value.active_tasks_pending_revocation, value.member_epoch),
                _read_tasks(value.standby_tasks_pending_revocation),
                _read_tasks(value.warmup_tasks_pending_revocation),
            ),
        )
    return now._replace(members={**now.members, key.member_id: member})


def _read_tasks(
    reported: Iterable[
        schemas.StreamsGroupTargetAssignmentMemberValue.TaskIds
        | schemas.StreamsGroupCurrentMemberAssignmentValue.TaskIds
    ],
) -> TaskSets:
    return task_sets({each.subtopology_id: each.partitions for each in reported})


def _read_epochs(
    reported: Iterable[schemas.StreamsGroupCurrentMemberAssignmentValue.TaskIds], member_epoch: int
) -> dict[str, dict[int, int]]:
    """Active tasks with their epochs; a record without them means the member's."""
    result: dict[str, dict[int, int]] = {}
    for each in reported:
        epochs = each.assignment_epochs
        if epochs is None or len(epochs) != len(each.partitions):
            epochs = [member_epoch] * len(each.partitions)
        if each.partitions:
            result[each.subtopology_id] = dict(zip(each.partitions, epochs, strict=True))
    return result


def _member_state(number: int) -> StreamsMemberState:
    try:
        return StreamsMemberState(number)
    except ValueError:
        return StreamsMemberState.UNKNOWN


def _member(now: StreamsGroupImage, member_id: str) -> StreamsMember:
    return now.members.get(member_id) or StreamsMember(member_id)


_REPLAYS: dict[str, Callable[..., StreamsGroupImage]] = {
    "StreamsGroupMetadata": _replay_epoch,
    "StreamsGroupTopology": _replay_topology,
    "StreamsGroupMemberMetadata": _replay_member,
    "StreamsGroupTargetAssignmentMetadata": _replay_target_epoch,
    "StreamsGroupTargetAssignmentMember": _replay_target,
    "StreamsGroupCurrentMemberAssignment": _replay_current,
}
