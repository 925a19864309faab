"""Looking into a broker: its cluster, topics, groups, transactions and producers.

All of it is what the broker goes by at this moment, and nothing here changes it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...common.errors import KafkaError
from ...common.internal_topics import CONSUMER_OFFSETS, TRANSACTION_STATE
from ...common.topic_partition import TopicPartition
from ...coordinator.group.classic.group import Group
from ...coordinator.group.consumer.group import ConsumerGroup
from ...coordinator.group.subscription import CONSUMER_PROTOCOL_TYPE
from ...protocol.errors import ProtocolError
from ...protocol.internal import find_message
from ...protocol.internal.versioned import decode_versioned
from ...runtime.rng import uuid_to_text
from ...storage.io.file_slice import FileSlice
from ..control.verbs import VerbError

if TYPE_CHECKING:
    from ...broker.broker import Broker
    from ...coordinator.group.consumer.member import OwnedPartitions
    from ...replication.partition.partition import Partition
    from ..control.verbs import Controlled

READ_BYTES = 4 << 20
"""How much of a partition is answered at once."""


# -- the cluster and its topics -----------------------------------------------------------------


def cluster(target: Controlled) -> dict[str, Any]:
    """Who is who, as this broker knows."""
    broker = target.broker
    snapshot = broker.metadata_cache.snapshot
    return {
        "broker_id": broker.broker_id,
        "cluster_id": broker.cluster_id,
        "controller_id": snapshot.controller_id,
        "is_controller": broker.controller.is_active,
        "alive": sorted(snapshot.alive_brokers),
    }


def topics(target: Controlled) -> list[str]:
    """The names of all topics, Kafka's own among them."""
    return sorted(target.broker.metadata_cache.get_all_topics())


def topic(target: Controlled, name: str) -> dict[str, Any]:
    """A topic and all of its partitions, as far as this broker knows them."""
    snapshot = target.broker.metadata_cache.snapshot
    partitions = snapshot.partition_states.get(name)
    if partitions is None:
        raise VerbError(f"there is no topic {name}")
    return {
        "name": name,
        "topic_id": uuid_to_text(snapshot.topic_ids[name]),
        "config": dict(snapshot.topic_configs.get(name, {})),
        "partitions": [partition(target, name, number) for number in partitions],
    }


def partition(target: Controlled, topic: str, partition: int) -> dict[str, Any]:
    """What this broker knows of a partition; offsets only where it has a replica."""
    broker = target.broker
    state = broker.metadata_cache.get_partition_info(topic, partition)
    hosted = broker.replica_manager.get_partition(TopicPartition(topic, partition))
    leads = hosted is not None and hosted.is_leader
    known: dict[str, Any] = {
        "partition": partition,
        "is_leader": leads,
        "known_leader": -1 if state is None else state.leader,
        "leader_epoch": -1 if state is None else state.leader_epoch,
        "replicas": [] if state is None else list(state.replicas),
        "isr": [] if state is None else list(state.isr),
    }
    if hosted is not None:
        known |= _offsets(hosted)
        known["leader_epoch"] = hosted.leader_epoch
        if leads:
            known["isr"] = list(hosted.isr)
    return known


def _offsets(hosted: Partition) -> dict[str, int]:
    return {
        "log_start_offset": hosted.log_start_offset,
        "log_end_offset": hosted.log_end_offset,
        "high_watermark": hosted.high_watermark,
        "last_stable_offset": min(hosted.last_stable_offset, hosted.high_watermark),
        "size": hosted.log.size,
    }


def records(
    target: Controlled, topic: str, partition: int, offset: int, committed_only: bool = False
) -> dict[str, Any]:
    """Batches of a partition from an offset on, as they lie in the log.

    Args:
        offset: where to begin; before the log's start it is the log's start.
        committed_only: whether to stop where the last transaction is open, and to tell which
            were aborted.

    Returns:
        `batches`, the `end` that readers see, and `aborted` pairs of producer id and first
        offset.
    """
    hosted = target.broker.replica_manager.get_partition(TopicPartition(topic, partition))
    if hosted is None:
        raise VerbError(f"broker {target.broker.broker_id} has no replica of {topic}-{partition}")
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
    return {"batches": data, "start": start, "end": end, "aborted": aborted}


def producers(target: Controlled, topic: str, partition: int) -> list[dict[str, int]]:
    """The producers that a partition remembers."""
    hosted = target.broker.replica_manager.get_partition(TopicPartition(topic, partition))
    if hosted is None:
        raise VerbError(f"broker {target.broker.broker_id} has no replica of {topic}-{partition}")
    return [
        {
            "producer_id": producer_id,
            "epoch": state.producer_epoch,
            "last_sequence": state.last_sequence,
            "last_timestamp": state.last_timestamp,
            "transaction_start": state.current_txn_first_offset,
        }
        for producer_id, state in hosted.log.producers.published.items()
    ]


# -- groups -------------------------------------------------------------------------------------


def groups(target: Controlled) -> list[str]:
    """The ids of the groups that this broker coordinates."""
    coordinator = target.broker.group_coordinator
    names = [each.group_id for each in coordinator.groups]
    return sorted(names + [each.group_id for each in coordinator.consumer_groups])


def group(target: Controlled, name: str) -> dict[str, Any] | None:
    """A group that this broker coordinates; None: it does not, or knows of none."""
    coordinator = target.broker.group_coordinator
    for classic in coordinator.groups:
        if classic.group_id == name:
            return _classic(classic)
    for consumer in coordinator.consumer_groups:
        if consumer.group_id == name:
            return _consumer(target.broker, consumer)
    return None


def _classic(group: Group) -> dict[str, Any]:
    return {
        "name": group.group_id,
        "kind": "classic",
        "state": group.state.value,
        "protocol": group.protocol_name or "",
        "generation": group.generation_id,
        "leader": group.leader_id,
        "offsets": _positions(group),
        "members": [
            {
                "member_id": member.member_id,
                "client_id": member.client_id,
                "instance_id": member.group_instance_id,
                "host": member.client_host,
                "partitions": _assigned(group, member.assignment),
            }
            for member in group.members.values()
        ],
    }


def _assigned(group: Group, assignment: bytes) -> list[tuple[str, int]]:
    """The partitions of a member's assignment; none where it is in words of the members' own."""
    if group.protocol_type != CONSUMER_PROTOCOL_TYPE or not assignment:
        return []
    message = find_message("ConsumerProtocolAssignment")
    try:
        decoded, _ = decode_versioned(message, assignment, newer_as_newest=True)
    except ProtocolError:
        return []
    return [
        (entry.topic, number)
        for entry in decoded.assigned_partitions
        for number in sorted(entry.partitions)
    ]


def _consumer(broker: Broker, group: ConsumerGroup) -> dict[str, Any]:
    image = group.replicated()
    return {
        "name": group.group_id,
        "kind": "consumer",
        "state": image.state.value,
        "protocol": image.preferred_assignor or "",
        "generation": image.epoch,
        "leader": None,
        "offsets": _positions(group),
        "members": [
            {
                "member_id": member.member_id,
                "client_id": member.client_id,
                "instance_id": member.instance_id,
                "host": member.client_host,
                "partitions": _owned(broker, member.assigned_partitions),
            }
            for member in image.members.values()
        ],
    }


def _owned(broker: Broker, owned: OwnedPartitions) -> list[tuple[str, int]]:
    names = broker.metadata_cache.snapshot.topic_names
    return [
        (names[topic_id], number)
        for topic_id, numbers in owned.items()
        if topic_id in names
        for number in sorted(numbers)
    ]


def _positions(group: Group | ConsumerGroup) -> list[tuple[str, int, int, str]]:
    return [
        (topic, partition, position.offset, position.metadata)
        for topic, partition, position in group.offsets
    ]


# -- transactions ---------------------------------------------------------------------------------


def transactions(target: Controlled) -> list[dict[str, Any]]:
    """The transactional ids that this broker coordinates."""
    return [
        {
            "transactional_id": known.name,
            "state": known.transaction.state.shown,
            "producer_id": known.transaction.producer_id,
            "epoch": known.transaction.producer_epoch,
            "timeout_ms": known.transaction.timeout_ms,
            "start_ms": known.transaction.start_ms,
            "partitions": sorted(known.transaction.partitions),
        }
        for known in sorted(target.broker.transaction_coordinator.ids, key=lambda each: each.name)
    ]


def coordinates(target: Controlled, kind: str, key: str) -> bool:
    """Whether this broker coordinates a group, or a transactional id: it leads its partition."""
    broker = target.broker
    if kind == "group":
        name, number = CONSUMER_OFFSETS, broker.group_coordinator.partition_for(key)
    else:
        name, number = TRANSACTION_STATE, broker.transaction_coordinator.partition_for(key)
    hosted = broker.replica_manager.get_partition(TopicPartition(name, number))
    return hosted is not None and hosted.is_leader
