"""Producers, consumers and an administrator of a replication run."""

from __future__ import annotations

from collections.abc import Callable

from ....common.errors import ErrorCode
from ....common.topic_partition import TopicPartition
from ....protocol.records import build_batch, iter_batches, iter_records
from ....replication.append import PartitionResponse
from ....replication.partition.partition import FetchIsolation
from ....replication.read.fetch import FetchParams, FetchPartition, FetchResults
from ....runtime.steps import Steps
from ....storage.io.file_slice import FileSlice
from ....storage.log.append_origin import AppendOrigin
from .broker import ReplicatingBroker
from .cluster import ReplicatedCluster
from .controller import TOPIC_ID
from .invariants import InvariantBroken

PRODUCE_TIMEOUT_MS = 400
PRODUCED_RECORDS_MAX = 3


class ReplicationClients:
    """Whoever uses the cluster; each goes to any broker that thinks it leads.

    Args:
        cluster: the cluster.
    """

    def __init__(self, cluster: ReplicatedCluster) -> None:
        self._cluster = cluster
        self._random = cluster.random
        self._sent = 0

    def ask(self) -> None:
        """One of them does something."""
        dice = self._random.random()
        if dice < 0.7:
            self.produce()
        elif dice < 0.97 or not self._cluster.deletes_records:
            self._consume()
        else:
            self._delete_records()

    def _leader(self) -> tuple[ReplicatingBroker, TopicPartition] | None:
        """Somebody who thinks to lead something; there may be two for the same."""
        leading = [
            (broker, each)
            for broker in self._cluster.brokers
            if broker.alive and not broker.frozen
            for each in self._cluster.partitions
            if broker.leads(each)
        ]
        return self._random.choice(leading) if leading else None

    def produce(self) -> None:
        """One batch, or two before the first is written; most want all acks."""
        found = self._leader()
        if found is None:
            return
        broker, partition = found

        def append() -> None:
            for _ in range(2 if self._random.random() < 0.2 else 1):
                acks = -1 if self._random.random() < 0.8 else 1
                self._append(broker, partition, acks)

        self._cluster.act(broker, append)

    def produce_to(self, partition: TopicPartition) -> None:
        """One batch that must be acknowledged, since nothing is wrong."""
        broker = next(each for each in self._cluster.brokers if each.leads(partition))
        self._cluster.invariants.unanswered += 1

        def answered(response: PartitionResponse) -> None:
            if response.error:
                raise InvariantBroken(f"at rest {partition} refuses records: {response}")
            self._cluster.invariants.unanswered -= 1

        self._cluster.act(broker, lambda: self._append(broker, partition, -1, answered))

    def _append(
        self,
        broker: ReplicatingBroker,
        partition: TopicPartition,
        acks: int,
        answered: Callable[[PartitionResponse], None] = lambda response: None,
    ) -> None:
        values = []
        for _ in range(self._random.randint(1, PRODUCED_RECORDS_MAX)):
            self._sent += 1
            values.append(b"%d" % self._sent)
        now_ms = self._cluster.clock.now_ms()
        batch = build_batch([(None, value, now_ms, ()) for value in values])

        def on_complete(answer: dict[TopicPartition, PartitionResponse]) -> None:
            response = answer[partition]
            if acks == -1 and response.error is ErrorCode.NONE:
                self._cluster.invariants.note_acknowledged(partition, response.base_offset, values)
            answered(response)

        broker.replica_manager.append_records(
            timeout_ms=PRODUCE_TIMEOUT_MS,
            required_acks=acks,
            internal_topics_allowed=False,
            origin=AppendOrigin.CLIENT,
            entries={partition: memoryview(bytearray(batch))},
            on_complete=on_complete,
        )

    def _consume(self) -> None:
        """Read from somewhere on, as far as the high watermark goes."""
        found = self._leader()
        if found is None:
            return
        broker, partition = found
        hosted = broker.partitions[partition]
        offset = self._random.randint(hosted.log_start_offset, hosted.high_watermark)
        params = FetchParams(0, 1, 1 << 20, FetchIsolation.HIGH_WATERMARK)
        requested = FetchPartition(partition, TOPIC_ID, offset, 1 << 20)

        def on_complete(results: FetchResults | Steps[FetchResults]) -> None:
            assert isinstance(results, list), "one partition is read at once"
            for _, data in results:
                raw = data.records.read() if isinstance(data.records, FileSlice) else data.records
                for batch in iter_batches(raw):
                    for record in iter_records(batch):
                        if record.offset >= offset:
                            note = self._cluster.invariants.note_consumed
                            note(partition, record.offset, record.value or b"")

        fetch = broker.replica_manager.fetch_messages
        self._cluster.act(broker, lambda: fetch(params, [requested], on_complete))

    def _delete_records(self) -> None:
        """Have the oldest records deleted on all replicas (KIP-107)."""
        found = self._leader()
        if found is None:
            return
        broker, partition = found
        hosted = broker.partitions[partition]
        offset = self._random.randint(hosted.log_start_offset, hosted.high_watermark)
        self._cluster.trace(f"records of {partition} before {offset} are to be deleted")
        self._cluster.invariants.note_deletion(partition, offset)
        delete = broker.replica_manager.delete_records
        self._cluster.act(
            broker, lambda: delete({partition: offset}, PRODUCE_TIMEOUT_MS, lambda results: None)
        )
