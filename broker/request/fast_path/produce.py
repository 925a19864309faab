"""The common Produce: the one whose bytes but for the records have come before.

A producer writes to the same partitions again and again. The bytes before the first records, and
those between the records of one partition and the next, are looked up; each leads to a partition,
and the last to the encoded answer, in which only offsets are filled in. Nothing is decoded.
Whatever differs takes the handler's slow path, whose answers are the same.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ....common.errors import ErrorCode, KafkaError
from ....common.internal_topics import INTERNAL_TOPICS
from ....common.topic_partition import TopicPartition
from ....protocol import messages
from ....protocol.errors import ProtocolError
from ....protocol.varints import read_unsigned_varint_rest
from ....replication.append import PartitionResponse, PendingAppend, PendingPartition, appended
from ....replication.partition.partition import Partition
from ....storage.log.append_origin import AppendOrigin
from ....storage.log.log_append_info import LogAppendInfo
from ..context import HandlerContext
from ..produce_rules import (
    ATTRIBUTES_LOW_BYTE,
    FIRST_FLEXIBLE_VERSION,
    FIRST_VERSION_WITH_LOG_START,
    FIRST_VERSION_WITH_TOPIC_IDS,
    begins_transaction,
    partition_response,
    produce_response,
    refusal_of,
)
from ..requests import Accountable, ClientConnection, Request
from ..route import Route
from .marks import MARK, encode_mark, find_marks
from .memo import PARTITIONS_MAX, Memo

if TYPE_CHECKING:
    from ..quotas.quota_stage import ClientSensors

REPEATS_FROM = 8
"""Behind API key, version and correlation id: with the client's id begins what comes again."""
CLIENT = AppendOrigin.CLIENT
ALL_ACKS = -1
VARINT_GOES_ON = 0x80

_unpack_length = struct.Struct(">i").unpack_from
_pack_offset_and_time = struct.Struct(">qq").pack_into
_pack_offset_time_and_start = struct.Struct(">qqq").pack_into


@dataclass(slots=True, eq=False)
class Layout:
    """One request that came before.

    Attributes:
        partitions: in the order of the request.
        acks: who has to have the records before they are acknowledged.
        answer: the encoded answer to a success.
        throttle_at: where in it the throttle time stands.
        sensors: what measures the client; None while there are no quotas.
        offsets_at: where in it each partition's offset stands, with time and log start behind.
        body: without its records.
        names: of its topics.
        client_id: whose it is.
    """

    partitions: tuple[Partition, ...]
    acks: int
    answer: bytes
    offsets_at: list[int]
    body: messages.ProduceRequest
    names: list[str | None]
    client_id: str
    throttle_at: int
    sensors: ClientSensors | None = None


class Step:
    """How far a request is read: before a partition's records, or at its end.

    Attributes:
        layout: of the request that ends here; None of a step before records.
        partition: whose records come next; at an end no matter which.
        has_transactional_id: whether the request has one.
        separator_bytes: how many bytes stand between these records and the next step.
        following: the next step, by those bytes.
    """

    __slots__ = ("following", "has_transactional_id", "layout", "partition", "separator_bytes")

    def __init__(
        self,
        partition: Partition,
        has_transactional_id: bool,
        separator_bytes: int,
    ) -> None:
        self.layout: Layout | None = None
        self.has_transactional_id = has_transactional_id
        self.partition = partition
        self.separator_bytes = separator_bytes
        self.following: dict[bytes, Step] = {}


class Heads:
    """First steps, by the bytes before the first records' length; of one number of bytes."""

    __slots__ = ("end", "steps", "unpack")

    def __init__(self, size: int) -> None:
        self.end = REPEATS_FROM + size
        self.unpack = struct.Struct(f">4x4s{size}s").unpack_from
        self.steps: dict[bytes, Step] = {}


class ProduceMemo(Memo[messages.ProduceRequest]):
    """The partitions that one connection has written to, by the bytes of its requests.

    Attributes:
        answer_type: what a request becomes until it is answered.
    """

    __slots__ = (
        "_has_transactional_id",
        "_heads",
        "_is_flexible",
        "answer_type",
        "context",
        "has_log_start",
        "route",
    )

    def __init__(self, context: HandlerContext, route: Route) -> None:
        super().__init__(context, route)
        self.context = context
        self.route = route
        self.has_log_start = route.api_version >= FIRST_VERSION_WITH_LOG_START
        self._is_flexible = route.api_version >= FIRST_FLEXIBLE_VERSION
        self._heads: list[Heads] = []
        self.answer_type = FastProduce

    def take(self, connection: ClientConnection, frame: memoryview) -> bool:
        """Stage the request if its like has come before; returns whether that was done."""
        step: Step | None = None
        for heads in self._heads:
            try:
                correlation_id, head = heads.unpack(frame)
            except struct.error:  # it is shorter than that
                continue
            step = heads.steps.get(head)
            if step is not None:
                break
        if step is None:
            return False
        at, end = heads.end, len(frame)
        batches: list[tuple[Partition, memoryview]] = []
        try:
            while step.layout is None:
                if not self._is_flexible:
                    size = _unpack_length(frame, at)[0]
                    at += 4
                else:
                    size = frame[at]
                    at += 1
                    if size >= VARINT_GOES_ON:
                        second = frame[at]
                        if second < VARINT_GOES_ON:  # as of batches of up to 16 KB
                            size += (second << 7) - VARINT_GOES_ON
                            at += 1
                        else:
                            size, at = read_unsigned_varint_rest(frame, at, size)
                    size -= 1
                records_end = at + size
                records = frame[at:records_end]
                # A plain batch, as most are, needs no look at its request.
                if (
                    len(records) <= ATTRIBUTES_LOW_BYTE or records[ATTRIBUTES_LOW_BYTE]
                ) and not self._may_append(step, records):
                    self._is_known = True
                    return False
                batches.append((step.partition, records))
                at = records_end + step.separator_bytes
                step = step.following[bytes(frame[records_end:at])]
        except (LookupError, struct.error, ProtocolError):  # it goes on in another way, or ends
            return False
        return at == end and self._stage(connection, correlation_id, step.layout, batches)

    def _may_append(self, step: Step, records: memoryview) -> bool:
        """Whether a compressed or transactional batch is one that needs no more than an append."""
        has_id = step.has_transactional_id
        return refusal_of(self.route.api_version, records, has_id) is None and not (
            has_id and begins_transaction(step.partition, records)
        )

    def _stage(
        self,
        connection: ClientConnection,
        correlation_id: bytes,
        layout: Layout,
        batches: list[tuple[Partition, memoryview]],
    ) -> bool:
        """Append each partition's records; False where the first is refused and none staged."""
        manager, now_ms = self.context.replica_manager, self.context.clock.now_ms()
        results: list[LogAppendInfo | PartitionResponse] = []
        has_failed = False
        for partition, records in batches:
            try:
                results.append(
                    partition.append_records_to_leader(records, CLIENT, layout.acks, now_ms)
                )
            except KafkaError as refusal:
                if not results:
                    self._is_known = True
                    return False  # the handler says why
                results.append(manager.refused_append(partition, refusal, len(records)))
                has_failed = True
        produce = self.answer_type(
            self, connection, correlation_id, layout, results, now_ms, has_failed
        )
        connection.unanswered.append(produce)
        manager.note_staged(layout.partitions, produce)
        return True

    # -- what is remembered -----------------------------------------------------------

    def _remember(
        self,
        request: Request[object],
        frame: memoryview,
        position: int,
        body: messages.ProduceRequest,
    ) -> int:
        layout = self._layout_of(request, body)
        if layout is None:
            return 0
        # Records are buffers of their own in what the codec gives; all else repeats.
        between = type(body).encoder(self.route.api_version)(body)[::2]
        length_bytes = [
            _varint_bytes(len(part.records) + 1) if self._is_flexible else 4
            for topic in body.topic_data
            for part in topic.partition_data
        ]
        cut = [
            bytes(constant[: len(constant) - size])
            for constant, size in zip(between, [*length_bytes, 0], strict=False)
        ]
        if len(between) != len(layout.partitions) + (1 if self._is_flexible else 0):
            return 0
        if not self._is_flexible:
            cut.append(b"")
        cut[0] = bytes(frame[REPEATS_FROM:position]) + cut[0]
        has_id = body.transactional_id is not None
        steps = self._heads_of(len(cut[0])).steps
        for index, partition in enumerate(layout.partitions):
            step = steps.setdefault(cut[index], Step(partition, has_id, len(cut[index + 1])))
            steps = step.following
        layout.body = _without_records(body)
        end = Step(layout.partitions[0], has_id, 0)
        end.layout = layout
        steps[cut[-1]] = end
        return len(layout.partitions)

    def _heads_of(self, size: int) -> Heads:
        for heads in self._heads:
            if heads.end == REPEATS_FROM + size:
                return heads
        self._heads.append(Heads(size))
        return self._heads[-1]

    def _forget(self) -> None:
        self._heads.clear()

    def _layout_of(self, request: Request[object], body: messages.ProduceRequest) -> Layout | None:
        """What a request like this one finds; None if it is not of the common kind."""
        context, version = self.context, self.route.api_version
        by_id = version >= FIRST_VERSION_WITH_TOPIC_IDS
        if body.acks == 0 or (
            body.transactional_id is not None
            and not context.authorize(request, "WRITE", "TRANSACTIONAL_ID", body.transactional_id)
        ):
            return None
        response = messages.ProduceResponse
        answer = response()
        names: list[str | None] = []
        partitions: list[Partition] = []
        for topic in body.topic_data:
            name = context.metadata_cache.topic_name(topic.topic_id) if by_id else topic.name
            if (
                name is None
                or name in INTERNAL_TOPICS
                or not context.authorize(request, "WRITE", "TOPIC", name)
            ):
                return None
            names.append(name)
            answered = response.TopicProduceResponse(name=topic.name, topic_id=topic.topic_id)
            answer.responses.append(answered)
            for part in topic.partition_data:
                partition = context.replica_manager.get_partition(TopicPartition(name, part.index))
                if partition is None or not partition.is_leader or not part.records:
                    return None
                marked = PartitionResponse(ErrorCode.NONE, MARK + len(partitions))
                answered.partition_responses.append(partition_response(part.index, marked))
                partitions.append(partition)
        if not 0 < len(set(partitions)) == len(partitions) <= PARTITIONS_MAX:
            return None
        encoded = self._encode(answer)
        marks = [encode_mark(MARK + index) for index in range(len(partitions))]
        try:
            offsets_at = find_marks(encoded, marks)
        except ValueError:
            return None
        return Layout(
            tuple(partitions),
            body.acks,
            encoded,
            offsets_at,
            body,
            names,
            request.client_id,
            self._find_throttle_time(answer),
        )


def _varint_bytes(value: int) -> int:
    """How many bytes an unsigned varint takes."""
    return max(value.bit_length() + 6, 7) // 7


def _without_records(body: messages.ProduceRequest) -> messages.ProduceRequest:
    """The request but for its records, which lie in memory that is used again."""
    request = messages.ProduceRequest
    return request(
        transactional_id=body.transactional_id,
        acks=body.acks,
        timeout_ms=body.timeout_ms,
        topic_data=[
            request.TopicProduceData(
                name=topic.name,
                topic_id=topic.topic_id,
                partition_data=[
                    request.PartitionProduceData(index=part.index) for part in topic.partition_data
                ],
            )
            for topic in body.topic_data
        ],
    )


class FastProduce(Accountable):
    """A request that was known, between its staging and its answer.

    Args:
        memo: knows it.
        connection: whom it came from.
        correlation_id: of the request, as it was sent.
        layout: of the request.
        results: of its partitions.
        received_ms: when it came, wall time.
        has_failed: whether one of the results is an error.

    Attributes:
        buffers: the framed answer once it is there.
    """

    __slots__ = (
        "_connection",
        "_correlation_id",
        "_has_failed",
        "_layout",
        "_memo",
        "_received_ms",
        "_results",
        "buffers",
    )

    def __init__(
        self,
        memo: ProduceMemo,
        connection: ClientConnection,
        correlation_id: bytes,
        layout: Layout,
        results: list[LogAppendInfo | PartitionResponse],
        received_ms: int,
        has_failed: bool,
    ) -> None:
        self._memo = memo
        self._connection = connection
        self._correlation_id = correlation_id
        self._layout = layout
        self._results = results
        self._received_ms = received_ms
        self._has_failed = has_failed
        self.buffers: Sequence[Any] | None = None

    def fail_partition(self, partition: Partition, error: ErrorCode, message: str) -> None:
        """Take note that a partition's flush did not succeed."""
        if partition in self._layout.partitions:
            at = self._layout.partitions.index(partition)
            self._results[at] = PartitionResponse(error, error_message=message)
            self._has_failed = True

    def complete(self) -> None:
        """Answer, unless the answer must wait for replicas."""
        connection, layout = self._connection, self._layout
        if connection.is_closed:
            return
        if self._has_failed or (layout.acks == ALL_ACKS and not self._is_replicated()):
            self._wait()
        else:
            self._succeed(self._memo.context.replica_manager.flushed_ms)

    def _is_replicated(self) -> bool:
        for partition, result in zip(self._layout.partitions, self._results, strict=True):
            done, error = partition.has_replicated(result[1] + 1)
            if error or not done:
                return False
        return True

    def _wait(self) -> None:
        """Go on as an append does that took the slow path."""
        body, manager = self._layout.body, self._memo.context.replica_manager
        wait = manager.wait_for_replicas if body.acks == ALL_ACKS else None
        pending = PendingAppend(body.timeout_ms, self._answer, wait)
        for partition, result in zip(self._layout.partitions, self._results, strict=True):
            if isinstance(result, PartitionResponse):
                waiting = PendingPartition(None, 0, result)
            else:
                waiting = PendingPartition(partition, result.last_offset + 1, appended(result))
            pending.partitions[partition.topic_partition] = waiting
        pending.complete()

    def _answer(self, results: dict[TopicPartition, PartitionResponse]) -> None:
        connection, memo, layout = self._connection, self._memo, self._layout
        if connection.is_closed:
            return
        now_ms = memo.context.clock.now_ms()
        if connection.dispatcher.uses_memos and not any(each.error for each in results.values()):
            self._succeed(now_ms)
            return
        # There is more to say than offsets, or somebody looks on: the request takes its own
        # place among those that the connection waits for.
        request = Request(
            memo.route,
            int.from_bytes(self._correlation_id, signed=True),
            layout.client_id,
            layout.body,
            connection,
        )
        request.received_ms -= now_ms - self._received_ms
        request.take_over(self)
        connection.unanswered[connection.unanswered.index(self)] = request
        request.answer(
            produce_response(
                memo.context, request, request.body.topic_data, layout.names, results, {}
            )
        )

    def _succeed(self, now_ms: int) -> None:
        memo, layout, connection = self._memo, self._layout, self._connection
        answer = bytearray(layout.answer)
        answer[4:8] = self._correlation_id
        for result, at in zip(self._results, layout.offsets_at):  # noqa: B905  # as many: `strict=` costs more than the rest of the line
            if memo.has_log_start:
                _pack_offset_time_and_start(answer, at, result[0], result[3], result[4])
            else:
                _pack_offset_and_time(answer, at, result[0], result[3])
        self.buffers = (answer,)
        memo.route.count_successes(len(self._results), now_ms - self._received_ms)
        connection.unsent_bytes += len(answer)
        connection.note_answered()
