"""Incremental fetch sessions (KIP-227): a client names only what changed since its last fetch.

A session remembers the partitions a client fetches and what it last told of each; an
incremental answer holds only partitions with news. Sessions live in a cache of bounded
size: a new one takes the place of the least recently used that has been idle long enough.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from ..protocol.errors import ErrorCode, KafkaError
from ..replication.fetch import FetchPartitionData

INVALID_SESSION_ID = 0
INITIAL_EPOCH = 0
FINAL_EPOCH = -1
EPOCH_MAX = 2**31 - 1
EVICTION_MS = 120_000
"""How long a session must be unused before another may take its place."""

PartitionKey = tuple[str | bytes, int]
"""Topic name or id, as the request's version names topics, and partition."""


class RequestedPartition(NamedTuple):
    """What a client asks of one partition, as it stays in force through a session."""

    key: PartitionKey
    fetch_offset: int
    max_bytes: int
    current_leader_epoch: int
    last_fetched_epoch: int
    log_start_offset: int


class CachedPartition:
    """One partition of a session: what is asked, and what was last answered."""

    __slots__ = ("high_watermark", "log_start_offset", "requested")

    def __init__(self, requested: RequestedPartition) -> None:
        self.requested = requested
        self.high_watermark = -1
        self.log_start_offset = -1

    def take_news(self, data: FetchPartitionData) -> bool:
        """Remember the answer; returns whether it holds anything the client does not know."""
        has_news = (
            len(data.records) > 0
            or data.high_watermark != self.high_watermark
            or data.log_start_offset != self.log_start_offset
            or data.preferred_read_replica != -1
            or data.diverging_epoch is not None
            or bool(data.error)
        )
        self.high_watermark = data.high_watermark
        self.log_start_offset = data.log_start_offset
        if data.error or data.diverging_epoch is not None:
            self.high_watermark = -1  # so that the next good answer is news
        return has_news


class FetchSession:
    """One client's session."""

    __slots__ = ("epoch", "id", "last_used_ms", "partitions", "uses_topic_ids")

    def __init__(self, session_id: int, uses_topic_ids: bool, now_ms: int) -> None:
        self.id = session_id
        self.uses_topic_ids = uses_topic_ids
        self.epoch = 1
        self.last_used_ms = now_ms
        self.partitions: dict[PartitionKey, CachedPartition] = {}

    def update(
        self, requested: Iterable[RequestedPartition], forgotten: Iterable[PartitionKey]
    ) -> None:
        """Take over what the client adds, changes and forgets."""
        for partition in requested:
            cached = self.partitions.get(partition.key)
            if cached is None:
                self.partitions[partition.key] = CachedPartition(partition)
            else:
                if partition.current_leader_epoch != cached.requested.current_leader_epoch:
                    # What was told last may have been for a leader that was none any more.
                    cached.high_watermark = -1
                cached.requested = partition
        for key in forgotten:
            self.partitions.pop(key, None)

    def move_to_end(self, keys: Sequence[PartitionKey]) -> None:
        """Partitions that just gave records come last next time, so that none starves."""
        for key in keys:
            cached = self.partitions.pop(key, None)
            if cached is not None:
                self.partitions[key] = cached


class FetchSessionCache:
    """All sessions of a broker.

    Args:
        slots_max: most sessions kept (`max.incremental.fetch.session.cache.slots`).
        chance: for session ids.

    Attributes:
        evictions: how many sessions made room for others.
    """

    def __init__(self, slots_max: int, chance: random.Random) -> None:
        self._slots_max = slots_max
        self._random = chance
        self._sessions: dict[int, FetchSession] = {}
        self.evictions = 0

    def __iter__(self) -> Iterator[FetchSession]:
        """All of them."""
        return iter(list(self._sessions.values()))

    def __len__(self) -> int:
        """How many sessions are kept."""
        return len(self._sessions)

    def create(self, uses_topic_ids: bool, now_ms: int) -> FetchSession | None:
        """A new session, or None where the cache is full of sessions in use."""
        if self._slots_max <= 0:
            return None
        if len(self._sessions) >= self._slots_max:
            oldest = next(iter(self._sessions.values()))
            if now_ms - oldest.last_used_ms < EVICTION_MS:
                return None
            del self._sessions[oldest.id]
            self.evictions += 1
        session_id = INVALID_SESSION_ID
        while session_id == INVALID_SESSION_ID or session_id in self._sessions:
            session_id = self._random.randrange(1, EPOCH_MAX)
        session = self._sessions[session_id] = FetchSession(session_id, uses_topic_ids, now_ms)
        return session

    def use(self, session_id: int, epoch: int, uses_topic_ids: bool, now_ms: int) -> FetchSession:
        """The session of an incremental fetch, its epoch moved on.

        Raises:
            KafkaError: FETCH_SESSION_ID_NOT_FOUND, INVALID_FETCH_SESSION_EPOCH or
                FETCH_SESSION_TOPIC_ID_ERROR; the client then begins a session anew.
        """
        session = self._sessions.get(session_id)
        if session is None:
            raise KafkaError(ErrorCode.FETCH_SESSION_ID_NOT_FOUND)
        if session.epoch != epoch:
            raise KafkaError(ErrorCode.INVALID_FETCH_SESSION_EPOCH)
        if session.uses_topic_ids != uses_topic_ids:
            raise KafkaError(ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR)
        session.epoch = 1 if epoch == EPOCH_MAX else epoch + 1
        session.last_used_ms = now_ms
        del self._sessions[session_id]  # the cache's order is that of last use
        self._sessions[session_id] = session
        return session

    def close(self, session_id: int) -> None:
        """Forget a session, if there is one."""
        self._sessions.pop(session_id, None)
