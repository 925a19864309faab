"""The Fetch without a session that is much like its connection's last.

Some clients (librdkafka) name all their partitions with every Fetch, from another one on each
time. Most of them have nothing new, and the few bytes that ask for such a partition are those of
the last time: they are looked up, not decoded, and what is found is the part of the answer, which
stays right until the partition changes (`FetchMemory`). The others are read as by the handler,
whose answers are the same; what needs more than records and offsets is left to it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ....common.sentinels import FINAL_EPOCH, INVALID_SESSION_ID
from ....common.topic_partition import TopicPartition
from ....protocol import messages
from ....replication.purgatory.fetch_memory import FetchMemory, IdlePartition
from ....replication.read.fetch import FetchPartition
from ..fetch_rules import ISOLATION_LEVELS, fetch_params
from .fetch_layout import FIRST_VERSION, UNCOMMON, FetchLayout, TopicPart, layout_of
from .repeated_fetch import RepeatedFetch

if TYPE_CHECKING:
    from ...broker import Broker
    from ...network.connection import Connection
    from ..dispatch import Route

MISSES_BEFORE_LEARNING = 8
"""After so many fetches that differ in more than partitions, the next one is gone by."""
NO_ANSWERS: dict[bytes, bytes] = {}


class FetchShortcut(FetchMemory):
    """What one connection's fetches without a session have in common.

    Args:
        broker: which answers.
        route: of the fetch that is learnt.
        layout: of its version.
        body: what it says of all partitions.
        prefix: of its body, what comes before the topics.
        suffix: and behind them.
    """

    __slots__ = (
        "_answers",
        "_broker",
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
        broker: Broker,
        route: Route,
        layout: FetchLayout,
        body: messages.FetchRequest,
        prefix: bytes,
        suffix: bytes,
    ) -> None:
        super().__init__(broker.replica_manager.delayed_fetch)
        self.layout = layout
        self.misses = 0
        self._broker = broker
        self._route = route
        self._prefix = prefix
        self._suffix = suffix
        self._snapshot = broker.metadata_cache.snapshot
        self._answers: dict[bytes | str, dict[bytes, bytes]] = {}
        """Topic to what asks for its idle partitions, and what they answer."""
        self._entries: dict[TopicPartition, tuple[bytes | str, bytes]] = {}
        """The same the other way round: an idle partition's topic, and what asks for it."""
        self._current: RepeatedFetch | None = None
        self.params = fetch_params(broker, body, layout.version)
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
        return RepeatedFetch(self, self._broker, data, position, topics)

    # -- as a memory ------------------------------------------------------------------

    def begin(self, fetch: RepeatedFetch) -> None:
        """This is the fetch at hand."""
        self._current = fetch
        snapshot = self._broker.metadata_cache.snapshot
        if snapshot is not self._snapshot:
            self._snapshot = snapshot
            self.wake_all()

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
        return known is not None and fetch.asks_for(*known)

    def leave_alone(
        self, topic: bytes | str, entry: bytes, answer: bytes, idle: IdlePartition
    ) -> None:
        """Answer a partition so from now on, until it changes."""
        if not self.is_closed:
            topic_partition = idle.asked.topic_partition
            self.wake(topic_partition)
            self._answers.setdefault(topic, {})[entry] = answer
            self._entries[topic_partition] = topic, entry
            self.remember(idle)

    def woken(self, idle: IdlePartition) -> None:
        """A partition is idle no more."""
        topic, entry = self._entries.pop(idle.asked.topic_partition)
        answers = self._answers[topic]
        del answers[entry]
        if not answers:
            del self._answers[topic]

    def asks_for_idle(self) -> bool:
        """Whether the fetch at hand asks for any idle partition."""
        return self._current is not None and bool(self._current.idle_topics)

    def asks_for(self, idle: IdlePartition) -> bool:
        """Whether the fetch that waits asks for this one, and in the same way."""
        topic, entry = self._entries[idle.asked.topic_partition]
        return self._current is not None and self._current.asks_for(topic, entry)

    def in_order(self, partitions: Sequence[FetchPartition]) -> Sequence[FetchPartition]:
        """Partitions in the order of the request."""
        assert self._current is not None, "only a fetch that waits has its partitions ordered"
        return self._current.in_order(partitions)

    def close(self) -> None:
        """The connection is closed, or what was learnt holds no more."""
        super().close()
        self._current = None


def decode_fetch(
    connection: Connection, route: Route, frame: memoryview, position: int
) -> messages.FetchRequest | RepeatedFetch:
    """The body of a Fetch, or what the connection's shortcut knows it by.

    Args:
        connection: whose shortcut is used, and learnt.
        route: of the request.
        frame: all of it.
        position: where its body begins.

    Raises:
        ProtocolError: it cannot be decoded.
    """
    dispatcher = connection.dispatcher
    if dispatcher.on_request or dispatcher.on_answer or dispatcher.on_framed:
        hooked: messages.FetchRequest = route.decode(frame, position)[0]
        return hooked
    shortcut = connection.fetch_shortcut
    if shortcut is not None:
        repeated = shortcut.recognize(route, frame, position)
        if repeated is not None:
            shortcut.misses = 0
            return repeated
        shortcut.misses += 1
    body: messages.FetchRequest = route.decode(frame, position)[0]
    if shortcut is None or shortcut.misses >= MISSES_BEFORE_LEARNING:
        learnt = _learn(dispatcher.broker, route, frame, position, body)
        if learnt is not None:
            if shortcut is not None:
                shortcut.close()
            connection.fetch_shortcut = learnt
    return body


def _learn(
    broker: Broker, route: Route, frame: memoryview, position: int, body: messages.FetchRequest
) -> FetchShortcut | None:
    """A shortcut for fetches like this one; None if it is not of the common kind."""
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
    return FetchShortcut(broker, route, layout, common, data[position:topics_at], data[end:])
