"""The settings of a running broker, as they are at this moment.

Of four layers the first that has a setting counts, as in Kafka's `DynamicBrokerConfig`: what
was changed for this broker, what was changed for the whole cluster, what file and command
line say, and the default. `config[name]` is always the value in force, so whoever reads it
when it is needed follows changes without doing anything; whoever made something of a value
subscribes to it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Protocol

from ..broker_config import BrokerConfig
from ..definition import ConfigError, ConfigSource
from ..resolve import COMPANIONS
from ..values import parse_value
from .dynamic_rules import DYNAMIC_ONLY, check_change, check_overrides, refusal_of

logger = logging.getLogger(__name__)

Overrides = Mapping[str, str]


class ReconfigurablePart(Protocol):
    """A part of a broker that knows itself what it can change to (Kafka's Reconfigurable)."""

    def check(self, proposed: BrokerConfig) -> None:
        """Find out whether it could go by these settings. Raises: ConfigError."""

    def reconfigure(self) -> None:
        """Go by the settings now in force, and by the files that they name as they are now."""


class DynamicConfig(BrokerConfig):
    """A live view of one broker's settings.

    Args:
        startup: what file and command line say.

    Attributes:
        broker_overrides: what was changed for this broker, as text.
        cluster_overrides: what was changed for all brokers, as text.
    """

    __slots__ = ("_parts", "_startup", "_subscriptions", "broker_overrides", "cluster_overrides")

    def __init__(self, startup: BrokerConfig) -> None:
        self._startup = startup
        self._subscriptions: list[tuple[frozenset[str], Callable[[], None]]] = []
        self._parts: list[ReconfigurablePart] = []
        self.broker_overrides: Overrides = {}
        self.cluster_overrides: Overrides = {}
        self.static = startup.static
        self.unknown_keys = startup.unknown_keys
        self._adopt(startup)

    def _adopt(self, effective: BrokerConfig) -> None:
        rates = self._dynamic_only()
        self._values = {**effective._values, **rates}
        self._own_values = {**effective._own_values, **rates}
        self._listener_values = effective._listener_values
        self.listeners = effective.listeners
        self.advertised_listeners = effective.advertised_listeners
        self.inter_broker_listener_name = effective.inter_broker_listener_name

    def _dynamic_only(self) -> dict[str, Any]:
        values: dict[str, Any] = {}
        for name, definition in DYNAMIC_ONLY.items():
            text = self.broker_overrides.get(name, self.cluster_overrides.get(name))
            values[name] = definition.default if text is None else parse_value(definition, text)
        return values

    def is_set(self, key: str) -> bool:
        """Whether anything but the default names `key`."""
        return any(key in texts for _source, texts in self.layers())

    def layers(self) -> tuple[tuple[ConfigSource, Mapping[str, str]], ...]:
        """What was written and where, as text; the first place that names a setting counts."""
        return (
            (ConfigSource.DYNAMIC_BROKER_CONFIG, self.broker_overrides),
            (ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG, self.cluster_overrides),
            (ConfigSource.STATIC_BROKER_CONFIG, self.static),
        )

    def subscribe(self, names: Iterable[str], callback: Callable[[], None]) -> None:
        """Call `callback` whenever the value of one of these settings has changed.

        It runs on the loop, after `config[name]` shows the new value, and may not wait.
        """
        self._subscriptions.append((frozenset(names), callback))

    def add_part(self, part: ReconfigurablePart) -> None:
        """Have a part check each change of settings before it, and follow it.

        It is called, too, where the settings are as before: files that they name may not be.
        """
        self._parts.append(part)

    def overrides(self, *, per_broker: bool) -> Overrides:
        """What was changed, for this broker or for the whole cluster."""
        return self.broker_overrides if per_broker else self.cluster_overrides

    def validate(self, overrides: Overrides, *, per_broker: bool) -> None:
        """Find out whether these could take the place of the overrides at one level.

        Args:
            overrides: all of them, as text.
            per_broker: whether they are this broker's and not the cluster's.

        Raises:
            ConfigError: one sentence that says which setting cannot change, and why.
        """
        check_overrides(overrides, per_broker=per_broker)
        proposed = self._with(overrides, per_broker=per_broker)
        check_change(self, proposed)
        if per_broker:  # what parts go by is never the whole cluster's
            for part in self._parts:
                part.check(proposed)

    def change(self, overrides: Overrides, *, per_broker: bool) -> None:
        """Put these in the place of the overrides at one level, and call the subscribers.

        What cannot be used is logged and passed over: a request for it was refused,
        so it comes from another release or from a hand in the store.
        """
        usable = _usable(overrides, per_broker=per_broker)
        try:
            effective = self._with(usable, per_broker=per_broker)
        except ConfigError as error:
            logger.error("changed settings of %s are not used: %s", _whose(per_broker), error)
            return
        if per_broker:
            self.broker_overrides = usable
        else:
            self.cluster_overrides = usable
        before = self._values
        self._adopt(effective)
        self._notify({name for name, value in self._values.items() if value != before[name]})
        for part in self._parts:
            _follow(part.reconfigure)

    def replace_startup(self, startup: BrokerConfig) -> None:
        """Go by another file and command line from now on; what was changed since stays in force.

        A broker for tests is given another user of PLAIN so, who can stand nowhere else.
        """
        self._startup = startup
        self.static = startup.static
        self.unknown_keys = startup.unknown_keys
        self.change(self.broker_overrides, per_broker=True)

    def _with(self, overrides: Overrides, *, per_broker: bool) -> BrokerConfig:
        """The settings that there would be. Raises: ConfigError."""
        if per_broker:
            layers = (self.cluster_overrides, overrides)
        else:
            layers = (overrides, self.broker_overrides)
        if not any(layers):
            return self._startup
        texts = dict(self._startup.static)
        for layer in layers:
            for name, text in layer.items():
                for companion in COMPANIONS.get(name, ()):
                    texts.pop(companion, None)  # a finer unit below must not win over it
                texts[name] = text
        return BrokerConfig.from_sources(texts)

    def _notify(self, changed: set[str]) -> None:
        if not changed:
            return
        logger.info("settings changed: %s", ", ".join(sorted(changed)))
        for names, callback in self._subscriptions:
            if not names.isdisjoint(changed):
                _follow(callback)


def _follow(callback: Callable[[], None]) -> None:
    """Have a change followed; one that fails keeps nobody else from it."""
    try:
        callback()
    except Exception:
        logger.exception("a change of settings could not be followed everywhere")


def _usable(overrides: Overrides, *, per_broker: bool) -> dict[str, str]:
    usable = {}
    for name, text in overrides.items():
        refusal = refusal_of(name, text, per_broker=per_broker)
        if refusal is None:
            usable[name] = text
        else:
            logger.error("a changed setting of %s is not used: %s", _whose(per_broker), refusal)
    return usable


def _whose(per_broker: bool) -> str:
    return "this broker" if per_broker else "the cluster"
