"""Markers: the ends of transactions, written into the partitions that this broker leads.

One is a control batch with acks=all in each partition of the transaction. Where it is written
into `__consumer_offsets`, what the transaction would commit there becomes committed, or is
forgotten. Source: Kafka's KafkaApis.handleWriteTxnMarkersRequest, KIP-98.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import TYPE_CHECKING, NamedTuple

from ...common.errors import ErrorCode
from ...common.internal_topics import CONSUMER_OFFSETS
from ...common.sentinels import ACKS_ALL
from ...common.topic_partition import TopicPartition
from ...protocol.records.builder import build_batch
from ...protocol.records.control import CONTROL_KEY, END_TRANSACTION_VALUE, ControlRecordType
from ...replication.append import PartitionResponse
from ...replication.replica_manager import ReplicaManager
from ...runtime.clock import Clock
from ...storage.log.append_origin import AppendOrigin

if TYPE_CHECKING:
    from ...coordinator.group.coordinator import GroupCoordinator


MarkerErrors = dict[TopicPartition, ErrorCode]
MarkersDone = Callable[[MarkerErrors], None]


class Marker(NamedTuple):
    """The end of a transaction in some partitions.

    Attributes:
        coordinator_epoch: of the transaction's coordinator; an older one is fenced.
        committed: whether its records count.
        transaction_version: decides how the producer's epoch is checked (KIP-890).
    """

    producer_id: int
    producer_epoch: int
    coordinator_epoch: int
    committed: bool
    partitions: Collection[TopicPartition]
    transaction_version: int = 0


class MarkerWriter:
    """Writes markers into the partitions that this broker leads.

    Args:
        timeout_ms: how long an append may wait for the replicas in sync.
        clock: gives the markers their timestamps.
        replica_manager: the partitions.
        group_coordinator: makes their offsets count, or forgets them.
    """

    def __init__(
        self,
        timeout_ms: Callable[[], int],
        clock: Clock,
        replica_manager: ReplicaManager,
        group_coordinator: Callable[[], GroupCoordinator],
    ) -> None:
        self._timeout_ms = timeout_ms
        self._clock = clock
        self._replica_manager = replica_manager
        self._group_coordinator = group_coordinator

    def write(
        self,
        marker: Marker,
        on_complete: MarkersDone,
        origin: AppendOrigin = AppendOrigin.COORDINATOR,
    ) -> None:
        """Write the marker; a flush has to follow, in or after which `on_complete` is called once.

        Each partition gets an error of its own: NONE, UNKNOWN_TOPIC_OR_PARTITION if it is not
        here, NOT_LEADER_OR_FOLLOWER if another broker leads it or its groups are not loaded yet,
        or what the append comes to.
        """
        errors: MarkerErrors = {}
        entries: dict[TopicPartition, memoryview] = {}
        batch = _control_batch(marker, self._clock.now_ms())
        for topic_partition in marker.partitions:
            topic, index = topic_partition
            if self._replica_manager.get_partition(topic_partition) is None:
                errors[topic_partition] = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            elif topic == CONSUMER_OFFSETS and not self._group_coordinator().is_loaded(index):
                errors[topic_partition] = ErrorCode.NOT_LEADER_OR_FOLLOWER
            else:
                entries[topic_partition] = memoryview(bytearray(batch))

        def appended(results: dict[TopicPartition, PartitionResponse]) -> None:
            for topic_partition, result in results.items():
                errors[topic_partition] = result.error
                if topic_partition.topic == CONSUMER_OFFSETS and not result.error:
                    self._group_coordinator().complete_transaction(
                        topic_partition.partition, marker.producer_id, committed=marker.committed
                    )
            on_complete(errors)

        self._replica_manager.append_records(
            timeout_ms=self._timeout_ms(),
            required_acks=ACKS_ALL,
            internal_topics_allowed=True,
            origin=origin,
            entries=entries,
            on_complete=appended,
            transaction_version=marker.transaction_version,
        )


def _control_batch(marker: Marker, now_ms: int) -> bytearray:
    kind = ControlRecordType.COMMIT if marker.committed else ControlRecordType.ABORT
    key = CONTROL_KEY.pack(0, kind)
    value = END_TRANSACTION_VALUE.pack(0, marker.coordinator_epoch)
    return build_batch(
        [(key, value, now_ms, ())],
        producer_id=marker.producer_id,
        producer_epoch=marker.producer_epoch,
        transactional=True,
        control=True,
    )
