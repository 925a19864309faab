"""The memos while there are quotas: what they answer is accounted for, and waits if it must.

A client within its quotas is served as by the other memos. One that is above them gets the
throttle time in the answer's template, or, for a Fetch, the slow path's empty answer.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import replace

from ....protocol import messages
from ....replication.read.fetch import FetchResults
from ..context import HandlerContext
from ..fetch_rules import PARTITION_BYTES
from ..quotas.quota_stage import QuotaStage
from ..requests import ClientConnection
from ..route import Route
from .fetch import FetchMemo, Found, Layout, WaitingFetch
from .list_offsets import REPEATS_FROM, ListOffsetsMemo
from .produce import FastProduce, ProduceMemo

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
        self.stage = stage_of(context)
        self.answer_type = MeteredProduce


class MeteredProduce(FastProduce):
    """One of them between its staging and its answer."""

    __slots__ = ()

    def _succeed(self, now_ms: int) -> None:
        connection, layout, memo = self._connection, self._layout, self._memo
        assert isinstance(memo, MeteredProduceMemo)
        throttle_ms = memo.stage.answered(connection, layout.client_id, self, is_produce=True)
        if throttle_ms:
            answer = bytearray(layout.answer)
            _pack_throttle_time(answer, layout.throttle_at, throttle_ms)
            self._layout = replace(layout, answer=bytes(answer))
        super()._succeed(now_ms)
        if throttle_ms:
            connection.throttle(throttle_ms)


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
