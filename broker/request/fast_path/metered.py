"""The memos while there are quotas: what they answer is accounted for, and waits if it must.

A client within its quotas is served as by the other memos. One that is above them gets the
throttle time in the answer's template, or, for a Fetch, the slow path's empty answer.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import replace

from ....protocol import messages
from ....replication.partition.partition import Partition
from ....replication.read.fetch import FetchResults
from ..context import HandlerContext
from ..fetch_rules import PARTITION_BYTES
from ..quotas.quota_stage import QuotaStage
from ..requests import ClientConnection, Request
from ..route import Route
from .fetch import FetchMemo, Found, Layout, WaitingFetch
from .list_offsets import REPEATS_FROM, ListOffsetsMemo
from .produce import FastProduce, ProduceMemo
from .produce import Layout as ProduceLayout

_pack_throttle_time = struct.Struct(">i").pack_into


def stage_of(context: HandlerContext) -> QuotaStage:
    """The stage while there are quotas; a memo is dropped when they have gone."""
    stage = context.quotas.stage
    assert stage is not None
    return stage


class MeteredProduceMemo(ProduceMemo):
    """Produce requests that count as bytes and time of their client.

    Attributes:
        stage: accounts for them.
    """

    __slots__ = ("stage",)

    def __init__(self, context: HandlerContext, route: Route) -> None:
        super().__init__(context, route)
        self.answer_type = MeteredProduce
        self.stage = stage_of(context)

    def _stage(
        self,
        connection: ClientConnection,
        correlation_id: bytes,
        layout: ProduceLayout,
        batches: list[tuple[Partition, memoryview]],
    ) -> bool:
        if not ProduceMemo._stage(self, connection, correlation_id, layout, batches):
            return False
        throttle_ms = self.stage.produced(layout.sensors)
        if throttle_ms:
            produce = connection.unanswered[-1]
            assert isinstance(produce, MeteredProduce)
            produce.tell_throttled(throttle_ms)
            connection.throttle(throttle_ms)
        return True

    def _layout_of(
        self, request: Request[object], body: messages.ProduceRequest
    ) -> ProduceLayout | None:
        layout = super()._layout_of(request, body)
        if layout is not None:
            layout.sensors = self.stage.sensors_of(request.connection, request.client_id)
        return layout


class MeteredProduce(FastProduce):
    """One of them between its staging and its answer."""

    __slots__ = ()

    def tell_throttled(self, throttle_ms: int) -> None:
        """Have its client know for how long it is to wait."""
        layout = self._layout
        answer = bytearray(layout.answer)
        _pack_throttle_time(answer, layout.throttle_at, throttle_ms)
        self._layout = replace(layout, answer=bytes(answer))


class MeteredListOffsetsMemo(ListOffsetsMemo):
    """ListOffsets requests that count as time of their client."""

    __slots__ = ("_stage",)

    def __init__(self, context: HandlerContext, route: Route) -> None:
        super().__init__(context, route)
        self._stage = stage_of(context)

    def take(self, connection: ClientConnection, frame: memoryview) -> bool:
        """Answer the request if its like has come before; returns whether that was done."""
        if not super().take(connection, frame):
            return False
        layout = self._by_bytes[bytes(frame[REPEATS_FROM:])]
        throttle_ms = self._stage.answered(connection, layout.client_id, None, is_produce=False)
        if throttle_ms:
            if layout.throttle_at >= 0:
                _pack_throttle_time(connection.output[-1], layout.throttle_at, throttle_ms)
            connection.throttle(throttle_ms)
        return True


class MeteredFetchMemo(FetchMemo):
    """Fetches whose answers count as bytes, and which count as time, of their client.

    Attributes:
        stage: accounts for them.
    """

    __slots__ = ("_reader", "stage")

    _reader: ClientConnection

    def __init__(self, context: HandlerContext, route: Route) -> None:
        super().__init__(context, route)
        self.stage = stage_of(context)
        self.waiting_type = MeteredWaitingFetch

    def take(self, connection: ClientConnection, frame: memoryview) -> bool:
        """Answer the request if it is known and there are records for all of its partitions."""
        self._reader = connection
        return super().take(connection, frame)

    def _read(self, layout: Layout, numbers: Sequence[int]) -> Found | None:
        """Each partition's records; None also where the client is above a quota, for then the
        slow path says for how long it has to wait."""
        found = super()._read(layout, numbers)
        if found is None:
            return None
        size = sum(size + PARTITION_BYTES for _, _, size in found)
        if self.stage.may_fetch(self._reader, layout.client_id, size):
            return found
        return None


class MeteredWaitingFetch(WaitingFetch):
    """One of them that waits for records."""

    __slots__ = ()

    def _complete(self, results: FetchResults) -> None:
        connection, layout, memo = self._connection, self._layout, self._memo
        if connection.is_closed:
            return
        assert isinstance(memo, MeteredFetchMemo)
        size = sum(len(data.records) + PARTITION_BYTES for _, data in results)
        throttle_ms = memo.stage.must_wait_to_fetch(connection, layout.client_id, self, size)
        if throttle_ms:
            self._as_request().answer(messages.FetchResponse(throttle_time_ms=throttle_ms))
        else:
            super()._complete(results)
