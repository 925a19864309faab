"""Settings as DescribeConfigs tells them: value, where it comes from, and its synonyms.

The order of synonyms is the order in which they are looked at; the first one of a setting
decides its source. Follows Kafka's `ConfigHelper`, whose answers for a broker with odd settings
are kept as test data.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from enum import IntEnum
from typing import Any, NamedTuple

from .broker_config import BrokerConfig, listener_definition
from .broker_table import BROKER_DEFINITIONS
from .definition import ConfigType, Definition
from .topic_configs import topic_values
from .topic_table import BROKER_SYNONYMS, TOPIC_DEFINITIONS
from .values import format_value


class ConfigSource(IntEnum):
    """Where a value comes from, by its number in DescribeConfigs (ConfigEntry.ConfigSource)."""

    UNKNOWN = 0
    TOPIC_CONFIG = 1
    DYNAMIC_BROKER_CONFIG = 2
    DYNAMIC_DEFAULT_BROKER_CONFIG = 3
    STATIC_BROKER_CONFIG = 4
    DEFAULT_CONFIG = 5
    DYNAMIC_BROKER_LOGGER_CONFIG = 6


class ConfigSynonym(NamedTuple):
    """One place that a setting's value could come from, with the value there."""

    name: str
    value: str | None
    source: ConfigSource


class ConfigEntry(NamedTuple):
    """One setting as told to a client. `value` is None for a secret."""

    name: str
    value: str | None
    read_only: bool
    source: ConfigSource
    sensitive: bool
    synonyms: tuple[ConfigSynonym, ...]
    type: ConfigType


RETENTION = ("log.retention.ms", "log.retention.minutes", "log.retention.hours")
ROLL = ("log.roll.ms", "log.roll.hours")
ROLL_JITTER = ("log.roll.jitter.ms", "log.roll.jitter.hours")

COMPANIONS: Mapping[str, tuple[str, ...]] = {
    "log.flush.interval.ms": ("log.flush.interval.ms", "log.flush.scheduler.interval.ms"),
    "log.retention.hours": RETENTION,
    "log.retention.minutes": RETENTION,
    "log.retention.ms": RETENTION,
    "log.roll.hours": ROLL,
    "log.roll.jitter.hours": ROLL_JITTER,
    "log.roll.jitter.ms": ROLL_JITTER,
    "log.roll.ms": ROLL,
}
"""Settings that are one thing in several units, the one that wins first."""

IDENTITY = ("broker.id", "node.id")


def describe_broker(
    config: BrokerConfig, broker_id: int, keys: Collection[str] | None = None
) -> list[ConfigEntry]:
    """The settings of this broker.

    Args:
        config: its settings.
        broker_id: its id, which may be one it was given, not told.
        keys: which settings to tell; None or none at all tells every one.
    """
    entries = []
    for name, definition in BROKER_DEFINITIONS.items():
        if definition.internal and not config.is_set(name):
            continue
        if keys and name not in keys:
            continue
        if name in IDENTITY:
            entries.append(_describe_identity(definition, broker_id))
        else:
            entries.append(_describe_broker_setting(config, definition))
    entries.extend(
        _describe_extra(config, name)
        for name in config.static
        if name not in BROKER_DEFINITIONS and (not keys or name in keys)
    )
    return entries


def _describe_broker_setting(config: BrokerConfig, definition: Definition) -> ConfigEntry:
    value = format_value(definition.type, config.own_value(definition.name))
    return _entry(definition, value, not definition.dynamic, _broker_synonyms(config, definition))


def _entry(
    definition: Definition,
    value: str | None,
    read_only: bool,
    synonyms: tuple[ConfigSynonym, ...],
) -> ConfigEntry:
    source = synonyms[0].source if synonyms else ConfigSource.DEFAULT_CONFIG
    if definition.sensitive:
        value = None
        synonyms = tuple(synonym._replace(value=None) for synonym in synonyms)
    return ConfigEntry(
        definition.name, value, read_only, source, definition.sensitive, synonyms, definition.type
    )


def _broker_synonyms(config: BrokerConfig, definition: Definition) -> tuple[ConfigSynonym, ...]:
    """What was written, then defaults, from the setting's own name on.

    A companion that would win over the setting is left out: it is not where the setting's own
    value comes from.
    """
    names = COMPANIONS.get(definition.name, (definition.name,))
    found = [
        ConfigSynonym(name, config.static[name], ConfigSource.STATIC_BROKER_CONFIG)
        for name in names
        if name in config.static
    ]
    for name in names:
        default = BROKER_DEFINITIONS[name].default
        if default is not None and name not in NO_DEFAULT_IN_KAFKA:
            text = format_value(BROKER_DEFINITIONS[name].type, default)
            found.append(ConfigSynonym(name, text, ConfigSource.DEFAULT_CONFIG))
    for position, synonym in enumerate(found):
        if synonym.name == definition.name:
            return tuple(found[position:])
    return ()


NO_DEFAULT_IN_KAFKA = frozenset({"node.id", "process.roles", "controller.listener.names"})
"""Settings that KRaft demands; the tables give them a default that no synonym should show."""


def _describe_identity(definition: Definition, broker_id: int) -> ConfigEntry:
    """`broker.id` and `node.id`: set by whoever gave the id, even when it was the broker."""
    text = str(broker_id)
    synonyms = [ConfigSynonym(definition.name, text, ConfigSource.STATIC_BROKER_CONFIG)]
    if definition.name not in NO_DEFAULT_IN_KAFKA:
        default = format_value(definition.type, definition.default)
        synonyms.append(ConfigSynonym(definition.name, default, ConfigSource.DEFAULT_CONFIG))
    return _entry(definition, text, not definition.dynamic, tuple(synonyms))


def _describe_extra(config: BrokerConfig, name: str) -> ConfigEntry:
    """A key of the properties file that is not a plain setting.

    One listener's setting is told with the general one as its synonym; a key that no table has
    could be a secret, so its value is not told.
    """
    source = ConfigSource.STATIC_BROKER_CONFIG
    general = listener_definition(name)
    if general is None:
        told = ConfigSynonym(name, None, source)
        return ConfigEntry(name, None, True, source, True, (told,), ConfigType.UNKNOWN)
    own = ConfigSynonym(name, config.static[name], source)
    synonyms = (own, *_broker_synonyms(config, general))
    return _entry(general._replace(name=name), config.static[name].strip(), True, synonyms)


def describe_topic(
    config: BrokerConfig, overrides: Mapping[str, str], keys: Collection[str] | None = None
) -> list[ConfigEntry]:
    """The settings of a topic.

    Args:
        config: the broker's, for what the topic does not override.
        overrides: the topic's own.
        keys: which settings to tell; None or none at all tells every one.
    """
    values = topic_values(config, overrides)
    return [
        _describe_topic_setting(config, definition, values[name], name in overrides)
        for name, definition in TOPIC_DEFINITIONS.items()
        if (not keys or name in keys) and (not definition.internal or name in overrides)
    ]


def _describe_topic_setting(
    config: BrokerConfig, definition: Definition, value: Any, is_overridden: bool
) -> ConfigEntry:
    text = format_value(definition.type, value)
    synonyms: tuple[ConfigSynonym, ...] = ()
    broker_name = BROKER_SYNONYMS.get(definition.name)
    if broker_name is not None:
        synonyms = _broker_synonyms(config, BROKER_DEFINITIONS[broker_name])
    if is_overridden:
        own = ConfigSynonym(definition.name, text, ConfigSource.TOPIC_CONFIG)
        synonyms = (own, *synonyms)
    return _entry(definition, text, False, synonyms)
