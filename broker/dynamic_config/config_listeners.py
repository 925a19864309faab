"""The listeners that apply a changed setting to a running broker (Kafka's ConfigHandlers).

Most settings need none: code that reads `config[...]` at the time of use sees the change. Here
are those from which something was made, as in Kafka's `DynamicLogConfig`.
"""

from __future__ import annotations

from typing import Final

from ...config.resolve import COMPANIONS
from ...config.tables.topic_table import BROKER_SYNONYMS
from ...config.topic_configs import log_config
from ..request.context import HandlerContext
from .config_manager import BROKERS, CLIENT_METRICS, CLUSTER_DEFAULT, GROUPS, TOPICS, Overrides

LOG_SETTINGS: Final = frozenset(
    {
        "producer.id.expiration.ms",
        *BROKER_SYNONYMS.values(),
        *(companion for name in BROKER_SYNONYMS.values() for companion in COMPANIONS.get(name, ())),
    }
)
"""The settings of a broker that logs work with, where their topic has none of its own."""


def register(context: HandlerContext) -> None:
    """Have the settings that change in the store applied to what was made of them."""
    manager = context.config_manager
    own_name = str(context.broker_id)

    def change_topic(name: str, overrides: Overrides) -> None:
        context.controller.topic_config_changed(name, overrides)
        context.replica_manager.update_topic_config(name, overrides)
        context.metadata_cache.update_topic_config(name, overrides)

    def change_broker(name: str, overrides: Overrides) -> None:
        if name == CLUSTER_DEFAULT:
            context.config.change(overrides, per_broker=False)
        elif name == own_name:
            context.config.change(overrides, per_broker=True)
        context.admission.invalidate()

    def change_logs() -> None:
        context.log_manager.default_config = log_config(context.config, {})
        context.replica_manager.reconfigure_logs()

    manager.on_change(TOPICS, change_topic)
    manager.on_change(BROKERS, change_broker)
    manager.on_change(GROUPS, context.group_configs.change)
    manager.on_change(CLIENT_METRICS, context.client_metrics.change)
    manager.on_quota_change(context.quotas.change)
    context.config.subscribe(LOG_SETTINGS, change_logs)
