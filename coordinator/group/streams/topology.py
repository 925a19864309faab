"""The topology of a Kafka Streams application: subtopologies, and the topics that they need.

The first member brings it; it is the group's from then on, under its epoch. Source: KIP-1071;
Kafka's StreamsTopology.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from ....common.errors import ErrorCode, KafkaError
from ....protocol import internal as schemas
from ....protocol import messages
from ....runtime.steps import Steps, count_items, map_in_steps
from ..records import fits_string


class InternalTopic(NamedTuple):
    """A topic that the application needs for itself: for repartitioning, or as a changelog.

    Attributes:
        partitions: how many it has to have; 0: that follows from other topics.
        replication_factor: 0 for the broker's default.
        configs: names and values to make it with.
    """

    name: str
    partitions: int = 0
    replication_factor: int = 0
    configs: tuple[tuple[str, str], ...] = ()


class CopartitionGroup(NamedTuple):
    """Topics that have to have as many partitions as each other, by their places in lists of the
    subtopology."""

    source_topics: tuple[int, ...] = ()
    source_topic_regex: tuple[int, ...] = ()
    repartition_source_topics: tuple[int, ...] = ()


class Subtopology(NamedTuple):
    """A part of a topology that shares no data with others but through topics.

    Attributes:
        source_topics: what it reads that is not its own.
        repartition_source_topics: what it reads that another subtopology has repartitioned.
        repartition_sink_topics: what it writes for another to read.
        changelog_topics: where the states of its tasks are kept.
    """

    subtopology_id: str
    source_topics: tuple[str, ...] = ()
    source_topic_regex: tuple[str, ...] = ()
    repartition_sink_topics: tuple[str, ...] = ()
    repartition_source_topics: tuple[InternalTopic, ...] = ()
    changelog_topics: tuple[InternalTopic, ...] = ()
    copartition_groups: tuple[CopartitionGroup, ...] = ()

    @property
    def sources(self) -> list[str]:
        """All topics that it reads."""
        return [*self.source_topics, *(topic.name for topic in self.repartition_source_topics)]

    @property
    def is_stateful(self) -> bool:
        """Whether its tasks have states."""
        return bool(self.changelog_topics)


class Topology(NamedTuple):
    """All of it.

    Attributes:
        epoch: which generation of the application it is of.
        subtopologies: by id.
    """

    epoch: int
    subtopologies: Mapping[str, Subtopology]

    @property
    def required_topics(self) -> frozenset[str]:
        """The topics that have to be there."""
        return frozenset(
            name
            for subtopology in self.subtopologies.values()
            for name in (
                *subtopology.sources,
                *(topic.name for topic in subtopology.changelog_topics),
            )
        )

    def reader_of(self, topic: str) -> str | None:
        """The subtopology that reads a topic, if any does."""
        for subtopology in self.subtopologies.values():
            if topic in subtopology.sources:
                return subtopology.subtopology_id
        return None


def read_topology(
    reported: messages.StreamsGroupHeartbeatRequest.Topology | schemas.StreamsGroupTopologyValue,
) -> Steps[Topology]:
    """The topology that a heartbeat brings, or a record keeps; it yields after each topic.

    Raises:
        KafkaError: STREAMS_INVALID_TOPOLOGY: two subtopologies of one id, a place in a list that
            is not there, or what no record can hold.
    """
    subtopologies: dict[str, Subtopology] = {}
    for each in reported.subtopologies:
        if each.subtopology_id in subtopologies:
            raise invalid_topology(f"Subtopology {each.subtopology_id} is there twice.")
        groups = []
        for group in each.copartition_groups:
            yield
            groups.append(
                CopartitionGroup(
                    tuple(group.source_topics),
                    tuple(group.source_topic_regex),
                    tuple(group.repartition_source_topics),
                )
            )
        subtopologies[each.subtopology_id] = subtopology = Subtopology(
            each.subtopology_id,
            tuple(each.source_topics),
            tuple(each.source_topic_regex),
            tuple(each.repartition_sink_topics),
            (yield from _internal_topics(each.repartition_source_topics)),
            (yield from _internal_topics(each.state_changelog_topics)),
            tuple(groups),
        )
        yield from _check(subtopology)
    return Topology(reported.epoch, subtopologies)


def _internal_topics(
    reported: Iterable[
        messages.StreamsGroupHeartbeatRequest.TopicInfo
        | schemas.StreamsGroupTopologyValue.TopicInfo
    ],
) -> Steps[tuple[InternalTopic, ...]]:
    topics = []
    for each in reported:
        configs = []
        for config in each.topic_configs:
            yield
            configs.append((config.key, config.value))
        topics.append(
            InternalTopic(each.name, each.partitions, each.replication_factor, tuple(configs))
        )
        yield
    return tuple(topics)


def _check(subtopology: Subtopology) -> Steps[None]:
    for group in subtopology.copartition_groups:
        yield
        _check_places(group.source_topics, len(subtopology.source_topics))
        _check_places(group.repartition_source_topics, len(subtopology.repartition_source_topics))
    texts = [subtopology.subtopology_id, *subtopology.source_topic_regex]
    for topic in (*subtopology.repartition_source_topics, *subtopology.changelog_topics):
        if topic.partitions < 0:
            raise invalid_topology(f"Topic {topic.name} has {topic.partitions} partitions.")
        for pair in topic.configs:
            texts += pair
        yield from count_items(1 + len(topic.configs))
    if not all((yield from map_in_steps(fits_string, texts))):
        raise invalid_topology("The topology has a text that is longer than a record can hold.")


def _check_places(places: Iterable[int], length: int) -> None:
    for place in places:
        if not 0 <= place < length:
            raise invalid_topology(f"A copartition group names topic {place} of {length}.")


def invalid_topology(text: str) -> KafkaError:
    """STREAMS_INVALID_TOPOLOGY, with what is wrong."""
    return KafkaError(ErrorCode.STREAMS_INVALID_TOPOLOGY, text)
