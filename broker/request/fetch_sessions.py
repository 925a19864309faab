"""Incremental fetch sessions (KIP-227): a client names only what changed since its last fetch.

A session remembers the partitions a client fetches and what it last answered of each; an
incremental answer holds only partitions with news. Those that had none are left alone until
they change: a fetch costs what is active of its session, however large that is. Sessions live
in a cache of bounded size: a new one takes the place of the least recently used that has been
idle long enough.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Sequence
from typing import Protocol

from ...common.errors import ErrorCode, KafkaError
from ...common.named_tuple import NamedTuple
from ...common.sentinels import INVALID_SESSION_ID
from ...common.topic_partition import TopicPartition
from ...protocol import messages
from ...replication.purgatory.delayed_fetch import FetchPurgatory
from ...replication.purgatory.idle_partition_cache import IdlePartition, IdlePartitionCache
from ...replication.read.fetch import FetchParams, FetchPartition, FetchPartitionData
from ...replication.read.reading import PARTITIONS_AT_ONCE
from ...replication.read.replica_selector import SelectReplica
from ...runtime.steps import Steps

INITIAL_EPOCH = 0
EPOCH_MAX = 2**31 - 1
EVICTION_MS = 120_000
"""How long a session must be unused before another may take its place."""
IMPLICIT_PARTITIONS_MAX = 16_384
"""So many partitions are remembered of all clients that fetch without a session (KIP-227): 1.4 KB
each. Fetches beyond are answered just so, and cost as much as in Kafka."""

Terms = tuple[object, ...]
"""What of a whole fetch decides what its reader sees of each partition."""
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


def key_of(requested: FetchPartition) -> PartitionKey:
    """What its request calls a partition."""
    topic, index = requested.topic_partition
    return requested.topic_id or topic, index


def requested_partition(
    topic: str | bytes, partition: messages.FetchRequest.FetchPartition
) -> RequestedPartition:
    """What a request says of a partition."""
    return RequestedPartition(
        (topic, partition.partition),
        partition.fetch_offset,
        partition.partition_max_bytes,
        partition.current_leader_epoch,
        partition.last_fetched_epoch,
        partition.log_start_offset,
    )


class RepeatedPartition(Protocol):
    """A partition as its connection has requested it before."""

    key: PartitionKey
    leader_epoch: int


class CachedPartition:
    """One partition of a session: what is requested, and what was last answered.

    Attributes:
        place: goes up along the session's order.
        idle_as: how it is known while it is left alone.
    """

    __slots__ = ("high_watermark", "idle_as", "log_start_offset", "place", "requested")

    def __init__(self, requested: RequestedPartition, place: int = 0) -> None:
        self.requested = requested
        self.place = place
        self.idle_as: TopicPartition | None = None
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


class FetchSession(IdlePartitionCache):
    """One client's session.

    Attributes:
        partitions: all of them, in the order in which they are read.
        active: those that a fetch has to look at; the others are idle.
    """

    __slots__ = (
        "_next_place",
        "active",
        "epoch",
        "id",
        "last_used_ms",
        "partitions",
        "uses_topic_ids",
    )

    def __init__(
        self, session_id: int, uses_topic_ids: bool, now_ms: int, purgatory: FetchPurgatory
    ) -> None:
        super().__init__(purgatory)
        self.id = session_id
        self.uses_topic_ids = uses_topic_ids
        self.epoch = 1
        self.last_used_ms = now_ms
        self.partitions: dict[PartitionKey, CachedPartition] = {}
        self.active: dict[PartitionKey, CachedPartition] = {}
        self._next_place = 0

    def update(
        self, requested: Iterable[RequestedPartition], forgotten: Iterable[PartitionKey]
    ) -> None:
        """Take over what the client adds, changes and forgets."""
        for partition in requested:
            key = partition.key
            cached = self.partitions.get(key)
            if cached is None:
                cached = CachedPartition(partition, self._take_place())
                self.partitions[key] = self.active[key] = cached
            else:
                self._mark_active(cached)
                if partition.current_leader_epoch != cached.requested.current_leader_epoch:
                    # The last answer may have been for a leader that was none any more.
                    cached.high_watermark = -1
                cached.requested = partition
        for key in forgotten:
            cached = self.partitions.get(key)
            if cached is not None:
                self._mark_active(cached)
                del self.partitions[key], self.active[key]

    def move_to_end(self, keys: Sequence[PartitionKey]) -> None:
        """Partitions that just gave records come last next time, so that none starves."""
        for key in keys:
            cached = self.partitions.pop(key, None)
            if cached is not None:
                self.partitions[key] = cached
                cached.place = self._take_place()

    def _take_place(self) -> int:
        self._next_place += 1
        return self._next_place

    # -- idle partitions --------------------------------------------------------------

    def reads_only(
        self, partitions: Sequence[RepeatedPartition], snapshot: object, terms: tuple[object, ...]
    ) -> bool:
        """Whether these partitions are all that a fetch of them has to look at, in this order.

        Args:
            partitions: each of the leader epoch that the last fetch of it has to be of.
            snapshot: as of `invalidate_unless`.
            terms: as of `invalidate_unless`.
        """
        active = self.active
        if (
            self.waiting is not None
            or len(active) != len(partitions)
            or snapshot is not self._snapshot
            or terms != self._terms
        ):
            return False
        place = 0
        for each in partitions:
            cached = active.get(each.key)
            if (
                cached is None
                or cached.place < place
                or cached.requested.current_leader_epoch != each.leader_epoch
            ):
                return False
            place = cached.place
        return True

    def note_records(
        self, requested: RequestedPartition, high_watermark: int, log_start_offset: int
    ) -> None:
        """A partition is requested so from now on, and has just been answered with records."""
        cached = self.partitions[requested.key]
        cached.requested = requested
        cached.high_watermark = high_watermark
        cached.log_start_offset = log_start_offset
        if len(self.partitions) > 1:
            self.move_to_end((requested.key,))

    def requested_partitions(self) -> list[RequestedPartition] | None:
        """The requests for the active partitions, in the session's order; None: they are many."""
        active = self.active
        count = len(active)
        if count < 2:
            return [each.requested for each in active.values()]
        if count > PARTITIONS_AT_ONCE:
            return None
        return [each.requested for each in sorted(active.values(), key=_place_of)]

    def requested_in_steps(self) -> Steps[list[RequestedPartition]]:
        """The same of many, as work; to sort them takes no longer than a step."""
        yield
        return [each.requested for each in sorted(self.active.values(), key=_place_of)]

    def mark_idle(self, key: PartitionKey, idle: IdlePartition) -> None:
        """A partition was just answered as it is: until it changes, no fetch has to look at it."""
        cached = self.active.get(key)
        topic_partition = idle.requested.topic_partition
        if cached is None or topic_partition in self.idle or self.is_closed:
            return
        del self.active[key]
        cached.idle_as = topic_partition
        self.add(idle)

    def on_active(self, idle: IdlePartition) -> None:
        """A partition is active again."""
        key = key_of(idle.requested)
        cached = self.active[key] = self.partitions[key]
        cached.idle_as = None

    def in_order(self, partitions: Sequence[FetchPartition]) -> Sequence[FetchPartition]:
        """Partitions of this session, in its order."""
        cached = self.partitions
        return sorted(partitions, key=lambda requested: cached[key_of(requested)].place)

    def _mark_active(self, cached: CachedPartition) -> None:
        if cached.idle_as is not None:
            self.mark_active(cached.idle_as)


def cache_key(params: FetchParams, select_replica: SelectReplica) -> Terms:
    """What of a whole fetch decides what its reader sees of each partition."""
    return (
        params.isolation,
        params.replica_id,
        params.replica_epoch,
        params.rack,
        params.may_ask_followers,
        select_replica,
    )


def _place_of(cached: CachedPartition) -> int:
    return cached.place


class FetchSessionCache:
    """All sessions of a broker, and how much room there is for those without a number.

    Args:
        slots_max: most sessions kept (`max.incremental.fetch.session.cache.slots`).
        rng: for session ids.
        purgatory: where the sessions' fetches wait, which tells of changed partitions.

    Attributes:
        evictions: how many sessions were evicted for others.
        implicit_partitions: what the sessions without a number have, which are not kept here.
    """

    def __init__(self, slots_max: int, rng: random.Random, purgatory: FetchPurgatory) -> None:
        self._slots_max = slots_max
        self._rng = rng
        self._purgatory = purgatory
        self._sessions: dict[int, FetchSession] = {}
        self.evictions = 0
        self.implicit_partitions = 0

    def has_implicit_room(self, partitions: int) -> bool:
        """Whether sessions without a number may have so many partitions more."""
        return self.implicit_partitions + partitions <= IMPLICIT_PARTITIONS_MAX

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
            self.close(oldest.id)
            self.evictions += 1
        session_id = INVALID_SESSION_ID
        while session_id == INVALID_SESSION_ID or session_id in self._sessions:
            session_id = self._rng.randrange(1, EPOCH_MAX)
        session = FetchSession(session_id, uses_topic_ids, now_ms, self._purgatory)
        self._sessions[session_id] = session
        return session

    def find(self, session_id: int, epoch: int, uses_topic_ids: bool) -> FetchSession | None:
        """The session that an incremental fetch may use; see `use`."""
        session = self._sessions.get(session_id)
        if session is None or session.epoch != epoch or session.uses_topic_ids != uses_topic_ids:
            return None
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
        self.advance(session, now_ms)
        return session

    def advance(self, session: FetchSession, now_ms: int) -> None:
        """Have a session's next fetch be of the next epoch."""
        session.complete_waiting()
        session.epoch = 1 if session.epoch == EPOCH_MAX else session.epoch + 1
        session.last_used_ms = now_ms
        del self._sessions[session.id]  # the cache's order is that of last use
        self._sessions[session.id] = session

    def close(self, session_id: int) -> None:
        """Forget a session, if there is one."""
        session = self._sessions.pop(session_id, None)
        if session is not None:
            session.close()
