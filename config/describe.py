"""Settings as DescribeConfigs answers them: value, where it comes from, and its synonyms.

The order of synonyms is the order in which they are looked at; the first one of a setting
decides its source. Follows Kafka's `ConfigHelper`, whose answers for brokers with odd settings
are kept as test data.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from .broker_config import BrokerConfig, listener_definition
from .config_entry import ConfigEntry, ConfigSynonym, make_entry, unknown_entry
from .definition import ConfigSource, Definition
from .dynamic.dynamic_rules import DYNAMIC_ONLY, dynamic_definition
from .group_configs import group_values, usable_values
from .resolve import COMPANIONS
from .tables.broker_table import BROKER_DEFINITIONS
from .tables.group_table import CLIENT_METRICS_DEFINITIONS, GROUP_DEFINITIONS, GROUP_SYNONYMS
from .tables.topic_table import BROKER_SYNONYMS, TOPIC_DEFINITIONS
from .topic_configs import topic_values
from .values import format_value

IDENTITY = ("broker.id", "node.id")

BEFORE_KAFKA_4_PREFIXES = ("password.encoder.", "zookeeper.")
BEFORE_KAFKA_4 = frozenset(
    {
        "auto.include.jmx.reporter",
        "broker.id.generation.enable",
        "control.plane.listener.name",
        "controlled.shutdown.max.retries",
        "controlled.shutdown.retry.backoff.ms",
        "delegation.token.master.key",
        "inter.broker.protocol.version",
        "leader.imbalance.per.broker.percentage",
        "log.message.downconversion.enable",
        "log.message.timestamp.difference.max.ms",
        "offsets.commit.required.acks",
        "reserved.broker.max.id",
    }
)
"""Settings that left Kafka with ZooKeeper: a cluster without it tells only those that are set."""

CLUSTER_WIDE = frozenset({"min.insync.replicas"})
"""What a new cluster of Kafka 4.3 has, from what its first broker's file says, as a setting of the
whole cluster (KIP-966: with eligible leader replicas it must be the same everywhere)."""


def describe_broker(
    config: BrokerConfig, broker_id: int, keys: Collection[str] | None = None
) -> Iterator[ConfigEntry]:
    """The settings of this broker.

    Args:
        config: its settings.
        broker_id: its id, which may be one that it was given.
        keys: which settings; None or none at all means every one.
    """
    for name, definition in BROKER_DEFINITIONS.items():
        if definition.internal and not config.is_set(name):
            continue
        if keys and name not in keys:
            continue
        if _is_of_zookeepers_time(name) and not (
            config["zookeeper.connect"] or config.is_set(name)
        ):
            continue
        if name in IDENTITY:
            yield _describe_identity(definition, broker_id)
        else:
            yield _describe_broker_setting(config, definition)
    extra = dict.fromkeys(
        name
        for _source, texts in config.layers()
        for name in texts
        if name not in BROKER_DEFINITIONS and (not keys or name in keys)
    )
    for name in extra:
        yield _describe_extra(config, name)


def _is_of_zookeepers_time(name: str) -> bool:
    return name in BEFORE_KAFKA_4 or name.startswith(BEFORE_KAFKA_4_PREFIXES)


def _describe_broker_setting(config: BrokerConfig, definition: Definition) -> ConfigEntry:
    value = format_value(definition.type, config.own_value(definition.name))
    synonyms = _broker_synonyms(config, definition)
    return make_entry(definition, value, not definition.dynamic, synonyms)


def _broker_synonyms(config: BrokerConfig, definition: Definition) -> list[ConfigSynonym]:
    """What was written, then defaults, from the setting's own name on.

    A companion that would win over the setting is left out: it is not where the setting's own
    value comes from.
    """
    names = COMPANIONS.get(definition.name, (definition.name,))
    found = _written(config, names)
    for name in names:
        default = BROKER_DEFINITIONS[name].default
        if default is not None and name not in NO_DEFAULT_IN_KAFKA:
            text = format_value(BROKER_DEFINITIONS[name].type, default)
            found.append(ConfigSynonym(name, text, ConfigSource.DEFAULT_CONFIG))
    if definition.name in CLUSTER_WIDE:
        _add_cluster_wide(definition.name, found)
    for position, synonym in enumerate(found):
        if synonym.name == definition.name:
            return found[position:]
    return []


def _add_cluster_wide(name: str, found: list[ConfigSynonym]) -> None:
    """Have a cluster's own value among the synonyms, where nobody has changed it."""
    source = ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG
    changed = [synonym for synonym in found if synonym.source < ConfigSource.STATIC_BROKER_CONFIG]
    if all(synonym.source != source for synonym in changed):
        initial = found[len(changed)]
        found.insert(len(changed), ConfigSynonym(name, initial.value, source))


def _written(config: BrokerConfig, names: Collection[str]) -> list[ConfigSynonym]:
    return [
        ConfigSynonym(name, texts[name], source)
        for source, texts in config.layers()
        for name in names
        if name in texts
    ]


NO_DEFAULT_IN_KAFKA = frozenset({"node.id", "process.roles", "controller.listener.names"})
"""Settings that KRaft demands; the tables give them a default that no synonym should show."""


def _describe_identity(definition: Definition, broker_id: int) -> ConfigEntry:
    """`broker.id` and `node.id`: set by whoever gave the id, even when it was the broker."""
    text = str(broker_id)
    synonyms = [ConfigSynonym(definition.name, text, ConfigSource.STATIC_BROKER_CONFIG)]
    if definition.name not in NO_DEFAULT_IN_KAFKA:
        default = format_value(definition.type, definition.default)
        synonyms.append(ConfigSynonym(definition.name, default, ConfigSource.DEFAULT_CONFIG))
    return make_entry(definition, text, not definition.dynamic, synonyms)


def _describe_extra(config: BrokerConfig, name: str) -> ConfigEntry:
    """A key of the properties file, or one that was changed, that is not a plain setting.

    One listener's setting is described with the general one as its synonym; a throttle is a setting
    that no file has.
    """
    own = _written(config, [name])
    if name in DYNAMIC_ONLY and own[0].source is not ConfigSource.STATIC_BROKER_CONFIG:
        return make_entry(DYNAMIC_ONLY[name], (own[0].value or "").strip(), False, own)
    general = listener_definition(name)
    if general is None:
        return unknown_entry(name, own[0].source)
    synonyms = [*own, *_broker_synonyms(config, general)]
    return make_entry(general._replace(name=name), (own[0].value or "").strip(), True, synonyms)


def describe_cluster_defaults(
    config: BrokerConfig, overrides: Mapping[str, str], keys: Collection[str] | None = None
) -> Iterator[ConfigEntry]:
    """What was changed for all brokers of the cluster, and what a new cluster has.

    Args:
        config: the broker's, for what the cluster has from its file.
        overrides: all that was changed.
        keys: which settings; None or none at all means every one.
    """
    source = ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG
    initial = {
        name: format_value(BROKER_DEFINITIONS[name].type, config.own_value(name)) or ""
        for name in CLUSTER_WIDE - overrides.keys()
    }
    for name, text in {**overrides, **initial}.items():
        if keys and name not in keys:
            continue
        definition = dynamic_definition(name)
        if definition is None:
            yield unknown_entry(name, source)
            continue
        is_plain = name in BROKER_DEFINITIONS or name in DYNAMIC_ONLY
        read_only = not (is_plain and definition.dynamic)
        yield make_entry(definition, text, read_only, [ConfigSynonym(name, text, source)])


def describe_topic(
    config: BrokerConfig, overrides: Mapping[str, str], keys: Collection[str] | None = None
) -> Iterator[ConfigEntry]:
    """The settings of a topic.

    Args:
        config: the broker's, for what the topic does not override.
        overrides: the topic's own.
        keys: which settings; None or none at all means every one.
    """
    values = topic_values(config, overrides)
    for name, definition in TOPIC_DEFINITIONS.items():
        if (not keys or name in keys) and (not definition.internal or name in overrides):
            yield _describe_topic_setting(config, definition, values[name], name in overrides)


def _describe_topic_setting(
    config: BrokerConfig, definition: Definition, value: object, is_overridden: bool
) -> ConfigEntry:
    text = format_value(definition.type, value)
    synonyms: list[ConfigSynonym] = []
    if is_overridden:
        synonyms.append(ConfigSynonym(definition.name, text, ConfigSource.TOPIC_CONFIG))
    broker_name = BROKER_SYNONYMS.get(definition.name)
    if broker_name is not None:
        synonyms += _broker_synonyms(config, BROKER_DEFINITIONS[broker_name])
    return make_entry(definition, text, False, synonyms)


def describe_group(
    config: BrokerConfig, overrides: Mapping[str, str], keys: Collection[str] | None = None
) -> Iterator[ConfigEntry]:
    """The settings of a group, there or not.

    Args:
        config: the broker's, for what the group does not override.
        overrides: the group's own.
        keys: which settings; None or none at all means every one.
    """
    values = group_values(config, overrides)
    for name, definition in GROUP_DEFINITIONS.items():
        if keys and name not in keys:
            continue
        text = format_value(definition.type, values[name])
        synonyms: list[ConfigSynonym] = []
        if name in overrides:
            synonyms.append(ConfigSynonym(name, text, ConfigSource.GROUP_CONFIG))
        if name in GROUP_SYNONYMS:
            synonyms += _broker_synonyms(config, BROKER_DEFINITIONS[GROUP_SYNONYMS[name]])
        else:
            default = format_value(definition.type, definition.default)
            synonyms.append(ConfigSynonym(name, default, ConfigSource.DEFAULT_CONFIG))
        yield make_entry(definition, text, False, synonyms)


def describe_client_metrics(
    overrides: Mapping[str, str], keys: Collection[str] | None = None
) -> Iterator[ConfigEntry]:
    """The settings of a client metrics subscription, there or not.

    Args:
        overrides: its own.
        keys: which settings; None or none at all means every one.
    """
    values = usable_values(CLIENT_METRICS_DEFINITIONS, overrides)
    for name, definition in CLIENT_METRICS_DEFINITIONS.items():
        if keys and name not in keys:
            continue
        text = format_value(definition.type, values.get(name, definition.default))
        synonyms: list[ConfigSynonym] = []
        if name in values:
            synonyms.append(ConfigSynonym(name, text, ConfigSource.CLIENT_METRICS_CONFIG))
        yield make_entry(definition, text, False, synonyms)
