"""The common ListOffsets: for an end of one partition, as its connection has requested before.

Kafka's consumers that seek by themselves (Spark's, for each poll) request the start and
the end of the same partition in turn. But for their correlation ids such requests are the same
bytes, so what they ask is found by these, and the answer is packed around the offset.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any

from ....common.errors import KafkaError
from ....common.sentinels import CONSUMER_REPLICA_ID, EARLIEST_TIMESTAMP, LATEST_TIMESTAMP
from ....common.topic_partition import TopicPartition
from ....protocol import messages
from ....replication.read.list_offsets import find_offset, isolation_for
from ..context import HandlerContext
from ..requests import ClientConnection
from ..route import Route
from .answer_template import cut_answer

if TYPE_CHECKING:
    from ....replication.partition.partition import Partition

REPEATS_FROM = 8
"""Behind API key, version and correlation id: with the client's id begins what comes again."""
LOOKUPS_MAX = 16
REQUEST_BYTES_MAX = 512
FIRST_VERSION_WITH_LEADER_EPOCHS = 4
OFFSET_MARK = 0x1122334455667788
EPOCH_MARK = 0x5AA55AA5

_unpack_correlation_id = struct.Struct(">i").unpack_from


class EndLookup:
    """One request that came before: which end of which partition it asks for."""

    __slots__ = (
        "_head",
        "_isolation",
        "_knows_epochs",
        "_leader_epoch",
        "_pack",
        "_partition",
        "_size",
        "_tail",
        "_timestamp",
    )

    def __init__(self, route: Route, body: Any, partition: Partition) -> None:
        (topic,) = body.topics
        (requested,) = topic.partitions
        self._partition = partition
        self._timestamp: int = requested.timestamp
        self._leader_epoch: int = requested.current_leader_epoch
        self._isolation = isolation_for(body.replica_id, body.isolation_level)
        self._knows_epochs = route.api_version >= FIRST_VERSION_WITH_LEADER_EPOCHS
        self._cut_answer(route, topic.name, requested.partition_index)

    def _cut_answer(self, route: Route, topic: str, index: int) -> None:
        """Take an encoded answer apart where its offset and epoch stand."""
        response = messages.ListOffsetsResponse
        epoch = EPOCH_MARK if self._knows_epochs else -1
        marked = response.ListOffsetsPartitionResponse(
            partition_index=index, offset=OFFSET_MARK, leader_epoch=epoch
        )
        named = response.ListOffsetsTopicResponse(name=topic, partitions=[marked])
        self._size, self._head, self._tail, self._pack = cut_answer(
            b"".join(route.encode_answer(0, response(topics=[named]))),
            struct.pack(">q", OFFSET_MARK),
            "qi" if self._knows_epochs else "q",
        )

    def answer(self, correlation_id: int) -> bytes:
        """The framed answer.

        Raises:
            KafkaError: the partition is not led here in that epoch.
        """
        partition = self._partition
        partition.check_leader(self._leader_epoch)
        _, *found = find_offset(partition, self._timestamp, self._isolation)
        if not self._knows_epochs:
            del found[1]
        return self._pack(self._size, correlation_id, self._head, *found, self._tail)


class ListOffsetsFastPath:
    """The lookups that one connection has requested, by the bytes of the request."""

    __slots__ = ("_context", "_lookups", "_route", "_snapshot")

    def __init__(self, context: HandlerContext, route: Route) -> None:
        self._context = context
        self._route = route
        self._snapshot = context.metadata_cache.snapshot
        self._lookups: dict[bytes, EndLookup] = {}

    def __len__(self) -> int:
        """How many are remembered."""
        return len(self._lookups)

    def take(self, connection: ClientConnection, frame: memoryview) -> bool:
        """Answer the request if its like has come before; returns whether that was done."""
        lookup = self._lookups.get(bytes(frame[REPEATS_FROM:]))
        dispatcher = connection.dispatcher
        if (
            lookup is None
            or connection.unanswered
            or dispatcher.on_request is not None
            or dispatcher.on_answer is not None
        ):
            return False
        if self._snapshot is not self._context.metadata_cache.snapshot:
            self._lookups.clear()
            return False
        try:
            answer = lookup.answer(_unpack_correlation_id(frame, 4)[0])
        except KafkaError:
            return False  # the handler says what is wrong
        self._route.times.sub_millisecond_count += 1
        connection.note_handled()
        connection.send_at_once(answer)
        return True

    def learn(self, frame: memoryview, body: Any) -> None:
        """Remember a request if it asks for an end of one partition and nothing else."""
        if (
            len(frame) > REQUEST_BYTES_MAX
            or body.replica_id != CONSUMER_REPLICA_ID
            or len(body.topics) != 1
            or len(body.topics[0].partitions) != 1
        ):
            return
        (topic,) = body.topics
        (requested,) = topic.partitions
        if requested.timestamp not in (EARLIEST_TIMESTAMP, LATEST_TIMESTAMP):
            return
        partition = self._context.replica_manager.get_partition(
            TopicPartition(topic.name, requested.partition_index)
        )
        if partition is None:
            return
        snapshot = self._context.metadata_cache.snapshot
        if snapshot is not self._snapshot or len(self._lookups) >= LOOKUPS_MAX:
            self._lookups.clear()
            self._snapshot = snapshot
        try:
            lookup = EndLookup(self._route, body, partition)
        except KafkaError:
            return
        self._lookups[bytes(frame[REPEATS_FROM:])] = lookup


def learn_list_offsets(
    context: HandlerContext,
    connection: ClientConnection,
    route: Route,
    frame: memoryview,
    body: Any,
) -> None:
    """Have the connection's next requests take the fast path if they are like this one."""
    fast_path = connection.fast_paths.get(route.key)
    if not isinstance(fast_path, ListOffsetsFastPath):
        fast_path = connection.fast_paths[route.key] = ListOffsetsFastPath(context, route)
    fast_path.learn(frame, body)
