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
    "metadata.log.max.",
    "metadata.log.segment.",
    "metadata.max.",
    "remote.",
    "unstable.",
)
"""KRaft's and tiered storage's settings."""

IGNORED = frozenset(
    {
        "alter.config.policy.class.name",
        "auto.include.jmx.reporter",
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
        "log.preallocate",
        "metric.reporters",
        "metrics.recording.level",
        "num.io.threads",
        "num.network.threads",
        "preallocate",
        "principal.builder.class",
        "process.roles",
        "producer.purgatory.purge.interval.requests",
        "sasl.client.callback.handler.class",
        "sasl.mechanism.controller.protocol",
        "sasl.oauthbearer.jwt.retriever.class",
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
        "zookeeper.ssl.truststore.password",
    }
)
"""Settings of threads, Java classes and upgrades, which this broker has none of."""

NOT_YET_PREFIXES: tuple[str, ...] = (
    "group.share.",
    "group.streams.",
    "metrics.",
    "sasl.kerberos.",
    "sasl.login.connect.",
    "sasl.login.read.",
    "sasl.login.refresh.",
    "sasl.login.retry.",
    "sasl.oauthbearer.assertion.",
    "socket.connection.",
)
NOT_YET: frozenset[str] = frozenset(
    {
        "broker.id.generation.enable",
        "controlled.shutdown.retry.backoff.ms",
        "cordoned.log.dirs",
        "group.coordinator.append.linger.ms",
        "group.coordinator.cached.buffer.max.bytes",
        "log.dir.failure.timeout.ms",
        "log.message.timestamp.difference.max.ms",
        "offsets.commit.required.acks",
        "offsets.load.buffer.size",
        "queued.max.request.bytes",
        "queued.max.requests",
        "replica.socket.receive.buffer.bytes",
        "reserved.broker.max.id",
        "share.coordinator.append.linger.ms",
        "share.coordinator.cached.buffer.max.bytes",
        "share.coordinator.cold.partition.snapshot.interval.ms",
        "share.coordinator.load.buffer.size",
        "share.coordinator.snapshot.update.records.per.snapshot",
        "share.coordinator.state.topic.compression.codec",
        "share.coordinator.state.topic.prune.interval.ms",
        "share.coordinator.write.timeout.ms",
        "socket.listen.backlog.size",
        "socket.receive.buffer.bytes",
        "socket.send.buffer.bytes",
        "telemetry.max.bytes",
        "transaction.two.phase.commit.enable",
        "unclean.leader.election.interval.ms",
        "zookeeper.max.in.flight.requests",
        "zookeeper.ssl.cipher.suites",
        "zookeeper.ssl.crl.enable",
        "zookeeper.ssl.ocsp.enable",
    }
)
"""Settings of parts that are not built yet."""

NOT_YET_NOTE = " Accepted, not implemented."
"""Also of every setting of a client metrics subscription: no client is sent a subscription."""


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
        return NOT_YET_NOTE
    return ""
