"""How a cluster is to be reached, from the settings of Kafka's clients as files have them.

Java's names and librdkafka's are both understood. A setting is applied, or it is on the list of
those that do not matter here (pacing, buffers, what producers and consumers do), or it is refused:
whatever would make a connection safer than it is going to be, and names that no client knows.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

from ..common.nearest import did_you_mean
from .connection_settings import ConnectionSettings
from .settings import ClientSettings, check_settings

if TYPE_CHECKING:
    from ssl import SSLContext

    from .network.connection import Authenticate
    from .security.tls_stores import ReadFile

PLAINTEXT, SSL, SASL_PLAINTEXT, SASL_SSL = "PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"
PROTOCOLS = (PLAINTEXT, SSL, SASL_PLAINTEXT, SASL_SSL)

JAVA_NAMES = {
    "max.in.flight": "max.in.flight.requests.per.connection",
    "metadata.broker.list": "bootstrap.servers",
    "sasl.mechanisms": "sasl.mechanism",
    "sasl.oauthbearer.client.id": "sasl.oauthbearer.client.credentials.client.id",
    "sasl.oauthbearer.client.secret": "sasl.oauthbearer.client.credentials.client.secret",
    "ssl.ca.location": "ssl.truststore.location",
    "ssl.ca.pem": "ssl.truststore.certificates",
    "ssl.certificate.pem": "ssl.keystore.certificate.chain",
    "ssl.key.pem": "ssl.keystore.key",
}
"""librdkafka's name, and Java's for the same thing."""

PEM_FILES = {
    "ssl.certificate.location": "ssl.keystore.certificate.chain",
    "ssl.key.location": "ssl.keystore.key",
}
"""librdkafka's names for files, of which Java's clients have the content in a setting."""

IMPLIED_TYPES = {
    "ssl.ca.location": "ssl.truststore.type",
    "ssl.ca.pem": "ssl.truststore.type",
    "ssl.certificate.location": "ssl.keystore.type",
    "ssl.certificate.pem": "ssl.keystore.type",
    "ssl.key.location": "ssl.keystore.type",
    "ssl.key.pem": "ssl.keystore.type",
}
"""librdkafka reads PEM from these without being told that it is PEM."""

GSSAPI = "GSSAPI"
"""The mechanism where none is set, of Java's clients as of librdkafka."""
KERBEROS_PRINCIPAL = "kafkaclient"
KERBEROS_SERVICE = "kafka"
"""librdkafka's defaults."""

VERIFICATION = "enable.ssl.certificate.verification"
HOSTNAMES = "ssl.endpoint.identification.algorithm"

CLIENT_SETTINGS = (
    "client.id",
    "request.timeout.ms",
    "max.in.flight.requests.per.connection",
    "retry.backoff.ms",
    "retry.backoff.max.ms",
    "reconnect.backoff.ms",
    "reconnect.backoff.max.ms",
    "socket.connection.setup.timeout.ms",
    "socket.connection.setup.timeout.max.ms",
    "connections.max.idle.ms",
    "metadata.max.age.ms",
    "metadata.max.idle.ms",
    "metadata.recovery.strategy",
    "metadata.recovery.rebootstrap.trigger.ms",
)
"""Those of `ClientSettings` that a file may change."""

SECURITY_SETTINGS = (
    "security.protocol",
    "ssl.keystore.type",
    "ssl.keystore.location",
    "ssl.keystore.password",
    "ssl.keystore.certificate.chain",
    "ssl.keystore.key",
    "ssl.key.password",
    "ssl.truststore.type",
    "ssl.truststore.location",
    "ssl.truststore.password",
    "ssl.truststore.certificates",
    "ssl.enabled.protocols",
    "ssl.protocol",
    "ssl.cipher.suites",
    HOSTNAMES,
    VERIFICATION,
    "sasl.mechanism",
    "sasl.username",
    "sasl.password",
    "sasl.jaas.config",
)

_JAVA = "it names a Java class, which cannot be run here"
_OPENSSL = "only OpenSSL's own choice can be used here"
REFUSED = {
    "config.providers": "values are taken as they stand here, and secrets in them not looked up",
    "interceptor.classes": _JAVA,
    "plugin.library.paths": "librdkafka's plugins cannot be loaded here",
    "sasl.client.callback.handler.class": _JAVA,
    "sasl.login.class": _JAVA,
    "security.providers": _JAVA,
    "ssl.ca.certificate.stores": "name a PEM file in ssl.ca.location",
    "ssl.crl.location": "revoked certificates are not looked up here",
    "ssl.curves.list": _OPENSSL,
    "ssl.engine.factory.class": _JAVA,
    "ssl.engine.id": _OPENSSL,
    "ssl.engine.location": _OPENSSL,
    "ssl.provider": _JAVA,
    "ssl.providers": _OPENSSL,
    "ssl.sigalgs.list": _OPENSSL,
}
"""Settings that would not be enforced, and why."""

_OF_OTHER_CLIENTS = """\
acks allow.auto.create.topics api.version.fallback.ms api.version.request
api.version.request.timeout.ms auto.commit.enable auto.commit.interval.ms
auto.include.jmx.reporter auto.offset.reset batch.num.messages batch.size broker.address.family
broker.address.ttl broker.version.fallback buffer.memory check.crcs client.dns.lookup client.rack
compression.codec compression.gzip.level compression.level compression.lz4.level compression.type
compression.zstd.level consume.callback.max.messages coordinator.query.interval.ms debug
default.api.timeout.ms delivery.report.only.error delivery.timeout.ms enable.auto.commit
enable.auto.offset.store enable.gapless.guarantee enable.idempotence enable.metrics.push
enable.partition.eof enable.random.seed enable.sasl.oauthbearer.unsecure.jwt
exclude.internal.topics fetch.error.backoff.ms fetch.max.bytes fetch.max.wait.ms
fetch.message.max.bytes fetch.min.bytes fetch.queue.backoff.ms fetch.wait.max.ms group.id
group.instance.id group.protocol group.protocol.type group.remote.assignor heartbeat.interval.ms
https.ca.location https.ca.pem internal.termination.signal isolation.level key.deserializer
key.serializer linger.ms log.connection.close log.queue log.thread.name log_level max.block.ms
max.partition.fetch.bytes max.poll.interval.ms max.poll.records max.request.size
message.copy.max.bytes message.max.bytes message.send.max.retries message.timeout.ms
metadata.cluster.check.enable metric.reporters metrics.num.samples metrics.recording.level
metrics.sample.window.ms offset.store.method offset.store.path offset.store.sync.interval.ms
partition.assignment.strategy partitioner partitioner.adaptive.partitioning.enable
partitioner.availability.timeout.ms partitioner.class partitioner.ignore.keys
produce.offset.report queue.buffering.backpressure.threshold queue.buffering.max.kbytes
queue.buffering.max.messages queue.buffering.max.ms queued.max.messages.kbytes queued.min.messages
queuing.strategy receive.buffer.bytes receive.message.max.bytes reconnect.backoff.jitter.ms
request.required.acks retries send.buffer.bytes session.timeout.ms share.acknowledgement.mode
socket.blocking.max.ms socket.keepalive.enable socket.max.fails socket.nagle.disable
socket.receive.buffer.bytes socket.send.buffer.bytes socket.timeout.ms ssl.keymanager.algorithm
ssl.secure.random.implementation ssl.trustmanager.algorithm statistics.interval.ms
sticky.partitioning.linger.ms topic.blacklist topic.metadata.propagation.max.ms
topic.metadata.refresh.fast.cnt topic.metadata.refresh.fast.interval.ms
topic.metadata.refresh.interval.ms topic.metadata.refresh.sparse transaction.timeout.ms
transaction.two.phase.commit.enable transactional.id value.deserializer value.serializer
"""

WITHOUT_EFFECT = frozenset(_OF_OTHER_CLIENTS.split())
"""Settings that files have for other clients, and that change nothing about who is spoken to, or
how safely: producers and consumers are given theirs by their callers."""

LOGIN_HANDLER = "sasl.login.callback.handler.class"

OTHER_MECHANISMS = ("sasl.kerberos.", "sasl.login.", "sasl.oauthbearer.")
"""Settings that begin so say nothing to a login by name and password."""

_ASSERTION = (
    "a token is requested by sasl.oauthbearer.client.credentials.*, or read from a file, and not"
    " got by an assertion (KIP-1139, KIP-1258): have another program keep it in a file, and name"
    " that, as sasl.oauthbearer.token.endpoint.url=file:///PATH"
)
UNSUPPORTED_TOKENS = {
    "sasl.oauthbearer.assertion.": _ASSERTION,
    "sasl.oauthbearer.config": "leave it out",
    "sasl.oauthbearer.extensions": "leave it out",
    "sasl.oauthbearer.jwt.retriever.": _ASSERTION,
    "sasl.oauthbearer.jwt.validator.": _JAVA,
    "sasl.oauthbearer.metadata.": "leave it out",
}
"""Settings of OAUTHBEARER that begin so are refused where it is used, for they would change tokens;
and why."""


class PropertyError(ValueError):
    """A setting that cannot be used; the text is a sentence that names it.

    Attributes:
        name: of the setting as it was given; None if it is one that is missing.
    """

    def __init__(self, name: str | None, sentence: str) -> None:
        super().__init__(sentence)
        self.name = name


def connection_settings_of(
    properties: Mapping[str, str], read: ReadFile, defaults: ClientSettings | None = None
) -> ConnectionSettings:
    """The settings that a client's properties make.

    Args:
        properties: by the names of Java's clients or of librdkafka.
        read: reads the files that they name.
        defaults: of what they do not say.

    Raises:
        PropertyError: one is unknown, cannot be used, or would not be enforced.
    """
    for name in properties:
        _require_known(name)
    given = _in_javas_names(properties, read)
    protocol = _protocol(given)
    context, tls, is_verified = None, {}, True
    if protocol in (SSL, SASL_SSL):
        is_verified = _is_verified(given)
        tls = {HOSTNAMES: "https"}
        tls |= {name: text for name, text in given.items() if name.startswith("ssl.")}
        if not is_verified or tls[HOSTNAMES].lower() == "none":
            tls[HOSTNAMES] = ""  # librdkafka's word for what Java says by nothing
        context = _context(tls, is_verified, read)
    return ConnectionSettings(
        given.get("bootstrap.servers"),
        _client_settings(given, defaults or ClientSettings()),
        context,
        _authentication(given, read) if protocol in (SASL_PLAINTEXT, SASL_SSL) else None,
        tls,
        is_verified,
    )


def _require_known(name: str) -> None:
    if name in REFUSED:
        raise PropertyError(name, f"{name} is not supported: {REFUSED[name]}")
    if name.startswith(OTHER_MECHANISMS) or name in WITHOUT_EFFECT:
        return
    applied = {*CLIENT_SETTINGS, *SECURITY_SETTINGS, *JAVA_NAMES, *PEM_FILES, "bootstrap.servers"}
    applied.add(LOGIN_HANDLER)
    if name in applied:
        return
    hint = did_you_mean(name, [*applied, *WITHOUT_EFFECT, *REFUSED])
    raise PropertyError(name, f"{name} is not a setting of Kafka's clients{hint}")


def _in_javas_names(properties: Mapping[str, str], read: ReadFile) -> dict[str, str]:
    given: dict[str, str] = {}
    for name, text in properties.items():
        java = JAVA_NAMES.get(name) or PEM_FILES.get(name) or name
        if java in given:
            raise PropertyError(name, f"{name} and another name of {java} are both set: set one")
        given[java] = _pem(name, text.strip(), read) if name in PEM_FILES else text.strip()
    for name, type_name in IMPLIED_TYPES.items():
        if name in properties:
            given.setdefault(type_name, "PEM")
    for name in PEM_FILES:
        (other,) = PEM_FILES.keys() - {name}
        if name in properties and PEM_FILES[other] not in given:
            raise PropertyError(name, f"{name} is set without {other}: they go together")
    return given


def _pem(name: str, path: str, read: ReadFile) -> str:
    try:
        return read(path).decode("latin-1")
    except OSError as error:
        raise PropertyError(name, f"{name}={path} cannot be read: {error.strerror}") from error


def _protocol(given: Mapping[str, str]) -> str:
    protocol = given.get("security.protocol")
    if protocol is not None:
        if protocol.upper() not in PROTOCOLS:
            raise PropertyError(
                "security.protocol",
                f"security.protocol={protocol} must be one of {', '.join(PROTOCOLS)}",
            )
        return protocol.upper()
    for name in given:
        if name in SECURITY_SETTINGS:
            raise PropertyError(
                name,
                f"{name} would have no effect, for security.protocol is {PLAINTEXT} by default;"
                f" set it to {SSL}, {SASL_PLAINTEXT} or {SASL_SSL}",
            )
    return PLAINTEXT


def _is_verified(given: Mapping[str, str]) -> bool:
    text = given.get(VERIFICATION, "true")
    if text.lower() not in ("true", "false"):
        raise PropertyError(VERIFICATION, f"{VERIFICATION}={text} must be true or false")
    return text.lower() == "true"


def _context(tls: Mapping[str, str], is_verified: bool, read: ReadFile) -> SSLContext:
    from ssl import CERT_NONE

    from .security.tls_context import client_context
    from .security.tls_settings import TlsError, tls_settings_of

    try:
        context = client_context(tls_settings_of(tls), read)
    except TlsError as error:
        raise PropertyError(None, str(error)) from error
    if not is_verified:
        context.verify_mode = CERT_NONE
    return context


def _authentication(given: Mapping[str, str], read: ReadFile) -> Authenticate:
    from ..protocol.sasl.oauthbearer import MECHANISM as OAUTHBEARER
    from .security.oauthbearer import LOGIN_HANDLERS
    from .security.sasl import MECHANISMS, sasl

    mechanism = given.get("sasl.mechanism", GSSAPI)
    if mechanism not in MECHANISMS:
        raise PropertyError(
            "sasl.mechanism",
            f"sasl.mechanism is {mechanism}, but only {', '.join(MECHANISMS)} are supported",
        )
    is_by_token = mechanism == OAUTHBEARER
    if LOGIN_HANDLER in given and not (is_by_token and given[LOGIN_HANDLER] in LOGIN_HANDLERS):
        raise PropertyError(LOGIN_HANDLER, f"{LOGIN_HANDLER} is not supported: {_JAVA}")
    if is_by_token:
        return _token_authentication(given, read)
    if mechanism == GSSAPI:
        return _kerberos_authentication(given)
    login = given.get("sasl.jaas.config")
    if login is None:
        missing = [name for name in ("sasl.username", "sasl.password") if name not in given]
        if missing:
            raise PropertyError(None, f"{missing[0]} is missing, which SASL {mechanism} needs")
        options = {"username": given["sasl.username"], "password": given["sasl.password"]}
    else:
        if "sasl.username" in given or "sasl.password" in given:
            raise PropertyError(
                "sasl.jaas.config",
                "sasl.jaas.config is set, and so is sasl.username or sasl.password: set one",
            )
        options = dict(_jaas_options(login, mechanism))
        for option in ("username", "password"):
            if option not in options:
                raise PropertyError("sasl.jaas.config", f"sasl.jaas.config has no {option}")
    is_token = options.get("tokenauth", "").lower() == "true"
    try:
        return sasl(
            mechanism, options["username"], options["password"], is_delegation_token=is_token
        )
    except ValueError as error:
        raise PropertyError(None, str(error)) from error


def _token_authentication(given: Mapping[str, str], read: ReadFile) -> Authenticate:
    from .network.trio_clock import TrioClock
    from .security.oauthbearer import TOKEN_CLASSES, sasl_oauthbearer, token_source

    for name, text in given.items():
        for prefix, reason in UNSUPPORTED_TOKENS.items():
            if name.startswith(prefix) and text not in TOKEN_CLASSES:
                raise PropertyError(name, f"{name} is not supported: {reason}")
    login = given.get("sasl.jaas.config")
    options = {} if login is None else _jaas_options(login, given["sasl.mechanism"])
    try:
        return sasl_oauthbearer(token_source(given.get, options, read, TrioClock().now_ms))
    except ValueError as error:
        raise PropertyError(None, str(error)) from error


def _kerberos_authentication(given: Mapping[str, str]) -> Authenticate:
    """By a ticket: with a JAAS entry as Java's clients do, without one as librdkafka does."""
    try:
        from .security.gssapi import sasl_gssapi
    except ImportError as error:
        is_missing = "sasl.mechanism" not in given
        raise PropertyError(
            None if is_missing else "sasl.mechanism",
            f"sasl.mechanism is {GSSAPI}{' by default' if is_missing else ''}, which needs the"
            " package gssapi: install odradek[kerberos]",
        ) from error
    from .security.kerberos_login import SERVICE_NAME, KerberosLogin, login_of, service_name_of

    entry = given.get("sasl.jaas.config")
    name = given.get(SERVICE_NAME)
    if entry is None:
        keytab, principal = (given.get(f"sasl.kerberos.{each}") for each in ("keytab", "principal"))
        if keytab is not None:
            principal = principal or KERBEROS_PRINCIPAL
        return sasl_gssapi(name or KERBEROS_SERVICE, KerberosLogin(principal, keytab))
    for other in ("sasl.kerberos.keytab", "sasl.kerberos.principal"):
        if other in given:
            raise PropertyError(
                "sasl.jaas.config", f"sasl.jaas.config is set, and so is {other}: set one"
            )
    options = _jaas_options(entry, GSSAPI)
    try:
        return sasl_gssapi(service_name_of(options, name), login_of(options))
    except ValueError as error:
        raise PropertyError(
            "sasl.jaas.config", f"sasl.jaas.config cannot be used: {error}"
        ) from error


def _jaas_options(text: str, mechanism: str) -> Mapping[str, str]:
    """The options in `sasl.jaas.config`. No error repeats what is in it."""
    from .security.jaas import LOGIN_MODULES, JaasError, parse_jaas

    name = "sasl.jaas.config"
    try:
        entry = parse_jaas(text)
    except JaasError as error:
        raise PropertyError(name, f"{name} cannot be used: {error}") from error
    expected = LOGIN_MODULES[mechanism]  # which some distributions keep in a package of their own
    if entry.module.rpartition(".")[2] != expected.rpartition(".")[2]:
        raise PropertyError(name, f"{name} must begin with {expected} required")
    return entry.options


def _client_settings(given: Mapping[str, str], defaults: ClientSettings) -> ClientSettings:
    changes: dict[str, int | str] = {}
    for name in CLIENT_SETTINGS:
        text = given.get(name)
        if text is None:
            continue
        field = name.replace(".", "_")
        if isinstance(getattr(defaults, field), str):
            changes[field] = text
        elif re.fullmatch(r"-?[0-9]{1,18}", text):
            changes[field] = int(text)
        else:
            raise PropertyError(name, f"{name}={text} must be a whole number")
        try:
            check_settings(ClientSettings(**{**defaults._asdict(), field: changes[field]}))
        except ValueError as error:
            raise PropertyError(name, str(error).replace(field, name)) from error
    return ClientSettings(**{**defaults._asdict(), **changes})
