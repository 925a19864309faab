"""The common Fetch: the one that goes on reading a partition where its connection's last ended.

Consumers that have much to read ask for the same partition again and again, and only the offset
differs; in a session its epoch does too. So the other bytes are compared with those of an earlier
request; where they are equal, the partition is known, and the answer is an earlier answer with
other offsets in it. Whatever differs, fails, has to wait or finds nothing takes the handler's
slow path, whose answers are the same.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any

from ....common.errors import ErrorCode, KafkaError
from ....common.sentinels import FINAL_EPOCH, INVALID_SESSION_ID, ISOLATION_LEVELS
from ....common.topic_partition import TopicPartition
from ....protocol import messages
from ....protocol.headers import read_request_header
from ....protocol.varints import encode_unsigned_varint
from ....replication.partition.partition import FetchIsolation
from ....replication.read.fetch import FetchPartitionData
from ....replication.read.replica_selector import select_leader
from ....storage.io.file_slice import FileSlice
from ..context import HandlerContext
from ..fetch_rules import FIRST_VERSION_WITH_TOPIC_IDS, fetch_params, partition_data
from ..fetch_sessions import INITIAL_EPOCH, FetchSession, RequestedPartition, cache_key
from ..requests import ClientConnection
from ..route import Route
from .fetch_layout import FIRST_FLEXIBLE_VERSION, FIRST_VERSION, UNCOMMON, layout_of
from .idle_fetch import RepeatedFetch

if TYPE_CHECKING:
    from ....replication.partition.partition import Partition

HEAD_AT = 8
"""Behind API key, version and correlation id."""
MISSES_BEFORE_LEARNING = 8
"""A connection that reads partitions in turn is not worth learning each time."""
OFFSET_MARKS = (0x1122334455667788, 0x2233445566778811, 0x3344556677881122)
OFFSETS_MARK = struct.pack(">qqq", *OFFSET_MARKS)
RECORDS_MARK = bytes(range(0x80, 0xA0))
LENGTH_BYTES = 4
"""Of the length of records, before the versions in which it is a varint."""

_pack_length = struct.Struct(">i").pack
_unpack_epoch = struct.Struct(">i").unpack_from
_unpack_offset = struct.Struct(">q").unpack_from


class ReadingFastPath:
    """What the fetches of one partition by one connection have in common.

    Args:
        context: the broker's.
        route: of the fetch that is learnt.
        body: what it asks.
        parts: its bytes but for correlation id, session epoch and offset, which stand before the
            first part and behind it and the second.
        partition: which it reads.

    Attributes:
        misses: how many requests in a row were others.
    """

    __slots__ = (
        "_answer_bytes",
        "_answer_head",
        "_answer_middle",
        "_answer_tail",
        "_by_id",
        "_cache_key",
        "_context",
        "_head",
        "_is_flexible",
        "_isolation",
        "_key",
        "_leader_epoch",
        "_length",
        "_length_of",
        "_max_bytes",
        "_middle",
        "_min_bytes",
        "_online",
        "_pack_answer",
        "_partition",
        "_requested",
        "_route",
        "_session_id",
        "_snapshot",
        "_tail",
        "_unpack",
        "misses",
    )

    def __init__(
        self,
        context: HandlerContext,
        route: Route,
        body: messages.FetchRequest,
        parts: tuple[bytes, bytes, bytes],
        partition: Partition,
    ) -> None:
        (topic,) = body.topics
        (requested,) = topic.partitions
        self.misses = 0
        self._context = context
        self._route = route
        self._partition = partition
        self._online = context.replica_manager.partitions
        self._snapshot = context.metadata_cache.snapshot
        self._head, self._middle, self._tail = parts
        head, middle, tail = map(len, parts)
        self._unpack = struct.Struct(f">4xi{head}si{middle}sq{tail}s").unpack
        params = fetch_params(context, body, route.api_version)
        self._isolation = params.isolation
        self._max_bytes = min(requested.partition_max_bytes, params.max_bytes)
        self._min_bytes = max(params.min_bytes, 1) if params.max_wait_ms > 0 else 1
        self._leader_epoch: int = requested.current_leader_epoch
        self._session_id: int = body.session_id
        by_id = route.api_version >= FIRST_VERSION_WITH_TOPIC_IDS
        self._by_id = by_id
        self._key = (topic.topic_id if by_id else topic.topic, requested.partition)
        self._requested = (
            requested.partition_max_bytes,
            self._leader_epoch,
            -1,
            requested.log_start_offset,
        )
        self._cache_key = cache_key(params, select_leader)
        self._is_flexible = route.api_version >= FIRST_FLEXIBLE_VERSION
        self._length_of = -1
        self._length = b""
        self._cut_answer()

    def _cut_answer(self) -> None:
        """Take an encoded answer apart where its offsets, and the length of its records, stand."""
        response = messages.FetchResponse
        is_committed = self._isolation is FetchIsolation.TRANSACTION_COMMITTED
        high_watermark, stable_offset, start_offset = OFFSET_MARKS
        data = FetchPartitionData(
            ErrorCode.NONE,
            high_watermark,
            stable_offset,
            start_offset,
            RECORDS_MARK,
            aborted_transactions=() if is_committed else None,
        )
        topic, index = self._key
        answered = response.FetchableTopicResponse(partitions=[partition_data(index, data)])
        if isinstance(topic, bytes):
            answered.topic_id = topic
        else:
            answered.topic = topic
        answer = response(session_id=self._session_id, responses=[answered])
        encoded = b"".join(map(bytes, self._route.encode_answer(0, answer)))
        at = encoded.index(OFFSETS_MARK)
        records_at = encoded.index(RECORDS_MARK)
        length_bytes = 1 if self._is_flexible else LENGTH_BYTES
        self._answer_head = encoded[HEAD_AT:at]
        self._answer_middle = encoded[at + len(OFFSETS_MARK) : records_at - length_bytes]
        self._answer_tail = encoded[records_at + len(RECORDS_MARK) :]
        head, middle = len(self._answer_head), len(self._answer_middle)
        self._pack_answer = struct.Struct(f">ii{head}sqqq{middle}s").pack
        self._answer_bytes = len(encoded) - 4 - length_bytes - len(RECORDS_MARK)

    def take(self, connection: ClientConnection, frame: memoryview) -> bool:
        """Answer the request if it is like the one learnt and there are records for it."""
        try:
            correlation_id, head, epoch, middle, offset, tail = self._unpack(frame)
        except struct.error:  # it is of another length
            self.misses += 1
            return False
        if head != self._head or middle != self._middle or tail != self._tail:
            self.misses += 1
            return False
        partition = self._partition
        if offset >= partition.high_watermark or connection.unanswered:
            return False
        context = self._context
        dispatcher = connection.dispatcher
        if (
            dispatcher.on_request is not None
            or dispatcher.on_answer is not None
            or dispatcher.on_framed is not None
            or self._online.select_replica is not select_leader
        ):
            return False
        if (
            self._snapshot is not context.metadata_cache.snapshot
            or self._online.get(partition.topic_partition) is not partition
            or not partition.is_leader
            or self._leader_epoch not in (-1, partition.leader_epoch)
        ):
            self.misses = MISSES_BEFORE_LEARNING
            return False
        session: FetchSession | None = None
        if self._session_id != INVALID_SESSION_ID:
            session = context.fetch_sessions.find(self._session_id, epoch, self._by_id)
            if session is None or not session.reads_only(
                self._key, self._leader_epoch, self._snapshot, self._cache_key
            ):
                return False
        elif epoch != FINAL_EPOCH:
            return False
        try:
            read = partition.read_records(
                offset, self._max_bytes, self._isolation, minimum_one_batch=True
            )
            if len(read.records) < self._min_bytes or (
                self._isolation is FetchIsolation.TRANSACTION_COMMITTED
                and partition.log.aborted_transactions_in(read)
            ):
                return False
        except KafkaError:
            return False  # the handler says what is wrong
        if session is not None:
            self._note_in(session, epoch, offset)
        self.misses = 0
        connection.note_handled()
        self._answer(connection, correlation_id, read.records)
        return True

    def _answer(
        self, connection: ClientConnection, correlation_id: int, records: FileSlice | bytes
    ) -> None:
        """Count and send an answer with these records, of which there are some."""
        partition, route = self._partition, self._route
        size = len(records)
        stats = partition.topic_stats
        stats.total_fetch_requests += 1
        stats.bytes_out += size
        route.errors.count_one(ErrorCode.NONE, 2)  # of the answer, and of its partition
        route.times.sub_millisecond_count += 1
        if size != self._length_of:
            self._length = (
                encode_unsigned_varint(size + 1) if self._is_flexible else _pack_length(size)
            )
            self._length_of = size
        length = self._length
        size += self._answer_bytes + len(length)
        before = self._pack_answer(
            size,
            correlation_id,
            self._answer_head,
            partition.high_watermark,
            partition.last_stable_offset,
            partition.log_start_offset,
            self._answer_middle,
        )
        tail = self._answer_tail
        parts = [before + length, records, tail] if tail else [before + length, records]
        connection.send_parts_at_once(parts, size)

    def _note_in(self, session: FetchSession, epoch: int, offset: int) -> None:
        """Have the session know what is requested and answered, as the handler does."""
        context, partition = self._context, self._partition
        now_ms = context.clock.monotonic_ms()
        context.fetch_sessions.use(self._session_id, epoch, self._by_id, now_ms)
        session.fetched_ms = now_ms
        session.note_records(
            RequestedPartition(self._key, offset, *self._requested),
            partition.high_watermark,
            partition.log_start_offset,
        )
        if session.idle_topics:
            context.replica_manager.count_idle_partitions(session.idle_topics)


def learn_reading(
    context: HandlerContext,
    connection: ClientConnection,
    route: Route,
    frame: memoryview,
    body: Any,
) -> None:
    """Have the connection's next requests take the fast path if they are like this one."""
    if type(body) is not RepeatedFetch and not body.topics:
        return  # in a session nothing has changed
    fast_path = connection.fast_paths.get(route.key)
    if isinstance(fast_path, ReadingFastPath) and fast_path.misses < MISSES_BEFORE_LEARNING:
        return
    learnt = _fast_path_for(context, route, frame, body)
    if learnt is not None:
        connection.fast_paths[route.key] = learnt
    elif fast_path is not None:
        del connection.fast_paths[route.key]


def _fast_path_for(
    context: HandlerContext, route: Route, frame: memoryview, body: Any
) -> ReadingFastPath | None:
    """None if the request is not of the common kind."""
    if type(body) is RepeatedFetch:
        if not body.names_one_partition:
            return None
        body = body.decode(route)
    if (
        route.api_version < FIRST_VERSION
        or len(body.topics) != 1
        or len(body.topics[0].partitions) != 1
        or body.forgotten_topics_data
        or (body.session_epoch == FINAL_EPOCH) != (body.session_id == INVALID_SESSION_ID)
        or body.session_epoch == INITIAL_EPOCH
        or body.isolation_level not in ISOLATION_LEVELS
        or max(body.replica_id, body.replica_state.replica_id) >= 0
    ):
        return None
    (topic,) = body.topics
    (requested,) = topic.partitions
    if requested.last_fetched_epoch != -1 or requested.partition_max_bytes < 0:
        return None
    by_id = route.api_version >= FIRST_VERSION_WITH_TOPIC_IDS
    name = context.metadata_cache.topic_name(topic.topic_id) if by_id else topic.topic
    if name is None or not context.metadata_cache.contains_partition(name, requested.partition):
        return None
    partition = context.replica_manager.get_partition(TopicPartition(name, requested.partition))
    parts = _parts_of(route, frame, body)
    if partition is None or parts is None:
        return None
    return ReadingFastPath(context, route, body, parts, partition)


def _parts_of(
    route: Route, frame: memoryview, body: messages.FetchRequest
) -> tuple[bytes, bytes, bytes] | None:
    """What stands around a request's session epoch and offset; None if those are not there."""
    layout = layout_of(route.api_version)
    data = bytes(frame)
    _, _, position = read_request_header(frame)
    topics_at = position + layout.topics_after
    try:
        (topic,), _ = layout.read_topics(data, topics_at)
        epoch_at = topics_at - 4
        offset_at = topics_at + len(layout.encode_count(1)) + len(topic.head) + layout.offset_after
        epoch = _unpack_epoch(data, epoch_at)[0]
        offset = _unpack_offset(data, offset_at)[0]
    except UNCOMMON:
        return None
    if (epoch, offset) != (body.session_epoch, body.topics[0].partitions[0].fetch_offset):
        return None
    return data[HEAD_AT:epoch_at], data[epoch_at + 4 : offset_at], data[offset_at + 8 :]
