"""The cluster's topics as consumer groups see them, and hashes that tell when they changed.

A group keeps one hash of the topics that it reads: of each one's name, id, partitions and the
racks of their replicas. Where it differs from the one kept before, the group needs another
assignment. Source: Kafka 4.3's `Utils.computeTopicHash` and `computeGroupHash` (KIP-1101).
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import NamedTuple, Protocol

NO_TOPICS_HASH = 0
"""The hash of a group that reads no topic that is there."""

_HASH_FORMAT = 0
"""What is hashed begins with it; another one for another form."""

_head = struct.Struct("<b8s8s").pack
_int32 = struct.Struct("<i").pack
_int64 = struct.Struct("<q").pack


class Topic(NamedTuple):
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

    def find(self, name: str) -> Topic | None:
        """A topic, None if there is none of that name."""

    def name_of(self, topic_id: bytes) -> str | None:
        """The name of the topic with that id."""


def topic_hash(topic: Topic) -> int:
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
        self._known: dict[str, tuple[Topic, int]] = {}

    def metadata_hash(self, topics: Iterable[str]) -> int:
        """The hash of a group that reads these topics; those that are not there do not count."""
        image = self._image()
        hashes: dict[str, int] = {}
        for name in topics:
            topic = image.find(name)
            if topic is None:
                self._known.pop(name, None)
                continue
            known = self._known.get(name)
            if known is None or known[0] != topic:
                known = self._known[name] = (topic, topic_hash(topic))
            hashes[name] = known[1]
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
