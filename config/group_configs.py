"""Settings of single groups and of client metrics subscriptions: the rules, and what is set.

After Kafka's `GroupConfig`, `GroupConfigManager` and `ClientMetricsConfigs`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..common.errors import ErrorCode, KafkaError
from .broker_config import BrokerConfig
from .definition import ConfigError, Definition, shorten
from .tables.group_table import (
    CLIENT_MATCHES,
    CLIENT_METRICS_DEFINITIONS,
    GROUP_BOUNDS,
    GROUP_DEFINITIONS,
    GROUP_SYNONYMS,
)
from .values import parse_value


class GroupConfigs:
    """What is set for groups, and what holds for them.

    Args:
        config: the broker's settings, which a group's own ones stand before.

    Attributes:
        overrides: by group, as texts; a group without any is not in it.
    """

    def __init__(self, config: BrokerConfig) -> None:
        self.overrides: dict[str, Mapping[str, str]] = {}
        self._config = config
        self._typed: dict[str, dict[str, Any]] = {}

    def change(self, group_id: str, overrides: Mapping[str, str]) -> None:
        """Put a group's settings in force; those that no longer hold water are passed over."""
        self.overrides.pop(group_id, None)
        self._typed.pop(group_id, None)
        if overrides:
            self.overrides[group_id] = dict(overrides)
            self._typed[group_id] = usable_values(GROUP_DEFINITIONS, overrides)

    def value(self, group_id: str, name: str) -> Any:
        """What holds for a group: its own setting, else the broker's, else Kafka's default.

        A value that the broker's bounds have been drawn past is moved back to the nearest bound.
        """
        value = self._typed.get(group_id, {}).get(name)
        if value is None:
            return _inherited(self._config, name)
        if name in GROUP_BOUNDS:
            low, high = GROUP_BOUNDS[name]
            value = min(value, self._config[high])
            if low is not None:
                value = max(value, self._config[low])
        return value


def usable_values(
    definitions: Mapping[str, Definition], overrides: Mapping[str, str]
) -> dict[str, Any]:
    """The typed values of overrides in store; those that are unknown or no longer valid are
    passed over, since there is no request left to refuse."""
    values = {}
    for name, text in overrides.items():
        if name in definitions:
            try:
                values[name] = parse_value(definitions[name], text)
            except ConfigError:
                continue
    return values


def _inherited(config: BrokerConfig, name: str) -> Any:
    if name in GROUP_SYNONYMS:
        return config[GROUP_SYNONYMS[name]]
    return GROUP_DEFINITIONS[name].default


def group_values(config: BrokerConfig, overrides: Mapping[str, str]) -> dict[str, Any]:
    """Every group setting's typed value, as DescribeConfigs answers it."""
    values = {name: _inherited(config, name) for name in GROUP_DEFINITIONS}
    return {**values, **usable_values(GROUP_DEFINITIONS, overrides)}


def validate_group_config(overrides: Mapping[str, str], config: BrokerConfig) -> None:
    """Refuse settings that a group cannot have.

    Args:
        overrides: all that would be set for the group.
        config: the broker's settings, which bound them.

    Raises:
        KafkaError: INVALID_CONFIG, with a sentence that says which setting and why.
    """
    values = {name: _inherited(config, name) for name in GROUP_DEFINITIONS}
    try:
        for name, text in overrides.items():
            definition = GROUP_DEFINITIONS.get(name)
            if definition is None:
                raise ConfigError(f"Unknown group config name: {shorten(name)}")
            values[name] = parse_value(definition, text)
            _check_bounds(name, values[name], config)
        for kind in ("consumer", "share", "streams"):
            _check_session(kind, values)
    except ConfigError as error:
        raise KafkaError(ErrorCode.INVALID_CONFIG, str(error)) from None


def _check_bounds(name: str, value: int, config: BrokerConfig) -> None:
    low, high = GROUP_BOUNDS.get(name, (None, None))
    if low is not None and value < config[low]:
        raise ConfigError(f"{name} must be greater than or equal to {low}")
    if high is not None and value > config[high]:
        raise ConfigError(f"{name} must be less than or equal to {high}")


def _check_session(kind: str, values: Mapping[str, int]) -> None:
    session, heartbeat = f"{kind}.session.timeout.ms", f"{kind}.heartbeat.interval.ms"
    if values[session] <= values[heartbeat]:
        raise ConfigError(f"{session} must be greater than {heartbeat}")


def validate_client_metrics_config(overrides: Mapping[str, str]) -> None:
    """Refuse settings that a client metrics subscription cannot have.

    Raises:
        KafkaError: INVALID_REQUEST for an unknown setting and an interval out of range,
            INVALID_CONFIG for a value of the wrong type and a pattern that matches nothing.
    """
    for name in overrides:
        if name not in CLIENT_METRICS_DEFINITIONS:
            raise KafkaError(
                ErrorCode.INVALID_REQUEST, f"Unknown client metrics configuration: {shorten(name)}"
            )
    for name, text in overrides.items():
        definition = CLIENT_METRICS_DEFINITIONS[name]
        try:
            value = parse_value(definition._replace(check=None), text)
            if name == "match":
                _check_matches(value)
        except ConfigError as error:
            raise KafkaError(ErrorCode.INVALID_CONFIG, str(error)) from None
        check = definition.check
        if check is not None and not check.accepts(value):
            raise KafkaError(
                ErrorCode.INVALID_REQUEST,
                f"Invalid value {value} for {name}, interval must be between 100 and 3600000 "
                "(1 hour)",
            )


def _check_matches(patterns: tuple[str, ...]) -> None:
    import re  # only where a subscription is made

    for text in patterns:
        parts = [part.strip() for part in text.rstrip("=").split("=")]
        try:
            if len(parts) != 2 or parts[0] not in CLIENT_MATCHES:
                raise re.error("no pattern")
            re.compile(parts[1])
        except re.error:
            raise ConfigError(f"Illegal client matching pattern: {shorten(text)}") from None
