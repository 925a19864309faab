"""What consumer groups need besides the coordinator's runtime: topics, assignors, settings."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import NamedTuple

from ..assignor.assignor import Assignor
from ..assignor.range import RangeAssignor
from ..assignor.uniform import UniformAssignor
from .settings import BrokerTimings, ConsumerGroupSettings, GroupTimings
from .subscription.topics import Topic, TopicsImage


class NoTopics:
    """A cluster without topics; see `TopicsImage`."""

    version = 0

    def names(self) -> Collection[str]:
        """There are none."""
        return ()

    def find(self, _name: str) -> Topic | None:
        """There is none."""
        return None

    def name_of(self, _topic_id: bytes) -> str | None:
        """There is none."""
        return None


def no_topics() -> TopicsImage:
    """The topics of a cluster that has none."""
    return NoTopics()


class ConsumerSurroundings(NamedTuple):
    """What consumer groups need of the broker around them; by default there is not much.

    Attributes:
        settings: the broker's settings.
        timings: those that a group may have of its own; None for the broker's.
        topics: the cluster's topics as they are now.
    """

    settings: ConsumerGroupSettings = ConsumerGroupSettings()
    timings: GroupTimings | None = None
    topics: Callable[[], TopicsImage] = no_topics

    @property
    def times(self) -> GroupTimings:
        """The times that hold for each group."""
        return self.timings or BrokerTimings(self.settings)

    @property
    def assignors(self) -> Mapping[str, Assignor]:
        """The assignors that the settings name, in their order.

        Raises:
            ValueError: one is not known.
        """
        known: dict[str, Callable[[], Assignor]] = {
            "uniform": UniformAssignor,
            "range": RangeAssignor,
        }
        chosen: dict[str, Assignor] = {}
        for name in self.settings.assignors:
            if name not in known:
                raise ValueError(
                    f"group.consumer.assignors names {name!r}; there are {', '.join(known)}"
                )
            chosen[name] = known[name]()
        return chosen


NO_SURROUNDINGS = ConsumerSurroundings()
"""No topics and Kafka's default settings."""
