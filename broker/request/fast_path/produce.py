"""The common Produce: the one that looks just like its connection's last.

Producers send to the same partition again and again, and only the records differ. So the
bytes from the header to the partition's index are compared with those of the last
request; where they are equal, the partition is known, and the answer is its last answer
with other offsets in it. Nothing is decoded and two objects are made. Whatever differs,
fails or must wait takes the handler's slow path, whose answers are the same.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any

from ....common.errors import ErrorCode, KafkaError
from ....common.internal_topics import INTERNAL_TOPICS
from ....common.topic_partition import TopicPartition
from ....protocol import messages
from ....replication.append import PartitionResponse, PendingAppend, PendingPartition
from ....storage.log.append_origin import AppendOrigin
from ..context import HandlerContext
from ..current_leaders import tell_producer
from ..produce_rules import (
    ATTRIBUTES_LOW_BYTE,
    FIRST_FLEXIBLE_VERSION,
    FIRST_VERSION_WITH_LOG_START,
    FIRST_VERSION_WITH_TOPIC_IDS,
    begins_transaction,
    partition_response,
    refusal_of,
)
from ..requests import ClientConnection
from ..route import Route
from .answer_template import cut_answer

if TYPE_CHECKING:
    from ....replication.partition.partition import Partition

PREFIX_AT = 8
"""Behind API key, version and correlation id."""
NO_TAGS = b"\0\0\0"
"""What ends a flexible request: no tagged fields of partition, topic and request."""
MISSES_BEFORE_LEARNING = 16
"""A connection that writes to many partitions in turn is not worth learning each time."""
CLIENT = AppendOrigin.CLIENT
BASE_OFFSET_MARK = 0x1122334455667788
APPEND_TIME_MARK = 0x99AABBCCDDEEFF0

_unpack_int32 = struct.Struct(">i").unpack_from


class ProduceFastPath:
    """What one connection's plain Produce requests have in common."""

    __slots__ = (
        "_answer_head",
        "_answer_size",
        "_answer_tail",
        "_context",
        "_has_transactional_id",
        "_is_flexible",
        "_pack_answer",
        "_prefix",
        "_prefix_end",
        "_snapshot",
        "_unpack_head",
        "_with_log_start",
        "acks",
        "index",
        "manager",
        "misses",
        "partition",
        "route",
        "timeout_ms",
        "topic_id",
        "topic_name",
    )

    def __init__(
        self, context: HandlerContext, route: Route, body: Any, prefix: bytes, partition: Partition
    ) -> None:
        (topic,) = body.topic_data
        self.topic_name: str = topic.name
        self.topic_id: bytes = topic.topic_id
        self.index: int = topic.partition_data[0].index
        self.route = route
        self.partition = partition
        self.timeout_ms: int = body.timeout_ms
        self.misses = 0
        self.acks: int = body.acks
        self._has_transactional_id = body.transactional_id is not None
        self._context = context
        self.manager = context.replica_manager
        self._snapshot = context.metadata_cache.snapshot
        self._prefix = prefix
        self._prefix_end = PREFIX_AT + len(prefix)
        self._unpack_head = struct.Struct(f">4xi{len(prefix)}s").unpack_from
        version = route.api_version
        self._is_flexible = version >= FIRST_FLEXIBLE_VERSION
        self._with_log_start = version >= FIRST_VERSION_WITH_LOG_START
        self._cut_answer()

    def _cut_answer(self) -> None:
        """Take an encoded answer apart where its offsets stand."""
        marked = self._answer(PartitionResponse(ErrorCode.NONE, BASE_OFFSET_MARK, APPEND_TIME_MARK))
        self._answer_size, self._answer_head, self._answer_tail, self._pack_answer = cut_answer(
            b"".join(self.route.encode_answer(0, marked)),
            struct.pack(">qq", BASE_OFFSET_MARK, APPEND_TIME_MARK),
            "qqq" if self._with_log_start else "qq",
        )

    def take(self, connection: ClientConnection, frame: memoryview) -> bool:
        """Stage the request if it is like the last; returns whether that was done."""
        try:
            correlation_id, prefix = self._unpack_head(frame)
        except struct.error:  # it is shorter than the last request's head
            self.misses += 1
            return False
        if prefix != self._prefix:
            self.misses += 1
            return False
        partition = self.partition
        dispatcher = connection.dispatcher
        if (
            self._snapshot is not self._context.metadata_cache.snapshot
            or not partition.is_leader
            or dispatcher.on_request is not None
            or dispatcher.on_answer is not None
        ):
            self.misses = MISSES_BEFORE_LEARNING
            return False
        records = self._records(frame, self._prefix_end)
        if records is None or (
            (len(records) <= ATTRIBUTES_LOW_BYTE or records[ATTRIBUTES_LOW_BYTE])
            and not self._may_append(records)
        ):
            return False
        now_ms = self._context.clock.now_ms()
        try:
            info = partition.append_records_to_leader(records, CLIENT, self.acks, now_ms)
        except KafkaError:
            return False  # nothing was staged; the handler answers with all the details
        produce = FastProduce(
            self,
            connection,
            correlation_id,
            info.first_offset,
            info.last_offset + 1,
            info.log_append_time_ms,
            now_ms,
        )
        connection.unanswered.append(produce)
        self.manager.note_staged(partition, produce)
        return True

    def _may_append(self, records: memoryview) -> bool:
        """Whether a compressed or transactional batch is one that needs no more than an append."""
        version, has_id = self.route.api_version, self._has_transactional_id
        return refusal_of(version, records, has_id) is None and not (
            has_id and begins_transaction(self.partition, records)
        )

    def _records(self, frame: memoryview, at: int) -> memoryview | None:
        """The records behind the prefix, if they and nothing else end the frame."""
        end = len(frame)
        if not self._is_flexible:
            if end < at + 4 or _unpack_int32(frame, at)[0] != end - at - 4:
                return None
            return frame[at + 4 :]
        end -= len(NO_TAGS)
        size = shift = 0
        while True:
            if at >= end or shift > 28:
                return None
            byte = frame[at]
            at += 1
            size |= (byte & 0x7F) << shift
            if byte < 0x80:
                break
            shift += 7
        if size - 1 != end - at or frame[end:] != NO_TAGS:
            return None
        return frame[at:end]

    def wait_for_replicas(self, produce: FastProduce) -> bool:
        """Whether one with acks=all has to wait; then the slow path goes on with it."""
        done, error = self.partition.has_replicated(produce.required_offset)
        if done and not error:
            return False
        manager = self._context.replica_manager
        topic_partition = self.partition.topic_partition

        def on_complete(results: dict[TopicPartition, PartitionResponse]) -> None:
            produce.answer(results[topic_partition])

        pending = PendingAppend(self.timeout_ms, on_complete, manager.wait_for_replicas)
        pending.partitions[topic_partition] = PendingPartition(
            self.partition, produce.required_offset, produce.response()
        )
        pending.complete()
        return True

    def fill_answer(
        self, correlation_id: int, base_offset: int, append_time_ms: int
    ) -> tuple[bytes]:
        """The answer to a request that succeeded."""
        size, head, tail = self._answer_size, self._answer_head, self._answer_tail
        if self._with_log_start:
            start = self.partition.log.log_start_offset
            return (
                self._pack_answer(
                    size, correlation_id, head, base_offset, append_time_ms, start, tail
                ),
            )
        return (self._pack_answer(size, correlation_id, head, base_offset, append_time_ms, tail),)

    def note_flushed(self, received_ms: int) -> None:
        """A request that came at this wall time, some ms ago, is answered by the last flush."""
        self.route.times.record(self.manager.flushed_ms - received_ms)
        self.route.errors.count_one(ErrorCode.NONE)

    def note_answered(self, received_ms: int, error: ErrorCode) -> None:
        """A request that came at this wall time is answered."""
        self.route.errors.count_one(error)
        self.route.times.record(self._context.clock.now_ms() - received_ms)

    def _answer(self, result: PartitionResponse) -> messages.ProduceResponse:
        response = messages.ProduceResponse
        return response(
            responses=[
                response.TopicProduceResponse(
                    name=self.topic_name,
                    topic_id=self.topic_id,
                    partition_responses=[partition_response(self.index, result)],
                )
            ]
        )

    def encode_answer(
        self, correlation_id: int, result: PartitionResponse, listener_name: str
    ) -> list[Any]:
        """The answer to a request that failed, or waited, to a client of that listener."""
        answer = self._answer(result)
        if result.error:
            tell_producer(
                self._context,
                self.route.api_version,
                listener_name,
                answer,
                answer.responses[0].partition_responses[0],
                self.partition.topic_partition,
            )
        return self.route.encode_answer(correlation_id, answer)


class FastProduce:
    """One request that took the fast path, between its staging and its answer."""

    __slots__ = (
        "_append_time_ms",
        "_base_offset",
        "_correlation_id",
        "_failure",
        "_fast_path",
        "_received_ms",
        "buffers",
        "connection",
        "required_offset",
    )

    def __init__(
        self,
        fast_path: ProduceFastPath,
        connection: ClientConnection,
        correlation_id: int,
        base_offset: int,
        required_offset: int,
        append_time_ms: int,
        received_ms: int,
    ) -> None:
        self._received_ms = received_ms
        self._fast_path = fast_path
        self._correlation_id = correlation_id
        self._base_offset = base_offset
        self._append_time_ms = append_time_ms
        self._failure: PartitionResponse | None = None
        self.required_offset = required_offset
        self.connection = connection
        self.buffers: Any = None

    def fail_partition(self, partition: Partition, error: ErrorCode, message: str) -> None:
        """Take note that the partition's flush did not succeed."""
        if partition is self._fast_path.partition:
            self._failure = PartitionResponse(error, error_message=message)

    def complete(self) -> None:
        """Answer, unless the answer must wait for replicas."""
        connection = self.connection
        if connection.is_closed:
            return
        fast_path = self._fast_path
        if self._failure is not None:
            self.answer(self._failure)
        elif fast_path.acks != -1 or not fast_path.wait_for_replicas(self):
            self.buffers = fast_path.fill_answer(
                self._correlation_id, self._base_offset, self._append_time_ms
            )
            if fast_path.manager.flushed_ms > self._received_ms:
                fast_path.note_flushed(self._received_ms)
            else:
                fast_path.route.times.sub_millisecond_count += 1
            connection.note_answered()

    def response(self) -> PartitionResponse:
        """The outcome if all goes well."""
        return PartitionResponse(
            ErrorCode.NONE,
            self._base_offset,
            self._append_time_ms,
            self._fast_path.partition.log.log_start_offset,
        )

    def answer(self, result: PartitionResponse) -> None:
        """Answer with any outcome."""
        if not self.connection.is_closed:
            fast_path = self._fast_path
            self.buffers = fast_path.encode_answer(
                self._correlation_id, result, self.connection.listener_name
            )
            fast_path.note_answered(self._received_ms, result.error)
            self.connection.note_answered()


def learn_produce(
    context: HandlerContext,
    connection: ClientConnection,
    route: Route,
    frame: memoryview,
    body: Any,
) -> None:
    """Have the connection's next requests take the fast path if they are like this one."""
    fast_path = connection.fast_paths.get(route.key)
    if isinstance(fast_path, ProduceFastPath) and fast_path.misses < MISSES_BEFORE_LEARNING:
        return
    learnt = _fast_path_for(context, route, frame, body)
    if learnt is not None:
        connection.fast_paths[route.key] = learnt
    elif fast_path is not None:
        del connection.fast_paths[route.key]


def _fast_path_for(
    context: HandlerContext, route: Route, frame: memoryview, body: Any
) -> ProduceFastPath | None:
    """None if the request is not of the common kind."""
    if body.acks == 0 or len(body.topic_data) != 1:
        return None
    (topic,) = body.topic_data
    if len(topic.partition_data) != 1 or not topic.partition_data[0].records:
        return None
    by_id = route.api_version >= FIRST_VERSION_WITH_TOPIC_IDS
    name = context.metadata_cache.topic_name(topic.topic_id) if by_id else topic.name
    if name is None or name in INTERNAL_TOPICS:
        return None
    partition = context.replica_manager.get_partition(
        TopicPartition(name, topic.partition_data[0].index)
    )
    if partition is None:
        return None
    prefix_end = _prefix_end(route, frame, topic.partition_data[0].records)
    if prefix_end is None:
        return None
    prefix = bytes(frame[PREFIX_AT:prefix_end])
    return ProduceFastPath(context, route, body, prefix, partition)


def _prefix_end(route: Route, frame: memoryview, records: memoryview) -> int | None:
    """Where the records' length stands, if the records end the request."""
    size = len(records)
    if route.api_version < FIRST_FLEXIBLE_VERSION:
        at = len(frame) - size - 4
        return at if _unpack_int32(frame, at)[0] == size else None
    if frame[-len(NO_TAGS) :] != NO_TAGS:
        return None
    length_bytes = max((size + 1).bit_length() + 6, 7) // 7
    return len(frame) - len(NO_TAGS) - size - length_bytes
