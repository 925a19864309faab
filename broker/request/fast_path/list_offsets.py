"""The common ListOffsets: for ends of partitions, as its connection has requested before.

Consumers that seek by themselves (Spark's, for each poll) request the start and the end of the
same partition in turn. But for their correlation ids such requests are the same bytes.
"""

from __future__ import annotations

import struct
from typing import NamedTuple

from ....common.errors import KafkaError
from ....common.sentinels import CONSUMER_REPLICA_ID, EARLIEST_TIMESTAMP, LATEST_TIMESTAMP
from ....common.topic_partition import TopicPartition
from ....protocol import messages
from ....replication.partition.partition import FetchIsolation, Partition
from ....replication.read.list_offsets import find_offset, isolation_for
from ..context import HandlerContext
from ..requests import ClientConnection, Request
from ..route import Route
from .marks import MARK, find_marks
from .memo import REPEATS_FROM, Memo

REQUEST_BYTES_MAX = 1024
FIRST_VERSION_WITH_LEADER_EPOCHS = 4

_pack_offset = struct.Struct(">q").pack_into
_pack_offset_and_epoch = struct.Struct(">qi").pack_into
_pack_throttle_time = struct.Struct(">i").pack_into


class EndLookup(NamedTuple):
    """Which end of which partition is requested, and where in the answer it goes."""

    partition: Partition
    leader_epoch: int
    timestamp: int
    at: int


class Layout(NamedTuple):
    """One request that came before, and its encoded answer but for the offsets."""

    isolation: FetchIsolation
    lookups: tuple[EndLookup, ...]
    answer: bytes
    throttle_at: int
    client_id: str


class ListOffsetsMemo(Memo[messages.ListOffsetsRequest, messages.ListOffsetsResponse]):
    """The lookups that one connection has requested, by the bytes of the request."""

    __slots__ = ("_by_bytes", "_knows_epochs")

    def __init__(self, context: HandlerContext, route: Route) -> None:
        super().__init__(context, route)
        self._by_bytes: dict[bytes, Layout] = {}
        self._knows_epochs = route.api_version >= FIRST_VERSION_WITH_LEADER_EPOCHS

    def take(self, connection: ClientConnection, frame: memoryview) -> bool:
        """Answer the request if its like has come before; returns whether that was done."""
        layout = self._by_bytes.get(bytes(frame[REPEATS_FROM:]))
        if layout is None:
            return False
        if connection.unanswered:
            self._is_known = True
            return False
        answer = bytearray(layout.answer)
        answer[4:8] = frame[4:8]
        try:
            for partition, leader_epoch, timestamp, at in layout.lookups:
                partition.check_leader(leader_epoch)
                _, offset, epoch = find_offset(partition, timestamp, layout.isolation)
                if self._knows_epochs:
                    _pack_offset_and_epoch(answer, at, offset, epoch)
                else:
                    _pack_offset(answer, at, offset)
        except KafkaError:
            self._is_known = True
            return False  # the handler says what is wrong
        self.route.count_successes(len(layout.lookups))
        connection.send_at_once((answer,), len(answer))
        if self.stage is not None and (
            throttle_ms := self.stage.answered(connection, layout.client_id, None, is_produce=False)
        ):
            if layout.throttle_at >= 0:
                _pack_throttle_time(answer, layout.throttle_at, throttle_ms)
            connection.throttle(throttle_ms)
        return True

    def _remember(
        self,
        request: Request[messages.ListOffsetsRequest],
        header: bytes,
        answer: messages.ListOffsetsResponse,
    ) -> int:
        body = request.body
        if body.replica_id != CONSUMER_REPLICA_ID:
            return 0
        found: list[tuple[Partition, int, int]] = []
        for topic, answered in zip(body.topics, answer.topics, strict=True):
            for requested, part in zip(topic.partitions, answered.partitions, strict=True):
                partition = self.context.replica_manager.get_partition(
                    TopicPartition(topic.name, requested.partition_index)
                )
                if (
                    partition is None
                    or part.error_code
                    or requested.timestamp not in (EARLIEST_TIMESTAMP, LATEST_TIMESTAMP)
                ):
                    return 0
                part.offset = MARK + len(found)
                found.append((partition, requested.current_leader_epoch, requested.timestamp))
        encoded = b"".join(type(body).encoder(self.route.api_version)(body))
        if not found or len(header) + len(encoded) > REQUEST_BYTES_MAX - REPEATS_FROM:
            return 0
        template, throttle_at = self._encode(answer)
        self._by_bytes[header + encoded] = Layout(
            isolation_for(body.replica_id, body.isolation_level),
            tuple(
                EndLookup(*each, at)
                for each, at in zip(found, find_marks(template, len(found)), strict=True)
            ),
            template,
            throttle_at,
            request.client_id,
        )
        return len(found)

    def _forget(self) -> None:
        self._by_bytes.clear()
