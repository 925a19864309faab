"""High watermarks of any partitions, wherever they are led.

Source: Kafka's NetworkPartitionMetadataClient.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Mapping
from typing import NamedTuple

from ...client.network.connection import Connection
from ...common.sentinels import CONSUMER_REPLICA_ID, LATEST_TIMESTAMP, NO_OFFSET
from ...common.topic_partition import TopicPartition
from ...config.broker_config import BrokerConfig
from ...metadata.metadata_cache import MetadataCache
from ...protocol import messages
from ...protocol.api_keys import ApiKey
from ...replication.replica_manager import ReplicaManager
from ...runtime.steps import Steps
from .broker_channel import BatchSender, BrokerChannels, ChannelTasks

VERSION = 6
"""Of ListOffsets, which brokers before KIP-1226 have, too."""

PARTITIONS_MAX = 1_000
"""Of one request."""

EndOffsetsCallback = Callable[[Mapping[TopicPartition, int | None]], None]


class Wanted(NamedTuple):
    """One partition whose end is looked for; `found` is called once, None: it is not known."""

    topic_partition: TopicPartition
    found: Callable[[TopicPartition, int | None], None]


class EndOffsets:
    """Looks the ends of partitions up: here at once, at other brokers by ListOffsets.

    Args:
        config: the broker's settings.
        replica_manager: the partitions that are led here.
        cache: says who leads the others.
        tasks: for the channels to the other brokers.
    """

    def __init__(
        self,
        config: BrokerConfig,
        replica_manager: ReplicaManager,
        cache: MetadataCache,
        tasks: ChannelTasks,
    ) -> None:
        self._config = config
        self._replica_manager = replica_manager
        self._cache = cache
        self._channels: BrokerChannels[Wanted] = BrokerChannels(
            tasks,
            BatchSender(
                lambda: {ApiKey.LIST_OFFSETS: VERSION}, _take_many, self._exchange, _not_found
            ),
        )

    def find(
        self, partitions: Collection[TopicPartition], respond: EndOffsetsCallback
    ) -> Steps[None]:
        """Look them up, as work that yields after each; what cannot be found is not tried again.

        Args:
            partitions: each once.
            respond: gets the end of each, None where it is not known. If that is later, a flush
                follows what the callee stages.
        """
        ends: dict[TopicPartition, int | None] = {}
        if not partitions:
            respond(ends)
            return

        def found(topic_partition: TopicPartition, end: int | None) -> None:
            ends[topic_partition] = end
            if len(ends) == len(partitions):
                respond(ends)

        for each in partitions:
            partition = self._replica_manager.get_partition(each)
            state = self._cache.get_partition_info(*each)
            if partition is not None and partition.is_leader:
                found(each, partition.high_watermark)
            elif state is None or not self._cache.has_alive_broker(state.leader):
                found(each, None)
            else:
                self._channels.put(state.leader, Wanted(each, found))
            yield

    async def _exchange(self, connection: Connection, items: list[Wanted]) -> None:
        """Look some up at their leader. Raises ClientError."""
        request = messages.ListOffsetsRequest
        topics: dict[str, messages.ListOffsetsRequest.ListOffsetsTopic] = {}
        for name, number in dict.fromkeys(each.topic_partition for each in items):
            topic = topics.setdefault(name, request.ListOffsetsTopic(name=name))
            topic.partitions.append(
                request.ListOffsetsPartition(partition_index=number, timestamp=LATEST_TIMESTAMP)
            )
        response: messages.ListOffsetsResponse = await connection.request(
            request(replica_id=CONSUMER_REPLICA_ID, topics=list(topics.values())),
            timeout_ms=self._config["request.timeout.ms"],
        )
        ends = {
            TopicPartition(topic.name, each.partition_index): each.offset
            for topic in response.topics
            for each in topic.partitions
            if not each.error_code and each.offset != NO_OFFSET
        }
        for topic_partition, found in items:
            found(topic_partition, ends.get(topic_partition))


def _take_many(waiting: deque[Wanted]) -> list[Wanted]:
    return [waiting.popleft() for _ in range(min(len(waiting), PARTITIONS_MAX))]


def _not_found(items: list[Wanted]) -> None:
    for topic_partition, found in items:
        found(topic_partition, None)
