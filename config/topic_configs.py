"""A topic's settings: what a client may set, and what a partition's log works with.

A topic carries overrides only; what it does not override has the value of a broker setting
(`BROKER_SYNONYMS`), and what the broker has no setting for has Kafka's default. The rules are
those of Kafka's `LogConfig`.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from ..common.errors import ErrorCode, KafkaError
from ..storage.log.log_config import LogConfig
from .broker_config import BrokerConfig
from .definition import ConfigError, shorten
from .tables.topic_table import BROKER_SYNONYMS, TOPIC_DEFINITIONS
from .values import parse_value


def validate_topic_config(
    overrides: Mapping[str, str | None], config: BrokerConfig | None = None
) -> None:
    """Refuse settings that a topic cannot have.

    Args:
        overrides: a topic's settings as a request gives them.
        config: the broker's, to compare with where only half of a pair is overridden.

    Raises:
        KafkaError: INVALID_CONFIG, with a sentence that says which setting and why.
    """
    without = [shorten(key) for key, text in overrides.items() if text is None]
    if without:
        raise KafkaError(
            ErrorCode.INVALID_CONFIG,
            f"Null value not supported for topic configs: {shorten(','.join(without))}",
        )
    given = {key: text for key, text in overrides.items() if text is not None}
    try:
        values = _own_values(given)
        if config is not None:
            values = {**topic_values(config, {}), **values}
        _check_together(values)
    except ConfigError as error:
        raise KafkaError(ErrorCode.INVALID_CONFIG, str(error)) from None


def topic_value(config: BrokerConfig, overrides: Mapping[str, str], name: str) -> Any:
    """A topic setting's typed value: the topic's own, else the broker's, else the default.

    An override in store that is no longer valid is passed over, since nobody is left to warn.
    """
    definition = TOPIC_DEFINITIONS[name]
    if name in overrides:
        with suppress(ConfigError):
            return parse_value(definition, overrides[name])
    return config[BROKER_SYNONYMS[name]] if name in BROKER_SYNONYMS else definition.default


def topic_values(config: BrokerConfig, overrides: Mapping[str, str]) -> dict[str, Any]:
    """Every topic setting's value; overrides that are unknown are passed over, too."""
    return {name: topic_value(config, overrides, name) for name in TOPIC_DEFINITIONS}


def log_config(config: BrokerConfig, overrides: Mapping[str, str]) -> LogConfig:
    """What the logs of a topic's partitions work with; its fields are the settings' names."""
    values = topic_values(config, overrides)
    fields = {name.replace(".", "_"): value for name, value in values.items()}
    fields["cleanup_policy"] = frozenset(values["cleanup.policy"])
    fields["producer_id_expiration_ms"] = config["producer.id.expiration.ms"]
    if values["internal.segment.bytes"] is not None:
        fields["segment_bytes"] = values["internal.segment.bytes"]
    return LogConfig(**{name: fields[name] for name in LogConfig._fields})


def _own_values(overrides: Mapping[str, str]) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for key, text in overrides.items():
        definition = TOPIC_DEFINITIONS.get(key)
        if definition is None:
            raise ConfigError(f"Unknown topic config name: {shorten(key)}")
        values[key] = parse_value(definition, text)
    return values


def _check_together(values: Mapping[str, Any]) -> None:
    least = values.get("min.compaction.lag.ms", 0)
    most = values.get("max.compaction.lag.ms")
    if most is not None and least > most:
        raise ConfigError(
            f"conflict topic config setting min.compaction.lag.ms ({least}) > "
            f"max.compaction.lag.ms ({most})"
        )
    if values.get("remote.storage.enable"):
        raise ConfigError(
            "Tiered Storage functionality is disabled in the broker. Topic cannot be configured "
            "with remote log storage."
        )
