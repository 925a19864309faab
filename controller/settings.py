"""What the controller needs to know of the broker's configuration."""

from __future__ import annotations

from collections.abc import Mapping

from ..common.internal_topics import (
    CONSUMER_OFFSETS,
    INTERNAL_TOPICS,
    SHARE_GROUP_STATE,
    TRANSACTION_STATE,
)
from ..common.named_tuple import NamedTuple
from ..config.broker_config import BrokerConfig
from ..config.definition import ConfigValues
from ..config.topic_configs import topic_value
from .topics.planning import TopicCreation


class InternalTopic(NamedTuple):
    """How an internal topic is made when it is first needed."""

    partition_count: int
    replication_factor: int
    min_insync_replicas: int | None
    config: dict[str, str]

    def fitted_to(self, broker_count: int) -> InternalTopic:
        """The same with no more replicas than there are brokers.

        Kafka refuses to make the topic until there are enough brokers; a single broker with
        the default of 3 could then serve no group. odradek makes it with what is there.
        """
        config = dict(self.config)
        factor = min(self.replication_factor, broker_count)
        if self.min_insync_replicas is not None:
            config["min.insync.replicas"] = str(min(self.min_insync_replicas, factor))
        return self._replace(replication_factor=factor, config=config)


def internal_topic(name: str, config: ConfigValues) -> InternalTopic:
    """How Kafka makes one of its own topics (AutoTopicCreationManager.creatableTopic).

    Args:
        name: one of `INTERNAL_TOPICS`.
    """
    if name == CONSUMER_OFFSETS:
        return InternalTopic(
            config["offsets.topic.num.partitions"],
            config["offsets.topic.replication.factor"],
            None,
            {
                "compression.type": "producer",
                "cleanup.policy": "compact",
                "segment.bytes": str(config["offsets.topic.segment.bytes"]),
            },
        )
    if name == TRANSACTION_STATE:
        return InternalTopic(
            config["transaction.state.log.num.partitions"],
            config["transaction.state.log.replication.factor"],
            config["transaction.state.log.min.isr"],
            {
                "unclean.leader.election.enable": "false",
                "compression.type": "uncompressed",
                "cleanup.policy": "compact",
                "segment.bytes": str(config["transaction.state.log.segment.bytes"]),
            },
        )
    assert name == SHARE_GROUP_STATE, f"{name} is no internal topic"
    return InternalTopic(
        config["share.coordinator.state.topic.num.partitions"],
        config["share.coordinator.state.topic.replication.factor"],
        config["share.coordinator.state.topic.min.isr"],
        {
            "cleanup.policy": "delete",
            "retention.ms": "-1",
            "compression.type": "uncompressed",
            "segment.bytes": str(config["share.coordinator.state.topic.segment.bytes"]),
        },
    )


def topic_for_first_use(name: str, config: ConfigValues, broker_count: int) -> TopicCreation:
    """How a topic is made when it is first used.

    Kafka's own topics get their own configuration, others the broker's defaults.
    """
    if name not in INTERNAL_TOPICS:
        return TopicCreation(name)
    made = internal_topic(name, config).fitted_to(broker_count)
    return TopicCreation(
        name, made.partition_count, made.replication_factor, configs=tuple(made.config.items())
    )


def allows_unclean_election(overrides: Mapping[str, str], config: BrokerConfig) -> bool:
    """Whether a topic would rather lose records than stay without a leader."""
    allowed: bool = topic_value(config, overrides, "unclean.leader.election.enable")
    return allowed
