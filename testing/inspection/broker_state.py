"""Looking into a broker: its cluster, topics, groups, transactions and producers.

All of it is what the broker goes by at this moment, and nothing here changes it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from ...common.internal_topics import CONSUMER_OFFSETS, INTERNAL_TOPICS, TRANSACTION_STATE
from ...common.topic_partition import TopicPartition
from ..control.framing import VerbError
from ..control.verbs import verb
from .states import (
    UNKNOWN,
    InspectedClientMetrics,
    InspectedGroup,
    InspectedMember,
    InspectedMetric,
    InspectedPartition,
    InspectedProducer,
    InspectedRecords,
    InspectedSharePartition,
    InspectedTopic,
    InspectedTransaction,
)

if TYPE_CHECKING:
    from ...broker.broker import Broker
    from ...broker.share.share_partition import SharePartition
    from ...coordinator.group.classic.group import ClassicGroup
    from ...coordinator.group.consumer.group import ConsumerGroup
    from ...coordinator.group.consumer.member import OwnedPartitions
    from ...coordinator.group.share.share_group import ShareAssignment, ShareGroup
    from ...coordinator.group.streams.group import StreamsGroup
    from ...coordinator.share.share_state import ShareState
    from ...replication.partition.partition import Partition
    from ..control.target import ControlTarget

READ_BYTES = 4 << 20
"""How much of a partition is answered at once."""


class RecordsPage(NamedTuple):
    """Batches of a partition, as they lie in the log.

    Attributes:
        start: where they begin.
        end: of the partition, for readers.
        aborted: pairs of producer id and first offset of aborted transactions.
    """

    batches: bytes
    start: int
    end: int
    aborted: list[tuple[int, int]]


# -- the cluster and its topics -----------------------------------------------------------------


@verb
def is_controller(target: ControlTarget) -> bool:
    """Whether this broker is the active controller."""
    return target.broker.controller.is_active


@verb
def topics(target: ControlTarget, *, internal: bool = False) -> list[str]:
    """The names of the topics, in order.

    Args:
        internal: whether Kafka's own are named, too.
    """
    names = sorted(target.broker.metadata_cache.get_all_topics())
    return [name for name in names if internal or name not in INTERNAL_TOPICS]


@verb
def topic(target: ControlTarget, name: str) -> InspectedTopic:
    """A topic and all of its partitions, as far as this broker knows them."""
    from ...runtime.rng import uuid_to_text

    snapshot = target.broker.metadata_cache.snapshot
    partitions = snapshot.partition_states.get(name)
    if partitions is None:
        raise VerbError(f"there is no topic {name}")
    return InspectedTopic(
        name,
        uuid_to_text(snapshot.topic_ids[name]),
        dict(snapshot.topic_configs.get(name, {})),
        tuple(_partition(target.broker, name, number) for number in partitions),
    )


@verb
def partition(target: ControlTarget, topic: str, partition: int) -> InspectedPartition:
    """What this broker knows of a partition; offsets only where it has a replica."""
    return _partition(target.broker, topic, partition)


def _partition(broker: Broker, topic: str, number: int) -> InspectedPartition:
    cached = broker.metadata_cache.get_partition_info(topic, number)
    state = InspectedPartition(number, -1, -1, (), ())
    if cached is not None:
        state = InspectedPartition(
            number, cached.leader, cached.leader_epoch, tuple(cached.replicas), tuple(cached.isr)
        )
    hosted = broker.replica_manager.get_partition(TopicPartition(topic, number))
    if hosted is None:
        return state
    return state._replace(
        leader_epoch=hosted.leader_epoch,
        isr=tuple(hosted.isr) if hosted.is_leader else state.isr,
        log_start_offset=hosted.log_start_offset,
        log_end_offset=hosted.log_end_offset,
        high_watermark=hosted.high_watermark,
        last_stable_offset=min(hosted.last_stable_offset, hosted.high_watermark),
        size=hosted.log.size,
        is_leader=hosted.is_leader,
    )


def hosted_partition(target: ControlTarget, topic: str, partition: int) -> Partition:
    """This broker's replica of a partition. Raises VerbError: it has none."""
    found = target.broker.replica_manager.get_partition(TopicPartition(topic, partition))
    if found is None:
        raise VerbError(f"broker {target.broker.broker_id} has no replica of {topic}-{partition}")
    return found


@verb
def records(
    target: ControlTarget, topic: str, partition: int, offset: int, committed_only: bool = False
) -> RecordsPage:
    """Batches of a partition from an offset on.

    Args:
        offset: where to begin; before the log's start it is the log's start.
        committed_only: whether to stop where the last transaction is open, and to say which
            were aborted.
    """
    from ...common.errors import KafkaError
    from ...storage.io.file_slice import FileSlice

    hosted = hosted_partition(target, topic, partition)
    end = min(hosted.last_stable_offset, hosted.high_watermark)
    end = end if committed_only else hosted.high_watermark
    start = max(offset, hosted.log_start_offset)
    data, aborted = b"", []
    if start < end:
        try:
            read = hosted.log.read(start, READ_BYTES, upper_offset=end)
            found = read.records
            data = found.read() if isinstance(found, FileSlice) else bytes(found)
            if committed_only:
                aborted = [
                    (each.producer_id, each.first_offset)
                    for each in hosted.log.aborted_transactions(start, end)
                ]
        except KafkaError as refusal:
            raise VerbError(f"{topic}-{partition} cannot be read: {refusal.message}") from None
    return RecordsPage(data, start, end, aborted)


@verb
def producers(target: ControlTarget, topic: str, partition: int = 0) -> list[InspectedProducer]:
    """The idempotent producers that a partition remembers."""
    hosted = hosted_partition(target, topic, partition)
    return [
        InspectedProducer(
            producer_id,
            state.producer_epoch,
            state.last_sequence,
            state.last_timestamp,
            state.current_txn_first_offset if state.current_txn_first_offset >= 0 else None,
        )
        for producer_id, state in hosted.log.producers.published.items()
    ]


# -- groups -------------------------------------------------------------------------------------


@verb
def groups(target: ControlTarget) -> list[str]:
    """The ids of the groups that the broker coordinates, in order."""
    return sorted(each.group_id for each in target.broker.coordinators.group.all_groups)


@verb
def group(target: ControlTarget, name: str) -> InspectedGroup:
    """A group as it is now; its state is "Dead" where the broker coordinates no such group."""
    coordinator = target.broker.coordinators.group
    for classic in coordinator.groups:
        if classic.group_id == name:
            return _classic_group(target.broker, classic)
    for consumer in coordinator.consumer_groups:
        if consumer.group_id == name:
            return _consumer_group(target.broker, consumer)
    for share in coordinator.share_groups:
        if share.group_id == name:
            return _share_group(target.broker, share)
    for streams in coordinator.streams_groups:
        if streams.group_id == name:
            return _streams_group(target.broker, streams)
    return InspectedGroup(name)


def _classic_group(broker: Broker, group: ClassicGroup) -> InspectedGroup:
    offsets = _offsets(group)
    return InspectedGroup(
        group.group_id,
        "classic",
        group.state.value,
        group.protocol_name or "",
        group.generation_id,
        group.leader_id,
        tuple(
            InspectedMember(
                member.member_id,
                member.client_id,
                member.group_instance_id,
                member.client_host,
                _assigned(group, member.assignment),
            )
            for member in group.members.values()
        ),
        offsets,
        _ends(broker, offsets),
    )


def _assigned(group: ClassicGroup, assignment: bytes) -> tuple[TopicPartition, ...]:
    """The partitions of a member's assignment; none where it is in words of the members' own."""
    from ...coordinator.group.consumer_protocol import CONSUMER_PROTOCOL_TYPE
    from ...protocol.errors import ProtocolError
    from ...protocol.internal import find_message
    from ...protocol.internal.versioned import decode_versioned

    if group.protocol_type != CONSUMER_PROTOCOL_TYPE or not assignment:
        return ()
    message = find_message("ConsumerProtocolAssignment")
    try:
        decoded, _ = decode_versioned(message, assignment, newer_as_newest=True)
    except ProtocolError:
        return ()
    return tuple(
        TopicPartition(entry.topic, number)
        for entry in decoded.assigned_partitions
        for number in sorted(entry.partitions)
    )


def _consumer_group(broker: Broker, group: ConsumerGroup) -> InspectedGroup:
    image = group.replicated()
    offsets = _offsets(group)
    return InspectedGroup(
        group.group_id,
        "consumer",
        image.state.value,
        image.preferred_assignor or "",
        image.epoch,
        None,
        tuple(
            InspectedMember(
                member.member_id,
                member.client_id,
                member.instance_id,
                member.client_host,
                _owned(broker, member.assigned_partitions),
            )
            for member in image.members.values()
        ),
        offsets,
        _ends(broker, offsets),
    )


def _share_group(broker: Broker, group: ShareGroup) -> InspectedGroup:
    image = group.replicated()
    return InspectedGroup(
        group.group_id,
        "share",
        image.state.value,
        "simple",
        image.epoch,
        None,
        tuple(
            InspectedMember(
                member.member_id,
                member.client_id,
                None,
                member.client_host,
                _owned(broker, member.assigned),
            )
            for member in image.members.values()
        ),
    )


def _streams_group(broker: Broker, group: StreamsGroup) -> InspectedGroup:
    """A group with what its members' active tasks read."""
    image = group.replicated()
    offsets = _offsets(group)
    cache = broker.metadata_cache
    members = []
    for member in image.members.values():
        owned = []
        for subtopology_id, numbers in sorted(member.assigned.without_epochs().active.items()):
            topology = image.topology
            subtopology = None if topology is None else topology.subtopologies.get(subtopology_id)
            for topic in () if subtopology is None else subtopology.sources:
                count = cache.partition_count(topic) or 0
                owned += [TopicPartition(topic, each) for each in sorted(numbers) if each < count]
        members.append(
            InspectedMember(
                member.member_id,
                member.client_id,
                member.instance_id,
                member.client_host,
                tuple(owned),
            )
        )
    return InspectedGroup(
        group.group_id,
        "streams",
        image.state.value,
        "sticky",
        image.epoch,
        None,
        tuple(members),
        offsets,
        _ends(broker, offsets),
    )


def _owned(broker: Broker, owned: OwnedPartitions | ShareAssignment) -> tuple[TopicPartition, ...]:
    names = broker.metadata_cache.snapshot.topic_names
    return tuple(
        TopicPartition(names[topic_id], number)
        for topic_id, numbers in owned.items()
        if topic_id in names
        for number in sorted(numbers)
    )


def _offsets(group: ClassicGroup | ConsumerGroup | StreamsGroup) -> dict[TopicPartition, int]:
    return {
        TopicPartition(topic, partition): committed.offset
        for topic, partition, committed in group.offsets
    }


def _ends(broker: Broker, offsets: dict[TopicPartition, int]) -> dict[TopicPartition, int]:
    """How far readers can go in partitions; 0 where the broker has no replica."""
    hosted = {each: broker.replica_manager.get_partition(each) for each in offsets}
    return {
        topic_partition: 0 if found is None else found.high_watermark
        for topic_partition, found in hosted.items()
    }


@verb
def share_partitions(target: ControlTarget, group: str) -> list[InspectedSharePartition]:
    """What a share group has of each partition, as far as this broker knows.

    The leader of a partition knows it while members fetch from it, and the share coordinator what
    is stored of it.
    """
    coordinators = target.broker.coordinators
    names = target.broker.metadata_cache.snapshot.topic_names
    loaded = {each.key: each.records for each in coordinators.share_partitions.led if each.records}
    found = []
    for key in {*loaded, *coordinators.share.keys()}:
        if key.group_id == group and key.topic_id in names:
            topic_partition = TopicPartition(names[key.topic_id], key.partition)
            records = loaded.get(key) or _stored(coordinators.share.state(key))
            found.append(
                InspectedSharePartition(
                    *topic_partition,
                    records.start_offset,
                    _readable_end(target.broker, group, topic_partition),
                    key in loaded,
                    tuple(
                        InspectedRecords(
                            first, last, state.name.capitalize(), count, member or None
                        )
                        for first, last, state, count, member in records.standings()
                    ),
                )
            )
    return sorted(found)


def _stored(state: ShareState) -> SharePartition:
    from ...broker.share.share_partition import SharePartition

    return SharePartition(state.start_offset, state.batches)


def _readable_end(broker: Broker, group: str, topic_partition: TopicPartition) -> int:
    """How far a share group can read; -1 where another broker leads the partition."""
    hosted = broker.replica_manager.get_partition(topic_partition)
    if hosted is None or not hosted.is_leader:
        return UNKNOWN
    return hosted.readable_end(broker.coordinators.share_partitions.isolation(group))


# -- metrics of clients ---------------------------------------------------------------------------


@verb
def client_metrics(target: ControlTarget) -> list[InspectedClientMetrics]:
    """The clients that have got a subscription from this broker, and what they pushed to it."""
    from ...runtime.rng import uuid_to_text

    return [
        InspectedClientMetrics(
            uuid_to_text(client.id),
            client.attributes["client_id"],
            client.attributes["client_software_name"],
            client.attributes["client_software_version"],
            tuple(sorted(client.requested.metrics)),
            client.requested.interval_ms,
            tuple(
                InspectedMetric(name, dict(labels), series.value)
                for (name, labels), series in client.series.items()
            ),
        )
        for client in target.broker.context.client_metrics.clients()
    ]


# -- transactions ---------------------------------------------------------------------------------


@verb
def transactions(target: ControlTarget) -> list[InspectedTransaction]:
    """The transactional ids that the broker coordinates, in order."""
    return [
        InspectedTransaction(
            known.name,
            known.transaction.state.shown,
            known.transaction.producer_id,
            known.transaction.producer_epoch,
            known.transaction.timeout_ms / 1000,
            known.transaction.start_ms / 1000 if known.transaction.start_ms >= 0 else None,
            tuple(TopicPartition(*each) for each in sorted(known.transaction.partitions)),
        )
        for known in sorted(target.broker.coordinators.transaction.ids, key=lambda each: each.name)
    ]


@verb
def coordinates_group(target: ControlTarget, group: str) -> bool:
    """Whether this broker coordinates a group: it leads the group's partition."""
    number = target.broker.coordinators.group.partition_for(group)
    return _partition(target.broker, CONSUMER_OFFSETS, number).is_leader


@verb
def coordinates_transactions(target: ControlTarget, transactional_id: str) -> bool:
    """Whether this broker coordinates a transactional id."""
    number = target.broker.coordinators.transaction.partition_for(transactional_id)
    return _partition(target.broker, TRANSACTION_STATE, number).is_leader
