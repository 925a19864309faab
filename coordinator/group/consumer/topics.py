"""The cluster's topics as consumer groups see them, and hashes that tell when they changed.

A group keeps one hash of the topics that it reads: of each one's name, id, partitions and the
racks of their replicas. Where it differs from the one kept before, the group needs another
assignment. An image of the topics is made from the metadata cache's snapshot, topic by topic as
they are needed. The racks of brokers that are gone count, too: that a broker restarts is no reason
to assign anew. Source: Kafka 4.3's `Utils.computeTopicHash` and `computeGroupHash`
(KIP-1101).
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import NamedTuple, Protocol

from ....metadata.metadata_cache import MetadataCache, MetadataSnapshot, PartitionStates

NO_TOPICS_HASH = 0
"""The hash of a group that reads no topic that is there."""

_HASH_FORMAT = 0
"""What is hashed begins with it; another one for another form."""

_head = struct.Struct("<b8s8s").pack
_int32 = struct.Struct("<i").pack
_int64 = struct.Struct("<q").pack


class TopicMetadata(NamedTuple):
    """One topic.

    Attributes:
        racks: of each partition, the racks of the brokers that have a replica, where known.
    """

    name: str
    topic_id: bytes
    racks: Sequence[Collection[str]]

    @property
    def partition_count(self) -> int:
        """How many partitions it has."""
        return len(self.racks)


class TopicsImage(Protocol):
    """All topics of the cluster at one moment; it never changes."""

    @property
    def version(self) -> int:
        """Grows with each change of the cluster's metadata."""

    def names(self) -> Collection[str]:
        """The names of all topics."""

    def find(self, name: str) -> TopicMetadata | None:
        """A topic, None if there is none of that name."""

    def name_of(self, topic_id: bytes) -> str | None:
        """The name of the topic with that id."""


def existing_topics(image: TopicsImage, names: Collection[str]) -> Iterator[TopicMetadata]:
    """Those of some names that there are.

    A member may subscribe to tens of thousands of names: no more are looked up than there are
    topics.

    Args:
        image: the topics.
        names: each once; a set, where there are many.
    """
    all_names = image.names()
    looked_up = names
    if len(names) > len(all_names):
        looked_up = [name for name in all_names if name in names]
    for name in looked_up:
        topic = image.find(name)
        if topic is not None:
            yield topic


def topic_hash(topic: TopicMetadata) -> int:
    """The hash of one topic, a signed number of 64 bits."""
    topic_id = topic.topic_id
    parts = [
        _head(_HASH_FORMAT, topic_id[7::-1], topic_id[:7:-1]),
        _text(topic.name),
        _int32(topic.partition_count),
    ]
    for partition, racks in enumerate(topic.racks):
        parts.append(_int32(partition))
        for rack in sorted(racks, key=_units):
            parts.append(_int32(_length(rack)))
            parts.append(_text(rack))
    return xxh3(b"".join(parts))


def group_hash(topic_hashes: Mapping[str, int]) -> int:
    """The hash of a group's topics, by name, a signed number of 64 bits."""
    if not topic_hashes:
        return NO_TOPICS_HASH
    ordered = sorted(topic_hashes.items(), key=lambda item: _units(item[0]))
    return xxh3(b"".join(_int64(number) for _, number in ordered))


class TopicHashes:
    """Hashes of topics, each computed once as long as the topic stays as it is.

    Args:
        image: the topics as they are now.
    """

    def __init__(self, image: Callable[[], TopicsImage]) -> None:
        self._image = image
        self._known: dict[str, tuple[TopicMetadata, int]] = {}

    def metadata_hash(self, topics: Collection[str]) -> int:
        """The hash of a group that reads these topics; those that are not there do not count."""
        image = self._image()
        hashes: dict[str, int] = {}
        for topic in existing_topics(image, topics):
            name = topic.name
            known = self._known.get(name)
            if known is None or known[0] != topic:
                known = self._known[name] = (topic, topic_hash(topic))
            hashes[name] = known[1]
        if len(self._known) > len(image.names()):
            self._known = {name: each for name, each in self._known.items() if image.find(name)}
        return group_hash(hashes)


def _units(text: str) -> bytes:
    """A string as Java orders strings, by UTF-16 units."""
    return text.encode("utf-16-be", "surrogatepass")


def _length(text: str) -> int:
    return len(_units(text)) // 2


def _text(text: str) -> bytes:
    """A string as the hash stream takes it: its UTF-16 units, then how many there are."""
    return text.encode("utf-16-le", "surrogatepass") + _int32(_length(text))


def xxh3(data: bytes) -> int:
    """XXH3 of 64 bits without a seed, as Java's signed number."""
    import xxhash  # only where a group is assigned: it takes a millisecond

    number = xxhash.xxh3_64_intdigest(data)
    return number - 2**64 if number >= 2**63 else number


TopicsListener = Callable[[frozenset[str], bool], None]
"""Called with the names of topics that changed, came or went, and whether any came."""


class SnapshotTopics:
    """One snapshot's topics; see `TopicsImage`."""

    __slots__ = ("_found", "_racks", "_snapshot", "_version")

    def __init__(self, snapshot: MetadataSnapshot, racks: Mapping[int, str], version: int) -> None:
        self._snapshot = snapshot
        self._racks = racks
        self._version = version
        self._found: dict[str, TopicMetadata] = {}

    @property
    def version(self) -> int:
        """Grows with each change of the cluster's metadata."""
        return self._version

    def names(self) -> Collection[str]:
        """The names of all topics."""
        return self._snapshot.partition_states.keys()

    def find(self, name: str) -> TopicMetadata | None:
        """A topic, None if there is none of that name."""
        topic = self._found.get(name)
        if topic is None:
            states = self._snapshot.partition_states.get(name)
            if states is None:
                return None
            topic = TopicMetadata(name, self._snapshot.topic_ids[name], self._racks_of(states))
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
        self._now_ms = now_ms
        self._version = now_ms()
        self._image = SnapshotTopics(self._seen, cache.racks, self._version)
        cache.listeners.append(self._snapshot_replaced)

    def image(self) -> SnapshotTopics:
        """The topics as they are now."""
        return self._image

    def _snapshot_replaced(self) -> None:
        before, now = self._seen, self._cache.snapshot
        self._seen = now
        self._version = max(self._version + 1, self._now_ms())
        self._image = SnapshotTopics(now, self._cache.racks, self._version)
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
