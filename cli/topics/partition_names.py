"""`TOPIC` and `TOPIC:0,1` on a command line, and which partitions are meant."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from ..common.errors import fail

if TYPE_CHECKING:
    from ...client.client import KafkaClient
    from ...protocol import messages

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


async def describe_topics(
    client: KafkaClient, names: Iterable[str] | None
) -> dict[str, messages.MetadataResponse.MetadataResponseTopic]:
    """Those of the topics that there are; of all, for None. None is created by asking."""
    from ...protocol import messages

    make = messages.MetadataRequest.MetadataRequestTopic
    topics = None if names is None else [make(name=name) for name in sorted(set(names))]
    if topics == []:
        return {}
    answer: messages.MetadataResponse = await client.send_to_any(
        messages.MetadataRequest(topics=topics, allow_auto_topic_creation=False)
    )
    return {
        topic.name: topic
        for topic in answer.topics
        if topic.name is not None and (topic.error_code == 0 or topic.partitions)
    }


async def existing_partitions(client: KafkaClient, names: Iterable[str]) -> list[TopicPartition]:
    """The partitions that arguments such as `events` and `events:0,1` name.

    Raises CommandError for one that there is not.
    """
    parsed = [parse_partitions(name) for name in names]
    found = await describe_topics(client, [topic for topic, _ in parsed])
    partitions: list[TopicPartition] = []
    for topic, requested in parsed:
        if topic not in found:
            fail(f"topic {topic}: there is no such topic; see: odradek topics list")
        existing = sorted(each.partition_index for each in found[topic].partitions)
        for index in requested or ():
            if index not in existing:
                fail(f"topic {topic} has no partition {index}; it has {len(existing)}, from 0")
        partitions += [(topic, index) for index in (existing if requested is None else requested)]
    return list(dict.fromkeys(partitions))
