"""`TOPIC` and `TOPIC:0,1` on a command line, and which partitions are meant."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from ...client.error_kinds import error_of
from ..common.errors import explain_code, fail

if TYPE_CHECKING:
    from ...client.client import KafkaClient
    from ...client.metadata.cluster import TopicInfo

TopicPartition = tuple[str, int]


def parse_partitions(text: str) -> tuple[str, list[int] | None]:
    """A topic, and the partitions that were named of it, None for all.

    Raises CommandError for what names none.
    """
    topic, colon, indexes = text.rpartition(":")
    if not colon:
        return text, None
    numbers = indexes.split(",")
    if not topic or not all(number.isdecimal() for number in numbers):
        fail(f"{text!r} is no partition; write TOPIC:NUMBER, as in events:0 or events:0,1")
    return topic, [int(number) for number in numbers]


def parse_one_partition(text: str) -> TopicPartition:
    """The one partition that was named. Raises CommandError for anything else."""
    topic, indexes = parse_partitions(text)
    if indexes is None or len(indexes) != 1:
        fail(f"{text!r} is not one partition; write TOPIC:NUMBER, as in events:0")
    return topic, indexes[0]


def format_partitions(partitions: Iterable[TopicPartition]) -> str:
    """Partitions for people: "events:0-2,5 users:1"."""
    by_topic: dict[str, list[int]] = {}
    for topic, index in sorted(partitions):
        by_topic.setdefault(topic, []).append(index)
    return " ".join(f"{topic}:{_ranges(indexes)}" for topic, indexes in by_topic.items())


def _ranges(indexes: Sequence[int]) -> str:
    parts: list[list[int]] = []
    for index in indexes:
        if parts and index == parts[-1][-1] + 1:
            parts[-1].append(index)
        else:
            parts.append([index])
    return ",".join(
        f"{part[0]}-{part[-1]}" if len(part) > 2 else ",".join(map(str, part)) for part in parts
    )


def require_topic(topic: TopicInfo) -> None:
    """CommandError for a topic that there is not, or that may not be seen."""
    if topic.error_code:
        fail(explain_code(error_of(topic.error_code), f"topic {topic.name}"))


async def existing_partitions(client: KafkaClient, names: Iterable[str]) -> list[TopicPartition]:
    """The partitions that arguments such as `events` and `events:0,1` name.

    Raises CommandError for one that there is not.
    """
    from ...client.admin.admin import Admin

    parsed = [parse_partitions(name) for name in names]
    found = await Admin(client).describe_topics(topic for topic, _ in parsed)
    partitions: list[TopicPartition] = []
    for topic, requested in parsed:
        require_topic(found[topic])
        existing = sorted(found[topic].partitions)
        for index in requested or ():
            if index not in existing:
                fail(f"topic {topic} has no partition {index}; it has {len(existing)}, from 0")
        partitions += [(topic, index) for index in (existing if requested is None else requested)]
    return list(dict.fromkeys(partitions))
