"""The Fetch without a session that is much like its connection's last.

Some clients (librdkafka) name all their partitions with every Fetch, from another one on each
time. Most of them have nothing new, and the few bytes that ask for such a partition are those of
the last time: they are looked up, not decoded, and what is found is the part of the answer, which
stays right until the partition changes (`IdlePartitionCache`). The others are read as by the
handler, whose answers are the same; what needs more than records and offsets is left to it.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from itertools import compress, repeat
from operator import is_
from typing import Any

from ....common.sentinels import FINAL_EPOCH, INVALID_SESSION_ID, ISOLATION_LEVELS
from ....common.topic_partition import TopicPartition
from ....protocol import messages
from ....replication.purgatory.idle_partition_cache import (
    IdlePartition,
    IdlePartitionCache,
    idle_partition,
)
from ....replication.read.fetch import FetchPartition, FetchPartitionData, FetchResults
from ....replication.read.reading import read_from_log
from ....replication.read.replica_selector import NO_REPLICA
from ..context import HandlerContext
from ..fetch_rules import Results, fetch_params, fetch_response
from ..requests import ClientConnection, Request
from ..route import Route
from .fetch_layout import (
    FIRST_FLEXIBLE_VERSION,
    FIRST_VERSION,
    UNCOMMON,
    FetchLayout,
    TopicPart,
    layout_of,
)

MISSES_BEFORE_LEARNING = 8
"""After so many fetches that differ in more than partitions, the next one is gone by."""
NO_ANSWERS: dict[bytes, bytes] = {}

_pack_prefix = struct.Struct(">ii").pack
_pack_flexible_prefix = struct.Struct(">iib").pack


class IdleFetchFastPath(IdlePartitionCache):
    """What one connection's fetches without a session have in common.

    Args:
        context: the broker's.
        route: of the fetch that is learnt.
        layout: of its version.
        body: what it says of all partitions.
        prefix: of its body, what comes before the topics.
        suffix: and behind them.
    """

    __slots__ = (
        "_answers",
        "_context",
        "_current",
        "_entries",
        "_prefix",
        "_route",
        "_snapshot",
        "_suffix",
        "layout",
        "misses",
        "params",
    )

    def __init__(
        self,
        context: HandlerContext,
        route: Route,
        layout: FetchLayout,
        body: messages.FetchRequest,
        prefix: bytes,
        suffix: bytes,
    ) -> None:
        super().__init__(context.replica_manager.delayed_fetch)
        self.layout = layout
        self.misses = 0
        self._context = context
        self._route = route
        self._prefix = prefix
        self._suffix = suffix
        self._snapshot = context.metadata_cache.snapshot
        self._answers: dict[bytes | str, dict[bytes, bytes]] = {}
        """Topic to what asks for its idle partitions, and what they answer."""
        self._entries: dict[TopicPartition, tuple[bytes | str, bytes]] = {}
        """The same the other way round: an idle partition's topic, and what asks for it."""
        self._current: RepeatedFetch | None = None
        self.params = fetch_params(context, body, layout.version)
        """What holds for all partitions; a broker's settings for it do not change."""

    def recognize(self, route: Route, frame: memoryview, position: int) -> RepeatedFetch | None:
        """The request, if it is as the last one but for its partitions.

        Args:
            route: of the request.
            frame: all of it.
            position: where its body begins.
        """
        at = position + len(self._prefix)
        if (
            route is not self._route
            or frame[position:at] != self._prefix
            or self.waiting is not None
        ):
            return None
        data = bytes(frame)
        try:
            topics, end = self.layout.read_topics(data, at)
        except UNCOMMON:
            return None
        if data[end:] != self._suffix:
            return None
        return RepeatedFetch(self, self._context, data, position, topics)

    # -- as a memory ------------------------------------------------------------------

    def begin(self, fetch: RepeatedFetch) -> None:
        """This is the fetch at hand."""
        self._current = fetch
        snapshot = self._context.metadata_cache.snapshot
        if snapshot is not self._snapshot:
            self._snapshot = snapshot
            self.mark_all_active()

    def end(self) -> None:
        """The fetch at hand is being answered."""
        self._current = None

    def answers_to(self, part: TopicPart) -> list[bytes | None]:
        """What each partition of a topic's part answers if it is idle, else None."""
        return list(map(self._answers.get(part.topic, NO_ANSWERS).get, part.entries))

    def active_among(self, topic: bytes | str, entries: set[bytes]) -> set[bytes]:
        """Those of a topic's entries that do not ask for idle partitions."""
        return entries.difference(self._answers.get(topic, NO_ANSWERS))

    def is_idle_in(self, topic_partition: TopicPartition, fetch: RepeatedFetch) -> bool:
        """Whether a fetch asks for a partition in the words by which it is idle."""
        known = self._entries.get(topic_partition)
        return known is not None and fetch.requests(*known)

    def mark_idle(
        self, topic: bytes | str, entry: bytes, answer: bytes, idle: IdlePartition
    ) -> None:
        """Answer a partition so from now on, until it changes."""
        if not self.is_closed:
            topic_partition = idle.requested.topic_partition
            self.mark_active(topic_partition)
            self._answers.setdefault(topic, {})[entry] = answer
            self._entries[topic_partition] = topic, entry
            self.add(idle)

    def on_active(self, idle: IdlePartition) -> None:
        """A partition is idle no more."""
        topic, entry = self._entries.pop(idle.requested.topic_partition)
        answers = self._answers[topic]
        del answers[entry]
        if not answers:
            del self._answers[topic]

    def requests_idle(self) -> bool:
        """Whether the fetch at hand asks for any idle partition."""
        return self._current is not None and bool(self._current.idle_topics)

    def requests(self, idle: IdlePartition) -> bool:
        """Whether the fetch that waits asks for this one, and in the same way."""
        topic, entry = self._entries[idle.requested.topic_partition]
        return self._current is not None and self._current.requests(topic, entry)

    def in_order(self, partitions: Sequence[FetchPartition]) -> Sequence[FetchPartition]:
        """Partitions in the order of the request."""
        assert self._current is not None, "only a fetch that waits has its partitions ordered"
        return self._current.in_order(partitions)

    def close(self) -> None:
        """The connection is closed, or what was learnt holds no more."""
        super().close()
        self._current = None


class RepeatedFetch:
    """A fetch without a session, not decoded but where it asks for what is not idle.

    Attributes:
        idle_topics: its topics with idle partitions, and how many those are.
    """

    __slots__ = (
        "_context",
        "_data",
        "_entries",
        "_memory",
        "_names",
        "_position",
        "_request",
        "_topics",
        "idle_topics",
    )

    def __init__(
        self,
        memory: IdleFetchFastPath,
        context: HandlerContext,
        data: bytes,
        position: int,
        topics: list[TopicPart],
    ) -> None:
        self._memory = memory
        self._context = context
        self._data = data
        self._position = position
        self._topics = topics
        self._names: dict[bytes | str, str] = {}
        self._entries: dict[bytes | str, set[bytes]] = {}
        self.idle_topics: dict[str, int] = {}
        self._request: Request[object]

    @property
    def names_one_partition(self) -> bool:
        """Whether it asks for nothing else."""
        return len(self._topics) == 1 and len(self._topics[0].entries) == 1

    def decode(self, route: Route) -> Any:
        """The request's body, as it is decoded in general."""
        return route.decode(memoryview(self._data), self._position)[0]

    def start(self, request: Request[object]) -> bool:
        """Read, and perhaps wait; False where only the slow path can answer."""
        memory = self._memory
        memory.begin(self)
        requested = self._resolve(request)
        if requested is None:
            return False
        self._request = request
        self._context.replica_manager.fetch_messages(
            memory.params, requested, self._complete, memory
        )
        return True

    def _resolve(self, request: Request[object]) -> list[FetchPartition] | None:
        """The requested partitions that are not idle; None where something must be explained."""
        context, memory = self._context, self._memory
        cache = context.metadata_cache
        requested: list[FetchPartition] = []
        previous = None
        for _, topic, entries in self._topics:
            name = cache.topic_name(topic) if isinstance(topic, bytes) else topic
            if name is None or not context.authorize(request, "READ", "TOPIC", name):
                return None
            entries_apart = set(entries)
            active = memory.active_among(topic, entries_apart)
            self._names[topic] = name
            if topic == previous or not self._note_entries(topic, entries_apart, len(entries)):
                return None
            previous = topic
            if len(active) < len(entries):
                self.idle_topics[name] = self.idle_topics.get(name, 0) + len(entries) - len(active)
            if not active:
                continue
            topic_id = topic if isinstance(topic, bytes) else b""
            for entry in filter(active.__contains__, entries):
                try:
                    partition = memory.layout.read_entry(entry, name, topic_id)
                except ValueError:
                    return None
                if not cache.contains_partition(*partition.topic_partition):
                    return None
                requested.append(partition)
        return None if self._names_any_twice(requested) else requested

    def _note_entries(self, topic: bytes | str, entries: set[bytes], count: int) -> bool:
        """Remember the requests for a topic; False if there is none, or something stands twice."""
        before = self._entries.get(topic)
        if before is not None:  # others came in between
            count += len(before)
            entries = entries | before
        self._entries[topic] = entries
        return 0 < len(entries) == count

    def _names_any_twice(self, requested: list[FetchPartition]) -> bool:
        """Whether a partition is requested in two ways, of which only the last counts."""
        named = {partition.topic_partition for partition in requested}
        return len(named) < len(requested) or any(
            self._memory.is_idle_in(each, self) for each in named
        )

    def requests(self, topic: bytes | str, entry: bytes) -> bool:
        """Whether a partition is requested in these bytes."""
        return entry in self._entries.get(topic, ())

    def in_order(self, partitions: Sequence[FetchPartition]) -> list[FetchPartition]:
        """Partitions in the order in which they stand here."""
        by_key = {
            (each.topic_id or each.topic_partition.topic, each.topic_partition.partition): each
            for each in partitions
        }
        partition_of = self._memory.layout.partition_of
        return [
            each
            for _, topic, entries in self._topics
            for entry in entries
            if (each := by_key.get((topic, partition_of(entry)))) is not None
        ]

    # -- the answer -------------------------------------------------------------------

    def _complete(self, results: FetchResults) -> None:
        request, context = self._request, self._context
        del self._request  # it holds this as its body: neither waits for the garbage collector
        self._memory.end()
        if request.connection.is_closed:
            return
        if not request.connection.dispatcher.is_plain:  # a hook was set while this waited
            self._explain(request, results)
            return
        for _, data in results:
            if (
                data.error
                or data.diverging_epoch is not None
                or data.preferred_read_replica != NO_REPLICA
            ):
                self._explain(request, results)
                return
        memory, replica_manager = self._memory, context.replica_manager
        answer = FastFetchAnswer(memory, request.correlation_id, results)
        for part in self._topics:
            answer.add_topic(part)
        request.route.errors.none_count += 1 + answer.partitions
        replica_manager.count_fetches(memory.params, results)
        replica_manager.count_idle_partitions(
            {self._names[topic]: count for topic, count in answer.idle_topics.items()}
        )
        request.answer_framed(answer.buffers(len(self._topics)))
        for topic, entry, encoded, requested, data in answer.fresh:
            idle = idle_partition(replica_manager.partitions, memory.params, requested, data)
            if idle is not None:
                memory.mark_idle(topic, entry, encoded, idle)

    def _explain(self, request: Request[object], results: FetchResults) -> None:
        """Answer by the codec, for there is more to say than the fast path can."""
        context, memory = self._context, self._memory
        replica_manager = context.replica_manager
        found = {requested.topic_partition: data for requested, data in results}
        everything: FetchResults = []
        answered: Results = []
        for _, topic, entries in self._topics:
            topic_id = topic if isinstance(topic, bytes) else b""
            for entry in entries:
                requested = memory.layout.read_entry(entry, self._names[topic], topic_id)
                data = found.get(requested.topic_partition)
                if data is None:
                    ((_, data),) = read_from_log(
                        replica_manager.partitions, memory.params, [requested]
                    )
                everything.append((requested, data))
                answered.append(((topic, requested.topic_partition.partition), data))
        replica_manager.count_fetches(memory.params, everything)
        request.body = self.decode(request.route)
        request.answer(fetch_response(context, request, None, answered, is_full=True))


class FastFetchAnswer:
    """An answer put together from those of idle partitions, and encoded for the others.

    Args:
        memory: knows what idle partitions answer.
        correlation_id: of the request.
        results: of the others.

    Attributes:
        partitions: how many it holds.
        idle_topics: topic to how many of its partitions were idle.
        fresh: of others without records: topic, what requested it, its part of the answer, and
            the result.
    """

    __slots__ = (
        "_buffers",
        "_correlation_id",
        "_layout",
        "_memory",
        "_pending",
        "_results",
        "fresh",
        "idle_topics",
        "partitions",
    )

    def __init__(
        self, memory: IdleFetchFastPath, correlation_id: int, results: FetchResults
    ) -> None:
        self._memory = memory
        self._layout = memory.layout
        self._correlation_id = correlation_id
        self._results = {
            (
                requested.topic_id or requested.topic_partition.topic,
                requested.topic_partition.partition,
            ): (requested, data)
            for requested, data in results
        }
        self._buffers: list[Any] = []
        self._pending: list[bytes] = []
        self.partitions = 0
        self.idle_topics: dict[bytes | str, int] = {}
        self.fresh: list[tuple[bytes | str, bytes, bytes, FetchPartition, FetchPartitionData]] = []

    def add_topic(self, part: TopicPart) -> None:
        """Answer a topic's partitions."""
        pending = self._pending
        topic, entries = part.topic, part.entries
        answers = self._memory.answers_to(part)
        count = len(answers)
        active = list(compress(range(count), map(is_, answers, repeat(None))))
        self.partitions += count
        if len(active) < count:
            self.idle_topics[topic] = self.idle_topics.get(topic, 0) + count - len(active)
        pending.append(part.head)
        begin = 0
        for at in active:
            pending += answers[begin:at]  # type: ignore[arg-type]  # none of them is None
            self._add_active(topic, entries[at])
            pending = self._pending
            begin = at + 1
        pending += answers[begin:] if begin else answers  # type: ignore[arg-type]  # as above
        pending.append(self._layout.topic_end)

    def _add_active(self, topic: bytes | str, entry: bytes) -> None:
        index = self._layout.partition_of(entry)
        requested, data = self._results[topic, index]
        before, behind = self._layout.encode_partition(index, data)
        if not len(data.records):
            self.fresh.append((topic, entry, before + behind, requested, data))
            self._pending.append(before)
        else:
            self._pending.append(before)
            self._buffers += (b"".join(self._pending), data.records)
            self._pending = []
        self._pending.append(behind)

    def buffers(self, topics: int) -> list[Any]:
        """The whole frame, of so many topics."""
        layout = self._layout
        buffers = self._buffers
        end = b"".join((*self._pending, layout.answer_end))
        if end:
            buffers.append(end)
        head = layout.answer_head + layout.encode_count(topics)
        size = len(head)
        for buffer in buffers:
            size += len(buffer)
        if layout.version >= FIRST_FLEXIBLE_VERSION:
            prefix = _pack_flexible_prefix(size + 5, self._correlation_id, 0)
        else:
            prefix = _pack_prefix(size + 4, self._correlation_id)
        return [prefix + head, *buffers]


def decode_fetch(
    context: HandlerContext,
    connection: ClientConnection,
    route: Route,
    frame: memoryview,
    position: int,
) -> messages.FetchRequest | RepeatedFetch:
    """The body of a Fetch, or what the connection's fast path knows it by.

    Args:
        connection: whose fast path is used, and learnt.
        route: of the request.
        frame: all of it.
        position: where its body begins.

    Raises:
        ProtocolError: it cannot be decoded.
    """
    if not connection.dispatcher.is_plain:
        hooked: messages.FetchRequest = route.decode(frame, position)[0]
        return hooked
    fast_path = connection.fetch_fast_path
    if fast_path is not None:
        repeated: RepeatedFetch | None = fast_path.recognize(route, frame, position)
        if repeated is not None:
            fast_path.misses = 0
            return repeated
        fast_path.misses += 1
    body: messages.FetchRequest = route.decode(frame, position)[0]
    if fast_path is None or fast_path.misses >= MISSES_BEFORE_LEARNING:
        learnt = _learn(context, route, frame, position, body)
        if learnt is not None:
            if fast_path is not None:
                fast_path.close()
            connection.fetch_fast_path = learnt
    return body


def _learn(
    context: HandlerContext,
    route: Route,
    frame: memoryview,
    position: int,
    body: messages.FetchRequest,
) -> IdleFetchFastPath | None:
    """A fast path for fetches like this one; None if it is not of the common kind."""
    if (
        route.api_version < FIRST_VERSION
        or body.session_epoch != FINAL_EPOCH
        or body.session_id != INVALID_SESSION_ID
        or max(body.replica_id, body.replica_state.replica_id) >= 0
        or body.isolation_level not in ISOLATION_LEVELS
        or not body.topics
    ):
        return None
    layout = layout_of(route.api_version)
    data = bytes(frame)
    topics_at = position + layout.topics_after
    try:
        _, end = layout.read_topics(data, topics_at)
    except UNCOMMON:
        return None
    common = messages.FetchRequest(
        max_wait_ms=body.max_wait_ms,
        min_bytes=body.min_bytes,
        max_bytes=body.max_bytes,
        isolation_level=body.isolation_level,
        rack_id=body.rack_id,
    )
    return IdleFetchFastPath(context, route, layout, common, data[position:topics_at], data[end:])
