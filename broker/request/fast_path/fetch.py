"""The common Fetch: the one that goes on reading where its connection's last ended.

Consumers that have much to read name the same partitions again and again, and only the offsets
differ; in a session its epoch does too. The other bytes are looked up; where they are known, so
are the partitions, and the answer is an earlier answer with other offsets and records in it.
Whatever fails, has to wait or finds a partition without records takes the slow path, whose
answers are the same.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ....common.errors import KafkaError
from ....common.sentinels import FINAL_EPOCH, INVALID_SESSION_ID, NO_EPOCH
from ....common.topic_partition import TopicPartition
from ....protocol import messages
from ....protocol.headers import read_request_header
from ....protocol.varints import encode_unsigned_varint
from ....replication.partition.partition import FetchIsolation, Partition
from ....replication.read.fetch import FetchParams, FetchPartition, FetchResults
from ....replication.read.replica_selector import select_leader
from ....runtime.steps import Steps
from ....storage.io.file_slice import FileSlice
from ..context import HandlerContext
from ..fetch_rules import (
    FIRST_VERSION_WITH_SESSIONS,
    FIRST_VERSION_WITH_TOPIC_IDS,
    PARTITION_BYTES,
    fetch_params,
    fetch_response,
)
from ..fetch_sessions import (
    INITIAL_EPOCH,
    FetchSession,
    PartitionKey,
    RequestedPartition,
    Terms,
    cache_key,
    key_of,
)
from ..requests import ClientConnection, Request
from ..route import FramePart, Route
from .marks import (
    MARK,
    RECORDS_MARK,
    SHORT_MARK,
    find_marks,
    find_short_mark,
    split_at_records,
)
from .memo import PARTITIONS_MAX, REPEATS_FROM, Memo

_pack_length = struct.Struct(">i").pack
_pack_size_and_correlation_id = struct.Struct(">ii").pack_into
_pack_offsets = struct.Struct(">qqq").pack_into


@dataclass(slots=True, eq=False)
class KnownPartition:
    """A partition that is read, and where its part of the answer comes from.

    Attributes:
        number: which of the request's numbers is its offset.
        key: what the request calls it.
        topic_id: by which it does; empty where that is a name.
        leader_epoch: that the request is of.
        max_bytes: that are requested of it at most.
        log_start_offset: as the request has it.
        before: what stands in the answer between the records before and the length of its own.
        offsets_at: where in that its three offsets stand.
        size: of the records that were read last, as readers of full batches have it often.
        length: the same as the answer has it.
    """

    partition: Partition
    number: int
    key: PartitionKey
    topic_id: bytes
    leader_epoch: int
    max_bytes: int
    log_start_offset: int
    before: bytes = b""
    offsets_at: int = 0
    size: int = -1
    length: bytes = b""


@dataclass(slots=True, eq=False)
class Layout:
    """One request that came before.

    Attributes:
        params: of the whole fetch; with no `min_bytes` where it does not wait.
        client_id: whose it is.
        session_id: of its session, if it has one.
        cache_key: what the session's idle partitions rest on, besides the metadata.
        tail: what ends the answer.
    """

    params: FetchParams
    client_id: str
    session_id: int
    cache_key: Terms
    partitions: tuple[KnownPartition, ...]
    tail: bytes


READ_ONE_BY_ONE_MAX = 8
"""A fetch of more partitions is waited for by those who know which of them are idle."""

Found = list[tuple[KnownPartition, FileSlice | bytes, int]]
"""Each partition's records, and how many bytes those are."""


class FetchMemo(Memo[messages.FetchRequest, messages.FetchResponse]):
    """The partitions that one connection has read, by the bytes of its requests."""

    __slots__ = ("_by_id", "_shapes")

    def __init__(self, context: HandlerContext, route: Route) -> None:
        super().__init__(context, route)
        self._shapes: dict[int, tuple[struct.Struct, dict[tuple[bytes, ...], Layout]]] = {}
        """Requests of one length, whose numbers stand in the same places: what gives correlation
        id, constants and numbers in turn, and what is known by the constants."""
        self._by_id = route.api_version >= FIRST_VERSION_WITH_TOPIC_IDS

    def take(self, connection: ClientConnection, frame: memoryview) -> bool:
        """Answer the request if it is known and there are records for all of its partitions."""
        shape = self._shapes.get(len(frame))
        if shape is None:
            return False
        parts = shape[0].unpack(frame)
        layout = shape[1].get(parts[1::2])
        if layout is None:
            return False
        numbers = parts[::2]
        session: FetchSession | None = None
        if layout.session_id != INVALID_SESSION_ID:
            session = self.context.fetch_sessions.find(layout.session_id, numbers[1], self._by_id)
            if session is None or not session.reads_only(
                layout.partitions, self.context.metadata_cache.snapshot, layout.cache_key
            ):
                self._is_known = True
                return False
        elif numbers[1] != FINAL_EPOCH:
            return False
        if connection.unanswered:
            self._is_known = True
            return False
        found = self._read(layout, numbers)
        if found is None or not (
            self.stage is None
            or self.stage.may_fetch(
                connection, layout.client_id, sum(size + PARTITION_BYTES for _, _, size in found)
            )
        ):
            if session is None and len(layout.partitions) <= READ_ONE_BY_ONE_MAX:
                self._wait_for_records(connection, frame, layout, numbers)
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
        params = layout.params
        bytes_left, isolation = params.max_bytes, params.isolation
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
        return found if total >= params.min_bytes else None

    def _wait_for_records(
        self,
        connection: ClientConnection,
        frame: memoryview,
        layout: Layout,
        numbers: Sequence[int],
    ) -> None:
        """Have a fetch without a session wait that not all partitions have records for."""
        request = WaitingFetch(self.route, numbers[0], layout.client_id, bytes(frame), connection)
        request.layout, request.known_by = layout, self
        requested = [
            FetchPartition(
                known.partition.topic_partition,
                known.topic_id,
                numbers[known.number],
                known.max_bytes,
                known.leader_epoch,
                NO_EPOCH,
                known.log_start_offset,
            )
            for known in layout.partitions
        ]
        connection.unanswered.append(request)
        manager = self.context.replica_manager
        manager.fetch_messages(layout.params, requested, request.complete)
        connection.is_parked = bool(connection.unanswered)

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
                RequestedPartition(
                    known.key,
                    numbers[known.number],
                    known.max_bytes,
                    known.leader_epoch,
                    NO_EPOCH,
                    known.log_start_offset,
                ),
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
        request: Request[messages.FetchRequest],
        header: bytes,
        answer: messages.FetchResponse,
    ) -> int:
        context, body = self.context, request.body
        if (
            not body.topics
            or self.route.api_version < FIRST_VERSION_WITH_SESSIONS
            or body.forgotten_topics_data
            or (body.session_epoch == FINAL_EPOCH) != (body.session_id == INVALID_SESSION_ID)
            or body.session_epoch == INITIAL_EPOCH
            or request.is_from_follower
            or context.replica_manager.partitions.select_replica is not select_leader
        ):
            return 0
        found: list[KnownPartition] = []
        for topic, answered in zip(body.topics, answer.responses, strict=True):
            key = topic.topic_id if self._by_id else topic.topic
            name = context.metadata_cache.topic_name(key) if isinstance(key, bytes) else key
            for part, data in zip(topic.partitions, answered.partitions, strict=True):
                partition = context.replica_manager.get_partition(
                    TopicPartition(name or "", part.partition)
                )
                if (
                    partition is None
                    or not partition.is_leader
                    or data.error_code
                    or data.aborted_transactions
                    or part.last_fetched_epoch != NO_EPOCH
                    or part.partition_max_bytes < 0
                    or (topic.topic, topic.topic_id, part.partition)
                    != (answered.topic, answered.topic_id, data.partition_index)
                ):
                    return 0
                number = len(found)
                part.fetch_offset = data.high_watermark = MARK + number
                data.records = RECORDS_MARK
                found.append(
                    KnownPartition(
                        partition,
                        2 + number,
                        (key, part.partition),
                        topic.topic_id if self._by_id else b"",
                        part.current_leader_epoch,
                        part.partition_max_bytes,
                        part.log_start_offset,
                    )
                )
        if not 0 < len({known.partition for known in found}) == len(found) <= PARTITIONS_MAX:
            return 0
        template, _ = self._encode(answer)
        *around, tail = split_at_records(template, is_flexible=self._is_flexible)
        for number, (known, before) in enumerate(zip(found, around, strict=True)):
            known.before = before
            (known.offsets_at,) = find_marks(before, 1, number)
        params = fetch_params(context, request, body)
        if params.max_wait_ms <= 0:
            params = params._replace(min_bytes=0)
        layout = Layout(
            params,
            request.client_id,
            body.session_id,
            cache_key(params, select_leader),
            tuple(found),
            tail,
        )
        body.session_epoch = SHORT_MARK
        marked = header + b"".join(type(body).encoder(self.route.api_version)(body))
        self._add(marked, [find_short_mark(marked), *find_marks(marked, len(found))], layout)
        return len(found)

    def _add(self, marked: bytes, places: list[int], layout: Layout) -> None:
        """Remember a request by what stands around its numbers.

        Args:
            marked: the encoded request, from where it repeats on, with marks for its numbers.
            places: where in it the marks stand, first that of the session's epoch.
            layout: what it finds.
        """
        form, constants, at = ">4xi", [], 0
        for place, code in zip(places, "i" + "q" * len(layout.partitions), strict=True):
            constants.append(marked[at:place])
            form += f"{place - at}s{code}"
            at = place + struct.calcsize(f">{code}")
        constants.append(marked[at:])
        form += f"{len(marked) - at}s"
        size = REPEATS_FROM + len(marked)
        if size not in self._shapes or self._shapes[size][0].format != form:
            self._shapes[size] = struct.Struct(form), {}
        self._shapes[size][1][tuple(constants)] = layout

    def _forget(self) -> None:
        self._shapes.clear()


class WaitingFetch(Request[object]):
    """A known request that waits for records; its body is its frame until somebody looks at it.

    Attributes:
        layout: of it.
        known_by: the memo that knows it.
    """

    __slots__ = ("known_by", "layout")

    layout: Layout
    known_by: FetchMemo

    def complete(self, results: FetchResults | Steps[FetchResults]) -> None:
        """Answer; where there is more to say than records, as the handler does."""
        assert isinstance(results, list), "a layout has few partitions"
        connection, memo, layout = self.connection, self.known_by, self.layout
        if connection.is_closed:
            return
        context, stage, throttle_ms = memo.context, memo.stage, 0
        if stage is not None:
            size = sum(len(data.records) + PARTITION_BYTES for _, data in results)
            throttle_ms = stage.must_wait_to_fetch(connection, self.client_id, self, size)
        if (
            not throttle_ms
            and memo.epoch == context.admission.epoch
            and not any(data.error or data.aborted_transactions for _, data in results)
        ):
            found = [
                (known, data.records, len(data.records))
                for known, (_, data) in zip(layout.partitions, results, strict=True)
            ]
            self.buffers, size = memo.encode(layout, self.correlation_id, found)
            elapsed_ms = context.clock.monotonic_ms() - self.received_ms
            self.route.count_successes(1 + len(found), elapsed_ms)
            connection.unsent_bytes += size
            connection.note_answered()
            return
        frame = self.body
        assert isinstance(frame, bytes)
        self.body = self.route.decode(frame, read_request_header(frame)[2])[0]
        if throttle_ms:
            self.answer(messages.FetchResponse(throttle_time_ms=throttle_ms))
        else:
            context.replica_manager.count_fetches(layout.params, results)
            answered = [(key_of(requested), data) for requested, data in results]
            self.answer(fetch_response(context, self, None, answered, is_full=False))
