"""Which settings are accepted without an effect, so that nobody tunes what does nothing.

Two kinds: those that never will have one, because what they are about does not exist here
(threads, Java classes, KRaft, tiered storage), and those that wait for a part of the broker
that is not there yet. All others are read somewhere, which a test holds. What would decide who may
do what, or how much, is not accepted without an effect: it is refused.
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
        "auto.include.jmx.reporter",
        "broker.heartbeat.interval.ms",
        "broker.session.timeout.ms",
        "control.plane.listener.name",
        "delete.records.purgatory.purge.interval.requests",
        "early.start.listeners",
        "fetch.purgatory.purge.interval.requests",
        "follower.fetch.last.tiered.offset.enable",
        "group.coordinator.background.threads",
        "group.coordinator.threads",
        "group.share.assignors",
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
        "process.roles",
        "producer.purgatory.purge.interval.requests",
        "sasl.kerberos.kinit.cmd",
        "sasl.kerberos.min.time.before.relogin",
        "sasl.kerberos.ticket.renew.jitter",
        "sasl.kerberos.ticket.renew.window.factor",
        "sasl.mechanism.controller.protocol",
        "server.max.startup.time.ms",
        "share.coordinator.threads",
        "share.fetch.purgatory.purge.interval.requests",
        "zookeeper.clientCnxnSocket",
        "zookeeper.ssl.truststore.password",
    }
)
"""Settings of threads, Java classes and upgrades, which this broker has none of, and of how Java
renews tickets, which MIT Kerberos does by itself."""

NOT_YET_PREFIXES: tuple[str, ...] = (
    "metrics.",
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
        "queued.max.requests",
        "replica.socket.receive.buffer.bytes",
        "reserved.broker.max.id",
        "share.coordinator.append.linger.ms",
        "share.coordinator.cached.buffer.max.bytes",
        "socket.listen.backlog.size",
        "socket.receive.buffer.bytes",
        "socket.send.buffer.bytes",
        "transaction.two.phase.commit.enable",
        "unclean.leader.election.interval.ms",
        "zookeeper.max.in.flight.requests",
    }
)
"""Settings of parts that are not built yet."""

_JAVA = "it names a Java class, which cannot be run here"
_JSSE = "it is about Java's TLS, and OpenSSL speaks TLS here"
_RETRIEVERS = "org.apache.kafka.common.security.oauthbearer."
_ASSERTION = (
    "a token is requested by sasl.oauthbearer.client.credentials.*, or read from a file, and not "
    "got by an assertion (KIP-1139, KIP-1258): have another program keep it in a file, and name "
    "that, as sasl.oauthbearer.token.endpoint.url=file:///PATH"
)

REFUSED = {
    "alter.config.policy.class.name": _JAVA,
    "client.quota.callback.class": _JAVA,
    "config.providers": "values are not looked up elsewhere, but taken as they are",
    "create.topic.policy.class.name": _JAVA,
    "principal.builder.class": _JAVA,
    "sasl.client.callback.handler.class": _JAVA,
    "sasl.oauthbearer.jwt.retriever.class": _ASSERTION,
    "security.providers": _JAVA,
    "ssl.engine.factory.class": _JAVA,
    "ssl.keymanager.algorithm": _JSSE,
    "ssl.provider": _JSSE,
    "ssl.secure.random.implementation": _JSSE,
    "ssl.trustmanager.algorithm": _JSSE,
    "zookeeper.ssl.cipher.suites": "the ciphers are OpenSSL's own choice",
    "zookeeper.ssl.crl.enable": "revoked certificates are not looked for",
    "zookeeper.ssl.ocsp.enable": "revoked certificates are not looked for",
}
"""Settings of security that a broker does not start with, unless they have their default, and why:
their operator would believe in something that nobody enforces."""

REFUSED_PREFIXES = {"sasl.oauthbearer.assertion.": _ASSERTION}

ALSO_TAKEN = {
    "sasl.oauthbearer.jwt.retriever.class": (
        f"{_RETRIEVERS}ClientCredentialsJwtRetriever",
        f"{_RETRIEVERS}FileJwtRetriever",
    )
}
"""Other values of such settings that mean what is done here."""

NOT_YET_NOTE = " Accepted, not implemented."
"""Also of every setting of a client metrics subscription: no client is sent a subscription."""


def is_ignored(name: str) -> bool:
    """Whether the setting can have no effect here."""
    return name in IGNORED or name.startswith(IGNORED_PREFIXES)


def is_not_yet(name: str) -> bool:
    """Whether the setting waits for a part that is not built yet."""
    return not is_ignored(name) and (name in NOT_YET or name.startswith(NOT_YET_PREFIXES))


def why_refused(name: str) -> str | None:
    """Why the setting may only have its default; None where it may have another value."""
    found = REFUSED.get(name)
    if found is None:
        for prefix, reason in REFUSED_PREFIXES.items():
            if name.startswith(prefix):
                return reason
    return found


def refusal(name: str, value: object, default: object) -> str | None:
    """Why a broker with this value of a setting is not to start; None where it may.

    Args:
        name: of the setting, without a listener's prefix.
        value: typed.
        default: of the setting.
    """
    if value in (default, "", ()) or value in ALSO_TAKEN.get(name, ()):
        return None
    return why_refused(name)


def effect_note(name: str) -> str:
    """What to add to a setting's documentation; empty where the setting does what it says."""
    if is_ignored(name):
        return " Accepted for compatibility, without effect."
    if is_not_yet(name):
        return NOT_YET_NOTE
    if why_refused(name) is not None:
        return " Refused, unless it has its default."
    return ""
