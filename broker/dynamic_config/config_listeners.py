"""What a changed setting does to a running broker: who is told, and what is made anew.

Most settings need nothing: whoever reads `broker.config[...]` when it is needed sees the
change. Here are those that something was made of, as Kafka's ConfigHandlers and its
`DynamicLogConfig` have them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ...config.resolve import COMPANIONS
from ...config.tables.topic_table import BROKER_SYNONYMS
from ...config.topic_configs import log_config
from .config_manager import BROKERS, CLIENT_METRICS, CLUSTER_DEFAULT, GROUPS, TOPICS, Overrides

if TYPE_CHECKING:
    from ..broker import Broker

LOG_SETTINGS: Final = frozenset(
    {
        "producer.id.expiration.ms",
        *BROKER_SYNONYMS.values(),
        *(companion for name in BROKER_SYNONYMS.values() for companion in COMPANIONS.get(name, ())),
    }
)
"""The settings of a broker that logs work with, where their topic has none of its own."""


def follow_changes(broker: Broker) -> None:
    """Have changes that the store tells of put in force on this broker."""
    manager = broker.config_manager
    own_name = str(broker.broker_id)

    def change_topic(name: str, overrides: Overrides) -> None:
        broker.controller.topic_config_changed(name, overrides)
        broker.replica_manager.update_topic_config(name, overrides)
        broker.metadata_cache.update_topic_config(name, overrides)

    def change_broker(name: str, overrides: Overrides) -> None:
        if name == CLUSTER_DEFAULT:
            broker.config.change(overrides, per_broker=False)
        elif name == own_name:
            broker.config.change(overrides, per_broker=True)

    def change_client_metrics(name: str, overrides: Overrides) -> None:
        broker.client_metrics.pop(name, None)
        if overrides:
            broker.client_metrics[name] = overrides

    def change_logs() -> None:
        broker.log_manager.default_config = log_config(broker.config, {})
        broker.replica_manager.reconfigure_logs()

    manager.on_change(TOPICS, change_topic)
    manager.on_change(BROKERS, change_broker)
    manager.on_change(GROUPS, broker.group_configs.change)
    manager.on_change(CLIENT_METRICS, change_client_metrics)
    broker.config.subscribe(LOG_SETTINGS, change_logs)
