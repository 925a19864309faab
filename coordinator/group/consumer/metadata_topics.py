"""The topics that this broker knows of, as images for consumer groups, and who hears of changes.

An image is made from the metadata cache's snapshot when it is needed, and topic by
topic. The racks of brokers are remembered after they are gone: that a broker restarts is no
reason to assign anew.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence

from ....metadata.metadata_cache import MetadataCache, MetadataSnapshot, PartitionStates
from .topics import Topic

TopicsListener = Callable[[frozenset[str], bool], None]
"""Called with the names of topics that changed, came or went, and whether any came."""


class SnapshotTopics:
    """One snapshot's topics; see `TopicsImage`."""

    __slots__ = ("_found", "_racks", "_snapshot", "_version")

    def __init__(self, snapshot: MetadataSnapshot, racks: Mapping[int, str], version: int) -> None:
        self._snapshot = snapshot
        self._racks = racks
        self._version = version
        self._found: dict[str, Topic] = {}

    @property
    def version(self) -> int:
        """Grows with each change of the cluster's metadata."""
        return self._version

    def names(self) -> Collection[str]:
        """The names of all topics."""
        return self._snapshot.partition_states.keys()

    def find(self, name: str) -> Topic | None:
        """A topic, None if there is none of that name."""
        topic = self._found.get(name)
        if topic is None:
            states = self._snapshot.partition_states.get(name)
            if states is None:
                return None
            topic = Topic(name, self._snapshot.topic_ids[name], self._racks_of(states))
            self._found[name] = topic
        return topic

    def name_of(self, topic_id: bytes) -> str | None:
        """The name of the topic with that id."""
        return self._snapshot.topic_names.get(topic_id)

    def _racks_of(self, states: PartitionStates) -> Sequence[Collection[str]]:
        racks = self._racks
        if not racks:
            return ((),) * len(states)
        return tuple(
            tuple(sorted({racks[broker_id] for broker_id in state.replicas if broker_id in racks}))
            for state in states.values()
        )


class MetadataTopics:
    """The topics of this broker's metadata cache.

    Args:
        cache: the metadata cache.
        now_ms: wall time. An image's version is of it, so that versions kept by a group mean
            something to the next broker that coordinates it.

    Attributes:
        listeners: called with changes of topics; they may not wait.
    """

    def __init__(self, cache: MetadataCache, now_ms: Callable[[], int]) -> None:
        self.listeners: list[TopicsListener] = []
        self._cache = cache
        self._seen = cache.snapshot
        self._racks: dict[int, str] = {}
        self._now_ms = now_ms
        self._version = now_ms()
        self._note_racks()
        self._image = SnapshotTopics(self._seen, self._racks, self._version)
        cache.listeners.append(self._snapshot_replaced)

    def image(self) -> SnapshotTopics:
        """The topics as they are now."""
        return self._image

    def _snapshot_replaced(self) -> None:
        before, now = self._seen, self._cache.snapshot
        self._seen = now
        self._version = max(self._version + 1, self._now_ms())
        self._note_racks()
        self._image = SnapshotTopics(now, self._racks, self._version)
        old_states, new_states = before.partition_states, now.partition_states
        if old_states is new_states:
            return
        changed = {
            name
            for name, states in new_states.items()
            if old_states.get(name) is not states
            or before.topic_ids.get(name) != now.topic_ids.get(name)
        }
        has_new = any(before.topic_ids.get(name) != now.topic_ids.get(name) for name in changed)
        changed.update(name for name in old_states if name not in new_states)
        if changed:
            for listener in self.listeners:
                listener(frozenset(changed), has_new)

    def _note_racks(self) -> None:
        racks = {
            broker_id: broker.rack
            for broker_id, broker in self._seen.alive_brokers.items()
            if broker.rack is not None
        }
        if any(self._racks.get(broker_id) != rack for broker_id, rack in racks.items()):
            # The images that are there keep the mapping that they were made with.
            self._racks = {**self._racks, **racks}
