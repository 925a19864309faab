"""Idempotent producers: what they were acknowledged is there, once, and in their order."""

from __future__ import annotations

from contextlib import suppress

from ....client.errors import ClientError, ConnectError
from ....common.errors import ErrorCode
from ....common.topic_partition import TopicPartition
from ....protocol import messages
from ....protocol.records import build_batch
from ..checkers.invariants import InvariantBroken
from ..checkers.sequence_checker import SequenceChecker
from .client import SimulatedClient, SimulatedCluster

RECORDS_MAX = 3
PRODUCE_TIMEOUT_MS = 3_000
ATTEMPTS_MAX = 12
"""So often a batch is sent; then its fate stays unknown, and another epoch begins."""

RETRIABLE = frozenset(
    {
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.NOT_ENOUGH_REPLICAS,
        ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
        ErrorCode.REQUEST_TIMED_OUT,
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.LEADER_NOT_AVAILABLE,
    }
)


class Producer(SimulatedClient):
    """An idempotent producer with one request under way.

    Args:
        cluster: the cluster.
        name: its name.
        checker: is told what was sent, and what was acknowledged.
    """

    def __init__(self, cluster: SimulatedCluster, name: str, checker: SequenceChecker) -> None:
        super().__init__(cluster, name)
        self._checker = checker
        self._sent = 0
        self._producer_id = -1
        self._epoch = -1
        self._sequences: dict[tuple[bytes, int], int] = {}

    async def act(self) -> None:
        """Produce a batch, until it is acknowledged or given up."""
        if self._producer_id < 0:
            await self._begin()
        await self.refresh()
        partition = self.led()
        topic_id = self.leaders[partition].topic_id
        values = []
        for _ in range(self.random.randint(1, RECORDS_MAX)):
            self._sent += 1
            values.append(f"{self.name}:{self._sent}".encode())
        await self.produce(partition, topic_id, values)

    async def _begin(self) -> None:
        """Get a producer id, or another epoch. Raises ClientError."""
        request = messages.InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=0)
        answer = await self.request(self.any_broker(), request)
        if answer.error_code:
            raise ConnectError(ErrorCode(answer.error_code).name)
        self._producer_id, self._epoch = answer.producer_id, answer.producer_epoch
        self._sequences.clear()

    async def produce(
        self, partition: TopicPartition, topic_id: bytes, values: list[bytes]
    ) -> None:
        """Send a batch again and again until it is known what became of it."""
        key = (topic_id, partition.partition)
        sequence = self._sequences.get(key, 0)
        batch = build_batch(
            [(None, value, self.now_ms, ()) for value in values],
            producer_id=self._producer_id,
            producer_epoch=self._epoch,
            base_sequence=sequence,
        )
        data = messages.ProduceRequest.PartitionProduceData(
            index=partition.partition, records=bytes(batch)
        )
        topic = messages.ProduceRequest.TopicProduceData(
            name=partition.topic, topic_id=topic_id, partition_data=[data]
        )
        request = messages.ProduceRequest(
            acks=-1, timeout_ms=PRODUCE_TIMEOUT_MS, topic_data=[topic]
        )
        self._checker.sent(key, f"{self.name} as {self._producer_id}", values)
        for _ in range(ATTEMPTS_MAX):
            leader = self.leaders.get(partition)
            if leader is not None and leader.topic_id != topic_id:
                break  # the topic was made anew
            if leader is not None:
                try:
                    answer = await self.request(leader.broker_id, request)
                except ClientError:
                    pass
                else:
                    (answered,) = answer.responses[0].partition_responses
                    code = ErrorCode(answered.error_code)
                    if self._is_settled(key, partition, values, code, answered.base_offset):
                        self._sequences[key] = sequence + len(values)
                        return
                    if code not in RETRIABLE:
                        break
            await self.pause()
            with suppress(ClientError):
                await self.refresh()
        self._producer_id = -1

    def _is_settled(
        self,
        key: tuple[bytes, int],
        partition: TopicPartition,
        values: list[bytes],
        code: ErrorCode,
        base_offset: int,
    ) -> bool:
        if code is ErrorCode.NONE:
            self._checker.acknowledged(key, values)
            if base_offset >= 0:
                note = self.cluster.log_checker.note_acknowledged
                note(key[0], partition, base_offset, values)
            return True
        if code is ErrorCode.DUPLICATE_SEQUENCE_NUMBER:
            self._checker.acknowledged(key, values)
            return True
        if code is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER and not self._checker.is_lossy(key):
            raise InvariantBroken(
                f"{self.name} sends {values} to {partition} in order, and is refused"
            )
        return False
