"""Fetch requests that are prepared once and change by a few bytes, and what their answers hold."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from functools import partial
from typing import Any, NamedTuple

from ...common.sentinels import FINAL_EPOCH, ZERO_UUID
from ...protocol import messages
from ...protocol.api_keys import ApiKey
from ...protocol.records.batch import BATCH_HEADER_BYTES, LOG_OVERHEAD_BYTES
from ..cluster import LoadTopic
from ..errors import BenchError
from .prepared import FIRST_VERSION_OF_IDS, place_of, require_version
from .wire import Wire, check, frame_of

FIRST_VERSION = 4
FIRST_VERSION_OF_SESSIONS = 7
FETCH_BYTES_MAX = 50 << 20
PARTITION_BYTES_MAX = 1 << 20
"""Both as Java's consumer has them."""

_pack_offset = struct.Struct(">q").pack_into
_pack_epoch = struct.Struct(">i").pack_into
_batch_start = struct.Struct(">qi").unpack_from
_last_delta = struct.Struct(">i").unpack_from
_count = struct.Struct(">i").unpack_from
LAST_DELTA_AT = 23
COUNT_AT = 57


class Fetched(NamedTuple):
    """What an answer has of one partition.

    Attributes:
        next_offset: where to go on; None: there were no records.
        records: how many there were, in whole batches.
        size: their bytes.
    """

    next_offset: int | None
    records: int
    size: int


class FetchRequest:
    """A Fetch of some partitions of one topic, the first of which move on.

    Args:
        wire: to the leader.
        topic: what is fetched.
        partitions: those that the request names.
        moving: so many of them move on, all to the same offset.
        max_wait_ms: how long the broker may wait for records.
        partition_max_bytes: of each partition; 1: one batch.
        session_id: of a fetch session (KIP-227).
        session_epoch: 0 begins a session, -1 is a request without one.
    """

    def __init__(
        self,
        wire: Wire,
        topic: LoadTopic,
        partitions: tuple[int, ...] = (0,),
        *,
        moving: int = 1,
        max_wait_ms: int,
        partition_max_bytes: int = PARTITION_BYTES_MAX,
        session_id: int = 0,
        session_epoch: int = FINAL_EPOCH,
    ) -> None:
        in_session = session_epoch != FINAL_EPOCH
        first = FIRST_VERSION_OF_SESSIONS if in_session else FIRST_VERSION
        self.version = require_version(wire, ApiKey.FETCH, first, "what this load needs")
        if self.version >= FIRST_VERSION_OF_IDS and topic.id == ZERO_UUID:
            self.version = FIRST_VERSION_OF_IDS - 1

        def encode(epoch: int, moved: int, offset: int) -> bytes:
            request = messages.FetchRequest
            named = [
                request.FetchPartition(
                    partition=each,
                    fetch_offset=offset if each == moved else 0,
                    partition_max_bytes=partition_max_bytes,
                )
                for each in partitions
            ]
            whole = request(
                max_wait_ms=max_wait_ms,
                min_bytes=1,
                max_bytes=FETCH_BYTES_MAX,
                session_id=session_id,
                session_epoch=epoch,
                topics=[request.FetchTopic(topic=topic.name, topic_id=topic.id, partitions=named)],
            )
            return frame_of(whole, self.version)

        self.frame = bytearray(encode(session_epoch, 0, 0))
        self._wire = wire
        self._offsets_at = [
            place_of(partial(encode, session_epoch, each)) for each in partitions[:moving]
        ]
        self._epoch_at = place_of(lambda epoch: encode(epoch, 0, 0)) if in_session else None

    def move(self, offset: int, session_epoch: int | None = None) -> bytearray:
        """The request for what moves from another offset on; returns its bytes."""
        for offset_at in self._offsets_at:
            _pack_offset(self.frame, offset_at, offset)
        if session_epoch is not None and self._epoch_at is not None:
            _pack_epoch(self.frame, self._epoch_at, session_epoch)
        return self.frame

    def answer(self) -> Any:
        """Receive an answer that has no error.

        Raises:
            BenchError: it has.
        """
        answer = self._wire.decode(self._wire.receive(), ApiKey.FETCH, self.version)
        check(answer.error_code, "Fetch", self._wire.peer)
        for topic in answer.responses:
            for partition in topic.partitions:
                if partition.error_code:
                    check(partition.error_code, "Fetch", self._wire.peer)
        return answer

    def fetched(self) -> Fetched:
        """Receive an answer, and tell what it has of partition 0. Raises: BenchError."""
        return self.fetched_of_each().get(0, Fetched(None, 0, 0))

    def fetched_of_each(self) -> dict[int, Fetched]:
        """Receive an answer, and what it has of partitions with records. Raises: BenchError."""
        return {
            partition.partition_index: _counted(partition.records)
            for topic in self.answer().responses
            for partition in topic.partitions
            if partition.records
        }


class PolledFetchSession:
    """A fetch session of a topic's partitions (KIP-227), the first of which are busy.

    Args:
        wire: to the leader.
        topic: all its partitions are in the session.
        max_wait_ms: how long the broker may wait for records, once the session is there.
        partition_max_bytes: of each partition; 1: one batch, of the first that has any.
        busy: how many partitions are.

    Raises:
        BenchError: the broker gives no session.
    """

    def __init__(
        self,
        wire: Wire,
        topic: LoadTopic,
        max_wait_ms: int,
        partition_max_bytes: int = 1,
        busy: int = 1,
    ) -> None:
        first = FetchRequest(
            wire,
            topic,
            topic.partitions,
            max_wait_ms=0,
            partition_max_bytes=partition_max_bytes,
            session_epoch=0,
        )
        wire.send(first.frame)
        session_id = first.answer().session_id
        if not session_id:
            raise BenchError(
                f"{wire.peer} gave no fetch session for {len(topic.partitions)} partitions"
            )
        self._wire = wire
        self._epoch = 0
        self._request = FetchRequest(
            wire,
            topic,
            topic.partitions[:busy],
            moving=busy,
            max_wait_ms=max_wait_ms,
            partition_max_bytes=partition_max_bytes,
            session_id=session_id,
            session_epoch=1,
        )

    def ask(self, offset: int) -> None:
        """Ask for what the session's partitions have, the busy ones' from `offset` on."""
        self._epoch = self._epoch % 0x7FFFFFFF + 1
        self._wire.send(self._request.move(offset, self._epoch))

    def fetched(self) -> Fetched:
        """Receive the answer, and tell what it has of partition 0. Raises: BenchError."""
        return self._request.fetched()

    def fetched_of_each(self) -> dict[int, Fetched]:
        """Receive the answer, and what it has of partitions with records. Raises: BenchError."""
        return self._request.fetched_of_each()


def _counted(records: memoryview) -> Fetched:
    """Hop over whole batches; the last may be cut off."""
    next_offset, count = None, 0
    for base_offset, position in _batches(records):
        next_offset = base_offset + _last_delta(records, position + LAST_DELTA_AT)[0] + 1
        count += _count(records, position + COUNT_AT)[0]
    return Fetched(next_offset, count, len(records))


def _batches(records: memoryview) -> Iterator[tuple[int, int]]:
    position, end = 0, len(records)
    while end - position >= BATCH_HEADER_BYTES:
        base_offset, length = _batch_start(records, position)
        size = LOG_OVERHEAD_BYTES + length
        if size < BATCH_HEADER_BYTES:
            raise BenchError("a broker answered Fetch with a batch that has no whole header")
        if size > end - position:
            return
        yield base_offset, position
        position += size
