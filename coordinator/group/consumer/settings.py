"""What consumer groups take from the broker: its configuration, that of each group, topics."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any, NamedTuple, Protocol

from ...runtime import ConfigurationValues
from ..assignor.assignor import Assignor
from ..assignor.range import RangeAssignor
from ..assignor.uniform import UniformAssignor
from .topics import Topic, TopicsImage


class ConsumerGroupSettings(NamedTuple):
    """The broker's settings that consumer groups obey; the defaults are Kafka's.

    Attributes:
        is_enabled: whether group.coordinator.rebalance.protocols has `consumer`.
        assignors: names of the assignors, the first of which is the default.
        assignment_interval_ms: how long a target assignment stands at least.
        migration_policy: which groups change their type while they have members; see
            `migration.MigrationPolicy`.
        regex_refresh_interval_ms: how often regular expressions are resolved again.
    """

    is_enabled: bool = True
    session_timeout_ms: int = 45_000
    heartbeat_interval_ms: int = 5_000
    max_size: int = 2_147_483_647
    assignors: tuple[str, ...] = ("uniform", "range")
    assignment_interval_ms: int = 1_000
    migration_policy: str = "bidirectional"
    regex_refresh_interval_ms: int = 600_000

    @classmethod
    def from_config(cls, config: ConfigurationValues) -> ConsumerGroupSettings:
        """Read the settings out of a broker's configuration."""
        return cls(
            is_enabled="consumer"
            in [name.lower() for name in config["group.coordinator.rebalance.protocols"]],
            session_timeout_ms=config["group.consumer.session.timeout.ms"],
            heartbeat_interval_ms=config["group.consumer.heartbeat.interval.ms"],
            max_size=config["group.consumer.max.size"],
            assignors=tuple(config["group.consumer.assignors"]),
            assignment_interval_ms=config["group.consumer.assignment.interval.ms"],
            migration_policy=config["group.consumer.migration.policy"],
            regex_refresh_interval_ms=config["group.consumer.regex.refresh.interval.ms"],
        )


class GroupTimings(Protocol):
    """The times that hold for each group: the broker's, or those of the group's own configs."""

    def session_timeout_ms(self, group_id: str) -> int:
        """How long a member may stay silent."""

    def heartbeat_interval_ms(self, group_id: str) -> int:
        """How often members are to send heartbeats."""

    def assignment_interval_ms(self, group_id: str) -> int:
        """How long a target assignment stands at least."""


class BrokerTimings:
    """`GroupTimings` where no group has configs of its own.

    Args:
        settings: the broker's.
    """

    def __init__(self, settings: ConsumerGroupSettings) -> None:
        self._settings = settings

    def session_timeout_ms(self, _group_id: str) -> int:
        """How long a member may stay silent."""
        return self._settings.session_timeout_ms

    def heartbeat_interval_ms(self, _group_id: str) -> int:
        """How often members are to send heartbeats."""
        return self._settings.heartbeat_interval_ms

    def assignment_interval_ms(self, _group_id: str) -> int:
        """How long a target assignment stands at least."""
        return self._settings.assignment_interval_ms


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


class GroupConfigValues(Protocol):
    """All that is asked of the configs of groups; see `GroupConfigs`."""

    def value(self, group_id: str, name: str) -> Any:
        """What holds for a group."""


class ConfiguredTimings:
    """`GroupTimings` as groups are configured now.

    Args:
        configs: what is set for groups.
    """

    def __init__(self, configs: GroupConfigValues) -> None:
        self._configs = configs

    def session_timeout_ms(self, group_id: str) -> int:
        """How long a member may stay silent (`consumer.session.timeout.ms`)."""
        timeout_ms: int = self._configs.value(group_id, "consumer.session.timeout.ms")
        return timeout_ms

    def heartbeat_interval_ms(self, group_id: str) -> int:
        """How often members are to send heartbeats (`consumer.heartbeat.interval.ms`)."""
        interval_ms: int = self._configs.value(group_id, "consumer.heartbeat.interval.ms")
        return interval_ms

    def assignment_interval_ms(self, group_id: str) -> int:
        """How long a target assignment stands at least (`consumer.assignment.interval.ms`)."""
        interval_ms: int = self._configs.value(group_id, "consumer.assignment.interval.ms")
        return interval_ms
