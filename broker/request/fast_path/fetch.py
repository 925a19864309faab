"""The common Fetch: the one that goes on reading where its connection's last ended.

Consumers that have much to read name the same partitions again and again, and only the offsets
differ; in a session its epoch does too. The other bytes are looked up; where they are known, so
are the partitions, and the answer is an earlier answer with other offsets and records in it.
Whatever fails, has to wait or finds a partition without records takes the slow path, whose
answers are the same.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from ....common.errors import ErrorCode, KafkaError
from ....common.sentinels import FINAL_EPOCH, INVALID_SESSION_ID, ISOLATION_LEVELS, NO_EPOCH
from ....common.topic_partition import TopicPartition
from ....protocol import messages
from ....protocol.headers import read_request_header
from ....protocol.varints import encode_unsigned_varint
from ....replication.partition.partition import FetchIsolation, Partition
from ....replication.read.fetch import (
    FetchParams,
    FetchPartition,
    FetchPartitionData,
    FetchResults,
)
from ....replication.read.replica_selector import select_leader
from ....storage.io.file_slice import FileSlice
from ..context import HandlerContext
from ..fetch_rules import (
    FIRST_FLEXIBLE_VERSION,
    FIRST_VERSION_WITH_SESSIONS,
    FIRST_VERSION_WITH_TOPIC_IDS,
    fetch_params,
    fetch_response,
    partition_data,
)
from ..fetch_sessions import (
    INITIAL_EPOCH,
    FetchSession,
    PartitionKey,
    RequestedPartition,
    cache_key,
    key_of,
)
from ..requests import Accountable, ClientConnection, Request
from ..route import FramePart, Route
from .implicit_session import is_encoded
from .marks import MARK, SHORT_MARK, encode_mark, encode_short_mark, find_marks
from .memo import PARTITIONS_MAX, Memo

REPEATS_FROM = 8
"""Behind API key, version and correlation id: with the client's id begins what comes again."""
RECORDS_MARK = bytes(range(0x80, 0xA0))
LENGTH_BYTES = 4
"""Of the length of records, before the versions in which it is a varint."""

_pack_length = struct.Struct(">i").pack
_pack_size_and_correlation_id = struct.Struct(">ii").pack_into
_pack_offsets = struct.Struct(">qqq").pack_into


@dataclass(slots=True, eq=False)
class KnownPartition:
    """A partition that is read, and where its part of the answer comes from.

    Attributes:
        number: which of the request's numbers is its offset.
        key: what the request calls it.
        terms: what the request says of it behind the offset.
        max_bytes: the first of these.
        leader_epoch: the second.
        before: what stands in the answer between the records before and the length of its own.
        offsets_at: where in that its three offsets stand.
        size: of the records that were read last, as readers of full batches have it often.
        length: the same as the answer has it.
    """

    partition: Partition
    number: int
    key: PartitionKey
    terms: tuple[int, int, int, int]
    max_bytes: int
    leader_epoch: int
    before: bytes = b""
    offsets_at: int = 0
    size: int = -1
    length: bytes = b""


@dataclass(slots=True, eq=False)
class Layout:
    """One request that came before.

    Attributes:
        params: of the whole fetch.
        isolation: how far it reads.
        max_bytes: of all of its partitions together.
        min_bytes: with fewer it waits.
        client_id: whose it is.
        session_id: of its session, if it has one.
        cache_key: what the session's idle partitions rest on, besides the metadata.
        snapshot: the metadata that it was learnt with.
        tail: what ends the answer.
    """

    params: FetchParams
    isolation: FetchIsolation
    max_bytes: int
    min_bytes: int
    client_id: str
    session_id: int
    cache_key: tuple[Any, ...]
    snapshot: object
    partitions: tuple[KnownPartition, ...]
    tail: bytes


@dataclass(slots=True, eq=False)
class Shape:
    """Requests of one length, whose numbers stand in the same places.

    Attributes:
        unpack: gives correlation id, constants and numbers in turn.
        layouts: by the constants.
    """

    format: str
    unpack: Callable[[memoryview], tuple[Any, ...]]
    layouts: dict[tuple[bytes, ...], Layout]


READ_ONE_BY_ONE_MAX = 8
"""A fetch of more partitions is waited for by those who know which of them are idle."""

Found = list[tuple[KnownPartition, FileSlice | bytes, int]]
"""Each partition's records, and how many bytes those are."""


class FetchMemo(Memo[messages.FetchRequest]):
    """The partitions that one connection has read, by the bytes of its requests.

    Attributes:
        waiting_type: what a request becomes that has to wait.
    """

    __slots__ = ("_by_id", "_is_flexible", "_shapes", "_table", "waiting_type")

    def __init__(self, context: HandlerContext, route: Route) -> None:
        super().__init__(context, route)
        self._shapes: dict[int, Shape] = {}
        self._table = context.replica_manager.partitions
        self.waiting_type = WaitingFetch
        self._by_id = route.api_version >= FIRST_VERSION_WITH_TOPIC_IDS
        self._is_flexible = route.api_version >= FIRST_FLEXIBLE_VERSION

    def take(self, connection: ClientConnection, frame: memoryview) -> bool:
        """Answer the request if it is known and there are records for all of its partitions."""
        shape = self._shapes.get(len(frame))
        if shape is None:
            return False
        parts = shape.unpack(frame)
        layout = shape.layouts.get(parts[1::2])
        if layout is None:
            return False
        numbers = parts[::2]
        session: FetchSession | None = None
        if layout.session_id != INVALID_SESSION_ID:
            session = self.context.fetch_sessions.find(layout.session_id, numbers[1], self._by_id)
            if session is None or not session.reads_only(
                layout.partitions, layout.snapshot, layout.cache_key
            ):
                self._is_known = True
                return False
        elif numbers[1] != FINAL_EPOCH:
            return False
        if connection.unanswered:
            self._is_known = True
            return False
        found = self._read(layout, numbers)
        if found is None:
            if session is None and len(layout.partitions) <= READ_ONE_BY_ONE_MAX:
                self.waiting_type(self, connection, frame, layout, numbers).start()
                return True
            self._is_known = True
            return False
        if session is not None:
            self._note_in(session, numbers, found)
        buffers, size = self.encode(layout, numbers[0], found)
        self.route.count_successes(1 + len(found))
        connection.send_at_once(buffers, size)
        return True

    def _read(self, layout: Layout, numbers: Sequence[int]) -> Found | None:
        """Each partition's records; None where the handler has something to say or to wait for."""
        bytes_left = layout.max_bytes
        isolation = layout.isolation
        total = 0
        found: Found = []
        try:
            for known in layout.partitions:
                partition, offset = known.partition, numbers[known.number]
                if offset >= partition.high_watermark or known.leader_epoch not in (
                    NO_EPOCH,
                    partition.leader_epoch,
                ):
                    return None
                read = partition.read_records(
                    offset,
                    known.max_bytes if known.max_bytes < bytes_left else bytes_left,
                    isolation,
                    minimum_one_batch=not found,
                )
                records = read.records
                size = len(records)
                if not size or (
                    isolation is FetchIsolation.TRANSACTION_COMMITTED
                    and partition.log.aborted_transactions_in(read)
                ):
                    return None
                bytes_left = bytes_left - size if size < bytes_left else 0
                total += size
                found.append((known, records, size))
        except KafkaError:
            return None  # the handler says what is wrong
        return found if total >= layout.min_bytes else None

    def _note_in(self, session: FetchSession, numbers: Sequence[int], found: Found) -> None:
        """Have the session know what is requested and answered, as the handler does."""
        context = self.context
        session.fetched_ms = now_ms = context.clock.monotonic_ms()
        context.fetch_sessions.advance(session, now_ms)
        if session.idle_topics:
            context.replica_manager.count_idle_partitions(session.idle_topics)
        for known, _, _ in found:
            partition = known.partition
            session.note_records(
                RequestedPartition(known.key, numbers[known.number], *known.terms),
                partition.high_watermark,
                partition.log_start_offset,
            )

    def encode(
        self, layout: Layout, correlation_id: int, found: Found
    ) -> tuple[list[FramePart], int]:
        """The framed answer that holds these records, and its size; they count as fetched."""
        total = len(layout.tail)
        parts: list[Any] = []
        for known, records, size in found:
            partition = known.partition
            stats = partition.topic_stats
            stats.total_fetch_requests += 1
            stats.bytes_out += size
            part = bytearray(known.before)
            _pack_offsets(
                part,
                known.offsets_at,
                partition.high_watermark,
                partition.last_stable_offset,
                partition.log_start_offset,
            )
            if size != known.size:
                known.size, known.length = size, self._encode_length(size)
            part += known.length
            parts += (part, records)
            total += size + len(part)
        _pack_size_and_correlation_id(parts[0], 0, total - 4, correlation_id)
        if layout.tail:
            parts.append(layout.tail)
        return parts, total

    def _encode_length(self, size: int) -> bytes:
        return encode_unsigned_varint(size + 1) if self._is_flexible else _pack_length(size)

    # -- what is remembered -----------------------------------------------------------

    def _remember(
        self,
        request: Request[object],
        frame: memoryview,
        position: int,
        body: messages.FetchRequest,
    ) -> int:
        if (
            self.route.api_version < FIRST_VERSION_WITH_SESSIONS
            or not body.topics
            or body.forgotten_topics_data
            or (body.session_epoch == FINAL_EPOCH) != (body.session_id == INVALID_SESSION_ID)
            or body.session_epoch == INITIAL_EPOCH
            or body.isolation_level not in ISOLATION_LEVELS
            or max(body.replica_id, body.replica_state.replica_id) >= 0
            or self._table.select_replica is not select_leader
            or is_encoded(body)  # those of an implicit session name partitions in any order
        ):
            return 0
        layout = self._layout_of(request, body)
        if layout is None:
            return 0
        copy: messages.FetchRequest = self.route.decode(frame, position)[0]
        copy.session_epoch = SHORT_MARK
        for index, part in enumerate(part for topic in copy.topics for part in topic.partitions):
            part.fetch_offset = MARK + index
        marked = b"".join(messages.FetchRequest.encoder(self.route.api_version)(copy))
        marks = [encode_mark(MARK + index) for index in range(len(layout.partitions))]
        try:
            places = find_marks(marked, [encode_short_mark(SHORT_MARK), *marks])
        except ValueError:
            return 0
        return self._add(bytes(frame[REPEATS_FROM:position]) + marked, position, places, layout)

    def _add(self, marked: bytes, position: int, places: list[int], layout: Layout) -> int:
        """Remember a request by what stands around its numbers.

        Args:
            marked: the encoded request, from where it repeats on, with marks for its numbers.
            position: where its body begins in the frame.
            places: where in the body the marks stand.
            layout: what it finds.
        """
        shift = position - REPEATS_FROM
        form, constants, at = ">4xi", [], 0
        codes = [("i", 4)] + [("q", 8)] * len(layout.partitions)
        for place, (code, size) in zip(places, codes, strict=True):
            constants.append(marked[at : place + shift])
            form += f"{place + shift - at}s{code}"
            at = place + shift + size
        constants.append(marked[at:])
        form += f"{len(marked) - at}s"
        size = REPEATS_FROM + len(marked)
        shape = self._shapes.get(size)
        if shape is None or shape.format != form:
            shape = self._shapes[size] = Shape(form, struct.Struct(form).unpack, {})
        shape.layouts[tuple(constants)] = layout
        return len(layout.partitions)

    def _forget(self) -> None:
        self._shapes.clear()

    def _layout_of(self, request: Request[object], body: messages.FetchRequest) -> Layout | None:
        """What a request like this one finds; None if it is not of the common kind."""
        context = self.context
        params = fetch_params(context, request, body)
        is_committed = params.isolation is FetchIsolation.TRANSACTION_COMMITTED
        response = messages.FetchResponse
        answer = response(session_id=body.session_id)
        found: list[KnownPartition] = []
        for topic in body.topics:
            key = topic.topic_id if self._by_id else topic.topic
            name = context.metadata_cache.topic_name(key) if isinstance(key, bytes) else key
            if name is None or not context.authorize(request, "READ", "TOPIC", name):
                return None
            answered = response.FetchableTopicResponse(topic=topic.topic, topic_id=topic.topic_id)
            answer.responses.append(answered)
            for part in topic.partitions:
                partition = context.replica_manager.get_partition(
                    TopicPartition(name, part.partition)
                )
                if (
                    partition is None
                    or not partition.is_leader
                    or not context.metadata_cache.contains_partition(name, part.partition)
                    or part.last_fetched_epoch != NO_EPOCH
                    or part.partition_max_bytes < 0
                ):
                    return None
                marked = FetchPartitionData(
                    ErrorCode.NONE,
                    MARK + len(found),
                    records=RECORDS_MARK,
                    aborted_transactions=() if is_committed else None,
                )
                answered.partitions.append(partition_data(part.partition, marked))
                max_bytes, leader_epoch = part.partition_max_bytes, part.current_leader_epoch
                found.append(
                    KnownPartition(
                        partition,
                        2 + len(found),
                        (key, part.partition),
                        (max_bytes, leader_epoch, NO_EPOCH, part.log_start_offset),
                        max_bytes,
                        leader_epoch,
                    )
                )
        if not 0 < len({known.partition for known in found}) == len(found) <= PARTITIONS_MAX:
            return None
        *constants, tail = self._encode(answer).split(RECORDS_MARK)
        length_bytes = 1 if self._is_flexible else LENGTH_BYTES
        constants = [constant[: len(constant) - length_bytes] for constant in constants]
        try:
            for index, (known, before) in enumerate(zip(found, constants, strict=True)):
                known.before = before
                (known.offsets_at,) = find_marks(before, [encode_mark(MARK + index)])
        except ValueError:
            return None
        return Layout(
            params,
            params.isolation,
            params.max_bytes,
            params.min_bytes if params.max_wait_ms > 0 else 0,
            request.client_id,
            body.session_id,
            cache_key(params, select_leader),
            context.metadata_cache.snapshot,
            tuple(found),
            tail,
        )


class WaitingFetch(Accountable):
    """A fetch without a session that is known, and that not all partitions have records for.

    Args:
        memo: knows it.
        connection: whom it came from.
        frame: all of it.
        layout: of it.
        numbers: in it.

    Attributes:
        buffers: the framed answer once it is there.
    """

    __slots__ = ("_connection", "_frame", "_layout", "_memo", "_numbers", "_received_ms", "buffers")

    def __init__(
        self,
        memo: FetchMemo,
        connection: ClientConnection,
        frame: memoryview,
        layout: Layout,
        numbers: Sequence[int],
    ) -> None:
        self._memo = memo
        self._connection = connection
        self._frame = bytes(frame)
        self._layout = layout
        self._numbers = numbers
        self._received_ms = memo.context.clock.monotonic_ms()
        self.buffers: Sequence[Any] | None = None

    def start(self) -> None:
        """Read, and perhaps wait."""
        connection, numbers = self._connection, self._numbers
        connection.unanswered.append(self)
        requested = []
        for known in self._layout.partitions:
            topic = known.key[0]
            topic_id = topic if isinstance(topic, bytes) else b""
            where = known.partition.topic_partition
            requested.append(FetchPartition(where, topic_id, numbers[known.number], *known.terms))
        manager = self._memo.context.replica_manager
        manager.fetch_messages(self._layout.params, requested, self._complete)
        connection.is_parked = bool(connection.unanswered)

    def _complete(self, results: FetchResults) -> None:
        connection, memo, layout = self._connection, self._memo, self._layout
        if connection.is_closed:
            return
        if memo.epoch != memo.context.admission.epoch or any(
            data.error or data.aborted_transactions for _, data in results
        ):
            self._explain(results)
            return
        found = [
            (known, data.records, len(data.records))
            for known, (_, data) in zip(layout.partitions, results, strict=True)
        ]
        self.buffers, size = memo.encode(layout, self._numbers[0], found)
        elapsed_ms = memo.context.clock.monotonic_ms() - self._received_ms
        memo.route.count_successes(1 + len(found), elapsed_ms)
        connection.unsent_bytes += size
        connection.note_answered()

    def _explain(self, results: FetchResults) -> None:
        """Answer in the way of the handler, for there is more to say than records."""
        memo, params = self._memo, self._layout.params
        request = self._as_request()
        memo.context.replica_manager.count_fetches(params, results)
        answered = [(key_of(requested), data) for requested, data in results]
        request.answer(fetch_response(memo.context, request, None, answered, is_full=False))

    def _as_request(self) -> Request[object]:
        """What the slow path would have of it, in its place among those that wait."""
        connection, memo, layout = self._connection, self._memo, self._layout
        correlation_id, _, position = read_request_header(memoryview(self._frame))
        body = memo.route.decode(self._frame, position)[0]
        request = Request(memo.route, correlation_id, layout.client_id, body, connection)
        request.received_ms = self._received_ms
        connection.unanswered[connection.unanswered.index(self)] = request
        request.take_over(self)
        return request
