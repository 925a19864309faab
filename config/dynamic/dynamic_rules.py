"""Which broker settings may change while the broker runs, at which level, and to what.

After Kafka's `DynamicBrokerConfig` and its reconfigurable parts. A setting is changed for one
broker or for the whole cluster; some, like listeners, make sense for one broker only, and
some, like key stores, for one listener of one broker only.
"""

from __future__ import annotations

from collections.abc import Mapping

from ...common.sentinels import INT64_MAX
from ..broker_config import LISTENER_PREFIX, BrokerConfig, listener_definition
from ..definition import ConfigError, Definition, Range
from ..listeners import Listener, advertise
from ..tables.broker_table import BROKER_DEFINITIONS, LONG, MEDIUM
from ..values import parse_value

DYNAMIC_ONLY: dict[str, Definition] = {
    name: Definition(name, LONG, INT64_MAX, MEDIUM, Range(0), dynamic=True)
    for name in (
        "follower.replication.throttled.rate",
        "leader.replication.throttled.rate",
        "replica.alter.log.dirs.io.max.bytes.per.second",
    )
}
"""Settings of a broker that no file can have (Kafka's QuotaConfig.brokerQuotaConfigs)."""

PER_LISTENER = frozenset(
    {
        "ssl.key.password",
        "ssl.keystore.certificate.chain",
        "ssl.keystore.key",
        "ssl.keystore.location",
        "ssl.keystore.password",
        "ssl.keystore.type",
        "ssl.truststore.certificates",
        "ssl.truststore.location",
        "ssl.truststore.password",
        "ssl.truststore.type",
    }
)
"""Changed only as `listener.name.<listener>.<setting>`."""

PER_BROKER = PER_LISTENER | {
    "cordoned.log.dirs",
    "listener.security.protocol.map",
    "listeners",
    "principal.builder.class",
    "sasl.enabled.mechanisms",
    "sasl.jaas.config",
    "sasl.kerberos.kinit.cmd",
    "sasl.kerberos.min.time.before.relogin",
    "sasl.kerberos.principal.to.local.rules",
    "sasl.kerberos.service.name",
    "sasl.kerberos.ticket.renew.jitter",
    "sasl.kerberos.ticket.renew.window.factor",
    "sasl.login.refresh.buffer.seconds",
    "sasl.login.refresh.min.period.seconds",
    "sasl.login.refresh.window.factor",
    "sasl.login.refresh.window.jitter",
    "sasl.mechanism.inter.broker.protocol",
    "ssl.cipher.suites",
    "ssl.client.auth",
    "ssl.enabled.protocols",
    "ssl.endpoint.identification.algorithm",
    "ssl.engine.factory.class",
    "ssl.keymanager.algorithm",
    "ssl.protocol",
    "ssl.provider",
    "ssl.secure.random.implementation",
    "ssl.trustmanager.algorithm",
}
"""Changed for one broker at a time, never for the whole cluster."""

OF_ALL_LISTENERS = frozenset(
    {"max.connection.creation.rate", "max.connections", "num.network.threads"}
)
"""Settings that the whole cluster may have for a listener."""

THREAD_COUNTS = (
    "background.threads",
    "log.cleaner.threads",
    "num.io.threads",
    "num.network.threads",
    "num.recovery.threads.per.data.dir",
    "num.replica.fetchers",
)
"""Numbers of threads: one change at most doubles or halves one."""

BUILT_IN_REPORTERS = frozenset(BROKER_DEFINITIONS["metric.reporters"].default or ())  # type: ignore[arg-type]  # a list's default is a tuple


def dynamic_definition(name: str) -> Definition | None:
    """The definition of a setting that a client names; None for one that no table has."""
    found = BROKER_DEFINITIONS.get(name) or DYNAMIC_ONLY.get(name)
    if found is None:
        found = listener_definition(name)
        if found is not None:
            found = found._replace(name=name)
    return found


def refusal_of(name: str, text: str, *, per_broker: bool) -> str | None:
    """Why a setting cannot have this value at this level; None where it can.

    A name that no table has can have any, as in Kafka, where a plug-in may look for it.

    Args:
        per_broker: whether it is set for one broker and not for the cluster.
    """
    if name in BROKER_DEFINITIONS and not BROKER_DEFINITIONS[name].dynamic:
        return f"Cannot update these configs dynamically: [{name}]"
    if name in PER_LISTENER:
        return (
            "These security configs can be dynamically updated only per-listener using the "
            f"listener prefix: [{name}]"
        )
    definition = dynamic_definition(name)
    if definition is None:
        return None
    try:
        parse_value(definition, text)
    except ConfigError as error:
        return str(error)
    if not per_broker and _is_of_one_broker(name):
        return (
            "Cannot update these configs at default cluster level, broker id must be specified: "
            f"[{name}]"
        )
    return None


def _is_of_one_broker(name: str) -> bool:
    if not name.startswith(LISTENER_PREFIX):
        return name in PER_BROKER
    _listener, _, setting = name.removeprefix(LISTENER_PREFIX).partition(".")
    return setting not in OF_ALL_LISTENERS


def check_overrides(overrides: Mapping[str, str], *, per_broker: bool) -> None:
    """Refuse settings that cannot change, or not at this level, or not to this.

    Raises:
        ConfigError: what `refusal_of` says of the first of them.
    """
    for name, text in overrides.items():
        refusal = refusal_of(name, text, per_broker=per_broker)
        if refusal is not None:
            raise ConfigError(refusal)


def check_change(current: BrokerConfig, proposed: BrokerConfig) -> None:
    """Refuse a step that a running broker cannot make.

    Args:
        current: the settings now.
        proposed: what they would be.

    Raises:
        ConfigError: one sentence that says what is possible.
    """
    for name in THREAD_COUNTS:
        before, after = current[name], proposed[name]
        if after != before:
            _check_thread_count(name, before, after)
    unknown = set(proposed["metric.reporters"]) - BUILT_IN_REPORTERS
    if unknown and proposed["metric.reporters"] != current["metric.reporters"]:
        raise ConfigError(
            f"metric.reporters names {', '.join(sorted(unknown))}: this broker cannot load classes "
            f"of Java."
        )
    _check_listeners(current, proposed)


def _check_listeners(current: BrokerConfig, proposed: BrokerConfig) -> None:
    before = {listener.name: listener.security_protocol for listener in current.listeners}
    after = {listener.name: listener.security_protocol for listener in proposed.listeners}
    if before != after:
        raise ConfigError(
            f"listeners would be {_names(after)} in place of {_names(before)}: listeners come and "
            f"go, or change their security protocol, only when the broker starts."
        )
    if _advertised(current) != _advertised(proposed):
        raise ConfigError(
            "listeners cannot change what this broker advertises while it runs: set "
            "advertised.listeners in its file and start it again."
        )


def _check_thread_count(name: str, before: int, after: int) -> None:
    if after < 1:
        limit = "value should be at least 1"
    elif after < before // 2:
        limit = f"value should be at least half the current value {before}"
    elif after > before * 2:
        limit = f"value should not be greater than double the current value {before}"
    else:
        return
    reason = f"Dynamic thread count update validation failed for {name}={after}, {limit}"
    # Kafka puts one exception into another, and this is what it says then.
    raise ConfigError(
        "Invalid value org.apache.kafka.common.config.ConfigException: "
        f"{reason} for configuration Invalid dynamic configuration"
    )


def _advertised(config: BrokerConfig) -> tuple[Listener, ...]:
    return advertise(config.listeners, config.advertised_listeners, {}, str)


def _names(listeners: Mapping[str, str]) -> str:
    return ",".join(f"{name}:{protocol}" for name, protocol in listeners.items())
