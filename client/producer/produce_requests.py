"""Produce requests through a `KafkaClient`: where `Sender` sends its batches."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

import trio

from ...common.errors import ErrorCode
from ...common.sentinels import ZERO_UUID
from ...protocol import messages
from ...protocol.api_keys import ApiKey
from ..client import KafkaClient
from ..errors import ClientError, DisconnectedError, PeerProtocolError, UnsupportedByBrokerError
from ..metadata.cluster import Node
from ..metadata.metadata import LeaderAndEpoch
from ..network.connection import Connection
from ..network.pipeline import InFlight
from .producer_batch import ProducerBatch
from .sender import NEVER, BatchAnswer
from .settings import ProducerSettings
from .transaction_manager import TransactionManager

TOPIC_IDS_FROM = 13
"""From this version on Produce names topics by their ids."""

FIRST_GENERATION_VERSION_MAX = 11
"""A later Produce of a transactional producer adds its partitions to the transaction (KIP-890)."""

FULL_MS = 10
"""A connection that is full of other requests is looked at again after so long."""


class BatchOutcomes(Protocol):
    """Who hears what became of batches."""

    def answered(self, batch: ProducerBatch, answer: BatchAnswer, now_ms: int) -> None:
        """A broker has answered for a batch."""

    def unanswered(self, batch: ProducerBatch, failure: Exception, now_ms: int) -> None:
        """The connection ended before the answer."""

    def unsendable(self, batch: ProducerBatch, failure: Exception) -> None:
        """The broker cannot take such a request."""


class _Sent(NamedTuple):
    """A request, while its answer is waited for."""

    node: Node
    version: int
    batches: Sequence[ProducerBatch]
    topic_ids: dict[str, bytes]


class ProduceRequests:
    """Sends batches in requests, in the order of the calls.

    Args:
        client: is open.
        settings: of the producer.
        transactions: says which version transactional requests may have.
        wake: is called when something came back.

    Attributes:
        outcomes: is told of answers; set before the first request.
    """

    outcomes: BatchOutcomes

    def __init__(
        self,
        client: KafkaClient,
        settings: ProducerSettings,
        transactions: TransactionManager,
        wake: Callable[[], None],
    ) -> None:
        self._client = client
        self._settings = settings
        self._transactions = transactions
        self._wake = wake

    def leader_of(self, topic: str, partition: int) -> int | None:
        """The node that leads a partition; None, and it is looked for, while nobody knows."""
        leader = self._client.metadata.current_leader(topic, partition)
        if leader is None:
            self._client.add_topic(topic)
            self._client.leader_unknown(topic)
            return None
        return leader.id

    def delay_ms(self, node_id: int, now_ms: int) -> int:
        """How long a node cannot be sent to."""
        network = self._client.network
        node = self._client.cluster.nodes.get(node_id)
        if node is None or network.nursery is None:
            return NEVER
        if network.free_connection(node) is not None:
            return 0
        busy_ms = network.busy_ms(node_id)
        if busy_ms is not None:
            return busy_ms
        return FULL_MS if network.states.is_ready(node_id, now_ms) else NEVER

    def send(self, node_id: int, batches: Sequence[ProducerBatch]) -> None:
        """Send batches in one request to a node that `delay_ms` says is free."""
        node = self._client.cluster.nodes[node_id]
        connection = self._client.network.free_connection(node)
        topic_ids = {batch.topic: self._topic_id(batch.topic) for batch in batches}
        try:
            if connection is None:
                raise DisconnectedError(f"node {node_id} takes no request")
            version = self._version(connection, topic_ids)
            sent = _Sent(node, version, batches, topic_ids)
            connection.request_nowait(
                self._request(sent),
                version,
                lambda in_flight: self._done(sent, in_flight),
                expect_answer=self._settings.acks != 0,
            )
        except UnsupportedByBrokerError as failure:
            for batch in batches:
                self.outcomes.unsendable(batch, failure)
        except (ClientError, trio.WouldBlock) as failure:
            self._unanswered(batches, failure)

    def _topic_id(self, topic: str) -> bytes:
        info = self._client.cluster.topic(topic)
        return ZERO_UUID if info is None else info.topic_id

    def _version(self, connection: Connection, topic_ids: dict[str, bytes]) -> int:
        version_max = None if all(map(any, topic_ids.values())) else TOPIC_IDS_FROM - 1
        if self._transactions.is_transactional and not self._transactions.is_second_generation:
            version_max = FIRST_GENERATION_VERSION_MAX
        return connection.versions.usable(ApiKey.PRODUCE, version_max=version_max)

    def _request(self, sent: _Sent) -> messages.ProduceRequest:
        make_topic = messages.ProduceRequest.TopicProduceData
        make_partition = messages.ProduceRequest.PartitionProduceData
        topics: dict[str, messages.ProduceRequest.TopicProduceData] = {}
        for batch in sent.batches:
            topic = topics.get(batch.topic)
            if topic is None:
                topic = topics[batch.topic] = make_topic(
                    name=batch.topic, topic_id=sent.topic_ids[batch.topic], partition_data=[]
                )
            topic.partition_data.append(
                make_partition(index=batch.partition, records=memoryview(batch.data))
            )
        return messages.ProduceRequest(
            transactional_id=self._settings.transactional_id,
            acks=self._settings.acks,
            timeout_ms=self._client.settings.request_timeout_ms,
            topic_data=list(topics.values()),
        )

    # --- Answers -----------------------------------------------------------------------------

    def _done(self, sent: _Sent, in_flight: InFlight) -> None:
        now_ms = self._client.clock.monotonic_ms()
        if in_flight.failure is not None:
            for batch in sent.batches:
                self._client.partition_error(
                    batch.topic, batch.partition, ErrorCode.NETWORK_EXCEPTION
                )
            self._unanswered(sent.batches, in_flight.failure)
        elif self._settings.acks == 0:
            for batch in sent.batches:
                self.outcomes.answered(batch, BatchAnswer(), now_ms)
        else:
            self._answered(sent, in_flight.answer, now_ms)
        self._wake()

    def _unanswered(self, batches: Sequence[ProducerBatch], failure: Exception) -> None:
        now_ms = self._client.clock.monotonic_ms()
        for batch in batches:
            self.outcomes.unanswered(batch, failure, now_ms)

    def _answered(self, sent: _Sent, response: messages.ProduceResponse, now_ms: int) -> None:
        self._client.network.note_throttling(
            sent.node.id, ApiKey.PRODUCE, sent.version, response.throttle_time_ms
        )
        names = {topic_id: name for name, topic_id in sent.topic_ids.items()}
        missing = {(batch.topic, batch.partition): batch for batch in sent.batches}
        for topic in response.responses:
            name = names.get(topic.topic_id) if sent.version >= TOPIC_IDS_FROM else topic.name
            for answer in topic.partition_responses:
                batch = None if name is None else missing.pop((name, answer.index), None)
                if batch is None:
                    continue
                self._note_partition_error(batch, answer, response)
                self.outcomes.answered(batch, _batch_answer(answer), now_ms)
        if missing:
            self._unanswered(
                list(missing.values()),
                PeerProtocolError(f"node {sent.node.id} left partitions out of its answer"),
            )

    def _note_partition_error(
        self,
        batch: ProducerBatch,
        answer: messages.ProduceResponse.PartitionProduceResponse,
        response: messages.ProduceResponse,
    ) -> None:
        if not answer.error_code:
            return
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


def _batch_answer(answer: messages.ProduceResponse.PartitionProduceResponse) -> BatchAnswer:
    message = answer.error_message
    for record in answer.record_errors[:1]:
        detail = record.batch_index_error_message or message or "it is invalid"
        message = f"record {record.batch_index} of the batch: {detail}"
    return BatchAnswer(answer.error_code, message, answer.base_offset, answer.log_append_time_ms)
