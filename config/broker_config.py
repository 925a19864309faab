"""A broker's settings, typed and checked once, when it is made.

Two sources, both static: a `server.properties` file and the command line's `-o key=value`,
which wins. What neither names has its default. Settings that Kafka lets one give in several
units or under two names are resolved here, so `config["log.retention.ms"]` is the retention
whatever it was written as; `own_value` is what was written.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from ..common.nearest import did_you_mean
from .definition import ConfigError, ConfigSource, Definition
from .effects import refusal
from .listeners import (
    Listener,
    check_advertised,
    check_listeners,
    parse_listeners,
    parse_protocol_map,
)
from .properties import Properties
from .resolve import check_together, resolve_synonyms
from .tables.broker_table import BROKER_DEFINITIONS
from .tables.topic_table import BROKER_SYNONYMS
from .values import parse_value

LISTENER_PREFIX = "listener.name."

AUTHORIZER_SETTINGS: Final = frozenset({"super.users", "allow.everyone.if.no.acl.found"})
"""Settings that only Kafka's authorizers read: it has no definition of them, and describes none.
They are in `static`, as text."""


class BrokerConfig:
    """The settings of one broker: `config["num.partitions"]` is an int, and so on by type.

    Attributes:
        listeners: where to listen, parsed.
        advertised_listeners: `advertised.listeners` parsed; None if it is not set.
        inter_broker_listener_name: the listener that brokers use among themselves.
        unknown_keys: keys of the properties file that no table has, to warn about.
        static: what file and command line say, as text.
    """

    __slots__ = (
        "_listener_values",
        "_own_values",
        "_values",
        "advertised_listeners",
        "inter_broker_listener_name",
        "listeners",
        "static",
        "unknown_keys",
    )

    _listener_values: dict[tuple[str, str], Any]
    _own_values: dict[str, Any]
    _values: dict[str, Any]
    listeners: tuple[Listener, ...]
    advertised_listeners: tuple[Listener, ...] | None
    inter_broker_listener_name: str
    unknown_keys: tuple[str, ...]
    static: dict[str, str]

    @classmethod
    def from_sources(
        cls, properties: Mapping[str, str], overrides: Mapping[str, str] | None = None
    ) -> BrokerConfig:
        """Read the settings.

        Args:
            properties: a file's settings, best from `parse_properties`, whose line numbers then
                stand in error texts. Unknown keys are kept aside, as Kafka does.
            overrides: settings of the command line. An unknown key is refused.

        Raises:
            ConfigError: one sentence that names key, value, place and what is right.
        """
        overrides = overrides or {}
        config = cls()
        own: dict[str, Any] = {name: d.default for name, d in BROKER_DEFINITIONS.items()}
        config._own_values = own
        config._listener_values = {}
        config.static = {**properties, **overrides}
        unknown = []
        for key, text in config.static.items():
            if key in overrides:
                where = f"-o {key}"
            elif isinstance(properties, Properties):
                where = properties.place(key)
            else:
                where = ""
            if not config._take(key, text, where):
                if key in overrides:
                    raise ConfigError(f"-o {key}: there is no such setting{_nearest(key)}")
                unknown.append(key)
        config.unknown_keys = tuple(unknown)
        config._values = resolve_synonyms(own, config.static)
        check_together(config._values, config.static)
        config._read_listeners()
        return config

    def _take(self, key: str, text: str, where: str) -> bool:
        """Keep one setting; False if no table has it."""
        if key in AUTHORIZER_SETTINGS:
            return True
        definition = BROKER_DEFINITIONS.get(key)
        if definition is not None:
            self._own_values[key] = _enforceable(definition, key, text, where)
            return True
        definition = listener_definition(key)
        if definition is None:
            return False
        listener, _, name = key.removeprefix(LISTENER_PREFIX).partition(".")
        value = _enforceable(definition, key, text, where)
        self._listener_values[listener.lower(), name] = value
        return True

    def __getitem__(self, key: str) -> Any:
        """The typed value of `key`; a KeyError if no table has it."""
        return self._values[key]

    def own_value(self, key: str) -> Any:
        """The typed value of exactly `key`, before synonyms and companions are looked at."""
        return self._own_values[key]

    def is_set(self, key: str) -> bool:
        """Whether file or command line name `key`."""
        return key in self.static

    def layers(self) -> tuple[tuple[ConfigSource, Mapping[str, str]], ...]:
        """What was written and where, as text; the first place that names a setting counts."""
        return ((ConfigSource.STATIC_BROKER_CONFIG, self.static),)

    def listener_value(self, listener_name: str, key: str) -> Any:
        """The value of `key` for one listener: `listener.name.<listener>.<key>`, or the general.

        `key` may carry a SASL mechanism's prefix, as in `plain.sasl.jaas.config`.
        """
        found = self._listener_values.get((listener_name.lower(), key))
        return self._values.get(key) if found is None else found

    def _read_listeners(self) -> None:
        controller_names = self._values["controller.listener.names"]
        protocols = parse_protocol_map(self._values["listener.security.protocol.map"])
        self.listeners = parse_listeners(
            "listeners", self._values["listeners"], protocols, ignored=controller_names
        )
        check_listeners(self.listeners)
        advertised = self._values["advertised.listeners"]
        self.advertised_listeners = None
        if advertised is not None:
            self.advertised_listeners = parse_listeners(
                "advertised.listeners", advertised, protocols, ignored=controller_names
            )
            check_advertised(self.advertised_listeners, self.listeners)
        self.inter_broker_listener_name = self._find_inter_broker_listener()

    def _find_inter_broker_listener(self) -> str:
        name = self._values["inter.broker.listener.name"]
        if name is not None and self.is_set("security.inter.broker.protocol"):
            raise ConfigError(
                "inter.broker.listener.name and security.inter.broker.protocol are both set: "
                "set one of them."
            )
        chosen: str = (name or self._values["security.inter.broker.protocol"]).upper()
        reachable = self.listeners
        if self.advertised_listeners is not None:
            reachable = self.advertised_listeners
        names = [listener.name for listener in reachable]
        if chosen not in names:
            raise ConfigError(
                f"Brokers would talk to each other over a listener {chosen}, which is not among "
                f"the advertised ones ({', '.join(names)}): set inter.broker.listener.name to one "
                f"of them."
            )
        return chosen


def _enforceable(definition: Definition, key: str, text: str, where: str) -> Any:
    """The typed value of a setting. Raises ConfigError where nobody would enforce it."""
    value = parse_value(definition._replace(name=key), text, where)
    reason = refusal(definition.name, value, definition.default)
    if reason is not None:
        place = f"{where}: " if where else ""
        raise ConfigError(f"{place}{key} would not be enforced: {reason}. Leave it out.")
    return value


def listener_definition(key: str) -> Definition | None:
    """The setting behind `listener.name.<listener>.<setting>`; None for any other key.

    A SASL mechanism's name may stand in front of the setting, as in `plain.sasl.jaas.config`.
    """
    if not key.startswith(LISTENER_PREFIX):
        return None
    _listener, _, name = key.removeprefix(LISTENER_PREFIX).partition(".")
    _mechanism, _, base = name.partition(".")
    if name in BROKER_DEFINITIONS:
        return BROKER_DEFINITIONS[name]
    if base.startswith("sasl.") or base == "connections.max.reauth.ms":
        return BROKER_DEFINITIONS.get(base)
    return None


def _nearest(key: str) -> str:
    """The end of the sentence: what the user may have meant, where something is near."""
    if key in BROKER_SYNONYMS:
        return f"; the broker's setting for a topic's {key} is {BROKER_SYNONYMS[key]}."
    return did_you_mean(key, BROKER_DEFINITIONS) or "."
