"""What a topology comes to in this cluster: how many tasks, and which internal topics are missing.

Repartition topics get as many partitions as what is written to them has, topics that are read
together get the same number, and changelogs one partition for each task. Source: KIP-1071;
Kafka 4.3's InternalTopicManager, RepartitionTopics, CopartitionedTopicsEnforcer and
ChangelogTopics.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from enum import IntEnum
from typing import NamedTuple

from ....runtime.steps import Steps, count_items, map_in_steps, map_steps, sorted_in_steps
from ..consumer.topics import TopicsImage
from .topology import InternalTopic, Subtopology, Topology, invalid_topology

NAMES_SHOWN_MAX = 3
TASKS_MAX = 20_000
"""Of a topology. Tasks are what its subtopologies come to with their sources' partitions: a request
of some kilobytes could make millions, and whoever assigns them holds everybody up."""


class StatusCode(IntEnum):
    """What a heartbeat's answer may say of the group (KIP-1071)."""

    STALE_TOPOLOGY = 0
    MISSING_SOURCE_TOPICS = 1
    INCORRECTLY_PARTITIONED_TOPICS = 2
    MISSING_INTERNAL_TOPICS = 3
    SHUTDOWN_APPLICATION = 4
    ASSIGNMENT_DELAYED = 5


class Status(NamedTuple):
    """One thing that is to be said of the group, and a sentence about it."""

    code: StatusCode
    detail: str


class ConfiguredSubtopology(NamedTuple):
    """A subtopology whose internal topics have their numbers of partitions.

    Attributes:
        subtopology: with the numbers of partitions that were decided upon.
        task_count: how many tasks it has.
    """

    subtopology: Subtopology
    task_count: int


class ConfiguredTopology(NamedTuple):
    """A topology, or why it cannot be run now.

    Attributes:
        subtopologies: by id, in order; None where topics do not go together.
        missing: the internal topics that are to be made.
        problem: None where all is there.
    """

    subtopologies: Mapping[str, ConfiguredSubtopology] | None
    missing: tuple[InternalTopic, ...] = ()
    problem: Status | None = None

    @property
    def is_ready(self) -> bool:
        """Whether tasks may be assigned."""
        return self.problem is None


class _Unfit(Exception):
    """Topics do not go together."""

    def __init__(self, code: StatusCode, detail: str) -> None:
        super().__init__(detail)
        self.status = Status(code, detail)


def configure(topology: Topology, topics: TopicsImage) -> Steps[ConfiguredTopology]:
    """See what a topology comes to; it may have tens of thousands of topics.

    Raises:
        KafkaError: STREAMS_INVALID_TOPOLOGY, it never comes to anything.
    """
    try:
        return (yield from _configure(topology, topics))
    except _Unfit as unfit:
        return ConfiguredTopology(None, problem=unfit.status)


def _configure(topology: Topology, topics: TopicsImage) -> Steps[ConfiguredTopology]:
    subtopologies = topology.subtopologies.values()
    absent = set()
    for subtopology in subtopologies:
        for name in subtopology.source_topics:
            yield
            if topics.find(name) is None:
                absent.add(name)
    if absent:
        shown = _shown((yield from sorted_in_steps(tuple(absent))))
        raise _Unfit(StatusCode.MISSING_SOURCE_TOPICS, f"Source topics {shown} are missing.")
    decided = yield from _repartition_counts(subtopologies, topics)
    counts = PartitionCounts(topics, decided)
    yield from _enforce_copartitioning(subtopologies, counts)
    configured: dict[str, ConfiguredSubtopology] = {}
    for subtopology_id, subtopology in sorted(topology.subtopologies.items()):
        task_counts = yield from map_in_steps(counts.of, subtopology.sources)
        task_count = max(task_counts, default=0)
        if not task_count:
            raise invalid_topology(f"No source topics found for subtopology {subtopology_id}")
        repartition = []
        for topic in subtopology.repartition_source_topics:
            yield
            partitions = topic.partitions or counts.decided[topic.name]
            repartition.append(topic._replace(partitions=partitions))
        changelog = []
        for topic in subtopology.changelog_topics:
            yield
            changelog.append(topic._replace(partitions=task_count))
        configured[subtopology_id] = ConfiguredSubtopology(
            subtopology._replace(
                repartition_source_topics=tuple(repartition), changelog_topics=tuple(changelog)
            ),
            task_count,
        )
    total = sum(each.task_count for each in configured.values())
    if total > TASKS_MAX:
        raise invalid_topology(
            f"The topology has {total} tasks; this broker assigns at most {TASKS_MAX}."
        )
    missing = yield from _missing_topics(configured, topics)
    problem = None
    if missing:
        names = _shown([topic.name for topic in missing])
        problem = Status(
            StatusCode.MISSING_INTERNAL_TOPICS, f"Internal topics are missing: {names}"
        )
    return ConfiguredTopology(configured, missing, problem)


class PartitionCounts:
    """How many partitions topics have: those that are there, and those that are to be made.

    Args:
        topics: those that are there.
        decided: numbers for topics that are to be made.
    """

    def __init__(self, topics: TopicsImage, decided: dict[str, int]) -> None:
        self.decided = decided
        self._topics = topics

    def of(self, name: str) -> int:
        """The number of a topic.

        Raises:
            KafkaError: STREAMS_INVALID_TOPOLOGY, nothing says it.
        """
        topic = self._topics.find(name)
        count = self.decided.get(name) if topic is None else topic.partition_count
        if count is None:
            raise invalid_topology(f"Number of partitions is not set for topic: {name}")
        return count


def _repartition_counts(
    subtopologies: Collection[Subtopology], topics: TopicsImage
) -> Steps[dict[str, int]]:
    """Give repartition topics the most partitions that the readers' other sources have."""
    counts = {
        topic.name: topic.partitions
        for subtopology in subtopologies
        for topic in subtopology.repartition_source_topics
        if topic.partitions
    }
    # Of each subtopology what is known so far: it grows with each number that is decided, and is
    # not searched anew for each sink, of which there may be as many as there are sources.
    largest = yield from map_steps(
        lambda each: _largest_source(each, counts, topics), subtopologies
    )
    readers: defaultdict[str, list[int]] = defaultdict(list)
    for place, subtopology in enumerate(subtopologies):
        for topic in subtopology.repartition_source_topics:
            readers[topic.name].append(place)
    sinks = [
        (name, place)
        for place, subtopology in enumerate(subtopologies)
        for name in subtopology.repartition_sink_topics
        if name not in counts
    ]
    while sinks:
        left = []
        for name, place in sinks:
            yield
            count = largest[place]
            if count is None:
                left.append((name, place))
            elif name not in counts:
                counts[name] = count
                for reader in readers.get(name, ()):
                    largest[reader] = max(largest[reader] or 0, count)
        if len(left) == len(sinks):
            raise invalid_topology(
                "Failed to compute number of partitions for all repartition topics. There may be "
                "loops in the topology that cannot be resolved."
            )
        sinks = left
    for subtopology in subtopologies:
        if any(topic.name not in counts for topic in subtopology.repartition_source_topics):
            raise invalid_topology(
                "Failed to compute number of partitions for all repartition topics, because a "
                "repartition source topic is never used as a sink topic."
            )
    return counts


def _largest_source(
    subtopology: Subtopology, counts: Mapping[str, int], topics: TopicsImage
) -> Steps[int | None]:
    known = [
        counts[topic.name]
        for topic in subtopology.repartition_source_topics
        if topic.name in counts
    ]
    found = yield from map_in_steps(topics.find, subtopology.source_topics)
    known += [topic.partition_count for topic in found if topic is not None]
    return max(known, default=None)


def _enforce_copartitioning(
    subtopologies: Collection[Subtopology], counts: PartitionCounts
) -> Steps[None]:
    """Give topics that are read together the same number of partitions."""
    repartition = [
        topic for subtopology in subtopologies for topic in subtopology.repartition_source_topics
    ]
    fixed = {topic.name for topic in repartition if topic.partitions}
    flexible = {topic.name for topic in repartition if not topic.partitions}
    of_fixed = {name: counts.of(name) for name in sorted(fixed)}
    for subtopology in subtopologies:
        for group in subtopology.copartition_groups:
            names = {subtopology.source_topics[place] for place in group.source_topics}
            names |= {
                subtopology.repartition_source_topics[place].name
                for place in group.repartition_source_topics
            }
            yield from count_items(1 + len(group.source_topics) + len(of_fixed))
            if names:
                ordered = yield from sorted_in_steps(tuple(names))
                decided = yield from _copartitioned(ordered, of_fixed, flexible, counts)
                counts.decided.update(decided)


def _copartitioned(
    names: Sequence[str], fixed: Mapping[str, int], flexible: set[str], counts: PartitionCounts
) -> Steps[dict[str, int]]:
    """The number of partitions for the repartition topics of one group.

    Args:
        names: of all the group's topics, in order.
        fixed: the numbers of repartition topics that have one, of all groups.
        flexible: repartition topics that have none.
        counts: what is known.
    """
    own: dict[str, int] = {}
    others: dict[str, int] = {}
    for name in names:
        yield
        (own if name in fixed or name in flexible else others)[name] = counts.of(name)
    if others:
        number = _same(others)
    elif fixed:
        # Kafka compares all that are fixed, of other groups too.
        number = _same(fixed, shown=own)
    else:
        number = max(own.values())
    for name, count in own.items():
        if name in fixed and count != number:
            raise _Unfit(
                StatusCode.INCORRECTLY_PARTITIONED_TOPICS,
                f"Number of partitions [{count}] of repartition topic [{name}] doesn't match "
                f"number of partitions [{number}] of the source topic.",
            )
    return dict.fromkeys(own, number)


def _same(counts: Mapping[str, int], shown: Mapping[str, int] | None = None) -> int:
    """The number that all have."""
    if len(set(counts.values())) > 1:
        text = ", ".join(f"{name}={count}" for name, count in sorted((shown or counts).items()))
        raise _Unfit(
            StatusCode.INCORRECTLY_PARTITIONED_TOPICS,
            f"Following topics do not have the same number of partitions: [{{{text}}}]",
        )
    return next(iter(counts.values()))


def _missing_topics(
    configured: Mapping[str, ConfiguredSubtopology], topics: TopicsImage
) -> Steps[tuple[InternalTopic, ...]]:
    """The internal topics that are not there; those that are must have the right number."""
    expected = {
        topic.name: topic
        for each in configured.values()
        for topic in (
            *each.subtopology.repartition_source_topics,
            *each.subtopology.changelog_topics,
        )
    }
    missing = []
    for name, topic in sorted(expected.items()):
        yield
        found = topics.find(name)
        if found is None:
            missing.append(topic)
        elif found.partition_count != topic.partitions:
            raise _Unfit(
                StatusCode.INCORRECTLY_PARTITIONED_TOPICS,
                f"Existing topic {name} has different number of partitions: expected "
                f"{topic.partitions}, found {found.partition_count}",
            )
    return tuple(missing)


def _shown(names: Iterable[str]) -> str:
    names = list(names)
    text = ", ".join(names[:NAMES_SHOWN_MAX])
    more = len(names) - NAMES_SHOWN_MAX
    return f"{text} and {more} additional topics" if more > 0 else text
