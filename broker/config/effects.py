"""Which settings are accepted without an effect, so that nobody tunes what does nothing.

Two kinds: those that never will have one, because what they are about does not exist here
(threads, Java classes, KRaft, tiered storage), and those that wait for a part of the broker
that is not there yet. All others are read somewhere, which a test holds.
"""

from __future__ import annotations

IGNORED_PREFIXES = (
    "controller.performance.",
    "controller.quorum.",
    "internal.metadata.",
    "local.retention.",
    "log.local.",
    "metadata.",
    "remote.",
    "unstable.",
)
"""KRaft's and tiered storage's settings."""

IGNORED = frozenset(
    {
        "alter.config.policy.class.name",
        "auto.include.jmx.reporter",
        "background.threads",
        "broker.heartbeat.interval.ms",
        "broker.session.timeout.ms",
        "client.quota.callback.class",
        "config.providers",
        "control.plane.listener.name",
        "create.topic.policy.class.name",
        "delete.records.purgatory.purge.interval.requests",
        "early.start.listeners",
        "fetch.purgatory.purge.interval.requests",
        "follower.fetch.last.tiered.offset.enable",
        "group.coordinator.background.threads",
        "group.coordinator.threads",
        "group.share.persister.class.name",
        "initial.broker.registration.timeout.ms",
        "inter.broker.protocol.version",
        "kafka.metrics.polling.interval.secs",
        "kafka.metrics.reporters",
        "log.message.downconversion.enable",
        "metric.reporters",
        "metrics.recording.level",
        "num.io.threads",
        "num.network.threads",
        "principal.builder.class",
        "process.roles",
        "producer.purgatory.purge.interval.requests",
        "replica.selector.class",
        "sasl.client.callback.handler.class",
        "sasl.login.callback.handler.class",
        "sasl.login.class",
        "sasl.mechanism.controller.protocol",
        "sasl.server.callback.handler.class",
        "security.providers",
        "server.max.startup.time.ms",
        "share.coordinator.threads",
        "share.fetch.purgatory.purge.interval.requests",
        "ssl.engine.factory.class",
        "ssl.keymanager.algorithm",
        "ssl.provider",
        "ssl.secure.random.implementation",
        "ssl.trustmanager.algorithm",
        "zookeeper.clientCnxnSocket",
    }
)
"""Settings of threads, Java classes and upgrades, which this broker has none of."""

NOT_YET_PREFIXES: tuple[str, ...] = ()
NOT_YET: frozenset[str] = frozenset()
"""Settings of parts that are not built yet."""


def is_ignored(name: str) -> bool:
    """Whether the setting can have no effect here."""
    return name in IGNORED or name.startswith(IGNORED_PREFIXES)


def is_not_yet(name: str) -> bool:
    """Whether the setting waits for a part that is not built yet."""
    return not is_ignored(name) and (name in NOT_YET or name.startswith(NOT_YET_PREFIXES))


def effect_note(name: str) -> str:
    """What to add to a setting's documentation; empty where the setting does what it says."""
    if is_ignored(name):
        return " Accepted for compatibility, without effect."
    if is_not_yet(name):
        return " Accepted, but nothing acts on it yet."
    return ""
