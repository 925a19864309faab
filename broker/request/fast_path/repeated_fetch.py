"""One Fetch that is much like its connection's last; see `fetch_shortcut`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ....common.errors import ErrorCode
from ....replication.purgatory.fetch_memory import idle_partition
from ....replication.read.fetch import FetchPartition, FetchResults
from ....replication.read.fetch_counting import count_fetches, count_idle
from ....replication.read.reading import read_from_log
from ....replication.read.replica_selector import NO_REPLICA
from ..fetch_rules import Results, fetch_response
from .fast_fetch_answer import QuickAnswer
from .fetch_layout import TopicPart

if TYPE_CHECKING:
    from ...broker import Broker
    from ..dispatch import Route
    from ..requests import Request
    from .idle_fetch import FetchShortcut


class RepeatedFetch:
    """A fetch without a session, not decoded but where it asks for what is not idle.

    Attributes:
        idle_topics: its topics with idle partitions, and how many those are.
    """

    __slots__ = (
        "_broker",
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
        memory: FetchShortcut,
        broker: Broker,
        data: bytes,
        position: int,
        topics: list[TopicPart],
    ) -> None:
        self._memory = memory
        self._broker = broker
        self._data = data
        self._position = position
        self._topics = topics
        self._names: dict[bytes | str, str] = {}
        self._entries: dict[bytes | str, set[bytes]] = {}
        self.idle_topics: dict[str, int] = {}
        self._request: Request

    @property
    def names_one_partition(self) -> bool:
        """Whether it asks for nothing else."""
        return len(self._topics) == 1 and len(self._topics[0].entries) == 1

    def decode(self, route: Route) -> Any:
        """The request's body, as it is decoded in general."""
        return route.decode(memoryview(self._data), self._position)[0]

    def start(self, request: Request) -> bool:
        """Read, and perhaps wait; False where only the general way can answer."""
        memory = self._memory
        memory.begin(self)
        asked = self._resolve(request)
        if asked is None:
            return False
        self._request = request
        self._broker.replica_manager.fetch_messages(memory.params, asked, self._complete, memory)
        return True

    def _resolve(self, request: Request) -> list[FetchPartition] | None:
        """What is asked of partitions that are not idle; None where something must be explained."""
        broker, memory = self._broker, self._memory
        cache = broker.metadata_cache
        asked: list[FetchPartition] = []
        previous = None
        for _, topic, entries in self._topics:
            name = cache.topic_name(topic) if isinstance(topic, bytes) else topic
            if name is None or not broker.authorize(request, "READ", "TOPIC", name):
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
                    wish = memory.layout.read_entry(entry, name, topic_id)
                except ValueError:
                    return None
                if not cache.contains_partition(*wish.topic_partition):
                    return None
                asked.append(wish)
        return None if self._names_any_twice(asked) else asked

    def _note_entries(self, topic: bytes | str, entries: set[bytes], count: int) -> bool:
        """Remember what is asked of a topic; False if there is none, or something stands twice."""
        before = self._entries.get(topic)
        if before is not None:  # others came in between
            count += len(before)
            entries = entries | before
        self._entries[topic] = entries
        return 0 < len(entries) == count

    def _names_any_twice(self, asked: list[FetchPartition]) -> bool:
        """Whether a partition is asked for in two ways, of which only the last counts."""
        named = {wish.topic_partition for wish in asked}
        return len(named) < len(asked) or any(self._memory.is_idle_in(each, self) for each in named)

    def asks_for(self, topic: bytes | str, entry: bytes) -> bool:
        """Whether a partition is asked for in these words."""
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
        request, broker = self._request, self._broker
        del self._request  # it holds this as its body: neither waits for the garbage collector
        self._memory.end()
        if request.connection.is_closed:
            return
        for _, data in results:
            if (
                data.error
                or data.diverging_epoch is not None
                or data.preferred_read_replica != NO_REPLICA
            ):
                self._explain(request, results)
                return
        memory, hosted = self._memory, broker.replica_manager.hosted
        answer = QuickAnswer(memory, request.correlation_id, results)
        for part in self._topics:
            answer.add_topic(part)
        request.route.errors.count_one(ErrorCode.NONE, 1 + answer.partitions)
        count_fetches(hosted, memory.params, results)
        count_idle(
            hosted, {self._names[topic]: count for topic, count in answer.idle_topics.items()}
        )
        request.answer_framed(answer.buffers(len(self._topics)))
        for topic, entry, encoded, asked, data in answer.fresh:
            idle = idle_partition(hosted.online, memory.params, asked, data)
            if idle is not None:
                memory.leave_alone(topic, entry, encoded, idle)

    def _explain(self, request: Request, results: FetchResults) -> None:
        """Answer by the codec, for there is more to say than the shortcut can."""
        broker, memory = self._broker, self._memory
        hosted = broker.replica_manager.hosted
        found = {asked.topic_partition: data for asked, data in results}
        everything: FetchResults = []
        told: Results = []
        for _, topic, entries in self._topics:
            topic_id = topic if isinstance(topic, bytes) else b""
            for entry in entries:
                asked = memory.layout.read_entry(entry, self._names[topic], topic_id)
                data = found.get(asked.topic_partition)
                if data is None:
                    ((_, data),) = read_from_log(hosted.online, memory.params, [asked])
                everything.append((asked, data))
                told.append(((topic, asked.topic_partition.partition), data))
        count_fetches(hosted, memory.params, everything)
        request.body = self.decode(request.route)
        request.answer(fetch_response(broker, request, None, told))
