"""A plain producer: one batch for one partition at a time, sent until it is in the log.

No buffering, no partitioner, no task of its own: the caller says which records make up a batch and
where it goes. `Producer` is the one that accumulates. What is retried, and
that stale metadata is refreshed meanwhile, is as in Kafka's `Sender`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from ...common.errors import ErrorCode, KafkaError
from ...common.sentinels import ACKS_ALL, NO_OFFSET, ZERO_UUID
from ...protocol import messages
from ...protocol.compression.codecs import Compression
from ...protocol.records.builder import RecordToBuild, build_batch
from ..client import KafkaClient
from ..error_kinds import RETRIABLE_ERRORS, error_name, error_of
from ..errors import DisconnectedError, PeerProtocolError
from ..metadata.cluster import Node
from ..metadata.metadata import LeaderAndEpoch
from ..network.attempts import Attempts
from .producer_ids import ProducerIds, Sequence

DELIVERY_TIMEOUT_MS = 120_000
TOPIC_IDS_FROM = 13
"""From this version on Produce names topics by their ids."""

WITHOUT_SEQUENCE = Sequence(-1, -1, -1)


class ProduceResult(NamedTuple):
    """Where a batch is in the log.

    Attributes:
        base_offset: of its first record; -1 with acks=0, or for one that was there already.
        log_append_time_ms: when the broker appended it, if the topic stamps that; else -1.
        log_start_offset: of the partition; -1 from brokers that do not say.
    """

    base_offset: int = NO_OFFSET
    log_append_time_ms: int = -1
    log_start_offset: int = NO_OFFSET


class _Batch(NamedTuple):
    topic: str
    partition: int
    data: bytearray


class BatchProducer:
    """Sends batches through a client, each one when `send` is called.

    Args:
        client: is open, and stays so.
        acks: -1: all replicas in sync have it; 1: the leader has; 0: nobody says.
        compression: of the batches.
        idempotent: whether a batch that had to be sent again may not be there twice.
        delivery_timeout_ms: how long a batch is tried to be sent (`delivery.timeout.ms`).

    Raises:
        ValueError: acks is none of these, or does not go with idempotence.
    """

    def __init__(
        self,
        client: KafkaClient,
        *,
        acks: int = ACKS_ALL,
        compression: Compression = Compression.NONE,
        idempotent: bool = False,
        delivery_timeout_ms: int = DELIVERY_TIMEOUT_MS,
    ) -> None:
        if acks not in (-1, 0, 1):
            raise ValueError(f"acks={acks} is none of -1 (all), 0 and 1")
        if idempotent and acks != ACKS_ALL:
            raise ValueError(f"idempotent=True needs acks=-1 (all), not {acks}")
        self._client = client
        self._acks = acks
        self._compression = compression
        self._delivery_timeout_ms = delivery_timeout_ms
        self._ids = ProducerIds(client) if idempotent else None

    async def send(
        self, topic: str, partition: int, records: Iterable[RecordToBuild]
    ) -> ProduceResult:
        """Append records to a partition, as one batch.

        An idempotent producer sends the batches of a partition one after the other; otherwise
        several tasks may send at once. After cancellation nobody knows whether the batch is in
        the log.

        Args:
            topic: its name; the broker may create it.
            partition: its index.
            records: key, value, timestamp in milliseconds and headers of each.

        Raises:
            KafkaError: the broker refused it, or still did at the end of the time.
            DisconnectedError: the time is over, and nobody knows whether it is in the log.
            PeerProtocolError: the broker's answer is none, and nobody knows likewise.
            MetadataTimeoutError: topic, partition or leader were not there in time.
            ClientError: as `KafkaClient.wait_for_metadata`.
            ValueError: there are no records.
        """
        to_send = list(records)
        await self._client.wait_for_topic(topic, partition)
        if self._ids is None:
            batch = self._build(topic, partition, to_send, WITHOUT_SEQUENCE)
            return await self._deliver(batch)
        async with self._ids.sequence(topic, partition, len(to_send)) as sequence:
            batch = self._build(topic, partition, to_send, sequence)
            return await self._deliver(batch)

    def _build(
        self, topic: str, partition: int, records: list[RecordToBuild], sequence: Sequence
    ) -> _Batch:
        data = build_batch(
            records,
            compression=self._compression,
            producer_id=sequence.producer_id,
            producer_epoch=sequence.producer_epoch,
            base_sequence=sequence.next_sequence,
        )
        return _Batch(topic, partition, data)

    async def _deliver(self, batch: _Batch) -> ProduceResult:
        """Send a batch until the broker has it or the time is over."""
        attempts = self._client.attempts(self._delivery_timeout_ms)
        while True:
            leader = await self._client.wait_for_leader(
                batch.topic, batch.partition, attempts.remaining_ms
            )
            try:
                return await self._attempt(batch, leader, attempts)
            except PeerProtocolError:
                raise  # A broker that answers nonsense will not do better the next time.
            except DisconnectedError as failure:
                await attempts.pause(failure)
            except KafkaError as failure:
                if failure.code not in RETRIABLE_ERRORS:
                    raise
                await attempts.pause(failure)

    async def _attempt(self, batch: _Batch, leader: Node, attempts: Attempts) -> ProduceResult:
        client = self._client
        topic = client.cluster.topic(batch.topic)
        topic_id = ZERO_UUID if topic is None else topic.topic_id
        request = messages.ProduceRequest(
            acks=self._acks,
            timeout_ms=client.settings.request_timeout_ms,
            topic_data=[
                messages.ProduceRequest.TopicProduceData(
                    name=batch.topic,
                    topic_id=topic_id,
                    partition_data=[
                        messages.ProduceRequest.PartitionProduceData(
                            index=batch.partition, records=memoryview(batch.data)
                        )
                    ],
                )
            ],
        )
        response = await client.network.send(
            leader,
            request,
            version_max=None if any(topic_id) else TOPIC_IDS_FROM - 1,
            timeout_ms=min(client.settings.request_timeout_ms, max(attempts.remaining_ms, 1)),
            expect_answer=self._acks != 0,
        )
        return ProduceResult() if response is None else self._result(batch, response)

    def _result(self, batch: _Batch, response: messages.ProduceResponse) -> ProduceResult:
        answers = [answer for topic in response.responses for answer in topic.partition_responses]
        if len(answers) != 1 or answers[0].index != batch.partition:
            raise PeerProtocolError(
                f"a Produce for partition {batch.partition} was answered for "
                f"{[answer.index for answer in answers]}"
            )
        answer = answers[0]
        if answer.error_code in (ErrorCode.NONE, ErrorCode.DUPLICATE_SEQUENCE_NUMBER):
            return ProduceResult(
                answer.base_offset, answer.log_append_time_ms, answer.log_start_offset
            )
        leader = answer.current_leader
        self._client.partition_error(
            batch.topic,
            batch.partition,
            answer.error_code,
            LeaderAndEpoch(leader.leader_id, leader.leader_epoch),
            [
                Node(node.node_id, node.host, node.port, node.rack)
                for node in response.node_endpoints
            ],
        )
        where = f"partition {batch.partition} of topic {batch.topic!r}"
        detail = answer.error_message or error_name(answer.error_code)
        raise KafkaError(error_of(answer.error_code), f"{where}: {detail}")
