"""The common Produce: the one whose bytes but for the records have come before.

A producer writes to the same partitions again and again. The bytes before the first records, and
those between the records of one partition and the next, are looked up; each leads to a partition,
and the last to the encoded answer, in which only offsets are filled in. Nothing is decoded.
Whatever differs takes the handler's slow path, whose answers are the same.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

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
    FIRST_VERSION_WITH_LOG_START,
    FIRST_VERSION_WITH_TOPIC_IDS,
    begins_transaction,
    produce_response,
    refusal_of,
)
from ..requests import Accountable, ClientConnection, Request
from ..route import FramePart, Route
from .marks import MARK, RECORDS_MARK, find_marks, split_at_records
from .memo import PARTITIONS_MAX, REPEATS_FROM, Memo

if TYPE_CHECKING:
    from ..quotas.quota_stage import ClientSensors

CLIENT = AppendOrigin.CLIENT
ALL_ACKS = -1
VARINT_GOES_ON = 0x80

_unpack_length = struct.Struct(">i").unpack_from
_pack_offset_and_time = struct.Struct(">qq").pack_into
_pack_offset_time_and_start = struct.Struct(">qqq").pack_into
_pack_throttle_time = struct.Struct(">i").pack_into


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
        body: with marks in place of its records.
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


@dataclass(slots=True, eq=False)
class Step:
    """How far a request is read: before a partition's records, or at its end.

    Attributes:
        partition: whose records come next; at an end no matter which.
        has_transactional_id: whether the request has one.
        separator_bytes: how many bytes stand between these records and the next step.
        layout: of the request that ends here; None of a step before records.
        following: the next step, by those bytes.
    """

    partition: Partition
    has_transactional_id: bool
    separator_bytes: int
    layout: Layout | None = None
    following: dict[bytes, Step] = field(default_factory=dict)


class ProduceMemo(Memo[messages.ProduceRequest, messages.ProduceResponse]):
    """The partitions that one connection has written to, by the bytes of its requests."""

    __slots__ = ("_heads", "has_log_start")

    def __init__(self, context: HandlerContext, route: Route) -> None:
        super().__init__(context, route)
        self.has_log_start = route.api_version >= FIRST_VERSION_WITH_LOG_START
        self._heads: list[tuple[int, struct.Struct, dict[bytes, Step]]] = []
        """First steps: where the first records' length stands, what gives correlation id and the
        bytes before that, and what is known by these."""

    def take(self, connection: ClientConnection, frame: memoryview) -> bool:
        """Stage the request if its like has come before; returns whether that was done."""
        for begins, form, steps in self._heads:
            try:
                correlation_id, head = form.unpack_from(frame)
            except struct.error:  # it is shorter than that
                continue
            step = steps.get(head)
            if step is not None:
                at, end = begins, len(frame)
                break
        else:
            return False
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
        produce = FastProduce(self, connection, correlation_id, layout, results, now_ms, has_failed)
        connection.unanswered.append(produce)
        manager.note_staged(layout.partitions, produce)
        if self.stage is not None and (throttle_ms := self.stage.produced(layout.sensors)):
            produce.note_throttled(throttle_ms)
            connection.throttle(throttle_ms)
        return True

    # -- what is remembered -----------------------------------------------------------

    def _remember(
        self,
        request: Request[messages.ProduceRequest],
        header: bytes,
        answer: messages.ProduceResponse,
    ) -> int:
        context, body = self.context, request.body
        if body.transactional_id is not None and not context.authorize(
            request, "WRITE", "TRANSACTIONAL_ID", body.transactional_id
        ):
            return 0
        names: list[str | None] = []
        partitions: list[Partition] = []
        for topic, answered in zip(body.topic_data, answer.responses, strict=True):
            name: str | None = topic.name
            if self.route.api_version >= FIRST_VERSION_WITH_TOPIC_IDS:
                name = context.metadata_cache.topic_name(topic.topic_id)
            if name is None or name in INTERNAL_TOPICS:
                return 0
            names.append(name)
            for part, result in zip(
                topic.partition_data, answered.partition_responses, strict=True
            ):
                partition = context.replica_manager.get_partition(TopicPartition(name, part.index))
                if partition is None or result.error_code:
                    return 0
                part.records = memoryview(RECORDS_MARK)
                result.base_offset = MARK + len(partitions)
                partitions.append(partition)
        if not 0 < len(set(partitions)) == len(partitions) <= PARTITIONS_MAX:
            return 0
        encoded = b"".join(type(body).encoder(self.route.api_version)(body))
        first, *cut = split_at_records(header + encoded, is_flexible=self._is_flexible)
        begins = REPEATS_FROM + len(first)
        if begins not in {head[0] for head in self._heads}:
            self._heads.append((begins, struct.Struct(f">4x4s{len(first)}s"), {}))
        (steps,) = (head[2] for head in self._heads if head[0] == begins)
        has_id = body.transactional_id is not None
        for separator, partition, following in zip([first, *cut], partitions, cut, strict=False):
            step = steps.setdefault(separator, Step(partition, has_id, len(following)))
            steps = step.following
        if cut[-1] in steps:
            return 0  # its like was sent before the first was answered
        template, throttle_at = self._encode(answer)
        end = steps[cut[-1]] = Step(partitions[0], has_id, 0)
        end.layout = Layout(
            tuple(partitions),
            body.acks,
            template,
            find_marks(template, len(partitions)),
            body,
            names,
            request.client_id,
            throttle_at,
            None
            if self.stage is None
            else self.stage.sensors_of(request.connection, request.client_id),
        )
        return len(partitions)

    def _forget(self) -> None:
        self._heads.clear()


@dataclass(slots=True, eq=False)
class FastProduce(Accountable):
    """A request that was known, between its staging and its answer.

    Attributes:
        correlation_id: of the request, as it was sent.
        results: of its partitions.
        received_ms: when it came, wall time.
        has_failed: whether one of the results is an error.
        buffers: the framed answer once it is there.
    """

    memo: ProduceMemo
    connection: ClientConnection
    correlation_id: bytes
    layout: Layout
    results: list[LogAppendInfo | PartitionResponse]
    received_ms: int
    has_failed: bool
    buffers: Sequence[FramePart] | None = None

    def fail_partition(self, partition: Partition, error: ErrorCode, message: str) -> None:
        """Take note that a partition's flush did not succeed."""
        if partition in self.layout.partitions:
            at = self.layout.partitions.index(partition)
            self.results[at] = PartitionResponse(error, error_message=message)
            self.has_failed = True

    def note_throttled(self, throttle_ms: int) -> None:
        """Have its client know for how long it is to wait."""
        answer = bytearray(self.layout.answer)
        _pack_throttle_time(answer, self.layout.throttle_at, throttle_ms)
        self.layout = replace(self.layout, answer=bytes(answer))

    def complete(self) -> None:
        """Answer, unless the answer must wait for replicas."""
        connection, layout = self.connection, self.layout
        if connection.is_closed:
            return
        if self.has_failed or (layout.acks == ALL_ACKS and not self._is_replicated()):
            self._wait()
        else:
            self._succeed(self.memo.context.replica_manager.flushed_ms)

    def _is_replicated(self) -> bool:
        for partition, result in zip(self.layout.partitions, self.results, strict=True):
            done, error = partition.has_replicated(result[1] + 1)
            if error or not done:
                return False
        return True

    def _wait(self) -> None:
        """Go on as an append does that took the slow path."""
        body, manager = self.layout.body, self.memo.context.replica_manager
        wait = manager.wait_for_replicas if body.acks == ALL_ACKS else None
        pending = PendingAppend(body.timeout_ms, self._answer, wait)
        for partition, result in zip(self.layout.partitions, self.results, strict=True):
            if isinstance(result, PartitionResponse):
                waiting = PendingPartition(None, 0, result)
            else:
                waiting = PendingPartition(partition, result.last_offset + 1, appended(result))
            pending.partitions[partition.topic_partition] = waiting
        pending.complete()

    def _answer(self, results: dict[TopicPartition, PartitionResponse]) -> None:
        connection, memo, layout = self.connection, self.memo, self.layout
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
            int.from_bytes(self.correlation_id, signed=True),
            layout.client_id,
            layout.body,
            connection,
        )
        request.take_over(self, now_ms - self.received_ms)
        topics = request.body.topic_data
        request.answer(produce_response(memo.context, request, topics, layout.names, results, {}))

    def _succeed(self, now_ms: int) -> None:
        memo, layout, connection = self.memo, self.layout, self.connection
        answer = bytearray(layout.answer)
        answer[4:8] = self.correlation_id
        for result, at in zip(self.results, layout.offsets_at):  # noqa: B905  # as many: `strict=` costs more than the rest of the line
            if memo.has_log_start:
                _pack_offset_time_and_start(answer, at, result[0], result[3], result[4])
            else:
                _pack_offset_and_time(answer, at, result[0], result[3])
        self.buffers = (answer,)
        memo.route.count_successes(len(self.results), now_ms - self.received_ms)
        connection.unsent_bytes += len(answer)
        connection.note_answered()
